//! Messages about many entries: they run in steps, with packets in between.
use crate::bench::*;
use proptest::prelude::*;
use std::time::Duration;
use weir_datapath::{ChannelId, DatapathConfig, LookupMethod};
use weir_openflow::model::error::FlowModFailed;
use weir_openflow::model::group::{Bucket, BucketId, GroupCommand, GroupKind, GroupMod};
use weir_openflow::model::meter::{Band, BandKind, MeterCommand, MeterMod};
use weir_openflow::model::multipart::{FlowRequest, FlowStats};
use weir_openflow::model::{
    Action, BufferId, ErrorType, FlowCommand, FlowFlags, FlowMod, GroupId, Instruction, Match, MeterId, PortNo, TableId,
};
use weir_openflow::{Body, Message, Version};
use weir_packet::Field;
use weir_packet::craft::FrameBuilder;

/// Maximum number of entries changed per step.
const PER_STEP: usize = 16;

/// Returns an entry for frames to an address.
pub(crate) fn to(number: u32) -> FlowMod {
    let matching = Match::any().with(Field::EthDst, mac(number.into()).to_bits());
    FlowMod { cookie: number.into(), ..FlowMod::add(10, matching, apply(output(2))) }
}

pub(crate) fn frame_to(number: u32) -> Vec<u8> {
    FrameBuilder::ethernet(mac(number.into()), mac(1)).payload(&[5; 100]).build()
}

fn bench(entries: u32) -> Bench {
    let mut bench = Bench::controlled();
    (1..=entries).for_each(|number| bench.flow_mod(&to(number)).unwrap());
    bench
}

/// Returns the present entries, ordered by table and cookie. Does not begin or finish any work.
pub(crate) fn entries(bench: &Bench) -> Vec<FlowStats> {
    let mut walk = bench.datapath.flow_walk(&FlowRequest::all()).unwrap();
    let mut found = Vec::new();
    while bench.datapath.walk_flows(bench.now, &mut walk, 1000, &mut found) {}
    found.sort_by_key(|entry| (entry.table, entry.cookie, entry.priority, format!("{:?}", entry.matching)));
    found
}

pub(crate) fn begin(bench: &mut Bench, channel: ChannelId, body: Body) {
    let message = Message { xid: 77, body };
    bench.datapath.begin(bench.now, channel, message, &mut bench.pool, &mut bench.out);
}

pub(crate) fn go_on(bench: &mut Bench) {
    bench.datapath.go_on(bench.now, &mut bench.pool, &mut bench.out);
}

/// Finishes the unfinished message. Returns the number of entries changed by each step, as counted by `count`.
fn steps(bench: &mut Bench, count: impl Fn(&Bench) -> usize) -> Vec<usize> {
    let (mut steps, mut before) = (Vec::new(), count(bench));
    while bench.datapath.is_busy() {
        go_on(bench);
        let now = count(bench);
        steps.push(now.abs_diff(before));
        before = now;
    }
    steps
}

fn group_mod(command: GroupCommand, group: GroupId) -> Body {
    let buckets = if command == GroupCommand::Add { vec![Bucket::new(BucketId(0), output(2))] } else { Vec::new() };
    let command_bucket = BucketId::ALL;
    Body::GroupMod(GroupMod { command, kind: GroupKind::All, group, command_bucket, buckets, properties: Vec::new() })
}

#[test]
fn deleting_all_goes_in_steps_with_packets_in_between() {
    let mut bench = bench(2000);
    bench.add(20, from_port(3), output(4));
    let matching = Match::any().with_masked(Field::EthDst, 0x0200_0000_0000_u64, 0xffff_0000_0000_u64);
    let delete = FlowMod { command: FlowCommand::Delete, matching, ..FlowMod::delete_all() };
    begin(&mut bench, CONTROLLER, Body::FlowMod(delete));
    let mut still = Vec::new();
    while bench.datapath.is_busy() {
        let before = entries(&bench).len();
        assert_eq!(bench.ports_of(3, &frame_to(1)), [4], "an entry that stays forwards all the time");
        still.push(bench.ports_of(1, &frame_to(1)).len() + bench.ports_of(1, &frame_to(2000)).len());
        go_on(&mut bench);
        assert!(before - entries(&bench).len() <= PER_STEP);
    }
    assert!(still.len() > 2000 / PER_STEP - 10, "{} steps", still.len());
    assert!(still.is_sorted_by(|a, b| a >= b) && still.contains(&1), "what is gone is gone: {still:?}");
    assert_eq!((entries(&bench).len(), bench.ports_of(1, &frame_to(1))), (1, vec![]));
    assert_eq!(bench.told(CONTROLLER), []);
}

