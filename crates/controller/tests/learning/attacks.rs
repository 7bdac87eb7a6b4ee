//! Tests attacks of the literature on the discovery of links: Hong et al. 2015 (frames that are injected, replayed and
//! relayed), Marin et al. 2019 (topology freezing, reverse loop).
use crate::discovery::{INTERVAL, PROBE, broadcast, offset, ring};
use crate::network::Network;
use std::collections::BTreeSet;
use std::time::Duration;
use weir_openflow::Version;

/// Lets time pass in which every port gets a probe. Returns the probes that left by ports of hosts, with their places.
fn probes_at_hosts(network: &mut Network) -> Vec<((u64, u32), Vec<u8>)> {
    // Frames that left before are taken away with the first packet.
    network.send(1, 5, &broadcast());
    network.pass(INTERVAL);
    let left = network.send(1, 5, &broadcast()).into_iter();
    let is_probe = |bytes: &[u8]| bytes.windows(PROBE.len()).any(|part| part == PROBE);
    left.filter(|left| is_probe(&left.bytes)).map(|left| ((left.switch, left.port), left.bytes)).collect()
}

/// Returns a probe that a host at a port has got in the last interval.
fn probe_at(network: &mut Network, switch: u64, port: u32) -> Vec<u8> {
    let probes = probes_at_hosts(network);
    probes.into_iter().find(|(at, _)| *at == (switch, port)).expect("each port of a host gets one").1
}

/// Returns the links in order, as pairs of ends, the lesser first.
fn links(network: &Network) -> Vec<[(u64, u32); 2]> {
    let links = network.status().links.expect("they are looked for");
    let ends = links.iter().map(|link| [(link.from, link.from_port.0), (link.to, link.to_port.0)]);
    ends.collect::<BTreeSet<_>>().into_iter().collect()
}

fn counts(network: &Network) -> [u64; 2] {
    ["discovery_links_found", "discovery_links_lost"].map(|name| network.count(name))
}

const RING: [[(u64, u32); 2]; 3] = [[(1, 1), (2, 2)], [(1, 2), (3, 1)], [(2, 1), (3, 2)]];

/// Asserts that the links are those of the ring, and others.
#[track_caller]
fn assert_links(network: &Network, others: &[[(u64, u32); 2]]) {
    let mut expected = [&RING[..], others].concat();
    expected.sort_unstable();
    assert_eq!(links(network), expected);
}

/// Link fabrication by a frame that is made up from one of another port: the code does not fit.
#[test]
fn an_injected_probe_is_no_link() {
    let mut network = ring(Version::V13, 0);
    let mut probe = probe_at(&mut network, 1, 7);
    // The attacker at port 7 of the first switch says that it is port 8.
    let port = offset(&probe, 1) + 7;
    probe[port] = 8;
    network.send(3, 9, &probe);
    assert_eq!(network.count("discovery_forged"), 1);
    // A code of the attacker's own does not help.
    let code = offset(&probe, 5);
    for guess in 0..100_u64 {
        probe[code..code + 8].copy_from_slice(&guess.to_be_bytes());
        network.send(3, 9, &probe);
    }
    assert_eq!((network.count("discovery_forged"), counts(&network)), (101, [3, 0]));
    assert_links(&network, &[]);
}

/// Link fabrication by a relay: two hosts pass a probe on within a second. That makes a link between their ports, which
/// cannot be told from a slow link; its delay shows it. It is gone when they stop.
#[test]
fn a_probe_relayed_within_a_second_makes_a_link_with_its_delay() {
    let mut network = ring(Version::V13, 0);
    let probe = probe_at(&mut network, 1, 7);
    network.pass(Duration::from_millis(500));
    network.send(3, 9, &probe);
    assert_links(&network, &[[(1, 7), (3, 9)]]);
    let links = network.status().links.expect("they are looked for");
    let relayed = links.iter().find(|link| link.to_port.0 == 9).expect("it was found");
    assert_eq!(relayed.delay_us, Some(500_000.0));
    // The same frame again keeps nothing.
    for _ in 0..5 {
        network.pass(INTERVAL);
        network.send(3, 9, &probe);
    }
    assert_links(&network, &[]);
    assert_eq!(network.count("discovery_replayed"), 5);
}

