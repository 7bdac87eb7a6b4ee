//! Changes of groups, and of the entries that use them.
use super::*;
use weir_openflow::model::multipart::{FlowRequest, ReplyBody, RequestBody};
use weir_openflow::model::{FlowFlags, FlowMod, FlowRemovedReason, Instruction, TableId};

impl Bench {
    fn flows(&mut self, request: FlowRequest) -> usize {
        let parts = self.multipart(CONTROLLER, RequestBody::Flow(request)).unwrap();
        parts.into_iter().map(|part| if let ReplyBody::Flow(flows) = part { flows.len() } else { 0 }).sum()
    }
}

fn sending(table: u8, priority: u16, instruction: fn(Vec<Action>) -> Instruction, group: u32) -> FlowMod {
    let flags = FlowFlags::SEND_FLOW_REM;
    FlowMod { table: TableId(table), flags, ..FlowMod::add(priority, Match::any(), vec![instruction(to_group(group))]) }
}

#[test]
fn a_modify_replaces_type_and_buckets() {
    let mut bench = Bench::controlled();
    bench.add_group(1, INDIRECT, vec![bucket(output(2))]);
    bench.all_to_group(1);
    assert_eq!(bench.group(MODIFY, 1, ALL, vec![bucket(output(3)), bucket(output(4))]), None);
    assert_eq!(bench.ports_of(1, &frame()), [3, 4]);
    assert_eq!(bench.group(MODIFY, 1, ALL, vec![]), None);
    assert_eq!(bench.ports_of(1, &frame()), [0_u32; 0], "a group without buckets stays, and takes its packets");
    assert_eq!(bench.flows(FlowRequest::all()), 1);
}

#[test]
fn flow_entries_go_with_their_group() {
    let mut bench = Bench::controlled();
    for group in [1, 2] {
        bench.add_group(group, INDIRECT, vec![bucket(output(2))]);
    }
    bench.flow_mod(&sending(0, 1, Instruction::ApplyActions, 1)).unwrap();
    bench.flow_mod(&sending(3, 1, Instruction::WriteActions, 1)).unwrap();
    bench.flow_mod(&sending(3, 2, Instruction::WriteActions, 2)).unwrap();
    bench.add(9, Match::any(), output(2));
    let told = bench.ask(CONTROLLER, Body::GroupMod(group_mod(DELETE, 1, ALL, vec![])));
    let gone: Vec<(TableId, FlowRemovedReason)> = told
        .into_iter()
        .map(|body| if let Body::FlowRemoved(gone) = body { (gone.table, gone.reason) } else { panic!("{body:?}") })
        .collect();
    let reason = FlowRemovedReason::GroupDelete;
    assert_eq!(gone, [(TableId(0), reason), (TableId(3), reason)]);
    assert_eq!(bench.flows(FlowRequest::all()), 2);
    // All groups at once. An entry that was modified meanwhile does not use the group any more.
    bench.add_group(1, INDIRECT, vec![bucket(output(2))]);
    bench.flow_mod(&FlowMod { instructions: apply(output(3)), ..sending(3, 2, Instruction::WriteActions, 2) }).unwrap();
    bench.flow_mod(&sending(5, 1, Instruction::ApplyActions, 1)).unwrap();
    assert_eq!(bench.group(DELETE, GroupId::ALL.0, ALL, vec![]), None);
    assert_eq!(bench.flows(FlowRequest::all()), 2);
    assert_eq!(bench.group_stats(GroupId::ALL), []);
    bench.add_group(1, INDIRECT, vec![bucket(output(2))]);
}

#[test]
fn deletes_and_requests_are_filtered_by_group() {
    let mut bench = Bench::controlled();
    for group in [1, 2] {
        bench.add_group(group, INDIRECT, vec![bucket(output(2))]);
        bench.flow_mod(&sending(0, u16::try_from(group).unwrap(), Instruction::ApplyActions, group)).unwrap();
    }
    assert_eq!(bench.flows(FlowRequest { out_group: GroupId(2), ..FlowRequest::all() }), 1);
    assert_eq!(bench.flows(FlowRequest { out_group: GroupId(3), ..FlowRequest::all() }), 0);
    let delete = FlowMod {
        command: weir_openflow::model::FlowCommand::Delete,
        out_group: GroupId(1),
        ..FlowMod::add(0, Match::any(), vec![])
    };
    bench.flow_mod(&delete).unwrap();
    assert_eq!(bench.flows(FlowRequest::all()), 1);
    assert_eq!(bench.group_stats(GroupId::ALL).iter().map(|group| group.ref_count).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_group_that_is_not_there_is_deleted_already() {
    let mut bench = Bench::controlled();
    assert_eq!(bench.group(DELETE, 7, ALL, vec![]), None);
    bench.add_group(7, ALL, vec![]);
    assert_eq!(bench.group(DELETE, 7, SELECT, vec![]), None, "the type does not count");
    bench.add_group(7, ALL, vec![]);
}

#[test]
fn a_group_that_others_lead_to_stays() {
    let mut bench = Bench::controlled();
    let chained = Some(weir_openflow::model::error::GroupModFailed::ChainedGroup.into());
    bench.add_group(1, INDIRECT, vec![bucket(output(2))]);
    bench.add_group(2, INDIRECT, vec![bucket(to_group(1))]);
    bench.add_group(3, FAST_FAILOVER, vec![Bucket { watch_group: GroupId(2), ..bucket(output(3)) }]);
    assert_eq!(bench.group(DELETE, 1, ALL, vec![]), chained);
    assert_eq!(bench.group(DELETE, 2, ALL, vec![]), chained);
    // After a modify the group does not lead to its former targets.
    assert_eq!(bench.group(MODIFY, 2, INDIRECT, vec![bucket(output(4))]), None);
    assert_eq!(bench.group(DELETE, 1, ALL, vec![]), None);
    assert_eq!(bench.group(DELETE, 3, ALL, vec![]), None);
    assert_eq!(bench.group(DELETE, 2, ALL, vec![]), None);
    // With all groups deleted, no group leads anywhere.
    bench.add_group(1, INDIRECT, vec![bucket(output(2))]);
    bench.add_group(2, INDIRECT, vec![bucket(to_group(1))]);
    assert_eq!(bench.group(DELETE, GroupId::ALL.0, ALL, vec![]), None);
    assert_eq!(bench.group_stats(GroupId::ALL), []);
}
