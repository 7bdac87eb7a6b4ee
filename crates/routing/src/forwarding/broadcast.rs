//! Broadcast and multicast: packets to group addresses follow a spanning tree.
//!
//! A change of the tree has two steps, so that no packet circles and none arrives twice: ports that are not in the new
//! tree are taken away first; when the switches have confirmed that, the new ones are added. What the switches have
//! between is a part of the former tree, later a part of the new one, and neither has a loop.
use super::admission::GROUP_BIT;
use crate::app::{FORWARDING_TABLE, Network};
use crate::map::{NetworkMap, SwitchPort};
use crate::platform::NetworkCore;
use crate::tables::DesiredEntry;
use std::collections::{BTreeMap, BTreeSet};
use weir_openflow::model::{Action, Instruction, Match, PortNo};
use weir_packet::Field;

/// Priority of the entries for group addresses.
pub(super) const PRIORITY: u16 = 100;

type Ports = BTreeMap<u64, BTreeSet<PortNo>>;

/// Entries for group addresses.
#[derive(Debug, Default)]
pub(super) struct Broadcast {
    /// Ports of each switch by which these packets leave now.
    current: Ports,
    /// Ports that they should leave by.
    target: Ports,
    /// Batches of messages to be confirmed before ports are added.
    waits_for: BTreeMap<u64, u64>,
    /// Version of the map for which the target was calculated.
    version: Option<u64>,
    /// Ports of the links of the spanning tree, and the version of the map's links for which it was calculated.
    tree: Vec<SwitchPort>,
    tree_version: Option<u64>,
    /// True if the target is in use. Each message of a switch leads here, so it is not compared each time.
    is_done: bool,
}

impl Broadcast {
    /// Goes on with what the network needs now.
    pub(super) fn update(&mut self, core: &mut NetworkCore) {
        if self.version != Some(core.map.version()) {
            self.version = Some(core.map.version());
            if self.tree_version != Some(core.map.links_version) {
                self.tree_version = Some(core.map.links_version);
                self.tree = tree_ports(&core.map);
            }
            self.target = target(&core.map, &self.tree);
            self.is_done = false;
            self.current.retain(|dpid, _| core.map.switches().contains_key(dpid));
            self.take_away(core);
        }
        if self.is_done {
            return;
        }
        self.waits_for.retain(|dpid, batch| {
            let (_, confirmed) = core.keeper.progress(*dpid);
            core.map.switches().contains_key(dpid) && confirmed < *batch
        });
        if self.waits_for.is_empty() {
            let target = self.target.clone();
            for (dpid, ports) in &target {
                self.set(core, *dpid, ports.clone());
            }
            self.is_done = true;
        }
    }

    /// Takes the ports of links away that are not wanted. Ports of hosts are changed at once.
    fn take_away(&mut self, core: &mut NetworkCore) {
        for (dpid, wanted) in &self.target.clone() {
            let now = self.current.get(dpid).cloned().unwrap_or_default();
            let is_edge = |port: &PortNo| !core.map.is_trunk(SwitchPort::new(*dpid, *port));
            let less: BTreeSet<_> = wanted.iter().filter(|port| now.contains(port) || is_edge(port)).copied().collect();
            let loses = now.iter().any(|port| !less.contains(port));
            self.set(core, *dpid, less);
            if loses {
                let (batch, _) = core.keeper.progress(*dpid);
                self.waits_for.insert(*dpid, batch);
            }
        }
    }

    fn set(&mut self, core: &mut NetworkCore, dpid: u64, ports: BTreeSet<PortNo>) {
        if self.current.get(&dpid) == Some(&ports) {
            return;
        }
        let actions: Vec<_> = ports.iter().map(|port| Action::output(*port)).collect();
        let instructions = if actions.is_empty() { Vec::new() } else { vec![Instruction::ApplyActions(actions)] };
        let matching = Match::any().with_masked(Field::EthDst, GROUP_BIT, GROUP_BIT);
        core.set_entry(dpid, DesiredEntry::new(FORWARDING_TABLE, PRIORITY, matching, instructions));
        self.current.insert(dpid, ports);
    }
}

/// Returns the ports of each switch to hosts, to links of the tree, and to islands that join parts: islands and the
/// parts that they join form a tree.
fn target(map: &NetworkMap, tree: &[SwitchPort]) -> Ports {
    let mut ports: Ports = map.switches().keys().map(|dpid| (*dpid, BTreeSet::new())).collect();
    let joins = map.islands().iter().flat_map(|island| island.joins.iter().copied());
    for at in map.edge_ports().chain(tree.iter().copied()).chain(joins) {
        if let Some(ports) = ports.get_mut(&at.dpid) {
            ports.insert(at.port);
        }
    }
    ports
}

/// Returns the ports of the links of a spanning tree.
fn tree_ports(map: &NetworkMap) -> Vec<SwitchPort> {
    let number: BTreeMap<u64, usize> = map.switches().keys().zip(0..).map(|(dpid, number)| (*dpid, number)).collect();
    let between = |damped: bool| {
        let once = map.links().iter().filter(move |(from, link)| **from < link.to && link.damped == damped);
        let known = once.filter_map(|(from, link)| {
            Some(([*from, link.to], [*number.get(&from.dpid)?, *number.get(&link.to.dpid)?]))
        });
        known.unzip::<[SwitchPort; 2], [usize; 2], Vec<_>, Vec<_>>()
    };
    let (steady, steady_ends) = between(false);
    let (damped, damped_ends) = between(true);
    let tree = weir_topology::spanning_tree(number.len(), &steady_ends);
    let added = weir_topology::joining_links(number.len(), &steady_ends, &damped_ends);
    let kept = steady.iter().zip(tree).chain(damped.iter().zip(added)).filter(|(_, kept)| *kept);
    kept.flat_map(|(ends, _)| *ends).collect()
}
