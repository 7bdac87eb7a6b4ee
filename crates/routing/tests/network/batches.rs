//! Tests many intents in one request over real datapaths: all installed, the tables as the intents say, and what is
//! wrong with one is told without the others.
use crate::bed::Bed;
use crate::forwarding::{assert_all_reach_all, config};
use std::collections::BTreeSet;
use std::time::Duration;
use weir_openflow::model::multipart::FlowStats;
use weir_openflow::model::{Action, Instruction, PortNo};
use weir_packet::Field;
use weir_routing::SwitchPort;
use weir_routing::forwarding::ForwardingMode;
use weir_routing::intents::{IntentConstraints, IntentKind, IntentSpec, IntentState};
use weir_routing::request::{IntentAnswer, NetworkReply, NetworkRequest};
use weir_units::Bps;

const MS: Duration = Duration::from_millis(1);
/// Lowest priority of entries of intents.
const OF_INTENTS: u16 = 2000;

/// Returns a fat-tree of 20 switches with 16 hosts (Al-Fares 2008), as `examples/fat-tree.toml` has it.
fn fat_tree(limited: Option<(u64, u32)>) -> Bed {
    let mut bed = Bed::new(20, 1, config(ForwardingMode::Proactive), Vec::new());
    if let Some((dpid, most)) = limited {
        bed.limit_entries(dpid, most);
    }
    // Switches 1 to 4 are the core; each pod has two of aggregation, then two of the edge.
    for pod in 0..4 {
        let first = 5 + 4 * pod;
        for (place, aggregation) in [first, first + 1].into_iter().enumerate() {
            (1..=2).for_each(|core| _ = bed.link(2 * place as u64 + core, aggregation));
            (first + 2..first + 4).for_each(|edge| _ = bed.link(aggregation, edge));
        }
        (first + 2..first + 4).for_each(|edge| _ = [bed.host(edge), bed.host(edge)]);
    }
    bed.connect_all();
    bed.run(400 * MS);
    bed.announce_all();
    bed.run(400 * MS);
    assert_eq!(bed.state().hosts.len(), 16);
    bed
}

/// Returns `count` intents between pairs of hosts, in turn, each about a port of its own.
fn intents(bed: &Bed, count: usize) -> Vec<IntentSpec> {
    let n = bed.hosts.len();
    let intent = |number: usize| {
        let (from, step) = (number % n, number / n % (n - 1) + 1);
        let mac = |host: usize| bed.hosts[host % n].mac.to_string();
        IntentSpec {
            key: format!("intent-{number}"),
            kind: IntentKind::PointToPoint,
            from: vec![mac(from)],
            to: vec![mac(from + step)],
            traffic: format!("udp,tp_dst={}", 1000 + number),
            constraints: IntentConstraints::default(),
        }
    };
    (0..count).map(intent).collect()
}

fn set(bed: &mut Bed, intents: Vec<IntentSpec>) -> (u64, Vec<IntentAnswer>) {
    match bed.ask(&NetworkRequest::SetIntents { intents }) {
        NetworkReply::Intents { batch, answers } => (batch, answers),
        other => panic!("{other:?}"),
    }
}

