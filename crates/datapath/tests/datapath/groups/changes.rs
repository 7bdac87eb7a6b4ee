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
    bench.add_group(1, Indirect, vec![bucket(output(2))]);
    bench.all_to_group(1);
    assert_eq!(bench.group(Modify, 1, All, vec![bucket(output(3)), bucket(output(4))]), None);
    assert_eq!(bench.ports_of(1, &frame()), [3, 4]);
    assert_eq!(bench.group(Modify, 1, All, vec![]), None);
    assert_eq!(bench.ports_of(1, &frame()), [0_u32; 0], "a group without buckets stays, and takes its packets");
    assert_eq!(bench.flows(FlowRequest::all()), 1);
}

#[test]
fn flow_entries_go_with_their_group() {
    let mut bench = Bench::controlled();
    for group in [1, 2] {
        bench.add_group(group, Indirect, vec![bucket(output(2))]);
    }
    bench.flow_mod(&sending(0, 1, Instruction::ApplyActions, 1)).unwrap();
    bench.flow_mod(&sending(3, 1, Instruction::WriteActions, 1)).unwrap();
    bench.flow_mod(&sending(3, 2, Instruction::WriteActions, 2)).unwrap();
    bench.add(9, Match::any(), output(2));
    let told = bench.ask(CONTROLLER, Body::GroupMod(group_mod(Delete, 1, All, vec![])));
    let gone: Vec<(TableId, FlowRemovedReason)> = told
        .into_iter()
        .map(|body| if let Body::FlowRemoved(gone) = body { (gone.table, gone.reason) } else { panic!("{body:?}") })
        .collect();
    let reason = FlowRemovedReason::GroupDelete;
    assert_eq!(gone, [(TableId(0), reason), (TableId(3), reason)]);
    assert_eq!(bench.flows(FlowRequest::all()), 2);
    // All groups at once. An entry that was modified meanwhile does not use the group any more.
    bench.add_group(1, Indirect, vec![bucket(output(2))]);
    bench.flow_mod(&FlowMod { instructions: apply(output(3)), ..sending(3, 2, Instruction::WriteActions, 2) }).unwrap();
    bench.flow_mod(&sending(5, 1, Instruction::ApplyActions, 1)).unwrap();
    assert_eq!(bench.group(Delete, GroupId::ALL.0, All, vec![]), None);
    assert_eq!(bench.flows(FlowRequest::all()), 2);
    assert_eq!(bench.group_stats(GroupId::ALL), []);
    bench.add_group(1, Indirect, vec![bucket(output(2))]);
}

#[test]
fn deletes_and_requests_are_filtered_by_group() {
    let mut bench = Bench::controlled();
    for group in [1, 2] {
        bench.add_group(group, Indirect, vec![bucket(output(2))]);
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
    assert_eq!(bench.group(Delete, 7, All, vec![]), None);
    bench.add_group(7, All, vec![]);
    assert_eq!(bench.group(Delete, 7, Select, vec![]), None, "the type does not count");
    bench.add_group(7, All, vec![]);
}

#[test]
fn a_group_that_others_lead_to_stays() {
    let mut bench = Bench::controlled();
    let chained = Some(weir_openflow::model::error::GroupModFailed::ChainedGroup.into());
    bench.add_group(1, Indirect, vec![bucket(output(2))]);
    bench.add_group(2, Indirect, vec![bucket(to_group(1))]);
    bench.add_group(3, FastFailover, vec![Bucket { watch_group: GroupId(2), ..bucket(output(3)) }]);
    assert_eq!(bench.group(Delete, 1, All, vec![]), chained);
    assert_eq!(bench.group(Delete, 2, All, vec![]), chained);
    // After a modify the group does not lead to its former targets.
    assert_eq!(bench.group(Modify, 2, Indirect, vec![bucket(output(4))]), None);
    assert_eq!(bench.group(Delete, 1, All, vec![]), None);
    assert_eq!(bench.group(Delete, 3, All, vec![]), None);
    assert_eq!(bench.group(Delete, 2, All, vec![]), None);
    // With all groups deleted, no group leads anywhere.
    bench.add_group(1, Indirect, vec![bucket(output(2))]);
    bench.add_group(2, Indirect, vec![bucket(to_group(1))]);
    assert_eq!(bench.group(Delete, GroupId::ALL.0, All, vec![]), None);
    assert_eq!(bench.group_stats(GroupId::ALL), []);
}
