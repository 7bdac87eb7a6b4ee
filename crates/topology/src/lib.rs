//! Networks as graphs: reads, generates and analyses topologies with rates and delays of links.
//!
//! For experiments on regular networks and on networks of public collections. A topology contains only what its rule or
//! its file states.
//!
//! Start with:
//!
//! - [`Topology`]: nodes with their places, links with rate and delay.
//! - [`generate`]: trees, rings, fat-trees and others by rule.
//! - [`read()`]: files of the Topology Zoo, SNDlib, TopoHub and Rocketfuel. [`write_node_link`] writes what it reads.
//! - [`TopologyMeasures`]: size, degrees, diameter, rates. [`spanning_tree`] picks links without loops, so that floods
//!   end.
//! - [`paths::WeightedGraph`]: shortest paths, several in order, and pairs that share no link.
//!
//! Not in this crate: hosts, names and missing rates, which scenarios add (`weir-scenario`), and routes with their
//! delays (`weir-predict`).
//!
//! ```
//! use weir_topology::generate::{RegularTopology, generate};
//! use weir_topology::{TopologyMeasures, spanning_tree};
//! let fat_tree = generate(RegularTopology::FatTree { k: 4 })?;
//! let measures = TopologyMeasures::of(&fat_tree);
//! assert_eq!((measures.nodes, measures.links, measures.diameter), (20, 32, 4));
//!
//! let links: Vec<_> = fat_tree.links.iter().map(|link| link.ends).collect();
//! let kept = spanning_tree(fat_tree.nodes.len(), &links);
//! assert_eq!(kept.iter().filter(|kept| **kept).count(), 19);
//! # Ok::<(), String>(())
//! ```
mod error;
pub mod generate;
mod measures;
pub mod names;
pub mod paths;
mod read;
pub mod text;
mod tree;
mod write;

pub use error::TopologyError;
pub use measures::TopologyMeasures;
pub use read::{read, read_text};
pub use tree::{joining_links, spanning_tree};
pub use write::write_node_link;

use std::collections::HashMap;
use std::time::Duration;
use weir_units::Bps;

/// Maximum number of nodes of a topology.
pub const MAX_NODES: usize = 10_000;
/// Maximum number of links of a topology.
pub const MAX_LINKS: usize = 50_000;
/// Speed of light in glass in km/s: two thirds of that in vacuum.
pub const KM_PER_S: f64 = 299_792.458 * 2.0 / 3.0;
/// Mean radius of the Earth in km (IUGG).
const EARTH_KM: f64 = 6371.0088;

/// A network as a graph.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Topology {
    /// Name of the network, if it has one.
    pub name: Option<String>,
    /// Nodes of the network: switches.
    pub nodes: Vec<TopologyNode>,
    /// Links between nodes, undirected.
    pub links: Vec<TopologyLink>,
}

/// A node of a topology.
#[derive(Debug, Clone, PartialEq)]
pub struct TopologyNode {
    /// Name of the node, as written in the file.
    pub name: String,
    /// Geographical location, if known.
    pub place: Option<GeoLocation>,
    /// True if hosts are attached to the node: in trees only to the leaves.
    pub takes_hosts: bool,
    /// Datapath id of the switch, if known.
    pub dpid: Option<u64>,
    /// Line in the file, if the format has lines.
    pub line: Option<usize>,
}

/// A location on Earth, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeoLocation {
    /// Latitude: degrees north of the equator, -90 to 90.
    pub latitude: f64,
    /// Longitude: degrees east of Greenwich, -180 to 180.
    pub longitude: f64,
}

/// A link of a topology.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TopologyLink {
    /// Indices of its two nodes.
    pub ends: [usize; 2],
    /// Rate in bit/s, if known.
    pub rate: Option<Bps>,
    /// Propagation delay, if it or the length is known.
    pub delay: Option<Duration>,
    /// Port numbers at its two nodes, in the order of `ends`, if known.
    pub ports: Option<[u32; 2]>,
    /// Line in the file, if the format has lines.
    pub line: Option<usize>,
}

