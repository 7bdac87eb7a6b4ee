//! Networks as graphs: who is joined to whom, how fast and how far apart.
//!
//! A [`Topology`] is made by rule ([`generate`]: trees, rings, fat-trees) or read from a file ([`read()`]: Topology Zoo, SNDlib, TopoHub, Rocketfuel).
//! It says what the file said and no more; what a scenario makes of it (names, hosts, rates where there are none) is the scenario's matter.
//! [`Measures`] tell what it is like; [`spanning_tree`] picks the links on which floods end.
mod error;
pub mod generate;
mod measures;
pub mod names;
mod read;
pub mod text;
mod tree;

pub use error::TopologyError;
pub use measures::Measures;
pub use read::{read, read_text};
pub use tree::spanning_tree;

use std::collections::HashMap;
use std::time::Duration;
use weir_units::Bps;

/// Most nodes of a topology.
pub const MAX_NODES: usize = 10_000;
/// Most links of a topology.
pub const MAX_LINKS: usize = 50_000;
/// Length of a path in km that light in glass takes a second for: two thirds of its speed in vacuum.
pub const KM_PER_S: f64 = 299_792.458 * 2.0 / 3.0;
/// The Earth's mean radius in km (IUGG).
const EARTH_KM: f64 = 6371.0088;

/// A network as a graph.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Topology {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its nodes: switches.
    pub nodes: Vec<Node>,
    /// What joins them; both directions alike.
    pub links: Vec<Link>,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its name, as written.
    pub name: String,
    /// Where it is.
    pub place: Option<Place>,
    /// Whether it is one that hosts are at: in trees only the leaves are.
    pub takes_hosts: bool,
    /// Line of the file.
    pub line: Option<usize>,
}

/// A place on Earth, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// North of the equator, -90 to 90.
    pub latitude: f64,
    /// East of Greenwich, -180 to 180.
    pub longitude: f64,
}

/// A link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Places of its ends among the nodes.
    pub ends: [usize; 2],
    /// Its rate, if it is known.
    pub rate: Option<Bps>,
    /// How long signals are under way, if that or the length is known.
    pub delay: Option<Duration>,
    /// Line of the file.
    pub line: Option<usize>,
}

impl Place {
    /// A place, if there is one with these coordinates.
    pub fn new(latitude: f64, longitude: f64) -> Option<Place> {
        let there = (-90.0..=90.0).contains(&latitude) && (-180.0..=180.0).contains(&longitude);
        there.then_some(Place { latitude, longitude })
    }

    /// The distance along the great circle in km (haversine formula).
    pub fn distance_km(self, other: Place) -> f64 {
        let [a, b] = [self.latitude, other.latitude].map(f64::to_radians);
        let over = (other.longitude - self.longitude).to_radians();
        let half = ((b - a) / 2.0).sin().powi(2) + a.cos() * b.cos() * (over / 2.0).sin().powi(2);
        2.0 * EARTH_KM * half.clamp(0.0, 1.0).sqrt().asin()
    }
}

/// How long light is under way in glass.
pub fn delay_of_km(km: f64) -> Duration {
    // Rounded to microseconds: no coordinates are better than that.
    let us = (km / KM_PER_S * 1e6).round().clamp(0.0, 1e12);
    Duration::from_secs_f64(us / 1e6)
}

impl Topology {
    /// Gives links without a delay that of the distance between their ends, where both places are known.
    pub fn delays_from_places(&mut self) {
        for link in self.links.iter_mut().filter(|link| link.delay.is_none()) {
            let [a, b] = link.ends.map(|end| self.nodes[end].place);
            link.delay = a.zip(b).map(|(a, b)| delay_of_km(a.distance_km(b)));
        }
    }

    /// Links that join the same nodes as one before them: their places.
    pub fn duplicates(&self) -> Vec<usize> {
        let mut seen = HashMap::new();
        let twice = |(place, link): (usize, &Link)| seen.insert(sorted(link.ends), place).map(|_| place);
        self.links.iter().enumerate().filter_map(twice).collect()
    }

    /// Makes one link of those that join the same nodes: as fast as all together if all rates are known, with the shortest delay.
    pub fn merge_duplicates(&mut self) {
        let mut first: HashMap<[usize; 2], usize> = HashMap::new();
        let mut kept: Vec<Link> = Vec::new();
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

    /// Which part of the network each node is in: parts are numbered from 0, in the order of their first nodes; and how many there are.
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

    /// Keeps the part with the most nodes, the first of equal ones.
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

    /// By node: the nodes that links join it to.
    pub(crate) fn neighbours(&self) -> Vec<Vec<usize>> {
        neighbours(self.nodes.len(), self.links.iter().map(|link| link.ends))
    }
}

/// By node: the nodes that links join it to, in the links' order.
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

    /// A topology of these links, 10 Mbit/s each.
    pub(crate) fn of(nodes: usize, links: &[[usize; 2]]) -> Topology {
        let node = |number| Node { name: format!("n{number}"), place: None, takes_hosts: true, line: None };
        let link = |ends: &[usize; 2]| Link { ends: *ends, rate: Some(Bps(10_000_000)), delay: None, line: None };
        Topology { name: None, nodes: (0..nodes).map(node).collect(), links: links.iter().map(link).collect() }
    }

    #[test]
    fn distances_follow_the_great_circle() {
        let place = |latitude, longitude| Place::new(latitude, longitude).unwrap();
        let (berlin, tokyo) = (place(52.5167, 13.3833), place(35.7, 139.7667));
        assert!((berlin.distance_km(tokyo) - 8918.0).abs() < 20.0, "{}", berlin.distance_km(tokyo));
        assert!((place(0.0, 179.5).distance_km(place(0.0, -179.5)) - 111.2).abs() < 0.1, "over the date line");
        assert!((place(90.0, 0.0).distance_km(place(-90.0, 0.0)) - 20015.1).abs() < 0.1);
        assert_eq!(berlin.distance_km(berlin), 0.0);
        assert_eq!(delay_of_km(1000.0), Duration::from_micros(5003));
        assert!(Place::new(91.0, 0.0).is_none() && Place::new(0.0, f64::NAN).is_none());
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
