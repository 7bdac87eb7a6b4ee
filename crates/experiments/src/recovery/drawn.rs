//! Draws networks under the controller of a network as scenario files.
use crate::draw::below;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use weir_traffic::RandomStream;

/// Delay of a link between switches, in microseconds.
pub(super) const LINK_US: f64 = 20.0;
/// Packets per second of a flow whose losses are counted: one each millisecond.
pub(super) const FLOW_RATE: u32 = 1000;
/// Flows that are moved.
pub(super) const MOVED_FLOWS: usize = 1000;
/// Switches between the two halves of a network whose flows are moved, on the longer way.
const ON_LONG_WAY: usize = 2;
/// Switches with hosts in each half, and hosts at each of them.
const EDGES: usize = 4;
const EDGE_HOSTS: usize = 8;
/// Links between switches on the longer way, from edge to edge.
pub(super) const LONG_WAY: usize = ON_LONG_WAY + 3;
/// Place of the link that makes the short way, in the scenario's order.
pub(super) const SHORT_WAY: usize = 0;
/// Time in ms between two packets of a flow that is moved, and for which these flows last.
pub(super) const MOVED_EVERY_MS: u64 = 20;
pub(super) const MOVED_FOR_MS: u64 = 1000;

/// Returns a connected network of switches and links alone.
pub(super) fn switches(random: &mut RandomStream, switches: usize, links: usize) -> String {
    let mut joined: BTreeSet<(usize, usize)> = (1..switches).map(|to| (below(random, to), to)).collect();
    add_links(random, switches, links, &mut joined);
    let mut text = header(0);
    write_network(&mut text, switches, &joined.into_iter().collect::<Vec<_>>());
    text
}

/// Returns a network without a link on which all depends: a ring with as many more links. `hosts` hosts at different
/// switches each send to the next one for `time_ms`.
pub(super) fn flows(random: &mut RandomStream, switches: usize, hosts: usize, time_ms: u64) -> String {
    let mut joined: BTreeSet<(usize, usize)> = (1..switches).map(|to| (to - 1, to)).collect();
    joined.insert((0, switches - 1));
    add_links(random, switches, 2 * switches, &mut joined);
    let mut text = header(time_ms);
    write_network(&mut text, switches, &joined.into_iter().collect::<Vec<_>>());
    let mut at: Vec<usize> = (0..switches).collect();
    for place in 0..hosts {
        let other = place + below(random, switches - place);
        at.swap(place, other);
        write_host(&mut text, place, at[place]);
    }
    for from in 0..hosts {
        let _ = write!(
            text,
            "[[traffic]]\nkind = \"udp\"\nfrom = \"h{from}\"\nto = \"h{}\"\nrate = {FLOW_RATE}\npayload = \"16B\"\n",
            (from + 1) % hosts
        );
    }
    text
}

/// Returns a network of two halves with a short and a longer way between them, and flows from each half to the other.
pub(super) fn moved(random: &mut RandomStream) -> String {
    let mut text = header(MOVED_FOR_MS);
    let long_way = [0, 2, 3, 1];
    let mut links = vec![(0, 1)];
    links.extend(long_way.windows(2).map(|two| (two[0], two[1])));
    let first_edge = 2 + ON_LONG_WAY;
    links.extend((0..2 * EDGES).map(|edge| (edge / EDGES, first_edge + edge)));
    write_network(&mut text, first_edge + 2 * EDGES, &links);
    let half = EDGES * EDGE_HOSTS;
    (0..2 * half).for_each(|host| write_host(&mut text, host, first_edge + host / EDGE_HOSTS));
    // Each number is another pair of hosts in different halves, in one direction.
    let mut pairs: Vec<usize> = (0..2 * half * half).collect();
    for place in 0..MOVED_FLOWS {
        let other = place + below(random, pairs.len() - place);
        pairs.swap(place, other);
    }
    let ends = |pair: usize| {
        let (from, to) = (pair / half, pair % half);
        if from < half { (from, to + half) } else { (from, to) }
    };
    for pair in &pairs[..MOVED_FLOWS] {
        // The last part of an interval is without packets, so that they can be counted.
        let ((from, to), start_us) = (ends(*pair), below(random, 18_000));
        let _ = write!(
            text,
            "[[traffic]]\nkind = \"udp\"\nfrom = \"h{from}\"\nto = \"h{to}\"\nrate = {}\npayload = \"16B\"\nstart = \"{start_us}us\"\n",
            1000 / MOVED_EVERY_MS
        );
    }
    text
}

/// Adds links at random until there are `links`.
fn add_links(random: &mut RandomStream, switches: usize, links: usize, joined: &mut BTreeSet<(usize, usize)>) {
    while joined.len() < links {
        let (a, b) = (below(random, switches), below(random, switches));
        if a != b {
            joined.insert((a.min(b), a.max(b)));
        }
    }
}

fn header(time_ms: u64) -> String {
    format!("name = \"recovery\"\nduration = \"{}ms\"\n[controller]\napp = \"forwarding\"\n", time_ms.max(1))
}

fn write_network(text: &mut String, switches: usize, links: &[(usize, usize)]) {
    for number in 0..switches {
        let _ = write!(text, "[[switch]]\nname = \"s{number}\"\n");
    }
    for (a, b) in links {
        let _ = write!(text, "[[link]]\nends = [\"s{a}\", \"s{b}\"]\nrate = \"1Gbit/s\"\ndelay = \"{LINK_US:.0}us\"\n");
    }
}

fn write_host(text: &mut String, number: usize, switch: usize) {
    let ip = number + 1;
    let _ = write!(
        text,
        "[[host]]\nname = \"h{number}\"\nswitch = \"s{switch}\"\nip = \"10.0.{}.{}/16\"\n",
        ip / 256,
        ip % 256
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_scenario::Scenario;

    #[test]
    fn drawn_networks_are_scenarios() {
        let mut random = RandomStream::new(3, 0, 0);
        let of = |text: String| {
            let scenario = Scenario::parse(&text, "drawn").unwrap_or_else(|error| panic!("{error}\n{text}"));
            (scenario.switches.len(), scenario.links.len(), scenario.hosts.len(), scenario.traffic.len())
        };
        assert_eq!(of(switches(&mut random, 100, 200)), (100, 200, 0, 0));
        assert_eq!(of(flows(&mut random, 16, 6, 1000)), (16, 32, 6, 6));
        assert_eq!(of(moved(&mut random)), (12, 12, 64, MOVED_FLOWS));
    }
}
