//! Compiles an entry's instructions into the form the pipeline runs: sorted into the order of execution (OpenFlow
//! 1.3.5, 5.9).
use crate::edits::Edits;
use crate::verdict::EntryVerdict;
use std::sync::Arc;
use weir_openflow::model::error::{BadAction, BadInstruction};
use weir_openflow::model::nicira::NxAction;
use weir_openflow::model::{Action, ErrorType, GroupId, Instruction, MeterId, PortNo, TableId};

/// Compiled instructions. Entries with equal instructions share one program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct EntryProgram {
    /// Meter that measures packets first, and may drop them.
    pub(crate) meter: Option<MeterId>,
    /// Actions run at once. Absent and empty differ only in flow statistics.
    pub(crate) apply: Option<Arc<[Action]>>,
    /// True if the action set is emptied before `write`.
    pub(crate) clear: bool,
    /// Actions written into the action set.
    pub(crate) write: Option<Arc<[Action]>>,
    /// New metadata bits, and the mask of the bits that are replaced.
    pub(crate) metadata: Option<(u64, u64)>,
    /// The next table. Without one the action set is run.
    pub(crate) goto: Option<u8>,
    /// True if there is an instruction between `apply` and `goto`.
    pub(crate) prepares: bool,
    /// The compiled edits and the output port, if the program only edits packets and outputs them to one port.
    pub(crate) edits: Option<Box<(Edits, PortNo)>>,
    /// True if `apply` has actions that look packets up in tables.
    pub(crate) looks_up: bool,
    /// True if the program punts packets to controllers or outputs to NORMAL, which needs exclusive access to the
    /// datapath.
    pub(crate) needs_all: bool,
    /// The groups that the actions use, each once.
    groups: Box<[GroupId]>,
    /// The meters that the program uses, each once.
    meters: Box<[MeterId]>,
}

impl EntryProgram {
    /// Compiles the instructions of an entry of `table`.
    ///
    /// # Errors
    /// An instruction is not supported, occurs twice, or goes to a table that is not a later one.
    pub(crate) fn compile(list: &[Instruction], table: u8, n_tables: u8) -> Result<EntryProgram, ErrorType> {
        let mut program = EntryProgram::default();
        for instruction in list {
            let repeated = match instruction {
                Instruction::ApplyActions(actions) => program.apply.replace(actions.as_slice().into()).is_some(),
                Instruction::WriteActions(actions) => program.write.replace(actions.as_slice().into()).is_some(),
                Instruction::ClearActions => std::mem::replace(&mut program.clear, true),
                Instruction::WriteMetadata { metadata, mask } => program.metadata.replace((*metadata, *mask)).is_some(),
                Instruction::GotoTable(TableId(next)) if *next > table && *next < n_tables => {
                    program.goto.replace(*next).is_some()
                }
                Instruction::GotoTable(_) => return Err(BadInstruction::BadTableId.into()),
                Instruction::Meter(meter) => program.meter.replace(*meter).is_some(),
                Instruction::StatTrigger { .. } => return Err(BadInstruction::UnsupInst.into()),
                Instruction::Experimenter { .. } => return Err(BadInstruction::BadExperimenter.into()),
            };
            // At most one instruction of each type is allowed (OpenFlow 1.3.5, 5.9). Versions before 1.4 have no
            // error code for it.
            if repeated {
                return Err(BadInstruction::DupInst.into());
            }
        }
        program.prepares = program.clear || program.write.is_some() || program.metadata.is_some();
        program.looks_up = program.apply.iter().flat_map(|list| list.iter()).any(looks_up);
        if program.write.iter().flat_map(|list| list.iter()).any(|action| matches!(action, Action::Nx(_))) {
            // An action set has one action per type in a fixed order, and Nicira's actions have no place in that
            // order.
            return Err(BadAction::UnsupportedOrder.into());
        }
        let needs_all = program.actions().any(needs_all);
        program.needs_all = needs_all;
        program.groups = groups_of(program.actions());
        program.meters = meters_of(program.meter, program.actions());
        program.edits = program.compile_edits().map(Box::new);
        Ok(program)
    }

    /// Returns the outcome for packets of an entry with this self.
    pub(crate) fn verdict(&self) -> EntryVerdict {
        let only_goto = self.apply.as_deref().unwrap_or_default().is_empty() && !self.prepares;
        match (self.meter, self.goto) {
            (None, Some(table)) if only_goto => return EntryVerdict::Goto(table),
            (None, None) => {}
            _ => return EntryVerdict::Program,
        }
        if let Some(edits) = &self.edits {
            return EntryVerdict::Edit(edits.1);
        }
        let apply = self.apply.as_deref().unwrap_or_default();
        let write = self.write.as_deref().unwrap_or_default();
        match (apply, write, self.metadata) {
            ([Action::Output { port, .. }], [], None) | ([], [Action::Output { port, .. }], None)
                if *port <= PortNo::MAX =>
            {
                EntryVerdict::Output(*port)
            }
            _ => EntryVerdict::Program,
        }
    }

    /// Compiles the program into edits and the output port. Returns `None` if it does more than that, or only outputs.
    fn compile_edits(&self) -> Option<(Edits, PortNo)> {
        let apply = self.apply.as_deref().unwrap_or_default();
        let (edits, last) = match self.write.as_deref().unwrap_or_default() {
            [] => apply.split_last().map(|(last, edits)| (edits, last))?,
            [last] => (apply, last),
            _ => return None,
        };
        let Action::Output { port, .. } = *last else { return None };
        let only_outputs = self.meter.is_none() && self.goto.is_none() && self.metadata.is_none();
        if !only_outputs || port > PortNo::MAX || edits.is_empty() {
            return None;
        }
        Some((Edits::compile(edits)?, port))
    }

