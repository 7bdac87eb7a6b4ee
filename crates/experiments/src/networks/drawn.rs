//! Draws random networks of switches, hosts and flows as scenario files, at a given load of the busiest line.
use crate::draw::below;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use weir_traffic::RandomStream;

/// Flows of datagrams over a drawn network.
#[derive(Debug, Clone)]
pub(super) struct DrawnNetwork {
    /// Scenario file.
    pub(super) scenario: String,
    /// Shape of the network.
    pub(super) shape: &'static str,
    /// Law of the gaps between packets.
    pub(super) gaps: &'static str,
    /// Law of the frames' lengths.
    pub(super) sizes: &'static str,
    /// Buffers of lines.
    pub(super) buffers: &'static str,
}

/// Laws of gaps. With `both`, each source has constant or random ones.
pub(super) const GAPS: [&str; 4] = ["poisson", "constant", "both", "bursts"];
/// Laws of lengths. With `own`, each source has frames of one size, which differ between sources.
pub(super) const SIZES: [&str; 4] = ["1000 bytes", "own", "bimodal", "imix"];
/// Buffer that is never full at these loads.
pub(super) const LARGE: &str = "large";
/// Buffer of a few packets.
pub(super) const SMALL: &str = "small";

/// Highest share of the busiest line that flows use, and the lowest.
const BUSIEST: (f64, f64) = (0.3, 0.8);

/// Switches and the links between them.
struct DrawnShape {
    name: &'static str,
    switches: usize,
    links: Vec<(usize, usize)>,
    /// Delays of the links, in microseconds.
    delays_us: Vec<f64>,
}

/// Draws a network in which no flow has a choice between several shortest paths.
pub(super) fn draw(random: &mut RandomStream, seconds: f64) -> DrawnNetwork {
    loop {
        if let Some(network) = attempt(random, seconds) {
            return network;
        }
    }
}

fn attempt(random: &mut RandomStream, seconds: f64) -> Option<DrawnNetwork> {
    let shape = draw_shape(random);
    let rates: &[f64] = choose(random, &[&[10.0], &[10.0], &[10.0, 20.0], &[10.0, 50.0]]);
    let link_rates: Vec<f64> = shape.links.iter().map(|_| choose(random, rates)).collect();
    let host_rate = choose(random, &[10.0, 10.0, 100.0]);
    let hosts: Vec<usize> = (0..between(random, 3, 7)).map(|_| below(random, shape.switches)).collect();
    let target = (below(random, 2) == 0).then(|| below(random, hosts.len()));
    let flows: Vec<PlannedFlow> =
        (0..between(random, 2, 8)).filter_map(|_| PlannedFlow::draw(random, &shape, &hosts, target)).collect();
    if flows.is_empty() {
        return None;
    }
    let gaps = choose(random, &["poisson", "poisson", "poisson", "constant", "both", "bursts"]);
    let sizes = choose(random, &["1000 bytes", "1000 bytes", "own", "bimodal", "imix"]);
    let buffers = choose(random, &[LARGE, LARGE, LARGE, LARGE, SMALL]);
    let scale = (BUSIEST.0 + (BUSIEST.1 - BUSIEST.0) * random.unit()) / busiest(&shape, &link_rates, host_rate, &flows);
    let mut text = header(&shape, seconds);
    write_switches(&mut text, &shape, &hosts);
    let buffer = |random: &mut RandomStream| match buffers {
        LARGE => "10MB".to_owned(),
        _ => format!("{}B", between(random, 5, 30) * 1514),
    };
    for (number, at) in hosts.iter().enumerate() {
        let port = host_port(&hosts, number);
        let _ = write!(
            text,
            "[[host]]\nname = \"h{}\"\nswitch = \"s{}\"\nport = {port}\nip = \"10.0.0.{}/24\"\nrate = \"{host_rate}Mbit/s\"\nbuffer = \"{}\"\n",
            number + 1,
            at + 1,
            number + 1,
            buffer(random)
        );
    }
    for (number, (a, b)) in shape.links.iter().enumerate() {
        let ports = [link_port(&shape, &hosts, *a, number), link_port(&shape, &hosts, *b, number)];
        let _ = write!(
            text,
            "[[link]]\nends = [\"s{}\", \"s{}\"]\nports = {ports:?}\nrate = \"{}Mbit/s\"\ndelay = \"{:.0}us\"\nbuffer = \"{}\"\n",
            a + 1,
            b + 1,
            link_rates[number],
            shape.delays_us[number],
            buffer(random)
        );
    }
    for flow in &flows {
        let rate = flow.share * scale * 1e6;
        let arrival = match gaps {
            "both" => choose(random, &["\"poisson\"", "\"constant\""]).to_owned(),
            "bursts" => bursts(random),
            other => format!("\"{other}\""),
        };
        let length = match sizes {
            "1000 bytes" => "payload = \"1000B\"".to_owned(),
            "own" => format!("payload = \"{}B\"", choose(random, &[100, 500, 1400])),
            other => format!("sizes = \"{other}\""),
        };
        let _ = write!(
            text,
            "[[traffic]]\nkind = \"udp\"\nfrom = \"h{}\"\nto = \"h{}\"\nrate = \"{rate:.0}bit/s\"\narrival = {arrival}\n{length}\n",
            flow.from + 1,
            flow.to + 1
        );
    }
    Some(DrawnNetwork { scenario: text, shape: shape.name, gaps, sizes, buffers })
}

