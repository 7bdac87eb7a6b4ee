use super::*;

fn neighbours(number: u8) -> NeighbourCache {
    let own = [format!("10.0.0.{number}/24").parse().unwrap(), format!("fd00::{number}/64").parse().unwrap()];
    NeighbourCache::new(MacAddr([2, 0, 0, 0, 0, number]), &own)
}

/// Returns a frame with an IP header to this address behind room for an Ethernet header.
fn packet(to: &str) -> Frame {
    let mut bytes = [0; 60];
    match to.parse().unwrap() {
        IpAddr::V4(to) => {
            bytes[14] = 0x45;
            bytes[30..34].copy_from_slice(&to.octets());
        }
        IpAddr::V6(to) => {
            bytes[14] = 0x60;
            bytes[38..54].copy_from_slice(&to.octets());
        }
    }
    Frame::from_bytes(&bytes)
}

const NOW: Instant = Instant::ZERO;

#[test]
fn an_address_is_asked_for_and_what_waited_is_sent() {
    for to in ["10.0.0.2", "fd00::2"] {
        let (mut a, mut b, mut wire) = (neighbours(1), neighbours(2), Vec::new());
        a.send(NOW, packet(to), &mut wire);
        a.send(NOW, packet(to), &mut wire);
        assert_eq!(wire.len(), 1, "one request");
        assert!(wire[0].bytes()[0] & 1 == 1, "to a group");
        let mut answer = Vec::new();
        assert_eq!(b.receive(NOW, wire[0].bytes(), &mut answer), IncomingFrameKind::Other);
        assert_eq!(answer.len(), 1);
        let mut sent = Vec::new();
        assert_eq!(a.receive(NOW, answer[0].bytes(), &mut sent), IncomingFrameKind::Other);
        assert_eq!(sent.len(), 2, "{to}");
        assert_eq!(sent[0].bytes()[..12], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
        assert_eq!(b.receive(NOW, sent[0].bytes(), &mut Vec::new()), IncomingFrameKind::Packet);
        // A request also makes its sender known to the receiver.
        let mut back = Vec::new();
        b.send(NOW, packet(&to.replace('2', "1")), &mut back);
        assert_eq!(back[0].bytes()[..6], [2, 0, 0, 0, 0, 1]);
        assert_eq!(a.next_wake(), None);
    }
}

#[test]
fn nobody_answers_for_others() {
    let (mut a, mut b, mut wire, mut answer) = (neighbours(1), neighbours(2), Vec::new(), Vec::new());
    for to in ["10.0.0.3", "fd00::3"] {
        a.send(NOW, packet(to), &mut wire);
    }
    for frame in &wire {
        assert_eq!(b.receive(NOW, frame.bytes(), &mut answer), IncomingFrameKind::Other);
    }
    assert!(answer.is_empty() && b.known.is_empty());
}

#[test]
fn without_answer_three_requests_then_a_counted_drop() {
    let (mut a, mut wire) = (neighbours(1), Vec::new());
    a.send(NOW, packet("10.0.0.9"), &mut wire);
    let mut now = NOW;
    while let Some(wake) = a.next_wake() {
        now = wake;
        a.retry(now, &mut wire);
    }
    assert_eq!((wire.len(), a.unresolved(), now), (3, 1, NOW + 3 * RETRY));
    for _ in 0..MAX_WAITING + 5 {
        a.send(now, packet("10.0.0.9"), &mut wire);
    }
    assert_eq!((wire.len(), a.unresolved()), (4, 1 + MAX_WAITING as u64 + 5));
    assert_eq!(a.asked.values().map(|asked| asked.waiting.len()).max(), Some(MAX_WAITING));
}

#[test]
fn neighbours_are_asked_for_again_in_time_and_bounded_in_number() {
    let (mut a, mut wire) = (neighbours(1), Vec::new());
    a.learn(NOW, "10.0.0.2".parse().unwrap(), MacAddr([2; 6]), &mut wire);
    a.send(NOW, packet("10.0.0.2"), &mut wire);
    assert_eq!(wire.pop().unwrap().bytes()[..6], [2; 6]);
    a.send(NOW + LIFETIME, packet("10.0.0.2"), &mut wire);
    assert_eq!(wire.pop().unwrap().bytes()[..6], [0xff; 6], "a request");
    for number in 0..2 * MAX_NEIGHBOURS {
        let address = Ipv6Addr::from_bits(number as u128 + 1);
        a.learn(NOW + LIFETIME, address.into(), MacAddr([2; 6]), &mut wire);
    }
    assert_eq!(a.known.len(), MAX_NEIGHBOURS);
}

#[test]
fn a_frame_is_counted_when_too_many_addresses_are_being_resolved() {
    let (mut a, mut wire) = (neighbours(1), Vec::new());
    for number in 0..MAX_NEIGHBOURS + 3 {
        a.send(NOW, packet(&format!("fd00::1:{number:x}")), &mut wire);
    }
    assert_eq!((wire.len(), a.asked.len()), (MAX_NEIGHBOURS, MAX_NEIGHBOURS));
    assert_eq!(a.unresolved(), MAX_NEIGHBOURS as u64 + 3);
}

proptest::proptest! {
    #[test]
    fn any_frame_is_survived(mut frame in proptest::collection::vec(proptest::num::u8::ANY, 0..120), kind in 0..4usize) {
        if frame.len() > 60 {
            let ethertypes = [ARP, IPV4, IPV6, [0x81, 0]];
            frame[..6].fill(0xff);
            frame[12..14].copy_from_slice(&ethertypes[kind]);
            frame[20] = 58;
            frame[54] = 135 | frame[54] & 1;
        }
        neighbours(1).receive(NOW, &frame, &mut Vec::new());
    }
}
