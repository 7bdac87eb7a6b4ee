//! `dl_type` of frames with several VLAN tags: 1.0 reads one tag and uses the type after it (OpenFlow 1.0.0, figure
//! 4), later versions use the type after all tags (OpenFlow 1.3.5, table 13).
use crate::atomic::{CHANNEL as NEW_CONTROLLER, commit_refused};
use crate::bench::*;
use weir_datapath::{ChannelId, DatapathConfig, LookupMethod};
use weir_openflow::model::bundle::BundleFlags;
use weir_openflow::model::multipart::{FlowRequest, ReplyBody, RequestBody};
use weir_openflow::model::{FlowCommand, FlowFlags, FlowMod, Match};
use weir_openflow::{Body, Version};
use weir_packet::Field;
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;

fn of_type(number: u16) -> Match {
    Match::any().with(Field::EthType, number)
}

fn flow(command: FlowCommand, matching: Match, port: u32) -> Body {
    Body::FlowMod(FlowMod { command, ..FlowMod::add(100, matching, apply(output(port))) })
}

/// Returns a datagram with these tags, outermost first.
fn frame(tags: &[u16]) -> Vec<u8> {
    let craft = tags.iter().fold(FrameBuilder::ethernet(mac(2), mac(1)), |craft, tpid| craft.vlan(*tpid, 5, 0));
    craft.ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(1000, 53).payload(&[0; 20]).build()
}

fn bench(lookup: LookupMethod) -> Bench {
    let mut bench = Bench::with(DatapathConfig { lookup, ..DatapathConfig::default() });
    bench.datapath.channel_up(bench.now, OLD_CONTROLLER, Version::V10);
    bench.datapath.channel_up(bench.now, NEW_CONTROLLER, Version::V15);
    bench
}

/// Returns the matches and priorities of entries as a controller sees them.
fn told(bench: &mut Bench, channel: ChannelId, matching: Match) -> Vec<(Match, u16)> {
    let asked = FlowRequest { matching, ..FlowRequest::all() };
    let replies = bench.multipart(channel, RequestBody::Flow(asked)).unwrap();
    let entries = replies.into_iter().flat_map(|reply| match reply {
        ReplyBody::Flow(entries) => entries,
        other => panic!("{other:?}"),
    });
    entries.map(|entry| (entry.matching, entry.priority)).collect()
}

const ONE: &[u16] = &[eth_type::VLAN];
const TWO: &[u16] = &[eth_type::QINQ, eth_type::VLAN];
const TWO_SERVICE: &[u16] = &[eth_type::VLAN, eth_type::QINQ];
const THREE: &[u16] = &[eth_type::QINQ, eth_type::VLAN, eth_type::QINQ];

#[test]
fn each_version_reads_its_own_type() {
    for lookup in [LookupMethod::Adaptive, LookupMethod::Linear] {
        let cases: [(ChannelId, u16, &[&[u16]]); 6] = [
            (OLD_CONTROLLER, eth_type::IPV4, &[&[], ONE]),
            (OLD_CONTROLLER, eth_type::VLAN, &[TWO, THREE]),
            (OLD_CONTROLLER, eth_type::QINQ, &[TWO_SERVICE]),
            (NEW_CONTROLLER, eth_type::IPV4, &[&[], ONE, TWO, TWO_SERVICE, THREE]),
            (NEW_CONTROLLER, eth_type::VLAN, &[]),
            (NEW_CONTROLLER, eth_type::QINQ, &[]),
        ];
        for (channel, number, matched) in cases {
            let mut bench = bench(lookup);
            assert_eq!(bench.ask(channel, flow(FlowCommand::Add, of_type(number), 2)), []);
            for tags in [&[][..], ONE, TWO, TWO_SERVICE, THREE] {
                let expected: &[u32] = if matched.contains(&tags) { &[2] } else { &[] };
                assert_eq!(bench.ports_of(1, &frame(tags)), expected, "{lookup:?} {channel:?} {number:#x} {tags:x?}");
            }
        }
    }
}

#[test]
fn fields_behind_a_second_tag_are_not_there_for_1_0() {
    let mut bench = bench(LookupMethod::Adaptive);
    let to_port_53 = of_type(eth_type::IPV4).with(Field::IpProto, 17_u8).with(Field::UdpDst, 53_u16);
    bench.ask(OLD_CONTROLLER, flow(FlowCommand::Add, to_port_53, 2));
    bench.ask(OLD_CONTROLLER, flow(FlowCommand::Add, Match::any().with(Field::EthDst, mac(2).to_bits()), 3));
    assert_eq!(bench.ports_of(1, &frame(ONE)), [2]);
    assert_eq!(bench.ports_of(1, &frame(TWO)), [3]);
}

