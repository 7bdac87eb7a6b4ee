//! Atomic bundles: they are committed in steps, and packets see all changes or none (OpenFlow 1.4.1, 6.8).
use crate::bench::*;
use crate::sweeps::{any_flow, begin, entries, frame_to, go_on, to};
use proptest::prelude::*;
use weir_datapath::{ChannelId, DatapathConfig, LookupMethod};
use weir_openflow::model::bundle::{BundleAdd, BundleCommand, BundleControl, BundleFlags, BundleId};
use weir_openflow::model::error::{BundleFailed, ErrorMessage};
use weir_openflow::model::multipart::{FlowStats, ReplyBody, RequestBody};
use weir_openflow::model::{FlowCommand, FlowMod, Match, TableId};
use weir_openflow::{Body, Message, Version};
use weir_packet::Field;
use weir_packet::craft::FrameBuilder;

pub(crate) const CHANNEL: ChannelId = ChannelId(15);
const ATOMIC: BundleFlags = BundleFlags(BundleFlags::ATOMIC.0 | BundleFlags::ORDERED.0);

fn bench(lookup: LookupMethod) -> Bench {
    let mut bench = Bench::with(DatapathConfig { lookup, ..DatapathConfig::default() });
    bench.datapath.channel_up(bench.now, CHANNEL, Version::V15);
    bench
}

fn control(flags: BundleFlags, command: BundleCommand) -> Body {
    Body::BundleControl(BundleControl { bundle: BundleId(1), command, flags, properties: Vec::new() })
}

/// Opens a bundle and adds messages to it.
fn fill(bench: &mut Bench, flags: BundleFlags, messages: impl IntoIterator<Item = FlowMod>) {
    bench.ask(CHANNEL, control(flags, BundleCommand::OpenRequest));
    for flow in messages {
        let message = Box::new(Message { xid: 77, body: Body::FlowMod(flow) });
        let add = BundleAdd { bundle: BundleId(1), flags, message, properties: Vec::new() };
        assert_eq!(bench.ask(CHANNEL, Body::BundleAdd(add)), []);
    }
}

/// Commits the bundle and calls `look` after each step. Returns the number of steps.
fn commit(bench: &mut Bench, flags: BundleFlags, mut look: impl FnMut(&mut Bench)) -> usize {
    begin(bench, CHANNEL, control(flags, BundleCommand::CommitRequest));
    let mut steps = 0;
    while bench.datapath.is_busy() {
        look(bench);
        go_on(bench);
        steps += 1;
    }
    steps
}

fn assert_refused(bench: &mut Bench) {
    let told = bench.told(CHANNEL);
    let failed = BundleFailed::MsgFailed.into();
    assert!(matches!(told.last(), Some(Body::Error(ErrorMessage { error, .. })) if *error == failed), "{told:?}");
}

/// Adds messages and an invalid one to a bundle of [`CHANNEL`], which must be refused.
pub(crate) fn commit_refused(bench: &mut Bench, flags: BundleFlags, messages: impl IntoIterator<Item = FlowMod>) {
    let wrong = FlowMod { table: TableId(200), ..to(1) };
    fill(bench, flags, messages.into_iter().chain([wrong]));
    commit(bench, flags, |_| {});
    assert_refused(bench);
}

fn is_done(told: &[Body]) -> bool {
    matches!(told.last(), Some(Body::BundleControl(control)) if control.command == BundleCommand::CommitReply)
}

