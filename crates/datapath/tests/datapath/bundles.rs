//! Bundles: all of their messages take effect, or none (OpenFlow 1.4.1, 6.8 and 7.3.9).
use crate::bench::*;
use proptest::prelude::*;
use std::time::Duration;
use weir_datapath::{ChannelId, DatapathConfig};
use weir_openflow::model::bundle::{
    BundleAdd, BundleCommand, BundleControl, BundleFeaturesProperty, BundleFeaturesRequest, BundleFlags, BundleId,
    BundleProperty, BundleTime,
};
use weir_openflow::model::config::{TableMod, table_config};
use weir_openflow::model::error::{BadRequest, BundleFailed, ErrorMessage, FlowModFailed, PortModFailed};
use weir_openflow::model::group::{Bucket, BucketId, GroupCommand, GroupKind, GroupMod};
use weir_openflow::model::meter::{Band, BandKind, MeterCommand, MeterMod};
use weir_openflow::model::multipart::{FlowRequest, FlowStats, ReplyBody, RequestBody};
use weir_openflow::model::port::{PortMod, bits};
use weir_openflow::model::role::{Role, RoleMessage};
use weir_openflow::model::{
    Action, BufferId, ErrorType, FlowCommand, FlowFlags, FlowMod, FlowRemoved, GroupId, Instruction, Match, MeterId,
    PacketOut, PortNo, TableId,
};
use weir_openflow::{Body, Message, Version};
use weir_packet::Field;

const CHANNEL: ChannelId = ChannelId(15);
const BOTH: BundleFlags = BundleFlags(BundleFlags::ATOMIC.0 | BundleFlags::ORDERED.0);
/// Transaction id of bundle control messages.
const CONTROL: u32 = 1000;

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.datapath.channel_up(bench.now, CHANNEL, Version::V15);
    bench
}

fn send(bench: &mut Bench, xid: u32, body: Body) -> Vec<(u32, Body)> {
    bench.datapath.handle(bench.now, CHANNEL, Message { xid, body }, &mut bench.pool, &mut bench.out);
    answers(bench)
}

fn answers(bench: &mut Bench) -> Vec<(u32, Body)> {
    let messages = std::mem::take(&mut bench.out.messages);
    messages.into_iter().map(|(_, message)| (message.xid, message.body)).collect()
}

fn control_with(id: u32, command: BundleCommand, flags: BundleFlags, properties: Vec<BundleProperty>) -> Body {
    Body::BundleControl(BundleControl { bundle: BundleId(id), command, flags, properties })
}

fn control(bench: &mut Bench, id: u32, command: BundleCommand) -> Vec<(u32, Body)> {
    send(bench, CONTROL, control_with(id, command, BOTH, Vec::new()))
}

fn add(bench: &mut Bench, id: u32, xid: u32, body: Body) -> Vec<(u32, Body)> {
    let message = Box::new(Message { xid, body });
    send(bench, xid, Body::BundleAdd(BundleAdd { bundle: BundleId(id), flags: BOTH, message, properties: Vec::new() }))
}

fn reply(id: u32, command: BundleCommand) -> Vec<(u32, Body)> {
    vec![(CONTROL, control_with(id, command, BOTH, Vec::new()))]
}

/// Returns the errors among answers, with the transaction ids they answer.
fn errors(answers: Vec<(u32, Body)>) -> Vec<(u32, ErrorType)> {
    let error =
        |(xid, body)| if let Body::Error(ErrorMessage { error, .. }) = body { Some((xid, error)) } else { None };
    answers.into_iter().filter_map(error).collect()
}

fn failed(code: BundleFailed) -> Vec<(u32, ErrorType)> {
    vec![(CONTROL, code.into())]
}

