//! Tests the attacks of the literature on hosts. Those on links are tests of the discovery.
use super::bed::{Bed, SECOND, advertisement, announcement, data, ip, ip6, mac, port};
use crate::hosts::probe::probe_address;
use crate::hosts::{HostChange, HostConfig, HostVerdict, alarm_kind};
use std::time::Duration;
use weir_packet::MacAddr;
use weir_packet::craft::FrameBuilder;

const PATIENCE: Duration = Duration::from_millis(200);

/// Returns a network with hosts 1 and 2 at the ports of their numbers, and an attacker, host 9, at port 9.
fn bed() -> Bed {
    let mut bed = Bed::new(HostConfig::default());
    for number in [1, 2, 9] {
        assert_eq!(bed.join(number, number.into()), HostVerdict::Accepted);
    }
    bed.pass(SECOND * 20);
    bed.said();
    bed
}

fn is_block(change: &HostChange, number: u8, at: u32, time: Duration) -> bool {
    *change == HostChange::Block { at: port(at), mac: mac(number), time }
}

/// Hong et al. 2015, host location hijacking: the attacker sends with the victim's Ethernet address.
#[test]
fn host_hijack_is_refused_while_the_host_answers() {
    let mut bed = bed();
    assert_eq!(bed.send(9, &data(mac(1))), HostVerdict::Waiting);
    bed.pass(PATIENCE);
    let said = bed.said();
    assert!(said.iter().any(|change| is_block(change, 1, 9, SECOND * 10)), "{said:?}");
    let is_alarm = |change: &&HostChange| matches!(change, HostChange::Alarm { kind: alarm_kind::HOST_HIJACK, .. });
    assert_eq!((said.iter().filter(is_alarm).count(), bed.place_of(1)), (1, Some(port(1))));
    assert_eq!(bed.send(9, &data(mac(1))), HostVerdict::Refused);
    // Neither the host nor the attacker's own address suffers.
    assert_eq!(bed.send(1, &data(mac(1))), HostVerdict::Accepted);
    assert_eq!(bed.send(9, &data(mac(9))), HostVerdict::Accepted);
    // Each further attempt is blocked for longer.
    bed.pass(SECOND * 10);
    assert_eq!(bed.send(9, &data(mac(1))), HostVerdict::Waiting);
    bed.pass(PATIENCE);
    assert!(bed.said().iter().any(|change| is_block(change, 1, 9, SECOND * 20)));
}

/// The attacker answers the question itself, with what it can know.
#[test]
fn host_hijack_with_forged_answers_is_refused() {
    let mut bed = bed();
    let asked = |bed: &mut Bed| bed.questions.last().cloned().expect("a question");
    bed.send(9, &data(mac(1)));
    let (to, question) = asked(&mut bed);
    assert_eq!(to, port(1), "it leaves by the old port only");
    // Even with the address of the question, which it cannot see, an answer from the wrong port is none.
    let answer = bed.stations[&1].answer(to, &question).expect("an answer");
    bed.stations.remove(&1);
    assert_eq!(bed.send(9, &answer), HostVerdict::Taken);
    // An answer that was made before the question is none, whichever port it comes from.
    bed.send(2, &data(mac(1)));
    let guess = FrameBuilder::ethernet(probe_address(7), mac(1)).ether_type(0x88b5).build();
    assert_eq!(bed.send(1, &guess), HostVerdict::Taken);
    assert_eq!((bed.count("hosts_forged_answers"), bed.count("hosts_late_answers")), (1, 1));
    assert_eq!(bed.count("hosts_answers"), 0);
    // The address of the next question is another one.
    bed.pass(PATIENCE);
    bed.place(2, 2);
    bed.send(9, &data(mac(2)));
    let (_, next) = asked(&mut bed);
    assert_ne!(next[6..12], question[6..12]);
}

/// A host that cannot be asked for its Ethernet address alone is not given away by a lost question.
#[test]
fn host_hijack_is_refused_although_two_of_three_questions_are_lost() {
    let mut bed = bed();
    let victim = bed.stations.remove(&1).expect("it is there");
    assert_eq!(bed.send(9, &data(mac(1))), HostVerdict::Waiting);
    bed.pass(Duration::from_millis(100));
    bed.stations.insert(1, victim);
    bed.pass(PATIENCE);
    assert_eq!((bed.place_of(1), bed.alarms()), (Some(port(1)), vec![alarm_kind::HOST_HIJACK]));
}

/// ARP spoofing and its like in IPv6: the attacker says that it has the victim's IP address.
#[test]
fn arp_spoofing_is_refused_while_the_host_answers() {
    for v6 in [false, true] {
        let mut bed = bed();
        bed.send(1, &advertisement(mac(1), ip6(1)));
        let forged = if v6 { advertisement(mac(9), ip6(1)) } else { announcement(mac(9), ip(1)) };
        assert_eq!(bed.send(9, &forged), HostVerdict::Waiting, "it does not reach other hosts");
        bed.pass(PATIENCE);
        let said = bed.said();
        assert!(said.iter().any(|change| is_block(change, 9, 9, SECOND * 10)), "{said:?}");
        let address = if v6 { ip6(1).into() } else { ip(1).into() };
        assert!(bed.tracker.host(mac(1)).is_some_and(|host| host.ips.contains(&address)));
        assert_eq!(bed.send(9, &data(mac(9))), HostVerdict::Refused);
        let is_alarm = |change: &HostChange| matches!(change, HostChange::Alarm { kind: alarm_kind::IP_HIJACK, .. });
        assert!(said.iter().any(is_alarm), "{said:?}");
    }
}

