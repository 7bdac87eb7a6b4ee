//! Tests what the tracker learns, and moves that are genuine.
use super::bed::{Bed, SECOND, advertisement, announcement, data, ip, ip6, mac, port};
use crate::hosts::dhcp::tests::message;
use crate::hosts::{HostChange, HostConfig, HostVerdict, alarm_kind};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use weir_packet::MacAddr;
use weir_packet::craft::FrameBuilder;

const PATIENCE: Duration = Duration::from_millis(200);

fn bed() -> Bed {
    Bed::new(HostConfig::default())
}

fn ips(bed: &Bed, number: u8) -> Vec<IpAddr> {
    bed.tracker.host(mac(number)).map(|host| host.ips.iter().copied().collect()).unwrap_or_default()
}

#[test]
fn a_host_is_announced_once_with_its_address() {
    let mut bed = bed();
    assert_eq!(bed.join(1, 1), HostVerdict::Accepted);
    let said = bed.said();
    let [HostChange::Added(host)] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!((host.mac, host.at, &host.ips), (mac(1), port(1), &BTreeSet::from([ip(1).into()])));
    assert_eq!(bed.send(1, &advertisement(mac(1), ip6(1))), HostVerdict::Accepted);
    let said = bed.said();
    let [HostChange::Changed(host)] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(host.ips.len(), 2);
    // Data teaches a place, and no address.
    let from_afar = FrameBuilder::ethernet(mac(1), mac(2)).ipv4([192, 0, 2, 1].into(), ip(1)).build();
    assert_eq!(bed.send(2, &from_afar), HostVerdict::Accepted);
    assert_eq!((bed.place_of(2), ips(&bed, 2)), (Some(port(2)), vec![]));
}

#[test]
fn what_no_host_can_be_is_refused() {
    let mut bed = Bed::new(HostConfig {
        own_macs: BTreeSet::from([mac(99)]),
        own_ips: BTreeSet::from([ip(254).into()]),
        ..HostConfig::default()
    });
    for source in [MacAddr::default(), MacAddr::BROADCAST, MacAddr([3, 0, 0, 0, 0, 1]), mac(99)] {
        assert_eq!(bed.send(1, &data(source)), HostVerdict::Refused, "{source}");
    }
    assert_eq!(bed.send(1, &[0; 13]), HostVerdict::Refused);
    assert_eq!((bed.count("hosts_drop_reserved"), bed.count("hosts_drop_malformed"), bed.tracker.n_hosts()), (4, 1, 0));
    assert_eq!(bed.send(1, &announcement(mac(1), ip(254))), HostVerdict::Refused);
    assert_eq!(bed.alarms(), [alarm_kind::IP_HIJACK]);
    assert_eq!(bed.send(1, &data(mac(1))), HostVerdict::Refused, "it is blocked");
    bed.pass(SECOND * 10);
    assert_eq!(bed.send(1, &data(mac(1))), HostVerdict::Accepted);
}

#[test]
fn a_host_whose_port_is_down_is_believed_elsewhere_at_once() {
    let mut bed = bed();
    bed.join(1, 1);
    bed.pass(SECOND * 20);
    bed.set_down(1);
    bed.said();
    assert_eq!(bed.join(1, 2), HostVerdict::Accepted);
    let said = bed.said();
    let [HostChange::Moved { host, from }] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!((host.at, *from, &host.ips), (port(2), port(1), &BTreeSet::from([ip(1).into()])));
}

#[test]
fn a_host_that_does_not_answer_at_its_old_port_has_moved_after_the_patience() {
    let mut bed = bed();
    bed.join(1, 1);
    bed.pass(SECOND * 20);
    bed.said();
    assert_eq!(bed.join(1, 2), HostVerdict::Waiting);
    bed.pass(PATIENCE - Duration::from_millis(1));
    assert_eq!((bed.send(2, &data(mac(1))), bed.place_of(1)), (HostVerdict::Waiting, Some(port(1))));
    bed.pass(Duration::from_millis(1));
    assert_eq!((bed.send(2, &data(mac(1))), bed.place_of(1)), (HostVerdict::Accepted, Some(port(2))));
    assert_eq!((bed.alarms(), bed.count("hosts_probes")), (vec![], 3));
}

#[test]
fn a_port_that_goes_down_while_its_host_is_asked_ends_the_question() {
    let mut bed = bed();
    bed.join(1, 1);
    assert_eq!(bed.join(1, 2), HostVerdict::Waiting);
    bed.set_down(1);
    assert_eq!(bed.place_of(1), Some(port(2)));
    // The other way round, the claim is forgotten.
    bed.place(1, 2);
    assert_eq!(bed.send(3, &data(mac(1))), HostVerdict::Waiting);
    bed.set_down(3);
    bed.pass(SECOND);
    assert_eq!((bed.place_of(1), bed.alarms()), (Some(port(2)), vec![]));
}