/// Returns everything that a controller can see of the switch's state.
fn state(bench: &mut Bench) -> Vec<ReplyBody> {
    let asked = [
        RequestBody::Flow(FlowRequest::all()),
        RequestBody::Aggregate(FlowRequest::all()),
        RequestBody::Table,
        RequestBody::TableDesc,
        RequestBody::GroupDesc(GroupId::ALL),
        RequestBody::Group(GroupId::ALL),
        RequestBody::Meter(MeterId::ALL),
        RequestBody::MeterConfig(MeterId::ALL),
        RequestBody::PortDesc(PortNo::ANY),
    ];
    bench.datapath.channel_up(bench.now, CONTROLLER, Version::V14);
    let mut replies = Vec::new();
    for body in asked {
        replies.extend(bench.multipart(CONTROLLER, body).unwrap());
    }
    bench.datapath.channel_down(bench.now, CONTROLLER);
    for reply in &mut replies {
        // These lists have no defined order.
        match reply {
            ReplyBody::Flow(list) => {
                list.sort_by_key(|entry| (entry.table, entry.priority, format!("{:?}", entry.matching)));
            }
            ReplyBody::Meter(list) => list.sort_by_key(|meter| meter.meter),
            ReplyBody::MeterConfig(list) => list.sort_by_key(|meter| meter.meter),
            ReplyBody::Group(list) => list.sort_by_key(|group| group.group),
            ReplyBody::GroupDesc(list) => list.sort_by_key(|group| group.group),
            _ => {}
        }
    }
    replies
}

fn entries(bench: &mut Bench) -> Vec<FlowStats> {
    let found =
        state(bench).into_iter().filter_map(|reply| if let ReplyBody::Flow(list) = reply { Some(list) } else { None });
    found.flatten().collect()
}

fn flow(port: u32, to: u32) -> Body {
    Body::FlowMod(FlowMod::add(5, from_port(port), apply(output(to))))
}

fn wrong() -> Body {
    Body::FlowMod(FlowMod { table: TableId(200), ..FlowMod::add(1, Match::any(), Vec::new()) })
}

#[test]
fn nothing_happens_before_the_commit_and_all_with_it() {
    use BundleCommand::{CloseReply, CloseRequest, CommitReply, CommitRequest, OpenReply, OpenRequest};
    let mut bench = bench();
    assert_eq!(control(&mut bench, 7, OpenRequest), reply(7, OpenReply));
    assert_eq!(add(&mut bench, 7, 1, flow(1, 2)), []);
    assert_eq!(add(&mut bench, 7, 2, flow(2, 1)), []);
    assert_eq!(control(&mut bench, 7, CloseRequest), reply(7, CloseReply));
    assert_eq!(entries(&mut bench), []);
    assert_eq!(control(&mut bench, 7, CommitRequest), reply(7, CommitReply));
    assert_eq!((bench.ports_of(1, &frame()), bench.ports_of(2, &frame())), (vec![2], vec![1]));
    assert_eq!(errors(control(&mut bench, 7, CommitRequest)), failed(BundleFailed::BadId), "it is done");
}

#[test]
fn one_wrong_message_undoes_the_others() {
    let mut bench = bench();
    bench
        .flow_mod(&FlowMod { flags: FlowFlags::SEND_FLOW_REM, ..FlowMod::add(5, from_port(1), apply(output(3))) })
        .unwrap();
    bench.receive(1, &frame());
    let before = state(&mut bench);
    add(&mut bench, 1, 1, Body::FlowMod(FlowMod::delete_all()));
    add(&mut bench, 1, 2, flow(2, 1));
    add(&mut bench, 1, 3, wrong());
    add(&mut bench, 1, 4, flow(3, 1));
    let told = control(&mut bench, 1, BundleCommand::CommitRequest);
    let expected = vec![(3, FlowModFailed::BadTableId.into()), (CONTROL, BundleFailed::MsgFailed.into())];
    assert_eq!(told.len(), 2, "nobody is told of entries that came back: {told:?}");
    assert_eq!(errors(told), expected);
    assert_eq!(state(&mut bench), before);
    assert_eq!(bench.ports_of(1, &frame()), [3]);
}

#[test]
fn discarded_bundles_do_nothing() {
    let mut bench = bench();
    add(&mut bench, 3, 1, flow(1, 2));
    assert_eq!(control(&mut bench, 3, BundleCommand::DiscardRequest), reply(3, BundleCommand::DiscardReply));
    assert_eq!(errors(control(&mut bench, 3, BundleCommand::CommitRequest)), failed(BundleFailed::BadId));
    assert_eq!(entries(&mut bench), []);
}

