//! Egress tables (OpenFlow 1.5.1, 5.1), which every output passes through.
use crate::bench::*;
use weir_datapath::ChannelId;
use weir_openflow::model::error::{BadAction, BadInstruction, TableFeaturesFailed};
use weir_openflow::model::group::{Bucket, BucketId, GroupCommand, GroupKind, GroupMod};
use weir_openflow::model::multipart::TableFeaturesCommand::{Disable, Enable, Modify};
use weir_openflow::model::multipart::{MultipartRequest, ReplyBody, RequestBody, TableFeatures, TableFeaturesCommand};
use weir_openflow::model::{Action, FlowMod, GroupId, Instruction, Match, NxAction, PacketOut, PortNo, TableId};
use weir_openflow::{Body, Version};
use weir_packet::Field;

const NEWEST: ChannelId = ChannelId(15);
const FIRST_EGRESS: u32 = 1 << 4;

/// Returns a bench whose table 10 is the first egress table.
fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.datapath.channel_up(bench.now, NEWEST, Version::V15);
    let ten = features(&mut bench).swap_remove(10);
    set(&mut bench, vec![TableFeatures { command: Modify, features: FIRST_EGRESS, ..ten }]).unwrap();
    bench
}

fn features(bench: &mut Bench) -> Vec<TableFeatures> {
    let replies = bench.multipart(NEWEST, RequestBody::TableFeatures(vec![])).unwrap();
    let tables = replies.into_iter().map(|reply| match reply {
        ReplyBody::TableFeatures(tables) => tables,
        other => panic!("{other:?}"),
    });
    tables.flatten().collect()
}

fn set(bench: &mut Bench, wanted: Vec<TableFeatures>) -> Result<(), weir_openflow::model::ErrorType> {
    let request = MultipartRequest { more: false, body: RequestBody::TableFeatures(wanted) };
    bench.error_of(NEWEST, Body::MultipartRequest(request)).map_or(Ok(()), Err)
}

fn to(port: u32) -> Match {
    Match::any().with(Field::ActsetOutput, port)
}

fn entry(table: u8, matching: Match, instructions: Vec<Instruction>) -> FlowMod {
    FlowMod { table: TableId(table), ..FlowMod::add(1, matching, instructions) }
}

#[test]
fn what_is_output_goes_through_them() {
    let mut bench = bench();
    bench.add(1, Match::any(), vec![Action::output(PortNo(2)), Action::output(PortNo(3)), Action::output(PortNo(4))]);
    // A tag is pushed for port 2, packets for port 3 stay unchanged, and port 4 has no entry.
    let next = Instruction::GotoTable(TableId(11));
    bench.flow_mod(&entry(10, to(2), [apply(vec![Action::PushVlan(0x8100)]), vec![next]].concat())).unwrap();
    bench.flow_mod(&entry(11, Match::any(), vec![])).unwrap();
    bench.flow_mod(&entry(10, to(3), vec![])).unwrap();
    let sent = bench.receive(1, &frame());
    let lengths: Vec<(u32, usize)> = sent.iter().map(|(port, bytes)| (port.0, bytes.len())).collect();
    assert_eq!(lengths, [(2, frame().len() + 4), (3, frame().len())]);
    assert_eq!(bench.datapath.drops().total(), 1, "port 4's copy missed");
    // Floods and packet-outs pass the egress tables, too. Clearing the action set there drops the packet.
    let out = |port| {
        let (actions, data) = (vec![Action::output(port)], frame().into());
        Body::PacketOut(PacketOut {
            buffer_id: None,
            in_port: PortNo::CONTROLLER,
            actions,
            data,
            matching: Match::any(),
        })
    };
    assert!(bench.ask(NEWEST, out(PortNo::FLOOD)).is_empty());
    assert_eq!(bench.sent().len(), 2);
    bench.flow_mod(&entry(10, to(3), vec![Instruction::ClearActions])).unwrap();
    assert!(bench.ask(NEWEST, out(PortNo(3))).is_empty());
    assert!(bench.sent().is_empty());
}

