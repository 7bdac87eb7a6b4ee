//! Tests of packet socket ports.
use crate::testbed::{Bed, SOON, features, frame, open, pass, pass_both_ways, receive, send};
use std::time::Duration;
use weir_packet::frame::{Frame, FramePool, PartialChecksum, Segmentation, SegmentationKind};
use weir_testing::{Namespace, root, run, wait_until};
use weir_units::{Clock as _, Instant, SystemClock};

#[test]
fn frames_pass_unchanged_each_way() {
    let Some(bed) = Bed::new() else { return };
    let (mut pool, mut host, mut port) = bed.host_and_port("af_packet:s0");
    assert_eq!(port.info().spec, "af_packet:s0");
    assert_eq!((port.info().name.as_str(), port.info().mtu), ("s0", 1500));
    for (mark, payload) in [(1, 46), (2, 1), (3, 1500)] {
        let sent = frame(&[0x88, 0xb5], mark, payload);
        pass_both_ways(&mut *host, &mut *port, &mut pool, &sent);
    }
    let (counted, other) = (port.counters(), host.counters());
    assert_eq!((counted.tx_packets, counted.tx_bytes), (3, 3 * 14 + 46 + 1 + 1500));
    assert!(other.rx_packets >= 3 && counted.rx_packets >= 3);
    assert_eq!(counted.tx_dropped() + counted.rx_errors + counted.rx_missed, 0);
}

#[test]
fn frames_say_when_they_came_however_late_they_are_taken() {
    let Some(bed) = Bed::new() else { return };
    let (mut pool, mut host, mut port) = bed.host_and_port("af_packet:s0");
    let clock = SystemClock::start();
    assert!(port.stamp_arrivals(clock));
    let mut is_told = |mark: u8, ethertype: &[u8]| {
        let sent = frame(ethertype, mark, 60);
        let before = clock.now().as_nanos();
        send(&mut *host, &mut pool, &sent);
        let after = clock.now().as_nanos();
        // The frame waits for a while before it is read.
        assert!(wait_until(SOON, || clock.now().as_nanos() > after + 20_000_000));
        let got = receive(&mut *port, &mut pool, |got| got.bytes() == sent).expect("arrives");
        let came = got.arrived();
        // The frame arrived while it was being sent. Two clocks are compared, one of which may be adjusted slightly.
        came + 1_000_000 > before && came < after + 10_000_000
    };
    // The kernel begins to stamp some time after the request and continues from then on, also for frames with a tag,
    // which comes in another control message.
    assert!(wait_until(SOON, || is_told(0, &[0x88, 0xb5])));
    assert!(is_told(1, &[0x88, 0xb5]) && is_told(2, &[0x81, 0, 0, 5, 0x88, 0xb5]));
}

#[test]
fn frames_say_when_they_left_however_long_sending_took() {
    let Some(bed) = Bed::new() else { return };
    let (mut pool, mut host, mut port) = bed.host_and_port("af_packet:s0");
    let clock = SystemClock::start();
    assert!(port.stamp_arrivals(clock) && host.stamp_departures(clock));
    assert_eq!(host.departed(), None, "nothing has left");
    let mut times = |mark: u8, batch: u8| {
        // Frames sent shortly after others get no departure time.
        let from = clock.now();
        assert!(wait_until(SOON, || clock.now().since(from) > Duration::from_micros(60)));
        let before = clock.now();
        let mut frames: Vec<Frame> =
            (1..=batch).map(|at| Frame::from_bytes(&frame(&[0x88, 0xb5], mark + at, 60))).collect();
        let last = frames.last().cloned().unwrap();
        host.transmit(clock.now(), &mut pool, &mut frames).unwrap();
        let after = clock.now();
        let left = host.departed().expect("a veth pair says it");
        assert!(before <= left && left <= after, "{before:?} {left:?} {after:?}");
        let got = receive(&mut *port, &mut pool, |got| got.bytes() == last.bytes()).expect("arrives");
        (left, Instant::from_nanos(got.arrived()))
    };
    // The kernel begins to stamp arrivals some time after the request.
    assert!(wait_until(SOON, || times(0, 1).1 > Instant::ZERO));
    // The time is that of the last frame, also for batches larger than one system call. The readings of two clocks
    // may differ.
    for batch in [1, 5, 100] {
        let (left, came) = times(100, batch);
        let apart = left.since(came).max(came.since(left));
        assert!(apart < Duration::from_millis(10), "{batch}: {left:?} {came:?}");
    }
    host.transmit(clock.now(), &mut pool, &mut Vec::new()).unwrap();
    assert_eq!(host.departed(), None, "nothing left");
    // Departure reports wake no thread: with nothing to receive, the port sleeps like any other.
    assert!(wait_until(SOON, || {
        host.receive(clock.now(), &mut pool, &mut Vec::new(), 64).unwrap();
        assert_eq!(host.arm(), weir_port::ReceiveReadiness::OnDescriptor);
        !weir_port::event::wait_any(&[host.fd().unwrap()], Some(Duration::from_millis(50)))
    }));
}