#[test]
fn every_wrong_use_has_its_code() {
    use BundleCommand::{CloseRequest, CommitReply, CommitRequest, DiscardRequest, OpenRequest};
    let mut bench = bench();
    for command in [CloseRequest, CommitRequest, DiscardRequest] {
        assert_eq!(errors(control(&mut bench, 9, command)), failed(BundleFailed::BadId), "{command:?}");
    }
    control(&mut bench, 9, OpenRequest);
    assert_eq!(errors(control(&mut bench, 9, OpenRequest)), failed(BundleFailed::BundleExist));
    assert_eq!(errors(control(&mut bench, 9, CommitReply)), failed(BundleFailed::BadType));
    let other = send(&mut bench, CONTROL, control_with(9, CommitRequest, BundleFlags::ATOMIC, Vec::new()));
    assert_eq!(errors(other), failed(BundleFailed::BadFlags), "other flags than it was opened with");
    let unknown = send(&mut bench, CONTROL, control_with(8, OpenRequest, BundleFlags(8), Vec::new()));
    assert_eq!(errors(unknown), failed(BundleFailed::BadFlags));
    assert_eq!(errors(add(&mut bench, 9, 5, Body::BarrierRequest)), [(5, BundleFailed::MsgUnsup.into())]);
    let message = Box::new(Message { xid: 6, body: flow(1, 2) });
    let inner = BundleAdd { bundle: BundleId(9), flags: BOTH, message, properties: Vec::new() };
    assert_eq!(errors(send(&mut bench, 7, Body::BundleAdd(inner))), [(7, BundleFailed::MsgBadXid.into())]);
    control(&mut bench, 9, CloseRequest);
    assert_eq!(errors(control(&mut bench, 9, CloseRequest)), failed(BundleFailed::BundleClosed));
    assert_eq!(errors(add(&mut bench, 9, 5, flow(1, 2))), [(5, BundleFailed::BundleClosed.into())]);
    for id in 100..163 {
        assert_eq!(errors(control(&mut bench, id, OpenRequest)), [], "bundle {id}");
    }
    assert_eq!(errors(control(&mut bench, 163, OpenRequest)), failed(BundleFailed::OutOfBundles));
    bench.ask(CHANNEL, Body::RoleRequest(RoleMessage { role: Role::Slave, short_id: 0, generation_id: 1 }));
    assert_eq!(errors(control(&mut bench, 9, CommitRequest)), [(CONTROL, BadRequest::IsSlave.into())]);
}

#[test]
fn the_switch_holds_so_many_bytes_of_bundles() {
    let mut bench = bench();
    let data = vec![0; 60_000];
    let out = PacketOut {
        buffer_id: None,
        in_port: PortNo::CONTROLLER,
        matching: Match::any(),
        actions: Vec::new(),
        data: data.into(),
    };
    let refused = (0..600).map(|xid| errors(add(&mut bench, xid % 2, xid, Body::PacketOut(out.clone()))));
    let refused: Vec<_> = refused.flatten().collect();
    assert!((20..100).contains(&refused.len()), "{} of 36 MB", refused.len());
    assert!(refused.iter().all(|(_, error)| *error == BundleFailed::MsgTooMany.into()));
    // The bundles of a channel are discarded when it ends.
    bench.datapath.channel_down(bench.now, CHANNEL);
    bench.datapath.channel_up(bench.now, CHANNEL, Version::V15);
    assert_eq!(add(&mut bench, 0, 1, Body::PacketOut(out)), []);
}

#[test]
fn silent_controllers_bundles_are_given_up() {
    let mut bench = bench();
    control(&mut bench, 4, BundleCommand::OpenRequest);
    bench.wait(Duration::from_secs(9));
    add(&mut bench, 4, 1, flow(1, 2));
    bench.wait(Duration::from_secs(9));
    let next = bench.datapath.expire(bench.now, &mut bench.out).unwrap();
    assert_eq!(next, bench.now + Duration::from_secs(1));
    assert_eq!(answers(&mut bench), []);
    bench.wait(Duration::from_secs(1));
    bench.datapath.expire(bench.now, &mut bench.out);
    assert_eq!(errors(answers(&mut bench)), [(0, BundleFailed::Timeout.into())]);
    assert_eq!(errors(control(&mut bench, 4, BundleCommand::CommitRequest)), failed(BundleFailed::BadId));
}

