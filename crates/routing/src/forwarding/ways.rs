//! Shortest ways over the map, calculated once for each change of links.
use crate::map::NetworkMap;
use crate::paths::{MapGraph, WaysTo};
use std::collections::BTreeMap;

/// Shortest ways to the switches that were asked for, as of a version of the map's links.
#[derive(Debug, Default)]
pub(super) struct KeptWays {
    /// Links as a graph, once it was needed; `None` inside if the network is too large for one.
    graph: Option<Option<MapGraph>>,
    ways: BTreeMap<u64, WaysTo>,
    version: u64,
}

impl KeptWays {
    /// Returns the shortest ways to a switch.
    pub(super) fn to(&mut self, dpid: u64, map: &NetworkMap) -> &WaysTo {
        if self.version != map.links_version {
            *self = KeptWays { version: map.links_version, ..KeptWays::default() };
        }
        let graph = &mut self.graph;
        self.ways.entry(dpid).or_insert_with(|| {
            let graph = graph.get_or_insert_with(|| MapGraph::of(map));
            graph.as_ref().map(|graph| graph.ways_to(dpid)).unwrap_or_default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{MapLink, MapSwitch, SwitchPort};
    use weir_openflow::model::PortNo;

    #[test]
    fn ways_are_calculated_once_for_each_change_of_links() {
        let (mut map, mut ways) = (NetworkMap::default(), KeptWays::default());
        (1..=2).for_each(|dpid| map.add_switch(dpid, MapSwitch { ports: BTreeMap::new(), n_tables: 4 }));
        for dpid in 1..=2 {
            assert_eq!(ways.to(dpid, &map).next.len(), 1);
        }
        assert_eq!(ways.ways.len(), 2, "those of one switch stay when others are asked for");
        let [a, b] = [1, 2].map(|dpid| SwitchPort::new(dpid, PortNo(1)));
        for (from, to) in [(a, b), (b, a)] {
            map.links.insert(from, MapLink { to, delay: None, damped: false });
        }
        assert_eq!(ways.to(1, &map).next.len(), 1, "the map has not said so");
        map.note_links_changed();
        for dpid in 1..=2 {
            assert_eq!(ways.to(dpid, &map).next.len(), 2);
        }
        assert_eq!(ways.ways.len(), 2);
    }
}
