//! Tests the discovery of links in front of the learning switch: loops that are not configured are broken.
use crate::network::Network;
use std::time::Duration;
use weir_controller::AppWaker;
use weir_controller::apps::chain::AppChain;
use weir_controller::apps::discovery::{DiscoveryConfig, LinkDiscoveries};
use weir_controller::apps::learning::{LearningConfig, LearningSwitches};
use weir_openflow::Version;
use weir_packet::MacAddr;
use weir_packet::craft::FrameBuilder;

pub(crate) const INTERVAL: Duration = Duration::from_secs(5);

/// Returns three switches in a ring, whose ports 1 lead to ports 2 of the next, after the links are found.
pub(crate) fn ring(version: Version, n_buffers: u32) -> Network {
    let switches = LearningSwitches::new(LearningConfig::default());
    let discovery =
        LinkDiscoveries::new(DiscoveryConfig { interval: INTERVAL, ..DiscoveryConfig::default() }, &switches)
            .make(0, AppWaker::default());
    let learning = switches.make(0, AppWaker::default());
    let chain = AppChain::new(vec![Box::new(discovery), Box::new(learning)]);
    let mut network = Network::with_app(version, n_buffers, 3, Box::new(chain));
    for (from, to) in [(1, 2), (2, 3), (3, 1)] {
        network.wire((from, 1), (to, 2));
    }
    network.pass(INTERVAL);
    network
}

pub(crate) fn broadcast() -> Vec<u8> {
    FrameBuilder::ethernet(MacAddr([0xff; 6]), MacAddr([2, 0, 0, 0, 0, 1])).ether_type(0x88b5).payload(&[0; 60]).build()
}

#[test]
fn loops_are_found_and_broken() {
    for (version, n_buffers) in [(Version::V10, 0), (Version::V13, 256), (Version::V15, 0)] {
        let mut network = ring(version, n_buffers);
        assert_eq!(network.count("discovery_links_found"), 3, "{version:?}");
        network.crossed();
        let left = network.send(1, 5, &broadcast());
        let reached = left.iter().filter(|frame| frame.bytes == broadcast()).count();
        assert_eq!((reached, network.crossed().len()), (3 * 7 - 1, 2), "each station once, {version:?}");
    }
}

/// Frames that circled before the loop was broken come by ways that are no longer the stations': nothing is learned
/// from them, and nothing is dropped for longer because of them.
#[test]
fn frames_that_circled_leave_nothing_behind() {
    let mut network = ring(Version::V13, 256);
    let [a, b] = [1, 2].map(|last| MacAddr([2, 0, 0, 0, 0, last]));
    let frame = |dst, src| FrameBuilder::ethernet(dst, src).ether_type(0x88b5).payload(&[0; 60]).build();
    let set_up = network.snapshot().counters.flow_mods;
    // Both stations seem to be behind one link of the first switch.
    for (dst, src) in [(b, a), (a, b), (b, a)] {
        network.send(1, 1, &frame(dst, src));
    }
    assert_eq!((network.count("drop_same_port"), network.count("learned")), (0, 0));
    assert_eq!(network.snapshot().counters.flow_mods, set_up);
    // At their own ports they are learned at once, and from links after a while.
    network.send(1, 5, &frame(b, a));
    network.pass(Duration::from_secs(1));
    network.send(2, 6, &frame(a, b));
    let left = network.send(1, 5, &frame(b, a));
    assert_eq!(left.iter().map(|left| (left.switch, left.port)).collect::<Vec<_>>(), [(2, 6)]);
}

#[test]
fn links_are_listed_with_the_one_that_breaks_the_loop() {
    let status = ring(Version::V13, 256).status();
    let links = status.links.expect("they are looked for");
    let ends: Vec<_> = links.iter().map(|link| [(link.from, link.from_port.0), (link.to, link.to_port.0)]).collect();
    assert_eq!(ends.len(), 3, "{links:?}");
    assert!(ends.contains(&[(1, 1), (2, 2)]) && ends.iter().all(|[from, to]| from < to), "{links:?}");
    assert_eq!(links.iter().filter(|link| link.blocked).count(), 1, "{links:?}");
    assert!(links.iter().all(|link| link.heard_s <= INTERVAL.as_secs_f64()), "{links:?}");
    let names: Vec<_> = status.applications.iter().map(|application| application.name.as_str()).collect();
    assert_eq!(names, ["link discovery", "learning switch"]);
    assert_eq!(status.applications[0].counters["discovery_links_found"], 3);
    assert!(!status.applications[1].counters.contains_key("discovery_links_found"), "each has its own");
}