#[test]
fn an_ip_address_changes_hands_when_its_host_is_silent() {
    let mut bed = bed();
    bed.join(1, 1);
    bed.join(2, 2);
    bed.stations.get_mut(&1).unwrap().ips.clear();
    bed.said();
    assert_eq!(bed.send(2, &announcement(mac(2), ip(1))), HostVerdict::Waiting);
    bed.pass(PATIENCE);
    assert_eq!((ips(&bed, 1), ips(&bed, 2)), (vec![], vec![ip(1).into(), ip(2).into()]));
    assert!(bed.alarms().is_empty());
    // At once, if the holder's port is down.
    bed.set_down(2);
    assert_eq!(bed.send(1, &announcement(mac(1), ip(2))), HostVerdict::Accepted);
    assert_eq!(ips(&bed, 1), [IpAddr::from(ip(2))]);
}

#[test]
fn searches_for_duplicates_teach_no_address() {
    let mut bed = bed();
    bed.join(1, 1);
    let probe = FrameBuilder::ethernet(MacAddr::BROADCAST, mac(2));
    let probe = probe.arp(1, (mac(2), Ipv4Addr::UNSPECIFIED), (MacAddr::default(), ip(1))).build();
    assert_eq!(bed.send(2, &probe), HostVerdict::Accepted, "it reaches the one that uses the address");
    assert_eq!((ips(&bed, 1).len(), ips(&bed, 2).len(), bed.count("hosts_checks")), (1, 0, 0));
}

#[test]
fn dhcp_names_hosts_and_gives_addresses_that_were_asked_for() {
    let mut bed = bed();
    let dhcp = |from: MacAddr, ports: (u16, u16), payload: &[u8]| {
        let builder = FrameBuilder::ethernet(MacAddr::BROADCAST, from).ipv4(Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST);
        builder.udp(ports.0, ports.1).payload(payload).build()
    };
    let request = message(1, mac(1), Ipv4Addr::UNSPECIFIED, &[53, 1, 3, 12, 2, b'h', b'1', 255]);
    let acknowledged = |client, given| dhcp(mac(9), (67, 68), &message(2, client, given, &[53, 1, 5, 255]));
    bed.send(1, &data(mac(1)));
    bed.send(9, &acknowledged(mac(1), ip(1)));
    assert!(ips(&bed, 1).is_empty(), "it had not asked");
    bed.send(1, &dhcp(mac(1), (68, 67), &request));
    assert_eq!(bed.tracker.host(mac(1)).unwrap().name.as_deref(), Some("h1"));
    bed.send(9, &acknowledged(mac(1), ip(1)));
    assert_eq!(ips(&bed, 1), [IpAddr::from(ip(1))]);
    // Another host does not get the name, and one that speaks for another one names nothing.
    bed.send(2, &dhcp(mac(2), (68, 67), &message(1, mac(2), ip(0), &[53, 1, 3, 12, 2, b'h', b'1', 255])));
    bed.send(2, &dhcp(mac(2), (68, 67), &message(1, mac(1), ip(0), &[53, 1, 3, 12, 2, b'h', b'2', 255])));
    assert_eq!(bed.tracker.host(mac(2)).unwrap().name, None);
    assert_eq!(bed.tracker.host(mac(1)).unwrap().name.as_deref(), Some("h1"));
    assert_eq!(bed.count("hosts_names_taken"), 1);
    // What another host uses is not given.
    bed.send(9, &acknowledged(mac(2), ip(1)));
    assert_eq!((ips(&bed, 2).len(), bed.alarms().len()), (0, 0));
}

#[test]
fn a_silent_host_is_asked_and_removed_if_it_does_not_answer() {
    let mut bed = Bed::new(HostConfig { max_age: SECOND * 60, ..HostConfig::default() });
    bed.join(1, 1);
    bed.send(2, &data(mac(2)));
    bed.send(3, &data(mac(3)));
    bed.stations.insert(2, super::bed::Station { mac: mac(2), at: port(2), ips: vec![] });
    bed.join(4, 4);
    bed.set_down(4);
    bed.said();
    bed.pass(SECOND * 600);
    let known: Vec<_> = (1..=4).filter(|number| bed.place_of(*number).is_some()).collect();
    assert_eq!(known, [1, 2], "one answers ARP, one without known address asks who asks");
    let removed = bed.said().into_iter().filter(|change| matches!(change, HostChange::Removed(_))).count();
    assert_eq!((removed, bed.count("hosts_removed")), (2, 2));
}

#[test]
fn a_host_without_known_address_is_asked_when_it_is_claimed() {
    let mut bed = bed();
    bed.send(1, &data(mac(1)));
    bed.stations.insert(1, super::bed::Station { mac: mac(1), at: port(1), ips: vec![] });
    assert_eq!(bed.send(2, &data(mac(1))), HostVerdict::Waiting);
    bed.pass(SECOND);
    assert_eq!((bed.place_of(1), bed.alarms()), (Some(port(1)), vec![alarm_kind::HOST_HIJACK]));
}
