//! Blocks links between switches that would close loops, so that floods end: configured ones and those found.
//!
//! Links whose ends are both up keep a spanning tree ([`weir_topology::spanning_tree`], by datapath id). The ports of
//! the other links are *blocked*. The tree is computed again when a port goes down or comes up. Ports count as up
//! until their switch reports otherwise. Damped links, which go down again and again, are part of the tree only where
//! they join what the other links leave apart.
use crate::published::{AppWaker, Published, PublishedReader};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use weir_openflow::model::PortNo;
use weir_topology::{joining_links, spanning_tree};

/// Port of a switch: datapath id and port number.
pub type TrunkPort = (u64, PortNo);

/// Links, and the blocked ports, of the whole network.
#[derive(Debug, Clone)]
pub(in crate::apps) struct Trunks {
    links: Vec<[TrunkPort; 2]>,
    /// Links that were found.
    discovered: BTreeSet<[TrunkPort; 2]>,
    /// Links found that go down again and again.
    damped: BTreeSet<[TrunkPort; 2]>,
    down: HashSet<TrunkPort>,
    blocked: HashSet<TrunkPort>,
    /// Number of loops that were broken when a link of theirs was found.
    loops_broken: u64,
}

impl Trunks {
    pub(super) fn publish(links: Vec<[TrunkPort; 2]>) -> Arc<Published<Trunks>> {
        Published::new(Trunks::new(links))
    }

    fn new(links: Vec<[TrunkPort; 2]>) -> Trunks {
        let (discovered, damped, down, blocked) = Default::default();
        let mut trunks = Trunks { links, discovered, damped, down, blocked, loops_broken: 0 };
        trunks.renew();
        trunks
    }

    /// Records that a port went up or down. Returns true if it was otherwise before.
    fn set(&mut self, dpid: u64, port: PortNo, up: bool) -> bool {
        let end = (dpid, port);
        let changed = self.has_link(end) && if up { self.down.remove(&end) } else { self.down.insert(end) };
        if changed {
            self.renew();
        }
        changed
    }

    /// Returns all links, each once. Configured ones come first, so that they do not change places with those found.
    fn all_links(&self) -> impl Iterator<Item = &[TrunkPort; 2]> {
        let is_configured =
            |found: &[TrunkPort; 2]| self.links.iter().any(|ends| ends == found || *ends == [found[1], found[0]]);
        self.links.iter().chain(self.discovered.iter().filter(move |found| !is_configured(found)))
    }

    /// Returns true if a port has a link.
    pub(super) fn has_link(&self, end: TrunkPort) -> bool {
        self.all_links().flatten().any(|known| *known == end)
    }

    /// Returns true if frames neither enter nor leave by this port.
    pub(in crate::apps) fn is_blocked(&self, dpid: u64, port: PortNo) -> bool {
        self.blocked.contains(&(dpid, port))
    }

    /// Returns true if a port is down that has a link.
    pub(in crate::apps) fn is_down(&self, end: TrunkPort) -> bool {
        self.down.contains(&end)
    }

    /// Returns the number of loops that were broken when a link of theirs was found: packets may have circled before.
    pub(super) fn loops_broken(&self) -> u64 {
        self.loops_broken
    }

    /// Returns the blocked ports of a switch.
    pub(super) fn blocked(&self, dpid: u64) -> HashSet<PortNo> {
        self.blocked.iter().filter(|(of, _)| *of == dpid).map(|(_, port)| *port).collect()
    }

    /// Returns the ports of a switch that have configured links.
    pub(super) fn ports(&self, dpid: u64) -> Vec<PortNo> {
        self.all_links().flatten().filter(|(of, _)| *of == dpid).map(|(_, port)| *port).collect()
    }

    fn renew(&mut self) {
        let up = || self.all_links().filter(|ends| !ends.iter().any(|end| self.down.contains(end))).copied();
        let dpids: Vec<u64> = up().flatten().map(|(dpid, _)| dpid).collect::<BTreeSet<_>>().into_iter().collect();
        let node = |end: TrunkPort| dpids.binary_search(&end.0).unwrap_or_default();
        let nodes = |links: &[[TrunkPort; 2]]| links.iter().map(|ends| ends.map(node)).collect::<Vec<_>>();
        let is_damped = |ends: &[TrunkPort; 2]| self.damped.contains(ends) || self.damped.contains(&[ends[1], ends[0]]);
        let (damped, steady): (Vec<_>, Vec<_>) = up().partition(is_damped);
        let of_steady = nodes(&steady);
        let tree = spanning_tree(dpids.len(), &of_steady);
        let added = joining_links(dpids.len(), &of_steady, &nodes(&damped));
        let kept = steady.iter().zip(tree).chain(damped.iter().zip(added));
        self.blocked = kept.filter(|(_, kept)| !kept).flat_map(|(ends, _)| *ends).collect();
    }
}

/// View of the trunks from one thread. Each change of its switches' ports is published to the other threads.
#[derive(Debug)]
pub(in crate::apps) struct TrunksReader(PublishedReader<Trunks>);

impl TrunksReader {
    pub(in crate::apps) fn new(trunks: &Arc<Published<Trunks>>, shard: usize, waker: AppWaker) -> TrunksReader {
        TrunksReader(trunks.reader(shard, waker))
    }

