//! Benchmark of ways for virtual links: how many requests each rule admits, and how long a decision takes.
//!
//! `cargo bench -p weir-vnet --bench ways`. Networks and requests are drawn: connected, four links at a switch in the
//! mean, all of 1 Gbit/s. Requests have rates of 1 Mbit/s up to a largest one, and most promise a delay. The first part
//! fills a network and then times decisions, with offers if they are refused; the median and longer times are shown,
//! because other load on the machine only adds time. The second part offers equal requests to each rule.
#![allow(missing_docs, reason = "a program")]
use std::collections::BTreeSet;
use std::time::Duration;
use weir_units::{Bps, ByteSize, Clock, SystemClock};
use weir_vnet::admission::{ETHERNET_OVERHEAD, LinkAdmission, LinkDemand, QueuedLink};
use weir_vnet::ways::{LinkRouting, Substrate, SwitchLink, TurnRule, VirtualLinkRequest, WaySettings};

/// Decisions of each kind that are timed.
const TIMED: usize = 300;

fn main() {
    decisions();
    println!("\nadmitted of all requests, in % of their number and of their rate");
    for (networks, switches, requests, most_mbps) in [(5, 30, 200, 60), (5, 30, 200, 200), (1, 100, 600, 100)] {
        acceptance(networks, switches, requests, most_mbps);
    }
}

/// Returns a connected network.
fn draw_network(random: &mut fastrand::Rng, switches: usize) -> Substrate {
    let mut pairs: BTreeSet<(usize, usize)> = (1..switches).map(|one| (random.usize(0..one), one)).collect();
    while pairs.len() < 2 * switches {
        let (one, other) = (random.usize(0..switches), random.usize(0..switches));
        if one != other {
            pairs.insert((one.min(other), one.max(other)));
        }
    }
    let link = |(one, other): (usize, usize), delay: u32| {
        [(one, other), (other, one)].map(|(from, to)| {
            let queue = QueuedLink {
                propagation: Duration::from_micros(delay.into()),
                switch_latency: Duration::from_micros(10),
                buffer: ByteSize(1_000_000),
                other_packet: ByteSize(1514),
                ..QueuedLink::new(format!("s{from}-s{to}"), Bps(1_000_000_000))
            };
            SwitchLink::new(format!("s{from}"), format!("s{to}"), queue)
        })
    };
    let links: Vec<SwitchLink> = pairs.into_iter().flat_map(|ends| link(ends, random.u32(5..500))).collect();
    Substrate::new(ETHERNET_OVERHEAD, (0..switches).map(|switch| format!("s{switch}")), links).expect("a network")
}

fn draw_request(random: &mut fastrand::Rng, switches: usize, number: usize, most_mbps: u64) -> VirtualLinkRequest {
    let from = random.usize(0..switches);
    let to = (from + random.usize(1..switches)) % switches;
    let rate = Bps(random.u64(1..=most_mbps) * 1_000_000);
    let request = VirtualLinkRequest::new(format!("v{number}"), format!("s{from}"), format!("s{to}"), rate)
        .with_packets(ByteSize(500), ByteSize(1514))
        .with_burst(ByteSize(1514 * random.u64(1..=4)));
    if random.u8(0..4) > 0 { request.within(Duration::from_millis(random.u64(5..=50))) } else { request }
}

/// Rule by which requests are answered.
struct RuleOfWays {
    name: &'static str,
    settings: WaySettings,
    cost_weight: u32,
    max_ways: usize,
}

fn acceptance(networks: u64, switches: usize, requests: usize, most_mbps: u64) {
    println!("\n{networks} networks of {switches} switches, each with {requests} requests of 1 to {most_mbps} Mbit/s");
    let rule = |name, ways, turns, cost_weight, max_ways| RuleOfWays {
        name,
        settings: WaySettings { ways, turns },
        cost_weight,
        max_ways,
    };
    let rules = [
        rule("shortest that closes no cycle", 1, TurnRule::Any, u32::MAX, 1),
        rule("first of 8 that is admitted", 8, TurnRule::Any, u32::MAX, 1),
        rule("least price of 8", 8, TurnRule::Any, 0, 1),
        rule("least price of 8, cost 5%", 8, TurnRule::Any, 50, 1),
        rule("least price of 8, up to 3 ways", 8, TurnRule::Any, 0, 3),
        rule("shortest up and down", 1, TurnRule::UpDown, u32::MAX, 1),
        rule("least price of 8 up and down", 8, TurnRule::UpDown, 0, 1),
    ];
    let drawn: Vec<(Substrate, Vec<VirtualLinkRequest>)> = (0..networks)
        .map(|seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            let network = draw_network(&mut random, switches);
            let request = |number| draw_request(&mut random, switches, number, most_mbps);
            (network, (0..requests).map(request).collect())
        })
        .collect();
    report("shortest way only", &drawn, shortest_only);
    for rule in &rules {
        report(rule.name, &drawn, |network, requests| by_rule(rule, network, requests));
    }
}

