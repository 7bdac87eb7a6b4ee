//! Random networks, intents, failures and repairs. After each step every way is checked against what was asked for, and
//! packets are followed through the switches.
use super::bed::{HOST_PORT, RATE, TestNetwork, mac};
use crate::intents::intent::{Intent, Laid};
use crate::intents::lanes::{Lane, lanes};
use crate::intents::way::Way;
use crate::intents::{IntentConfig, IntentConstraints, IntentKind, IntentSpec, IntentState};
use crate::map::SwitchPort;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use weir_openflow::model::PortNo;
use weir_units::Bps;

const HISTORIES: u64 = 60;
const STEPS: usize = 25;

#[test]
fn histories_keep_every_intent_right() {
    let failed: Vec<u64> = (0..HISTORIES).filter(|seed| std::panic::catch_unwind(|| history(*seed)).is_err()).collect();
    assert!(failed.is_empty(), "seeds {failed:?}");
}

fn history(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (n, links) = topology(&mut random);
    let mut network = TestNetwork::new(n, &links, IntentConfig::default());
    for _ in 0..STEPS {
        step(&mut network, &mut random, n);
        network.run(Duration::from_millis(random.u64(1..2000)));
        check(&network);
        if random.u8(0..4) == 0 {
            fail_unseen(&mut network, &mut random);
        }
    }
    remove_all(&mut network);
}

/// Returns a ring, a tree or a mesh.
fn topology(random: &mut fastrand::Rng) -> (u64, Vec<(u64, u64)>) {
    let n = random.u64(3..9);
    let tree = |random: &mut fastrand::Rng| (2..=n).map(|dpid| (random.u64(1..dpid), dpid)).collect::<Vec<_>>();
    let links = match random.u8(0..4) {
        0 => (1..=n).map(|dpid| (dpid, dpid % n + 1)).collect(),
        1 => tree(random),
        _ => {
            let mut links = tree(random);
            for _ in 0..random.u64(n / 2..2 * n) {
                let (a, b) = (random.u64(1..=n), random.u64(1..=n));
                if a != b {
                    links.push((a, b));
                }
            }
            links
        }
    };
    (n, links)
}

fn step(network: &mut TestNetwork, random: &mut fastrand::Rng, n: u64) {
    let wires: Vec<SwitchPort> = network.wires.keys().copied().collect();
    match random.u8(0..10) {
        0..5 => drop(network.set_spec(spec(random, n, &wires))),
        5 => {
            let keys: Vec<String> = network.store.keys.keys().cloned().collect();
            if let Some(key) = random.choice(keys) {
                network.store.remove(&key).unwrap();
                network.act();
            }
        }
        6 => {
            let (host, dpid, port) = (random.u64(1..=n), random.u64(1..=n), HOST_PORT + random.u32(0..2));
            network.place_host(host, SwitchPort::new(dpid, PortNo(port)));
            network.change();
        }
        7 => {
            network.full = if random.bool() { [random.u64(1..=n)].into() } else { BTreeSet::new() };
        }
        kind => {
            let at = *random.choice(&wires).unwrap();
            network.set_link(at, kind == 9);
            network.change();
        }
    }
}

fn spec(random: &mut fastrand::Rng, n: u64, wires: &[SwitchPort]) -> IntentSpec {
    let kind = *random
        .choice([IntentKind::HostToHost, IntentKind::PointToPoint, IntentKind::ManyToOne, IntentKind::OneToMany].iter())
        .unwrap();
    let mut ends: Vec<String> = (1..=n).map(|host| mac(host).to_string()).collect();
    if kind != IntentKind::HostToHost {
        ends.extend((1..=n).flat_map(|dpid| [format!("{dpid:x}:{HOST_PORT}"), format!("{dpid:x}:101")]));
    }
    random.shuffle(&mut ends);
    let many = random.usize(1..4.min(ends.len()));
    let (from, to) = match kind {
        IntentKind::ManyToOne => (many, 1),
        IntentKind::OneToMany => (1, many),
        _ => (1, 1),
    };
    let constraints = IntentConstraints {
        bandwidth: random.bool().then(|| Bps(random.u64(1..6) * 100_000_000)),
        delay: None,
        waypoints: if random.u8(0..4) == 0 {
            (0..random.u8(1..3)).map(|_| format!("{:x}", random.u64(1..=n))).collect()
        } else {
            Vec::new()
        },
        avoid: if random.u8(0..5) == 0 { vec![random.choice(wires).unwrap().to_string()] } else { Vec::new() },
        priority: random.u16(0..4),
        protected: random.bool() && matches!(kind, IntentKind::HostToHost | IntentKind::PointToPoint),
    };
    let traffic = ["", "tcp,tp_dst=80", "udp", "ip"][random.usize(0..4)].to_owned();
    let (from, to) = (ends[..from].to_vec(), ends[from..from + to].to_vec());
    IntentSpec { key: format!("k{}", random.u8(0..8)), kind, from, to, traffic, constraints }
}

