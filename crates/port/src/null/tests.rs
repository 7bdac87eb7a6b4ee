use super::*;
use crate::spec::PortSpec;
use std::collections::HashSet;
use weir_packet::{Field, FlowKey, ParsedHeaders, PortNo};

fn open(text: &str) -> Result<NullPort, PortError> {
    let spec: PortSpec = text.parse()?;
    NullPort::open(&spec.name, &spec.options)
}

fn problem(text: &str) -> String {
    open(text).expect_err(text).to_string()
}

fn receive(port: &mut NullPort, count: usize) -> Vec<Frame> {
    let (mut pool, mut frames) = (FramePool::default(), Vec::new());
    port.receive(Instant::ZERO, &mut pool, &mut frames, count).unwrap();
    assert_eq!(frames.len(), count);
    frames
}

fn keys(port: &mut NullPort, count: usize) -> Vec<FlowKey> {
    let parsed = |frame: &Frame| ParsedHeaders::of(frame, PortNo(1)).unwrap().key;
    receive(port, count).iter().map(parsed).collect()
}

/// Returns the number of distinct values of a field.
fn values(keys: &[FlowKey], field: Field) -> usize {
    keys.iter().map(|key| key.get(field)).collect::<HashSet<_>>().len()
}

#[test]
fn discards_and_counts() {
    let (mut port, mut pool) = (open("null:").unwrap(), FramePool::default());
    let mut frames = vec![Frame::from_bytes(&[1; 60]); 3];
    port.transmit(Instant::ZERO, &mut pool, &mut frames).unwrap();
    port.receive(Instant::ZERO, &mut pool, &mut frames, 32).unwrap();
    assert!(frames.is_empty());
    assert_eq!((port.counters().tx_packets, port.counters().tx_bytes), (3, 180));
    assert_eq!(port.arm(), ReceiveReadiness::OnDescriptor);
}

#[test]
fn invents_frames_when_asked() {
    let (mut port, mut pool, mut frames) = (open("null:n,rx=on,size=60").unwrap(), FramePool::default(), Vec::new());
    pool.give(Frame::from_bytes(&[7; 100]));
    port.receive(Instant::ZERO, &mut pool, &mut frames, 5).unwrap();
    assert_eq!(frames.len(), 5);
    assert!(frames.iter().all(|frame| frame.bytes() == [0; 60]));
    assert_eq!((port.counters().rx_packets, port.counters().rx_bytes), (5, 300));
    assert_eq!(port.arm(), ReceiveReadiness::Now);
}

