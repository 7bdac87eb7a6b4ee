//! Compares predicted delays over several lines with those of packets that are followed from line to line.
use weir_predict::{PredictSettings, PredictedDelay, predict};
use weir_scenario::Scenario;
use weir_traffic::RandomStream;

/// Bytes of a frame besides the payload: Ethernet, IPv4 and UDP.
const HEADERS: f64 = 42.0;
/// Packets of each flow that are followed, and the share of them that are left out in the beginning.
const PACKETS: usize = 60_000;
const WARM_UP: usize = PACKETS / 20;

/// Flow from a host to another, which are given by their indices.
struct Flow {
    from: usize,
    to: usize,
    poisson: bool,
    payload: u32,
    mbps: f64,
}

/// Row of switches with the rates of its links, and hosts with the switch of each and the rate of its line, in Mbit/s.
struct Row {
    links: Vec<u32>,
    hosts: Vec<(usize, u32)>,
    flows: Vec<Flow>,
}

impl Flow {
    /// Returns the mean time between packets in microseconds, for a rate that counts payloads.
    fn gap_us(&self) -> f64 {
        f64::from(self.payload) * 8.0 / self.mbps
    }
}

/// Delays in seconds: mean and 99th percentile.
type Delays = (f64, f64);

impl Row {
    fn predicted(&self) -> Vec<PredictedDelay> {
        let mut text = String::from("[controller]\nconnect = \"none\"\n");
        for number in 0..=self.links.len() {
            text += &format!("[[switch]]\nname = \"s{number}\"\nfail_mode = \"standalone\"\n");
        }
        for (number, (switch, rate)) in self.hosts.iter().enumerate() {
            text +=
                &format!("[[host]]\nname = \"h{number}\"\nswitch = \"s{switch}\"\nip = \"10.0.0.{}/24\"\n", number + 1);
            text += &format!("rate = \"{rate}Mbit/s\"\nbuffer = \"10MB\"\n");
        }
        for (number, rate) in self.links.iter().enumerate() {
            text += &format!("[[link]]\nends = [\"s{number}\", \"s{}\"]\n", number + 1);
            text += &format!("rate = \"{rate}Mbit/s\"\nbuffer = \"10MB\"\n");
        }
        for flow in &self.flows {
            let arrival = if flow.poisson { "poisson" } else { "constant" };
            text += &format!("[[traffic]]\nkind = \"udp\"\nfrom = \"h{}\"\nto = \"h{}\"\n", flow.from, flow.to);
            text += &format!("arrival = \"{arrival}\"\npayload = \"{}B\"\n", flow.payload);
            text += &format!("rate = {:.6}\n", 1e6 / flow.gap_us());
        }
        let scenario = Scenario::parse(&text, "row.toml").unwrap_or_else(|error| panic!("{error}"));
        let prediction = predict(&scenario, &PredictSettings::default()).unwrap();
        prediction.flows.iter().map(|flow| flow.delay.expect("a steady state")).collect()
    }

    /// Returns the lines of a flow in their order, each as a number that grows along the row, and their rates.
    fn lines(&self, flow: &Flow) -> Vec<(usize, u32)> {
        let ((start, up), (end, down)) = (self.hosts[flow.from], self.hosts[flow.to]);
        let links = (start..end).map(|link| (self.hosts.len() + link, self.links[link]));
        let last = self.hosts.len() + self.links.len() + flow.to;
        std::iter::once((flow.from, up)).chain(links).chain([(last, down)]).collect()
    }

    /// Returns the delays of each flow's packets. Lines are passed in the order of their numbers.
    fn followed(&self, seed: u64) -> Vec<Delays> {
        struct Packet {
            flow: usize,
            sent: f64,
            now: f64,
        }
        let mut packets = Vec::new();
        let end = PACKETS as f64 * self.flows.iter().map(Flow::gap_us).fold(f64::INFINITY, f64::min);
        for (number, flow) in self.flows.iter().enumerate() {
            let mut random = RandomStream::new(seed, 0, number as u64 + 1);
            let gap = flow.gap_us();
            let mut now = gap * random.unit();
            while now < end {
                packets.push(Packet { flow: number, sent: now, now });
                now += if flow.poisson { gap * random.exponential() } else { gap };
            }
        }
        let lines: Vec<Vec<(usize, u32)>> = self.flows.iter().map(|flow| self.lines(flow)).collect();
        for line in 0..2 * self.hosts.len() + self.links.len() {
            let rate =
                |packet: &Packet| lines[packet.flow].iter().find(|(other, _)| *other == line).map(|(_, rate)| *rate);
            packets.sort_by(|a, b| a.now.total_cmp(&b.now));
            let mut free = 0.0f64;
            for packet in &mut packets {
                if let Some(rate) = rate(packet) {
                    let frame = f64::from(self.flows[packet.flow].payload) + HEADERS;
                    free = free.max(packet.now) + frame * 8.0 / f64::from(rate);
                    packet.now = free;
                }
            }
        }
        let delays = |flow: usize| {
            let of = packets.iter().filter(|packet| packet.flow == flow);
            let mut delays: Vec<f64> = of.map(|packet| (packet.now - packet.sent) * 1e-6).collect();
            let mut delays = delays.split_off(delays.len().min(WARM_UP));
            delays.sort_by(f64::total_cmp);
            (delays.iter().sum::<f64>() / delays.len() as f64, delays[delays.len() * 99 / 100])
        };
        (0..self.flows.len()).map(delays).collect()
    }
}

