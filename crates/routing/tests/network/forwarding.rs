//! Tests forwarding: every host reaches every other, whatever fails.
use crate::bed::Bed;
use std::net::IpAddr;
use std::time::Duration;
use weir_controller::apps::discovery::DiscoveryConfig;
use weir_packet::MacAddr;
use weir_routing::NetworkConfig;
use weir_routing::forwarding::{ForwardingConfig, ForwardingMode};

pub(crate) const MODES: [ForwardingMode; 3] =
    [ForwardingMode::Proactive, ForwardingMode::ReactivePath, ForwardingMode::ReactiveHop];

pub(crate) fn config(mode: ForwardingMode) -> NetworkConfig {
    let forwarding = ForwardingConfig { mode, ..ForwardingConfig::default() };
    let discovery = DiscoveryConfig { interval: Duration::from_millis(50), ..DiscoveryConfig::default() };
    NetworkConfig { forwarding, discovery, ..NetworkConfig::default() }
}

const MS: Duration = Duration::from_millis(1);

/// Returns a ring of switches, each with a host, known and at rest.
pub(crate) fn ring(n: u64, config: NetworkConfig) -> Bed {
    let mut bed = Bed::new(n, 1, config, Vec::new());
    (1..=n).for_each(|dpid| _ = bed.link(dpid, dpid % n + 1));
    (1..=n).for_each(|dpid| _ = bed.host(dpid));
    bed.connect_all();
    bed.run(200 * MS);
    bed.announce_all();
    bed.run(200 * MS);
    bed
}

/// Asserts that each host reaches each other once, without a loop.
#[track_caller]
pub(crate) fn assert_all_reach_all(bed: &mut Bed) {
    for from in 0..bed.hosts.len() {
        for to in (0..bed.hosts.len()).filter(|to| *to != from) {
            let number = bed.send(from, to);
            bed.run(20 * MS);
            assert_eq!(
                (bed.copies(to, number), bed.most_crossings(number)),
                (1, u32::from(bed.hops(number) > 0)),
                "{from} to {to}"
            );
        }
    }
}

#[test]
fn a_ring_is_found_and_crossed_the_short_way() {
    for mode in MODES {
        let mut bed = ring(6, config(mode));
        let state = bed.state();
        assert_eq!((state.switches.len(), state.links.len(), state.hosts.len()), (6, 6, 6), "{mode:?} {state:#?}");
        assert_all_reach_all(&mut bed);
        let number = bed.send(0, 2);
        bed.run(20 * MS);
        assert_eq!((bed.copies(2, number), bed.hops(number)), (1, 2), "{mode:?}");
    }
}

#[test]
fn a_broadcast_reaches_each_host_once() {
    let mut bed = ring(5, config(ForwardingMode::Proactive));
    let number = bed.send_to(0, MacAddr::BROADCAST);
    bed.run(20 * MS);
    let copies: Vec<_> = (0..5).map(|host| bed.copies(host, number)).collect();
    assert_eq!((copies, bed.hops(number)), (vec![0, 1, 1, 1, 1], 4));
}

#[test]
fn arp_is_answered_by_the_controller() {
    let mut bed = ring(3, config(ForwardingMode::Proactive));
    let (mac, ip) = (bed.hosts[2].mac, bed.hosts[2].ip);
    bed.ask_arp(0, IpAddr::V4(ip));
    bed.run(20 * MS);
    assert_eq!((bed.hosts[0].resolved.as_slice(), bed.count("forwarding_arp_answers")), (&[(mac, ip)][..], 1));
}

#[test]
fn a_link_that_fails_is_avoided() {
    for mode in MODES {
        let mut bed = Bed::new(4, 1, config(mode), Vec::new());
        let links: Vec<_> = (1..=4).map(|dpid| bed.link(dpid, dpid % 4 + 1)).collect();
        (1..=4).for_each(|dpid| _ = bed.host(dpid));
        bed.connect_all();
        bed.run(200 * MS);
        bed.announce_all();
        bed.run(200 * MS);
        assert_all_reach_all(&mut bed);
        bed.set_link(links[0], false);
        bed.run(20 * MS);
        assert_all_reach_all(&mut bed);
        bed.set_link(links[0], true);
        bed.run(200 * MS);
        assert_all_reach_all(&mut bed);
        // Silence is noticed by missing probes.
        bed.set_silent(links[2], true);
        bed.run(200 * MS);
        assert_all_reach_all(&mut bed);
    }
}