#[test]
fn a_link_that_is_silent_is_lost_and_the_tree_changes() {
    let mut network = ring(Version::V13, 0);
    network.unwire((1, 1), (2, 2));
    (0..5).for_each(|_| network.pass(INTERVAL));
    assert_eq!((network.count("discovery_links_found"), network.count("discovery_links_lost")), (3, 1));
    network.crossed();
    let left = network.send(1, 5, &broadcast());
    // The ports of the former link are like those of stations.
    let reached = left.iter().filter(|frame| frame.bytes == broadcast()).count();
    assert_eq!((reached, network.crossed().len()), (3 * 7 - 1 + 2, 2));
}

/// Identifier of the TLV with a probe's numbers: datapath id, port, number, time, delay and authentication code.
pub(crate) const PROBE: [u8; 4] = [0x02, 0x77, 0x72, 2];

/// Returns the offset of a number in a frame of the discovery.
pub(crate) fn offset(frame: &[u8], number: usize) -> usize {
    frame.windows(4).position(|bytes| bytes == PROBE).expect("its own TLV") + 4 + 8 * number
}

/// Lets a round of probes pass. Returns the frame that went from port 1 of the first switch to port 2 of the second.
pub(crate) fn probe(network: &mut Network) -> Vec<u8> {
    network.crossed();
    network.pass(INTERVAL);
    let of_first = |frame: &Vec<u8>| [0, 1].map(|number| frame[offset(frame, number) + 7]) == [1, 1];
    network.crossed().into_iter().find(of_first).expect("a frame of the discovery")
}

#[test]
fn a_frame_that_a_host_makes_up_is_no_link() {
    let mut network = ring(Version::V13, 0);
    // The port, the number, the time, the delay, or the code is another one.
    for number in 1..6 {
        let mut forged = probe(&mut network);
        let at = offset(&forged, number) + 7;
        forged[at] ^= 1;
        network.send(3, 9, &forged);
        assert_eq!((network.count("discovery_forged"), network.count("discovery_links_found")), (number as u64, 3));
    }
}

#[test]
fn a_frame_that_a_host_kept_is_no_link_and_does_not_keep_one() {
    let mut network = ring(Version::V13, 0);
    let kept = probe(&mut network);
    network.send(2, 2, &kept);
    assert_eq!(network.count("discovery_replayed"), 1, "again where it has been");
    network.pass(Duration::from_secs(2));
    network.send(3, 9, &kept);
    assert_eq!((network.count("discovery_replayed"), network.count("discovery_links_found")), (2, 3));
    // The link is gone after its time, although the host repeats the frame.
    network.unwire((1, 1), (2, 2));
    for _ in 0..5 {
        network.pass(INTERVAL);
        network.send(2, 2, &kept);
    }
    assert_eq!((network.count("discovery_replayed"), network.count("discovery_links_lost")), (7, 1));
}

#[test]
fn a_link_that_goes_down_again_and_again_is_used_last() {
    let mut network = ring(Version::V13, 0);
    // The link that breaks the loop is another one before.
    let flapping = |network: &Network| {
        let links = network.status().links.expect("they are looked for");
        let link = links.into_iter().find(|link| (link.from, link.to) == (1, 2)).expect("it is known");
        (link.blocked, link.damped)
    };
    assert_eq!(flapping(&network), (false, false));
    for _ in 0..3 {
        network.set_link(2, 2, false);
        let links = network.status().links.expect("they are looked for");
        let down: Vec<_> = links.iter().filter(|link| link.down).map(|link| (link.from, link.to)).collect();
        assert_eq!(down, [(1, 2)], "{links:?}");
        network.set_link(2, 2, true);
        network.pass(Duration::from_secs(1));
    }
    assert_eq!((flapping(&network), network.count("discovery_links_damped")), ((true, true), 1));
    network.crossed();
    let left = network.send(1, 5, &broadcast());
    let reached = left.iter().filter(|frame| frame.bytes == broadcast()).count();
    assert_eq!((reached, network.crossed().len()), (3 * 7 - 1, 2), "each station once");
    // After a while without a loss it is a link as others.
    (0..5).for_each(|_| network.pass(INTERVAL));
    assert_eq!(flapping(&network), (false, false));
}