#[test]
fn sizes_are_checked() {
    for wrong in ["null:,rx=on,size=13", "null:,rx=on,size=9217", "null:,rx=on,size=x", "null:,size=60"] {
        assert!(open(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn kinds_differ_where_they_say() {
    let mut udp = open("null:,rx=on,headers=udp,flows=100").unwrap();
    let found = keys(&mut udp, 100);
    for field in [Field::Ipv4Src, Field::Ipv4Dst, Field::UdpSrc] {
        assert_eq!(values(&found, field), 100, "{field:?}");
    }
    assert!(found.iter().all(|key| key.get(Field::UdpDst) == 2048 && key.get(Field::IpProto) == 17));
    assert_eq!(found[0].get(Field::UdpSrc), 1024);

    let found = keys(&mut open("null:,rx=on,headers=mac,flows=100,spread=10").unwrap(), 100);
    assert_eq!((values(&found, Field::EthDst), values(&found, Field::Ipv4Src)), (10, 100));

    let found = keys(&mut open("null:,rx=on,headers=mpls,flows=100").unwrap(), 100);
    assert_eq!((values(&found, Field::MplsLabel), found[0].get(Field::MplsBos)), (100, 1));

    let found = keys(&mut open("null:,rx=on,headers=masks,flows=64").unwrap(), 64);
    assert_eq!((values(&found, Field::Ipv4Dst), values(&found, Field::UdpSrc)), (32, 2));
    let class = found.iter().find(|key| key.get(Field::UdpDst) == 1003).unwrap();
    assert_eq!((class.get(Field::Ipv4Src), class.get(Field::Ipv4Dst)), (0x0d03_0303, 0x6703_0303));
}

#[test]
fn flows_that_share_a_value_differ_in_their_port() {
    let found = keys(&mut open("null:,rx=on,headers=udp,flows=100,spread=10").unwrap(), 100);
    assert_eq!((values(&found, Field::Ipv4Src), values(&found, Field::UdpSrc)), (10, 10));
    let both: HashSet<_> = found.iter().map(|key| (key.get(Field::Ipv4Src), key.get(Field::UdpSrc))).collect();
    assert_eq!(both.len(), 100);
}

#[test]
fn lengths_are_those_of_the_frame() {
    let frame = &receive(&mut open("null:,rx=on,headers=udp,size=1514").unwrap(), 1)[0];
    assert_eq!((frame.len(), &frame.bytes()[16..18], &frame.bytes()[38..40]), (1514, &[5, 220][..], &[5, 200][..]));
    let frame = &receive(&mut open("null:,rx=on,headers=mpls").unwrap(), 1)[0];
    assert_eq!((frame.len(), &frame.bytes()[20..22]), (60, &[0, 42][..]));
}

#[test]
fn lists_come_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    std::fs::write(&list, "# routes\n192.0.2.1\n\n198.51.100.0/24\n").unwrap();
    let spec = format!("null:,rx=on,headers=destinations,file={}", list.display());
    let mut port = open(&spec).unwrap();
    let found: HashSet<_> = keys(&mut port, 2).iter().map(|key| key.get(Field::Ipv4Dst)).collect();
    assert_eq!(found, HashSet::from([0xc000_0201, 0xc633_6400]));
    assert!(problem(&format!("{spec},flows=3")).contains("found a list of 2 for 3 flows, expected at least as many"));
    std::fs::write(&list, "192.0.2.1\n192.0.2.300\n").unwrap();
    assert!(problem(&spec).ends_with("list:2: found `192.0.2.300`, expected an IPv4 address"));
    std::fs::write(&list, "\n").unwrap();
    assert!(problem(&spec).ends_with("list holds nothing to send"));

    let capture = folder.path().join("capture.pcap");
    let mut writer = crate::pcap::PcapFileWriter::create(&capture).unwrap();
    for number in 0..3 {
        writer.write(Instant::ZERO, &[number; 80]).unwrap();
    }
    drop(writer);
    let mut port = open(&format!("null:,rx=on,headers=listed,file={}", capture.display())).unwrap();
    let found: HashSet<_> = receive(&mut port, 3).iter().map(|frame| frame.bytes().to_vec()).collect();
    assert_eq!(found, (0..3).map(|number| vec![number; 60]).collect());
}

#[test]
fn a_flow_s_headers_are_those_of_its_frames() {
    let flows = GeneratedFlows::new(FlowHeaderKind::Udp, 100, Some(10), 60).unwrap();
    let mut port = NullPort::generating("gen", flows.clone(), FlowSequence::cycle(100));
    let made: HashSet<_> = receive(&mut port, 100).iter().map(|frame| frame.bytes().to_vec()).collect();
    assert_eq!(made, (0..100).map(|flow| flows.header(flow)[..60].to_vec()).collect());
    assert_eq!(port.info().spec, "null:gen");
}

#[test]
fn errors_say_what_to_write() {
    assert_eq!(
        problem("null:,headers=udp"),
        "port null:,headers=udp: option headers is for received frames: add rx=on"
    );
    let all = "udp|mac|mpls|masks|destinations|listed";
    assert!(problem("null:,rx=on,flows=3").ends_with(&format!("is for frames with headers: add headers={all}")));
    assert!(problem("null:,rx=on,headers=mask").contains("no kind `mask`, perhaps masks; kinds are udp, mac"));
    assert!(problem("null:,rx=on,headers=listed").ends_with("headers=listed needs file=FILE"));
    assert!(problem("null:,rx=on,headers=udp,file=x").ends_with("headers=udp has no list: leave file out"));
    assert!(problem("null:,rx=on,headers=udp,flows=0").contains("found 0 flows, expected 1 to 16777216"));
    assert!(
        problem("null:,rx=on,headers=udp,flows=2,spread=3")
            .contains("spread of 3, expected 1 to the number of flows, 2")
    );
    assert!(problem("null:,rx=on,headers=udp,size=59").contains("frames of 59 bytes, expected 60 to 1514"));
    assert!(problem("null:,rx=on,headers=udp,order=any").contains("found `any`, expected cycle or random"));
    assert!(problem("null:,rx=on,headers=udp,seed=3").ends_with("option seed is for order=random"));
    assert!(problem("null:,rx=on,headers=destinations,file=/nowhere").contains("read /nowhere"));
}
