//! Flow monitors (OpenFlow 1.4.1, 7.3.5.17).
use crate::bench::*;
use std::time::Duration;
use weir_datapath::ChannelId;
use weir_openflow::model::bundle::{BundleAdd, BundleCommand, BundleControl, BundleFlags, BundleId};
use weir_openflow::model::error::FlowMonitorFailed;
use weir_openflow::model::monitor::{FlowEvent, FlowMonitor, FlowUpdate, FlowUpdateFull, MonitorCommand, MonitorFlags};
use weir_openflow::model::multipart::{ReplyBody, RequestBody};
use weir_openflow::model::nicira::NxMessage;
use weir_openflow::model::{ErrorType, FlowCommand, FlowMod, FlowRemovedReason, GroupId, Match, PortNo, TableId};
use weir_openflow::{Body, Message, Version};

/// Channel of the monitoring controller.
const WATCHER: ChannelId = ChannelId(14);
const ALL: MonitorFlags = MonitorFlags(0b1111);

/// Returns a bench with a monitoring channel of 1.4 and another controller of 1.3.
fn bench() -> Bench {
    let mut bench = Bench::controlled();
    bench.datapath.channel_up(bench.now, WATCHER, Version::V14);
    bench
}

fn monitor(id: u32, flags: MonitorFlags) -> FlowMonitor {
    FlowMonitor {
        id,
        out_port: PortNo::ANY,
        out_group: GroupId::ANY,
        flags,
        table: TableId::ALL,
        command: MonitorCommand::Add,
        matching: Match::any(),
    }
}

fn ask(bench: &mut Bench, asked: FlowMonitor) -> Result<Vec<FlowUpdate>, ErrorType> {
    let replies = bench.multipart(WATCHER, RequestBody::FlowMonitor(vec![asked]))?;
    Ok(replies.into_iter().flat_map(updates_in).collect())
}

fn updates_in(reply: ReplyBody) -> Vec<FlowUpdate> {
    if let ReplyBody::FlowMonitor(updates) = reply { updates } else { panic!("{reply:?}") }
}

/// Takes the updates sent to the monitoring channel.
fn told(bench: &mut Bench) -> Vec<FlowUpdate> {
    let updates = bench.told(WATCHER).into_iter().filter_map(|body| match body {
        Body::MultipartReply(reply) => Some(updates_in(reply.body)),
        _ => None,
    });
    updates.flatten().collect()
}

/// Returns event, reason and cookie of full updates, and the transaction id of abbreviated ones.
fn short(updates: Vec<FlowUpdate>) -> Vec<(Option<FlowEvent>, Option<FlowRemovedReason>, u64)> {
    let one = |update| match update {
        FlowUpdate::Full(FlowUpdateFull { event, reason, cookie, .. }) => (Some(event), reason, cookie),
        FlowUpdate::Abbrev { xid } => (None, None, xid.into()),
        FlowUpdate::Paused | FlowUpdate::Resumed => (None, None, 0),
    };
    updates.into_iter().map(one).collect()
}

fn flow(cookie: u64, port: u32, to: u32) -> FlowMod {
    FlowMod { cookie, ..FlowMod::add(5, from_port(port), apply(output(to))) }
}

fn send(bench: &mut Bench, channel: ChannelId, xid: u32, flow: FlowMod) {
    let message = Message { xid, body: Body::FlowMod(flow) };
    bench.datapath.handle(bench.now, channel, message, &mut bench.pool, &mut bench.out);
}

