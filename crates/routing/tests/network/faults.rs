//! Searches for faults of all kinds that leave a network wrong: beside links, switches and the controller that fail,
//! control messages are lost, doubled and late, tables are full, two switches have one datapath id, ports are reported
//! wrong, hosts move, and the network falls into parts, while access lists and intents are in force. When all has
//! settled, hosts reach each other exactly where that is allowed and a way is left, each packet once and over no link
//! twice, and switches have the entries that are asked for.
//!
//! Each case is repeated by its seed. `WEIR_SEEDS=1-5000` searches in other seeds than usual.
use crate::bed::{Bed, End, FIRST_HOST_PORT, PORTS};
use crate::disturbances::ChannelFaults;
use crate::failures::parts;
use crate::forwarding::{MODES, config};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;
use weir_packet::MacAddr;
use weir_routing::NetworkConfig;
use weir_routing::apps::NetworkFile;
use weir_routing::forwarding::{ForwardingConfig, ForwardingMode};
use weir_routing::intents::{IntentSpec, IntentState};
use weir_routing::request::{NetworkReply, NetworkRequest};
use weir_routing::tables::TableConfig;

const MS: Duration = Duration::from_millis(1);
/// Port of each switch for hosts that move there.
const MOVE_PORT: u32 = FIRST_HOST_PORT + 3;
/// Seeds of the usual run.
const SEEDS: RangeInclusive<u64> = 1..=20;

/// A network, and what is wrong with it.
struct DisturbedNetwork {
    bed: Bed,
    config: NetworkConfig,
    /// Text of the file of applications.
    file: String,
    /// Pairs of hosts whose packets are denied.
    denied: BTreeSet<(usize, usize)>,
    /// Intents in JSON.
    intents: Vec<String>,
    links: Vec<[End; 2]>,
    /// Links without carrier, and links that swallow frames.
    down: Vec<bool>,
    silent: Vec<bool>,
    /// Ports that were reported wrong.
    lied: BTreeSet<End>,
    history: Vec<String>,
}