#[test]
fn back_to_where_it_came_from() {
    let mut bench = bench();
    bench.add(1, Match::any(), vec![Action::output(PortNo::IN_PORT)]);
    bench.flow_mod(&entry(10, to(1), vec![])).unwrap();
    assert_eq!(bench.ports_of(1, &frame()), [1]);
}

#[test]
fn outputs_of_egress_tables_leave_at_once() {
    let mut bench = bench();
    bench.add(1, Match::any(), output(2));
    bench.flow_mod(&entry(10, Match::any(), apply(output(3)))).unwrap();
    assert_eq!(bench.ports_of(1, &frame()), [2, 3], "once each, without another round");
}

#[test]
fn the_output_of_the_action_set_can_be_matched_on() {
    let mut bench = Bench::new();
    let (write, next) = (|port| Instruction::WriteActions(output(port)), Instruction::GotoTable(TableId(1)));
    bench.flow_mod(&entry(0, from_port(1), vec![write(2), next.clone()])).unwrap();
    bench.flow_mod(&entry(0, from_port(3), vec![next])).unwrap();
    bench.flow_mod(&entry(1, to(2), apply(output(4)))).unwrap();
    bench.flow_mod(&entry(1, to(PortNo::UNSET.0), apply(output(1)))).unwrap();
    assert_eq!(bench.ports_of(1, &frame()), [2, 4]);
    assert_eq!(bench.ports_of(3, &frame()), [1]);
}

#[test]
fn a_mark_stays_where_the_output_is_noted() {
    let mut bench = Bench::new();
    let (write, next) = (Instruction::WriteActions(output(2)), Instruction::GotoTable(TableId(1)));
    let mark = apply(vec![Action::SetField { field: Field::PktMark, value: 0xffff_ffff }]);
    bench.flow_mod(&entry(0, Match::any(), [mark, vec![write, next]].concat())).unwrap();
    let marked = Match::any().with(Field::PktMark, 0xffff_ffff_u32).with(Field::ActsetOutput, 2_u32);
    bench.flow_mod(&entry(1, marked, apply(output(4)))).unwrap();
    assert_eq!(bench.ports_of(1, &frame()), [2, 4]);
}

/// Buckets that run on copies count towards the packet's limit of resubmits.
#[test]
fn buckets_share_the_packets_limit_of_resubmits() {
    let mut bench = bench();
    let buckets = (0..3).map(|id| Bucket::new(BucketId(id), vec![Action::output(PortNo(2))])).collect();
    let (command, kind, group) = (GroupCommand::Add, GroupKind::All, GroupId(1));
    let add = GroupMod { command, kind, group, command_bucket: BucketId::ALL, buckets, properties: Vec::new() };
    assert_eq!(bench.error_of(NEWEST, Body::GroupMod(add)), None);
    bench.add(1, Match::any(), vec![Action::Group(group), Action::output(PortNo(3))]);
    bench.flow_mod(&entry(10, to(3), vec![])).unwrap();
    // Each output to port 2 makes 2 + 4 + ... + 2048 resubmits, nearly as many as a packet may have.
    for table in 10..21 {
        let next = NxAction::Resubmit { port: PortNo::IN_PORT, table: Some(TableId(table + 1)) }.into_action();
        bench.flow_mod(&entry(table, to(2), apply(vec![next.clone(), next]))).unwrap();
    }
    bench.receive(1, &frame());
    assert!(bench.datapath.drops().resubmits > 0);
}