/// Draws a source with bursts: Poisson packets whose rate switches between a high and a low one.
fn bursts(random: &mut RandomStream) -> String {
    let high = choose(random, &[1.5, 2.0, 3.0]);
    let low = choose(random, &[0.0, 0.25, 0.5]);
    let time = choose(random, &[5, 20, 100]);
    format!("{{ kind = \"mmpp\", high = {high:.1}, low = {low:.2}, time = \"{time}ms\" }}")
}

/// A flow, with the links on its only shortest path.
struct PlannedFlow {
    from: usize,
    to: usize,
    /// Rate relative to other flows'.
    share: f64,
    /// Numbers of the links, with the switch from which each is passed.
    path: Vec<(usize, usize)>,
}

impl PlannedFlow {
    fn draw(
        random: &mut RandomStream,
        shape: &DrawnShape,
        hosts: &[usize],
        target: Option<usize>,
    ) -> Option<PlannedFlow> {
        let (from, other) = (below(random, hosts.len()), below(random, hosts.len()));
        let (to, share) = (target.unwrap_or(other), 0.3 + 0.7 * random.unit());
        let path = only_path(shape, hosts[from], hosts[to]).filter(|_| from != to)?;
        Some(PlannedFlow { from, to, share, path })
    }
}

fn draw_shape(random: &mut RandomStream) -> DrawnShape {
    match choose(random, &["tree", "row", "ring", "mesh", "wide area"]) {
        "wide area" => wide_area(random),
        name => {
            let switches = between(random, 3, 10);
            let chain = matches!(name, "row" | "ring");
            let mut links: Vec<(usize, usize)> =
                (1..switches).map(|to| (if chain { to - 1 } else { below(random, to) }, to)).collect();
            if name == "ring" {
                links.push((0, switches - 1));
            }
            for _ in 0..if name == "mesh" { between(random, 1, switches) } else { 0 } {
                add_link(&mut links, below(random, switches), below(random, switches));
            }
            DrawnShape { name, switches, delays_us: vec![0.0; links.len()], links }
        }
    }
}

/// Draws a network of 12 to 30 switches at random places in a square of 1000 km, with links to near ones (Waxman,
/// Routing of multipoint connections, 1988) at the speed of light in glass.
fn wide_area(random: &mut RandomStream) -> DrawnShape {
    let switches = between(random, 12, 30);
    let places: Vec<(f64, f64)> = (0..switches).map(|_| (random.unit() * 1000.0, random.unit() * 1000.0)).collect();
    let distance = |a: usize, b: usize| (places[a].0 - places[b].0).hypot(places[a].1 - places[b].1);
    let mut links = Vec::new();
    for to in 1..switches {
        let nearest = (0..to).min_by(|a, b| distance(*a, to).total_cmp(&distance(*b, to))).unwrap_or(0);
        add_link(&mut links, nearest, to);
    }
    for a in 0..switches {
        for b in a + 1..switches {
            if random.unit() < 0.3 * (-distance(a, b) / 200.0).exp() {
                add_link(&mut links, a, b);
            }
        }
    }
    let delays_us = links.iter().map(|(a, b)| distance(*a, *b) * 5.0).collect();
    DrawnShape { name: "wide area", switches, links, delays_us }
}

fn add_link(links: &mut Vec<(usize, usize)>, a: usize, b: usize) {
    let link = (a.min(b), a.max(b));
    if a != b && !links.contains(&link) {
        links.push(link);
    }
}

/// Returns the links at a switch: their numbers and the switches at their other ends.
fn neighbours(shape: &DrawnShape, at: usize) -> impl Iterator<Item = (usize, usize)> {
    shape.links.iter().enumerate().filter_map(move |(number, (a, b))| match at {
        at if at == *a => Some((number, *b)),
        at if at == *b => Some((number, *a)),
        _ => None,
    })
}

