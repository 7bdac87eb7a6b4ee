//! The pipeline against an interpreter that is as plain as can be: a list of entries, fields compared one by one, frames edited by
//! hand, groups followed as the specification tells. Random groups and flow-mods, then random packets; both must send the same
//! frames and drop as many.
mod generate;
mod groups;
mod workers;

use crate::bench::*;
use generate::*;
use groups::{Choices, Groups};
use proptest::prelude::*;
use weir_openflow::Body;
use weir_openflow::model::group::GroupMod;
use weir_openflow::model::{Action, FlowCommand, FlowMod, Instruction, Match, MatchField, PortNo};
use weir_packet::{Field, FlowKey, parse};

/// Tables in play.
const TABLES: u8 = 3;

/// The entries, in no order, and the groups.
#[derive(Default, Clone)]
struct Naive {
    entries: Vec<FlowMod>,
    groups: Groups,
}

/// What happens to one packet: where it came in, what was sent of it, in order, and how many of its copies were dropped.
struct Way<'a> {
    groups: &'a Groups,
    choices: &'a mut Choices,
    in_port: u32,
    sent: Vec<(PortNo, Vec<u8>)>,
    drops: u64,
}

impl Naive {
    fn flow_mod(&mut self, flow: &FlowMod) {
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
    fn process(&self, in_port: u32, frame: &[u8], choices: &mut Choices) -> (Vec<(PortNo, Vec<u8>)>, u64) {
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

/// Whether some packet matches two entries of one priority: then either is right, and there is nothing to compare.
fn is_ambiguous(naive: &Naive) -> bool {
    let bits = |m: &Match| m.key_and_mask().unwrap();
    naive.entries.iter().enumerate().any(|(at, a)| {
        naive.entries[..at].iter().any(|b| {
            let ((a_key, a_mask), (b_key, b_mask)) = (bits(&a.matching), bits(&b.matching));
            let words = a_key.words.iter().zip(b_key.words).zip(a_mask.words.iter().zip(b_mask.words));
            let overlap = words.fold(0, |d, ((a, b), (am, bm))| d | (a ^ b) & am & bm) == 0;
            a.table == b.table && a.priority == b.priority && overlap
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn the_pipeline_does_what_the_plain_interpreter_does(
        groups in groups(),
        change in group(1..=GROUPS),
        down in prop::sample::subsequence((1..=PORTS).collect::<Vec<u32>>(), 0..=2),
        last in to_group(),
        flows in proptest::collection::vec(flow_mod(), 0..14),
        packets in proptest::collection::vec(packet(), 1..12),
    ) {
        let (mut bench, mut naive) = (Bench::controlled(), Naive::default());
        for group in groups {
            naive.groups.change(&group);
            prop_assert_eq!(bench.error_of(CONTROLLER, Body::GroupMod(group)), None);
        }
        // What nothing else matches goes to a group.
        for mut flow in std::iter::once(last).chain(flows) {
            let mut tried = naive.clone();
            tried.flow_mod(&flow);
            while flow.command == FlowCommand::Add && is_ambiguous(&tried) {
                flow.priority += 7;
                tried = naive.clone();
                tried.flow_mod(&flow);
            }
            naive = tried;
            bench.flow_mod(&flow).unwrap();
        }
        for port in down {
            naive.groups.down.push(PortNo(port));
            bench.datapath.set_link(bench.now, PortNo(port), false, 0, &mut bench.out);
        }
        let change = GroupMod { command: GroupMod::MODIFY, ..change };
        naive.groups.change(&change);
        prop_assert_eq!(bench.error_of(CONTROLLER, Body::GroupMod(change)), None);
        for (port, frame) in packets {
            let before = bench.datapath.drops().total();
            let mut found = bench.receive(port, &frame);
            let drops = bench.datapath.drops().total() - before;
            let again = bench.receive(port, &frame);
            prop_assert_eq!(&found, &again, "packets of a flow go the same way");
            found.sort();
            let mut expected = Vec::new();
            let mut choices = Choices::default();
            loop {
                let (mut sent, drops) = naive.process(port, &frame, &mut choices);
                sent.sort();
                expected.push((sent, drops));
                if !choices.another() {
                    break;
                }
            }
            prop_assert!(expected.contains(&(found.clone(), drops)), "{found:?} and {drops} drops, not {expected:?}");
            prop_assert!(found.len() as u64 + drops > 0, "every packet goes somewhere or is counted");
        }
    }

    #[test]
    fn any_bytes_are_sent_or_counted(
        port in 0..6_u32,
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        shape in prop::sample::select(vec!["0800", "86dd", "8100", "8847", "0806", "88e7"]),
    ) {
        let mut bench = Bench::controlled();
        let ports = [PortNo::NORMAL, PortNo::FLOOD, PortNo::IN_PORT, PortNo::CONTROLLER, PortNo(2)];
        for (priority, output) in (1..).zip(ports) {
            let edits = vec![Action::PushVlan(0x8100), Action::PopVlan, Action::PushMpls(0x8847), Action::DecMplsTtl,
                Action::PopMpls(0x0800), Action::DecNwTtl, Action::output(output)];
            bench.flow_mod(&FlowMod::add(priority, from_port(priority.into()), apply(edits))).unwrap();
        }
        let mut frame = bytes;
        let kind = u16::from_str_radix(shape, 16).unwrap().to_be_bytes();
        if frame.len() >= 14 {
            frame[12..14].copy_from_slice(&kind);
        }
        let sent = bench.receive(port, &frame).len() + bench.packet_ins(CONTROLLER).len();
        let drops = bench.datapath.drops().total();
        prop_assert!(sent as u64 + drops > 0);
        prop_assert!(sent == 0 || drops == 0, "sent {sent}, dropped {drops}");
    }
}
