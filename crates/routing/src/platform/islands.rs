//! Islands on the map: follows which links lead through switches of others, and admits packets by the ports that join.
use super::NetworkController;
use super::core::NetworkCore;
use crate::app::Network as _;
use crate::forwarding::admission;
use crate::islands::{MapIsland, islands_of};
use crate::map::SwitchPort;
use std::collections::{BTreeMap, BTreeSet};

/// Links through switches of others, and the state from which the map's islands were calculated.
#[derive(Debug, Default)]
pub(super) struct IndirectLinks {
    found: BTreeSet<[SwitchPort; 2]>,
    /// Version of the map's links, unless a link through switches of others has come or gone since.
    version: Option<u64>,
}

impl IndirectLinks {
    fn add(&mut self, ends: [SwitchPort; 2]) {
        self.found.insert(ends);
        self.version = None;
    }

    /// Forgets a link. Returns its ends that no other one has; `None` if it is not known.
    fn remove(&mut self, ends: [SwitchPort; 2]) -> Option<Vec<SwitchPort>> {
        if !self.found.remove(&ends) {
            return None;
        }
        self.version = None;
        let is_of_none = |end: &SwitchPort| !self.found.iter().any(|others| others.contains(end));
        Some(ends.into_iter().filter(is_of_none).collect())
    }
}

/// Use of a port that leads to an island.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IslandPort {
    /// Joins parts of the network; `true` for the port of the island's hosts.
    Joins(bool),
    Blocked,
}

impl NetworkCore {
    /// Brings the map's islands up to date. Returns the ports at which hosts of islands are and were not before.
    fn update_islands(&mut self) -> Vec<SwitchPort> {
        if self.indirect.version == Some(self.map.links_version) {
            return Vec::new();
        }
        let islands = islands_of(&self.map, &self.indirect.found);
        let mut new_host_ports = Vec::new();
        if islands != self.map.islands {
            let (before, after) = (uses(&self.map.islands), uses(&islands));
            let ports: BTreeSet<_> = before.keys().chain(after.keys()).copied().collect();
            for at in ports.into_iter().filter(|at| before.get(at) != after.get(at)) {
                admission::forget_island(self, at);
                match after.get(&at) {
                    Some(IslandPort::Joins(takes_hosts)) => admission::admit_island(self, at, *takes_hosts),
                    Some(IslandPort::Blocked) => admission::block_island(self, at),
                    None => {}
                }
            }
            let host_ports =
                |islands: &[MapIsland]| -> BTreeSet<_> { islands.iter().filter_map(MapIsland::host_port).collect() };
            let former = host_ports(&self.map.islands);
            new_host_ports = host_ports(&islands).difference(&former).copied().collect();
            self.map.islands = islands;
            self.map.note_links_changed();
            self.report("islands-changed", described(&self.map.islands), false);
        }
        self.indirect.version = Some(self.map.links_version);
        new_host_ports
    }
}

/// Returns the uses of all ports that lead to islands. Hosts of an island that joins nothing are as those of any port.
fn uses(islands: &[MapIsland]) -> BTreeMap<SwitchPort, IslandPort> {
    let of_island = |island: &MapIsland| {
        let joining = island.joins.iter().map(|at| (*at, IslandPort::Joins(island.host_port() == Some(*at))));
        let blocked = island.ports.iter().filter(|at| island.is_blocked(**at)).map(|at| (*at, IslandPort::Blocked));
        joining.chain(blocked).collect::<Vec<_>>()
    };
    islands.iter().flat_map(of_island).collect()
}

/// Returns the islands in words.
fn described(islands: &[MapIsland]) -> String {
    let list = |ports: &BTreeSet<SwitchPort>| ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let between = |ports: &BTreeSet<SwitchPort>| format!("switches without OpenFlow between ports {}", list(ports));
    let island = |island: &MapIsland| match island.joins.is_empty() {
        true => format!("{} are not used, since other links connect these ports", between(&island.ports)),
        false => format!("{} connect ports {}", between(&island.ports), list(&island.joins)),
    };
    let all: Vec<_> = islands.iter().map(island).collect();
    if all.is_empty() { "no switches without OpenFlow are between ports".to_owned() } else { all.join("; ") }
}

impl NetworkController {
    /// Brings islands up to date after links have changed.
    pub(super) fn update_islands(&mut self) {
        for at in self.core.update_islands() {
            self.hosts.handle_edge(self.core.now, at);
        }
    }

    /// Handles the loss of a link through switches of others. Returns false if it is none of those that are used.
    pub(super) fn lose_indirect(&mut self, ends: [SwitchPort; 2]) -> bool {
        let without = self.core.indirect.remove(ends);
        let is_known = without.is_some();
        without.into_iter().flatten().for_each(|end| self.hosts.handle_edge(self.core.now, end));
        is_known
    }

    /// Uses a link through switches of others, if it may be believed. Returns whether it may. The lesser end may have
    /// hosts of the island; every other port of an island is the greater end of a link from the least one.
    pub(super) fn believe_indirect(&mut self, [from, to]: [SwitchPort; 2]) -> bool {
        let believed = self.hosts.handle_trunk(self.core.now, to, from, &mut self.host_changes);
        if believed {
            self.core.indirect.add([from, to]);
        }
        believed
    }
}
