//! Benchmark of decisions on whole virtual networks, while many are held.
//!
//! `cargo bench -p weir-vnet --bench service`. Networks and requests are drawn: 100 switches with four links at each in
//! the mean, all of 10 Gbit/s, and twenty hosts at each switch. A request has one to three nodes, two to four links of
//! 1 to 100 Mbit/s, and half of the links promise a delay. 1000 networks are held. Then requests are decided and
//! released again; every second one asks for up to 20 Gbit/s, so that most of these are refused. The median and longer
//! times are shown, because other load on the machine only adds time.
#![allow(missing_docs, reason = "a program")]
#![expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of hosts and places are small")]
use std::collections::BTreeSet;
use std::time::Duration;
use weir_units::{Bps, Clock, Instant, SystemClock, TimeSpan};
use weir_vnet::allocation::SharingRule;
use weir_vnet::service::{
    AttachedHost, Bandwidth, BandwidthRange, Line, LinkRequest, NetworkBook, NetworkServiceRequest, NetworkSubstrate,
    NodeKind, NodeRequest, PortName, PromisedDelay, ServiceError, ShareSettings, SubstrateCable, SwitchLimits,
};

const SWITCHES: usize = 100;
const HOSTS: usize = 20;
const HELD: usize = 1000;
/// Decisions of each kind that are timed.
const TIMED: usize = 300;
/// Largest guaranteed rates.
const USUAL_MBPS: u64 = 100;
const LARGE_MBPS: u64 = 20_000;

fn main() {
    for (name, rule) in [("max-min", SharingRule::MaxMin), ("largest sum", SharingRule::MaximumSum)] {
        println!("what is not guaranteed is shared by {name}");
        decisions(rule);
    }
}

fn substrate(random: &mut fastrand::Rng) -> NetworkSubstrate {
    let mut pairs: BTreeSet<(usize, usize)> = (1..SWITCHES).map(|one| (random.usize(0..one), one)).collect();
    while pairs.len() < 2 * SWITCHES {
        let (one, other) = (random.usize(0..SWITCHES), random.usize(0..SWITCHES));
        if one != other {
            pairs.insert((one.min(other), one.max(other)));
        }
    }
    let name = |switch: usize| format!("s{switch}");
    let mut ports = [HOSTS as u32; SWITCHES];
    let mut port = |switch: usize| {
        ports[switch] += 1;
        PortName::new(name(switch), ports[switch])
    };
    let cables = pairs.into_iter().map(|(one, other)| {
        let line = Line { capacity: Bps(10_000_000_000), propagation: Duration::from_micros(random.u64(5..500)) };
        SubstrateCable { ends: [port(one), port(other)], line }
    });
    let cables = cables.collect();
    let line = Line { capacity: Bps(10_000_000_000), propagation: Duration::ZERO };
    let hosts = (0..SWITCHES * HOSTS).map(|host| AttachedHost {
        name: format!("h{host}"),
        port: PortName::new(name(host / HOSTS), 1 + (host % HOSTS) as u32),
        line,
    });
    NetworkSubstrate::new((0..SWITCHES).map(name).collect(), cables, hosts.collect()).expect("a substrate")
}

fn draw_request(random: &mut fastrand::Rng, number: usize, most_mbps: u64) -> NetworkServiceRequest {
    let nodes: Vec<NodeRequest> = (0..random.usize(1..=3))
        .map(|node| NodeRequest {
            name: format!("n{node}"),
            kind: NodeKind::Bridge,
            place: None,
            connect: Vec::new(),
            routes: Vec::new(),
        })
        .collect();
    let host = |random: &mut fastrand::Rng| format!("h{}", random.usize(0..SWITCHES * HOSTS));
    let mut ends: Vec<[String; 2]> =
        nodes.windows(2).map(|pair| [pair[0].name.clone(), pair[1].name.clone()]).collect();
    ends.push([host(random), nodes[0].name.clone()]);
    ends.push([nodes[nodes.len() - 1].name.clone(), host(random)]);
    let link = |random: &mut fastrand::Rng, ends: [String; 2]| {
        let minimum = Bps(random.u64(1..=most_mbps) * 1_000_000);
        let maximum = Some(Bps(minimum.0 + random.u64(0..=200) * 1_000_000));
        let bandwidth = Bandwidth::Range(BandwidthRange { minimum: Some(minimum), maximum });
        let [from, to] = ends;
        let vlan = (from.starts_with('h') || to.starts_with('h')).then(|| 1 + (number % 4094) as u16);
        let delay = random
            .bool()
            .then(|| PromisedDelay { bound: TimeSpan(Duration::from_millis(random.u64(5..60))), percentile: None });
        LinkRequest { vlan, delay, ..LinkRequest::new(from, to, bandwidth) }
    };
    let links = ends.into_iter().map(|ends| link(random, ends)).collect();
    NetworkServiceRequest { nodes, ..NetworkServiceRequest::new(format!("n{number}"), links) }
}

fn decisions(rule: SharingRule) {
    let mut random = fastrand::Rng::with_seed(1);
    let settings = ShareSettings { most_shares: 256, ..ShareSettings::default() };
    let limits = SwitchLimits { slices: 4096, ..SwitchLimits::default() };
    let mut book = NetworkBook::new(substrate(&mut random), settings, limits, rule).expect("a book");
    let mut number = 0;
    while book.held().count() < HELD && number < 4 * HELD {
        number += 1;
        let _ = book.request(&draw_request(&mut random, number, USUAL_MBPS), Instant::ZERO);
    }
    println!("  {} networks held of {number} asked for", book.held().count());
    let clock = SystemClock::start();
    let (mut admitted, mut refused, mut released) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..2 * TIMED {
        number += 1;
        // Every second request asks for so much that most of them are refused.
        let request = draw_request(&mut random, number, if at % 2 == 0 { USUAL_MBPS } else { LARGE_MBPS });
        let begin = clock.now();
        let decision = book.request(&request, Instant::ZERO);
        let took = clock.now() - begin;
        match decision {
            Ok(_) => {
                admitted.push(took);
                let begin = clock.now();
                let _ = book.release(&request.name);
                released.push(clock.now() - begin);
            }
            Err(ServiceError::Refused(_)) => refused.push(took),
            Err(error) => panic!("{error}"),
        }
    }
    for (name, mut times) in [("admitted", admitted), ("refused, with offers", refused), ("released", released)] {
        times.sort_unstable();
        let at = |share: f64| times.get(((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1)));
        let ms = |time: Option<&Duration>| time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3);
        let [median, p90, p99] = [0.5, 0.9, 0.99].map(|share| ms(at(share)));
        println!("  {name:22} {:5} decisions: median {median:7.3} ms, p90 {p90:7.3}, p99 {p99:7.3}", times.len());
    }
}