#[test]
fn ports_and_packets_take_part() {
    let mut bench = bench();
    let port_mod = |port: u32, hw: u64| {
        let (config, mask) = (bits::PORT_DOWN, bits::PORT_DOWN);
        Body::PortMod(PortMod {
            port_no: PortNo(port),
            hw_addr: mac(hw),
            config,
            mask,
            advertise: 0,
            properties: Vec::new(),
        })
    };
    let packet = |in_port| {
        let actions = vec![Action::output(PortNo::TABLE)];
        Body::PacketOut(PacketOut { buffer_id: None, in_port, matching: Match::any(), actions, data: frame().into() })
    };
    let before = state(&mut bench);
    add(&mut bench, 1, 1, port_mod(2, 0xf2));
    add(&mut bench, 1, 2, packet(PortNo::CONTROLLER));
    add(&mut bench, 1, 3, port_mod(9, 0xf9));
    let told = control(&mut bench, 1, BundleCommand::CommitRequest);
    assert_eq!(errors(told)[0], (3, PortModFailed::BadPort.into()));
    assert_eq!(state(&mut bench), before);
    assert!(bench.out.port_admin.is_empty() && bench.sent().is_empty());

    // Packets leave after all changes of their bundle.
    add(&mut bench, 2, 1, packet(PortNo::CONTROLLER));
    add(&mut bench, 2, 2, Body::FlowMod(FlowMod::add(1, Match::any(), apply(output(3)))));
    add(&mut bench, 2, 3, port_mod(2, 0xf2));
    let told = control(&mut bench, 2, BundleCommand::CommitRequest);
    assert_eq!(errors(told.clone()), []);
    assert!(told.iter().any(|(_, body)| matches!(body, Body::PortStatus(_))), "{told:?}");
    assert_eq!(bench.out.port_admin, [(PortNo(2), false)]);
    assert_eq!(bench.sent(), [(PortNo(3), frame())]);
    add(&mut bench, 3, 1, packet(PortNo(0xffff_fff0)));
    assert_eq!(errors(control(&mut bench, 3, BundleCommand::CommitRequest))[0], (1, BadRequest::BadPort.into()));
}

#[test]
fn kept_packets_are_released_or_kept_on() {
    let mut bench = bench();
    bench.add(0, Match::any(), vec![Action::Output { port: PortNo::CONTROLLER, max_len: 10 }]);
    bench.receive(1, &frame());
    let buffer = bench.packet_ins(CHANNEL)[0].buffer_id;
    assert_eq!(buffer, Some(BufferId(0)));
    let release = Body::FlowMod(FlowMod { buffer_id: buffer, ..FlowMod::add(5, from_port(1), apply(output(2))) });
    add(&mut bench, 1, 1, release.clone());
    add(&mut bench, 1, 2, wrong());
    assert_eq!(errors(control(&mut bench, 1, BundleCommand::CommitRequest)).len(), 2);
    assert_eq!(bench.sent(), []);
    add(&mut bench, 2, 1, release.clone());
    assert_eq!(control(&mut bench, 2, BundleCommand::CommitRequest), reply(2, BundleCommand::CommitReply));
    assert_eq!(bench.sent(), [(PortNo(2), frame())]);
    add(&mut bench, 3, 1, release);
    assert_eq!(errors(control(&mut bench, 3, BundleCommand::CommitRequest))[0], (1, BadRequest::BufferEmpty.into()));
}

#[test]
fn an_unknown_buffer_fails_a_change_of_many_entries() {
    let mut bench = bench();
    for port in 0..500 {
        bench.add(5, from_port(port), output(3));
    }
    let before = state(&mut bench);
    let command = FlowCommand::Modify;
    let buffer_id = Some(BufferId(7));
    let modify = FlowMod { command, buffer_id, ..FlowMod::add(5, Match::any(), apply(output(2))) };
    add(&mut bench, 1, 1, Body::FlowMod(modify));
    let told = control(&mut bench, 1, BundleCommand::CommitRequest);
    assert_eq!(errors(told)[0], (1, BadRequest::BufferUnknown.into()));
    assert_eq!(state(&mut bench), before);
}

