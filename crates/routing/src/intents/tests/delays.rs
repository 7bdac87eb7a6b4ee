//! Bounds of delay on random maps: a way is found if there is one, as trying all ways shows.
use super::bed::TestNetwork;
use crate::intents::delay::{DelayInput, largest};
use crate::intents::lanes::Lane;
use crate::intents::way::{DirectedLink, Way};
use crate::intents::{DelayBound, DelayKind, IntentConfig, IntentConstraints, IntentKind, IntentSpec, IntentState};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_units::{Bps, ByteSize, TimeSpan};

/// Returns all ways between two switches that pass none twice.
fn all_ways(network: &TestNetwork, from: u64, to: u64) -> Vec<Vec<DirectedLink>> {
    let (mut done, mut open) = (Vec::new(), vec![(from, vec![from], Vec::new())]);
    while let Some((at, passed, links)) = open.pop() {
        if at == to {
            done.push(links);
            continue;
        }
        for (out, link) in network.map.links().iter().filter(|(out, _)| out.dpid == at) {
            if !passed.contains(&link.to.dpid) {
                let further = [&links[..], &[[*out, link.to]]].concat();
                open.push((link.to.dpid, [&passed[..], &[link.to.dpid]].concat(), further));
            }
        }
    }
    done
}

/// Returns the least delay in seconds that a way between two hosts has, in its worse direction.
fn least_delay(network: &TestNetwork, spec: &IntentSpec, ends: [u64; 2], kind: DelayKind) -> Option<f64> {
    let [from, to] = ends.map(|host| network.map.hosts()[&super::bed::mac(host)].at);
    let bps = spec.constraints.bandwidth.map_or(0, |rate| rate.0) as f64;
    let least = all_ways(network, from.dpid, to.dpid).into_iter().filter_map(|links| {
        let way = Way { from, links, to };
        let ways = if spec.kind == IntentKind::HostToHost { vec![way.clone(), way.reversed()] } else { vec![way] };
        let used: Vec<Lane> = ways.iter().flat_map(crate::intents::lanes::lanes).collect();
        let load = |lane: Lane| {
            let own = if used.contains(&lane) { bps } else { 0.0 };
            let measured = match lane {
                Lane::From(at) => network.store.loads.get(&at).copied().unwrap_or(0.0),
                Lane::Into(_) => 0.0,
            };
            measured.max(network.store.reserved.of(lane) as f64 + own)
        };
        let input = DelayInput { map: &network.map, config: &network.store.config, load: &load };
        largest(&input, &ways, kind).ok().flatten().map(|delay| delay.delay_s)
    });
    least.min_by(f64::total_cmp)
}

#[test]
fn a_way_within_the_bound_is_found_if_there_is_one() {
    let (mut found, mut refused, mut not_shortest) = (0, 0, 0);
    for seed in 0..150 {
        let mut random = fastrand::Rng::with_seed(seed);
        let n = random.u64(3..7);
        let mut links: Vec<(u64, u64)> = (2..=n).map(|dpid| (random.u64(1..dpid), dpid)).collect();
        for _ in 0..random.u64(1..n) {
            links.push((1, random.u64(2..=n)));
        }
        let config = IntentConfig { port_buffer: Some(ByteSize(15_000)), ..IntentConfig::default() };
        let mut network = TestNetwork::new(n, &links, config);
        let mut loads = BTreeMap::new();
        for at in network.wires.keys().copied().collect::<Vec<_>>() {
            network.set_delay(at, Duration::from_micros(random.u64(10..300)));
            if random.bool() {
                loads.insert(at, random.f64() * 0.97e9);
            }
        }
        network.store.set_loads(&loads);
        let kind = if random.bool() { DelayKind::WorstCase } else { DelayKind::Percentile(random.f64() * 50.0 + 49.9) };
        let ends = [1, n];
        let mut spec = IntentSpec {
            key: "a".to_owned(),
            kind: if random.bool() { IntentKind::HostToHost } else { IntentKind::PointToPoint },
            from: vec![super::bed::mac(1).to_string()],
            to: vec![super::bed::mac(n).to_string()],
            traffic: String::new(),
            constraints: IntentConstraints {
                bandwidth: random.bool().then_some(Bps(1_000_000)),
                ..IntentConstraints::default()
            },
        };
        let Some(least) = least_delay(&network, &spec, ends, kind) else { continue };
        for (factor, possible) in [(1.001, true), (0.999, false), (1.3, true)] {
            let most = TimeSpan(Duration::from_secs_f64(least * factor));
            spec.key = format!("a{factor}");
            spec.constraints.delay = Some(DelayBound { most, kind });
            let status = network.set_spec(spec.clone());
            let is_found = status.state == IntentState::Installed;
            assert_eq!(is_found, possible, "seed {seed}, {kind:?}, {least} s: {} {:?}", status.reason, status.paths);
            if possible {
                let delay = status.expected_delay_us.unwrap() / 1e6;
                assert!(delay <= least * factor + 1e-9 && delay >= least - 1e-9, "seed {seed}: {delay} and {least}");
                found += 1;
                let plain = IntentSpec {
                    key: "plain".to_owned(),
                    constraints: IntentConstraints { priority: 1, ..IntentConstraints::default() },
                    ..spec.clone()
                };
                not_shortest += usize::from(network.set_spec(plain).paths[0].ports != status.paths[0].ports);
                network.store.remove("plain").unwrap();
            } else {
                assert!(status.reason.starts_with("delay: "), "{}", status.reason);
                refused += 1;
            }
            network.store.remove(&spec.key).unwrap();
            network.act();
        }
    }
    assert!(found > 200 && refused > 100 && not_shortest > 10, "{found} {refused} {not_shortest}");
}
