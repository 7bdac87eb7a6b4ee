//! What an entry does, as the pipeline runs it: its instructions sorted into the order of execution (OpenFlow 1.3.5, 5.9).
use crate::edits::Edits;
use crate::nicira;
use std::sync::Arc;
use weir_openflow::model::error::{BadAction, BadInstruction};
use weir_openflow::model::nicira::NxAction;
use weir_openflow::model::{Action, ErrorType, GroupId, Instruction, MeterId, PortNo, TableId};

/// Compiled instructions. Entries that do the same share them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Program {
    /// The meter that decides first whether the packet goes on.
    pub(crate) meter: Option<MeterId>,
    /// Actions run at once; absent and empty differ only in flow statistics.
    pub(crate) apply: Option<Arc<[Action]>>,
    /// Whether the action set is emptied, before `write`.
    pub(crate) clear: bool,
    /// Actions put into the action set.
    pub(crate) write: Option<Arc<[Action]>>,
    /// New bits of the metadata, and which bits are new.
    pub(crate) metadata: Option<(u64, u64)>,
    /// The table that comes next; without one the action set is run.
    pub(crate) goto: Option<u8>,
    /// Whether there is something to do between `apply` and `goto`.
    pub(crate) prepares: bool,
    /// The same in short, if it edits packets and then outputs them to one port.
    pub(crate) edits: Option<Box<(Edits, PortNo)>>,
    /// Whether `apply` has actions that look packets up in tables.
    pub(crate) looks_up: bool,
    /// Whether packets mostly need the datapath for themselves alone: they go to controllers or NORMAL.
    pub(crate) needs_all: bool,
    /// The groups that it sends to, each once.
    groups: Box<[GroupId]>,
    /// The meters that it uses, each once.
    meters: Box<[MeterId]>,
}

impl Program {
    /// Compiles the instructions of an entry of `table`.
    ///
    /// # Errors
    /// Instructions that weir does not have, that come twice, or that go to no later table.
    pub(crate) fn compile(list: &[Instruction], table: u8, n_tables: u8) -> Result<Program, ErrorType> {
        let mut program = Program::default();
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
            // At most one of each type (OpenFlow 1.3.5, 5.9); versions before 1.4 have no code of their own for it.
            if repeated {
                return Err(BadInstruction::DupInst.into());
            }
        }
        program.prepares = program.clear || program.write.is_some() || program.metadata.is_some();
        program.looks_up = nicira::looks_up(program.apply.iter().flat_map(|list| list.iter()));
        if program.write.iter().flat_map(|list| list.iter()).any(|action| matches!(action, Action::Nx(_))) {
            // An action set holds one action of each type, in an order that Nicira's have no place in.
            return Err(BadAction::UnsupportedOrder.into());
        }
        let needs_all = program.actions().any(needs_all);
        program.needs_all = needs_all;
        program.groups = groups_of(program.actions());
        program.meters = meters_of(program.meter, program.actions());
        program.edits = Edits::of(&program).map(Box::new);
        Ok(program)
    }

    /// The instructions, in the order they are executed.
    pub(crate) fn instructions(&self) -> Vec<Instruction> {
        let meter = self.meter.map(Instruction::Meter);
        let apply = self.apply.as_deref().map(|actions| Instruction::ApplyActions(actions.to_vec()));
        let clear = self.clear.then_some(Instruction::ClearActions);
        let write = self.write.as_deref().map(|actions| Instruction::WriteActions(actions.to_vec()));
        let metadata = self.metadata.map(|(metadata, mask)| Instruction::WriteMetadata { metadata, mask });
        let goto = self.goto.map(|table| Instruction::GotoTable(TableId(table)));
        [meter, apply, clear, write, metadata, goto].into_iter().flatten().collect()
    }

    /// Every action, run at once or at the end.
    pub(crate) fn actions(&self) -> impl Iterator<Item = &Action> {
        self.apply.iter().chain(&self.write).flat_map(|actions| actions.iter())
    }

    /// The groups that it sends to, each once.
    pub(crate) fn groups(&self) -> &[GroupId] {
        &self.groups
    }

    /// The meters that it uses, each once.
    pub(crate) fn meters(&self) -> &[MeterId] {
        &self.meters
    }

    /// Whether it uses a meter, any meter with [`MeterId::ALL`].
    pub(crate) fn is_metered_by(&self, meter: MeterId) -> bool {
        self.meters.contains(&meter) || meter == MeterId::ALL && !self.meters.is_empty()
    }

    /// Whether some action sends to a group, to any group with [`GroupId::ALL`].
    pub(crate) fn sends_to(&self, group: GroupId) -> bool {
        self.groups.contains(&group) || group == GroupId::ALL && !self.groups.is_empty()
    }

    /// Whether some action outputs to `port`.
    pub(crate) fn outputs_to(&self, wanted: PortNo) -> bool {
        self.actions().any(|action| match action {
            Action::Output { port, .. } | Action::Enqueue { port, .. } => *port == wanted,
            _ => false,
        })
    }
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
