//! Keeps what virtual links have reserved of ports, buffers, VLAN ids, hosts' ports and switches, and finds what is
//! left.
use super::design::{DesignedLink, Slice};
use super::guarantee::SchedulerPort;
use super::{NetworkShortage, NetworkSubstrate, PortName, ShareSettings};
use std::collections::{BTreeMap, BTreeSet};
use weir_units::{Bps, ByteSize};

/// Limits of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchLimits {
    /// Most virtual switches.
    pub slices: usize,
    /// Buffer from each port to each other one, in bytes of frames as they leave.
    pub crosspoint: ByteSize,
}

impl Default for SwitchLimits {
    /// Returns 256 virtual switches, and buffers of 1 MB.
    fn default() -> SwitchLimits {
        SwitchLimits { slices: 256, crosspoint: ByteSize(1_000_000) }
    }
}

/// Reservations on a substrate.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    /// Bytes of a round and number of virtual links at each port that sends.
    shares: BTreeMap<PortName, PortShares>,
    /// Rates that enter from hosts, by their ports.
    entering: BTreeMap<PortName, u64>,
    /// Bytes of each buffer: port at which packets enter, number of the one at which they leave.
    buffers: BTreeMap<(PortName, u32), u64>,
    /// VLAN ids on each cable.
    vlans: BTreeMap<usize, BTreeSet<u16>>,
    /// VLAN ids at hosts' ports; `None` for untagged packets.
    host_ports: BTreeMap<PortName, BTreeSet<Option<u16>>>,
    /// Number of virtual switches on each switch.
    slices: BTreeMap<String, usize>,
}

#[derive(Debug, Clone, Copy, Default)]
struct PortShares {
    quanta: u64,
    count: u32,
}

impl Ledger {
    /// Returns what a rate is short of at a port that sends.
    pub(super) fn share_shortage(
        &self,
        settings: &ShareSettings,
        port: &PortName,
        shared: SchedulerPort,
        rate: Bps,
    ) -> Option<NetworkShortage> {
        let held = self.shares.get(port).copied().unwrap_or_default();
        if held.count >= settings.most_shares {
            return Some(NetworkShortage::Shares { port: port.clone(), most: settings.most_shares });
        }
        let left = settings.round.0.saturating_sub(held.quanta);
        let is_short = settings.quantum(rate, shared) > left;
        is_short.then(|| NetworkShortage::Rate {
            port: port.clone(),
            asked: rate,
            left: settings.rate_of(left, shared),
        })
    }

    /// Returns what a rate that enters from a host is short of at its port.
    pub(super) fn entry_shortage(&self, port: &PortName, capacity: Bps, rate: Bps) -> Option<NetworkShortage> {
        let left = capacity.0.saturating_sub(self.entering.get(port).copied().unwrap_or(0));
        (rate.0 > left).then(|| NetworkShortage::Rate { port: port.clone(), asked: rate, left: Bps(left) })
    }

    /// Returns true if a host's port has room for packets with this VLAN id.
    pub(super) fn has_host_port(&self, port: &PortName, vlan: Option<u16>) -> bool {
        // Untagged packets select the port as a whole, so that they tolerate no others.
        let Some(held) = self.host_ports.get(port) else { return true };
        held.is_empty() || vlan.is_some() && !held.contains(&vlan) && !held.contains(&None)
    }

    /// Returns the lowest VLAN id that no cable of a way has; `None` if there is none.
    pub(super) fn free_vlan(&self, cables: &[usize]) -> Option<u16> {
        (1..=4094).find(|vlan| self.is_free_vlan(cables, *vlan))
    }

    /// Returns true if no cable of a way has a VLAN id.
    pub(super) fn is_free_vlan(&self, cables: &[usize], vlan: u16) -> bool {
        cables.iter().all(|cable| !self.vlans.get(cable).is_some_and(|held| held.contains(&vlan)))
    }

    /// Returns the number of virtual switches of a switch.
    pub(super) fn slices(&self, switch: &str) -> usize {
        self.slices.get(switch).copied().unwrap_or(0)
    }

    /// Reserves what a designed link needs of ports, VLAN ids and hosts.
    pub(super) fn reserve_link(&mut self, link: &DesignedLink) {
        self.change_link(link, true);
    }

    /// Gives back what [`Ledger::reserve_link`] reserved.
    pub(super) fn release_link(&mut self, link: &DesignedLink) {
        self.change_link(link, false);
    }

