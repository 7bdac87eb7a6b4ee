//! Tests networks with switches of others between their own: packets pass them without loops and copies, and their
//! hosts are reached.
use crate::bed::Bed;
use crate::forwarding::{MODES, assert_all_reach_all, config};
use std::net::IpAddr;
use std::time::Duration;
use weir_packet::MacAddr;
use weir_routing::NetworkConfig;
use weir_routing::forwarding::ForwardingMode;

const MS: Duration = Duration::from_millis(1);

/// Returns settings with discovery by broadcasts.
fn through_islands(mode: ForwardingMode) -> NetworkConfig {
    let mut config = config(mode);
    config.discovery.broadcast = true;
    config
}

/// Connects all switches, and lets hosts announce themselves.
fn start(bed: &mut Bed) {
    bed.connect_all();
    bed.run(300 * MS);
    bed.announce_all();
    bed.run(300 * MS);
}

/// Returns two pairs of linked switches with an island between 2 and 3; each switch has a host.
fn two_parts(mode: ForwardingMode) -> Bed {
    let mut bed = Bed::new(4, 1, through_islands(mode), Vec::new());
    bed.link(1, 2);
    bed.link(3, 4);
    let island = bed.island();
    bed.link(2, island);
    bed.link(3, island);
    (1..=4).for_each(|dpid| _ = bed.host(dpid));
    start(&mut bed);
    bed
}

/// Returns how often each host received a broadcast of a host.
fn broadcast(bed: &mut Bed, from: usize) -> Vec<usize> {
    let number = bed.send_to(from, MacAddr::BROADCAST);
    bed.run(20 * MS);
    assert!(bed.most_crossings(number) <= 1, "a broadcast circles");
    (0..bed.hosts.len()).map(|host| bed.copies(host, number)).collect()
}

#[test]
fn a_learning_switch_between_two_parts_is_crossed() {
    for mode in MODES {
        let mut bed = two_parts(mode);
        let links = bed.state().links;
        let indirect: Vec<_> = links.iter().filter(|link| link.indirect).collect();
        assert!(links.len() == 3 && indirect.len() == 1 && !indirect[0].blocked, "{mode:?} {links:#?}");
        assert_all_reach_all(&mut bed);
        assert_eq!(broadcast(&mut bed, 0), [0, 1, 1, 1], "{mode:?}");
        let alarms = bed.count("hosts_alarms");
        assert_eq!(alarms, 0, "{mode:?}");
    }
}

#[test]
fn without_the_option_an_island_is_no_link() {
    let mut bed = Bed::new(2, 1, config(ForwardingMode::Proactive), Vec::new());
    let island = bed.island();
    (1..=2).for_each(|dpid| _ = bed.link(dpid, island));
    start(&mut bed);
    assert!(bed.state().links.is_empty());
}

#[test]
fn an_island_joins_three_switches_without_copies() {
    for mode in MODES {
        let mut bed = Bed::new(3, 1, through_islands(mode), Vec::new());
        let island = bed.island();
        (1..=3).for_each(|dpid| _ = bed.link(dpid, island));
        (1..=3).for_each(|dpid| _ = bed.host(dpid));
        start(&mut bed);
        assert_eq!(bed.state().links.len(), 2, "{mode:?}");
        // A host that has not sent for long: the island floods packets to it.
        assert_all_reach_all(&mut bed);
        for from in 0..3 {
            let expected: Vec<_> = (0..3).map(|host| usize::from(host != from)).collect();
            assert_eq!(broadcast(&mut bed, from), expected, "{mode:?}");
        }
    }
}