#[test]
fn entries_that_come_back_still_end() {
    let mut bench = bench();
    let flags = FlowFlags::SEND_FLOW_REM;
    bench.flow_mod(&FlowMod { flags, hard_timeout: 5, ..FlowMod::add(5, from_port(1), apply(output(3))) }).unwrap();
    add(&mut bench, 1, 1, Body::FlowMod(FlowMod::delete_all()));
    add(&mut bench, 1, 2, Body::FlowMod(FlowMod { hard_timeout: 1, ..FlowMod::add(5, from_port(1), Vec::new()) }));
    add(&mut bench, 1, 3, wrong());
    control(&mut bench, 1, BundleCommand::CommitRequest);
    bench.wait(Duration::from_secs(4));
    bench.datapath.expire(bench.now, &mut bench.out);
    assert_eq!(bench.ports_of(1, &frame()), [3]);
    bench.wait(Duration::from_secs(1));
    bench.datapath.expire(bench.now, &mut bench.out);
    let told = answers(&mut bench);
    assert!(matches!(&told[..], [(0, Body::FlowRemoved(FlowRemoved { priority: 5, .. }))]), "{told:?}");
    assert_eq!(entries(&mut bench), []);
}

#[test]
fn bundles_with_a_time_wait_for_it() {
    let mut bench = bench();
    let flags = BundleFlags(BOTH.0 | BundleFlags::TIME.0);
    let commit = |id, seconds| {
        let time = BundleProperty::Time(BundleTime { seconds, nanoseconds: 500 });
        control_with(id, BundleCommand::CommitRequest, flags, vec![time])
    };
    let message = |xid, to| Box::new(Message { xid, body: flow(1, to) });
    let add = |bench: &mut Bench, id, to| {
        let (bundle, properties) = (BundleId(id), Vec::new());
        send(bench, 1, Body::BundleAdd(BundleAdd { bundle, flags, message: message(1, to), properties }))
    };
    add(&mut bench, 1, 2);
    let unknown = send(&mut bench, CONTROL, commit(1, 100));
    assert_eq!(errors(unknown), failed(BundleFailed::SchedNotSupported), "nobody said what time it is");
    bench.datapath.set_time_of_day(bench.now, Duration::from_secs(1_000_000));
    assert_eq!(errors(send(&mut bench, CONTROL, commit(1, 1_003_602))), failed(BundleFailed::SchedFuture));
    assert_eq!(errors(send(&mut bench, CONTROL, commit(1, 999_990))), failed(BundleFailed::SchedPast));
    assert_eq!(send(&mut bench, CONTROL, commit(1, 1_000_100)), []);
    assert_eq!(errors(send(&mut bench, CONTROL, commit(1, 1_000_100))), failed(BundleFailed::BundleInProgress));
    bench.wait(Duration::from_secs(100));
    let next = bench.datapath.expire(bench.now, &mut bench.out).unwrap();
    assert_eq!(next, bench.now + Duration::from_nanos(500));
    assert_eq!(entries(&mut bench), []);
    bench.wait(Duration::from_nanos(500));
    assert!(!bench.datapath.is_busy());
    assert_eq!(bench.datapath.expire(bench.now, &mut bench.out), Some(bench.now));
    while bench.datapath.is_busy() {
        bench.datapath.go_on(bench.now, &mut bench.pool, &mut bench.out);
    }
    let done = control_with(1, BundleCommand::CommitReply, flags, Vec::new());
    assert_eq!(answers(&mut bench), [(CONTROL, done)]);
    assert_eq!(bench.ports_of(1, &frame()), [2]);
    // A bundle that is only slightly late is committed at once; a discarded bundle is never committed.
    add(&mut bench, 2, 3);
    assert_eq!(send(&mut bench, CONTROL, commit(2, 1_000_099)).len(), 1);
    assert_eq!(bench.ports_of(1, &frame()), [3]);
    add(&mut bench, 3, 4);
    send(&mut bench, CONTROL, commit(3, 1_000_200));
    send(&mut bench, CONTROL, control_with(3, BundleCommand::DiscardRequest, flags, Vec::new()));
    bench.wait(Duration::from_secs(200));
    bench.datapath.expire(bench.now, &mut bench.out);
    assert_eq!(bench.ports_of(1, &frame()), [3]);
}