impl GeoLocation {
    /// Returns the location with these coordinates; `None` if they are out of range.
    pub fn new(latitude: f64, longitude: f64) -> Option<GeoLocation> {
        let there = (-90.0..=90.0).contains(&latitude) && (-180.0..=180.0).contains(&longitude);
        there.then_some(GeoLocation { latitude, longitude })
    }

    /// Returns the great-circle distance in km (haversine formula).
    pub fn distance_km(self, other: GeoLocation) -> f64 {
        let [a, b] = [self.latitude, other.latitude].map(f64::to_radians);
        let over = (other.longitude - self.longitude).to_radians();
        let half = ((b - a) / 2.0).sin().powi(2) + a.cos() * b.cos() * (over / 2.0).sin().powi(2);
        2.0 * EARTH_KM * half.clamp(0.0, 1.0).sqrt().asin()
    }
}

/// Returns the propagation delay of light in `km` of glass fibre.
pub fn delay_of_km(km: f64) -> Duration {
    // Rounded to microseconds: coordinates are not more accurate than that.
    let us = (km / KM_PER_S * 1e6).round().clamp(0.0, 1e12);
    Duration::from_secs_f64(us / 1e6)
}

impl Topology {
    /// Sets the delay of links without one from the distance between their ends, if both locations are known.
    pub fn delays_from_places(&mut self) {
        for link in self.links.iter_mut().filter(|link| link.delay.is_none()) {
            let [a, b] = link.ends.map(|end| self.nodes[end].place);
            link.delay = a.zip(b).map(|(a, b)| delay_of_km(a.distance_km(b)));
        }
    }

    /// Returns the indices of links that join the same nodes as an earlier link.
    pub fn duplicates(&self) -> Vec<usize> {
        let mut seen = HashMap::new();
        let twice = |(place, link): (usize, &TopologyLink)| seen.insert(sorted(link.ends), place).map(|_| place);
        self.links.iter().enumerate().filter_map(twice).collect()
    }

    /// Merges links that join the same nodes into one: with the sum of the rates if all are known, the shortest delay,
    /// and the ports of the first.
    pub fn merge_duplicates(&mut self) {
        let mut first: HashMap<[usize; 2], usize> = HashMap::new();
        let mut kept: Vec<TopologyLink> = Vec::new();
        for link in &self.links {
            match first.get(&sorted(link.ends)) {
                None => {
                    first.insert(sorted(link.ends), kept.len());
                    kept.push(*link);
                }
                Some(place) => {
                    let one = &mut kept[*place];
                    one.rate = one.rate.zip(link.rate).map(|(a, b)| Bps(a.0.saturating_add(b.0)));
                    one.delay = one.delay.into_iter().chain(link.delay).min();
                }
            }
        }
        self.links = kept;
    }

    /// Returns the connected component of each node, and the number of components. Components are numbered from 0, in
    /// the order of their first nodes.
    pub fn parts(&self) -> (Vec<usize>, usize) {
        let next = self.neighbours();
        let mut part = vec![usize::MAX; self.nodes.len()];
        let mut count = 0;
        for start in 0..self.nodes.len() {
            if part[start] != usize::MAX {
                continue;
            }
            let mut open = vec![start];
            part[start] = count;
            while let Some(at) = open.pop() {
                for &to in &next[at] {
                    if part[to] == usize::MAX {
                        part[to] = count;
                        open.push(to);
                    }
                }
            }
            count += 1;
        }
        (part, count)
    }