#[test]
fn a_port_with_faults_says_when_frames_left() {
    let Some(bed) = Bed::new() else { return };
    let clock = SystemClock::start();
    let mut host = open(&bed.a, "af_packet:a0,duplicate=1").expect("the host's end opens");
    assert!(host.stamp_departures(clock));
    let before = clock.now();
    send(&mut *host, &mut FramePool::default(), &frame(&[0x88, 0xb5], 1, 60));
    assert!(host.departed().is_some_and(|left| before <= left && left <= clock.now()));
}

#[test]
fn a_driver_that_does_not_say_when_frames_leave_is_not_asked() {
    let Some(bed) = Bed::new() else { return };
    bed.switch.ip("link add br0 type bridge");
    bed.switch.ip("link set br0 up");
    let mut port = open(&bed.switch, "af_packet:br0").expect("the bridge's port opens");
    let clock = SystemClock::start();
    assert!(!port.stamp_departures(clock), "ethtool -T: no software-transmit");
    send(&mut *port, &mut FramePool::default(), &frame(&[0x88, 0xb5], 1, 60));
    assert_eq!(port.departed(), None);
}

#[test]
fn vlan_tags_are_kept() {
    let Some(bed) = Bed::new() else { return };
    let (mut pool, mut host, mut port) = bed.host_and_port("af_packet:s0");
    for tags in [&[0x81, 0, 0x20, 5][..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9], &[0x81, 0, 0, 0]] {
        let sent = frame(&[tags, &[0x88, 0xb5]].concat(), 7, 60);
        pass(&mut *host, &mut *port, &mut pool, &sent);
    }
}

#[test]
fn hosts_with_offloads_talk_through() {
    let Some(bed) = Bed::new() else { return };
    let forwarder = bed.forward("af_packet:s0", "af_packet:s1");
    bed.talk(20_000_000);
    let outcome = forwarder.stop();
    outcome.result.unwrap();
    let [first, second] = outcome.counters;
    // Super-frames pass: far fewer frames than segments.
    assert!(first.rx_bytes > 40_000_000 && first.rx_bytes / first.rx_packets > 3000, "{first:?}");
    assert_eq!((first.tx_errors, first.tx_too_long, second.tx_errors, second.tx_too_long), (0, 0, 0, 0));
    assert_eq!(first.rx_packets, second.tx_packets + second.tx_dropped());
}

#[test]
fn super_frames_pass_devices_that_cannot_cut_them() {
    let Some(bed) = Bed::new() else { return };
    for device in ["s0", "s1"] {
        run(bed.switch.command("ethtool").args(["-K", device, "tx", "off", "tso", "off", "gso", "off"]));
    }
    let forwarder = bed.forward("af_packet:s0", "af_packet:s1");
    bed.tcp("10.77.0.2", 5_000_000);
    bed.tcp("fd77::2", 5_000_000);
    let outcome = forwarder.stop();
    outcome.result.unwrap();
    let [first, second] = outcome.counters;
    // Frames are longer than any segment, on average; how much depends on how busy the machine is.
    assert!(first.rx_bytes / first.rx_packets > 1514, "{first:?}");
    assert_eq!((first.tx_dropped(), second.tx_dropped()), (0, 0), "{first:?} {second:?}");
}

