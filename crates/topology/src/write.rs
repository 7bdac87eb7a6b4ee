//! Writes topologies as node-link JSON, which [`read()`](crate::read()) reads and networkx does.
use crate::read::node_link::{NodeLinkDocument, NodeLinkDpid, NodeLinkEdge, NodeLinkGraph, NodeLinkId, NodeLinkNode};
use crate::{GeoLocation, Topology, TopologyLink, TopologyNode};
use std::time::Duration;

/// Returns a topology as node-link JSON, with all that it knows but lines of a file. Read again, it is equal: rates in
/// bit/s and delays in nanoseconds are exact, places are so up to 15 digits.
///
/// Ids of nodes are their numbers. Names are written as they are; reading takes spaces around them away, and names a
/// node without a name by its number. A rate of 0 is not written, and a delay of more than 584 years is one of 584.
pub fn write_node_link(topology: &Topology) -> String {
    let document = NodeLinkDocument {
        directed: false,
        multigraph: true,
        graph: NodeLinkGraph { name: topology.name.clone(), delays_from_places: Some(false) },
        nodes: topology.nodes.iter().enumerate().map(|(number, about)| node(number, about)).collect(),
        edges: topology.links.iter().map(edge).collect(),
    };
    serde_json::to_string_pretty(&document).expect("texts and numbers can be written as JSON") + "\n"
}

fn id(number: usize) -> NodeLinkId {
    i64::try_from(number).map_or_else(|_| NodeLinkId::Text(number.to_string()), NodeLinkId::Number)
}

fn node(number: usize, node: &TopologyNode) -> NodeLinkNode {
    let place = node.place.and_then(|place| GeoLocation::new(place.latitude, place.longitude));
    NodeLinkNode {
        id: id(number),
        name: Some(node.name.clone()),
        pos: place.map(|place| [place.longitude, place.latitude]),
        dpid: node.dpid.map(|dpid| NodeLinkDpid::Text(format!("{dpid:016x}"))),
        takes_hosts: (!node.takes_hosts).then_some(false),
    }
}

fn edge(link: &TopologyLink) -> NodeLinkEdge {
    let nanos = |delay: Duration| u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
    NodeLinkEdge {
        source: id(link.ends[0]),
        target: id(link.ends[1]),
        dist: None,
        rate_bps: link.rate.map(|rate| rate.0).filter(|rate| *rate > 0),
        delay_ns: link.delay.map(nanos),
        ports: link.ports,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{RegularTopology, generate};
    use crate::read_text;
    use proptest::prelude::*;
    use weir_units::Bps;

    fn topologies() -> impl Strategy<Value = Topology> {
        let place = (-90_000_000i32..=90_000_000, -180_000_000i32..=180_000_000)
            .prop_map(|(north, east)| GeoLocation::new(f64::from(north) / 1e6, f64::from(east) / 1e6));
        let optional = prop::option::of::<BoxedStrategy<u64>>;
        let place = prop::option::of(place).prop_map(Option::flatten);
        let node = ("\\S(.{0,8}\\S)?", place, any::<bool>(), optional(any::<u64>().boxed()));
        let node = node.prop_map(|(name, place, takes_hosts, dpid)| {
            // Reading takes away what counts as a space.
            let name = if name.trim() == name { name } else { "x".to_owned() };
            TopologyNode { name, place, takes_hosts, dpid, line: None }
        });
        let ports = prop::option::of([1..=u32::MAX, 1..=u32::MAX]);
        let link =
            ([0usize..100, 0usize..100], optional((1..=u64::MAX).boxed()), optional(any::<u64>().boxed()), ports);
        let link = link.prop_map(|(ends, rate, delay, ports)| {
            let delay = delay.map(Duration::from_nanos);
            TopologyLink { ends, rate: rate.map(Bps), delay, ports, line: None }
        });
        let parts = (".{1,9}", prop::collection::vec(node, 2..9), prop::collection::vec(link, 0..20));
        parts.prop_map(|(name, nodes, mut links)| {
            links.iter_mut().for_each(|link| link.ends = link.ends.map(|end| end % nodes.len()));
            links.retain(|link| link.ends[0] != link.ends[1]);
            Topology { name: Some(name), nodes, links }
        })
    }

    proptest! {
        #[test]
        fn it_is_read_back_equal(topology in topologies()) {
            prop_assert_eq!(read_text(&write_node_link(&topology), "x.json").unwrap(), topology);
        }
    }

    #[test]
    fn a_topology_without_a_name_takes_that_of_its_file() {
        let mut made = generate(RegularTopology::FatTree { k: 4 }).unwrap();
        let read = read_text(&write_node_link(&made), "fat.json").unwrap();
        made.name = Some("fat".to_owned());
        assert_eq!(read, made);
    }
}