impl DisturbedNetwork {
    fn new(seed: u64) -> DisturbedNetwork {
        let mut random = fastrand::Rng::with_seed(seed);
        let n = random.u64(3..=7);
        let mode = MODES[random.usize(0..MODES.len())];
        let ecmp = mode == ForwardingMode::Proactive && random.bool();
        let forwarding = ForwardingConfig { ecmp, ..config(mode).forwarding };
        let tables = TableConfig { retry_after: 500 * MS, ..TableConfig::default() };
        let config = NetworkConfig { forwarding, tables, ..config(mode) };
        let n_hosts = usize::try_from(n).expect("few") + random.usize(0..=2);
        let mac = |host: usize| MacAddr::from_bits(0x0200_0000_0000 | (host as u64 + 1));
        let mut pair = || {
            let from = random.usize(0..n_hosts);
            (from, (from + random.usize(1..n_hosts)) % n_hosts)
        };
        let n_denied = if pair().0 % 2 == 0 { 0 } else { 1 + pair().0 % 3 };
        let denied: BTreeSet<_> = (0..n_denied).map(|_| pair()).collect();
        let rule = |(from, to): &(usize, usize)| {
            let (from, to) = (mac(*from), mac(*to));
            format!("[[access-list]]\naction = 'deny'\nsource-mac = '{from}'\ndestination-mac = '{to}'\n")
        };
        let file = denied.iter().map(rule).collect();
        let n_intents = if pair().0 % 2 == 0 { 0 } else { 1 + pair().0 % 3 };
        let drawn: Vec<_> = (0..n_intents).map(|key| (key, pair())).collect();
        let mut intent = |(key, (from, to)): &(usize, (usize, usize))| {
            let constraints = match random.u8(0..4) {
                0 => r#"{"protected":true}"#.to_owned(),
                1 => format!(r#"{{"waypoints":["{}"]}}"#, random.u64(1..=n)),
                _ => "{}".to_owned(),
            };
            let ends = format!(r#""from":["{}"],"to":["{}"]"#, mac(*from), mac(*to));
            format!(r#"{{"key":"i{key}","kind":"host-to-host",{ends},"constraints":{constraints}}}"#)
        };
        let intents = drawn.iter().map(&mut intent).collect();
        let mut network = DisturbedNetwork {
            bed: Bed::new(n, seed, config.clone(), Vec::new()),
            config,
            file,
            denied,
            intents,
            links: Vec::new(),
            down: Vec::new(),
            silent: Vec::new(),
            lied: BTreeSet::new(),
            history: vec![format!("seed {seed}, {mode:?}, ecmp {ecmp}")],
        };
        network.build(&mut random, n, n_hosts);
        network
    }

    /// Builds a random tree of switches with some links more, and hosts.
    fn build(&mut self, random: &mut fastrand::Rng, n: u64, n_hosts: usize) {
        if random.bool() {
            self.bed.max_entries = random.u32(40..=120);
        }
        (1..=n).for_each(|dpid| self.bed.restart(dpid));
        self.links = (2..=n).map(|dpid| self.bed.link(random.u64(1..dpid), dpid)).collect();
        for _ in 0..random.u64(1..=n) {
            let (a, b) = (random.u64(1..=n), random.u64(1..=n));
            if a != b {
                self.links.push(self.bed.link(a, b));
            }
        }
        (1..=n).chain((1..=n).cycle()).take(n_hosts).for_each(|dpid| _ = self.bed.host(dpid));
        self.close_unused_ports();
        (self.down, self.silent) = (vec![false; self.links.len()], vec![false; self.links.len()]);
        self.bed.jitter = Duration::from_micros(random.u64(0..2000));
        let (lost_percent, doubled_percent) = (random.u8(0..5), random.u8(0..5));
        self.bed.channel_faults = ChannelFaults { lost_percent, doubled_percent, reorders: random.u8(0..4) == 0 };
        let (faults, most) = (self.bed.channel_faults, self.bed.max_entries);
        self.note(format!("links {:?}, {faults:?}, tables of {most}, intents {:?}", self.links, self.intents));
        self.note(format!("denied {:?}", self.denied));
        self.start_controller();
    }

    /// Takes the carrier of ports away at which nothing is, so that no probes leave by them.
    fn close_unused_ports(&mut self) {
        for dpid in self.bed.dpids() {
            let ends = (1..=PORTS).map(|port| (dpid, port)).filter(|end| end.1 != MOVE_PORT);
            let is_used = |end: &End| self.bed.wires.contains_key(end) || self.bed.hosts.iter().any(|at| at.at == *end);
            let unused: Vec<_> = ends.filter(|end| !is_used(end)).collect();
            unused.into_iter().for_each(|end| self.bed.set_link([end, end], false));
        }
    }

    fn note(&mut self, text: String) {
        self.history.push(text);
    }

    fn start_controller(&mut self) {
        let apps = NetworkFile::parse("network.toml", &self.file).expect("rules").apps().expect("applications");
        self.bed.restart_controller(self.config.clone(), apps);
        self.bed.connect_all();
        self.ask_for_intents();
    }

    /// Asks for the intents, as clients do that find a new controller.
    fn ask_for_intents(&mut self) {
        for text in self.intents.clone() {
            let intent: IntentSpec = serde_json::from_str(&text).expect("an intent");
            let reply = self.bed.ask(&NetworkRequest::SetIntent { intent });
            assert!(matches!(reply, NetworkReply::Intent(_)), "{reply:?}");
        }
    }

    /// Lets something happen.
    fn step(&mut self) {
        let link = self.bed.random().usize(0..self.links.len());
        let n = self.bed.dpids().len() as u64;
        let dpid = self.bed.random().u64(1..=n);
        let yes = self.bed.random().bool();
        let what = match self.bed.random().u8(0..20) {
            0..=2 => {
                self.set_down(link, !self.down[link]);
                format!("link {link} carrier {}", !self.down[link])
            }
            3 | 4 => {
                self.set_silent(link, !self.silent[link]);
                format!("link {link} silent {}", self.silent[link])
            }
            5 | 6 => self.part(yes),
            7 => {
                (0..self.links.len()).for_each(|link| self.heal(link));
                "all links heal".to_owned()
            }
            8 => {
                self.bed.disconnect(dpid);
                format!("switch {dpid} loses its connection")
            }
            9 | 10 => {
                self.bed.restart(dpid);
                format!("switch {dpid} starts anew")
            }
            11 => {
                self.bed.connect_all();
                "all switches connect".to_owned()
            }
            12 => {
                self.start_controller();
                "the controller starts anew".to_owned()
            }
            13 => {
                self.bed.set_twin(dpid, true);
                format!("a twin of switch {dpid} connects")
            }
            14 => {
                self.bed.disconnect(dpid);
                self.bed.set_twin(dpid, true);
                format!("a twin of switch {dpid} takes its place")
            }
            15 | 16 => {
                let end = self.links[link][usize::from(yes)];
                let up = self.bed.random().bool();
                self.bed.report_port(end, up);
                self.lied.insert(end);
                format!("port {end:?} is reported up {up}")
            }
            17 | 18 => {
                let table = [0, 3][usize::from(yes)];
                self.bed.fill(dpid, table);
                format!("table {table} of switch {dpid} is filled")
            }
            _ => self.move_host(dpid),
        };
        self.note(what);
    }

    fn set_down(&mut self, link: usize, down: bool) {
        self.down[link] = down;
        self.bed.set_link(self.links[link], !down);
    }

    fn set_silent(&mut self, link: usize, silent: bool) {
        self.silent[link] = silent;
        self.bed.set_silent(self.links[link], silent);
    }

    fn heal(&mut self, link: usize) {
        if self.down[link] {
            self.set_down(link, false);
        }
        if self.silent[link] {
            self.set_silent(link, false);
        }
    }

    /// Cuts all links between two parts of the network.
    fn part(&mut self, silent: bool) -> String {
        let of_first: Vec<bool> = self.bed.dpids().iter().map(|_| self.bed.random().bool()).collect();
        let side = |dpid: u64| of_first[usize::try_from(dpid - 1).expect("small")];
        for link in 0..self.links.len() {
            let [a, b] = self.links[link];
            if side(a.0) != side(b.0) {
                if silent { self.set_silent(link, true) } else { self.set_down(link, true) }
            }
        }
        format!("the network falls into parts {of_first:?}, silent {silent}")
    }

    /// Moves a host to another switch.
    fn move_host(&mut self, dpid: u64) -> String {
        let n_hosts = self.bed.hosts.len();
        let host = self.bed.random().usize(0..n_hosts);
        if self.bed.hosts.iter().all(|other| other.at != (dpid, MOVE_PORT)) {
            self.bed.hosts[host].at = (dpid, MOVE_PORT);
        }
        self.bed.announce(host);
        format!("host {host} is at {:?}", self.bed.hosts[host].at)
    }

    /// Ends what is wrong besides links, and lets all settle.
    fn settle(&mut self) {
        self.bed.remove_twins();
        self.bed.empty();
        self.bed.connect_all();
        for end in std::mem::take(&mut self.lied) {
            let up = self.bed.is_carrier_up(end);
            self.bed.report_port(end, up);
        }
        self.ask_for_intents();
        // Hosts that a new controller does not know announce themselves, as hosts do that have something to say.
        for round in 0..4 {
            self.bed.run(700 * MS);
            self.bed.announce_all();
            if round == 1 {
                self.bed.channel_faults = ChannelFaults::default();
            }
        }
        self.bed.run(700 * MS);
    }

    /// Checks the network once it has settled, without losses.
    fn check(&mut self) {
        let faults = self.bed.channel_faults;
        self.settle();
        let up = (0..self.links.len()).filter(|number| !self.down[*number] && !self.silent[*number]);
        let parts = parts(&self.bed, up.map(|number| self.links[number]));
        for from in 0..self.bed.hosts.len() {
            for to in (0..self.bed.hosts.len()).filter(|to| *to != from) {
                let number = self.bed.send(from, to);
                self.bed.run(40 * MS);
                let is_reached = self.is_reached(&parts, from, to);
                let seen = (self.bed.copies(to, number), self.bed.most_crossings(number) <= 1);
                assert_eq!(seen, (usize::from(is_reached), true), "host {from} to {to} after {:#?}", self.history);
            }
        }
        self.check_state();
        self.bed.channel_faults = faults;
    }

    fn is_reached(&self, parts: &BTreeMap<u64, u64>, from: usize, to: usize) -> bool {
        let part = |host: usize| parts[&self.bed.hosts[host].at.0];
        part(from) == part(to) && !self.denied.contains(&(from, to))
    }

    /// Checks what the controller knows, and the entries of switches.
    fn check_state(&mut self) {
        let state = self.bed.state();
        let expected = self.links.iter().enumerate().filter(|(n, _)| !self.down[*n] && !self.silent[*n]).count();
        assert_eq!(state.links.len(), expected, "links after {:#?}", self.history);
        for host in &self.bed.hosts {
            let known = state.hosts.iter().find(|known| known.mac == host.mac);
            let at = known.map(|known| (known.at.dpid, known.at.port.0));
            assert_eq!(at, Some(host.at), "host {} after {:#?}", host.mac, self.history);
        }
        let [wanted, present] = ["tables_wanted", "tables_present"].map(|name| state.counters[name]);
        let in_switches: usize = self.bed.dpids().into_iter().map(|dpid| self.bed.entries(dpid).len()).sum();
        assert_eq!((wanted, present), (present, in_switches as u64), "entries after {:#?}", self.history);
        for intent in &state.intents {
            let is_carried = matches!(intent.state, IntentState::Installed | IntentState::Degraded);
            let is_told = intent.state == IntentState::Failed && !intent.reason.is_empty();
            assert!(is_carried || is_told, "{intent:?} after {:#?}", self.history);
        }
    }
}

fn search(seeds: RangeInclusive<u64>) {
    for seed in seeds {
        let mut case = DisturbedNetwork::new(seed);
        case.check();
        for _ in 0..3 {
            for _ in 0..case.bed.random().u8(1..=6) {
                case.step();
                let pause = case.bed.random().u64(0..150);
                case.bed.run(Duration::from_millis(pause));
            }
            case.check();
            case.note("checked".to_owned());
        }
    }
}

#[test]
fn networks_recover_from_faults_of_all_kinds() {
    let asked = std::env::var("WEIR_SEEDS").ok();
    let seeds = asked.map(|text| {
        let ends = text.split_once('-').and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
        let (first, last) = ends.unwrap_or_else(|| panic!("found WEIR_SEEDS={text}, expected FIRST-LAST"));
        first..=last
    });
    search(seeds.unwrap_or(SEEDS));
}

/// Entries that a switch has refused because its tables were full are there once it has room again, without a new
/// connection: those that admit hosts, and routes.
#[test]
fn entries_refused_by_a_full_table_are_asked_for_again() {
    for mode in MODES {
        let tables = TableConfig { retry_after: 500 * MS, ..TableConfig::default() };
        let mut bed = Bed::new(3, 1, NetworkConfig { tables, ..config(mode) }, Vec::new());
        bed.max_entries = 60;
        (1..=3).for_each(|dpid| bed.restart(dpid));
        [(1, 2), (2, 3)].into_iter().for_each(|(a, b)| _ = bed.link(a, b));
        (1..=3).for_each(|dpid| _ = bed.host(dpid));
        bed.connect_all();
        bed.run(200 * MS);
        bed.fill(2, 0);
        bed.fill(2, 3);
        bed.announce_all();
        bed.run(300 * MS);
        for (from, to) in [(0, 2), (1, 0)] {
            let number = bed.send(from, to);
            bed.run(40 * MS);
            assert_eq!(bed.copies(to, number), 1, "{mode:?}: the controller carries it");
        }
        assert!(bed.count("tables_refused_entries") > 0, "{mode:?}");
        bed.empty();
        bed.run(1200 * MS);
        let [first, second] = [0, 1].map(|_| {
            let number = bed.send(0, 2);
            bed.run(40 * MS);
            assert_eq!(bed.copies(2, number), 1, "{mode:?}");
            bed.count("packets_received")
        });
        assert_eq!(first, second, "{mode:?}: the second packet does not reach the controller");
        let in_switches: usize = bed.dpids().into_iter().map(|dpid| bed.entries(dpid).len()).sum();
        assert_eq!([bed.count("tables_wanted"), bed.count("tables_present")], [in_switches as u64; 2], "{mode:?}");
    }
}
