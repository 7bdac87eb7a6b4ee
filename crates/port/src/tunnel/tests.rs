use super::*;
use crate::event::wait_readable;
use crate::spec::{PortSpec, open};
use std::sync::atomic::{AtomicU16, Ordering};
use weir_packet::craft::FrameBuilder;
use weir_packet::frame::{PartialChecksum, Segmentation, SegmentationKind};
use weir_packet::{MacAddr, PacketType, Tunnel};

const HERE: &str = "127.0.0.1";
const THERE: &str = "127.0.0.2";

/// Returns a UDP port that no other test of this process uses.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(std::process::id() % 300).unwrap() * 100;
    20_000 + own + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn tunnel(text: &str) -> Box<dyn Port> {
    open(&text.parse::<PortSpec>().unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

fn frame() -> Frame {
    let ethernet = FrameBuilder::ethernet(MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]));
    ethernet.ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(1, 2).payload(b"through").frame()
}

fn send(port: &mut dyn Port, frame: Frame) {
    port.transmit(Instant::ZERO, &mut FramePool::default(), &mut vec![frame]).unwrap();
}

/// Returns the frames that a port received, after waiting at most two seconds.
fn received(port: &mut dyn Port) -> Vec<Frame> {
    wait_readable(port.fd().unwrap(), 2000);
    receive(port)
}

fn receive(port: &mut dyn Port) -> Vec<Frame> {
    static ROUND: AtomicU16 = AtomicU16::new(1);
    let round = Instant::from_nanos(ROUND.fetch_add(1, Ordering::Relaxed).into());
    let mut batch = Vec::new();
    port.receive(round, &mut FramePool::default(), &mut batch, 32).unwrap();
    batch
}

fn metadata(id: u32, src: &str, dst: &str) -> Tunnel {
    let bits = |text: &str| text.parse::<Ipv4Addr>().unwrap().to_bits();
    Tunnel { id, src: bits(src), dst: bits(dst) }
}

#[test]
fn vxlan_carries_frames_and_says_through_which_tunnel() {
    let port = free_port();
    let mut near = tunnel(&format!("vxlan:a,local={HERE},remote={THERE},key=77,port={port}"));
    let mut far = tunnel(&format!("vxlan:b,local={THERE},remote={HERE},key=77,port={port},csum=on"));
    for (from, to, src, dst) in [(0, 1, HERE, THERE), (1, 0, THERE, HERE)] {
        let ends = [&mut near, &mut far];
        send(&mut **ends[from], frame());
        let frames = received(&mut **ends[to]);
        assert_eq!(frames.len(), 1);
        assert_eq!((frames[0].bytes(), frames[0].tunnel), (frame().bytes(), metadata(77, src, dst)));
    }
    let counters = near.counters();
    assert_eq!((counters.tx_packets, counters.rx_packets, counters.rx_errors), (1, 1, 0));
    assert!(near.link().up && near.info().mtu > 1000);
}

#[test]
fn tunnels_that_share_a_socket_get_their_own() {
    let port = free_port();
    let mut one = tunnel(&format!("vxlan:a,local={HERE},remote={THERE},key=1,port={port}"));
    let mut two = tunnel(&format!("vxlan:b,local={HERE},remote={THERE},key=2,port={port}"));
    let mut far = tunnel(&format!("vxlan:c,local={THERE},remote={HERE},key=flow,port={port}"));
    for id in [2, 1, 2] {
        let mut frame = frame();
        frame.tunnel.id = id;
        send(&mut *far, frame);
    }
    assert_eq!(received(&mut *one).len(), 1);
    assert_eq!(two.arm(), ReceiveReadiness::Now);
    assert!(wait_readable(two.fd().unwrap(), 2000), "it was told");
    let frames = receive(&mut *two);
    assert_eq!(frames.iter().map(|frame| frame.tunnel.id).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(two.arm(), ReceiveReadiness::OnDescriptor);
    let again = format!("vxlan:d,local={HERE},remote={THERE},key=1,port={port}").parse::<PortSpec>().unwrap();
    let error = open(&again).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("another port has this tunnel"), "{error}");
    drop(one);
    assert!(open(&again).is_ok(), "it is free again");
}

#[test]
fn what_is_wrong_is_counted() {
    let port = free_port();
    let mut near = tunnel(&format!("vxlan:a,local={HERE},remote={THERE},key=1,port={port}"));
    let peer = UdpSocket::bind((THERE, 0)).unwrap();
    let good = [&[8, 0, 0, 0, 0, 0, 1, 0][..], frame().bytes()].concat();
    let wrong_key = [&[8, 0, 0, 0, 0, 0, 2, 0][..], frame().bytes()].concat();
    for datagram in [&good[..], &wrong_key, &good[..7], &good[..21], &[]] {
        peer.send_to(datagram, (HERE, port)).unwrap();
    }
    UdpSocket::bind((HERE, 0)).unwrap().send_to(&good, (HERE, port)).unwrap();
    let mut frames = Vec::new();
    while frames.is_empty() || near.counters().rx_errors < 5 {
        assert!(wait_readable(near.fd().unwrap(), 2000), "{:?}", near.counters());
        frames.extend(receive(&mut *near));
    }
    assert_eq!((frames.len(), near.counters().rx_errors), (1, 5), "wrong key, three cut short, another sender");
    let mut untyped = frame();
    untyped.set_packet_type(PacketType::NSH);
    send(&mut *near, untyped);
    assert_eq!((near.counters().tx_errors, near.counters().tx_packets), (1, 0), "no Ethernet frame");
}