fn flow(from: usize, to: usize, payload: u32, mbps: f64) -> Flow {
    Flow { from, to, poisson: true, payload, mbps }
}

fn constant(from: usize, to: usize, payload: u32, mbps: f64) -> Flow {
    Flow { poisson: false, ..flow(from, to, payload, mbps) }
}

/// Checks that predicted delays differ from those of followed packets by these shares at most.
fn check(what: &str, row: &Row, mean_within: f64, p99_within: f64) {
    for (number, (predicted, (mean, p99))) in row.predicted().iter().zip(row.followed(11)).enumerate() {
        let off = [predicted.mean_s / mean - 1.0, predicted.p99_s / p99 - 1.0];
        println!("{what}, flow {number}: mean {mean:.6} s, {:+.3}; p99 {p99:.6} s, {:+.3}", off[0], off[1]);
        assert!(off[0].abs() < mean_within, "{what}, flow {number}: mean {}, followed {mean}", predicted.mean_s);
        assert!(off[1].abs() < p99_within, "{what}, flow {number}: p99 {}, followed {p99}", predicted.p99_s);
    }
}

#[test]
fn packets_of_one_size_wait_where_flows_meet() {
    let hosts = vec![(0, 10), (1, 10), (2, 10), (3, 10)];
    let flows = vec![flow(0, 3, 1000, 2.1), flow(1, 3, 1000, 2.3), flow(2, 3, 1000, 2.7), flow(0, 2, 1000, 1.9)];
    check("one rate", &Row { links: vec![10, 10, 10], hosts, flows }, 0.02, 0.1);
    let hosts = vec![(0, 10), (1, 10), (2, 10), (3, 20)];
    let flows = vec![flow(0, 3, 1000, 4.1), flow(1, 3, 1000, 3.3), flow(2, 3, 1000, 5.7)];
    check("growing rates", &Row { links: vec![10, 20, 20], hosts, flows }, 0.07, 0.15);
}

#[test]
fn short_packets_follow_long_ones_from_line_to_line() {
    let hosts = vec![(0, 10), (0, 10), (2, 10), (2, 10)];
    let flows = vec![flow(0, 2, 1400, 2.2), flow(0, 2, 100, 1.4), flow(1, 3, 500, 1.7)];
    check("one rate", &Row { links: vec![10, 10], hosts: hosts.clone(), flows }, 0.07, 0.15);
    let flows = vec![flow(0, 2, 1400, 2.2), flow(0, 2, 100, 1.4), flow(1, 3, 500, 1.7)];
    check("fast links", &Row { links: vec![50, 50], hosts, flows }, 0.07, 0.15);
}

#[test]
fn sources_with_constant_gaps_meet_in_all_phases() {
    let hosts = vec![(0, 10), (1, 10), (2, 10), (3, 10)];
    let flows = vec![constant(0, 3, 1000, 2.113), constant(1, 3, 1000, 1.931), constant(2, 3, 1000, 1.577)];
    check("one size", &Row { links: vec![10, 10, 10], hosts: hosts.clone(), flows }, 0.02, 0.15);
    let flows = vec![constant(0, 3, 1400, 2.113), constant(0, 3, 100, 1.031), constant(2, 3, 500, 1.277)];
    check("several sizes", &Row { links: vec![10, 10, 10], hosts: hosts.clone(), flows }, 0.12, 0.2);
    let flows = vec![constant(0, 3, 1000, 2.113), flow(1, 3, 1000, 1.931), constant(2, 3, 1000, 1.577)];
    // The law of waiting times where both meet is only known by two moments.
    check("constant and random", &Row { links: vec![10, 10, 10], hosts, flows }, 0.05, 0.4);
}