/// Checks all intents, and that nothing is reserved besides what they need.
fn check(network: &TestNetwork) {
    let mut reserved: BTreeMap<Lane, u64> = BTreeMap::new();
    for intent in network.store.intents.values() {
        let key = intent.spec.key.as_str();
        let Some(laid) = &intent.laid else {
            assert!(matches!(intent.state, IntentState::Failed | IntentState::Withdrawn), "{key}: {:?}", intent.state);
            assert!(!intent.reason.is_empty() && intent.reserved.is_empty());
            continue;
        };
        check_ways(network, key, intent, laid);
        check_packets(network, key, intent, laid);
        needed(intent, laid).into_iter().for_each(|(lane, bps)| *reserved.entry(lane).or_default() += bps);
    }
    assert_eq!(*network.store.reserved.all(), reserved, "reservations are the sum of what ways need");
    for (lane, bps) in &reserved {
        assert!(*bps <= RATE, "{lane}: {bps}");
    }
    let laid = network.store.intents.values().filter_map(|intent| intent.laid.as_ref());
    let routes: BTreeSet<_> =
        laid.flat_map(|laid| [&laid.mains[..], &laid.carriers, &laid.captures].concat()).collect();
    assert_eq!(network.routes.keys().copied().collect::<BTreeSet<_>>(), routes, "no route is left over");
}

/// Returns what the ways of an intent need, worked out from what was asked for.
fn needed(intent: &Intent, laid: &Laid) -> BTreeMap<Lane, u64> {
    let mut needed = BTreeMap::new();
    let Some(Bps(bps)) = intent.spec.constraints.bandwidth else { return needed };
    let plan = &laid.plan;
    let mut add = |ways: &[&Way]| {
        let used: BTreeSet<Lane> = ways.iter().flat_map(|way| lanes(way)).collect();
        used.into_iter().for_each(|lane| *needed.entry(lane).or_default() += bps);
    };
    if intent.spec.kind == IntentKind::OneToMany {
        add(&plan.ways.iter().collect::<Vec<_>>());
    } else {
        for (index, way) in plan.ways.iter().enumerate() {
            add(&[way].into_iter().chain(plan.spare.get(index)).collect::<Vec<_>>());
        }
    }
    needed
}

fn check_ways(network: &TestNetwork, key: &str, intent: &Intent, laid: &Laid) {
    let (wanted, plan) = (&intent.wanted, &laid.plan);
    for way in plan.ways.iter().chain(&plan.spare) {
        assert!(way.is_intact(&network.map), "{key}: {way:?}");
        let mut at = way.from.dpid;
        for [out, into] in &way.links {
            assert_eq!((out.dpid, network.wires[out]), (at, *into), "{key}");
            at = into.dpid;
        }
        assert_eq!(at, way.to.dpid);
        let mut ports = way.ports().into_iter();
        assert!(ports.all(|at| !wanted.avoided_ports.contains(&at)), "{key} avoids");
        let mut dpids: Vec<u64> = way.passes().map(|pass| pass.at.dpid).collect();
        if intent.spec.kind == IntentKind::HostToHost
            && plan.ways.iter().skip(1).chain(plan.spare.get(1)).any(|back| back == way)
        {
            dpids.reverse();
        }
        let mut rest = dpids.iter();
        assert!(wanted.waypoints.iter().all(|wanted| rest.any(|dpid| dpid == wanted)), "{key}: {dpids:?}");
    }
    for (way, spare) in plan.ways.iter().zip(&plan.spare) {
        assert!(way.undirected().is_disjoint(&spare.undirected()), "{key}: {way:?} {spare:?}");
    }
    let is_short = wanted.protected && plan.spare.is_empty() && !plan.ways[0].links.is_empty();
    assert_eq!(is_short, plan.lacks.is_some(), "{key}");
}

