//! Measures of a topology: size, degrees, distances, components, rates and delays.
use crate::Topology;
use crate::tree::hops;
use serde::{Serialize, Serializer};
use std::time::Duration;
use weir_units::Bps;

/// Measures of a topology.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TopologyMeasures {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of links.
    pub links: usize,
    /// Minimum number of links of a node.
    pub degree_min: usize,
    /// Mean number of links of a node.
    pub degree_mean: f64,
    /// Maximum number of links of a node.
    pub degree_max: usize,
    /// Maximum number of links on the shortest path between two connected nodes.
    pub diameter: usize,
    /// Mean number of links on the shortest path between two connected nodes; `None` if no two nodes are connected.
    pub hops_mean: Option<f64>,
    /// Number of connected components.
    pub parts: usize,
    /// Number of nodes in the largest component.
    pub largest_part: usize,
    /// Number of links parallel to an earlier one.
    pub duplicates: usize,
    /// Lowest and highest link rate; in bit/s in JSON.
    #[serde(rename = "rates_bps", serialize_with = "as_bps")]
    pub rates: Option<[Bps; 2]>,
    /// Number of links without a known rate.
    pub without_rate: usize,
    /// Shortest and longest link delay; in seconds in JSON.
    #[serde(rename = "delays_s", serialize_with = "as_seconds")]
    pub delays: Option<[Duration; 2]>,
    /// Number of links without a known delay.
    pub without_delay: usize,
}

impl TopologyMeasures {
    /// Computes the measures of a topology.
    pub fn of(topology: &Topology) -> TopologyMeasures {
        let next = topology.neighbours();
        let (part, parts) = topology.parts();
        let mut sizes = vec![0_usize; parts];
        part.iter().for_each(|number| sizes[*number] += 1);
        let (mut diameter, mut pairs, mut sum) = (0, 0_u64, 0_u64);
        for node in 0..next.len() {
            for far in hops(&next, node).into_iter().flatten().filter(|far| *far > 0) {
                diameter = diameter.max(far);
                pairs += 1;
                sum += far as u64;
            }
        }
        let degrees = || next.iter().map(Vec::len);
        TopologyMeasures {
            nodes: next.len(),
            links: topology.links.len(),
            degree_min: degrees().min().unwrap_or(0),
            degree_mean: degrees().sum::<usize>() as f64 / next.len().max(1) as f64,
            degree_max: degrees().max().unwrap_or(0),
            diameter,
            hops_mean: (pairs > 0).then(|| sum as f64 / pairs as f64),
            parts,
            largest_part: sizes.into_iter().max().unwrap_or(0),
            duplicates: topology.duplicates().len(),
            rates: range(topology.links.iter().filter_map(|link| link.rate)),
            without_rate: topology.links.iter().filter(|link| link.rate.is_none()).count(),
            delays: range(topology.links.iter().filter_map(|link| link.delay)),
            without_delay: topology.links.iter().filter(|link| link.delay.is_none()).count(),
        }
    }
}

fn as_bps<S: Serializer>(rates: &Option<[Bps; 2]>, into: S) -> Result<S::Ok, S::Error> {
    rates.map(|rates| rates.map(|rate| rate.0)).serialize(into)
}

fn as_seconds<S: Serializer>(delays: &Option<[Duration; 2]>, into: S) -> Result<S::Ok, S::Error> {
    delays.map(|delays| delays.map(|delay| delay.as_secs_f64())).serialize(into)
}

fn range<T: Ord + Copy>(values: impl Iterator<Item = T> + Clone) -> Option<[T; 2]> {
    values.clone().min().zip(values.max()).map(|(low, high)| [low, high])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{RegularTopology, generate};
    use crate::tests::of;

    #[test]
    fn rings_and_broken_networks_are_told() {
        let ring = TopologyMeasures::of(&generate(RegularTopology::Ring { switches: 6 }).unwrap());
        assert_eq!((ring.nodes, ring.links, ring.degree_min, ring.degree_max, ring.diameter), (6, 6, 2, 2, 3));
        assert_eq!(ring.hops_mean, Some((1 + 1 + 2 + 2 + 3) as f64 / 5.0));
        let broken = TopologyMeasures::of(&of(4, &[[0, 1], [1, 0]]));
        assert_eq!((broken.parts, broken.largest_part, broken.duplicates, broken.diameter), (3, 2, 1, 1));
        assert_eq!((broken.rates, broken.without_delay), (Some([Bps(10_000_000); 2]), 2));
        let none = TopologyMeasures::of(&Topology::default());
        assert_eq!((none.nodes, none.hops_mean, none.degree_mean), (0, None, 0.0));
    }
}
