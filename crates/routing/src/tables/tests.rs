//! Tests the keeping of tables message by message: refusals of switches, and how many entries are on their way.
use super::batch::MOST_ON_WAY;
use super::entry::{EntryContent, EntryWork};
use super::reading::SyncStage;
use super::switch::SwitchTables;
use super::{DesiredEntry, EntryKey, Hop, HopPlace, Route, RouteId, RouteState, TableConfig, TableEvent, TableKeeper};
use crate::map::NetworkMap;
use std::sync::Arc;
use std::time::Duration;
use weir_openflow::model::error::{ErrorMessage, ErrorType, FlowModFailed};
use weir_openflow::model::multipart::{MultipartReply, ReplyBody};
use weir_openflow::model::{Body, Bytes, FlowCommand, FlowMod, Match, PortNo};
use weir_packet::Field;
use weir_units::Instant;

const ROUTE: RouteId = RouteId(1);

/// Returns a keeper with switches 1 and 2, which are empty.
fn keeper() -> TableKeeper {
    let mut keeper = TableKeeper::new(TableConfig::default());
    for dpid in [1, 2] {
        keeper.handle_switch_up(dpid);
        for body in [ReplyBody::GroupDesc(Vec::new()), ReplyBody::Flow(Vec::new())] {
            let reply = MultipartReply { more: false, body };
            keeper.handle_message(Instant::ZERO, dpid, &Body::MultipartReply(reply));
        }
    }
    assert!(flow_mods(&mut keeper, Instant::ZERO).is_empty());
    keeper
}

/// Returns the flow-mods that the keeper sends now, by datapath id.
fn flow_mods(keeper: &mut TableKeeper, now: Instant) -> Vec<(u64, FlowMod)> {
    let sent = keeper.flush(now).into_iter();
    let all = sent.flat_map(|(dpid, messages)| messages.into_iter().map(move |message| (dpid, message)));
    let flow_mod = |(dpid, message)| match message {
        Body::FlowMod(flow) => Some((dpid, flow)),
        _ => None,
    };
    all.filter_map(flow_mod).collect()
}

/// Lets a switch refuse a flow-mod.
fn refuse(keeper: &mut TableKeeper, (dpid, flow): &(u64, FlowMod)) {
    let data = [&[4, 14, 0, 80, 0, 0, 0, 0][..], &flow.cookie.to_be_bytes()].concat();
    let error = ErrorMessage { error: ErrorType::FlowModFailed(FlowModFailed::TableFull), data: Bytes(data) };
    keeper.handle_message(Instant::ZERO, *dpid, &Body::Error(error));
}

/// Returns a route over both switches that leaves each by a port.
fn route(port: u32) -> Route {
    let hops = [1, 2].map(|dpid| (HopPlace::at(dpid), Hop::to(PortNo(port), None)));
    Route { priority: 5, matching: Match::any().with(Field::EthDst, 7_u64), idle_timeout: 0, hops: hops.into() }
}

fn entry(hard_timeout: u16) -> DesiredEntry {
    DesiredEntry { hard_timeout, ..DesiredEntry::new(0, 9, Match::any(), Vec::new()) }
}

