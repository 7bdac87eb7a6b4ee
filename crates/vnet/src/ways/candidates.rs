//! Finds the ways that a virtual link may take, the cheapest first.
use super::turns::{CostedWay, WayGraph};
use super::{Substrate, VirtualLinkRequest};
use std::collections::{BTreeSet, HashSet};
use weir_topology::paths::MAX_PATHS;

/// Most combinations of ways from one waypoint to the next that are examined, for each way that is asked for.
const COMBINATIONS: usize = 64;

/// A way as the numbers of its links.
pub(super) type Way = Vec<usize>;

/// Search for ways of one virtual link.
pub(super) struct CandidateSearch<'a> {
    substrate: &'a Substrate,
    graph: &'a mut WayGraph,
    /// Switches that each way passes, ends included.
    stops: &'a [usize],
    is_avoided: Vec<bool>,
}

impl<'a> CandidateSearch<'a> {
    pub(super) fn new(
        substrate: &'a Substrate,
        graph: &'a mut WayGraph,
        request: &VirtualLinkRequest,
        stops: &'a [usize],
    ) -> CandidateSearch<'a> {
        let switches: HashSet<usize> = request.avoid.iter().filter_map(|name| substrate.place(name)).collect();
        let links: HashSet<usize> = request.avoid.iter().filter_map(|name| substrate.link_place(name)).collect();
        let at_switch = |ends: &[usize; 2]| ends.iter().any(|end| switches.contains(end));
        let is_avoided = |(link, ends)| links.contains(&link) || at_switch(ends);
        let is_avoided = substrate.ends().iter().enumerate().map(is_avoided).collect();
        CandidateSearch { substrate, graph, stops, is_avoided }
    }

    /// Returns the cheapest ways, at most `most`, in the order of their costs.
    pub(super) fn cheapest(&mut self, most: usize) -> Vec<Way> {
        let most = most.min(MAX_PATHS);
        let may_use_all = !self.is_avoided.contains(&true);
        let between = |ends: &[usize]| match [ends[0], ends[1]] {
            ends if may_use_all => self.graph.ways(ends, most),
            ends => self.graph.ways_over(ends, most, |link| !self.is_avoided[link]),
        };
        let parts: Vec<Vec<CostedWay>> = self.stops.windows(2).map(between).collect();
        if parts.iter().any(Vec::is_empty) {
            return Vec::new();
        }
        self.combined(&parts, most)
    }

    /// Returns the cheapest ways of one part after the other that may be used.
    fn combined(&self, parts: &[Vec<CostedWay>], most: usize) -> Vec<Way> {
        let cost = |chosen: &[usize]| parts.iter().zip(chosen).map(|(part, one)| part[*one].1).sum::<u64>();
        let first = vec![0; parts.len()];
        let mut open = BTreeSet::from([(cost(&first), first)]);
        let mut found = Vec::new();
        for _ in 0..COMBINATIONS * most {
            let Some((_, chosen)) = open.pop_first() else { break };
            let way: Way = parts.iter().zip(&chosen).flat_map(|(part, one)| part[*one].0.iter().copied()).collect();
            if self.may_be_used(&way) {
                found.push(way);
            }
            if found.len() == most {
                break;
            }
            for place in 0..parts.len() {
                let mut next = chosen.clone();
                next[place] += 1;
                if next[place] < parts[place].len() {
                    open.insert((cost(&next), next));
                }
            }
        }
        found
    }

    /// Returns true if a way passes no link twice, no switch twice between two stops, and makes only allowed turns.
    fn may_be_used(&self, way: &[usize]) -> bool {
        let mut links = HashSet::new();
        let ends = self.substrate.ends();
        let passes_twice = || {
            let mut switches = HashSet::from([self.stops[0]]);
            way.iter().any(|link| !switches.insert(ends[*link][1]))
        };
        way.iter().all(|link| links.insert(*link))
            && (self.stops.len() > 2 || !passes_twice())
            && self.graph.allows(way)
    }
}