    fn change_link(&mut self, link: &DesignedLink, is_reserved: bool) {
        for direction in &link.directions {
            for hop in &direction.hops {
                let held = self.shares.entry(hop.port.clone()).or_default();
                if is_reserved {
                    (held.quanta, held.count) = (held.quanta + hop.quantum.0, held.count + 1);
                } else {
                    (held.quanta, held.count) = (held.quanta - hop.quantum.0, held.count - 1);
                }
            }
        }
        for (at, host) in link.host_ports.iter().enumerate() {
            let Some(port) = host else { continue };
            let rate = link.directions[at].bandwidth.minimum().0;
            let entering = self.entering.entry(port.clone()).or_default();
            let vlans = self.host_ports.entry(port.clone()).or_default();
            if is_reserved {
                *entering += rate;
                vlans.insert(link.host_vlan);
            } else {
                *entering -= rate;
                vlans.remove(&link.host_vlan);
            }
        }
        if let Some(vlan) = link.vlan {
            for cable in &link.cables {
                let held = self.vlans.entry(*cable).or_default();
                if is_reserved {
                    held.insert(vlan)
                } else {
                    held.remove(&vlan)
                };
            }
        }
        if !is_reserved {
            self.forget_empty(link);
        }
    }

    /// Removes what a released link has left empty, so that equal reservations are equal ledgers.
    fn forget_empty(&mut self, link: &DesignedLink) {
        for hop in link.directions.iter().flat_map(|direction| &direction.hops) {
            if self.shares.get(&hop.port).is_some_and(|held| held.count == 0) {
                self.shares.remove(&hop.port);
            }
        }
        for port in link.host_ports.iter().flatten() {
            if self.host_ports.get(port).is_some_and(BTreeSet::is_empty) {
                self.host_ports.remove(port);
                self.entering.remove(port);
            }
        }
        for cable in &link.cables {
            if self.vlans.get(cable).is_some_and(BTreeSet::is_empty) {
                self.vlans.remove(cable);
            }
        }
    }

    /// Returns what a slice is short of: places on its switch, or buffers.
    pub(super) fn slice_shortage(&self, limits: &SwitchLimits, slice: &Slice) -> Option<NetworkShortage> {
        if self.slices(&slice.switch) >= limits.slices {
            return Some(NetworkShortage::Slices { switch: slice.switch.clone(), most: limits.slices });
        }
        slice.crosspoints().find_map(|(from, to, asked)| {
            let held = self.buffers.get(&(from.clone(), to)).copied().unwrap_or(0);
            let left = ByteSize(limits.crosspoint.0.saturating_sub(held));
            (asked > left).then_some(NetworkShortage::Buffer { from, to, asked, left })
        })
    }

    /// Reserves what a slice needs.
    pub(super) fn reserve_slice(&mut self, slice: &Slice) {
        *self.slices.entry(slice.switch.clone()).or_default() += 1;
        for (from, to, asked) in slice.crosspoints() {
            *self.buffers.entry((from, to)).or_default() += asked.0;
        }
    }

    /// Gives back what [`Ledger::reserve_slice`] reserved.
    pub(super) fn release_slice(&mut self, slice: &Slice) {
        let others = self.slices(&slice.switch).saturating_sub(1);
        if others == 0 {
            self.slices.remove(&slice.switch)
        } else {
            self.slices.insert(slice.switch.clone(), others)
        };
        for (from, to, asked) in slice.crosspoints() {
            let crosspoint = (from, to);
            let others = self.buffers.get(&crosspoint).copied().unwrap_or(0).saturating_sub(asked.0);
            if others == 0 {
                self.buffers.remove(&crosspoint)
            } else {
                self.buffers.insert(crosspoint, others)
            };
        }
    }

    /// Returns the share of the rate of a port that is reserved, 0 to 1.
    pub(super) fn load(&self, settings: &ShareSettings, port: &PortName) -> f64 {
        let quanta = self.shares.get(port).map_or(0, |held| held.quanta);
        quanta as f64 / settings.round.0 as f64
    }
}

/// Returns a port on a way as the settings need it.
pub(super) fn shared_port(substrate: &NetworkSubstrate, port: &PortName, is_tagged: bool) -> Option<SchedulerPort> {
    let line = substrate.line(port)?;
    Some(SchedulerPort { capacity: line.capacity, propagation: line.propagation, is_tagged })
}