#[test]
fn entries_keep_to_their_side() {
    let mut bench = bench();
    let goto = |table| vec![Instruction::GotoTable(TableId(table))];
    let written = |action| vec![Instruction::WriteActions(vec![action])];
    let across = bench.flow_mod(&entry(3, Match::any(), goto(10)));
    assert_eq!(across, Err(BadInstruction::BadTableId.into()));
    let output = bench.flow_mod(&entry(10, Match::any(), written(Action::output(PortNo(1)))));
    assert_eq!(output, Err(BadAction::BadOutPort.into()));
    let group = bench.flow_mod(&entry(10, Match::any(), written(Action::Group(GroupId(1)))));
    assert_eq!(group, Err(BadAction::BadOutGroup.into()));
    bench.flow_mod(&entry(10, Match::any(), goto(11))).unwrap();
}

#[test]
fn sides_are_told_and_changed() {
    let mut bench = bench();
    let sides: Vec<u32> = features(&mut bench).iter().map(|table| table.features).collect();
    assert_eq!((sides[0], sides[9], sides[10], sides[11]), (1, 1, 2 | FIRST_EGRESS, 2));
    bench.flow_mod(&entry(9, Match::any(), vec![])).unwrap();
    bench.flow_mod(&entry(12, Match::any(), vec![])).unwrap();
    let nine = features(&mut bench).swap_remove(9);
    set(&mut bench, vec![TableFeatures { command: Modify, features: FIRST_EGRESS, ..nine }]).unwrap();
    let entries = bench.datapath.trace(bench.now, PortNo(1), &frame());
    assert!(!entries.steps.is_empty());
    let sides: Vec<u32> = features(&mut bench).iter().map(|table| table.features).collect();
    assert_eq!((sides[8], sides[9], sides[10]), (1, 2 | FIRST_EGRESS, 2));
    // Without the flag in any table there is no egress table.
    let all = features(&mut bench).into_iter().map(|table| TableFeatures { features: 1, ..table }).collect();
    set(&mut bench, all).unwrap();
    bench.add(1, Match::any(), output(2));
    assert_eq!(bench.ports_of(1, &frame()), [2]);
}

#[test]
fn tables_are_switched_off_and_on() {
    let mut bench = bench();
    let five = || TableFeatures { table: TableId(5), ..features(&mut bench_without()).swap_remove(5) };
    set(&mut bench, vec![TableFeatures { command: Disable, ..five() }]).unwrap();
    assert!(features(&mut bench).iter().all(|table| table.table != TableId(5)));
    set(&mut bench, vec![TableFeatures { command: Enable, ..five() }]).unwrap();
    assert!(features(&mut bench).iter().any(|table| table.table == TableId(5)));
    let two_firsts = [3, 4].map(|number| {
        let table = features(&mut bench).swap_remove(number);
        TableFeatures { command: Modify, features: FIRST_EGRESS, ..table }
    });
    assert_eq!(set(&mut bench, two_firsts.to_vec()), Err(TableFeaturesFailed::BadFeatures.into()));
    assert_eq!(
        set(&mut bench, vec![TableFeatures { command: TableFeaturesCommand::Unknown(9), ..five() }]),
        Err(TableFeaturesFailed::BadCommand.into())
    );
    let zero = features(&mut bench).swap_remove(0);
    assert_eq!(
        set(&mut bench, vec![TableFeatures { command: Disable, ..zero }]),
        Err(TableFeaturesFailed::BadTable.into())
    );
}

fn bench_without() -> Bench {
    let mut bench = Bench::new();
    bench.datapath.channel_up(bench.now, NEWEST, Version::V15);
    bench
}

#[test]
fn a_trace_shows_the_way_out() {
    let mut bench = bench();
    bench.add(1, Match::any(), output(2));
    bench.flow_mod(&entry(10, to(2), vec![])).unwrap();
    let trace = bench.datapath.trace(bench.now, PortNo(1), &frame()).to_string();
    let steps: Vec<&str> = trace.lines().filter(|line| line.contains("egress") || line.contains("table 10")).collect();
    assert_eq!(steps.len(), 2, "{trace}");
}
