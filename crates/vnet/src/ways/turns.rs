//! Graphs of a substrate, in which paths are the ways that a rule for turns allows.
//!
//! Bounds of delay need that virtual links do not feed each other around a cycle of links (see
//! [`admission`](crate::admission)). D. Starobinski, M. Karpovsky and L. Zakrevski ("Application of network calculus to
//! general topologies using turn-prohibition", IEEE/ACM Transactions on Networking 11(3), 2003) exclude cycles
//! beforehand by prohibiting turns. The rule here is that of M. D. Schroeder and others ("Autonet: a high-speed,
//! self-configuring local area network using point-to-point links", IEEE Journal on Selected Areas in Communications
//! 9(8), 1991): links lead up, nearer to a root, or down, and no way goes up after it went down.
use super::Substrate;
use std::collections::{BTreeMap, VecDeque};
use weir_topology::paths::{WeightedGraph, WeightedLink};

/// Rule for the turns of ways from one link into the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TurnRule {
    /// Ways may make all turns that close no cycle with the virtual links that are there. Ways are short, but the more
    /// virtual links there are, the more ways would close one.
    #[default]
    Any,
    /// Ways go up, nearer to a root, and then down. No two ways close a cycle, and if all links have two directions,
    /// there is a way between every two connected switches. Ways near the root are preferred to short ones, and get
    /// full.
    UpDown,
}

/// Substrate as a graph of allowed ways.
#[derive(Debug, Clone)]
pub(super) struct WayGraph {
    pub(super) graph: WeightedGraph,
    /// Link of the substrate that each link of the graph is; `None` for those that only end a path.
    pub(super) link: Vec<Option<usize>>,
    /// Links of the substrate that lead down; none without a rule.
    leads_down: Vec<bool>,
    rule: TurnRule,
    switches: usize,
    /// Ways over all links, by their ends and the largest number of ways.
    kept: BTreeMap<([usize; 2], usize), Vec<CostedWay>>,
}

/// Numbers of the links of a way, and its cost.
pub(super) type CostedWay = (Vec<usize>, u64);

/// Most pairs of ends whose ways are kept.
const MOST_KEPT: usize = 4096;

impl WayGraph {
    pub(super) fn new(substrate: &Substrate, rule: TurnRule) -> Result<WayGraph, String> {
        let switches = substrate.switches().len();
        let costs = substrate.links().iter().map(|link| u64::from(link.cost));
        let links = substrate.ends().iter().copied().zip(costs).enumerate();
        let (mut weighted, mut link): (Vec<WeightedLink>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
        let mut add = |from, to, weight, of| {
            weighted.push(WeightedLink { from, to, weight, group: link.len() });
            link.push(of);
        };
        let mut leads_down = vec![false; substrate.links().len()];
        let nodes = match rule {
            TurnRule::Any => {
                links.for_each(|(number, ([from, to], cost))| add(from, to, cost, Some(number)));
                switches
            }
            // Switch s is node s before a way went down, node s + n behind that, and node s + 2 n at the way's end.
            TurnRule::UpDown => {
                let height = heights(switches, substrate.ends());
                for (number, ([from, to], cost)) in links {
                    if height[to] < height[from] {
                        add(from, to, cost, Some(number));
                    } else {
                        leads_down[number] = true;
                        add(from, to + switches, cost, Some(number));
                        add(from + switches, to + switches, cost, Some(number));
                    }
                }
                for end in 0..switches {
                    add(end, end + 2 * switches, 1, None);
                    add(end + switches, end + 2 * switches, 1, None);
                }
                3 * switches
            }
        };
        Ok(WayGraph {
            graph: WeightedGraph::new(nodes, weighted)?,
            link,
            leads_down,
            rule,
            switches,
            kept: BTreeMap::new(),
        })
    }

    /// Returns at most `most` ways between two switches over all links, the cheapest first.
    pub(super) fn ways(&mut self, ends: [usize; 2], most: usize) -> Vec<CostedWay> {
        if let Some(kept) = self.kept.get(&(ends, most)) {
            return kept.clone();
        }
        if self.kept.len() == MOST_KEPT {
            self.kept.clear();
        }
        let found = self.ways_over(ends, most, |_| true);
        self.kept.insert((ends, most), found.clone());
        found
    }

    /// Returns at most `most` ways between two switches over the links that `usable` accepts, the cheapest first.
    pub(super) fn ways_over(
        &self,
        [from, to]: [usize; 2],
        most: usize,
        usable: impl Fn(usize) -> bool,
    ) -> Vec<CostedWay> {
        let to = if self.rule == TurnRule::Any { to } else { to + 2 * self.switches };
        let paths = self.graph.k_shortest_paths(from, to, most, |link| self.link[link].is_none_or(&usable));
        let links = |path: &[usize]| path.iter().filter_map(|link| self.link[*link]).collect();
        paths.into_iter().map(|path| (links(&path.links), path.weight)).collect()
    }

    /// Returns true if the rule allows a way: no link that leads up is behind one that leads down.
    pub(super) fn allows(&self, way: &[usize]) -> bool {
        way.windows(2).all(|pair| self.leads_down[pair[1]] || !self.leads_down[pair[0]])
    }
}

/// Returns the height of each switch: a link to a lesser one leads up. The root of each connected part is the switch
/// with the most links, the first one among equals.
fn heights(switches: usize, ends: &[[usize; 2]]) -> Vec<(usize, usize)> {
    let mut beside = vec![Vec::new(); switches];
    for [from, to] in ends {
        beside[*from].push(*to);
        beside[*to].push(*from);
    }
    let mut roots: Vec<usize> = (0..switches).collect();
    roots.sort_by_key(|switch| (std::cmp::Reverse(beside[*switch].len()), *switch));
    let mut height = vec![(usize::MAX, 0); switches];
    for root in roots {
        if height[root].0 != usize::MAX {
            continue;
        }
        height[root] = (0, root);
        let mut open = VecDeque::from([root]);
        while let Some(at) = open.pop_front() {
            for next in &beside[at] {
                if height[*next].0 == usize::MAX {
                    height[*next] = (height[at].0 + 1, *next);
                    open.push_back(*next);
                }
            }
        }
    }
    height
}
