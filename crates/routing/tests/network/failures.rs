//! Searches for failures that leave a network wrong: links, switches and the controller fail and come back at random
//! times; when all has settled, hosts reach each other exactly where a way is left, and tables are as they are asked
//! for. Each case is repeated by its seed.
use crate::bed::{Bed, End};
use crate::forwarding::config;
use std::collections::BTreeMap;
use std::time::Duration;
use weir_routing::NetworkConfig;
use weir_routing::forwarding::{ForwardingConfig, ForwardingMode};

const MS: Duration = Duration::from_millis(1);

/// Returns the part of the network to which each switch belongs, with the links that work.
pub(crate) fn parts(bed: &Bed, links: impl Iterator<Item = [End; 2]> + Clone) -> BTreeMap<u64, u64> {
    let mut parts: BTreeMap<u64, u64> = bed.dpids().into_iter().map(|dpid| (dpid, dpid)).collect();
    for _ in 0..parts.len() {
        for [(a, _), (b, _)] in links.clone() {
            let least = parts[&a].min(parts[&b]);
            parts.insert(a, least);
            parts.insert(b, least);
        }
    }
    parts
}

/// Failures of a network so far.
struct Failures {
    bed: Bed,
    links: Vec<[End; 2]>,
    /// Links without carrier, and links that swallow frames.
    down: Vec<bool>,
    silent: Vec<bool>,
    config: NetworkConfig,
}

impl Failures {
    fn new(seed: u64, mode: ForwardingMode, ecmp: bool) -> Failures {
        let forwarding = ForwardingConfig { ecmp, ..config(mode).forwarding };
        let config = NetworkConfig { forwarding, ..config(mode) };
        let mut random = fastrand::Rng::with_seed(seed);
        let n = random.u64(3..=8);
        let mut bed = Bed::new(n, seed, config.clone(), Vec::new());
        // A random tree, and some links more.
        let mut links: Vec<_> = (2..=n).map(|dpid| bed.link(random.u64(1..dpid), dpid)).collect();
        for _ in 0..random.u64(1..=n) {
            let (a, b) = (random.u64(1..=n), random.u64(1..=n));
            if a != b {
                links.push(bed.link(a, b));
            }
        }
        (1..=n).for_each(|dpid| _ = bed.host(dpid));
        bed.jitter = Duration::from_micros(random.u64(0..2000));
        bed.connect_all();
        bed.run(300 * MS);
        bed.announce_all();
        bed.run(300 * MS);
        let n_links = links.len();
        Failures { bed, links, down: vec![false; n_links], silent: vec![false; n_links], config }
    }

    /// Lets something fail, or come back.
    fn step(&mut self) -> String {
        let link = self.bed.random().usize(0..self.links.len());
        let n = self.bed.dpids().len() as u64;
        let dpid = self.bed.random().u64(1..=n);
        match self.bed.random().u8(0..10) {
            0..=3 => {
                self.down[link] = !self.down[link];
                self.bed.set_link(self.links[link], !self.down[link]);
                format!("link {:?} carrier {}", self.links[link], !self.down[link])
            }
            4 | 5 => {
                self.silent[link] = !self.silent[link];
                self.bed.set_silent(self.links[link], self.silent[link]);
                format!("link {:?} silent {}", self.links[link], self.silent[link])
            }
            6 => {
                self.bed.disconnect(dpid);
                format!("switch {dpid} loses its connection")
            }
            7 => {
                self.bed.restart(dpid);
                format!("switch {dpid} starts anew")
            }
            8 => {
                self.bed.connect_all();
                "all switches connect".to_owned()
            }
            _ => {
                self.bed.restart_controller(self.config.clone(), Vec::new());
                self.bed.connect_all();
                "the controller starts anew".to_owned()
            }
        }
    }