#[test]
fn every_change_is_told_in_order() {
    use FlowEvent::{Added, Initial, Modified, Removed};
    let mut bench = bench();
    send(&mut bench, CONTROLLER, 1, flow(1, 1, 2));
    assert_eq!(short(ask(&mut bench, monitor(1, ALL)).unwrap()), [(Some(Initial), None, 1)]);
    send(&mut bench, CONTROLLER, 2, flow(2, 2, 2));
    send(&mut bench, CONTROLLER, 3, FlowMod { command: FlowCommand::Modify, ..flow(9, 1, 3) });
    send(&mut bench, CONTROLLER, 4, FlowMod { command: FlowCommand::Modify, ..flow(9, 1, 3) });
    send(&mut bench, CONTROLLER, 5, FlowMod { hard_timeout: 1, ..flow(5, 3, 3) });
    send(&mut bench, CONTROLLER, 6, FlowMod { command: FlowCommand::DeleteStrict, ..flow(0, 2, 2) });
    bench.wait(Duration::from_secs(1));
    bench.datapath.expire(bench.now, &mut bench.out);
    let expected = [
        (Some(Added), None, 2),
        // The second modify changed nothing.
        (Some(Modified), None, 1),
        (Some(Added), None, 5),
        (Some(Removed), Some(FlowRemovedReason::Delete), 2),
        (Some(Removed), Some(FlowRemovedReason::HardTimeout), 5),
    ];
    assert_eq!(short(told(&mut bench)), expected);
}

#[test]
fn an_entry_is_told_whole() {
    let mut bench = bench();
    let flags = MonitorFlags(ALL.0 | MonitorFlags::INSTRUCTIONS.0);
    ask(&mut bench, monitor(1, flags)).unwrap();
    let flow = FlowMod { table: TableId(3), idle_timeout: 7, hard_timeout: 8, ..flow(1, 1, 2) };
    send(&mut bench, CONTROLLER, 1, flow.clone());
    let expected = FlowUpdateFull {
        event: FlowEvent::Added,
        reason: None,
        table: flow.table,
        idle_timeout: 7,
        hard_timeout: 8,
        priority: 5,
        cookie: 1,
        matching: flow.matching,
        instructions: flow.instructions,
    };
    assert_eq!(told(&mut bench), [FlowUpdate::Full(expected)]);
}

#[test]
fn own_changes_are_told_by_their_number() {
    let mut bench = bench();
    ask(&mut bench, monitor(1, ALL)).unwrap();
    send(&mut bench, WATCHER, 40, flow(1, 1, 2));
    send(&mut bench, WATCHER, 41, flow(2, 2, 2));
    send(&mut bench, WATCHER, 42, FlowMod::delete_all());
    assert_eq!(short(told(&mut bench)), [(None, None, 40), (None, None, 41), (None, None, 42)], "once each");
    let full = MonitorFlags(ALL.0 | MonitorFlags::NO_ABBREV.0 | MonitorFlags::ONLY_OWN.0);
    ask(&mut bench, FlowMonitor { command: MonitorCommand::Modify, ..monitor(1, full) }).unwrap();
    send(&mut bench, WATCHER, 43, flow(3, 1, 2));
    send(&mut bench, CONTROLLER, 44, flow(4, 2, 2));
    assert_eq!(short(told(&mut bench)), [(Some(FlowEvent::Added), None, 3)]);
}

#[test]
fn filters_hold_before_and_after() {
    let mut bench = bench();
    let to_two = FlowMonitor { out_port: PortNo(2), ..monitor(1, MonitorFlags(0b1110)) };
    let from_three = FlowMonitor { matching: from_port(3), table: TableId(0), ..monitor(2, MonitorFlags(0b1110)) };
    ask(&mut bench, to_two).unwrap();
    ask(&mut bench, from_three).unwrap();
    send(&mut bench, CONTROLLER, 1, flow(1, 1, 2));
    send(&mut bench, CONTROLLER, 2, flow(2, 2, 4));
    send(&mut bench, CONTROLLER, 3, flow(3, 3, 2));
    send(&mut bench, CONTROLLER, 4, FlowMod { table: TableId(1), ..flow(4, 3, 4) });
    send(&mut bench, CONTROLLER, 5, FlowMod { command: FlowCommand::Modify, ..flow(0, 1, 4) });
    send(&mut bench, CONTROLLER, 6, FlowMod { command: FlowCommand::Modify, ..flow(0, 1, 1) });
    let events = short(told(&mut bench));
    let expected =
        [(Some(FlowEvent::Added), None, 1), (Some(FlowEvent::Added), None, 3), (Some(FlowEvent::Modified), None, 1)];
    assert_eq!(events, expected, "an entry of two monitors once; one that went elsewhere, but not what it does there");
}