/// Lets time pass until no intent of a batch is undecided. Returns those that are not installed, by key and reason.
fn settle(bed: &mut Bed, batch: u64) -> Vec<(String, IntentState, String)> {
    for _ in 0..1000 {
        bed.run(MS);
        match bed.ask(&NetworkRequest::IntentBatch { batch, states: false }) {
            NetworkReply::IntentBatch { left: 0, others } => {
                return others.into_iter().map(|other| (other.key, other.state, other.reason)).collect();
            }
            NetworkReply::IntentBatch { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    panic!("a batch is not decided after a second")
}

/// Entry of an intent: switch, input port, source, destination, UDP port and output.
type IntentEntry = (u64, u32, u64, u64, u64, u32);

/// Returns the entries of intents in all switches.
fn entries(bed: &mut Bed) -> BTreeSet<IntentEntry> {
    let mut all = BTreeSet::new();
    for dpid in bed.dpids() {
        let of_intents = |entry: &FlowStats| entry.priority >= OF_INTENTS && entry.table.0 == 3;
        for entry in bed.entries(dpid).into_iter().filter(of_intents) {
            let value = |field| entry.matching.get(field).map(|(value, _)| value);
            let number = |field| u64::try_from(value(field).expect("a value")).expect("a small one");
            let [Instruction::ApplyActions(actions)] = entry.instructions.as_slice() else { panic!("{entry:?}") };
            let [Action::Output { port: PortNo(out), .. }] = actions.as_slice() else { panic!("{entry:?}") };
            let in_port = u32::try_from(number(Field::InPort)).expect("a port");
            let (source, destination) = (number(Field::EthSrc), number(Field::EthDst));
            let is_new = all.insert((dpid, in_port, source, destination, number(Field::UdpDst), *out));
            assert!(is_new, "{entry:?}");
        }
    }
    all
}

/// Returns the entries that the ways of all intents need.
fn needed(bed: &mut Bed) -> BTreeSet<IntentEntry> {
    let mut all = BTreeSet::new();
    for status in bed.state().intents.into_iter().filter(|status| !status.paths.is_empty()) {
        let port = status.intent.traffic.trim_start_matches("udp,tp_dst=").parse::<u64>().expect("a port");
        let mac = |text: &str| text.parse::<weir_packet::MacAddr>().expect("an address").to_bits();
        let (from, to) = (mac(&status.intent.from[0]), mac(&status.intent.to[0]));
        for path in &status.paths {
            for pass in path.ports.chunks(2) {
                let [SwitchPort { dpid, port: PortNo(into) }, out] = pass else { panic!("{path:?}") };
                assert_eq!(*dpid, out.dpid);
                all.insert((*dpid, *into, from, to, port, out.port.0));
            }
        }
    }
    all
}

#[test]
fn a_thousand_intents_are_installed_and_the_tables_are_as_they_say() {
    let mut bed = fat_tree(None);
    let all = intents(&bed, 1000);
    let messages = bed.count("tables_barriers");
    let (batch, answers) = set(&mut bed, all);
    assert_eq!(answers.len(), 1000);
    assert!(answers.iter().all(|answer| matches!(answer, IntentAnswer::Done(_))));
    let others = settle(&mut bed, batch);
    assert_eq!((others.len(), others.first()), (0, None));
    assert_eq!(bed.count("intents_installed"), 1000);
    let barriers = bed.count("tables_barriers") - messages;
    assert!(barriers < 2000, "{barriers} barriers: those of many intents are one");
    bed.run(200 * MS);
    let (there, wanted) = (entries(&mut bed), needed(&mut bed));
    assert!(there.len() > 3000 && there == wanted, "{} and {}", there.len(), wanted.len());
    let NetworkReply::Events { events } = bed.ask(&NetworkRequest::Events { after: 0, most: 1000 }) else { panic!() };
    let reports: Vec<_> = events.iter().filter(|event| event.kind.starts_with("intent")).collect();
    assert_eq!((reports.len(), reports[0].text.as_str()), (1, "1000 of 1000 intents of one request are installed"));
    // The same again changes nothing.
    let again = intents(&bed, 1000);
    let (batch, _) = set(&mut bed, again);
    assert_eq!((settle(&mut bed, batch), entries(&mut bed)), (Vec::new(), there));
    let NetworkReply::Intents { batch, answers } = bed.ask(&NetworkRequest::RemoveIntents { keys: None }) else {
        panic!("another reply")
    };
    assert_eq!((answers.len(), settle(&mut bed, batch).len()), (1000, 0));
    assert_eq!((entries(&mut bed), bed.state().intents), (BTreeSet::new(), Vec::new()));
    assert_all_reach_all(&mut bed);
}

#[test]
fn a_wrong_intent_and_one_without_a_way_do_not_touch_the_others() {
    let mut bed = fat_tree(None);
    let mut all = intents(&bed, 40);
    all[7].traffic = "tcp,tp_dts=80".to_owned();
    all[9].to = vec!["10.9.9.9".to_owned()];
    all[11].constraints.bandwidth = Some(Bps(20_000_000_000));
    let (batch, answers) = set(&mut bed, all);
    let IntentAnswer::Error { message, .. } = &answers[7] else { panic!("{:?}", answers[7]) };
    assert!(message.starts_with("`traffic`: found `tcp,tp_dts=80`"), "{message}");
    let IntentAnswer::Done(failed) = &answers[9] else { panic!("{:?}", answers[9]) };
    assert_eq!((failed.state, failed.reason.as_str()), (IntentState::Failed, "to: no host 10.9.9.9 is known"));
    let others = settle(&mut bed, batch);
    let keys: Vec<_> = others.iter().map(|(key, state, _)| (key.as_str(), *state)).collect();
    assert_eq!(keys, [("intent-9", IntentState::Failed), ("intent-11", IntentState::Failed)]);
    assert_eq!(bed.count("intents_installed"), 37);
    bed.run(200 * MS);
    assert_eq!(entries(&mut bed), needed(&mut bed));
}

#[test]
fn intents_of_the_highest_precedence_come_first() {
    let mut bed = fat_tree(None);
    let (from, to) = (bed.hosts[0].mac.to_string(), bed.hosts[15].mac.to_string());
    let intent = |number: u16| IntentSpec {
        key: format!("intent-{number}"),
        kind: IntentKind::PointToPoint,
        from: vec![from.clone()],
        to: vec![to.clone()],
        traffic: format!("udp,tp_dst={number}"),
        constraints: IntentConstraints {
            bandwidth: Some(Bps(400_000_000)),
            priority: number,
            ..IntentConstraints::default()
        },
    };
    // The host's connection has room for two.
    let (batch, _) = set(&mut bed, (1..=4).map(intent).collect());
    let others: Vec<_> = settle(&mut bed, batch).into_iter().map(|(key, state, _)| (key, state)).collect();
    assert_eq!(others, [1, 2].map(|number| (format!("intent-{number}"), IntentState::Failed)));
}

#[test]
fn a_switch_that_refuses_in_the_middle_leaves_no_half_intent() {
    // The access switch of hosts 0 and 1 has room for some of the intents.
    let mut bed = fat_tree(Some((7, 80)));
    let all = intents(&bed, 600);
    let (batch, _) = set(&mut bed, all);
    let others = settle(&mut bed, batch);
    let failed: Vec<_> = others.iter().filter(|(_, state, _)| *state == IntentState::Failed).collect();
    assert!(!failed.is_empty() && failed.len() < 600, "{}", failed.len());
    let other = failed.iter().find(|(.., reason)| !reason.starts_with("switch 7 refused an entry: "));
    assert_eq!(other, None);
    let installed = bed.count("intents_installed");
    assert!(installed > 100, "{installed}");
    bed.run(300 * MS);
    // What was refused has left nothing, and what was not has all.
    assert_eq!(entries(&mut bed), needed(&mut bed));
    assert_all_reach_all(&mut bed);
}

/// Removes all intents. Returns the number of those that are left when all are said to be gone.
fn remove_all(bed: &mut Bed) -> usize {
    let NetworkReply::Intents { batch, .. } = bed.ask(&NetworkRequest::RemoveIntents { keys: None }) else {
        panic!("another reply")
    };
    assert_eq!(settle(bed, batch), []);
    bed.state().intents.len()
}

/// An intent that gets another path while its first one is being confirmed asks for the same entry again that catches
/// its confirmation packets.
#[test]
fn intents_that_move_before_they_are_confirmed_can_be_removed() {
    let mut bed = fat_tree(None);
    let trunk = [(1, 1), bed.wires[&(1, 1)]];
    let mut moved = 0;
    for time in 1..=16 {
        let all = intents(&bed, 200);
        let _ = set(&mut bed, all);
        bed.run(time * MS / 4);
        let before = bed.count("intents_rerouted");
        bed.set_link(trunk, time % 2 == 0);
        bed.run(2 * MS);
        moved += bed.count("intents_rerouted") - before;
        assert_eq!((remove_all(&mut bed), entries(&mut bed)), (0, BTreeSet::new()), "moved after {time} quarters");
    }
    assert!(moved > 100, "{moved} moved");
}
