//! Search for ways: shortest ones, trees and disjoint pairs over the links that an intent may use.
//!
//! Most intents may use the links of the shortest way over all links, which [`KeptGraph`] knows. It is then the
//! shortest one over the intent's links, too, and the one that a search over them alone would choose among equal ones:
//! without other links no switch on it is nearer, and its links still come first among those that lead as near.
use super::graph::{DisjointWays, KeptGraph, Toward};
use super::way::DirectedLink;
use std::cell::OnceCell;
use weir_topology::paths::{ShortestPaths, WeightedGraph};

/// Links that a search may use.
pub(super) struct Links<'a> {
    pub(super) graph: &'a KeptGraph,
    /// Says whether a link may be used in this direction.
    pub(super) allowed: &'a dyn Fn(&DirectedLink) -> bool,
    /// True if all links are allowed.
    pub(super) all: bool,
}

/// Shortest ways between one switch, the root, and all others.
pub(super) struct Tree<'a> {
    links: &'a Links<'a>,
    toward: Toward,
    root: usize,
    /// Shortest ways over the allowed links, once they are needed.
    allowed: OnceCell<ShortestPaths>,
}

impl<'a> Links<'a> {
    /// Returns the shortest ways between a switch and all others; `None` if it is not connected.
    pub(super) fn tree(&'a self, root: u64, toward: Toward) -> Option<Tree<'a>> {
        Some(Tree { links: self, toward, root: self.graph.node(root)?, allowed: OnceCell::new() })
    }

    /// Returns the shortest way between two switches; `None` if there is none.
    pub(super) fn shortest(&self, from: u64, to: u64) -> Option<Vec<DirectedLink>> {
        self.tree(to, Toward::Root)?.links(from)
    }

    /// Returns two ways between two switches that share no link, and together are the shortest; `None` if there are
    /// none.
    pub(super) fn pair(&self, from: u64, to: u64) -> Option<DisjointWays> {
        let (from, to) = (self.graph.node(from)?, self.graph.node(to)?);
        if self.all {
            return self.graph.pair(from, to);
        }
        self.graph.pair_over(from, to, |number| self.is_allowed(number))
    }

    /// Returns true if the link with a number may be used.
    pub(super) fn is_allowed(&self, number: usize) -> bool {
        self.all || self.graph.links().get(number).is_some_and(self.allowed)
    }
}

impl Tree<'_> {
    /// Returns the links between the root and a switch, in the order in which packets pass them; `None` if there is no
    /// way.
    pub(super) fn links(&self, dpid: u64) -> Option<Vec<DirectedLink>> {
        let graph = self.links.graph;
        let (from, links) = (graph.node(dpid)?, graph.graph(self.toward)?);
        let over_all = follow(links, graph.tree(self.root, self.toward)?, from)?;
        let numbers = if over_all.iter().all(|number| self.links.is_allowed(*number)) {
            over_all
        } else {
            let over_allowed = || links.shortest_paths_to(self.root, |number| self.links.is_allowed(number));
            follow(links, self.allowed.get_or_init(over_allowed), from)?
        };
        let mut way: Vec<_> = numbers.iter().filter_map(|number| graph.links().get(*number)).copied().collect();
        if self.toward == Toward::Leaves {
            way.reverse();
        }
        Some(way)
    }
}

/// Returns the numbers of the links of a shortest path from a node to the destination; `None` if there is none.
fn follow(graph: &WeightedGraph, paths: &ShortestPaths, from: usize) -> Option<Vec<usize>> {
    let (mut at, mut links) = (from, Vec::new());
    // Every step leads nearer to the root. The first of equal ones is taken, so ways that meet stay together.
    while *paths.distances.get(at)? != Some(0) {
        let next = *paths.next.get(at)?.first()?;
        links.push(next);
        at = graph.links().get(next)?.to;
    }
    Some(links)
}
