//! An OpenFlow pipeline as plain as can be, for tests and fuzzing to compare the datapath with: a list of entries,
//! fields compared one by one, frames edited by hand, groups followed as the specification tells.
//!
//! It knows the actions output to a port, group, push VLAN and set-field of the Ethernet addresses; apply, clear and
//! write actions, write metadata and goto table; all groups. It knows no meters, timeouts or counters, and panics at
//! what it does not know.
#![allow(clippy::missing_panics_doc, reason = "panicking is how tests report")]
mod groups;

pub use groups::Choices;

use groups::Groups;
use weir_openflow::model::group::GroupMod;
use weir_openflow::model::{Action, FlowCommand, FlowMod, Instruction, Match, MatchField, PortNo};
use weir_packet::{Field, FlowKey, parse};

/// A frame and the port that it is sent to.
pub type Sent = (PortNo, Vec<u8>);

/// The entries, in no order, and the groups.
#[derive(Debug, Clone)]
pub struct Reference {
    entries: Vec<FlowMod>,
    groups: Groups,
}

/// What happens to one packet: where it came in, what was sent of it, in order, and how many of its copies were
/// dropped.
struct Way<'a> {
    groups: &'a Groups,
    choices: &'a mut Choices,
    in_port: u32,
    sent: Vec<Sent>,
    drops: u64,
}

impl Reference {
    /// Without entries and groups, with ports from 1 to `ports`, which have link.
    pub fn new(ports: u32) -> Reference {
        Reference { entries: Vec::new(), groups: Groups::new(ports) }
    }

    /// Changes groups as a datapath that took the change.
    pub fn group_mod(&mut self, change: &GroupMod) {
        self.groups.change(change);
    }

    /// States whether a port has link.
    pub fn set_link(&mut self, port: PortNo, up: bool) {
        self.groups.set_link(port, up);
    }

    /// Changes entries as a datapath that took the change.
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

    /// The frames sent, in order, and how many were dropped, when select groups choose as they are told.
    pub fn process(&self, in_port: u32, frame: &[u8], choices: &mut Choices) -> (Vec<Sent>, u64) {
        let mut way = Way { groups: &self.groups, choices, in_port, sent: Vec::new(), drops: 0 };
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
            // In the order of execution, whatever the order written.
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

    /// Whether some packet matches two entries of one priority: then either is right, and there is nothing to compare.
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

impl Way<'_> {
    /// Of each type the last one counts: push, then set, then group, or else output. Whether the packet came to an end.
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

    /// Does one action; whether the packet, or a copy, came to an end by it.
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

/// The fields of a match, without their order.
fn key_of(matching: &Match) -> (FlowKey, FlowKey) {
    matching.key_and_mask().unwrap()
}

/// Whether a match names at least what another does.
fn is_within(narrow: &Match, wide: &Match) -> bool {
    wide.fields.iter().all(|entry| {
        let MatchField::Known { field, value, mask } = entry else { unreachable!("not generated") };
        let mask = mask.unwrap_or(field.all_ones());
        narrow.get(*field).is_some_and(|(v, m)| m & mask == mask && v & mask == *value)
    })
}