#[test]
fn a_bundle_that_fails_tells_nothing() {
    let mut bench = bench();
    ask(&mut bench, monitor(1, ALL)).unwrap();
    for (id, second) in [(1, TableId(200)), (2, TableId(1))] {
        for (xid, flow) in [(1, flow(1, 1, 2)), (2, FlowMod { table: second, ..flow(2, 1, 2) })] {
            let message = Box::new(Message { xid, body: Body::FlowMod(flow) });
            let (bundle, flags, properties) = (BundleId(id), BundleFlags::ATOMIC, Vec::new());
            let add = Body::BundleAdd(BundleAdd { bundle, flags, message, properties });
            let message = Message { xid, body: add };
            bench.datapath.handle(bench.now, CONTROLLER, message, &mut bench.pool, &mut bench.out);
        }
        let (bundle, flags, properties) = (BundleId(id), BundleFlags::ATOMIC, Vec::new());
        let command = BundleCommand::CommitRequest;
        bench.ask(CONTROLLER, Body::BundleControl(BundleControl { bundle, command, flags, properties }));
        let count = told(&mut bench).len();
        assert_eq!(count, if id == 1 { 0 } else { 2 });
    }
}

#[test]
fn a_slow_reader_is_told_the_rest_later() {
    let mut bench = bench();
    ask(&mut bench, monitor(1, ALL)).unwrap();
    send(&mut bench, CONTROLLER, 1, flow(1, 1, 2));
    send(&mut bench, CONTROLLER, 1, flow(2, 2, 2));
    told(&mut bench);
    bench.datapath.pause_monitors(WATCHER, &mut bench.out);
    bench.datapath.pause_monitors(WATCHER, &mut bench.out);
    assert_eq!(told(&mut bench), [FlowUpdate::Paused], "once");
    send(&mut bench, CONTROLLER, 1, flow(3, 3, 2));
    send(&mut bench, CONTROLLER, 1, FlowMod { command: FlowCommand::Modify, ..flow(0, 2, 4) });
    send(&mut bench, CONTROLLER, 1, FlowMod { command: FlowCommand::Delete, ..flow(0, 1, 4) });
    assert_eq!(short(told(&mut bench)), [(Some(FlowEvent::Removed), Some(FlowRemovedReason::Delete), 1)]);
    bench.datapath.resume_monitors(WATCHER, &mut bench.out);
    let mut updates = told(&mut bench);
    assert_eq!(updates.pop(), Some(FlowUpdate::Resumed));
    let mut events = short(updates);
    events.sort_by_key(|(_, _, cookie)| *cookie);
    assert_eq!(events, [(Some(FlowEvent::Modified), None, 2), (Some(FlowEvent::Added), None, 3)]);
    bench.datapath.resume_monitors(WATCHER, &mut bench.out);
    send(&mut bench, CONTROLLER, 1, flow(4, 4, 2));
    assert_eq!(short(told(&mut bench)), [(Some(FlowEvent::Added), None, 4)]);
}

#[test]
fn several_monitors_are_told_after_a_pause_what_they_want_and_once() {
    let only = |id, flags: &[MonitorFlags]| monitor(id, MonitorFlags(flags.iter().fold(0, |all, flag| all | flag.0)));
    let after_a_pause = |monitors: &[FlowMonitor]| {
        let mut bench = bench();
        send(&mut bench, CONTROLLER, 1, flow(1, 1, 2));
        monitors.iter().for_each(|asked| _ = ask(&mut bench, asked.clone()).unwrap());
        bench.datapath.pause_monitors(WATCHER, &mut bench.out);
        send(&mut bench, CONTROLLER, 2, FlowMod { command: FlowCommand::Modify, ..flow(0, 1, 4) });
        send(&mut bench, CONTROLLER, 3, flow(2, 2, 2));
        bench.datapath.resume_monitors(WATCHER, &mut bench.out);
        let mut events = short(told(&mut bench));
        events.retain(|(event, ..)| event.is_some());
        events.sort_by_key(|(_, _, cookie)| *cookie);
        events
    };
    let (added, modified) = ((Some(FlowEvent::Added), None, 2), (Some(FlowEvent::Modified), None, 1));
    assert_eq!(after_a_pause(&[monitor(1, ALL), monitor(2, ALL)]), [modified, added]);
    assert_eq!(after_a_pause(&[only(1, &[MonitorFlags::ADD])]), [added]);
    assert_eq!(after_a_pause(&[only(1, &[MonitorFlags::MODIFY])]), [modified, added]);
    assert_eq!(after_a_pause(&[only(1, &[MonitorFlags::REMOVED])]), []);
}