    pub(super) fn get(&self) -> &Trunks {
        self.0.get()
    }

    /// Returns the trunks as all threads have left them.
    pub(in crate::apps) fn newest(&self) -> Arc<Trunks> {
        self.0.newest()
    }

    /// Returns true if another thread has changed the trunks.
    pub(super) fn is_stale(&self) -> bool {
        self.0.is_stale()
    }

    /// Takes the changes of other threads. Returns true if the blocked ports have changed.
    pub(super) fn refresh(&mut self) -> bool {
        if !self.is_stale() {
            return false;
        }
        let before = self.get().blocked.clone();
        self.0.refresh() && before != self.get().blocked
    }

    /// Adds a link that was found, by its lesser and its greater end.
    pub(in crate::apps) fn add_discovered(&mut self, link: [TrunkPort; 2]) {
        self.change(|trunks| trunks.discovered.insert(link));
    }

    /// Removes a link that was found.
    pub(in crate::apps) fn remove_discovered(&mut self, link: [TrunkPort; 2]) {
        self.change(|trunks| trunks.discovered.remove(&link));
    }

    /// Says whether a link that was found goes down again and again.
    pub(in crate::apps) fn set_damped(&mut self, link: [TrunkPort; 2], is_damped: bool) {
        self.change(|trunks| if is_damped { trunks.damped.insert(link) } else { trunks.damped.remove(&link) });
    }

    fn change(&mut self, change: impl FnOnce(&mut Trunks) -> bool) {
        self.0.update(|trunks| {
            let mut changed = trunks.clone();
            change(&mut changed).then(|| {
                changed.renew();
                let is_found = changed.discovered.len() > trunks.discovered.len();
                changed.loops_broken += u64::from(is_found && !changed.blocked.is_subset(&trunks.blocked));
                changed
            })
        });
    }

    /// Records that a port of one of this thread's switches went up or down. Returns true if the blocked ports have
    /// changed.
    pub(super) fn set(&mut self, dpid: u64, port: PortNo, up: bool) -> bool {
        if !self.get().has_link((dpid, port)) {
            return false;
        }
        let before = self.get().blocked.clone();
        self.0.update(|trunks| {
            let mut changed = trunks.clone();
            changed.set(dpid, port, up).then_some(changed)
        }) && before != self.get().blocked
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
    fn ring(switches: u64) -> Arc<Published<Trunks>> {
        let link = |at| [(at, PortNo(1)), (at % switches + 1, PortNo(2))];
        Trunks::publish((1..=switches).map(link).collect())
    }

    #[test]
    fn a_ring_is_cut_where_it_is_not_broken() {
        let mut ring = TrunksReader::new(&ring(4), 0, AppWaker::default());
        assert_eq!(sorted(ring.get()), [(3, 1), (4, 2)]);
        let of_third = (ring.get().ports(3), ring.get().blocked(3));
        assert_eq!(of_third, (vec![PortNo(2), PortNo(1)], [PortNo(1)].into()));
        assert!(!ring.set(9, PortNo(1), false), "no such switch");
        assert!(ring.set(4, PortNo(2), false) && sorted(ring.get()).is_empty(), "a row is no ring");
        assert!(!ring.set(4, PortNo(2), false), "said before");
        assert!(ring.set(4, PortNo(2), true) && ring.get().is_blocked(3, PortNo(1)));
        assert!(ring.set(1, PortNo(1), false), "the tree's link goes, the other is used");
        assert!(sorted(ring.get()).is_empty());
        assert!(Trunks::new(Vec::new()).blocked.is_empty());
    }

    #[test]
    fn a_damped_link_is_used_only_where_no_other_way_is() {
        let mut ring = TrunksReader::new(&ring(4), 0, AppWaker::default());
        ring.set_damped([(1, PortNo(1)), (2, PortNo(2))], true);
        assert_eq!(sorted(ring.get()), [(1, 1), (2, 2)]);
        // Without another way it is used. Its ports are the same from either end.
        ring.set(3, PortNo(1), false);
        assert!(sorted(ring.get()).is_empty());
        ring.set(3, PortNo(1), true);
        ring.set_damped([(1, PortNo(2)), (4, PortNo(1))], true);
        assert_eq!(sorted(ring.get()), [(1, 2), (4, 1)], "two damped links: the first joins the parts");
        ring.set_damped([(1, PortNo(1)), (2, PortNo(2))], false);
        ring.set_damped([(1, PortNo(2)), (4, PortNo(1))], false);
        assert_eq!(sorted(ring.get()), [(3, 1), (4, 2)], "as before");
    }

    #[test]
    fn all_threads_have_one_tree() {
        let ring = ring(4);
        let [mut first, mut second] = [0, 1].map(|shard| TrunksReader::new(&ring, shard, AppWaker::default()));
        assert!(first.set(1, PortNo(1), false) && second.is_stale());
        // A port that changes nothing brings what others have changed, too.
        assert!(second.set(2, PortNo(1), true) && sorted(second.get()).is_empty());
        assert!(second.set(1, PortNo(1), true) && first.refresh() && sorted(first.get()) == [(3, 1), (4, 2)]);
    }
}
