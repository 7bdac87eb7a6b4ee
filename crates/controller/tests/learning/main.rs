//! Tests the learning switch with real datapaths, in both OpenFlow versions, with and without buffers in the
//! switches.
mod attacks;
mod discovery;
mod network;

use network::{Left, Network};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use weir_controller::apps::learning::LearningConfig;
use weir_openflow::Version;
use weir_openflow::model::PortNo;
use weir_packet::MacAddr;
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;

const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xa]);
const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xb]);
const SECOND: Duration = Duration::from_secs(1);
const KINDS: [(Version, u32); 4] = [(Version::V13, 0), (Version::V13, 256), (Version::V10, 0), (Version::V10, 256)];

/// Returns a frame longer than the part that a switch with buffers sends along.
fn frame(dst: MacAddr, src: MacAddr, text: &str) -> Vec<u8> {
    FrameBuilder::ethernet(dst, src).ether_type(0x88b5).payload(text.repeat(40).as_bytes()).build()
}

fn tagged(dst: MacAddr, src: MacAddr, vid: u16, text: &str) -> Vec<u8> {
    FrameBuilder::ethernet(dst, src)
        .vlan(eth_type::VLAN, vid, 0)
        .ether_type(0x88b5)
        .payload(text.repeat(40).as_bytes())
        .build()
}

/// Returns the places where frames left, as (switch, port).
fn places(left: &[Left]) -> HashSet<(u64, u32)> {
    left.iter().map(|left| (left.switch, left.port)).collect()
}

/// Asserts that a frame left at one place only, unchanged.
#[track_caller]
fn only(left: &[Left], switch: u64, port: u32, bytes: &[u8]) {
    assert_eq!(left, [Left { switch, port, bytes: bytes.to_vec() }]);
}

fn plain(version: Version, n_buffers: u32) -> Network {
    Network::new(version, n_buffers, 1, LearningConfig::default())
}

/// Returns two switches joined by their ports 9. On both, ports 1 and 3 belong to tenant 10 and port 2 to tenant 20.
fn tenants(version: Version, n_buffers: u32) -> Network {
    let access = [1, 2].into_iter().flat_map(|dpid| [(dpid, 1, 10), (dpid, 2, 20), (dpid, 3, 10)]);
    let access: HashMap<_, _> = access.map(|(dpid, port, vlan)| ((dpid, PortNo(port)), vlan)).collect();
    let mut network = Network::new(version, n_buffers, 2, LearningConfig { access, ..LearningConfig::default() });
    network.wire((1, 9), (2, 9));
    // Ports 4 to 8 are trunks, too, without stations.
    for (switch, port) in [1, 2].into_iter().flat_map(|switch| (4..=8).map(move |port| (switch, port))) {
        network.set_link(switch, port, false);
    }
    network
}

#[test]
fn the_first_packet_is_flooded_the_next_go_straight_and_then_without_us() {
    for (version, n_buffers) in KINDS {
        let mut network = plain(version, n_buffers);
        let (ask, answer) = (frame(B, A, "ask"), frame(A, B, "answer"));
        let flooded = network.send(1, 1, &ask);
        assert_eq!(places(&flooded), (2..=9).map(|port| (1, port)).collect());
        assert!(
            flooded.iter().all(|left| left.bytes == ask),
            "whole, although the controller may have seen its start only"
        );
        only(&network.send(1, 2, &answer), 1, 1, &answer);
        only(&network.send(1, 1, &ask), 1, 2, &ask);
        let packet_ins = network.snapshot().counters.packet_ins;
        for _ in 0..5 {
            only(&network.send(1, 1, &ask), 1, 2, &ask);
            only(&network.send(1, 2, &answer), 1, 1, &answer);
        }
        let counters = network.snapshot().counters;
        assert_eq!((counters.packet_ins, packet_ins, counters.errors), (3, 3, 0), "{version:?} {n_buffers}");
        assert_eq!(network.entries(1).len(), 2);
        assert_eq!((network.count("learned"), network.count("flooded"), network.count("errors")), (2, 1, 0));
    }
}

