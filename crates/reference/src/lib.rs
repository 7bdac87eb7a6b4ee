//! Reference implementation of an OpenFlow pipeline, as plain as possible, with which tests and fuzzing compare the
//! datapath. It uses a list of entries, compares fields one by one, edits frames by hand and follows groups as
//! specified.
//!
//! Supported: output to a port, group, push VLAN and set-field of the Ethernet addresses; apply, clear and write
//! actions, write metadata and goto table; all groups. Not supported: meters, timeouts and counters. The pipeline
//! panics at anything else.
#![allow(clippy::missing_panics_doc, reason = "panicking is how tests report")]
mod groups;

pub use groups::BucketChoices;

use groups::ReferenceGroups;
use weir_openflow::model::group::GroupMod;
use weir_openflow::model::{Action, FlowCommand, FlowMod, Instruction, Match, MatchField, PortNo};
use weir_packet::{Field, FlowKey, parse};

/// Output port and frame.
pub type ReferenceOutput = (PortNo, Vec<u8>);

/// Flow entries, in no order, and groups.
#[derive(Debug, Clone)]
pub struct ReferencePipeline {
    entries: Vec<FlowMod>,
    groups: ReferenceGroups,
}

/// State of one packet's processing: input port, frames sent so far in order, and number of copies dropped.
struct ReferencePass<'a> {
    groups: &'a ReferenceGroups,
    choices: &'a mut BucketChoices,
    in_port: u32,
    sent: Vec<ReferenceOutput>,
    drops: u64,
}

impl ReferencePipeline {
    /// Creates a pipeline without entries and groups, with ports 1 to `ports` whose links are up.
    pub fn new(ports: u32) -> ReferencePipeline {
        ReferencePipeline { entries: Vec::new(), groups: ReferenceGroups::new(ports) }
    }

    /// Applies a group-mod that a datapath accepted. Only adds or replaces the group.
    pub fn group_mod(&mut self, change: &GroupMod) {
        self.groups.change(change);
    }

    /// Sets the link state of a port.
    pub fn set_link(&mut self, port: PortNo, up: bool) {
        self.groups.set_link(port, up);
    }

    /// Applies a flow-mod that a datapath accepted.
    pub fn flow_mod(&mut self, flow: &FlowMod) {
        let same = |e: &FlowMod| {
            e.table == flow.table && e.priority == flow.priority && key_of(&e.matching) == key_of(&flow.matching)
        };
        let within = |e: &FlowMod| e.table == flow.table && is_within(&e.matching, &flow.matching);
        let strict = matches!(flow.command, FlowCommand::ModifyStrict | FlowCommand::DeleteStrict);
        let chosen = |e: &FlowMod| if strict { same(e) } else { within(e) };
        match flow.command {
            FlowCommand::Add => {
                self.entries.retain(|e| !same(e));
                self.entries.push(flow.clone());
            }
            FlowCommand::Modify | FlowCommand::ModifyStrict => {
                for entry in self.entries.iter_mut().filter(|e| chosen(e)) {
                    entry.instructions.clone_from(&flow.instructions);
                }
            }
            FlowCommand::Delete | FlowCommand::DeleteStrict => self.entries.retain(|e| !chosen(e)),
        }
    }

    /// Processes a packet. Returns the frames sent, in order, and the number of copies dropped, with the buckets of
    /// select groups chosen by `choices`.
    pub fn process(&self, in_port: u32, frame: &[u8], choices: &mut BucketChoices) -> (Vec<ReferenceOutput>, u64) {
        let mut way = ReferencePass { groups: &self.groups, choices, in_port, sent: Vec::new(), drops: 0 };
        let (mut frame, mut metadata, mut table, mut settled) = (frame.to_vec(), 0, 0, false);
        let mut set: Vec<Action> = Vec::new();
        loop {
            let mut key = parse(&frame, PortNo(in_port)).unwrap().key;
            key.set(Field::Metadata, metadata);
            let found = self.entries.iter().filter(|e| e.table.0 == table && matches(&e.matching, &key));
            let Some(entry) = found.max_by_key(|e| e.priority) else {
                return (way.sent, way.drops + 1);
            };
            let mut next = None;
            // Instructions run in the order of execution, not in the order written.
            for instruction in &entry.instructions {
                if let Instruction::ApplyActions(actions) = instruction {
                    actions.iter().for_each(|action| settled |= way.act(action, &mut frame));
                }
            }
            if entry.instructions.contains(&Instruction::ClearActions) {
                set.clear();
            }
            for instruction in &entry.instructions {
                match instruction {
                    Instruction::WriteActions(actions) => set.extend(actions.clone()),
                    Instruction::WriteMetadata { metadata: value, mask } => {
                        metadata = metadata & u128::from(!mask) | u128::from(value & mask);
                    }
                    Instruction::GotoTable(table) => next = Some(table.0),
                    _ => {}
                }
            }
            match next {
                Some(next) => table = next,
                None => break,
            }
        }
        settled |= way.run_set(&set, &mut frame);
        (way.sent, if settled { way.drops } else { way.drops + 1 })
    }

