//! Generates the graphs of regular networks: single switches, rows, trees, rings and fat-trees.
use crate::{MAX_NODES, Topology, TopologyLink, TopologyNode};

/// Kind of regular network, with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegularTopology {
    /// A single switch.
    Single,
    /// Switches in a row.
    Linear {
        /// Number of switches, at least 1.
        switches: usize,
    },
    /// A tree; hosts are at its leaves.
    Tree {
        /// Number of levels of switches, at least 1.
        depth: usize,
        /// Number of switches below each inner switch, at least 1.
        fanout: usize,
    },
    /// Switches in a circle.
    Ring {
        /// Number of switches, at least 3.
        switches: usize,
    },
    /// A fat-tree of switches with `k` ports each (Al-Fares, Loukissas and Vahdat, A scalable, commodity data center
    /// network architecture, SIGCOMM 2008): `k` pods of `k` switches and `k`²/4 core switches. Hosts are at the edge
    /// switches, `k`/2 at each.
    FatTree {
        /// Number of ports of a switch: even, at least 2.
        k: usize,
    },
}

/// Generates a regular network. Switches are named `s1`, `s2`, ... In a fat-tree, they are `c1`, ... in the core,
/// `a1-1`, ... (pod and position) in the aggregation layer, and `e1-1`, ... in the edge layer.
///
/// # Errors
/// The parameters are out of range, or the network exceeds [`MAX_NODES`] switches. The error states the value found
/// and the values expected.
pub fn generate(rule: RegularTopology) -> Result<Topology, String> {
    match rule {
        RegularTopology::Single => Ok(topology(1, |_| true, std::iter::empty())),
        RegularTopology::Linear { switches } => {
            between("switches", switches, 1, MAX_NODES)?;
            Ok(topology(switches, |_| true, (1..switches).map(|at| [at - 1, at])))
        }
        RegularTopology::Ring { switches } => {
            between("switches", switches, 3, MAX_NODES)?;
            Ok(topology(switches, |_| true, (0..switches).map(move |at| [at, (at + 1) % switches])))
        }
        RegularTopology::Tree { depth, fanout } => tree(depth, fanout),
        RegularTopology::FatTree { k } => fat_tree(k),
    }
}

/// Returns the default number of hosts at each switch that can have hosts.
pub fn usual_hosts(rule: RegularTopology) -> usize {
    match rule {
        RegularTopology::Single => 2,
        RegularTopology::Linear { .. } | RegularTopology::Ring { .. } => 1,
        RegularTopology::Tree { fanout, .. } => fanout,
        RegularTopology::FatTree { k } => k / 2,
    }
}

fn between(what: &str, found: usize, least: usize, most: usize) -> Result<(), String> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    Err(format!("{what}: found {found}, expected {least} to {most}"))
}

fn node(name: String, takes_hosts: bool) -> TopologyNode {
    TopologyNode { name, place: None, takes_hosts, dpid: None, line: None }
}

fn link(ends: [usize; 2]) -> TopologyLink {
    TopologyLink { ends, rate: None, delay: None, ports: None, line: None }
}

fn topology(nodes: usize, takes_hosts: impl Fn(usize) -> bool, links: impl Iterator<Item = [usize; 2]>) -> Topology {
    let nodes = (0..nodes).map(|at| node(format!("s{}", at + 1), takes_hosts(at)));
    Topology { name: None, nodes: nodes.collect(), links: links.map(link).collect() }
}

fn tree(depth: usize, fanout: usize) -> Result<Topology, String> {
    between("depth", depth, 1, MAX_NODES)?;
    between("fanout", fanout, 1, MAX_NODES)?;
    // Number of switches in all levels so far, and in the last level.
    let (mut switches, mut level) = (1_usize, 1_usize);
    for _ in 1..depth {
        level = level.saturating_mul(fanout);
        switches = switches.saturating_add(level);
        if switches > MAX_NODES {
            return Err(format!("depth: found {depth} with fanout {fanout}, expected at most {MAX_NODES} switches"));
        }
    }
    let leaves = switches - level;
    Ok(topology(switches, |at| at >= leaves, (1..switches).map(move |at| [(at - 1) / fanout, at])))
}