#[test]
fn tenants_with_equal_addresses_are_kept_apart_across_a_trunk() {
    for (version, n_buffers) in KINDS {
        let mut network = tenants(version, n_buffers);
        for round in 0..3 {
            for (port, other, vlan) in [(1, 3, 10_u8), (2, 0, 20)] {
                let text = format!("tenant {vlan}");
                let (ask, answer) = (frame(B, A, &text), frame(A, B, &text));
                let asked = network.send(1, port, &ask);
                assert!(asked.iter().all(|left| left.bytes == ask), "untagged, to {:?}", places(&asked));
                let everywhere = HashSet::from([(1, other), (2, port), (2, other)]);
                let reached = if round == 0 { everywhere } else { HashSet::from([(2, port)]) };
                assert_eq!(places(&asked), reached.into_iter().filter(|(_, port)| *port > 0).collect());
                only(&network.send(2, port, &answer), 1, port, &answer);
                let crossed = network.crossed();
                assert_eq!(crossed, [tagged(B, A, u16::from(vlan), &text), tagged(A, B, u16::from(vlan), &text)]);
            }
        }
        let packet_ins = network.snapshot().counters.packet_ins;
        only(&network.send(1, 2, &frame(B, A, "x")), 2, 2, &frame(B, A, "x"));
        assert_eq!(network.snapshot().counters.packet_ins, packet_ins, "entries do it by now");
        assert_eq!((network.snapshot().counters.errors, network.entries(1).len()), (0, 4));
    }
}

#[test]
fn broadcasts_stay_with_the_tenant() {
    for (version, n_buffers) in KINDS {
        let mut network = tenants(version, n_buffers);
        let arp = frame(MacAddr::BROADCAST, A, "who");
        assert_eq!(places(&network.send(1, 1, &arp)), HashSet::from([(1, 3), (2, 1), (2, 3)]));
        assert_eq!(places(&network.send(2, 2, &arp)), HashSet::from([(1, 2)]));
        assert_eq!(network.entries(1).len() + network.entries(2).len(), 0);
    }
}

#[test]
fn a_tenant_cannot_choose_its_vlan() {
    for (version, n_buffers) in KINDS {
        let mut network = tenants(version, n_buffers);
        network.send(1, 2, &frame(B, A, "tenant 20 is there"));
        for dst in [A, B, MacAddr::BROADCAST] {
            assert_eq!(network.send(1, 1, &tagged(dst, B, 20, "hop")), []);
            assert_eq!(network.send(1, 1, &tagged(dst, B, 10, "own")), []);
        }
        assert_eq!(network.count("drop_tagged"), 6);
        let packet_ins = network.snapshot().counters.packet_ins;
        network.send(1, 1, &tagged(A, B, 20, "again"));
        assert_eq!(network.snapshot().counters.packet_ins, packet_ins, "an entry drops it now");
        // A tag with only a priority is no VLAN: the frame reaches its own tenant and no other.
        let reached = network.send(1, 1, &tagged(MacAddr::BROADCAST, A, 0, "priority"));
        assert_eq!(places(&reached), HashSet::from([(1, 3), (2, 1), (2, 3)]));
        assert_eq!(network.snapshot().counters.errors, 0);
    }
}

#[test]
fn untagged_frames_of_a_trunk_reach_no_tenant() {
    for (version, n_buffers) in KINDS {
        let mut network = tenants(version, n_buffers);
        network.set_link(2, 8, true);
        let left = network.send(2, 8, &frame(MacAddr::BROADCAST, A, "who"));
        assert_eq!(left, []);
        let inside = network.send(2, 8, &tagged(MacAddr::BROADCAST, A, 10, "who"));
        assert_eq!(places(&inside), HashSet::from([(1, 1), (1, 3), (2, 1), (2, 3)]));
        assert!(inside.iter().all(|left| left.bytes == frame(MacAddr::BROADCAST, A, "who")));
    }
}

