//! Islands: switches of others, without a controller of this network, to which several ports lead.
//!
//! The ports of an island share it as a segment: what one port sends can leave at all others. Switches of an island
//! remember behind which of its ports an Ethernet address is, so frames of a host have to enter it by the same port by
//! which frames to the host leave it. Hence islands join only parts of the network that no direct links join, and they
//! and these parts form a tree: each host is then behind one port of each island. All other ports of islands are
//! blocked. No entries are needed against copies that an island floods: at every other port, the way to the destination
//! leads back into the island, and a switch sends no packet out of the port by which it came (OpenFlow 1.3.5, 7.2.5).
use crate::map::{NetworkMap, SwitchPort};
use std::collections::{BTreeMap, BTreeSet};

/// An island, by the ports that lead to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MapIsland {
    /// Ports that lead to it, at least two.
    pub ports: BTreeSet<SwitchPort>,
    /// Ports by which it joins parts of the network: none, or at least two. The others are blocked.
    pub joins: BTreeSet<SwitchPort>,
}

impl MapIsland {
    /// Returns the port at which hosts of the island are learned and asked: the least one.
    pub fn host_port(&self) -> Option<SwitchPort> {
        self.ports.first().copied()
    }

    /// Returns true if a port of the island carries no packets.
    pub fn is_blocked(&self, at: SwitchPort) -> bool {
        self.ports.contains(&at) && !self.joins.contains(&at) && self.host_port() != Some(at)
    }
}

/// Returns the islands that links through switches of others make. A port with a direct link belongs to none.
pub(crate) fn islands_of(map: &NetworkMap, indirect: &BTreeSet<[SwitchPort; 2]>) -> Vec<MapIsland> {
    let is_known = |at: &SwitchPort| map.switches().contains_key(&at.dpid) && !map.links().contains_key(at);
    let pairs: Vec<_> = indirect.iter().filter(|ends| ends.iter().all(is_known)).collect();
    let mut islands: Vec<MapIsland> = Vec::new();
    for ends in pairs {
        // Islands with one of the ends are one.
        let (mut joined, others): (Vec<_>, Vec<_>) =
            islands.into_iter().partition(|island| ends.iter().any(|end| island.ports.contains(end)));
        let ports = joined.iter_mut().flat_map(|island| std::mem::take(&mut island.ports)).chain(*ends).collect();
        islands = others;
        islands.push(MapIsland { ports, joins: BTreeSet::new() });
    }
    islands.sort_by_key(MapIsland::host_port);
    choose_joins(map, &mut islands);
    islands
}

/// Chooses the ports by which islands join parts of the network, as a tree of parts and islands.
fn choose_joins(map: &NetworkMap, islands: &mut [MapIsland]) {
    let nodes: BTreeMap<u64, usize> = map.switches().keys().copied().zip(0..).collect();
    let ends = map.links().iter().map(|(from, link)| [from.dpid, link.to.dpid]);
    let direct: Vec<_> = ends.filter_map(|[a, b]| Some([*nodes.get(&a)?, *nodes.get(&b)?])).collect();
    let ports = islands.iter().enumerate();
    let ports: Vec<_> = ports.flat_map(|(number, island)| island.ports.iter().map(move |at| (number, *at))).collect();
    let ends = ports.iter().filter_map(|(number, at)| Some([*nodes.get(&at.dpid)?, nodes.len() + number]));
    let kept = weir_topology::joining_links(nodes.len() + islands.len(), &direct, &ends.collect::<Vec<_>>());
    for ((number, at), _) in ports.into_iter().zip(kept).filter(|(_, kept)| *kept) {
        islands[number].joins.insert(at);
    }
    // An island with a single part behind it joins nothing.
    islands.iter_mut().filter(|island| island.joins.len() < 2).for_each(|island| island.joins.clear());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{MapLink, MapSwitch};
    use weir_openflow::model::PortNo;

    fn at(dpid: u64, port: u32) -> SwitchPort {
        SwitchPort::new(dpid, PortNo(port))
    }

    /// Returns a map of switches 1 to 4 with direct links between these, all by ports of their own.
    fn map(links: &[(u64, u64)]) -> NetworkMap {
        let mut map = NetworkMap::default();
        (1..=4).for_each(|dpid| map.add_switch(dpid, MapSwitch { ports: BTreeMap::new(), n_tables: 4 }));
        for (number, (a, b)) in (10..).zip(links) {
            for (from, to) in [(at(*a, number), at(*b, number)), (at(*b, number), at(*a, number))] {
                map.links.insert(from, MapLink { to, delay: None, damped: false });
            }
        }
        map
    }

    /// Returns the ports by which each island joins parts, with all pairs of its ports as indirect links.
    fn joins(map: &NetworkMap, islands: &[&[SwitchPort]]) -> Vec<Vec<SwitchPort>> {
        let pairs = |ports: &[SwitchPort]| {
            let ports = ports.to_vec();
            let all = ports.clone().into_iter().flat_map(move |a| ports.clone().into_iter().map(move |b| [a, b]));
            all.filter(|[a, b]| a < b).collect::<Vec<_>>()
        };
        let indirect = islands.iter().flat_map(|ports| pairs(ports)).collect();
        islands_of(map, &indirect).into_iter().map(|island| island.joins.into_iter().collect()).collect()
    }

    #[test]
    fn an_island_joins_each_part_once() {
        let all = [at(1, 1), at(2, 1), at(3, 1), at(4, 1)];
        assert_eq!(joins(&map(&[]), &[&all]), [all.to_vec()]);
        assert_eq!(joins(&map(&[(1, 2)]), &[&all]), [vec![at(1, 1), at(3, 1), at(4, 1)]]);
        let whole = map(&[(1, 2), (2, 3), (3, 4)]);
        assert_eq!(joins(&whole, &[&all]), [vec![]], "direct links join all");
        // Two cables of one switch to an island.
        assert_eq!(joins(&map(&[]), &[&[at(1, 1), at(1, 2), at(2, 1)]]), [vec![at(1, 1), at(2, 1)]]);
    }

    #[test]
    fn islands_and_parts_form_a_tree() {
        let two: [&[SwitchPort]; 2] = [&[at(1, 1), at(2, 1)], &[at(1, 2), at(2, 2)]];
        assert_eq!(joins(&map(&[]), &two), [vec![at(1, 1), at(2, 1)], vec![]], "the second would be a loop");
        // In the order of their least ports.
        let ring: [&[SwitchPort]; 3] = [&[at(1, 1), at(2, 1)], &[at(1, 2), at(3, 2)], &[at(2, 2), at(3, 1)]];
        assert_eq!(joins(&map(&[]), &ring), [vec![at(1, 1), at(2, 1)], vec![at(1, 2), at(3, 2)], vec![]]);
    }

    #[test]
    fn ports_of_islands_are_told_apart() {
        let indirect = BTreeSet::from([[at(1, 1), at(2, 1)], [at(1, 10), at(3, 1)]]);
        let islands = islands_of(&map(&[(1, 2)]), &indirect);
        // Port 10 of switch 1 has a direct link.
        assert_eq!(islands.len(), 1);
        let blocked: Vec<_> = [at(1, 1), at(2, 1), at(9, 9)].map(|port| islands[0].is_blocked(port)).to_vec();
        assert_eq!((islands[0].host_port(), blocked), (Some(at(1, 1)), vec![false, true, false]));
    }
}