    /// Returns true if a packet could match two entries of equal priority: either result is right then, so there is
    /// nothing to compare.
    pub fn is_ambiguous(&self) -> bool {
        let bits = |m: &Match| m.key_and_mask().unwrap();
        self.entries.iter().enumerate().any(|(at, a)| {
            self.entries[..at].iter().any(|b| {
                let ((a_key, a_mask), (b_key, b_mask)) = (bits(&a.matching), bits(&b.matching));
                let words = a_key.words.iter().zip(b_key.words).zip(a_mask.words.iter().zip(b_mask.words));
                let overlap = words.fold(0, |d, ((a, b), (am, bm))| d | (a ^ b) & am & bm) == 0;
                a.table == b.table && a.priority == b.priority && overlap
            })
        })
    }
}

impl ReferencePass<'_> {
    /// Runs an action set: the last action of each type, in the order push, set, then group or else output. Returns
    /// true if the packet was sent, dropped or passed to a group.
    fn run_set(&mut self, set: &[Action], frame: &mut Vec<u8>) -> bool {
        let last = |wanted: fn(&Action) -> bool| set.iter().rev().find(|action| wanted(action));
        let order: [fn(&Action) -> bool; 3] = [
            |a| matches!(a, Action::PushVlan(_)),
            |a| matches!(a, Action::SetField { field: Field::EthDst, .. }),
            |a| matches!(a, Action::SetField { field: Field::EthSrc, .. }),
        ];
        let output = last(|a| matches!(a, Action::Group(_))).or_else(|| last(|a| matches!(a, Action::Output { .. })));
        let actions = order.into_iter().filter_map(last).chain(output);
        actions.fold(false, |settled, action| settled | self.act(action, frame))
    }

    /// Runs one action. Returns true if the packet, or a copy, was sent, dropped or passed to a group.
    fn act(&mut self, action: &Action, frame: &mut Vec<u8>) -> bool {
        match *action {
            Action::SetField { field, value } => {
                let at = if field == Field::EthDst { 0 } else { 6 };
                frame[at..at + 6].copy_from_slice(&value.to_be_bytes()[10..]);
                return false;
            }
            Action::PushVlan(tpid) => {
                let tag = if frame[12..14] == [0x81, 0] { [frame[14], frame[15]] } else { [0, 0] };
                let [high, low] = tpid.to_be_bytes();
                frame.splice(12..12, [high, low, tag[0], tag[1]]);
                return false;
            }
            Action::Output { port, .. } if port.0 == self.in_port || !self.groups.lives_port(port) => self.drops += 1,
            Action::Output { port, .. } => self.sent.push((port, frame.clone())),
            Action::Group(group) => self.group(group, frame),
            _ => unreachable!("not generated"),
        }
        true
    }
}

fn matches(matching: &Match, key: &FlowKey) -> bool {
    matching.fields.iter().all(|entry| {
        let MatchField::Known { field, value, mask } = entry else { unreachable!("not generated") };
        key.get(*field) & mask.unwrap_or(u128::MAX) == *value
    })
}

/// Returns the fields of a match, without their order.
fn key_of(matching: &Match) -> (FlowKey, FlowKey) {
    matching.key_and_mask().unwrap()
}

/// Returns true if a match is at least as specific as another.
fn is_within(narrow: &Match, wide: &Match) -> bool {
    wide.fields.iter().all(|entry| {
        let MatchField::Known { field, value, mask } = entry else { unreachable!("not generated") };
        let mask = mask.unwrap_or(field.all_ones());
        narrow.get(*field).is_some_and(|(v, m)| m & mask == mask && v & mask == *value)
    })
}
