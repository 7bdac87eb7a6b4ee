//! Tests what cannot be told apart, as the guide lists it: the tracker does what is said there.
use super::bed::{Bed, SECOND, Station, announcement, data, ip, mac, port};
use crate::hosts::{HostConfig, HostVerdict, alarm_kind};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_millis(200);

/// Returns a network with host 1 at port 1, and an attacker, host 9, at port 9.
fn bed() -> Bed {
    let mut bed = Bed::new(HostConfig::default());
    [1, 9].into_iter().for_each(|number| assert_eq!(bed.join(number, number.into()), HostVerdict::Accepted));
    bed.pass(SECOND * 20);
    bed.said();
    bed
}

#[test]
fn a_host_that_does_not_answer_can_be_impersonated() {
    let mut bed = bed();
    bed.stations.remove(&1);
    bed.send(9, &data(mac(1)));
    bed.pass(PATIENCE);
    assert_eq!((bed.place_of(1), bed.alarms()), (Some(port(9)), vec![]));
}

#[test]
fn an_answer_must_not_take_longer_than_the_patience() {
    for (round_trip_ms, expected) in [(199, 1), (201, 9)] {
        let mut bed = bed();
        bed.round_trip = Duration::from_millis(round_trip_ms);
        bed.send(9, &data(mac(1)));
        bed.pass(SECOND);
        assert_eq!(bed.place_of(1), Some(port(expected)), "{round_trip_ms} ms");
    }
}

#[test]
fn an_address_belongs_to_the_first_that_claims_it() {
    let mut bed = bed();
    assert_eq!(bed.send(9, &announcement(mac(9), ip(2))), HostVerdict::Accepted);
    bed.stations.get_mut(&9).expect("it is there").ips.push(ip(2).into());
    assert_eq!(bed.join(2, 2), HostVerdict::Waiting);
    bed.pass(PATIENCE);
    assert_eq!(bed.alarms(), [alarm_kind::IP_HIJACK]);
    assert!(bed.tracker.host(mac(9)).is_some_and(|host| host.ips.contains(&ip(2).into())));
}

#[test]
fn hosts_at_one_port_can_answer_for_each_other() {
    let mut bed = bed();
    bed.stations.remove(&1);
    bed.stations.insert(8, Station { mac: mac(1), at: port(1), ips: vec![ip(1).into()] });
    bed.send(2, &data(mac(1)));
    bed.pass(PATIENCE);
    assert_eq!((bed.place_of(1), bed.alarms()), (Some(port(1)), vec![alarm_kind::HOST_HIJACK]));
}

/// The attacker claims a host in the moment in which it moves, and wins it for as long as it answers, or else for one
/// more patience.
#[test]
fn a_claim_in_the_moment_of_a_move_is_believed() {
    let mut bed = bed();
    bed.send(9, &data(mac(1)));
    bed.place(1, 3);
    bed.set_down(1);
    assert_eq!(bed.place_of(1), Some(port(9)));
    assert_eq!(bed.send(3, &announcement(mac(1), ip(1))), HostVerdict::Waiting);
    bed.pass(PATIENCE);
    assert_eq!(bed.send(3, &data(mac(1))), HostVerdict::Accepted);
    assert_eq!((bed.place_of(1), bed.alarms()), (Some(port(3)), vec![]));
}

#[test]
fn a_relay_between_ports_without_hosts_makes_a_link() {
    let mut bed = bed();
    assert!(bed.find_link(4, 5) && bed.find_link(5, 4));
    assert!(bed.alarms().is_empty());
    assert!(!bed.find_link(1, 4), "not at a port with a host");
}