/// Returns a TCP super-frame over IPv4 as a host's stack makes it, with its offload.
fn super_frame(payload: usize) -> Frame {
    let mut bytes = frame(&[8, 0], 0, 0);
    let length = u16::try_from(40 + payload).unwrap().to_be_bytes();
    bytes.extend([0x45, 0, length[0], length[1], 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2]);
    bytes.extend([4, 0, 8, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    bytes.resize(54 + payload, 0xda);
    let mut frame = Frame::from_bytes(&bytes);
    let kind = SegmentationKind::Tcpv4 { ecn: false };
    frame.offload.checksum = Some(PartialChecksum { start: 34, offset: 16 });
    frame.offload.segmentation = Some(Segmentation { kind, segment_bytes: 1448, header_bytes: 54 });
    frame
}

#[test]
fn offloads_travel_under_pushed_tags() {
    let Some(bed) = Bed::new() else { return };
    let (mut pool, mut host, mut port) = bed.host_and_port("af_packet:s0");
    for (tags, payload) in [(0, 20_000), (1, 20_000), (2, 60_000)] {
        let mut sent = super_frame(payload);
        for _ in 0..tags {
            sent.insert(12, 4).unwrap();
            sent.bytes_mut()[12..16].copy_from_slice(&[0x81, 0, 0, 5]);
        }
        port.transmit(Instant::ZERO, &mut pool, &mut vec![sent.clone()]).unwrap();
        let got = receive(&mut *host, &mut pool, |got| got.bytes().ends_with(&[0xda; 4])).expect("arrives");
        assert_eq!(got.len(), sent.len());
        assert!(got.bytes() == sent.bytes());
        assert_eq!(got.offload, sent.offload);
    }
    assert_eq!(port.counters().tx_dropped(), 0);
    // The kernel refuses an offload that does not fit its frame; the refusal is counted, and the frames after it are
    // sent.
    let mut wrong = super_frame(5000);
    wrong.truncate(40);
    port.transmit(Instant::ZERO, &mut pool, &mut vec![wrong, super_frame(3000)]).unwrap();
    let counters = port.counters();
    assert_eq!((counters.tx_packets, counters.tx_errors, counters.tx_dropped()), (4, 1, 1), "{counters:?}");
}

#[test]
fn segments_are_counted_where_the_port_cuts() {
    let Some(bed) = Bed::new() else { return };
    let (mut pool, mut host, mut port) = bed.host_and_port("af_packet:s0,offload=off");
    let before = port.counters();
    host.transmit(Instant::ZERO, &mut pool, &mut vec![super_frame(3000)]).unwrap();
    let got =
        receive(&mut *port, &mut pool, |got| got.len() == 54 + 3000 - 2 * 1448).expect("the last segment arrives");
    assert!(got.offload.is_none());
    let counters = port.counters();
    // Three segments, each with headers of its own.
    let counted = (counters.rx_packets - before.rx_packets, counters.rx_bytes - before.rx_bytes);
    assert_eq!(counted, (3, 3 * 54 + 3000));
}

#[test]
fn too_long_and_down_are_counted() {
    let Some(bed) = Bed::new() else { return };
    let mut pool = FramePool::default();
    let mut port = open(&bed.switch, "af_packet:s0").unwrap();
    send(&mut *port, &mut pool, &frame(&[0x88, 0xb5], 1, 3000));
    assert_eq!(port.counters().tx_too_long, 1);
    assert!(port.link().up);
    bed.switch.ip("link set s0 down");
    assert!(!port.link().up);
    send(&mut *port, &mut pool, &frame(&[0x88, 0xb5], 1, 46));
    assert_eq!(port.counters().tx_errors, 1);
    // The port works again when the link is up again.
    bed.switch.ip("link set s0 up");
    assert!(wait_until(SOON, || port.link().up));
    let mut host = open(&bed.a, "af_packet:a0").unwrap();
    send(&mut *host, &mut pool, &frame(&[0x88, 0xb5], 9, 46));
    let found = wait_until(SOON, || {
        let mut batch = Vec::new();
        port.receive(Instant::ZERO, &mut pool, &mut batch, 32).expect("still there");
        batch.iter().any(|frame| frame.bytes().ends_with(&[9; 46]))
    });
    assert!(found, "a frame arrives after the link came back");
}

#[test]
fn lost_frames_are_counted_once() {
    if !root() {
        return;
    }
    // Namespaces without IPv6, so that the kernel sends no frames of its own.
    let (near, far) = (Namespace::new(), Namespace::new());
    near.join("s0", &far, "a0");
    let mut pool = FramePool::default();
    let mut host = open(&far, "af_packet:a0").unwrap();
    let mut port = open(&near, "af_packet:s0").unwrap();
    for _ in 0..40_000 {
        send(&mut *host, &mut pool, &frame(&[0x88, 0xb5], 1, 1000));
    }
    let mut got = 0;
    wait_until(SOON, || {
        let mut batch = Vec::new();
        port.receive(Instant::ZERO, &mut pool, &mut batch, 64).unwrap();
        got += batch.len() as u64;
        batch.is_empty()
    });
    let counters = port.counters();
    assert!(counters.rx_missed > 0, "{counters:?}");
    assert_eq!(counters.rx_packets, got);
    assert_eq!(host.counters().tx_packets, got + counters.rx_missed);
    assert_eq!(port.counters(), counters);
}

#[test]
fn a_vanished_device_is_noticed() {
    crate::testbed::a_vanished_device_is_noticed("af_packet");
}

#[test]
fn nothing_is_left_behind() {
    let Some(bed) = Bed::new() else { return };
    let before = (features(&bed.switch, "s0"), crate::testbed::details(&bed.switch, "s0"));
    let port = open(&bed.switch, "af_packet:s0").unwrap();
    assert!(crate::testbed::details(&bed.switch, "s0").contains("promiscuity 1"));
    drop(port);
    assert_eq!(before, (features(&bed.switch, "s0"), crate::testbed::details(&bed.switch, "s0")));
}

#[test]
fn errors_say_what_to_do() {
    if !root() {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("link add tenant0 type veth peer name tenant1");
    let message = |spec: &str| open(&namespace, spec).err().expect("refused").to_string();
    assert_eq!(
        message("af_packet:tenent0"),
        "port af_packet:tenent0: no interface `tenent0` in this network namespace, perhaps tenant0; there are lo, tenant1, tenant0"
    );
    assert!(message("af_packet:").contains("expected af_packet:NAME"), "{}", message("af_packet:"));
    assert!(message("af_packet:tenant0,ofload=on").contains("perhaps offload"));
}