/// Returns the number of links from each switch to `end`.
fn distances(shape: &DrawnShape, end: usize) -> Vec<usize> {
    let mut found = vec![usize::MAX; shape.switches];
    found[end] = 0;
    let mut next = VecDeque::from([end]);
    while let Some(at) = next.pop_front() {
        for (_, far) in neighbours(shape, at) {
            if found[far] == usize::MAX {
                found[far] = found[at] + 1;
                next.push_back(far);
            }
        }
    }
    found
}

/// Returns the shortest path between two switches if there is only one.
fn only_path(shape: &DrawnShape, start: usize, end: usize) -> Option<Vec<(usize, usize)>> {
    let left = distances(shape, end);
    let (mut at, mut path) = (start, Vec::new());
    while at != end {
        let mut nearer = neighbours(shape, at).filter(|(_, far)| left[*far] + 1 == left[at]);
        let (link, far) = nearer.next()?;
        if nearer.next().is_some() {
            return None;
        }
        path.push((link, at));
        at = far;
    }
    Some(path)
}

/// Returns the load of the busiest line, with flows' shares as rates in Mbit/s.
fn busiest(shape: &DrawnShape, link_rates: &[f64], host_rate: f64, flows: &[PlannedFlow]) -> f64 {
    let mut loads: BTreeMap<(char, usize, usize), f64> = BTreeMap::new();
    for flow in flows {
        *loads.entry(('>', flow.from, shape.switches)).or_default() += flow.share / host_rate;
        *loads.entry(('<', flow.to, shape.switches)).or_default() += flow.share / host_rate;
        for (link, from) in &flow.path {
            *loads.entry(('-', *link, *from)).or_default() += flow.share / link_rates[*link];
        }
    }
    loads.into_values().fold(f64::MIN_POSITIVE, f64::max)
}

fn header(shape: &DrawnShape, seconds: f64) -> String {
    format!("name = \"{}\"\nduration = \"{:.0}ms\"\n[controller]\nconnect = \"none\"\n", shape.name, seconds * 1e3)
}

/// Writes switches with an entry for each host, so that links may form loops.
fn write_switches(text: &mut String, shape: &DrawnShape, hosts: &[usize]) {
    for switch in 0..shape.switches {
        let _ = write!(text, "[[switch]]\nname = \"s{}\"\nentries = [", switch + 1);
        for (number, at) in hosts.iter().enumerate() {
            let left = distances(shape, *at);
            let out = if *at == switch {
                host_port(hosts, number)
            } else {
                let nearer = neighbours(shape, switch).find(|(_, far)| left[*far] + 1 == left[switch]);
                nearer.map_or(0, |(link, _)| link_port(shape, hosts, switch, link))
            };
            let address = format!("10.0.0.{}", number + 1);
            let _ = write!(
                text,
                "\"ip,nw_dst={address},actions=output:{out}\",\"arp,arp_tpa={address},actions=output:{out}\","
            );
        }
        text.push_str("]\n");
    }
}

/// Returns the port of a host at its switch: hosts have the first ports.
fn host_port(hosts: &[usize], number: usize) -> usize {
    hosts[..number].iter().filter(|at| **at == hosts[number]).count() + 1
}

/// Returns the port of a link at a switch, after the ports of hosts.
fn link_port(shape: &DrawnShape, hosts: &[usize], switch: usize, link: usize) -> usize {
    let own = hosts.iter().filter(|at| **at == switch).count();
    own + neighbours(shape, switch).take_while(|(number, _)| *number != link).count() + 1
}

fn choose<T: Copy>(random: &mut RandomStream, among: &[T]) -> T {
    among[below(random, among.len())]
}

/// Draws a whole number from `low` to `high`, both included.
fn between(random: &mut RandomStream, low: usize, high: usize) -> usize {
    low + below(random, high - low + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_scenario::Scenario;

    #[test]
    fn drawn_networks_are_scenarios_at_their_load() {
        let mut random = RandomStream::new(7, 0, 0);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..60 {
            let network = draw(&mut random, 1.0);
            let scenario = Scenario::parse(&network.scenario, "drawn").unwrap_or_else(|error| panic!("{error}"));
            assert!(!scenario.traffic.is_empty());
            let prediction = weir_predict::predict(&scenario, &weir_predict::PredictSettings::default()).unwrap();
            let most = prediction.devices.iter().map(|device| device.utilisation).fold(0.0, f64::max);
            assert!((0.25..0.82).contains(&most), "{most}\n{}", network.scenario);
            seen.extend([network.shape, network.gaps, network.sizes, network.buffers]);
        }
        assert!(GAPS.iter().chain(&SIZES).all(|law| seen.contains(law)), "{seen:?}");
        assert!(["tree", "row", "ring", "mesh", "wide area", LARGE, SMALL].iter().all(|kind| seen.contains(kind)));
    }
}