#[test]
fn tolerances_of_times_can_be_set() {
    let mut bench = bench();
    let ask = |bench: &mut Bench, request| {
        let mut replies = bench.multipart(CHANNEL, RequestBody::BundleFeatures(request)).unwrap();
        let Some(ReplyBody::BundleFeatures(features)) = replies.pop() else { panic!() };
        features
    };
    let features = ask(&mut bench, BundleFeaturesRequest::default());
    assert_eq!((features.capabilities, features.properties), (BOTH, vec![]));
    bench.datapath.set_time_of_day(bench.now, Duration::from_secs(50));
    let span = |seconds| BundleTime { seconds, nanoseconds: 0 };
    let time = BundleFeaturesProperty::Time {
        accuracy: span(0),
        max_future: span(7),
        max_past: span(9_999_999),
        timestamp: span(0),
    };
    let features = ask(&mut bench, BundleFeaturesRequest { flags: 2, properties: vec![time] });
    assert_eq!(features.capabilities, BundleFlags(7));
    let expected = BundleFeaturesProperty::Time {
        accuracy: BundleTime { seconds: 0, nanoseconds: 1_000_000 },
        max_future: span(7),
        max_past: span(3600),
        timestamp: span(50),
    };
    assert_eq!(features.properties, [expected]);
}

/// Generates a flow-mod of any command with few matches, priorities and tables, so that flow-mods concern the same
/// entries.
fn any_flow() -> impl Strategy<Value = Body> {
    let matching = prop_oneof![
        Just(Match::any()),
        (1..4_u32).prop_map(from_port),
        (1..3_u32).prop_map(|port| from_port(port).with(Field::EthDst, 7_u32)),
    ];
    let command = prop_oneof![
        4 => Just(FlowCommand::Add),
        1 => Just(FlowCommand::Modify),
        1 => Just(FlowCommand::ModifyStrict),
        1 => Just(FlowCommand::Delete),
        2 => Just(FlowCommand::DeleteStrict),
    ];
    // Some refuse overlaps, so some fail in the middle of a bundle.
    let flags = prop_oneof![3 => Just(0_u16), 1 => Just(1), 1 => Just(2), 1 => Just(4)].prop_map(FlowFlags);
    let timeouts = prop_oneof![2 => Just((0_u16, 0_u16)), 1 => (0..3_u16, 0..3_u16)];
    (matching, command, flags, timeouts, 0..3_u16, 0..3_u8, 1..5_u32, 0..9_u64).prop_map(
        |(matching, command, flags, (idle_timeout, hard_timeout), priority, table, port, cookie)| {
            let actions = if port == 4 { vec![Action::Group(GroupId(u32::from(priority)))] } else { output(port) };
            let goto = (table < 2).then_some(Instruction::GotoTable(TableId(table + 1)));
            let metered = (cookie % 5 == 1).then_some(Instruction::Meter(MeterId(port)));
            let instructions = apply(actions).into_iter().chain(goto).chain(metered).collect();
            let flow = FlowMod::add(priority, matching, instructions);
            let table = TableId(table);
            Body::FlowMod(FlowMod {
                command,
                flags,
                idle_timeout,
                hard_timeout,
                table,
                cookie,
                importance: priority,
                ..flow
            })
        },
    )
}

/// Generates a group-mod of any command on few groups, some of which lead to others or watch ports.
fn any_group() -> impl Strategy<Value = Body> {
    let group = prop_oneof![8 => (0..4_u32).prop_map(GroupId), 1 => Just(GroupId::ALL)];
    let bucket = (1..5_u32, 0..4_u32, prop::bool::weighted(0.3)).prop_map(|(port, next, chains)| {
        let actions = if chains { vec![Action::Group(GroupId(next))] } else { output(port) };
        Bucket { weight: 1, watch_port: PortNo(port), ..Bucket::new(BucketId(port), actions) }
    });
    (
        prop_oneof![3 => Just(GroupCommand::Add), 2 => Just(GroupCommand::Modify), 1 => Just(GroupCommand::Delete)],
        group,
        prop::option::of(bucket),
    )
        .prop_map(|(command, group, bucket)| {
            let buckets = bucket.into_iter().collect();
            let (command_bucket, properties) = (BucketId::ALL, Vec::new());
            Body::GroupMod(GroupMod { command, kind: GroupKind::Select, group, command_bucket, buckets, properties })
        })
}

