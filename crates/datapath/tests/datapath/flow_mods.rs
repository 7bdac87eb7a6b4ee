//! Changes of tables by flow-mods (OpenFlow 1.3.5, 6.4; OpenFlow 1.0.0, 4.6), and the expiry of entries.
use crate::bench::*;
use std::time::Duration;
use weir_datapath::DatapathConfig;
use weir_openflow::model::error::{BadAction, BadInstruction, BadMatch, FlowModFailed, MeterModFailed};
use weir_openflow::model::multipart::{FlowRequest, FlowStats, MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::model::{
    Action, ErrorType, FlowCommand, FlowFlags, FlowMod, FlowRemoved, FlowRemovedReason, GroupId, Instruction, Match,
    MeterId, PortNo, TableId,
};
use weir_openflow::{Body, Version};
use weir_packet::Field;
use weir_packet::craft::FrameBuilder;
use weir_packet::field::{VLAN_PRESENT, eth_type, ip_proto};

fn frame() -> Vec<u8> {
    FrameBuilder::ethernet(mac(2), mac(1)).payload(&[0; 46]).build()
}

/// Returns all entries as a controller sees them, ordered by table and priority.
fn entries(bench: &mut Bench) -> Vec<FlowStats> {
    bench.datapath.channel_up(bench.now, CONTROLLER, Version::V13);
    let body = RequestBody::Flow(FlowRequest::all());
    let answers = bench.ask(CONTROLLER, Body::MultipartRequest(MultipartRequest { more: false, body }));
    let mut entries: Vec<FlowStats> = answers
        .into_iter()
        .flat_map(|body| match body {
            Body::MultipartReply(reply) => match reply.body {
                ReplyBody::Flow(entries) => entries,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        })
        .collect();
    entries.sort_by_key(|entry| (entry.table, std::cmp::Reverse(entry.priority)));
    entries
}

/// Returns the priorities of all entries, highest first.
fn priorities(bench: &mut Bench) -> Vec<u16> {
    entries(bench).iter().map(|entry| entry.priority).collect()
}

fn command(command: FlowCommand, priority: u16, matching: Match, actions: Vec<Action>) -> FlowMod {
    FlowMod { command, ..FlowMod::add(priority, matching, apply(actions)) }
}

fn delete(matching: Match) -> FlowMod {
    command(FlowCommand::Delete, 0, matching, Vec::new())
}

fn with_flags(flags: FlowFlags, flow: FlowMod) -> FlowMod {
    FlowMod { flags, ..flow }
}

/// Returns an IPv4 match on a destination prefix.
fn to_prefix(address: u32, mask: u32) -> Match {
    Match::any().with(Field::EthType, eth_type::IPV4).with_masked(Field::Ipv4Dst, address, mask)
}

#[test]
fn an_identical_entry_replaces_and_keeps_counters() {
    let mut bench = Bench::new();
    bench.add(3, from_port(1), output(2));
    bench.receive(1, &frame());
    bench.wait(Duration::from_secs(5));
    let again = FlowMod { cookie: 9, ..FlowMod::add(3, from_port(1), apply(output(3))) };
    bench.flow_mod(&again).unwrap();
    let [entry] = entries(&mut bench).try_into().unwrap();
    assert_eq!((entry.packet_count, entry.byte_count, entry.cookie, entry.duration_sec), (1, 60, 9, 0));
    assert_eq!(bench.ports_of(1, &frame()), [3]);
    bench.flow_mod(&with_flags(FlowFlags::RESET_COUNTS, again)).unwrap();
    assert_eq!(entries(&mut bench)[0].packet_count, 0);
}

#[test]
fn overlap_is_refused_when_asked() {
    let mut bench = Bench::new();
    bench.add(5, to_prefix(0x0a00_0000, 0xff00_0000), output(2));
    let checked = |flow| with_flags(FlowFlags::CHECK_OVERLAP, flow);
    let overlap = Err(ErrorType::from(FlowModFailed::Overlap));
    let add = |priority, matching| checked(FlowMod::add(priority, matching, apply(output(3))));
    assert_eq!(bench.flow_mod(&add(5, to_prefix(0x0a01_0000, 0xffff_0000))), overlap);
    assert_eq!(bench.flow_mod(&add(5, from_port(1))), overlap, "both may match one packet");
    assert_eq!(bench.flow_mod(&add(5, to_prefix(0x0b00_0000, 0xff00_0000))), Ok(()));
    assert_eq!(bench.flow_mod(&add(6, to_prefix(0x0a01_0000, 0xffff_0000))), Ok(()), "another priority");
    assert_eq!(bench.flow_mod(&FlowMod { table: TableId(1), ..add(5, from_port(1)) }), Ok(()), "another table");
    assert_eq!(priorities(&mut bench), [6, 5, 5, 5]);
}

#[test]
fn a_full_table_refuses_but_replaces() {
    let mut bench = Bench::with(DatapathConfig { max_entries: 2, ..DatapathConfig::default() });
    bench.add(1, from_port(1), output(2));
    bench.add(1, from_port(2), output(2));
    let third = FlowMod::add(1, from_port(3), apply(output(2)));
    assert_eq!(bench.flow_mod(&third), Err(FlowModFailed::TableFull.into()));
    bench.add(1, from_port(2), output(4));
    bench.flow_mod(&delete(from_port(1))).unwrap();
    assert_eq!(bench.flow_mod(&third), Ok(()));
}

#[test]
fn non_strict_modify_changes_what_is_at_least_as_specific() {
    let mut bench = Bench::new();
    bench.add(1, to_prefix(0x0a01_0000, 0xffff_0000), output(2));
    bench.add(2, to_prefix(0x0a02_0203, 0xffff_ffff), output(2));
    bench.add(3, to_prefix(0, 0), output(2));
    bench.add(4, from_port(1), output(2));
    bench.wait(Duration::from_secs(3));
    let modify = command(FlowCommand::Modify, 9, to_prefix(0x0a00_0000, 0xff00_0000), output(3));
    bench.flow_mod(&FlowMod { cookie: 5, idle_timeout: 1, ..modify }).unwrap();
    let entries = entries(&mut bench);
    let outputs: Vec<bool> = entries.iter().map(|entry| entry.instructions == apply(output(3))).collect();
    assert_eq!(outputs, [false, false, true, true]);
    // A modify changes nothing else (OpenFlow 1.3.5, 6.4).
    assert!(entries.iter().all(|e| (e.cookie, e.idle_timeout, e.duration_sec) == (0, 0, 3)));
}

#[test]
fn strict_commands_want_priority_and_match() {
    let mut bench = Bench::new();
    bench.add(1, from_port(1), output(2));
    bench.add(2, from_port(1), output(2));
    bench.flow_mod(&command(FlowCommand::ModifyStrict, 2, from_port(1), output(3))).unwrap();
    bench.flow_mod(&command(FlowCommand::ModifyStrict, 2, Match::any(), output(4))).unwrap();
    assert_eq!(bench.ports_of(1, &frame()), [3]);
    bench.flow_mod(&command(FlowCommand::DeleteStrict, 2, Match::any(), Vec::new())).unwrap();
    assert_eq!(priorities(&mut bench), [2, 1]);
    bench.flow_mod(&command(FlowCommand::DeleteStrict, 2, from_port(1), Vec::new())).unwrap();
    assert_eq!(priorities(&mut bench), [1]);
}

#[test]
fn modify_without_match_adds_in_v10_only() {
    let mut bench = Bench::controlled_v10();
    bench.flow_mod(&command(FlowCommand::Modify, 1, from_port(1), output(2))).unwrap();
    assert_eq!(priorities(&mut bench), [0_u16; 0]);
    let flow = command(FlowCommand::ModifyStrict, 1, from_port(1), output(2));
    assert_eq!(bench.error_of(OLD_CONTROLLER, Body::FlowMod(flow)), None);
    assert_eq!(priorities(&mut bench), [1]);
}

#[test]
fn deletes_are_filtered_by_cookie_and_output() {
    let mut bench = Bench::new();
    for (priority, cookie, port) in [(1, 0x10, 1), (2, 0x11, 2), (3, 0x20, 2)] {
        let add = FlowMod::add(priority, Match::any(), apply(output(port)));
        bench.flow_mod(&FlowMod { cookie, table: TableId(7), ..add }).unwrap();
    }
    let delete = FlowMod { table: TableId::ALL, ..delete(Match::any()) };
    bench.flow_mod(&FlowMod { out_group: GroupId(1), ..delete.clone() }).unwrap();
    bench.flow_mod(&FlowMod { table: TableId(6), ..delete.clone() }).unwrap();
    assert_eq!(priorities(&mut bench), [3, 2, 1]);
    let filtered = FlowMod { cookie: 0x1f, cookie_mask: 0xf0, out_port: PortNo(2), ..delete.clone() };
    bench.flow_mod(&filtered).unwrap();
    assert_eq!(priorities(&mut bench), [3, 1]);
    bench.flow_mod(&delete).unwrap();
    assert_eq!(priorities(&mut bench), [0_u16; 0]);
}

#[test]
fn wrong_flow_mods_get_their_errors() {
    let mut bench = Bench::new();
    let ipv4 = || Match::any().with(Field::EthType, eth_type::IPV4);
    let tcp = || ipv4().with(Field::IpProto, ip_proto::TCP);
    let set = |field, value| Action::SetField { field, value };
    let acting = |matching, action| FlowMod::add(1, matching, apply(vec![action]));
    let any = Match::any;
    let bad = |code: BadAction| ErrorType::from(code);
    let cases: Vec<(FlowMod, ErrorType)> = vec![
        (FlowMod { table: TableId(64), ..delete(any()) }, FlowModFailed::BadTableId.into()),
        (FlowMod { table: TableId::ALL, ..acting(any(), Action::PopVlan) }, FlowModFailed::BadTableId.into()),
        (with_flags(FlowFlags(1 << 6), FlowMod::add(1, any(), vec![])), FlowModFailed::BadFlags.into()),
        (FlowMod::add(1, any().with(Field::TcpDst, 1_u8), vec![]), BadMatch::BadPrereq.into()),
        (FlowMod::add(1, any(), vec![Instruction::GotoTable(TableId(0))]), BadInstruction::BadTableId.into()),
        (FlowMod::add(1, any(), vec![Instruction::GotoTable(TableId(64))]), BadInstruction::BadTableId.into()),
        (FlowMod::add(1, any(), vec![Instruction::Meter(MeterId(1))]), MeterModFailed::UnknownMeter.into()),
        (FlowMod::add(1, any(), [apply(vec![]), apply(vec![])].concat()), BadInstruction::DupInst.into()),
        (acting(any(), Action::output(PortNo(0))), bad(BadAction::BadOutPort)),
        (acting(any(), Action::output(PortNo::ANY)), bad(BadAction::BadOutPort)),
        (acting(any(), Action::output(PortNo::TABLE)), bad(BadAction::BadOutPort)),
        (acting(any(), Action::output(PortNo(0xffff_ff01))), bad(BadAction::BadOutPort)),
        (acting(any(), Action::Group(GroupId(1))), bad(BadAction::BadOutGroup)),
        (acting(any(), Action::PushVlan(0x9100)), bad(BadAction::BadArgument)),
        (acting(any(), Action::PushMpls(0x0800)), bad(BadAction::BadArgument)),
        (acting(any(), Action::PopVlan), bad(BadAction::MatchInconsistent)),
        (acting(any(), Action::DecNwTtl), bad(BadAction::MatchInconsistent)),
        (acting(ipv4(), Action::DecMplsTtl), bad(BadAction::MatchInconsistent)),
        (acting(ipv4(), set(Field::TcpDst, 1)), bad(BadAction::MatchInconsistent)),
        (acting(tcp(), set(Field::UdpDst, 1)), bad(BadAction::MatchInconsistent)),
        (acting(any(), set(Field::VlanVid, 0x1005)), bad(BadAction::MatchInconsistent)),
        (acting(any(), set(Field::InPort, 1)), bad(BadAction::BadSetType)),
        (acting(any(), set(Field::Metadata, 1)), bad(BadAction::BadSetType)),
        (acting(ipv4(), set(Field::IpDscp, 64)), bad(BadAction::BadSetArgument)),
        (acting(any(), Action::Experimenter { id: 1, data: vec![].into() }), bad(BadAction::BadExperimenter)),
    ];
    for (flow, error) in cases {
        assert_eq!(bench.flow_mod(&flow), Err(error), "{flow:?}");
    }
    assert_eq!(priorities(&mut bench), [0_u16; 0]);
}

/// Unknown flags are refused in any command (OpenFlow 1.3.5, 7.4.4.5).
#[test]
fn deletes_with_unknown_flags_are_refused() {
    let mut bench = Bench::controlled();
    bench.add(1, Match::any(), output(2));
    let unknown = with_flags(FlowFlags(1 << 9), delete(Match::any()));
    assert_eq!(bench.error_of(CONTROLLER, Body::FlowMod(unknown)), Some(FlowModFailed::BadFlags.into()));
    assert_eq!(priorities(&mut bench), [1]);
    // Known flags do not restrict which entries a delete removes.
    let known = with_flags(FlowFlags::SEND_FLOW_REM, delete(Match::any()));
    assert_eq!(bench.error_of(CONTROLLER, Body::FlowMod(known)), None);
    assert!(priorities(&mut bench).is_empty());
}

#[test]
fn consistency_follows_the_actions() {
    let mut bench = Bench::new();
    let vid = || Action::SetField { field: Field::VlanVid, value: 0x1005 };
    let ipv4 = || Match::any().with(Field::EthType, eth_type::IPV4);
    let right = [
        FlowMod::add(1, Match::any(), apply(vec![Action::PushVlan(0x8100), vid(), Action::PopVlan, Action::PopVlan])),
        FlowMod::add(2, ipv4(), apply(vec![Action::DecNwTtl, Action::PushMpls(0x8847), Action::SetMplsTtl(9)])),
        // The action set pushes the tag before it sets the id, whatever the order in the message.
        FlowMod::add(3, Match::any(), vec![Instruction::WriteActions(vec![vid(), Action::PushVlan(0x8100)])]),
    ];
    for flow in right {
        assert_eq!(bench.flow_mod(&flow), Ok(()), "{flow:?}");
    }
    let gone = FlowMod::add(4, ipv4(), apply(vec![Action::PushMpls(0x8847), Action::DecNwTtl]));
    assert_eq!(bench.flow_mod(&gone), Err(BadAction::MatchInconsistent.into()));
}

#[test]
fn v10_does_not_ask_for_consistency() {
    let mut bench = Bench::controlled_v10();
    let flow = FlowMod::add(1, Match::any(), apply(vec![Action::SetTpDst(80), Action::PopVlan, Action::SetNwTos(8)]));
    assert_eq!(bench.error_of(OLD_CONTROLLER, Body::FlowMod(flow)), None);
    let emergency = with_flags(FlowFlags::EMERG, FlowMod::add(1, Match::any(), vec![]));
    assert_eq!(bench.error_of(OLD_CONTROLLER, Body::FlowMod(emergency.clone())), Some(FlowModFailed::TableFull.into()));
    for (idle_timeout, hard_timeout) in [(1, 0), (0, 1)] {
        let timed = Body::FlowMod(FlowMod { idle_timeout, hard_timeout, ..emergency.clone() });
        assert_eq!(bench.error_of(OLD_CONTROLLER, timed), Some(FlowModFailed::BadTimeout.into()));
    }
}

#[test]
fn counts_that_are_not_wanted_are_not_shown() {
    let mut bench = Bench::new();
    let flags = FlowFlags::NO_PKT_COUNTS.with(FlowFlags::NO_BYT_COUNTS);
    bench.flow_mod(&with_flags(flags, FlowMod::add(1, Match::any(), apply(output(2))))).unwrap();
    bench.receive(1, &frame());
    let [entry] = entries(&mut bench).try_into().unwrap();
    assert_eq!((entry.packet_count, entry.byte_count), (u64::MAX, u64::MAX));
}

/// Lets `seconds` pass as an engine does: calls `expire` at each time it asked for.
fn live_on(bench: &mut Bench, seconds: u64) {
    let end = bench.now + Duration::from_secs(seconds);
    while let Some(at) = bench.datapath.expire(bench.now, &mut bench.out) {
        if at > end {
            break;
        }
        bench.now = at.max(bench.now);
    }
    bench.now = end;
    bench.datapath.expire(end, &mut bench.out);
}

fn removed(bench: &mut Bench) -> Vec<FlowRemoved> {
    let told = bench.told(CONTROLLER).into_iter();
    told.filter_map(|body| if let Body::FlowRemoved(removed) = body { Some(removed) } else { None }).collect()
}

#[test]
fn entries_end_in_time() {
    let mut bench = Bench::controlled();
    let timed = |priority, idle_timeout, hard_timeout| {
        let flow = FlowMod::add(priority, from_port(priority.into()), apply(output(4)));
        with_flags(FlowFlags::SEND_FLOW_REM, FlowMod { idle_timeout, hard_timeout, ..flow })
    };
    for flow in [timed(1, 3, 0), timed(2, 0, 5), timed(3, 3, 5)] {
        bench.flow_mod(&flow).unwrap();
    }
    live_on(&mut bench, 2);
    assert_eq!(removed(&mut bench), []);
    bench.receive(1, &frame());
    bench.receive(3, &frame());
    live_on(&mut bench, 2);
    assert_eq!(removed(&mut bench), []);
    bench.receive(3, &frame());
    // In second 5 the idle entry, last used at 2, and the others with a hard time-out end.
    live_on(&mut bench, 1);
    let mut ended: Vec<_> = removed(&mut bench)
        .into_iter()
        .map(|r| (r.priority, r.reason, r.duration_sec, r.duration_nsec, r.packet_count))
        .collect();
    ended.sort_by_key(|(priority, ..)| *priority);
    let (idle, hard) = (FlowRemovedReason::IdleTimeout, FlowRemovedReason::HardTimeout);
    assert_eq!(ended, [(1, idle, 5, 0, 1), (2, hard, 5, 0, 0), (3, hard, 5, 0, 2)]);
    assert_eq!(priorities(&mut bench), [0_u16; 0]);
    assert_eq!(bench.datapath.expire(bench.now, &mut bench.out), None);
}

#[test]
fn a_replaced_entry_has_its_own_time() {
    let mut bench = Bench::controlled();
    let timed = |hard_timeout| FlowMod { hard_timeout, ..FlowMod::add(1, Match::any(), apply(output(4))) };
    bench.flow_mod(&timed(2)).unwrap();
    live_on(&mut bench, 1);
    bench.flow_mod(&timed(3)).unwrap();
    live_on(&mut bench, 2);
    assert_eq!(priorities(&mut bench), [1]);
    live_on(&mut bench, 1);
    assert_eq!(priorities(&mut bench), [0_u16; 0]);
}

#[test]
fn deleted_entries_are_told_of_when_they_ask_for_it() {
    let mut bench = Bench::controlled();
    bench.flow_mod(&with_flags(FlowFlags::SEND_FLOW_REM, FlowMod::add(1, from_port(1), vec![]))).unwrap();
    bench.add(2, from_port(2), output(1));
    bench.ask(CONTROLLER, Body::FlowMod(FlowMod::delete_all()));
    bench.ask(CONTROLLER, Body::FlowMod(with_flags(FlowFlags::SEND_FLOW_REM, FlowMod::add(3, from_port(3), vec![]))));
    let told = bench.ask(CONTROLLER, Body::FlowMod(FlowMod::delete_all()));
    let [Body::FlowRemoved(removed)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((removed.priority, removed.reason), (3, FlowRemovedReason::Delete));
}

#[test]
fn what_a_match_implies_does_not_hide_entries_from_wider_ones() {
    let mut bench = Bench::controlled();
    // Alone, a match for zeros in Ethernet fields implies an Ethernet header. A match on the tag implies one anyway.
    let wide = Match::any().with_masked(Field::EthDst, 0_u64, 2_u64);
    let narrow = wide.clone().with(Field::VlanVid, VLAN_PRESENT | 5_u16);
    bench.flow_mod(&FlowMod::add(7, narrow, apply(vec![Action::output(PortNo(2))]))).unwrap();
    let delete = FlowMod { command: FlowCommand::Delete, ..FlowMod::add(1, wide, Vec::new()) };
    bench.flow_mod(&delete).unwrap();
    assert!(entries(&mut bench).is_empty());
}