/// An answer for another address than the one that is claimed does not keep that one.
#[test]
fn an_address_that_its_host_no_longer_uses_is_not_kept_by_other_answers() {
    let mut bed = bed();
    let mut station = bed.stations.remove(&1).expect("it is there");
    assert_eq!(bed.send(2, &announcement(mac(2), ip(1))), HostVerdict::Waiting);
    let (to, question) = bed.questions.last().cloned().expect("a question");
    let (used, asker) = (ip(50), MacAddr(*question[6..].first_chunk().expect("a source")));
    station.ips = vec![used.into()];
    assert_eq!(station.answer(to, &question), None);
    let other = FrameBuilder::ethernet(asker, mac(1)).arp(2, (mac(1), used), (asker, ip(0))).build();
    assert_eq!(bed.send(1, &other), HostVerdict::Taken);
    bed.pass(PATIENCE);
    assert!(bed.tracker.host(mac(2)).is_some_and(|host| host.ips.contains(&ip(1).into())));
    assert!(bed.alarms().is_empty());
}

/// ARP spoofing in the name of another: source and sender differ. Other hosts would believe it.
#[test]
fn arp_that_contradicts_itself_is_dropped() {
    let mut bed = bed();
    let (all, nobody) = (MacAddr::BROADCAST, MacAddr::default());
    let forged = FrameBuilder::ethernet(all, mac(9)).arp(2, (mac(1), ip(2)), (nobody, ip(2))).build();
    assert_eq!(bed.send(9, &forged), HostVerdict::Refused);
    assert_eq!(bed.count("hosts_drop_contradiction"), 1);
    assert_eq!(bed.tracker.host(mac(1)).map(|host| host.at), Some(port(1)));
}

/// Skowyra et al. 2018, port amnesia: the attacker's port goes down and up, then passes link probes on.
#[test]
fn port_amnesia_makes_no_link() {
    let mut bed = bed();
    bed.set_down(9);
    bed.set_up(9);
    assert!(!bed.find_link(9, 5));
    assert_eq!(bed.alarms(), [alarm_kind::PORT_AMNESIA]);
    // Waiting helps only until the time is over that recabling takes.
    bed.pass(SECOND * 29);
    assert!(!bed.find_link(9, 5));
    assert_eq!(bed.alarms().len(), 0, "said once a minute");
    // Without a port-down the host keeps its port an edge port.
    bed.pass(SECOND * 40);
    bed.send(9, &data(mac(9)));
    assert!(!bed.find_link(9, 5));
    assert_eq!(bed.alarms(), [alarm_kind::LINK_AT_HOST_PORT]);
}

/// A host that is seen right after its port was down and up keeps its port an edge port, however short the pause was.
#[test]
fn a_short_flap_does_not_hide_a_host() {
    let mut bed = bed();
    bed.send(9, &data(mac(9)));
    bed.set_down(9);
    bed.pass(Duration::from_millis(300));
    bed.set_up(9);
    bed.pass(Duration::from_millis(300));
    bed.send(9, &data(mac(9)));
    bed.pass(SECOND * 40);
    assert!(!bed.find_link(9, 5));
    assert_eq!(bed.alarms(), [alarm_kind::LINK_AT_HOST_PORT]);
}

/// The other direction of port amnesia: the attacker's port is taken for a link, then sends as hosts.
#[test]
fn a_port_that_led_to_a_switch_has_no_hosts_at_once() {
    let mut bed = bed();
    assert!(bed.find_link(5, 6));
    assert_eq!(bed.send(5, &data(mac(1))), HostVerdict::Waiting, "it is a trunk");
    bed.tracker.handle_edge(bed.now, port(5));
    assert_eq!(bed.send(5, &data(mac(7))), HostVerdict::Waiting, "its link may be silent only");
    bed.pass(SECOND * 30);
    assert_eq!(bed.send(5, &data(mac(7))), HostVerdict::Accepted);
    assert!(bed.alarms().is_empty());
}