#[test]
fn what_comes_behind_waits_until_it_is_done() {
    let mut bench = bench(500);
    begin(&mut bench, CONTROLLER, Body::FlowMod(FlowMod::delete_all()));
    assert!(bench.datapath.is_busy() && entries(&bench).len() > 400);
    begin(&mut bench, CONTROLLER, Body::BarrierRequest);
    assert_eq!((entries(&bench).len(), bench.told(CONTROLLER)), (0, vec![Body::BarrierReply]));
}

#[test]
fn a_modify_goes_in_steps_and_releases_its_packet_at_the_end() {
    let mut bench = bench(1000);
    bench
        .flow_mod(&FlowMod::add(0, Match::any(), apply(vec![Action::Output { port: PortNo::CONTROLLER, max_len: 64 }])))
        .unwrap();
    bench.receive(1, &frame_to(5000));
    let buffer = bench.packet_ins(CONTROLLER)[0].buffer_id.expect("it was kept");
    let matching = Match::any().with_masked(Field::EthDst, 0x0200_0000_0000_u64, 0xffff_0000_0000_u64);
    let modify = FlowMod {
        command: FlowCommand::Modify,
        buffer_id: Some(buffer),
        ..FlowMod::add(1, matching, apply(output(3)))
    };
    begin(&mut bench, CONTROLLER, Body::FlowMod(modify.clone()));
    let changed = |bench: &Bench| entries(bench).iter().filter(|entry| entry.instructions == apply(output(3))).count();
    assert!(changed(&bench) <= PER_STEP && bench.datapath.is_busy());
    let steps = steps(&mut bench, changed);
    assert!(steps.len() >= 1000 / PER_STEP && steps.iter().all(|changed| *changed <= PER_STEP), "{steps:?}");
    assert_eq!(changed(&bench), 1000);
    // The packet went through the tables: it matches the miss entry again.
    assert_eq!(bench.packet_ins(CONTROLLER).len(), 1);
    let again = FlowMod { buffer_id: Some(BufferId(buffer.0)), ..modify };
    assert!(matches!(bench.error_of(CONTROLLER, Body::FlowMod(again)), Some(ErrorType::BadRequest(_))));
}

#[test]
fn overlaps_are_looked_for_in_steps() {
    let mut bench = bench(1000);
    // Masks that the overlap check cannot tell apart by hashes.
    let add = |number: u32, port: u32| {
        let matching = from_port(port).with_masked(Field::EthDst, u64::from(number), 0xffff_u64);
        FlowMod { flags: FlowFlags::CHECK_OVERLAP, ..FlowMod::add(10, matching, apply(output(4))) }
    };
    let before = entries(&bench);
    begin(&mut bench, CONTROLLER, Body::FlowMod(add(500, 1)));
    assert!(bench.datapath.is_busy());
    steps(&mut bench, |_| 0);
    let told = bench.told(CONTROLLER);
    assert!(matches!(&told[..], [Body::Error(error)] if error.error == FlowModFailed::Overlap.into()), "{told:?}");
    assert_eq!(entries(&bench), before);
    begin(&mut bench, CONTROLLER, Body::FlowMod(add(1001, 1)));
    assert!(bench.datapath.is_busy() && entries(&bench).len() == 1000);
    steps(&mut bench, |_| 0);
    assert_eq!((bench.told(CONTROLLER), entries(&bench).len()), (vec![], 1001));
}

#[test]
fn entries_go_with_their_group_or_meter_in_steps() {
    let bands = || vec![Band { rate: 1_000_000, burst_size: 0, kind: BandKind::Drop }];
    let meter = |command| MeterMod { command, meter: MeterId(3), flags: 1, bands: bands() };
    let uses: [(Vec<Instruction>, Body); 2] = [
        (apply(vec![Action::Group(GroupId(7))]), group_mod(GroupCommand::Delete, GroupId(7))),
        (
            [vec![Instruction::Meter(MeterId(3))], apply(output(2))].concat(),
            Body::MeterMod(meter(MeterCommand::Delete)),
        ),
    ];
    for (instructions, delete) in uses {
        let mut bench = bench(300);
        bench.ask(CONTROLLER, group_mod(GroupCommand::Add, GroupId(7)));
        bench.ask(CONTROLLER, Body::MeterMod(meter(MeterCommand::Add)));
        for number in 1001..=1500 {
            let flags = FlowFlags::SEND_FLOW_REM;
            bench.flow_mod(&FlowMod { instructions: instructions.clone(), flags, ..to(number) }).unwrap();
        }
        assert_eq!(bench.told(CONTROLLER), []);
        begin(&mut bench, CONTROLLER, delete);
        assert!(entries(&bench).len() > 700);
        let steps = steps(&mut bench, |bench| entries(bench).len());
        assert!(steps.iter().all(|changed| *changed <= PER_STEP), "{steps:?}");
        assert_eq!((entries(&bench).len(), bench.told(CONTROLLER).len()), (300, 500));
    }
}