    /// Lets all settle, and checks it.
    fn check(&mut self, history: &[String]) {
        self.bed.connect_all();
        // Hosts that a new controller does not know announce themselves, as hosts do that have something to say.
        for _ in 0..3 {
            self.bed.run(700 * MS);
            self.bed.announce_all();
        }
        self.bed.run(700 * MS);
        let up = (0..self.links.len()).filter(|number| !self.down[*number] && !self.silent[*number]);
        let parts = parts(&self.bed, up.map(|number| self.links[number]));
        for from in 0..self.bed.hosts.len() {
            for to in (0..self.bed.hosts.len()).filter(|to| *to != from) {
                let number = self.bed.send(from, to);
                self.bed.run(40 * MS);
                let joined = parts[&self.bed.hosts[from].at.0] == parts[&self.bed.hosts[to].at.0];
                let seen = (self.bed.copies(to, number), self.bed.most_crossings(number) <= 1);
                assert_eq!(seen, (usize::from(joined), true), "host {from} to {to} after {history:#?}");
            }
        }
        let numbers = self.bed.state();
        let expected = self.links.iter().enumerate().filter(|(n, _)| !self.down[*n] && !self.silent[*n]).count();
        assert_eq!(numbers.links.len(), expected, "links after {history:#?}");
        let [wanted, present] = ["tables_wanted", "tables_present"].map(|name| numbers.counters[name]);
        let in_switches: usize = self.bed.dpids().into_iter().map(|dpid| self.bed.entries(dpid).len()).sum();
        assert_eq!((wanted, present), (present, in_switches as u64), "entries after {history:#?}");
    }
}

fn search(seeds: std::ops::RangeInclusive<u64>, mode: ForwardingMode, ecmp: bool) {
    for seed in seeds {
        let mut case = Failures::new(seed, mode, ecmp);
        let mut history = vec![format!("{mode:?}, ecmp {ecmp}, seed {seed}, links {:?}", case.links)];
        case.check(&history);
        for _ in 0..4 {
            for _ in 0..case.bed.random().u8(1..=4) {
                history.push(case.step());
                let pause = case.bed.random().u64(0..150);
                case.bed.run(Duration::from_millis(pause));
            }
            case.check(&history);
        }
    }
}

#[test]
fn networks_recover_from_what_happens_to_them() {
    search(1..=12, ForwardingMode::Proactive, false);
}

#[test]
fn networks_with_several_shortest_ways_recover() {
    search(101..=108, ForwardingMode::Proactive, true);
}

#[test]
fn networks_that_learn_from_packets_recover() {
    search(201..=206, ForwardingMode::ReactivePath, false);
    search(301..=306, ForwardingMode::ReactiveHop, false);
}

/// The operator is told when the switches have confirmed all that a change of links required, and of no change that
/// required nothing.
#[test]
fn the_end_of_a_change_is_told() {
    let mut bed = crate::forwarding::ring(4, crate::forwarding::config(ForwardingMode::Proactive));
    let reroutings = |bed: &mut Bed| {
        let request = weir_routing::request::NetworkRequest::Events { after: 0, most: 1000 };
        let weir_routing::request::NetworkReply::Events { events } = bed.ask(&request) else { panic!("no events") };
        let told = events.iter().filter(|event| event.kind == "rerouted");
        (told.map(|event| event.text.clone()).collect::<Vec<_>>(), events)
    };
    assert_eq!(reroutings(&mut bed).0, Vec::<String>::new(), "there was no host when the links were found");
    let link = [(1, 1), bed.wires[&(1, 1)]];
    bed.set_link(link, false);
    bed.run(100 * MS);
    let (told, events) = reroutings(&mut bed);
    assert_eq!(told.len(), 1, "{events:#?}");
    assert!(told[0].contains("routes follow the change of links, confirmed after "), "{told:?}");
    let time = |kind| events.iter().rfind(|event| event.kind == kind).map(|event| event.time_s).expect(kind);
    let took = time("rerouted") - time("link-down");
    assert!(took > 0.0002 && took < 0.01, "a message to a switch and back at least: {took} s");
}

/// A link that fails again and again is up for a moment, but carries nothing while there is another way. When it has
/// been steady for a while, it does.
#[test]
fn a_link_that_fails_again_and_again_is_avoided_until_it_is_steady() {
    let mut bed = crate::forwarding::ring(3, crate::forwarding::config(ForwardingMode::Proactive));
    let port = (1..=2).find(|port| bed.wires[&(1, *port)].0 == 2).expect("a link");
    let link = [(1, port), bed.wires[&(1, port)]];
    let hops = |bed: &mut Bed| {
        let number = bed.send(0, 1);
        bed.run(100 * MS);
        assert_eq!(bed.copies(1, number), 1);
        bed.hops(number)
    };
    assert_eq!(hops(&mut bed), 1);
    for _ in 0..3 {
        for up in [false, true] {
            bed.set_link(link, up);
            bed.run(300 * MS);
        }
    }
    assert_eq!((bed.state().links.len(), hops(&mut bed)), (3, 2), "it is there, and the way is the other one");
    bed.run(60_000 * MS);
    assert_eq!(hops(&mut bed), 1);
}
