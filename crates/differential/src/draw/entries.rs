//! Draws flow-mods, with tables, priorities, matches and instructions of their entries.
use super::CaseGenerator;
use crate::CaseStep;
use weir_openflow::model::{
    Action, BufferId, FlowCommand, FlowFlags, FlowMod, GroupId, Instruction, Match, MeterId, PortNo, TableId,
};
use weir_openflow::{Body, Version};

/// Highest table that usually contains entries.
const LAST_TABLE: u32 = 3;

impl CaseGenerator {
    /// Draws a flow-mod that adds an entry.
    pub(super) fn add(&mut self) -> FlowMod {
        // Without pauses only: Open vSwitch counts the idle time of a replacing entry from the start of the replaced
        // one.
        let is_known = !self.has_pauses && self.dice.one_in(6);
        self.flow(is_known)
    }

    /// Draws a flow-mod for an entry drawn before, or for a new one.
    fn flow(&mut self, is_known: bool) -> FlowMod {
        let (table, priority, matching) = self.place(is_known);
        self.table = table;
        let instructions = self.instructions(&matching, table);
        let mut flow = FlowMod::add(priority, matching, instructions);
        flow.table = TableId(table);
        flow.cookie = self.cookie();
        flow.flags = self.flags();
        if flow.flags.contains(FlowFlags::CHECK_OVERLAP) && self.dice.one_in(2) {
            flow.priority =
                self.entries.iter().find(|(at, ..)| *at == table).map_or(priority, |(_, priority, _)| *priority);
        }
        if self.has_pauses && self.dice.one_in(2) {
            flow.idle_timeout = *self.dice.pick(&[0, 1, 2, 3]);
            if self.has_hard_timeouts {
                flow.hard_timeout = *self.dice.pick(&[0, 1, 2, 3]);
            }
        } else if self.dice.one_in(10) {
            (flow.idle_timeout, flow.hard_timeout) = (self.dice.short() | 0x100, self.dice.short() | 0x100);
        }
        if self.version >= Version::V14 && self.dice.one_in(6) {
            flow.importance = self.dice.short();
        }
        flow
    }

    /// Draws table, priority and match of an entry: those of an entry drawn before, or a priority that is unused in
    /// the table, because the specification does not say which of two entries with equal priority matches (OpenFlow
    /// 1.3.5, 5.3).
    fn place(&mut self, is_known: bool) -> (u8, u16, Match) {
        if !self.entries.is_empty() && is_known {
            return self.dice.pick(&self.entries).clone();
        }
        let (table, matching) = (self.draw_table(), self.matching());
        let mut priority = self.priority();
        while self.entries.iter().any(|(at, other, _)| (*at, *other) == (table, priority)) {
            priority = self.dice.short();
        }
        self.entries.push((table, priority, matching.clone()));
        (table, priority, matching)
    }

    fn draw_table(&mut self) -> u8 {
        if self.version == Version::V10 || self.dice.one_in(2) {
            return 0;
        }
        let table = self.dice.between(0, LAST_TABLE);
        u8::try_from(if self.dice.one_in(60) { *self.dice.pick(&[253, 254, 255, 200]) } else { table }).unwrap_or(0)
    }

    fn priority(&mut self) -> u16 {
        *self.dice.pick(&[0, 1, 1, 2, 3, 0x8000, 0xffff])
    }

    fn cookie(&mut self) -> u64 {
        if self.dice.one_in(30) { self.dice.long() } else { self.dice.between(0, 3).into() }
    }

    fn flags(&mut self) -> FlowFlags {
        let mut flags = FlowFlags::default();
        let all = [
            (FlowFlags::SEND_FLOW_REM, 2),
            (FlowFlags::CHECK_OVERLAP, 8),
            (FlowFlags::RESET_COUNTS, 8),
            (FlowFlags::NO_PKT_COUNTS, 80),
            (FlowFlags::NO_BYT_COUNTS, 80),
            (FlowFlags(1 << 9), 400),
        ];
        for (flag, times) in all {
            if self.dice.one_in(times) {
                flags = flags.with(flag);
            }
        }
        flags
    }