/// Follows a packet of each class of an intent.
fn check_packets(network: &TestNetwork, key: &str, intent: &Intent, laid: &Laid) {
    for class in &laid.plan.classes {
        let ends: BTreeSet<SwitchPort> = class.ways.iter().map(|way| way.to).collect();
        for from in class.ways.iter().map(|way| way.from).collect::<BTreeSet<_>>() {
            if takes_over(network, key, intent, from) {
                continue;
            }
            let fate = network.walk(from, &TestNetwork::packet(class));
            let left: BTreeSet<SwitchPort> = fate.left.iter().copied().collect();
            assert!(!fate.looped && fate.lost == 0 && fate.left.len() == left.len(), "{key}: {fate:?}");
            assert_eq!(left, ends, "{key} from {from}");
            for one in &laid.plan.spare {
                assert!(class.spare.as_ref() != Some(one) || !fate.crossed.iter().any(|link| one.links.contains(link)));
            }
        }
    }
}

/// Returns true if an intent of higher precedence may take packets that come in by a port.
fn takes_over(network: &TestNetwork, key: &str, intent: &Intent, at: SwitchPort) -> bool {
    let higher = |other: &Intent| {
        let entrances = other.laid.iter().flat_map(|laid| laid.plan.entrances());
        other.wanted.precedence > intent.wanted.precedence && entrances.into_iter().any(|(from, _)| from == at)
    };
    network.store.intents.values().any(|other| other.spec.key != key && higher(other))
}

/// Lets links fail of which the controller does not know yet, and follows packets: no one loops, and protected ones
/// arrive if one link fails.
fn fail_unseen(network: &mut TestNetwork, random: &mut fastrand::Rng) {
    let wires: Vec<SwitchPort> = network.wires.keys().copied().filter(|at| !network.down.contains(at)).collect();
    for one in &wires {
        let mut failed = BTreeSet::from([*one, network.wires[one]]);
        walk_failed(network, &failed, true);
        if let Some(other) = random.choice(&wires) {
            failed.extend([*other, network.wires[other]]);
            walk_failed(network, &failed, false);
        }
    }
}

fn walk_failed(network: &mut TestNetwork, failed: &BTreeSet<SwitchPort>, single: bool) {
    let before = network.down.clone();
    network.down.extend(failed);
    for intent in network.store.intents.values() {
        let key = intent.spec.key.as_str();
        for class in intent.laid.iter().flat_map(|laid| &laid.plan.classes) {
            let Some(way) = class.ways.first() else { continue };
            if takes_over(network, key, intent, way.from) {
                continue;
            }
            let fate = network.walk(way.from, &TestNetwork::packet(class));
            assert!(!fate.looped, "{key}: {fate:?}");
            assert!(fate.left.len() <= class.ways.len() && fate.lost + fate.left.len() > 0, "{key}: {fate:?}");
            if single && class.spare.is_some() {
                assert_eq!((fate.left, fate.lost), (vec![way.to], 0), "{key}: {failed:?}");
            }
        }
    }
    network.down = before;
}

/// Removes all intents: nothing of them is left.
fn remove_all(network: &mut TestNetwork) {
    for key in network.store.keys.keys().cloned().collect::<Vec<_>>() {
        network.store.remove(&key).unwrap();
    }
    network.act();
    network.run(Duration::from_secs(20));
    let store = &network.store;
    assert!(network.routes.is_empty() && store.intents.is_empty() && store.keys.is_empty() && store.owners.is_empty());
    assert!(
        store.reserved.all().is_empty()
            && store.claims == Default::default()
            && store.labels.are_free()
            && store.failed.is_empty()
    );
    assert!(store.leaving.is_empty() && store.sent.is_empty() && store.timers.is_empty() && store.queue.is_empty());
    assert!(store.bounded.is_empty() && store.next_wake().is_none());
}