fn fat_tree(k: usize) -> Result<Topology, String> {
    let most = (1..).map(|half| half * 2).take_while(|k| k * k * 5 / 4 <= MAX_NODES).last().unwrap_or(2);
    if k < 2 || k > most || !k.is_multiple_of(2) {
        return Err(format!("k: found {k}, expected an even number from 2 to {most}"));
    }
    let half = k / 2;
    let core = half * half;
    let mut made = Topology::default();
    made.nodes.extend((1..=core).map(|number| node(format!("c{number}"), false)));
    for pod in 0..k {
        made.nodes.extend((1..=half).map(|place| node(format!("a{}-{place}", pod + 1), false)));
        made.nodes.extend((1..=half).map(|place| node(format!("e{}-{place}", pod + 1), true)));
        let (above, edge) = (core + pod * k, core + pod * k + half);
        for place in 0..half {
            // The first aggregation switch of every pod is joined to the first `k`/2 core switches, the second to the
            // next, and so on.
            made.links.extend((0..half).map(|other| link([place * half + other, above + place])));
            made.links.extend((0..half).map(|other| link([above + place, edge + other])));
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TopologyMeasures;

    fn measured(rule: RegularTopology) -> (usize, usize, usize, usize, usize) {
        let made = generate(rule).unwrap();
        let TopologyMeasures { nodes, links, diameter, parts, duplicates, .. } = TopologyMeasures::of(&made);
        assert_eq!((parts, duplicates), (1, 0), "{rule:?}");
        let takers = made.nodes.iter().filter(|node| node.takes_hosts).count();
        (nodes, links, diameter, takers, takers * usual_hosts(rule))
    }

    /// Checks, for each kind of network: the numbers of switches and links, the diameter, the number of switches with
    /// hosts, and the number of hosts.
    #[test]
    fn each_kind_has_its_numbers() {
        assert_eq!(measured(RegularTopology::Single), (1, 0, 0, 1, 2));
        assert_eq!(measured(RegularTopology::Linear { switches: 5 }), (5, 4, 4, 5, 5));
        assert_eq!(measured(RegularTopology::Ring { switches: 5 }), (5, 5, 2, 5, 5));
        assert_eq!(measured(RegularTopology::Tree { depth: 3, fanout: 3 }), (13, 12, 4, 9, 27));
        assert_eq!(measured(RegularTopology::Tree { depth: 4, fanout: 1 }), (4, 3, 3, 1, 1));
        assert_eq!(measured(RegularTopology::FatTree { k: 2 }), (5, 4, 4, 2, 2));
        assert_eq!(measured(RegularTopology::FatTree { k: 4 }), (20, 32, 4, 8, 16));
        assert_eq!(measured(RegularTopology::FatTree { k: 8 }), (80, 256, 4, 32, 128));
    }

    #[test]
    fn switches_of_a_fat_tree_have_k_ports() {
        let made = generate(RegularTopology::FatTree { k: 6 }).unwrap();
        for (at, next) in made.neighbours().iter().enumerate() {
            let hosts = if made.nodes[at].takes_hosts { 3 } else { 0 };
            assert_eq!(next.len() + hosts, 6, "{}", made.nodes[at].name);
        }
    }

    #[test]
    fn what_there_is_not_is_refused() {
        for (rule, problem) in [
            (RegularTopology::Linear { switches: 0 }, "switches: found 0, expected 1 to 10000"),
            (RegularTopology::Ring { switches: 2 }, "switches: found 2, expected 3 to 10000"),
            (RegularTopology::Tree { depth: 0, fanout: 2 }, "depth: found 0, expected 1 to 10000"),
            (RegularTopology::Tree { depth: 2, fanout: 0 }, "fanout: found 0, expected 1 to 10000"),
            (
                RegularTopology::Tree { depth: 9999, fanout: 9999 },
                "depth: found 9999 with fanout 9999, expected at most 10000 switches",
            ),
            (RegularTopology::FatTree { k: 3 }, "k: found 3, expected an even number from 2 to 88"),
            (
                RegularTopology::FatTree { k: usize::MAX },
                "k: found 18446744073709551615, expected an even number from 2 to 88",
            ),
        ] {
            assert_eq!(generate(rule).unwrap_err(), problem);
        }
    }
}
