//! Pushes units of flow through arcs of capacity one, each by the path of least weight that is left.
//!
//! Weights are kept from being negative by potentials: R. K. Ahuja, T. L. Magnanti and J. B. Orlin, "Network Flows",
//! 1993, 9.7 (successive shortest paths).
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Arcs of capacity one, some of them with flow.
#[derive(Debug)]
pub(super) struct FlowNetwork {
    arcs: Vec<FlowArc>,
    /// Arcs that begin or end at each node.
    at: Vec<Vec<usize>>,
    /// Distance of each node from the source when the last unit was pushed.
    potentials: Vec<u64>,
}

#[derive(Debug)]
struct FlowArc {
    from: usize,
    to: usize,
    weight: u64,
    /// Number of the link that it stands for, if any.
    link: Option<usize>,
    has_flow: bool,
}

impl FlowNetwork {
    pub(super) fn new(nodes: usize) -> FlowNetwork {
        FlowNetwork { arcs: Vec::new(), at: vec![Vec::new(); nodes], potentials: vec![0; nodes] }
    }

    /// Adds an arc between two nodes.
    pub(super) fn add(&mut self, from: usize, to: usize, weight: u64, link: Option<usize>) {
        self.at[from].push(self.arcs.len());
        self.at[to].push(self.arcs.len());
        self.arcs.push(FlowArc { from, to, weight, link, has_flow: false });
    }

    /// Pushes one unit from a source to a sink. Returns false if no way is left. All units have the same source.
    pub(super) fn push(&mut self, source: usize, sink: usize) -> bool {
        let mut reached: Vec<Option<(u64, Option<usize>)>> = vec![None; self.at.len()];
        reached[source] = Some((0, None));
        let mut open = BinaryHeap::from([Reverse((0, source))]);
        while let Some(Reverse((distance, at))) = open.pop() {
            if reached[at].is_some_and(|(known, _)| known < distance) {
                continue;
            }
            for &number in &self.at[at] {
                let Some((to, reduced)) = self.step(number, at) else { continue };
                let longer = distance + reduced;
                if reached[to].is_none_or(|(known, _)| longer < known) {
                    reached[to] = Some((longer, Some(number)));
                    open.push(Reverse((longer, to)));
                }
            }
        }
        if reached[sink].is_none() {
            return false;
        }
        let mut at = sink;
        while let Some((_, Some(number))) = reached[at] {
            let arc = &mut self.arcs[number];
            arc.has_flow = !arc.has_flow;
            at = if arc.has_flow { arc.from } else { arc.to };
        }
        for (potential, reached) in self.potentials.iter_mut().zip(&reached) {
            *potential += reached.map_or(0, |(distance, _)| distance);
        }
        true
    }

    /// Returns the links with flow.
    pub(super) fn used(&self) -> BTreeSet<usize> {
        self.arcs.iter().filter(|arc| arc.has_flow).filter_map(|arc| arc.link).collect()
    }

    /// Returns the node to which an arc leads from `at`, and the weight less what potentials account for. Against its
    /// direction an arc takes its flow back.
    fn step(&self, number: usize, at: usize) -> Option<(usize, u64)> {
        let arc = &self.arcs[number];
        if !arc.has_flow && arc.from == at {
            let reduced = (arc.weight + self.potentials[at]).checked_sub(self.potentials[arc.to])?;
            return Some((arc.to, reduced));
        }
        let back = self.potentials[at].checked_sub(arc.weight + self.potentials[arc.from]);
        (arc.has_flow && arc.to == at).then(|| Some((arc.from, back?)))?
    }
}