#[test]
fn where_to_is_told_by_each_frame() {
    let port = free_port();
    let mut near = tunnel(&format!("vxlan:a,local={HERE},remote=flow,key=flow,port={port}"));
    let mut far = tunnel(&format!("vxlan:b,local={THERE},remote={HERE},key=9,port={port}"));
    let mut told = frame();
    told.tunnel = metadata(9, "0.0.0.0", THERE);
    send(&mut *near, told);
    assert_eq!(received(&mut *far)[0].tunnel, metadata(9, HERE, THERE));
    send(&mut *near, frame());
    assert_eq!(near.counters().tx_errors, 1, "nowhere");
    send(&mut *far, frame());
    assert_eq!(received(&mut *near)[0].tunnel, metadata(9, THERE, HERE));
}

#[test]
fn vxlan_gpe_carries_service_headers_and_ip() {
    let port = free_port();
    let mut near = tunnel(&format!("vxlan-gpe:a,local={HERE},remote={THERE},port={port}"));
    let mut far = tunnel(&format!("vxlan-gpe:b,local={THERE},remote={HERE},port={port}"));
    assert!(near.takes_any_packet_type());
    for kind in [PacketType::NSH, PacketType::of_eth_type(0x0800), PacketType::ETHERNET] {
        let mut packet = frame();
        packet.set_packet_type(kind);
        send(&mut *near, packet);
        let frames = received(&mut *far);
        assert_eq!((frames[0].packet_type(), frames[0].bytes()), (kind, frame().bytes()));
    }
}

#[test]
fn gre_with_keys_and_checksums() {
    if !weir_testing::root() {
        return;
    }
    for (options, key) in [("", 0), (",key=3735928559", 0xdead_beef), (",key=7,csum=on,packet_type=ptap", 7)] {
        let mut near = tunnel(&format!("gre:a,local={HERE},remote={THERE}{options}"));
        let mut far = tunnel(&format!("gre:b,local={THERE},remote={HERE}{options}"));
        send(&mut *near, frame());
        let frames = received(&mut *far);
        assert_eq!((frames[0].bytes(), frames[0].tunnel), (frame().bytes(), metadata(key, HERE, THERE)), "{options}");
        assert_eq!(far.counters().rx_errors, 0);
    }
}

#[test]
fn super_frames_are_cut_before_they_go_in() {
    let port = free_port();
    let mut near = tunnel(&format!("vxlan:a,local={HERE},remote={THERE},port={port}"));
    let mut far = tunnel(&format!("vxlan:b,local={THERE},remote={HERE},port={port}"));
    let ethernet = FrameBuilder::ethernet(MacAddr([2; 6]), MacAddr([4; 6])).ipv4([1; 4].into(), [2; 4].into());
    let mut frame = ethernet.udp(5, 6).payload(&[7; 2500]).frame();
    frame.offload.checksum = Some(PartialChecksum { start: 34, offset: 6 });
    let kind = SegmentationKind::Udp;
    frame.offload.segmentation = Some(Segmentation { kind, segment_bytes: 1000, header_bytes: 42 });
    send(&mut *near, frame);
    let mut lengths = Vec::new();
    while lengths.len() < 3 {
        let frames = received(&mut *far);
        assert!(!frames.is_empty(), "{lengths:?}");
        for frame in frames {
            assert_eq!(weir_packet::checksum::verify(frame.bytes()), Ok(()));
            lengths.push(frame.len());
        }
    }
    assert_eq!(lengths, [1042, 1042, 542]);
}

#[test]
fn wrong_options_say_what_would_be_right() {
    for (text, part) in [
        ("vxlan:a", "add remote=ADDRESS"),
        ("vxlan:,remote=127.0.0.1", "with a name"),
        ("vxlan:a,remote=::1", "an IPv4 address such as"),
        ("vxlan:a,remote=224.0.0.1", "of one machine"),
        ("vxlan:a,remote=127.0.0.1,key=16777216", "0 to 16777215, or flow"),
        ("gre:a,remote=127.0.0.1,port=5", "GRE has no ports"),
        ("vxlan:a,remote=127.0.0.1,port=0", "from 1 to 65535"),
        ("vxlan:a,remote=127.0.0.1,packet_type=ptap", "use vxlan-gpe"),
        ("gre:a,remote=127.0.0.1,packet_type=l3", "legacy_l2 or ptap"),
        ("vxlan:a,remot=127.0.0.1", "perhaps remote"),
    ] {
        let error = open(&text.parse::<PortSpec>().unwrap()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}
