//! Hosts: where they are, and whether a host that appears elsewhere is believed.
//!
//! - Purpose: entries lead to hosts by what their packets say, and hosts can say what they want. The tracker learns
//!   from packets of edge ports, which switches send to the controller, and says what may be believed.
//! - A place is learned from the source of any packet. IP addresses are learned from ARP, neighbour discovery and DHCP.
//!   The source of other IP packets teaches nothing, because packets of other networks come through routers.
//! - A host that appears at another port is believed at once if its former port is down or its switch not connected.
//!   Otherwise it is asked at the former port, with a question that only a host there can answer. If it does not answer
//!   within [`HostConfig::move_patience`], it has moved. If it answers, the packet was forged: an alarm, and the source
//!   is blocked for a while. The same holds for an IP address of another host.
//! - A port that has just come up may lead to another switch, from which packets of all hosts come. What such a port
//!   does wrong is refused at once, but raises an alarm only after [`HostConfig::settle_time`], unless
//!   [`HostTracker::handle_trunk`] was called until then.
//! - Limits: [`HostConfig`]. Counters: [`HostTracker::counters`].
//! - What cannot be told apart: a host that takes the place of one that does not answer, and the host itself, moved.
//! - Source: the attacks and the rule of the former port: Hong et al. (2015), TopoGuard; ports that reset their past:
//!   Skowyra et al. (2018), TopoGuard+; IP addresses: Jero et al. (2017).
mod blocks;
mod change;
mod checks;
mod claim;
mod config;
mod counters;
mod dhcp;
mod learn;
mod outcome;
mod place;
mod ports;
mod probe;
mod table;
#[cfg(test)]
mod tests;

pub use change::{HostChange, HostVerdict, alarm_kind};
pub use config::HostConfig;

use crate::map::{Host, SwitchPort};
use blocks::BlockList;
use checks::CheckList;
use counters::{HostCounter, HostCounters};
use ports::PortTable;
use table::HostTable;
use weir_packet::MacAddr;
use weir_units::Instant;

/// Tracker of the hosts of a network, without I/O. Its methods append what has to be done to `out`, in order.
///
/// The owner tells it of switches, ports and links: [`HostTracker::handle_port_up`] for each port that is up when a
/// switch connects, and then each change. It gives it the packets of edge ports before any application, and drops those
/// that are not [`HostVerdict::Accepted`].
#[derive(Debug)]
pub struct HostTracker {
    config: HostConfig,
    table: HostTable,
    ports: PortTable,
    checks: CheckList,
    blocks: BlockList,
    counters: HostCounters,
}

impl HostTracker {
    /// Returns a tracker that knows no host.
    pub fn new(config: HostConfig) -> HostTracker {
        HostTracker {
            config,
            table: HostTable::default(),
            ports: PortTable::default(),
            checks: CheckList::default(),
            blocks: BlockList::default(),
            counters: HostCounters::default(),
        }
    }

    /// Returns a host as it is known.
    pub fn host(&self, mac: MacAddr) -> Option<&Host> {
        self.table.get(mac).map(|known| &known.host)
    }

    /// Returns true if an Ethernet address is one of the controller's.
    pub fn is_own(&self, mac: MacAddr) -> bool {
        self.config.own_macs.contains(&mac)
    }

    /// Returns the number of hosts that are known.
    pub fn n_hosts(&self) -> usize {
        self.table.len()
    }

    /// Returns counters by name: hosts, questions and answers, packets dropped by reason.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counters.named()
    }

    /// Gives a host a name, unless another host has it. Names of others than letters, digits, hyphens, underscores and
    /// dots are ignored.
    pub fn set_name(&mut self, mac: MacAddr, name: &str, out: &mut Vec<HostChange>) {
        let Some(name) = dhcp::readable_name(name.as_bytes()) else { return };
        match self.table.name(mac, &name) {
            None => self.counters.count(HostCounter::NamesTaken),
            Some(true) => self.announce(mac, out),
            Some(false) => {}
        }
    }

    /// Returns the time of the next call of [`HostTracker::handle_wake`]; `None` without any timer.
    pub fn next_wake(&self) -> Option<Instant> {
        let oldest = self.table.oldest().map(|(key, _)| key + self.config.max_age);
        [self.checks.next_due(), self.blocks.next_due(), oldest].into_iter().flatten().min()
    }

    /// Appends a host's change: to its addition, if that is the last of `out`, so that each host is announced once.
    fn announce(&self, mac: MacAddr, out: &mut Vec<HostChange>) {
        let Some(host) = self.host(mac).cloned() else { return };
        match out.last_mut() {
            Some(HostChange::Added(added)) if added.mac == mac => *added = host,
            _ => out.push(HostChange::Changed(host)),
        }
    }

    fn alarm(&mut self, kind: &'static str, text: String, out: &mut Vec<HostChange>) {
        self.counters.count(HostCounter::Alarms);
        out.push(HostChange::Alarm { kind, text });
    }

    /// Removes a host, which is no longer there.
    fn remove_host(&mut self, mac: MacAddr, out: &mut Vec<HostChange>) {
        if let Some(host) = self.table.remove(mac) {
            self.ports.remove_host(host.at, mac);
            self.counters.count(HostCounter::Removed);
            out.push(HostChange::Removed(host));
        }
    }

    /// Returns true if a host has been at its port for a while, and was seen there since the port came up.
    fn is_established(&self, now: Instant, at: SwitchPort, mac: MacAddr) -> bool {
        let (up, settle) = (self.ports.up_since(at), self.config.settle_time);
        self.table.get(mac).is_some_and(|known| known.host.seen >= up && now.since(known.since) >= settle)
    }
}