    /// Returns the instructions in the order of execution.
    pub(crate) fn instructions(&self) -> Vec<Instruction> {
        let meter = self.meter.map(Instruction::Meter);
        let apply = self.apply.as_deref().map(|actions| Instruction::ApplyActions(actions.to_vec()));
        let clear = self.clear.then_some(Instruction::ClearActions);
        let write = self.write.as_deref().map(|actions| Instruction::WriteActions(actions.to_vec()));
        let metadata = self.metadata.map(|(metadata, mask)| Instruction::WriteMetadata { metadata, mask });
        let goto = self.goto.map(|table| Instruction::GotoTable(TableId(table)));
        [meter, apply, clear, write, metadata, goto].into_iter().flatten().collect()
    }

    /// Returns every action, both of the action list and of the action set.
    pub(crate) fn actions(&self) -> impl Iterator<Item = &Action> {
        self.apply.iter().chain(&self.write).flat_map(|actions| actions.iter())
    }

    /// Returns the groups that the actions use, each once.
    pub(crate) fn groups(&self) -> &[GroupId] {
        &self.groups
    }

    /// Returns the meters that the program uses, each once.
    pub(crate) fn meters(&self) -> &[MeterId] {
        &self.meters
    }

    /// Returns true if the program uses the meter, or any meter if `meter` is [`MeterId::ALL`].
    pub(crate) fn is_metered_by(&self, meter: MeterId) -> bool {
        self.meters.contains(&meter) || meter == MeterId::ALL && !self.meters.is_empty()
    }

    /// Returns true if an action sends to the group, or to any group if `group` is [`GroupId::ALL`].
    pub(crate) fn sends_to(&self, group: GroupId) -> bool {
        self.groups.contains(&group) || group == GroupId::ALL && !self.groups.is_empty()
    }

    /// Returns true if an action outputs to the port `wanted`.
    pub(crate) fn outputs_to(&self, wanted: PortNo) -> bool {
        self.actions().any(|action| match action {
            Action::Output { port, .. } | Action::Enqueue { port, .. } => *port == wanted,
            _ => false,
        })
    }
}

/// Returns true if an action looks packets up.
fn looks_up(action: &Action) -> bool {
    matches!(action, Action::Nx(nx) if nx.looks_up())
}

fn needs_all(action: &Action) -> bool {
    match action {
        Action::Output { port, .. } => matches!(*port, PortNo::CONTROLLER | PortNo::NORMAL),
        Action::Nx(action) => matches!(**action, NxAction::Controller(_)),
        _ => false,
    }
}

fn groups_of<'a>(actions: impl Iterator<Item = &'a Action>) -> Box<[GroupId]> {
    let mut groups: Vec<GroupId> =
        actions.filter_map(|action| if let Action::Group(group) = action { Some(*group) } else { None }).collect();
    groups.sort_unstable();
    groups.dedup();
    groups.into()
}

fn meters_of<'a>(instruction: Option<MeterId>, actions: impl Iterator<Item = &'a Action>) -> Box<[MeterId]> {
    let of_action = |action: &Action| if let Action::Meter(meter) = action { Some(*meter) } else { None };
    let mut meters: Vec<MeterId> = instruction.into_iter().chain(actions.filter_map(of_action)).collect();
    meters.sort_unstable();
    meters.dedup();
    meters.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice::from_ref;
    use weir_openflow::model::{GroupId, Instruction, MeterId};
    use weir_packet::Field;

    fn port_of(instructions: &[Instruction]) -> Option<PortNo> {
        let program = EntryProgram::compile(instructions, 0, 2).unwrap();
        program.edits.as_ref().map(|edits| edits.1)
    }

    #[test]
    fn only_edits_before_one_ordinary_port_are_compiled() {
        use Instruction::{ApplyActions, GotoTable, Meter, WriteActions};
        let out = Action::output(PortNo(2));
        let set_to = |field, value| Action::SetField { field, value };
        let set = set_to(Field::UdpDst, 5);
        let apply = |list: &[Action]| ApplyActions(list.to_vec());
        for actions in [vec![set.clone()], vec![Action::DecNwTtl, Action::SetQueue(3)], vec![Action::PopVlan]] {
            let with_output = [&actions[..], from_ref(&out)].concat();
            assert_eq!(port_of(&[apply(&with_output)]), Some(PortNo(2)), "{actions:?}");
            assert_eq!(port_of(&[apply(&actions), WriteActions(vec![out.clone()])]), Some(PortNo(2)));
        }
        let others = [
            vec![apply(&[])],
            vec![apply(from_ref(&out))],
            vec![apply(&[out.clone(), set.clone()])],
            vec![apply(&[set.clone(), out.clone(), out.clone()])],
            vec![apply(&[set.clone(), Action::output(PortNo::NORMAL)])],
            vec![apply(&[set.clone(), Action::Group(GroupId(1)), out.clone()])],
            vec![apply(&[set_to(Field::Metadata, 5), out.clone()])],
            vec![apply(from_ref(&set)), WriteActions(vec![set.clone(), out.clone()])],
            vec![apply(&[set.clone(), out.clone()]), GotoTable(weir_openflow::model::TableId(1))],
            vec![apply(&[set.clone(), out.clone()]), Meter(MeterId(1))],
        ];
        for instructions in others {
            assert_eq!(port_of(&instructions), None, "{instructions:?}");
        }
    }
}
