//! Shrinks a case that shows a difference: removes steps, then parts of messages, while a difference of this kind
//! remains.
use crate::case::bytes_of;
use crate::{CaseStep, DifferentialCase};
use weir_openflow::Body;
use weir_openflow::model::bundle::BundleAdd;
use weir_openflow::model::group::{BucketId, GroupMod};
use weir_openflow::model::{Action, FlowMod, Instruction};

/// Returns the cases that are smaller by one step or one part of a message, largest cuts first. The last step, which
/// deletes all entries, is never removed.
pub fn smaller(case: &DifferentialCase) -> Vec<DifferentialCase> {
    let cut = case.steps.len().saturating_sub(1);
    let mut all: Vec<DifferentialCase> = (0..cut).rev().map(|step| case.without(step)).collect();
    for (number, step) in case.steps[..cut].iter().enumerate() {
        all.extend(smaller_steps(step).into_iter().map(|step| {
            let mut case = case.clone();
            case.steps[number] = step;
            case
        }));
    }
    all.retain(is_possible);
    all
}

/// Returns true if the case's version can encode all its messages.
fn is_possible(case: &DifferentialCase) -> bool {
    case.steps.iter().all(|step| match step {
        CaseStep::Message(body) => bytes_of(body, 1, case.version).is_some(),
        _ => true,
    })
}

fn smaller_steps(step: &CaseStep) -> Vec<CaseStep> {
    match step {
        CaseStep::Message(body) => smaller_bodies(body).into_iter().map(CaseStep::Message).collect(),
        CaseStep::Frame { .. } | CaseStep::Pause => Vec::new(),
    }
}

fn smaller_bodies(body: &Body) -> Vec<Body> {
    match body {
        Body::FlowMod(flow) => smaller_flows(flow).into_iter().map(Body::FlowMod).collect(),
        Body::GroupMod(group) => smaller_groups(group).into_iter().map(Body::GroupMod).collect(),
        Body::BundleAdd(add) => smaller_bodies(&add.message.body)
            .into_iter()
            .map(|body| {
                let mut message = add.message.clone();
                message.body = body;
                Body::BundleAdd(BundleAdd { message, ..add.clone() })
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn smaller_flows(flow: &FlowMod) -> Vec<FlowMod> {
    let mut all = Vec::new();
    for at in 0..flow.matching.fields.len() {
        let mut flow = flow.clone();
        flow.matching.fields.remove(at);
        all.push(flow);
    }
    for instructions in smaller_instructions(&flow.instructions) {
        all.push(FlowMod { instructions, ..flow.clone() });
    }
    let plain = FlowMod::add(1, flow.matching.clone(), flow.instructions.clone());
    all.extend([
        FlowMod { flags: plain.flags, ..flow.clone() },
        FlowMod { cookie: 0, cookie_mask: 0, ..flow.clone() },
        FlowMod { idle_timeout: 0, ..flow.clone() },
        FlowMod { hard_timeout: 0, ..flow.clone() },
        FlowMod { importance: 0, ..flow.clone() },
        FlowMod { table: plain.table, ..flow.clone() },
        FlowMod { priority: 1, ..flow.clone() },
    ]);
    all.retain(|smaller| smaller != flow);
    all
}

fn smaller_instructions(instructions: &[Instruction]) -> Vec<Vec<Instruction>> {
    let mut all = Vec::new();
    for at in 0..instructions.len() {
        let mut fewer = instructions.to_vec();
        fewer.remove(at);
        all.push(fewer);
        let of = |make: fn(Vec<Action>) -> Instruction, list: &[Action]| {
            smaller_actions(list).into_iter().map(make).collect::<Vec<_>>()
        };
        let parts = match &instructions[at] {
            Instruction::ApplyActions(list) => of(Instruction::ApplyActions, list),
            Instruction::WriteActions(list) => of(Instruction::WriteActions, list),
            _ => Vec::new(),
        };
        for part in parts {
            let mut smaller = instructions.to_vec();
            smaller[at] = part;
            all.push(smaller);
        }
    }
    all
}

fn smaller_actions(list: &[Action]) -> Vec<Vec<Action>> {
    let without = |at: usize| [&list[..at], &list[at + 1..]].concat();
    (0..list.len()).map(without).collect()
}

fn smaller_groups(group: &GroupMod) -> Vec<GroupMod> {
    let mut all = Vec::new();
    for at in 0..group.buckets.len() {
        let mut fewer = group.clone();
        fewer.buckets.remove(at);
        // Versions before 1.5 identify buckets by their positions.
        for (id, bucket) in (0..).zip(&mut fewer.buckets) {
            bucket.id = BucketId(id);
        }
        all.push(fewer);
        for actions in smaller_actions(&group.buckets[at].actions) {
            let mut fewer = group.clone();
            fewer.buckets[at].actions = actions;
            all.push(fewer);
        }
    }
    all
}