fn report(
    name: &str,
    drawn: &[(Substrate, Vec<VirtualLinkRequest>)],
    admitted: impl Fn(&Substrate, &[VirtualLinkRequest]) -> Vec<bool>,
) {
    let (mut number, mut all, mut rate, mut all_rate) = (0, 0, 0, 0);
    for (network, requests) in drawn {
        for (request, is_admitted) in requests.iter().zip(admitted(network, requests)) {
            number += usize::from(is_admitted);
            all += 1;
            rate += request.rate.0 * u64::from(is_admitted);
            all_rate += request.rate.0;
        }
    }
    let percent = |part: f64, whole: f64| 100.0 * part / whole;
    let [number, rate] = [percent(number as f64, all as f64), percent(rate as f64, all_rate as f64)];
    println!("  {name:32} {number:5.1} {rate:5.1}");
}

/// Admits each request on its shortest way, or not at all.
fn shortest_only(network: &Substrate, requests: &[VirtualLinkRequest]) -> Vec<bool> {
    let links = network.links().iter().map(|link| link.queue.clone());
    let mut admission = LinkAdmission::new(ETHERNET_OVERHEAD, links).expect("a network");
    let settings = WaySettings { ways: 1, ..WaySettings::default() };
    let empty = LinkRouting::new(network.clone(), settings).expect("settings");
    let is_admitted = |request: &VirtualLinkRequest| {
        let mut empty = empty.clone();
        let easy = VirtualLinkRequest { promised_delay: None, ..request.clone() };
        let path = empty.request(easy).expect("an empty network admits it").ways[0].path.clone();
        let demand = LinkDemand::new(request.name.clone(), path, request.rate)
            .with_packets(request.shortest_packet, request.longest_packet)
            .with_burst(request.burst);
        admission.request(LinkDemand { promised_delay: request.promised_delay, ..demand }).is_ok()
    };
    requests.iter().map(is_admitted).collect()
}

fn by_rule(rule: &RuleOfWays, network: &Substrate, requests: &[VirtualLinkRequest]) -> Vec<bool> {
    let mut routing = LinkRouting::new(network.clone(), rule.settings).expect("settings");
    let asked = |request: &VirtualLinkRequest| request.clone().weighing_cost(rule.cost_weight).over_ways(rule.max_ways);
    requests.iter().map(|request| routing.request(asked(request)).is_ok()).collect()
}

/// Times decisions on a network of 100 switches with 1000 virtual links, if as many are admitted.
fn decisions() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut routing = LinkRouting::new(draw_network(&mut random, 100), WaySettings::default()).expect("settings");
    let mut number = 0;
    while routing.held().count() < 1000 && number < 3000 {
        number += 1;
        let _ = routing.request(draw_request(&mut random, 100, number, 15));
    }
    let held = routing.held().count();
    println!("100 switches, 400 links, {held} virtual links of {number} that were asked for");
    for (kind, most_mbps, max_ways) in
        [("1 to 15 Mbit/s", 15, 1), ("1 to 900 Mbit/s", 900, 1), ("1 to 900 Mbit/s, up to 3 ways", 900, 3)]
    {
        let (mut admitted, mut refused, mut released) = (Vec::new(), Vec::new(), Vec::new());
        let clock = SystemClock::start();
        for _ in 0..TIMED {
            number += 1;
            let request = draw_request(&mut random, 100, number, most_mbps).over_ways(max_ways);
            let name = request.name.clone();
            let start = clock.now();
            let is_admitted = routing.request(request).is_ok();
            let decided = clock.now();
            if is_admitted { &mut admitted } else { &mut refused }.push(decided - start);
            if is_admitted {
                drop(routing.release(&name));
                released.push(clock.now() - decided);
            }
        }
        println!("  {kind}");
        show("admitted", admitted);
        show("refused, with offers", refused);
        show("released", released);
    }
}

fn show(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let Some(longest) = times.last() else { return };
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!(
        "    {:5} {what:21} median {:?}, 90% {:?}, 99% {:?}, longest {longest:?}",
        times.len(),
        at(50),
        at(90),
        at(99)
    );
}
