use super::*;
use std::collections::BTreeSet;
use weir_packet::MacAddr;
use weir_packet::craft::FrameBuilder;

const WORKERS: usize = 4;

fn mac(number: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, number])
}

fn flow(number: u16) -> FrameBuilder {
    FrameBuilder::ethernet(mac(1), mac(2)).ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(1000 + number, 53)
}

fn classes(texts: &[&str]) -> Vec<TrafficClass> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Returns the workers that frames go to.
fn workers(steering: &mut Steering, frames: impl IntoIterator<Item = Frame>) -> Vec<usize> {
    frames.into_iter().map(|frame| steering.worker(PortNo(1), &frame)).collect()
}

fn different(workers: &[usize]) -> usize {
    workers.iter().collect::<BTreeSet<_>>().len()
}

#[test]
fn neighbouring_ports_have_different_workers() {
    let mut steering = Steering::new(ReceivePolicy::Port, Vec::new(), WORKERS);
    let frame = flow(1).frame();
    let by_port: Vec<usize> = (1..=8).map(|port| steering.worker(PortNo(port), &frame)).collect();
    assert_eq!(by_port, [0, 1, 2, 3, 0, 1, 2, 3]);
    assert!(steering.worker(PortNo::LOCAL, &frame) < WORKERS);
}

#[test]
fn the_five_tuple_spreads_flows_and_keeps_each_together() {
    let mut steering = Steering::new(ReceivePolicy::FiveTuple, Vec::new(), WORKERS);
    let flows: Vec<usize> = workers(&mut steering, (0..400).map(|number| flow(number).frame()));
    for worker in 0..WORKERS {
        let share = flows.iter().filter(|chosen| **chosen == worker).count();
        assert!((50..150).contains(&share), "worker {worker} has {share} of 400 flows");
    }
    // Fields that differ within a flow do not count: length, DSCP, TTL, the previous hop's addresses.
    let base = steering.worker(PortNo(1), &flow(7).frame());
    let mut other = flow(7).payload(&[1; 700]).frame();
    other.bytes_mut()[15] = 0xb8;
    other.bytes_mut()[22] = 3;
    other.bytes_mut()[5] = 99;
    assert_eq!(steering.worker(PortNo(2), &other), base);
}

#[test]
fn fragments_of_a_flow_stay_together() {
    let mut steering = Steering::new(ReceivePolicy::FiveTuple, Vec::new(), WORKERS);
    for number in 0..50 {
        let (mut first, mut later) = (flow(number).frame(), flow(number).frame());
        first.bytes_mut()[20] = 0x20;
        later.bytes_mut()[21] = 100;
        later.bytes_mut()[34..38].copy_from_slice(&[9; 4]);
        let chosen = workers(&mut steering, [first, later]);
        assert_eq!(chosen[0], chosen[1], "flow {number}");
    }
}

#[test]
fn without_ip_the_link_header_spreads() {
    let mut steering = Steering::new(ReceivePolicy::FiveTuple, Vec::new(), WORKERS);
    let labels = (0..100u32).map(|label| {
        let mut bytes = [0; 60];
        bytes[12..14].copy_from_slice(&[0x88, 0x47]);
        bytes[14..18].copy_from_slice(&(label << 12 | 0x1ff).to_be_bytes());
        Frame::from_bytes(&bytes)
    });
    assert_eq!(different(&workers(&mut steering, labels)), WORKERS);
    let addresses = (0..100).map(|number| FrameBuilder::ethernet(mac(number), mac(1)).frame());
    assert_eq!(different(&workers(&mut steering, addresses)), WORKERS);
}

#[test]
fn addresses_and_vlan_make_a_flow_of_policy_mac() {
    let mut steering = Steering::new(ReceivePolicy::Mac, Vec::new(), WORKERS);
    // Bytes behind the header do not count: ports, DSCP, length.
    let mut marked = flow(3).payload(&[0; 99]).frame();
    marked.bytes_mut()[15] = 0xb8;
    assert_eq!(different(&workers(&mut steering, [flow(1).frame(), flow(2).frame(), marked])), 1);
    let pairs = (0..100).map(|number| FrameBuilder::ethernet(mac(number), mac(1)).frame());
    assert_eq!(different(&workers(&mut steering, pairs)), WORKERS);
    let vlans = (1..100).map(|vlan| {
        let mut frame = flow(1).frame();
        frame.insert(12, 4).unwrap();
        frame.bytes_mut()[12..16].copy_from_slice(&[0x81, 0, 0, vlan]);
        frame
    });
    assert_eq!(different(&workers(&mut steering, vlans)), WORKERS);
}

#[test]
fn classes_come_first_and_have_their_worker_to_themselves() {
    let rules = classes(&["icmp=>3", "udp,tp_dst=53,in_port=1=>2", "udp=>3"]);
    let mut steering = Steering::new(ReceivePolicy::FiveTuple, rules, WORKERS);
    let ping =
        FrameBuilder::ethernet(mac(1), mac(2)).ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).icmp(8, 0, [0; 4]);
    assert_eq!(steering.worker(PortNo(1), &ping.frame()), 3);
    assert_eq!(steering.worker(PortNo(1), &flow(1).frame()), 2, "the first that fits");
    assert_eq!(steering.worker(PortNo(2), &flow(1).frame()), 3);
    let sctp = |port| {
        FrameBuilder::ethernet(mac(1), mac(2)).ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).sctp(port, 80).frame()
    };
    let others = workers(&mut steering, (0..200).map(sctp));
    assert_eq!(others.iter().collect::<BTreeSet<_>>(), BTreeSet::from([&0, &1]), "workers without a class");
}

#[test]
fn classes_may_name_all_workers() {
    let mut steering = Steering::new(ReceivePolicy::FiveTuple, classes(&["icmp=>0", "arp=>1"]), 2);
    assert_eq!(different(&workers(&mut steering, (0..100).map(|number| flow(number).frame()))), 2);
}

#[test]
fn damaged_frames_have_a_worker_too() {
    for policy in [ReceivePolicy::Port, ReceivePolicy::Mac, ReceivePolicy::FiveTuple] {
        let mut steering = Steering::new(policy, classes(&["icmp=>0"]), WORKERS);
        for length in 0..70 {
            let frame = flow(1).frame();
            assert!(
                steering.worker(PortNo(9), &Frame::from_bytes(&frame.bytes()[..length.min(frame.len())])) < WORKERS
            );
        }
    }
}

#[test]
fn wrong_classes_are_refused_by_name() {
    for (text, problem) in [
        ("udp", "MATCH=>WORKER"),
        ("udp=>x", "counted from 0"),
        ("upd=>1", "upd"),
        ("tp_dst=53=>1", "tp_dst"),
        ("metadata=1=>1", "metadata is not known"),
        ("reg3=1=>1", "reg3 is not known"),
    ] {
        let error = text.parse::<TrafficClass>().unwrap_err();
        assert!(error.contains(problem) && error.contains(text), "{error}");
    }
    assert_eq!("udp,tp_dst=53=>1".parse::<TrafficClass>().unwrap().to_string(), "udp,tp_dst=53=>1");
}