#[test]
fn entries_are_told_and_found_as_their_flow_mods_had_them() {
    for number in [eth_type::IPV4, eth_type::VLAN] {
        let mut bench = bench(LookupMethod::Adaptive);
        let other = of_type(eth_type::ARP);
        for matching in [of_type(number), other.clone()] {
            bench.ask(OLD_CONTROLLER, flow(FlowCommand::Add, matching, 2));
        }
        let entry = [(of_type(number), 100)];
        assert_eq!(told(&mut bench, OLD_CONTROLLER, of_type(number)), entry);
        assert_eq!(told(&mut bench, NEW_CONTROLLER, Match::any()).len(), 2);
        // A repeated flow-mod replaces the entry, and other commands find it.
        bench.ask(OLD_CONTROLLER, flow(FlowCommand::Add, of_type(number), 3));
        assert_eq!(told(&mut bench, OLD_CONTROLLER, of_type(number)), entry);
        bench.ask(OLD_CONTROLLER, flow(FlowCommand::Modify, of_type(number), 4));
        let tags: &[u16] = if number == eth_type::VLAN { TWO } else { ONE };
        assert_eq!(bench.ports_of(1, &frame(tags)), [4]);
        bench.ask(OLD_CONTROLLER, flow(FlowCommand::ModifyStrict, of_type(number), 2));
        assert_eq!(bench.ports_of(1, &frame(tags)), [2]);
        for command in [FlowCommand::Delete, FlowCommand::DeleteStrict] {
            bench.ask(OLD_CONTROLLER, flow(command, of_type(number), 0));
            assert_eq!(told(&mut bench, NEW_CONTROLLER, Match::any()), [(other.clone(), 100)]);
            bench.ask(OLD_CONTROLLER, flow(FlowCommand::Add, of_type(number), 2));
        }
    }
}

/// A controller can delete every entry that it sees listed, whatever version added it.
#[test]
fn strict_commands_of_other_versions_find_entries_of_either_reading() {
    for (author, other) in [(OLD_CONTROLLER, NEW_CONTROLLER), (NEW_CONTROLLER, OLD_CONTROLLER)] {
        let mut bench = bench(LookupMethod::Adaptive);
        bench.ask(author, flow(FlowCommand::Add, of_type(eth_type::IPV4), 2));
        bench.ask(other, flow(FlowCommand::ModifyStrict, of_type(eth_type::IPV4), 3));
        assert_eq!(bench.ports_of(1, &frame(ONE)), [3], "{author:?}");
        bench.ask(other, flow(FlowCommand::DeleteStrict, of_type(eth_type::IPV4), 0));
        assert_eq!(told(&mut bench, author, Match::any()), [], "{author:?}");
    }
}

/// A match and priority identify one entry. The version that added it decides which frames it matches.
#[test]
fn an_entry_takes_the_place_of_one_of_another_version() {
    for (author, other) in [(OLD_CONTROLLER, NEW_CONTROLLER), (NEW_CONTROLLER, OLD_CONTROLLER)] {
        let mut bench = bench(LookupMethod::Adaptive);
        for (channel, port) in [(author, 2), (other, 3)] {
            let mut added = FlowMod::add(100, of_type(eth_type::IPV4), apply(output(port)));
            added.flags = FlowFlags::SEND_FLOW_REM;
            assert_eq!(bench.ask(channel, Body::FlowMod(added)), [], "nobody is told of an entry that is replaced");
            assert_eq!(bench.ports_of(1, &frame(ONE)), [port]);
            let expected = if channel == NEW_CONTROLLER { vec![port] } else { vec![] };
            assert_eq!(bench.ports_of(1, &frame(TWO)), expected);
            assert_eq!(told(&mut bench, NEW_CONTROLLER, Match::any()), [(of_type(eth_type::IPV4), 100)]);
        }
        let wrong =
            FlowMod { instructions: apply(output(2)), ..FlowMod::add(100, of_type(eth_type::IPV4), Vec::new()) };
        commit_refused(&mut bench, BundleFlags::ORDERED, [wrong]);
        assert_eq!(bench.ports_of(1, &frame(ONE)), [3], "what a bundle replaced is back");
        assert_eq!(bench.ports_of(1, &frame(TWO)).len(), usize::from(other == NEW_CONTROLLER));
    }
}

/// In an atomic bundle the entry stays in the lookups until the commit. In an ordered bundle it leaves the table and
/// is put back.
#[test]
fn an_entry_that_a_bundle_takes_back_is_read_as_before() {
    for flags in [BundleFlags::ORDERED, BundleFlags::ATOMIC] {
        let mut bench = bench(LookupMethod::Adaptive);
        bench.ask(OLD_CONTROLLER, flow(FlowCommand::Add, of_type(eth_type::IPV4), 2));
        let deletes = FlowMod { command: FlowCommand::Delete, ..FlowMod::add(0, Match::any(), Vec::new()) };
        commit_refused(&mut bench, flags, [deletes]);
        assert_eq!(bench.ports_of(1, &frame(ONE)), [2]);
        assert_eq!(bench.ports_of(1, &frame(TWO)), [0_u32; 0]);
    }
}