#[test]
fn an_island_beside_links_is_used_when_they_fail() {
    for mode in MODES {
        let mut bed = Bed::new(3, 1, through_islands(mode), Vec::new());
        let direct = bed.link(1, 2);
        bed.link(2, 3);
        let island = bed.island();
        (1..=3).for_each(|dpid| _ = bed.link(dpid, island));
        (1..=3).for_each(|dpid| _ = bed.host(dpid));
        start(&mut bed);
        let blocked = |bed: &mut Bed| {
            let links = bed.state().links;
            links.iter().filter(|link| link.indirect && link.blocked).count()
        };
        assert_eq!(blocked(&mut bed), 2, "links join all");
        assert_all_reach_all(&mut bed);
        assert_eq!(broadcast(&mut bed, 0), [0, 1, 1], "{mode:?}");
        bed.set_link(direct, false);
        bed.run(300 * MS);
        assert_eq!(blocked(&mut bed), 1, "the island joins switch 1 to one of the others");
        assert_all_reach_all(&mut bed);
        assert_eq!(broadcast(&mut bed, 0), [0, 1, 1], "{mode:?}");
        bed.set_link(direct, true);
        bed.run(300 * MS);
        assert_eq!(blocked(&mut bed), 2);
        bed.announce_all();
        bed.run(20 * MS);
        assert_all_reach_all(&mut bed);
        assert_eq!(broadcast(&mut bed, 0), [0, 1, 1], "{mode:?}");
    }
}

#[test]
fn hosts_of_an_island_are_reached() {
    for mode in MODES {
        let mut bed = Bed::new(3, 1, through_islands(mode), Vec::new());
        let island = bed.island();
        (1..=3).for_each(|dpid| _ = bed.link(dpid, island));
        (1..=3).for_each(|dpid| _ = bed.host(dpid));
        let inner = bed.host(island);
        start(&mut bed);
        let state = bed.state();
        let at = state.hosts.iter().find(|host| host.mac == bed.hosts[inner].mac).map(|host| host.at.to_string());
        assert_eq!((state.hosts.len(), at.as_deref()), (4, Some("1:1")), "{mode:?} {:#?}", state.hosts);
        assert_all_reach_all(&mut bed);
        for from in 0..4 {
            let expected: Vec<_> = (0..4).map(|host| usize::from(host != from)).collect();
            assert_eq!(broadcast(&mut bed, from), expected, "{mode:?}");
        }
        // Address resolution in both directions, and of an address that no host has.
        for (from, to) in [(0, inner), (inner, 2), (2, inner)] {
            let (mac, ip) = (bed.hosts[to].mac, bed.hosts[to].ip);
            bed.hosts[from].resolved.clear();
            bed.ask_arp(from, IpAddr::V4(ip));
            bed.run(20 * MS);
            assert_eq!(bed.hosts[from].resolved, [(mac, ip)], "{mode:?} {from} {to}");
        }
        bed.hosts.iter_mut().for_each(|host| host.asked_for.clear());
        bed.ask_arp(2, IpAddr::V4([10, 0, 9, 9].into()));
        bed.run(20 * MS);
        let heard: Vec<_> = bed.hosts.iter().map(|host| host.asked_for.len()).collect();
        assert_eq!(heard, [1, 1, 0, 1], "{mode:?}");
        // The question has taught the island nothing wrong.
        assert_all_reach_all(&mut bed);
        assert_eq!(bed.count("hosts_alarms"), 0, "{mode:?}");
    }
}

#[test]
fn a_cable_in_place_of_an_island_is_a_link() {
    let mut bed = Bed::new(2, 1, through_islands(ForwardingMode::Proactive), Vec::new());
    let island = bed.island();
    let ends = [bed.link(1, island), bed.link(2, island)].map(|[at, _]| at);
    (1..=2).for_each(|dpid| _ = bed.host(dpid));
    start(&mut bed);
    assert!(bed.state().links.iter().all(|link| link.indirect));
    assert_all_reach_all(&mut bed);
    bed.wires.insert(ends[0], ends[1]);
    bed.wires.insert(ends[1], ends[0]);
    bed.run(400 * MS);
    let links = bed.state().links;
    assert!(links.len() == 1 && !links[0].indirect, "{links:#?}");
    assert_all_reach_all(&mut bed);
}