#[test]
fn a_flow_mod_that_names_entries_exactly_is_done_at_once() {
    let mut bench = bench(3000);
    bench.add(5, from_port(3), output(4));
    for command in [FlowCommand::Modify, FlowCommand::Delete] {
        begin(&mut bench, CONTROLLER, Body::FlowMod(FlowMod { command, ..to(17) }));
        assert!(!bench.datapath.is_busy());
    }
    let again = FlowMod { flags: FlowFlags::CHECK_OVERLAP, ..to(17) };
    begin(&mut bench, CONTROLLER, Body::FlowMod(again.clone()));
    assert!(!bench.datapath.is_busy() && bench.told(CONTROLLER).is_empty());
    assert_eq!(entries(&bench).len(), 3001);
    begin(&mut bench, CONTROLLER, Body::FlowMod(again));
    assert!(!bench.datapath.is_busy());
    assert!(
        matches!(&bench.told(CONTROLLER)[..], [Body::Error(error)] if error.error == FlowModFailed::Overlap.into())
    );
}

#[test]
fn ends_of_entries_come_a_few_at_a_time() {
    let mut bench = Bench::controlled();
    for number in 1..=1000 {
        let ends = FlowMod { hard_timeout: 5, flags: FlowFlags::SEND_FLOW_REM, ..to(number) };
        bench.flow_mod(&ends).unwrap();
    }
    bench.wait(Duration::from_secs(5));
    let (mut calls, mut left) = (0, 1000);
    while left > 0 {
        let next = bench.datapath.expire(bench.now, &mut bench.out);
        let now = entries(&bench).len();
        assert!(left - now <= 2 * PER_STEP, "{} at once", left - now);
        assert!(now == 0 || next.is_some_and(|at| at <= bench.now), "the rest is not put off");
        (calls, left) = (calls + 1, now);
        assert!(calls < 1000);
    }
    assert_eq!(bench.told(CONTROLLER).len(), 1000);
}

/// Checks the bytes that tables account for, independent of the allocator: when entries are removed in the order of
/// their addition, and all at once.
#[test]
fn memory_goes_back_as_entries_go() {
    const ENTRIES: u32 = 60_000;
    const STAY: u32 = 10;
    let held = |bench: &Bench| bench.datapath.table_shapes(&[]).first().and_then(|table| table.bytes).unwrap_or(0);
    for is_one_message in [false, true] {
        let mut bench = bench(ENTRIES);
        let full = held(&bench);
        assert!(full > 60 * ENTRIES as usize, "{full} bytes");
        if is_one_message {
            let matching = Match::any().with_masked(Field::EthDst, 0x0200_0000_0000_u64, 0xffff_0000_0000_u64);
            bench.ask(CONTROLLER, Body::FlowMod(FlowMod { matching, ..FlowMod::delete_all() }));
            (1..=STAY).for_each(|number| bench.flow_mod(&to(number)).unwrap());
        } else {
            for number in STAY + 1..=ENTRIES {
                bench.flow_mod(&FlowMod { command: FlowCommand::DeleteStrict, ..to(number) }).unwrap();
            }
        }
        while bench.datapath.expire(bench.now, &mut bench.out).is_some_and(|at| at <= bench.now) {}
        assert_eq!(entries(&bench).len(), STAY as usize);
        let left = held(&bench);
        assert!(left < full / 10, "{left} of {full} bytes are left, all at once: {is_one_message}");
    }
}

/// A change of the tables.
#[derive(Debug, Clone)]
enum Change {
    Flow(FlowMod),
    DeleteGroup(GroupId),
}

