//! The pipeline against an interpreter that is as plain as can be: a list of entries, fields compared one by one, frames edited by
//! hand. Random flow-mods, then random packets; both must send the same frames and drop as many.
use crate::bench::*;
use crate::frames::frame;
use proptest::prelude::*;
use weir_openflow::model::{Action, FlowCommand, FlowMod, Instruction, Match, MatchField, PortNo, TableId};
use weir_packet::{Field, FlowKey, parse};

/// Tables in play.
const TABLES: u8 = 3;

/// The entries, in no order.
#[derive(Default)]
struct Naive {
    entries: Vec<FlowMod>,
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

    /// The frames sent, in order, and how many were dropped.
    fn process(&self, in_port: u32, frame: &[u8]) -> (Vec<(PortNo, Vec<u8>)>, u64) {
        let (mut frame, mut metadata, mut table) = (frame.to_vec(), 0, 0);
        let (mut sent, mut drops, mut settled) = (Vec::new(), 0, false);
        let mut set: Vec<Action> = Vec::new();
        loop {
            let mut key = parse(&frame, PortNo(in_port)).unwrap().key;
            key.set(Field::Metadata, metadata);
            let found = self.entries.iter().filter(|e| e.table.0 == table && matches(&e.matching, &key));
            let Some(entry) = found.max_by_key(|e| e.priority) else {
                return (sent, drops + 1);
            };
            let mut next = None;
            // In the order of execution, whatever the order written.
            for instruction in &entry.instructions {
                if let Instruction::ApplyActions(actions) = instruction {
                    actions.iter().for_each(|a| act(a, in_port, &mut frame, &mut sent, &mut drops, &mut settled));
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
        // Of each type the last one counts: push, then set, then output.
        let last = |wanted: fn(&Action) -> bool| set.iter().rev().find(|action| wanted(action));
        let order: [fn(&Action) -> bool; 4] = [
            |a| matches!(a, Action::PushVlan(_)),
            |a| matches!(a, Action::SetField { field: Field::EthDst, .. }),
            |a| matches!(a, Action::SetField { field: Field::EthSrc, .. }),
            |a| matches!(a, Action::Output { .. }),
        ];
        for action in order.into_iter().filter_map(last) {
            act(action, in_port, &mut frame, &mut sent, &mut drops, &mut settled);
        }
        (sent, if settled { drops } else { drops + 1 })
    }
}

fn act(
    action: &Action,
    in_port: u32,
    frame: &mut Vec<u8>,
    sent: &mut Vec<(PortNo, Vec<u8>)>,
    drops: &mut u64,
    settled: &mut bool,
) {
    match *action {
        Action::SetField { field, value } => {
            let at = if field == Field::EthDst { 0 } else { 6 };
            frame[at..at + 6].copy_from_slice(&value.to_be_bytes()[10..]);
        }
        Action::PushVlan(tpid) => {
            let tag = if frame[12..14] == [0x81, 0] { [frame[14], frame[15]] } else { [0, 0] };
            let [high, low] = tpid.to_be_bytes();
            frame.splice(12..12, [high, low, tag[0], tag[1]]);
        }
        Action::Output { port: PortNo(port), .. } => {
            *settled = true;
            if port == in_port || port > PORTS { *drops += 1 } else { sent.push((PortNo(port), frame.clone())) }
        }
        _ => unreachable!("not generated"),
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

/// A match on a few fields with few values, so that packets and flow-mods meet.
fn matching() -> impl Strategy<Value = Match> {
    let fields = (
        proptest::option::of(1..=3_u32),
        proptest::option::of((0..4_u64, prop::sample::select(vec![0xffff_ffff_ffff_u64, 1, 2, 3]))),
        proptest::option::of(0..3_u64),
        proptest::option::of(prop::sample::select(vec![0_u16, 0x1005, 0x1006])),
        proptest::option::of((0..4_u64, 1..4_u64)),
    );
    fields.prop_map(|(in_port, destination, source, vid, metadata)| {
        let mut matching = Match::any();
        if let Some((value, mask)) = metadata {
            matching = matching.with_masked(Field::Metadata, value & mask, mask);
        }
        if let Some(port) = in_port {
            matching = matching.with(Field::InPort, port);
        }
        if let Some((number, mask)) = destination {
            matching = matching.with_masked(Field::EthDst, mac(number).to_bits() & mask, mask);
        }
        if let Some(number) = source {
            matching = matching.with(Field::EthSrc, mac(number).to_bits());
        }
        if let Some(vid) = vid {
            matching = matching.with(Field::VlanVid, vid);
        }
        matching
    })
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        3 => (1..=PORTS + 1).prop_map(|port| Action::output(PortNo(port))),
        1 => (0..4_u64).prop_map(|number| Action::set_mac(Field::EthDst, mac(number))),
        1 => (0..4_u64).prop_map(|number| Action::set_mac(Field::EthSrc, mac(number))),
        1 => Just(Action::PushVlan(0x8100)),
    ];
    proptest::collection::vec(action, 0..4)
}

fn instructions(table: u8) -> impl Strategy<Value = Vec<Instruction>> {
    let goto = if table + 1 < TABLES { (table + 1..TABLES).boxed() } else { Just(table).boxed() };
    let parts = (
        proptest::option::of(actions().prop_map(Instruction::ApplyActions)),
        proptest::option::weighted(0.1, Just(Instruction::ClearActions)),
        proptest::option::of(actions().prop_map(Instruction::WriteActions)),
        proptest::option::of(
            (any::<u64>(), 0..4_u64).prop_map(|(metadata, mask)| Instruction::WriteMetadata { metadata, mask }),
        ),
        proptest::option::weighted(0.7, goto.prop_map(|table| Instruction::GotoTable(TableId(table)))),
    );
    parts.prop_map(move |(apply, clear, write, metadata, goto)| {
        let goto = goto.filter(|goto| *goto != Instruction::GotoTable(TableId(table)));
        // Goto first: the order written does not count.
        [goto, apply, metadata, clear, write].into_iter().flatten().collect()
    })
}

fn flow_mod() -> impl Strategy<Value = FlowMod> {
    use FlowCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};
    let commands = prop_oneof![8 => Just(Add), 1 => Just(Modify), 1 => Just(ModifyStrict), 1 => Just(Delete), 1 => Just(DeleteStrict)];
    (0..TABLES, commands, 0..6_u16, matching()).prop_flat_map(|(table, command, priority, matching)| {
        instructions(table).prop_map(move |instructions| FlowMod {
            table: TableId(table),
            command,
            ..FlowMod::add(priority, matching.clone(), instructions)
        })
    })
}

fn packet() -> impl Strategy<Value = (u32, Vec<u8>)> {
    let tags = prop::sample::select(vec!["", "vlan 5 / ", "vlan 6 pcp 2 / ", "vlan 5 / vlan 6 / "]);
    (1..=PORTS, 0..4, 0..3, tags).prop_map(|(port, destination, source, tags)| {
        (port, frame(&format!("eth {source}>{destination} / {tags}ipv4 10.0.0.1>10.0.0.2 / udp 1>2")))
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
        flows in proptest::collection::vec(flow_mod(), 1..14),
        packets in proptest::collection::vec(packet(), 1..12),
    ) {
        let (mut bench, mut naive) = (Bench::new(), Naive::default());
        for mut flow in flows {
            let mut tried = Naive { entries: naive.entries.clone() };
            tried.flow_mod(&flow);
            while flow.command == FlowCommand::Add && is_ambiguous(&tried) {
                flow.priority += 7;
                tried = Naive { entries: naive.entries.clone() };
                tried.flow_mod(&flow);
            }
            naive = tried;
            bench.flow_mod(&flow).unwrap();
        }
        for (port, frame) in packets {
            let before = bench.datapath.drops().total();
            let mut found = bench.receive(port, &frame);
            let (mut sent, drops) = naive.process(port, &frame);
            found.sort();
            sent.sort();
            prop_assert_eq!(&found, &sent);
            prop_assert_eq!(bench.datapath.drops().total() - before, drops);
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