#[test]
fn a_station_that_moves_is_found_where_it_is() {
    for (version, n_buffers) in KINDS {
        let mut network = plain(version, n_buffers);
        let (to_a, to_b) = (frame(A, B, "to a"), frame(B, A, "to b"));
        for (port, frame) in [(1, &to_b), (2, &to_a), (1, &to_b)] {
            network.send(1, port, frame);
        }
        assert_eq!(network.entries(1).len(), 2);
        only(&network.send(1, 3, &to_b), 1, 2, &to_b);
        assert_eq!((network.count("moved"), network.entries(1).len()), (1, 1), "what was from and to port 1 is gone");
        only(&network.send(1, 2, &to_a), 1, 3, &to_a);
        // The way back shows that no entry of the first stay is left to hide the move.
        only(&network.send(1, 1, &to_b), 1, 2, &to_b);
        only(&network.send(1, 2, &to_a), 1, 1, &to_a);
        assert_eq!(network.count("moved"), 2);
    }
}

#[test]
fn a_move_in_one_tenant_leaves_the_other_alone() {
    let mut network = tenants(Version::V13, 0);
    for port in [1, 2] {
        network.send(1, port, &frame(B, A, "x"));
        network.send(2, port, &frame(A, B, "x"));
        network.send(1, port, &frame(B, A, "x"));
    }
    let of = |network: &mut Network, vlan: u64| {
        network.entries(1).iter().filter(|entry| entry.cookie & 0xfff == vlan).count()
    };
    assert_eq!((of(&mut network, 10), of(&mut network, 20)), (2, 2));
    only(&network.send(1, 3, &frame(B, A, "x")), 2, 1, &frame(B, A, "x"));
    assert_eq!((of(&mut network, 10), of(&mut network, 20)), (1, 2));
}

#[test]
fn stations_on_one_port_are_left_to_themselves() {
    for (version, n_buffers) in KINDS {
        let mut network = plain(version, n_buffers);
        network.send(1, 1, &frame(A, B, "hello"));
        assert_eq!(network.send(1, 1, &frame(B, A, "neighbour")), []);
        assert_eq!(network.send(1, 1, &frame(B, A, "neighbour")), []);
        let counters = network.snapshot().counters;
        assert_eq!((counters.packet_ins, network.count("drop_same_port")), (2, 1), "an entry drops the second");
        network.pass(11 * SECOND);
        assert_eq!(network.entries(1).len(), 0, "not for ever: the neighbour may move");
    }
}

#[test]
fn what_is_for_the_switch_and_what_is_invalid_goes_nowhere() {
    for (version, n_buffers) in KINDS {
        let mut network = plain(version, n_buffers);
        for last in [0x00, 0x03, 0x0e, 0x0f] {
            assert_eq!(network.send(1, 1, &frame(MacAddr([1, 0x80, 0xc2, 0, 0, last]), A, "bridge")), []);
        }
        let lldp = FrameBuilder::ethernet(MacAddr::BROADCAST, A).ether_type(0x88cc).payload(&[0; 50]).build();
        assert_eq!(network.send(1, 1, &lldp), []);
        let multicast = MacAddr([3, 0, 0, 0, 0, 1]);
        assert_eq!(network.send(1, 1, &frame(B, multicast, "from a group")), []);
        assert_eq!(places(&network.send(1, 1, &frame(MacAddr([1, 0x80, 0xc2, 0, 0, 0x10]), A, "x"))).len(), 8);
        assert_eq!((network.count("drop_reserved"), network.count("drop_multicast_source")), (5, 1));
        assert_eq!((network.count("learned"), network.entries(1).len()), (1, 0));
        assert_eq!(network.snapshot().counters.errors, 0);
    }
}

#[test]
fn vlans_are_told_apart_by_their_tag() {
    for (version, n_buffers) in KINDS {
        let mut network = plain(version, n_buffers);
        // Uses equal addresses in two VLANs, on swapped ports.
        for (vid, a, b) in [(10, 1, 2), (20, 2, 1)] {
            let (ask, answer) = (tagged(B, A, vid, "ask"), tagged(A, B, vid, "answer"));
            assert_eq!(places(&network.send(1, a, &ask)).len(), 8);
            only(&network.send(1, b, &answer), 1, a, &answer);
            only(&network.send(1, a, &ask), 1, b, &ask);
        }
        let packet_ins = network.snapshot().counters.packet_ins;
        for (vid, a, b) in [(10, 1, 2), (20, 2, 1)] {
            only(&network.send(1, a, &tagged(B, A, vid, "x")), 1, b, &tagged(B, A, vid, "x"));
        }
        assert_eq!((network.snapshot().counters.packet_ins, network.entries(1).len()), (packet_ins, 4));
        assert_eq!(network.count("moved"), 0);
    }
}