    /// Keeps only the component with the most nodes; the first one among equals.
    pub fn keep_largest_part(&mut self) {
        let (part, count) = self.parts();
        let mut sizes = vec![0_usize; count];
        part.iter().for_each(|number| sizes[*number] += 1);
        let Some(most) = (0..count).rev().max_by_key(|number| sizes[*number]) else { return };
        let mut place = vec![usize::MAX; self.nodes.len()];
        let mut kept = Vec::new();
        for (old, node) in std::mem::take(&mut self.nodes).into_iter().enumerate() {
            if part[old] == most {
                place[old] = kept.len();
                kept.push(node);
            }
        }
        self.nodes = kept;
        self.links.retain(|link| part[link.ends[0]] == most);
        self.links.iter_mut().for_each(|link| link.ends = link.ends.map(|end| place[end]));
    }

    /// Returns the neighbours of each node.
    pub fn neighbours(&self) -> Vec<Vec<usize>> {
        neighbours(self.nodes.len(), self.links.iter().map(|link| link.ends))
    }
}

/// Returns the neighbours of each node, in the order of the links.
pub(crate) fn neighbours(nodes: usize, links: impl Iterator<Item = [usize; 2]>) -> Vec<Vec<usize>> {
    let mut next = vec![Vec::new(); nodes];
    for [a, b] in links {
        next[a].push(b);
        next[b].push(a);
    }
    next
}

fn sorted([a, b]: [usize; 2]) -> [usize; 2] {
    [a.min(b), a.max(b)]
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a topology with these links, 10 Mbit/s each.
    pub(crate) fn of(nodes: usize, links: &[[usize; 2]]) -> Topology {
        let node = |number| TopologyNode {
            name: format!("n{number}"),
            place: None,
            takes_hosts: true,
            dpid: None,
            line: None,
        };
        let rate = Some(Bps(10_000_000));
        let link = |ends: &[usize; 2]| TopologyLink { ends: *ends, rate, delay: None, ports: None, line: None };
        Topology { name: None, nodes: (0..nodes).map(node).collect(), links: links.iter().map(link).collect() }
    }

    #[test]
    fn distances_follow_the_great_circle() {
        let place = |latitude, longitude| GeoLocation::new(latitude, longitude).unwrap();
        let (berlin, tokyo) = (place(52.5167, 13.3833), place(35.7, 139.7667));
        assert!((berlin.distance_km(tokyo) - 8918.0).abs() < 20.0, "{}", berlin.distance_km(tokyo));
        assert!((place(0.0, 179.5).distance_km(place(0.0, -179.5)) - 111.2).abs() < 0.1, "over the date line");
        assert!((place(90.0, 0.0).distance_km(place(-90.0, 0.0)) - 20015.1).abs() < 0.1);
        assert_eq!(berlin.distance_km(berlin), 0.0);
        assert_eq!(delay_of_km(1000.0), Duration::from_micros(5003));
        assert!(GeoLocation::new(91.0, 0.0).is_none() && GeoLocation::new(0.0, f64::NAN).is_none());
    }

    #[test]
    fn links_beside_each_other_become_one() {
        let mut twice = of(3, &[[0, 1], [1, 2], [1, 0], [0, 1]]);
        twice.links[2].delay = Some(Duration::from_millis(2));
        assert_eq!(twice.duplicates(), [2, 3]);
        twice.merge_duplicates();
        assert_eq!((twice.links.len(), twice.duplicates().len()), (2, 0));
        assert_eq!(
            (twice.links[0].rate, twice.links[0].delay),
            (Some(Bps(30_000_000)), Some(Duration::from_millis(2)))
        );
    }

    #[test]
    fn the_largest_part_is_kept() {
        let mut broken = of(6, &[[0, 1], [2, 4], [4, 5]]);
        assert_eq!(broken.parts(), (vec![0, 0, 1, 2, 1, 1], 3));
        broken.keep_largest_part();
        let names: Vec<&str> = broken.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!((names, broken.parts().1), (vec!["n2", "n4", "n5"], 1));
        assert_eq!(broken.links.iter().map(|link| link.ends).collect::<Vec<_>>(), [[0, 1], [1, 2]]);
        Topology::default().keep_largest_part();
    }
}
