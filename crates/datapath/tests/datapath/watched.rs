//! Tests of the interfaces for callers that delay messages: predictions about flow-mods, and reports about entries
//! and packets.
use crate::bench::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use weir_datapath::{ChannelId, EntryChange, FlowModEffect};
use weir_openflow::model::{FlowCommand, FlowMod, Match, PortNo, TableId};
use weir_openflow::{Body, Message, Version};
use weir_packet::{Field, Frame};

/// A channel that speaks 1.0.
const OLD: ChannelId = ChannelId(70);

fn matching() -> impl Strategy<Value = Match> {
    let port = prop::option::of(1_u32..3);
    let destination = prop::option::of((0_u64..2, prop::bool::ANY));
    (port, destination).prop_map(|(port, destination)| {
        let matching = port.into_iter().fold(Match::any(), |matching, port| matching.with(Field::InPort, port));
        destination.into_iter().fold(matching, |matching, (last, masked)| match masked {
            true => matching.with_masked(Field::EthDst, last, 1_u64),
            false => matching.with(Field::EthDst, last),
        })
    })
}

fn flow_mod() -> impl Strategy<Value = FlowMod> {
    let command = prop::sample::select(vec![
        FlowCommand::Add,
        FlowCommand::Add,
        FlowCommand::Add,
        FlowCommand::Modify,
        FlowCommand::ModifyStrict,
        FlowCommand::Delete,
        FlowCommand::DeleteStrict,
    ]);
    let table = prop::sample::select(vec![0_u8, 0, 0, 1, 200, 255]);
    (command, table, 1_u16..4, matching(), 0_u64..3, any::<bool>()).prop_map(
        |(command, table, priority, matching, cookie, filters)| FlowMod {
            command,
            table: TableId(table),
            cookie,
            cookie_mask: if filters && command != FlowCommand::Add { u64::MAX } else { 0 },
            ..FlowMod::add(priority, matching, apply(output(2 + u32::from(priority))))
        },
    )
}

#[derive(Debug, Default, PartialEq)]
struct Sum {
    added: Vec<(u64, u16)>,
    modified: BTreeSet<u64>,
    removed: BTreeSet<u64>,
}

fn changes(bench: &mut Bench) -> Sum {
    let (mut list, mut sum) = (Vec::new(), Sum::default());
    bench.datapath.entry_changes(&mut list);
    for change in list {
        match change {
            EntryChange::Added { entry, priority, .. } => sum.added.push((entry, priority)),
            EntryChange::Modified { entry } => _ = sum.modified.insert(entry),
            EntryChange::Removed { entry } => _ = sum.removed.insert(entry),
        }
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// A flow-mod changes exactly what was predicted for it.
    #[test]
    fn what_is_told_is_what_happens(flows in prop::collection::vec((flow_mod(), any::<bool>()), 1..40)) {
        let mut bench = Bench::controlled();
        bench.datapath.channel_up(bench.now, OLD, Version::V10);
        bench.datapath.watch_entries();
        for (flow, old) in flows {
            let channel = if old { OLD } else { CONTROLLER };
            let body = Body::FlowMod(flow.clone());
            let subject = bench.datapath.subject(channel, &body);
            let message = Message { xid: 1, body };
            bench.datapath.handle(bench.now, channel, message, &mut bench.pool, &mut bench.out);
            let refused = bench.out.messages.drain(..).any(|(_, message)| matches!(message.body, Body::Error(_)));
            let sum = changes(&mut bench);
            match subject {
                FlowModEffect::Nothing => prop_assert!(refused && sum == Sum::default(), "{flow:?} {sum:?}"),
                FlowModEffect::Add { priority } => {
                    prop_assert_eq!(sum.added.iter().map(|(_, priority)| *priority).collect::<Vec<_>>(), [priority]);
                    prop_assert!(sum.modified.is_empty() && sum.removed.is_empty() && !refused);
                }
                // Another entry takes its place.
                FlowModEffect::Modify(names) if !sum.added.is_empty() => {
                    prop_assert_eq!(sum.removed, BTreeSet::from_iter(names));
                    prop_assert_eq!(sum.added.len(), 1);
                }
                FlowModEffect::Modify(names) => prop_assert_eq!(sum.modified, BTreeSet::from_iter(names)),
                FlowModEffect::Delete(names) => prop_assert_eq!(sum.removed, BTreeSet::from_iter(names)),
            }
        }
    }
}

#[test]
fn a_packet_tells_which_entries_it_met_and_what_they_look_at() {
    let mut bench = Bench::controlled();
    bench.datapath.watch_entries();
    let goto = weir_openflow::model::Instruction::GotoTable(TableId(1));
    bench.flow_mod(&FlowMod::add(1, from_port(1), vec![goto])).unwrap();
    let ip =
        Match::any().with(Field::EthType, 0x0800_u16).with_masked(Field::Ipv4Dst, 0x0a00_0000_u32, 0xff00_0000_u32);
    bench.flow_mod(&FlowMod { table: TableId(1), ..FlowMod::add(2, ip, apply(output(2))) }).unwrap();
    let mut list = Vec::new();
    bench.datapath.entry_changes(&mut list);
    let [
        EntryChange::Added { entry: first, ip: false, ethernet: false, .. },
        EntryChange::Added { entry: second, ip: true, .. },
    ] = list[..]
    else {
        panic!("{list:?}")
    };
    let frame = |last: u8| {
        let craft = weir_packet::craft::FrameBuilder::ethernet(mac(2), mac(1));
        Frame::from_bytes(&craft.ipv4([10, 0, 0, 1].into(), [last, 0, 0, 2].into()).udp(1, 2).payload(&[0; 20]).build())
    };
    for (last, expected, sent) in [(10, vec![first, second], 1), (11, vec![first], 0)] {
        let mut met = Vec::new();
        let (pool, out) = (&mut bench.pool, &mut bench.out);
        bench.datapath.process_one(bench.now, PortNo(1), frame(last), pool, out, &mut met);
        assert_eq!(met, expected);
        let frames: usize = bench.out.frames.iter_mut().map(|(_, frames)| frames.drain(..).count()).sum();
        assert_eq!(frames, sent);
    }
    let stats = bench.datapath.flow_walk(&weir_openflow::model::multipart::FlowRequest::all());
    let (mut walk, mut found) = (stats.unwrap(), Vec::new());
    while bench.datapath.walk_flows(bench.now, &mut walk, 100, &mut found) {}
    let counted: Vec<u64> = found.iter().map(|entry| entry.packet_count).collect();
    assert_eq!(counted, [2, 1], "they are counted as others");
}