#[test]
fn a_port_that_goes_down_takes_its_stations_and_entries_along() {
    for (version, n_buffers) in KINDS {
        let mut network = plain(version, n_buffers);
        for (port, frame) in [(1, frame(B, A, "x")), (2, frame(A, B, "x")), (1, frame(B, A, "x"))] {
            network.send(1, port, &frame);
        }
        network.set_link(1, 2, false);
        assert_eq!(network.entries(1).len(), 0);
        assert_eq!(places(&network.send(1, 1, &frame(B, A, "x"))).len(), 7, "flooded again: 3 to 9");
        only(&network.send(1, 3, &frame(A, B, "x")), 1, 1, &frame(A, B, "x"));
    }
}

#[test]
fn stations_that_talk_are_never_forgotten_nor_disturbed() {
    for (version, n_buffers) in KINDS {
        let mut network = plain(version, n_buffers);
        let (one_way, answer) = (frame(B, A, "one way"), frame(A, B, "once"));
        for (port, frame) in [(1, &one_way), (2, &answer), (1, &one_way)] {
            network.send(1, port, frame);
        }
        for number in 0..100 {
            network.pass(30 * SECOND);
            only(&network.send(1, 1, &one_way), 1, 2, &one_way);
            // Packets of other stations make the controller look for aged stations.
            network.send(1, 3, &frame(A, MacAddr::from_bits(0x0200_0000_0100 + number), "new"));
        }
        assert_eq!(network.snapshot().counters.packet_ins, 3 + 100, "{version:?} {n_buffers}");
        assert!(network.count("aged") > 80);
    }
}

#[test]
fn stations_not_heard_of_for_long_are_forgotten() {
    for (version, n_buffers) in KINDS {
        let mut network = plain(version, n_buffers);
        for (port, frame) in [(1, frame(B, A, "x")), (2, frame(A, B, "x")), (1, frame(B, A, "x"))] {
            network.send(1, port, &frame);
        }
        network.pass(100 * SECOND);
        assert_eq!((network.entries(1).len(), network.count("aged")), (0, 0), "entries end when idle");
        network.pass(201 * SECOND);
        let flooded = network.send(1, 3, &frame(A, MacAddr([2, 0, 0, 0, 0, 0xc]), "where is a?"));
        assert_eq!((places(&flooded).len(), network.count("aged")), (8, 2));
    }
}

#[test]
fn a_station_that_makes_up_addresses_pushes_out_only_its_own_vlan() {
    let access = HashMap::from([((1, PortNo(1)), 10), ((1, PortNo(2)), 20), ((1, PortNo(3)), 20)]);
    let config = LearningConfig { access, max_addresses: 10, ..LearningConfig::default() };
    let mut network = Network::new(Version::V13, 0, 1, config);
    for (port, frame) in [(2, frame(B, A, "x")), (3, frame(A, B, "x")), (2, frame(B, A, "x"))] {
        network.send(1, port, &frame);
    }
    for number in 0..100 {
        network.send(1, 1, &frame(B, MacAddr::from_bits(0x0200_0000_0100 + number), "made up"));
    }
    assert_eq!((network.count("learned"), network.count("pushed_out")), (102, 90));
    assert_eq!(network.entries(1).len(), 2);
    let packet_ins = network.snapshot().counters.packet_ins;
    only(&network.send(1, 2, &frame(B, A, "x")), 1, 3, &frame(B, A, "x"));
    assert_eq!(network.snapshot().counters.packet_ins, packet_ins);
}

#[test]
fn entries_end_when_idle() {
    for (version, n_buffers) in KINDS {
        let mut network = plain(version, n_buffers);
        for (port, frame) in [(1, frame(B, A, "x")), (2, frame(A, B, "x"))] {
            network.send(1, port, &frame);
        }
        assert_eq!((network.entries(1)[0].idle_timeout, network.entries(1)[0].priority), (60, 100));
        network.pass(61 * SECOND);
        assert_eq!(network.entries(1).len(), 0);
    }
}