    fn instructions(&mut self, matching: &Match, table: u8) -> Vec<Instruction> {
        let apply = Instruction::ApplyActions(self.entry_actions(matching));
        if self.version == Version::V10 {
            return vec![apply];
        }
        let mut instructions = Vec::new();
        if self.dice.one_in(8) && self.version < Version::V15 {
            instructions.extend(self.known_meter().map(|meter| Instruction::Meter(MeterId(meter))));
        }
        if !self.dice.one_in(4) {
            instructions.push(apply);
        }
        if self.dice.one_in(10) {
            instructions.push(Instruction::ClearActions);
        }
        if self.dice.one_in(3) {
            let mut set = self.entry_actions(matching);
            set.retain(|action| !matches!(action, Action::Nx(_)) || self.dice.one_in(30));
            instructions.push(Instruction::WriteActions(set));
        }
        name_groups_once(&mut instructions);
        if self.dice.one_in(6) {
            let mask = if self.dice.one_in(2) { u64::MAX } else { self.dice.long() };
            let metadata = if self.dice.one_in(10) { self.dice.long() } else { self.dice.long() & mask };
            instructions.push(Instruction::WriteMetadata { metadata, mask });
        }
        if self.dice.one_in(5) {
            let next = if self.dice.one_in(30) { self.dice.byte() } else { table.saturating_add(1) };
            instructions.push(Instruction::GotoTable(TableId(next)));
        }
        instructions
    }

    /// Draws messages that change something after the first frames.
    pub(super) fn change(&mut self, has_groups: bool) -> Vec<CaseStep> {
        let body = match self.dice.between(0, 11) {
            0..=2 => Body::FlowMod(self.add()),
            3..=5 if self.has_pauses && self.has_hard_timeouts => Body::FlowMod(self.add()),
            3 | 4 => Body::FlowMod(self.with_command(FlowCommand::Modify)),
            5 => Body::FlowMod(self.with_command(FlowCommand::ModifyStrict)),
            6 | 7 => Body::FlowMod(self.with_command(FlowCommand::Delete)),
            8 => Body::FlowMod(self.with_command(FlowCommand::DeleteStrict)),
            9 if has_groups => Body::GroupMod(self.group_change()),
            10 if self.version > Version::V10 && self.dice.one_in(2) => Body::MeterMod(self.meter_change()),
            11 if self.version > Version::V10 => return self.bundle(has_groups),
            _ => Body::BarrierRequest,
        };
        vec![CaseStep::Message(body)]
    }

    pub(super) fn with_command(&mut self, command: FlowCommand) -> FlowMod {
        let is_known = self.dice.one_in(2);
        let mut flow = FlowMod { command, ..self.flow(is_known) };
        // OpenFlow 1.0 adds the entry if a strict modify does not find it, so its match stays specific.
        if self.dice.one_in(3) && !matches!(command, FlowCommand::ModifyStrict) {
            flow.matching = Match::any();
        }
        let is_delete = matches!(command, FlowCommand::Delete | FlowCommand::DeleteStrict);
        if is_delete {
            if self.dice.one_in(4) {
                flow.table = TableId::ALL;
            }
            if self.dice.one_in(5) {
                flow.out_port = PortNo(self.dice.between(1, 4));
            }
            if self.dice.one_in(8) && self.version > Version::V10 {
                flow.out_group = GroupId(self.dice.between(1, 3));
            }
            if !self.dice.one_in(10) {
                flow.instructions = Vec::new();
            }
            // Only for deletes: on a missing buffer in another command, weir executes all but the release of the
            // packet, Open vSwitch nothing. OpenFlow does not specify it, and everything after would differ.
            flow.buffer_id = self.dice.one_in(100).then(|| BufferId(self.dice.between(0, 5)));
        }
        if self.dice.one_in(5) && self.version > Version::V10 {
            flow.cookie_mask = *self.dice.pick(&[u64::MAX, 1, 2, 3]);
        }
        flow
    }
}

/// Removes repeated references to a group: Open vSwitch 3.1 exits with a failed assertion (`rule->state ==
/// RULE_INSERTED`) if a group is deleted that an entry references twice.
fn name_groups_once(instructions: &mut [Instruction]) {
    let mut named = Vec::new();
    for instruction in instructions {
        if let Instruction::ApplyActions(list) | Instruction::WriteActions(list) = instruction {
            list.retain(|action| match action {
                Action::Group(group) if named.contains(group) => false,
                Action::Group(group) => {
                    named.push(*group);
                    true
                }
                _ => true,
            });
        }
    }
}