/// Generates a meter-mod of any command on few meters.
fn any_meter() -> impl Strategy<Value = Body> {
    let meter = prop_oneof![6 => (1..4_u32).prop_map(MeterId), 1 => Just(MeterId::ALL)];
    let command =
        prop_oneof![3 => Just(MeterCommand::Add), 2 => Just(MeterCommand::Modify), 1 => Just(MeterCommand::Delete)];
    (command, meter, 1..9_u32).prop_map(|(command, meter, rate)| {
        let bands = vec![Band { kind: BandKind::Drop, rate, burst_size: 0 }];
        Body::MeterMod(MeterMod { command, flags: 1, meter, bands })
    })
}

fn any_message() -> impl Strategy<Value = Body> {
    let port_mod = (1..5_u32, any::<bool>()).prop_map(|(port, down)| {
        let (config, mask) = (if down { bits::PORT_DOWN } else { 0 }, bits::PORT_DOWN);
        let hw_addr = mac(0xf0 + u64::from(port));
        Body::PortMod(PortMod { port_no: PortNo(port), hw_addr, config, mask, advertise: 0, properties: Vec::new() })
    });
    let table_mod = (0..3_u8, any::<bool>()).prop_map(|(table, evicts)| {
        Body::TableMod(TableMod::new(TableId(table), if evicts { table_config::EVICTION } else { 0 }))
    });
    prop_oneof![8 => any_flow(), 4 => any_group(), 2 => any_meter(), 1 => port_mod, 1 => table_mod]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// A bundle that fails leaves the switch unchanged, counters included. One that succeeds has the effect of its
    /// messages one by one.
    #[test]
    fn all_or_nothing(
        before in prop::collection::vec(prop_oneof![2 => any_flow(), 1 => any_group(), 1 => any_meter()], 0..16),
        messages in prop::collection::vec(any_message(), 0..12),
        wrong_at in prop::option::of(0..12_usize),
        max_entries in 2..10_u32,
    ) {
        let config = DatapathConfig { max_entries, ..DatapathConfig::default() };
        let mut switches = [Bench::with(config.clone()), Bench::with(config)];
        for bench in &mut switches {
            bench.datapath.channel_up(bench.now, CHANNEL, Version::V15);
            before.iter().for_each(|body| drop(send(bench, 1, body.clone())));
            (1..5).for_each(|port| drop(bench.receive(port, &frame())));
            bench.wait(Duration::from_millis(10));
            answers(bench);
        }
        let [bundled, single] = &mut switches;
        let untouched = state(bundled);

        let mut messages = messages;
        if let Some(at) = wrong_at {
            messages.insert(at.min(messages.len()), wrong());
        }
        for (xid, body) in (0..).zip(&messages) {
            prop_assert_eq!(add(bundled, 1, xid, body.clone()), []);
        }
        let told = control(bundled, 1, BundleCommand::CommitRequest);
        let mut one_by_one = Vec::new();
        for (xid, body) in (0..).zip(&messages) {
            one_by_one.extend(send(single, xid, body.clone()));
        }
        let failures = errors(one_by_one.clone());
        if messages.is_empty() {
            prop_assert_eq!(errors(told), failed(BundleFailed::BadId));
        } else if let Some(first) = failures.first() {
            prop_assert_eq!(errors(told.clone()), vec![*first, failed(BundleFailed::MsgFailed)[0]]);
            prop_assert_eq!(told.len(), 2);
            prop_assert_eq!(state(bundled), untouched);
        } else {
            prop_assert_eq!(&told[..told.len() - 1], &one_by_one[..]);
            prop_assert_eq!(state(bundled), state(single));
        }
        // Entries in both benches expire at the same times.
        for _ in 0..4 {
            let ends = [&mut *bundled, &mut *single].map(|bench| {
                bench.wait(Duration::from_secs(1));
                bench.datapath.expire(bench.now, &mut bench.out);
                entries(bench)
            });
            if failures.is_empty() {
                prop_assert_eq!(&ends[0], &ends[1]);
            }
        }
    }
}
