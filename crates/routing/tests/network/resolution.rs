//! Tests whom questions for addresses reach, in whole networks and in those that are in parts.
use crate::bed::Bed;
use crate::forwarding::{MODES, config};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use weir_routing::NetworkConfig;
use weir_routing::forwarding::ForwardingConfig;

const MS: Duration = Duration::from_millis(1);
const UNKNOWN: Ipv4Addr = Ipv4Addr::new(10, 0, 9, 9);

/// Returns two pairs of switches, each switch with a host, and the link that joins the pairs.
fn pairs(config: NetworkConfig) -> (Bed, [crate::bed::End; 2]) {
    let mut bed = Bed::new(4, 1, config, Vec::new());
    bed.link(1, 2);
    bed.link(3, 4);
    let between = bed.link(2, 3);
    (1..=4).for_each(|dpid| _ = bed.host(dpid));
    bed.connect_all();
    bed.run(200 * MS);
    bed.announce_all();
    bed.run(200 * MS);
    (bed, between)
}

/// Lets host 0 ask for an address. Returns how often each host heard the question.
fn heard(bed: &mut Bed, address: Ipv4Addr) -> Vec<usize> {
    bed.hosts.iter_mut().for_each(|host| host.asked_for.clear());
    bed.ask_arp(0, IpAddr::V4(address));
    bed.run(20 * MS);
    bed.hosts.iter().map(|host| host.asked_for.iter().filter(|asked| **asked == address).count()).collect()
}

#[test]
fn a_question_reaches_each_host_of_the_part_once() {
    for mode in MODES {
        let (mut bed, between) = pairs(config(mode));
        assert_eq!(heard(&mut bed, UNKNOWN), [0, 1, 1, 1], "{mode:?}");
        bed.set_link(between, false);
        bed.run(20 * MS);
        assert_eq!(heard(&mut bed, UNKNOWN), [0, 1, 0, 0], "{mode:?}");
        bed.set_link(between, true);
        bed.run(200 * MS);
        assert_eq!(heard(&mut bed, UNKNOWN), [0, 1, 1, 1], "{mode:?}");
    }
}

#[test]
fn a_host_of_another_part_is_neither_asked_nor_answered_for() {
    for answer_arp in [true, false] {
        let mut config = config(weir_routing::forwarding::ForwardingMode::Proactive);
        config.forwarding = ForwardingConfig { answer_arp, ..config.forwarding };
        let (mut bed, between) = pairs(config);
        let far = bed.hosts[3].ip;
        let once = usize::from(!answer_arp);
        assert_eq!(heard(&mut bed, far), [0, 0, 0, once], "only the host itself, and only if it has to answer");
        assert_eq!(bed.hosts[0].resolved.len(), 1);
        bed.set_link(between, false);
        bed.run(20 * MS);
        // The part of the asker is asked, because the host may have come there.
        assert_eq!(heard(&mut bed, far), [0, 1, 0, 0]);
        assert_eq!(bed.hosts[0].resolved.len(), 1, "no answer");
        let packet = bed.send(0, 3);
        bed.run(20 * MS);
        assert_eq!(bed.copies(3, packet), 0);
    }
}

#[test]
fn an_announcement_reaches_the_hosts_that_may_remember_another_address() {
    let (mut bed, between) = pairs(config(weir_routing::forwarding::ForwardingMode::Proactive));
    bed.set_link(between, false);
    bed.run(20 * MS);
    let ip = bed.hosts[0].ip;
    bed.hosts.iter_mut().for_each(|host| host.asked_for.clear());
    bed.announce(0);
    bed.run(20 * MS);
    let heard: Vec<_> = bed.hosts.iter().map(|host| host.asked_for.clone()).collect();
    assert_eq!(heard, [vec![], vec![ip], vec![], vec![]]);
}

#[test]
fn hosts_behind_one_port_answer_each_other() {
    let (mut bed, _) = pairs(config(weir_routing::forwarding::ForwardingMode::Proactive));
    let first = bed.hosts[0].clone();
    // A second host behind the port of the first one, as behind a switch without OpenFlow.
    let second = crate::bed::BedHost { mac: weir_packet::MacAddr([2, 0, 0, 0, 0, 99]), ip: UNKNOWN, ..first };
    bed.hosts.push(second);
    bed.announce(4);
    bed.run(20 * MS);
    let answers = bed.count("forwarding_arp_answers");
    assert_eq!(heard(&mut bed, UNKNOWN), [0, 0, 0, 0, 0], "nothing goes back to the port, or to others");
    assert_eq!(bed.count("forwarding_arp_answers"), answers);
}
