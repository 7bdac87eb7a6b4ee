//! Blocks configured links between switches that would close loops, so that floods end.
//!
//! Links whose ends are both up keep a spanning tree ([`weir_topology::spanning_tree`], by datapath id). The ports of
//! the other links are *blocked*. The tree is computed again when a port goes down or comes up. Ports count as up
//! until their switch reports otherwise.
use std::collections::{BTreeSet, HashSet};
use weir_openflow::model::PortNo;
use weir_topology::spanning_tree;

/// Port of a switch: datapath id and port number.
pub(super) type TrunkPort = (u64, PortNo);

/// Configured links, and the blocked ports.
#[derive(Debug)]
pub(super) struct Trunks {
    links: Vec<[TrunkPort; 2]>,
    down: HashSet<TrunkPort>,
    blocked: HashSet<TrunkPort>,
}

impl Trunks {
    pub(super) fn new(links: Vec<[TrunkPort; 2]>) -> Trunks {
        let mut trunks = Trunks { links, down: HashSet::new(), blocked: HashSet::new() };
        trunks.renew();
        trunks
    }

    /// Records that a port went up or down. Returns true if the blocked ports have changed.
    pub(super) fn set(&mut self, dpid: u64, port: PortNo, up: bool) -> bool {
        let end = (dpid, port);
        let known = self.links.iter().flatten().any(|known| *known == end);
        let changed = known && if up { self.down.remove(&end) } else { self.down.insert(end) };
        changed && self.renew()
    }

    /// Returns true if frames neither enter nor leave by this port.
    pub(super) fn is_blocked(&self, dpid: u64, port: PortNo) -> bool {
        self.blocked.contains(&(dpid, port))
    }

    /// Returns the blocked ports of a switch.
    pub(super) fn blocked(&self, dpid: u64) -> HashSet<PortNo> {
        self.blocked.iter().filter(|(of, _)| *of == dpid).map(|(_, port)| *port).collect()
    }

    /// Returns the ports of a switch that have configured links.
    pub(super) fn ports(&self, dpid: u64) -> Vec<PortNo> {
        self.links.iter().flatten().filter(|(of, _)| *of == dpid).map(|(_, port)| *port).collect()
    }

    fn renew(&mut self) -> bool {
        let up: Vec<[TrunkPort; 2]> =
            self.links.iter().filter(|ends| !ends.iter().any(|end| self.down.contains(end))).copied().collect();
        let dpids: Vec<u64> = up.iter().flatten().map(|(dpid, _)| *dpid).collect::<BTreeSet<_>>().into_iter().collect();
        let node = |end: TrunkPort| dpids.binary_search(&end.0).unwrap_or_default();
        let tree = spanning_tree(dpids.len(), &up.iter().map(|ends| ends.map(node)).collect::<Vec<_>>());
        let blocked = up.iter().zip(tree).filter(|(_, kept)| !kept).flat_map(|(ends, _)| *ends).collect();
        let changed = blocked != self.blocked;
        self.blocked = blocked;
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(trunks: &Trunks) -> Vec<(u64, u32)> {
        let mut blocked: Vec<_> = trunks.blocked.iter().map(|(dpid, port)| (*dpid, port.0)).collect();
        blocked.sort_unstable();
        blocked
    }

    /// Returns a ring: port 1 of each switch is joined to port 2 of the next.
    fn ring(switches: u64) -> Trunks {
        let link = |at| [(at, PortNo(1)), (at % switches + 1, PortNo(2))];
        Trunks::new((1..=switches).map(link).collect())
    }

    #[test]
    fn a_ring_is_cut_where_it_is_not_broken() {
        let mut ring = ring(4);
        assert_eq!(sorted(&ring), [(3, 1), (4, 2)]);
        assert_eq!((ring.ports(3), ring.blocked(3)), (vec![PortNo(2), PortNo(1)], [PortNo(1)].into()));
        assert!(!ring.set(9, PortNo(1), false), "no such switch");
        assert!(ring.set(4, PortNo(2), false) && sorted(&ring).is_empty(), "a row is no ring");
        assert!(!ring.set(4, PortNo(2), false), "said before");
        assert!(ring.set(4, PortNo(2), true) && ring.is_blocked(3, PortNo(1)));
        assert!(ring.set(1, PortNo(1), false), "the tree's link goes, the other is used");
        assert!(sorted(&ring).is_empty());
        assert!(Trunks::new(Vec::new()).blocked.is_empty());
    }
}