#[test]
fn a_probe_relayed_after_a_second_is_no_link() {
    let mut network = ring(Version::V13, 0);
    let probe = probe_at(&mut network, 1, 7);
    network.pass(Duration::from_millis(1001));
    network.send(3, 9, &probe);
    assert_eq!((network.count("discovery_replayed"), counts(&network)), (1, [3, 0]));
    assert_links(&network, &[]);
}

/// A port that gets the probes of its link and relayed ones in turn: the link stays what it was.
#[test]
fn probes_of_two_links_at_a_port_change_nothing() {
    let mut network = ring(Version::V13, 0);
    for round in 1..=20 {
        let probe = probe_at(&mut network, 1, 7);
        network.send(2, 2, &probe);
        assert_links(&network, &[]);
        assert_eq!((counts(&network), network.count("discovery_contradicted")), ([3, 0], round));
    }
    // The tree has not changed, either.
    network.crossed();
    let left = network.send(1, 5, &broadcast());
    let reached = left.iter().filter(|frame| frame.bytes == broadcast()).count();
    assert_eq!((reached, network.crossed().len()), (3 * 7 - 1, 2), "each station once");
}

/// Topology freezing (Marin et al. 2019): probes that contradict a link must not keep the controller from noticing
/// changes.
#[test]
fn the_topology_does_not_freeze_under_contradicting_probes() {
    let mut network = ring(Version::V13, 0);
    // The link between the first two switches is gone, and a relayed probe comes in its place.
    network.unwire((1, 1), (2, 2));
    for _ in 0..6 {
        let probe = probe_at(&mut network, 1, 7);
        network.send(2, 2, &probe);
    }
    assert_eq!(links(&network), [RING[1], [(1, 7), (2, 2)], RING[2]], "the silent link gave way");
    // Other links are found and lost as ever.
    network.wire((2, 8), (3, 8));
    network.pass(INTERVAL);
    network.unwire((1, 2), (3, 1));
    (0..5).for_each(|_| network.pass(INTERVAL));
    assert_eq!(links(&network), [RING[2], [(2, 8), (3, 8)]]);
}

/// A cable that is pulled and put in elsewhere is a new link at once: its ports were down.
#[test]
fn a_recabled_port_has_its_new_link_at_once() {
    let mut network = ring(Version::V13, 0);
    network.set_link(1, 1, false);
    network.set_link(2, 2, false);
    network.unwire((1, 1), (2, 2));
    network.wire((1, 8), (2, 2));
    network.set_link(2, 2, true);
    network.pass(INTERVAL);
    assert!(links(&network).contains(&[(1, 8), (2, 2)]), "{:?}", links(&network));
    assert_eq!(network.count("discovery_contradicted"), 0);
}

/// Reverse loop (Marin et al. 2019): a probe that comes back by the port that it left is no link, and starts nothing.
#[test]
fn a_probe_sent_back_starts_no_loop_of_probes() {
    let mut network = ring(Version::V13, 0);
    let probe = probe_at(&mut network, 3, 9);
    network.crossed();
    let (sent, found) = (network.count("discovery_sent"), counts(&network));
    for _ in 0..50 {
        let left = network.send(3, 9, &probe);
        assert_eq!((left.len(), network.crossed().len()), (0, 0), "the probe goes nowhere");
    }
    assert_eq!((network.count("discovery_sent"), counts(&network)), (sent, found));
    assert_links(&network, &[]);
    // The same at a port that leads to a switch: the way back of its own probe.
    network.pass(INTERVAL);
    let of_third = |frame: &Vec<u8>| [0, 1].map(|number| frame[offset(frame, number) + 7]) == [3, 1];
    let trunk = network.crossed().into_iter().find(of_third).expect("a probe by the first port of the third switch");
    let sent = network.count("discovery_sent");
    network.send(3, 1, &trunk);
    assert_eq!((network.count("discovery_sent"), counts(&network)), (sent, found));
    assert_links(&network, &[]);
}