#[test]
fn packets_see_all_of_a_long_bundle_at_once() {
    let mut bench = bench(LookupMethod::Adaptive);
    (1..=1000).for_each(|number| bench.flow_mod(&to(number)).unwrap());
    bench.add(1, Match::any(), output(4));
    // The first third is deleted, the second is modified, the last is deleted and added again, and new entries are
    // added.
    let changed = |number: u32, port| FlowMod { instructions: apply(output(port)), ..to(number) };
    let deletes = |number: u32| FlowMod { command: FlowCommand::DeleteStrict, ..to(number) };
    let go = (1..=300).map(deletes);
    let change = (301..=600).map(|number| FlowMod { command: FlowCommand::ModifyStrict, ..changed(number, 3) });
    let back = (601..=900).flat_map(|number| [deletes(number), changed(number, 1)]);
    let new = (2001..=2300).map(|number| changed(number, 3));
    fill(&mut bench, ATOMIC, go.chain(change).chain(back).chain(new));
    let probes = [1, 300, 301, 600, 601, 900, 1000, 2001, 2300, 5000];
    let see =
        |bench: &mut Bench| -> Vec<Vec<u32>> { probes.map(|number| bench.ports_of(2, &frame_to(number))).to_vec() };
    let ports = |ports: [u32; 10]| ports.map(|port| if port == 2 { vec![] } else { vec![port] }).to_vec();
    // Packets from port 2 that are output to port 2 do not leave.
    let (before, after) = (ports([2, 2, 2, 2, 2, 2, 2, 4, 4, 4]), ports([4, 4, 3, 3, 1, 1, 2, 3, 3, 4]));
    let mut seen = Vec::new();
    let steps = commit(&mut bench, ATOMIC, |bench| seen.push(see(bench)));
    assert!(steps > 1500 / 16, "{steps} steps");
    let turn = seen.iter().position(|seen| *seen == after).expect("it takes effect before all is tidied up");
    assert!(turn > 1500 / 16 && turn + 10 < steps);
    assert!(seen[..turn].iter().all(|seen| *seen == before) && seen[turn..].iter().all(|seen| *seen == after));
    assert_eq!(see(&mut bench), after);
    assert!(is_done(&bench.told(CHANNEL)));
    assert_eq!(entries(&bench).len(), 1001);
}

#[test]
fn packets_see_nothing_of_one_that_fails() {
    let mut bench = bench(LookupMethod::Adaptive);
    (1..=300).for_each(|number| bench.flow_mod(&to(number)).unwrap());
    let before = entries(&bench);
    let wrong = FlowMod { table: TableId(200), ..to(1) };
    let deletes = (1..=300).map(|number| FlowMod { command: FlowCommand::DeleteStrict, ..to(number) });
    let adds = (150..=400).map(|number| FlowMod { instructions: apply(output(3)), cookie: 1, ..to(number) });
    fill(&mut bench, ATOMIC, deletes.chain(adds).chain([wrong]));
    let steps = commit(&mut bench, ATOMIC, |bench| {
        let seen = [1, 200, 300, 301, 400].map(|number| bench.ports_of(1, &frame_to(number)));
        assert_eq!(seen, [vec![2], vec![2], vec![2], vec![], vec![]]);
    });
    assert!(steps > 2 * 550 / 16);
    assert_refused(&mut bench);
    let uncounted = |entries: Vec<FlowStats>| -> Vec<FlowStats> {
        entries.into_iter().map(|entry| FlowStats { packet_count: 0, byte_count: 0, ..entry }).collect()
    };
    assert_eq!(uncounted(entries(&bench)), uncounted(before));
    assert_eq!(bench.ports_of(1, &frame_to(200)), [2]);
}

#[test]
fn what_entries_count_is_what_packets_see() {
    let mut bench = bench(LookupMethod::Adaptive);
    let wide = Match::any().with_masked(Field::EthDst, 0x0200_0000_0000_u64, 0xffff_0000_0000_u64);
    bench.flow_mod(&FlowMod { cookie: 7, ..FlowMod::add(1, wide, apply(output(4))) }).unwrap();
    fill(&mut bench, ATOMIC, (1..=500).map(to));
    let mut sent = 0;
    commit(&mut bench, ATOMIC, |bench| {
        let is_before = bench.ports_of(1, &frame_to(400)) == [4];
        sent += u64::from(is_before);
    });
    assert!(sent > 10);
    let counted: Vec<(u64, u64)> = entries(&bench).iter().map(|entry| (entry.cookie, entry.packet_count)).collect();
    let of = |cookie| counted.iter().find(|(other, _)| *other == cookie).map(|(_, packets)| *packets);
    let bytes = entries(&bench).iter().find(|entry| entry.cookie == 7).map(|entry| entry.byte_count);
    assert_eq!((of(7), bytes), (Some(sent), Some(sent * frame_to(1).len() as u64)));
    assert!(of(400).is_some_and(|packets| packets > 0 && packets < 1000), "{:?}", of(400));
}