#[test]
fn two_refusals_of_one_change_leave_the_former_way() {
    let (mut keeper, map) = (keeper(), NetworkMap::default());
    keeper.set_route(ROUTE, route(1), &map);
    assert_eq!(flow_mods(&mut keeper, Instant::ZERO).len(), 2);
    let confirm = |keeper: &mut TableKeeper| {
        [1, 2].iter().for_each(|dpid| keeper.handle_message(Instant::ZERO, *dpid, &Body::BarrierReply));
        flow_mods(keeper, Instant::ZERO)
    };
    assert_eq!(confirm(&mut keeper), []);
    assert_eq!(keeper.take_events(), [TableEvent::Route(ROUTE, RouteState::Installed)]);
    keeper.set_route(ROUTE, route(2), &map);
    let changes = flow_mods(&mut keeper, Instant::ZERO);
    assert_eq!(changes.len(), 2);
    changes.iter().for_each(|change| refuse(&mut keeper, change));
    let refusals = keeper.take_events();
    assert!(
        matches!(refusals.as_slice(), [TableEvent::Route(ROUTE, RouteState::Refused { dpid: 1, .. })]),
        "{refusals:?}"
    );
    assert_eq!(keeper.next_wake(), None, "the owner of the route tries again");
    let back = flow_mods(&mut keeper, Instant::ZERO);
    assert_eq!(
        back.iter().map(|(dpid, flow)| (*dpid, flow.command)).collect::<Vec<_>>(),
        [(1, FlowCommand::Add), (2, FlowCommand::Add)]
    );
    // The refusal of a change comes once more when other content was sent since.
    refuse(&mut keeper, &changes[0]);
    assert_eq!((confirm(&mut keeper), confirm(&mut keeper)), (Vec::new(), Vec::new()));
    assert_eq!(keeper.route_state(ROUTE), Some(RouteState::Installed));
    assert_eq!(keeper.take_events(), [TableEvent::Route(ROUTE, RouteState::Installed)]);
    assert!(matches!(back.as_slice(), [(_, one), (_, other)] if one.instructions == other.instructions));
    // A refusal of the way that is wanted ends it.
    refuse(&mut keeper, &back[1]);
    flow_mods(&mut keeper, Instant::ZERO);
    assert_eq!(keeper.route_state(ROUTE), Some(RouteState::Pending), "it is being removed");
}

#[test]
fn refused_entries_are_asked_for_again_unless_their_time_is_limited() {
    let mut keeper = keeper();
    let later = Instant::ZERO + TableConfig::default().retry_after;
    keeper.set_entry(1, entry(0));
    let sent = flow_mods(&mut keeper, Instant::ZERO);
    refuse(&mut keeper, &sent[0]);
    assert_eq!((flow_mods(&mut keeper, Instant::ZERO), keeper.next_wake()), (Vec::new(), Some(later)));
    assert_eq!(flow_mods(&mut keeper, later).len(), 1);

    keeper.set_entry(2, entry(5));
    let sent = flow_mods(&mut keeper, later);
    refuse(&mut keeper, &sent[0]);
    assert_eq!(keeper.next_wake(), None);
    let commands = |sent: Vec<(u64, FlowMod)>| sent.into_iter().map(|(_, flow)| flow.command).collect::<Vec<_>>();
    assert_eq!(commands(flow_mods(&mut keeper, later)), [FlowCommand::DeleteStrict], "of what may be there");
    keeper.set_entry(2, entry(5));
    assert_eq!(commands(flow_mods(&mut keeper, later)), [FlowCommand::Add], "it can be asked for again");
    let told = keeper.take_events().into_iter().filter(|event| matches!(event, TableEvent::EntryRefused { .. }));
    assert_eq!(told.count(), 2);
    assert_eq!(flow_mods(&mut keeper, later + Duration::from_secs(3600)), []);
}

#[test]
fn an_application_s_entry_does_not_send_more_than_a_session_holds() {
    let key =
        |number: usize| EntryKey { table: 3, priority: 1, matching: Match::any().with(Field::EthDst, number as u64) };
    let work = EntryWork::Instructions(Vec::new());
    let content = Arc::new(EntryContent { work, idle_timeout: 0, hard_timeout: 0 });
    let mut tables = SwitchTables::new(1);
    tables.stage = SyncStage::Ready;
    let all = 2 * MOST_ON_WAY + 1;
    (1..all).for_each(|number| _ = tables.set(key(number), Arc::clone(&content), Some(ROUTE)));
    tables.set(key(all), Arc::clone(&content), None);
    for expected in [MOST_ON_WAY, MOST_ON_WAY, 1] {
        let sent = tables.flush();
        assert_eq!((sent.len(), sent.last()), (expected + 1, Some(&Body::BarrierRequest)));
        if expected > 1 {
            assert_eq!(tables.flush(), [], "what is on its way is not confirmed");
        }
        tables.confirm();
    }
    // Without an entry of an application, batches are smaller.
    (1..all).for_each(|number| tables.remove_key(&key(number)));
    tables.disconnect();
    tables.stage = SyncStage::Ready;
    (1..all).for_each(|number| _ = tables.set(key(number), Arc::clone(&content), Some(ROUTE)));
    let sizes: Vec<_> = (0..3).map(|_| tables.flush().len()).collect();
    assert_eq!(sizes, [MOST_ON_WAY / 2 + 1, MOST_ON_WAY / 2 + 1, 0]);
}