/// Returns four switches in a ring: port 9 of each is joined to port 8 of the next; stations are at ports 1.
fn ring(version: Version, n_buffers: u32) -> Network {
    let next = |at: u64| at % 4 + 1;
    let links = (1..=4).map(|at| [(at, PortNo(9)), (next(at), PortNo(8))]).collect();
    let mut network = Network::new(version, n_buffers, 4, LearningConfig { links, ..LearningConfig::default() });
    (1..=4).for_each(|at| network.wire((at, 9), (next(at), 8)));
    network
}

#[test]
fn in_a_ring_floods_end_and_every_station_hears_them_once() {
    for (version, n_buffers) in KINDS {
        let mut network = ring(version, n_buffers);
        let ask = frame(MacAddr::BROADCAST, A, "ask");
        let left: Vec<(u64, u32)> = network.send(1, 1, &ask).iter().map(|left| (left.switch, left.port)).collect();
        let unique: HashSet<_> = left.iter().copied().collect();
        assert_eq!((left.len(), unique.len()), (4 * 7 - 1, 4 * 7 - 1), "all but the ring's ports and its own");
        assert_eq!(network.crossed().len(), 3, "over the links of a tree");
        only(&network.send(3, 1, &frame(A, B, "answer")), 1, 1, &frame(A, B, "answer"));
        only(&network.send(1, 1, &frame(B, A, "on")), 3, 1, &frame(B, A, "on"));
    }
}

#[test]
fn when_a_link_of_the_ring_goes_packets_take_the_other_way() {
    for (version, n_buffers) in KINDS {
        let mut network = ring(version, n_buffers);
        let (ask, answer) = (frame(B, A, "ask"), frame(A, B, "answer"));
        network.send(1, 1, &ask);
        network.send(2, 1, &answer);
        network.crossed();
        only(&network.send(1, 1, &ask), 2, 1, &ask);
        assert_eq!(network.crossed().len(), 1);
        network.set_link(1, 9, false);
        network.set_link(2, 8, false);
        network.send(1, 1, &ask);
        network.send(2, 1, &answer);
        network.crossed();
        only(&network.send(1, 1, &ask), 2, 1, &ask);
        assert_eq!(network.crossed().len(), 3, "round the ring");
        network.set_link(1, 9, true);
        network.set_link(2, 8, true);
        network.send(1, 1, &ask);
        network.send(2, 1, &answer);
        network.crossed();
        only(&network.send(1, 1, &ask), 2, 1, &ask);
        assert_eq!((network.crossed().len(), network.snapshot().counters.errors), (1, 0));
    }
}

/// Sends a buffered packet by its entry, or by a packet-out: it arrives either way, and buffers are given back.
#[test]
fn a_buffered_packet_is_sent_by_its_entry_or_by_a_packet_out() {
    for (entry_sends_packet, packet_outs) in [(true, 1), (false, 2)] {
        for version in Version::ALL {
            let config = LearningConfig { entry_sends_packet, ..LearningConfig::default() };
            let mut network = Network::new(version, 256, 1, config);
            let [a, b] = [1, 2].map(|last| MacAddr([2, 0, 0, 0, 0, last]));
            let frame = |dst, src| FrameBuilder::ethernet(dst, src).ether_type(0x88b5).payload(&[7; 400]).build();
            assert_eq!(network.send(1, 1, &frame(b, a)).len(), 8, "flooded");
            let left = network.send(1, 2, &frame(a, b));
            assert_eq!(left.iter().map(|left| left.port).collect::<Vec<_>>(), [1], "{version:?}");
            assert_eq!(left[0].bytes, frame(a, b), "whole, although the controller saw its beginning");
            let counters = network.snapshot().counters;
            assert_eq!((counters.flow_mods, counters.packet_outs), (setup(version) + 1, packet_outs), "{version:?}");
        }
    }
}

/// Returns the number of flow-mods that set a switch up.
fn setup(version: Version) -> u64 {
    if version == Version::V10 { 1 } else { 2 }
}