#[test]
fn packets_that_see_nothing_of_a_bundle_are_no_matches() {
    let mut bench = bench(LookupMethod::Adaptive);
    fill(&mut bench, ATOMIC, (1..=500).map(to));
    let (mut sent, mut missed) = (0_u64, 0_u64);
    commit(&mut bench, ATOMIC, |bench| {
        missed += u64::from(bench.ports_of(1, &frame_to(1)).is_empty());
        sent += 1;
    });
    assert!(is_done(&bench.told(CHANNEL)));
    let parts = bench.multipart(CHANNEL, RequestBody::Table).unwrap();
    let table = parts.into_iter().find_map(|part| match part {
        ReplyBody::Table(tables) => tables.into_iter().next(),
        _ => None,
    });
    let table = table.expect("there is a table");
    assert!(missed > 10 && missed < sent, "{missed} of {sent}");
    assert_eq!((table.lookup_count, table.matched_count), (sent, sent - missed));
}

/// Returns frames that differ in the fields that random entries match.
fn probes() -> Vec<(u32, Vec<u8>)> {
    let all =
        (1..4).flat_map(|port| (0..8_u64).flat_map(move |dst| (0..8_u64).step_by(2).map(move |src| (port, dst, src))));
    all.map(|(port, dst, src)| {
        let address = |bits| weir_packet::MacAddr::from_bits(bits);
        (port, FrameBuilder::ethernet(address(dst), address(src)).payload(&[1; 60]).build())
    })
    .collect()
}

/// Returns the flow-mod with a priority that no entry of another mask has, so that the winner of several matching
/// entries is defined.
fn untied(flow: FlowMod) -> FlowMod {
    let masks = [Field::EthDst, Field::EthSrc, Field::InPort].map(|field| {
        let mask = flow.matching.get(field).map_or(0, |(_, mask)| mask & 7);
        u16::try_from(mask).unwrap()
    });
    let rank = masks.into_iter().fold(0, |rank, mask| rank * 8 + mask);
    FlowMod { priority: rank * 4 + flow.priority, ..flow }
}

fn see(bench: &mut Bench, probes: &[(u32, Vec<u8>)]) -> Vec<Vec<u32>> {
    probes.iter().map(|(port, frame)| bench.ports_of(*port, frame)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// At each moment all packets see either the tables before the bundle or those after it.
    #[test]
    fn packets_see_all_or_nothing(
        first in prop::collection::vec(any_flow(), 0..60),
        bundle in prop::collection::vec(any_flow(), 1..60),
        is_linear in any::<bool>(),
    ) {
        let lookup = if is_linear { LookupMethod::Linear } else { LookupMethod::Adaptive };
        let [first, bundle] = [first, bundle].map(|flows| flows.into_iter().map(untied).collect::<Vec<_>>());
        let [mut stepped, mut old, mut new] = [(); 3].map(|()| bench(lookup));
        for bench in [&mut stepped, &mut old, &mut new] {
            for flow in &first {
                // All benches refuse the same flow-mods.
                let _ = bench.flow_mod(flow);
            }
        }
        let probes = probes();
        // The messages applied one by one, in the same order, give the expected result.
        let mut refused = false;
        for flow in &bundle {
            refused |= new.flow_mod(flow).is_err();
        }
        fill(&mut stepped, ATOMIC, bundle.iter().cloned());
        let mut looks = Vec::new();
        commit(&mut stepped, ATOMIC, |bench| looks.push(see(bench, &probes)));
        let done = is_done(&stepped.told(CHANNEL));
        prop_assert_eq!(done, !refused);
        let (before, after) = (see(&mut old, &probes), see(&mut stepped, &probes));
        let turn = looks.iter().position(|look| *look != before).unwrap_or(looks.len());
        prop_assert!(looks[turn..].iter().all(|look| *look == after), "a mix of both");
        let uncounted = |bench: &Bench| -> Vec<FlowStats> {
            entries(bench).into_iter().map(|entry| FlowStats { packet_count: 0, byte_count: 0, ..entry }).collect()
        };
        prop_assert_eq!(uncounted(&stepped), uncounted(if done { &new } else { &old }));
        if !done {
            prop_assert_eq!(after, before);
        }
    }
}