#[test]
fn every_wrong_request_has_its_code() {
    let mut bench = bench();
    ask(&mut bench, monitor(1, ALL)).unwrap();
    let with = |command| FlowMonitor { command, ..monitor(2, ALL) };
    let cases: [(FlowMonitor, FlowMonitorFailed); 6] = [
        (monitor(1, ALL), FlowMonitorFailed::MonitorExists),
        (with(MonitorCommand::Modify), FlowMonitorFailed::UnknownMonitor),
        (with(MonitorCommand::Delete), FlowMonitorFailed::UnknownMonitor),
        (with(MonitorCommand::Unknown(9)), FlowMonitorFailed::BadCommand),
        (monitor(2, MonitorFlags(1 << 7)), FlowMonitorFailed::BadFlags),
        (FlowMonitor { table: TableId(64), ..monitor(2, ALL) }, FlowMonitorFailed::BadTableId),
    ];
    for (asked, error) in cases {
        assert_eq!(ask(&mut bench, asked), Err(error.into()));
    }
    for id in 2..=64 {
        ask(&mut bench, monitor(id, ALL)).unwrap();
    }
    assert_eq!(ask(&mut bench, monitor(65, ALL)), Err(FlowMonitorFailed::Unknown.into()), "64 are the most");
    let delete = FlowMonitor { command: MonitorCommand::Delete, ..monitor(1, ALL) };
    assert_eq!(ask(&mut bench, delete), Ok(vec![]));
    assert_eq!(ask(&mut bench, monitor(65, ALL)), Ok(vec![]));
}

/// Monitors of 1.0 (Open vSwitch's) and of 1.3 (an extension).
#[test]
fn versions_before_1_4_tell_pauses_and_take_the_end_of_monitors_in_messages() {
    for version in [Version::V10, Version::V13] {
        let mut bench = Bench::controlled();
        bench.datapath.channel_up(bench.now, WATCHER, version);
        send(&mut bench, CONTROLLER, 1, flow(1, 1, 2));
        assert_eq!(short(ask(&mut bench, monitor(7, ALL)).unwrap()), [(Some(FlowEvent::Initial), None, 1)]);
        send(&mut bench, CONTROLLER, 2, flow(2, 2, 1));
        assert_eq!(short(told(&mut bench)), [(Some(FlowEvent::Added), None, 2)]);

        bench.datapath.pause_monitors(WATCHER, &mut bench.out);
        assert_eq!(bench.told(WATCHER), [Body::Nx(Box::new(NxMessage::FlowMonitorPaused))]);
        send(&mut bench, CONTROLLER, 3, flow(3, 3, 1));
        bench.datapath.resume_monitors(WATCHER, &mut bench.out);
        let told_then = bench.told(WATCHER);
        let [Body::MultipartReply(missed), Body::Nx(resumed)] = &told_then[..] else { panic!("{told_then:?}") };
        assert_eq!(short(updates_in(missed.body.clone())), [(Some(FlowEvent::Added), None, 3)]);
        assert_eq!(**resumed, NxMessage::FlowMonitorResumed);
        // No update was missed, so only the end of the pause is sent.
        bench.datapath.pause_monitors(WATCHER, &mut bench.out);
        bench.datapath.resume_monitors(WATCHER, &mut bench.out);
        let ends = [NxMessage::FlowMonitorPaused, NxMessage::FlowMonitorResumed];
        assert_eq!(bench.told(WATCHER), ends.map(|end| Body::Nx(Box::new(end))));

        let cancel = || Body::Nx(Box::new(NxMessage::FlowMonitorCancel(7)));
        assert_eq!(bench.ask(WATCHER, cancel()), []);
        send(&mut bench, CONTROLLER, 4, flow(4, 4, 1));
        assert_eq!(bench.told(WATCHER), []);
        assert_eq!(bench.error_of(WATCHER, cancel()), Some(FlowMonitorFailed::UnknownMonitor.into()));
    }
}