/// Generates matches from few fields, values and masks, so that flow-mods concern the same entries.
fn any_match() -> impl Strategy<Value = Match> {
    let masked = |field: Field| {
        (0..6_u64, prop::sample::select(vec![0_u64, 1, 3, 7]))
            .prop_map(move |(value, mask)| (field, value & mask, mask))
    };
    (masked(Field::EthDst), masked(Field::EthSrc), prop::option::of(1..4_u32)).prop_map(|(dst, src, port)| {
        let fields = [dst, src].into_iter().filter(|(.., mask)| *mask != 0);
        let matching = port.map_or(Match::any(), |port| Match::any().with(Field::InPort, port));
        fields.fold(matching, |matching, (field, value, mask)| matching.with_masked(field, value, mask))
    })
}

pub(crate) fn any_flow() -> impl Strategy<Value = FlowMod> {
    let commands = vec![
        FlowCommand::Add,
        FlowCommand::Add,
        FlowCommand::Add,
        FlowCommand::Modify,
        FlowCommand::ModifyStrict,
        FlowCommand::Delete,
        FlowCommand::DeleteStrict,
    ];
    let what = (prop::sample::select(commands), any_match(), 1..4_u16, 0..3_u8, 0..4_u64);
    let how = (prop::option::weighted(0.2, 0..4_u64), any::<bool>(), any::<bool>(), 1..6_u32);
    (what, how).prop_map(|((command, matching, priority, table, cookie), (mask, checks, resets, does))| {
        let actions = if does == 5 { vec![Action::Group(GroupId(1))] } else { output(does) };
        let mut flags = FlowFlags::SEND_FLOW_REM;
        flags.0 |=
            if checks { FlowFlags::CHECK_OVERLAP.0 } else { 0 } | if resets { FlowFlags::RESET_COUNTS.0 } else { 0 };
        let is_delete = matches!(command, FlowCommand::Delete | FlowCommand::DeleteStrict);
        let table = if is_delete && table == 2 { TableId::ALL } else { TableId(table % 2) };
        FlowMod {
            command,
            table,
            cookie,
            cookie_mask: mask.unwrap_or(0),
            flags,
            ..FlowMod::add(priority, matching, apply(actions))
        }
    })
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        40 => any_flow().prop_map(Change::Flow),
        1 => prop::sample::select(vec![GroupId(1), GroupId::ALL]).prop_map(Change::DeleteGroup),
    ]
}

fn random_bench(lookup: LookupMethod) -> Bench {
    let mut bench = Bench::with(DatapathConfig { lookup, ..DatapathConfig::default() });
    bench.datapath.channel_up(bench.now, CONTROLLER, Version::V13);
    bench
}

/// Returns the messages to a channel, in an order independent of places.
fn sorted(mut told: Vec<Body>) -> Vec<String> {
    told.sort_by_key(|body| format!("{body:?}"));
    told.into_iter().map(|body| format!("{body:?}")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Steps with packets in between have the same result as a single step, whichever classifier selects the entries
    /// to examine.
    #[test]
    fn steps_come_to_the_same_as_all_at_once(changes in prop::collection::vec(any_change(), 1..120)) {
        let mut whole = random_bench(LookupMethod::Adaptive);
        let mut stepped = random_bench(LookupMethod::Adaptive);
        let mut linear = random_bench(LookupMethod::Linear);
        for change in changes {
            for bench in [&mut whole, &mut stepped, &mut linear] {
                bench.ask(CONTROLLER, group_mod(GroupCommand::Add, GroupId(1)));
                bench.told(CONTROLLER);
            }
            let body = || match &change {
                Change::Flow(flow) => Body::FlowMod(flow.clone()),
                Change::DeleteGroup(group) => group_mod(GroupCommand::Delete, *group),
            };
            begin(&mut stepped, CONTROLLER, body());
            while stepped.datapath.is_busy() {
                stepped.receive(1, &frame_to(1));
                go_on(&mut stepped);
            }
            let expected = sorted(linear.ask(CONTROLLER, body()));
            prop_assert_eq!(&sorted(whole.ask(CONTROLLER, body())), &expected);
            let told = stepped.told(CONTROLLER);
            // Only one bench counted packets.
            prop_assert_eq!(told.len(), expected.len());
        }
        let seen = |bench: &Bench| -> Vec<FlowStats> {
            let entries = entries(bench).into_iter();
            entries.map(|entry| FlowStats { packet_count: 0, byte_count: 0, ..entry }).collect()
        };
        prop_assert_eq!(seen(&whole), seen(&linear));
        prop_assert_eq!(seen(&stepped), seen(&linear));
    }
}