/// Skowyra et al. 2018, port probing: the attacker takes the victim's identity while its port is down. That looks like
/// a move until the victim is back; then both answer, which is an alarm. The one that answers stays.
#[test]
fn port_probing_is_noticed_when_the_host_is_back() {
    let mut bed = bed();
    let victim = bed.stations.remove(&1).expect("it is there");
    bed.set_down(1);
    bed.stations.insert(8, super::bed::Station { at: port(9), ..victim.clone() });
    assert_eq!(bed.send(9, &data(mac(1))), HostVerdict::Accepted);
    assert_eq!((bed.place_of(1), bed.alarms()), (Some(port(9)), vec![]));
    bed.set_up(1);
    bed.stations.insert(1, victim);
    assert_eq!(bed.send(1, &announcement(mac(1), ip(1))), HostVerdict::Waiting);
    bed.pass(SECOND * 11);
    assert_eq!((bed.place_of(1), bed.alarms()), (Some(port(9)), vec![alarm_kind::HOST_CONFLICT]));
    // The operator switches the attacker's port off.
    bed.stations.remove(&8);
    bed.set_down(9);
    assert_eq!(bed.said(), [HostChange::Unblock { at: port(1), mac: mac(1) }]);
    assert_eq!(bed.send(1, &data(mac(1))), HostVerdict::Accepted);
    assert_eq!(bed.place_of(1), Some(port(1)));
}

/// A host that makes up addresses fills its own port only.
#[test]
fn a_flood_of_addresses_is_one_alarm() {
    let mut bed = Bed::new(HostConfig { max_hosts_per_port: 8, max_hosts: 10, ..HostConfig::default() });
    let verdicts: Vec<_> = (0..100).map(|number| bed.send(9, &data(mac(100 + number)))).collect();
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == HostVerdict::Accepted).count(), 8);
    assert_eq!((bed.alarms(), bed.count("hosts_drop_port_full")), (vec![alarm_kind::HOST_FLOOD], 92));
    assert_eq!(
        [1, 2, 3].map(|number| bed.join(number, 1)),
        [HostVerdict::Accepted, HostVerdict::Accepted, HostVerdict::Refused]
    );
    assert_eq!(bed.count("hosts_drop_table_full"), 1);
    // A host that moves to the full port stays where it is.
    bed.set_down(1);
    assert_eq!((bed.send(9, &data(mac(1))), bed.place_of(1)), (HostVerdict::Refused, Some(port(1))));
}

/// Claims for many hosts at once are bounded by port, so that another port's claims are checked.
#[test]
fn a_flood_of_claims_is_bounded_by_port() {
    let mut bed = Bed::new(HostConfig { max_checks_per_port: 4, ..HostConfig::default() });
    (1..=20).for_each(|number| assert_eq!(bed.join(number, number.into()), HostVerdict::Accepted));
    bed.pass(SECOND * 20);
    let verdicts: Vec<_> = (1..=19).map(|number| bed.send(30, &data(mac(number)))).collect();
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == HostVerdict::Waiting).count(), 4);
    bed.stations.remove(&20);
    assert_eq!(bed.send(31, &data(mac(20))), HostVerdict::Waiting);
    bed.pass(PATIENCE);
    assert_eq!(bed.place_of(20), Some(port(31)));
    assert!((1..=19).all(|number| bed.place_of(number) == Some(port(number.into()))));
}

/// A new port may lead to a switch: what hosts behind it seem to claim is refused, and no alarm until that is known.
#[test]
fn a_link_that_is_not_found_yet_is_no_attack() {
    let mut bed = bed();
    bed.set_down(5);
    bed.pass(SECOND);
    bed.set_up(5);
    // A flooded packet of host 1 comes back over the new link, and a packet of an unknown host.
    assert_eq!(bed.send(5, &data(mac(1))), HostVerdict::Waiting);
    assert_eq!(bed.send(5, &data(mac(77))), HostVerdict::Accepted);
    bed.pass(SECOND);
    assert_eq!(bed.send(5, &data(mac(1))), HostVerdict::Refused);
    assert!(bed.find_link(5, 6) && bed.find_link(6, 5));
    bed.pass(SECOND * 30);
    let said = bed.said();
    let is_bad = |change: &HostChange| matches!(change, HostChange::Alarm { .. } | HostChange::Block { .. });
    assert!(!said.iter().any(is_bad), "{said:?}");
    assert_eq!((bed.place_of(1), bed.place_of(77)), (Some(port(1)), None));
    // The same without a link is an alarm once the port has been up for a while.
    bed.set_down(7);
    bed.set_up(7);
    bed.send(7, &data(mac(1)));
    bed.pass(SECOND * 9);
    assert!(bed.alarms().is_empty());
    bed.pass(SECOND);
    assert_eq!(bed.alarms(), [alarm_kind::HOST_HIJACK]);
}

/// A switch that was in use before it connected has hosts whose packets came by its links.
#[test]
fn links_of_a_switch_that_has_just_connected_are_believed() {
    let mut bed = bed();
    bed.send(5, &data(mac(77)));
    bed.pass(SECOND * 60);
    bed.send(5, &data(mac(77)));
    assert!(!bed.find_link(5, 6), "a host is there");
    bed.tracker.handle_switch_up(bed.now, 2);
    let mut out = Vec::new();
    let peer = crate::map::SwitchPort::new(2, weir_openflow::model::PortNo(1));
    assert!(bed.tracker.handle_trunk(bed.now, port(5), peer, &mut out));
    assert!(matches!(out.as_slice(), [HostChange::Removed(host)] if host.mac == mac(77)), "{out:?}");
}
