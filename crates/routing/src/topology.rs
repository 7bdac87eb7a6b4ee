//! Makes a topology of what the controller knows of a network, so that it can be saved, measured, and used in scenario
//! files.
use crate::map::{MapLink, NetworkMap, SwitchPort};
use std::collections::BTreeSet;
use weir_topology::{Topology, TopologyLink, TopologyNode};
use weir_units::Bps;

/// Returns switches and links of a map as a topology, with datapath ids and ports; [`weir_topology::write_node_link`]
/// writes it as a file.
///
/// A switch is named by its datapath id, such as `s1f`. It takes hosts if a port is up that leads to no other switch.
/// A link has the lesser of the rates that its ports state, and the shortest delay measured of its directions. Links
/// whose ends are at one switch, or at a switch that is not connected, are left out.
pub fn topology_of(map: &NetworkMap) -> Topology {
    let with_hosts: BTreeSet<u64> = map.edge_ports().map(|at| at.dpid).collect();
    let dpids: Vec<u64> = map.switches().keys().copied().collect();
    let node = |dpid: &u64| TopologyNode {
        name: format!("s{dpid:x}"),
        place: None,
        takes_hosts: with_hosts.contains(dpid),
        dpid: Some(*dpid),
        line: None,
    };
    let once = map.links().iter().filter(|(from, link)| **from < link.to);
    let links = once.filter_map(|(from, link)| topology_link(map, &dpids, *from, link)).collect();
    Topology { name: None, nodes: dpids.iter().map(node).collect(), links }
}

/// Returns a link from its lesser end; `None` if it does not join two of the switches `dpids`.
fn topology_link(map: &NetworkMap, dpids: &[u64], from: SwitchPort, link: &MapLink) -> Option<TopologyLink> {
    let both = [from, link.to];
    let [a, b] = both.map(|end| dpids.binary_search(&end.dpid).ok());
    let ends = [a?, b?];
    if ends[0] == ends[1] {
        return None;
    }
    let rates = both.into_iter().filter_map(|end| stated_rate(map, end));
    let back = map.links().get(&link.to).filter(|back| back.to == from);
    Some(TopologyLink {
        ends,
        rate: rates.min_by_key(|rate| rate.0),
        delay: link.delay.into_iter().chain(back.and_then(|back| back.delay)).min(),
        ports: Some(both.map(|end| end.port.0)),
        line: None,
    })
}

/// Returns the rate that a port states, if it states one.
fn stated_rate(map: &NetworkMap, at: SwitchPort) -> Option<Bps> {
    let port = map.switches().get(&at.dpid)?.ports.get(&at.port)?;
    (port.curr_speed > 0).then(|| Bps(u64::from(port.curr_speed) * 1000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::MapSwitch;
    use std::time::Duration;
    use weir_openflow::model::{PortDesc, PortNo};
    use weir_packet::MacAddr;
    use weir_topology::{read_text, write_node_link};

    fn at(dpid: u64, port: u32) -> SwitchPort {
        SwitchPort::new(dpid, PortNo(port))
    }

    /// Returns a map of three switches in a row, with two links between the last two.
    fn map() -> NetworkMap {
        let mut map = NetworkMap::default();
        let port = |number: u32| {
            let desc = PortDesc::new(PortNo(number), MacAddr([2; 6]), format!("p{number}"));
            (PortNo(number), PortDesc { curr_speed: 1_000_000 * number, ..desc })
        };
        for (dpid, ports) in [(0x1f, 1..=2), (0x20, 2..=4), (0xabcd_0000_0000_0003, 3..=5)] {
            map.switches.insert(dpid, MapSwitch { ports: ports.map(port).collect(), n_tables: 4 });
        }
        let last = 0xabcd_0000_0000_0003;
        let links = [(at(0x1f, 2), at(0x20, 2), Some([7, 9])), (at(0x20, 3), at(last, 4), Some([5, 4]))];
        let more = [(at(0x20, 4), at(last, 3), None), (at(0x1f, 9), at(0x99, 1), None)];
        for (a, b, us) in links.into_iter().chain(more) {
            let delay = |number: usize| us.map(|us| Duration::from_micros(us[number]));
            map.links.insert(a, MapLink { to: b, delay: delay(0), damped: false });
            map.links.insert(b, MapLink { to: a, delay: delay(1), damped: false });
        }
        map
    }

    #[test]
    fn rates_delays_and_hosts_are_those_of_the_map() {
        let made = topology_of(&map());
        let hosts: Vec<_> = made.nodes.iter().map(|node| (node.name.as_str(), node.takes_hosts)).collect();
        assert_eq!(hosts, [("s1f", true), ("s20", false), ("sabcd000000000003", true)]);
        let links: Vec<_> = made.links.iter().map(|link| (link.ends, link.rate, link.delay)).collect();
        let us = |us| Some(Duration::from_micros(us));
        let gbps = |gbps: u64| Some(Bps(gbps * 1_000_000_000));
        assert_eq!(links, [([0, 1], gbps(2), us(7)), ([1, 2], gbps(3), us(4)), ([1, 2], gbps(3), None)]);
    }

    #[test]
    fn node_link_json_keeps_all_of_it() {
        let made = topology_of(&map());
        let read = read_text(&write_node_link(&made), "x.json").unwrap();
        assert_eq!(read, Topology { name: Some("x".to_owned()), ..made });
    }
}
