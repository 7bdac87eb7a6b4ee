//! Finds shortest paths: E. W. Dijkstra, "A note on two problems in connexion with graphs", Numerische Mathematik 1,
//! 1959.
use super::{WeightedGraph, WeightedPath};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Shortest paths from all nodes to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortestPaths {
    /// Weight of the shortest paths from each node; `None` if there is none.
    pub distances: Vec<Option<u64>>,
    /// Links with which shortest paths from each node begin, in the order of their numbers. Each leads nearer to the
    /// destination, so whatever links packets take, they never come back to a node.
    pub next: Vec<Vec<usize>>,
}

/// Weight and number of links of a path.
type Distance = (u64, usize);

impl WeightedGraph {
    /// Returns the shortest paths to a node over the links that `usable` accepts by their numbers.
    pub fn shortest_paths_to(&self, destination: usize, usable: impl Fn(usize) -> bool) -> ShortestPaths {
        let distances: Vec<_> =
            self.distances_to(destination, None, &usable).into_iter().map(|to| Some(to?.0)).collect();
        let is_next = |link: &usize| {
            let about = &self.links[*link];
            let rest = distances[about.to].map(|rest| rest + about.weight);
            rest.is_some() && rest == distances[about.from] && usable(*link)
        };
        let next = self.leaving.iter().map(|links| links.iter().copied().filter(is_next).collect()).collect();
        ShortestPaths { distances, next }
    }

    /// Returns the shortest path from one node to another over the links that `usable` accepts; `None` if there is
    /// none.
    pub fn shortest_path(&self, from: usize, to: usize, usable: impl Fn(usize) -> bool) -> Option<WeightedPath> {
        let distances = self.distances_to(to, Some(from), &usable);
        let (mut at, mut links) = (from, Vec::new());
        let (weight, _) = (*distances.get(from)?)?;
        while at != to {
            let is_next = |link: &&usize| {
                let about = &self.links[**link];
                let rest = distances[about.to].map(|(weight, hops)| (weight + about.weight, hops + 1));
                rest.is_some() && rest == distances[at] && usable(**link)
            };
            let next = *self.leaving[at].iter().find(is_next)?;
            links.push(next);
            at = self.links[next].to;
        }
        Some(WeightedPath { links, weight })
    }

    /// Returns the least distance of each node to `destination`. If `from` is given, only the nodes that are at most as
    /// far as that one have it; others have none or a larger one.
    fn distances_to(
        &self,
        destination: usize,
        from: Option<usize>,
        usable: &impl Fn(usize) -> bool,
    ) -> Vec<Option<Distance>> {
        let mut distances: Vec<Option<Distance>> = vec![None; self.nodes()];
        let mut open = BinaryHeap::new();
        if let Some(distance) = distances.get_mut(destination) {
            *distance = Some((0, 0));
            open.push(Reverse(((0, 0), destination)));
        }
        while let Some(Reverse((distance, at))) = open.pop() {
            if distances[at].is_some_and(|known| known < distance) {
                continue;
            }
            if from == Some(at) {
                break;
            }
            for &link in self.entering[at].iter().filter(|link| usable(**link)) {
                let about = &self.links[link];
                let longer = (distance.0 + about.weight, distance.1 + 1);
                if distances[about.from].is_none_or(|known| longer < known) {
                    distances[about.from] = Some(longer);
                    open.push(Reverse((longer, about.from)));
                }
            }
        }
        distances
    }
}
