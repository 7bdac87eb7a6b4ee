//! Keeps what is known of ports: whether they are up, whether they lead to other switches, and which hosts are there.
use super::config::HostConfig;
use crate::map::SwitchPort;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use weir_packet::MacAddr;
use weir_units::Instant;

/// Least time between two alarms about a link at one port.
const ALARM_PAUSE: Duration = Duration::from_secs(60);

/// Ports that are known.
#[derive(Debug, Default)]
pub(super) struct PortTable {
    ports: BTreeMap<SwitchPort, PortRecord>,
    /// Times at which switches connected.
    switches: BTreeMap<u64, Instant>,
}

#[derive(Debug)]
struct PortRecord {
    carrier: Carrier,
    /// Time at which it came up last, or was first heard of.
    up_since: Instant,
    trunk: Trunk,
    hosts: BTreeSet<MacAddr>,
    /// Time at which the port went down while hosts were there that had been there for a while.
    lost_hosts: Option<Instant>,
    /// True if an alarm has said that there are too many hosts.
    is_flooded: bool,
    link_alarm: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carrier {
    Up,
    Down,
    /// The switch is not connected.
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trunk {
    /// No link to another switch is known.
    No,
    Yes,
    /// A link was there until a moment ago. Until this time it is not believed that hosts are there.
    Until(Instant),
}

/// Decision on a packet by its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reception {
    Open,
    Down,
    /// The port leads to another switch, or did so until a moment ago.
    Trunk,
    /// The port is not known, and as many are known as may be.
    Full,
}

impl PortTable {
    /// Returns what to do with a packet of a port, and notes the port.
    pub(super) fn receive(&mut self, now: Instant, at: SwitchPort, config: &HostConfig) -> Reception {
        let Some(record) = self.record(now, at, config) else { return Reception::Full };
        if record.carrier == Carrier::Gone {
            // A packet has come, so the switch is there.
            (record.carrier, record.up_since) = (Carrier::Up, now);
        }
        match (record.carrier, record.trunk) {
            (Carrier::Down, _) => Reception::Down,
            (_, Trunk::Yes) => Reception::Trunk,
            (_, Trunk::Until(time)) if now < time => Reception::Trunk,
            _ => Reception::Open,
        }
    }

    fn record(&mut self, now: Instant, at: SwitchPort, config: &HostConfig) -> Option<&mut PortRecord> {
        if !self.ports.contains_key(&at) && self.ports.len() >= config.max_ports {
            return None;
        }
        let new = || PortRecord {
            carrier: Carrier::Up,
            up_since: now,
            trunk: Trunk::No,
            hosts: BTreeSet::new(),
            lost_hosts: None,
            is_flooded: false,
            link_alarm: None,
        };
        Some(self.ports.entry(at).or_insert_with(new))
    }

    pub(super) fn set_up(&mut self, now: Instant, at: SwitchPort, config: &HostConfig) {
        if let Some(record) = self.record(now, at, config)
            && record.carrier != Carrier::Up
        {
            (record.carrier, record.up_since) = (Carrier::Up, now);
        }
    }

    /// Notes that a port is down. `had_hosts` is true if hosts had been there for a while.
    pub(super) fn set_down(&mut self, now: Instant, at: SwitchPort, had_hosts: bool) {
        if let Some(record) = self.ports.get_mut(&at) {
            (record.carrier, record.trunk, record.is_flooded) = (Carrier::Down, Trunk::No, false);
            record.lost_hosts = if had_hosts { Some(now) } else { record.lost_hosts };
            if record.hosts.is_empty() && record.lost_hosts.is_none() && record.link_alarm.is_none() {
                self.ports.remove(&at);
            }
        }
    }

    pub(super) fn set_switch_up(&mut self, now: Instant, dpid: u64, config: &HostConfig) {
        if self.switches.len() < config.max_ports {
            self.switches.insert(dpid, now);
        }
    }

    /// Notes that a switch is not connected. Returns its ports.
    pub(super) fn set_switch_down(&mut self, dpid: u64) -> Vec<SwitchPort> {
        self.switches.remove(&dpid);
        let of_switch = self.ports.iter_mut().filter(|(at, _)| at.dpid == dpid);
        let gone = of_switch.map(|(at, record)| {
            (record.carrier, record.trunk, record.lost_hosts) = (Carrier::Gone, Trunk::No, None);
            *at
        });
        let gone: Vec<_> = gone.collect();
        self.ports.retain(|at, record| at.dpid != dpid || !record.hosts.is_empty());
        gone
    }

    /// Returns true if hosts at a port can be reached, as far as is known.
    pub(super) fn is_up(&self, at: SwitchPort) -> bool {
        self.ports.get(&at).is_none_or(|record| record.carrier == Carrier::Up)
    }

    /// Returns the time at which a port came up; the start for unknown ones.
    pub(super) fn up_since(&self, at: SwitchPort) -> Instant {
        self.ports.get(&at).map_or(Instant::ZERO, |record| record.up_since)
    }

    /// Returns true if a switch connected less than `time` ago.
    pub(super) fn is_new_switch(&self, now: Instant, dpid: u64, time: Duration) -> bool {
        self.switches.get(&dpid).is_some_and(|since| now < *since + time)
    }

    pub(super) fn set_trunk(&mut self, now: Instant, at: SwitchPort, config: &HostConfig) {
        if let Some(record) = self.record(now, at, config) {
            (record.trunk, record.lost_hosts) = (Trunk::Yes, None);
        }
    }

    /// Notes that a port no longer leads to another switch, as far as is known.
    pub(super) fn set_edge(&mut self, now: Instant, at: SwitchPort, config: &HostConfig) {
        if let Some(record) = self.ports.get_mut(&at)
            && record.trunk == Trunk::Yes
        {
            record.trunk = Trunk::Until(now + config.trunk_memory);
        }
    }

    pub(super) fn is_trunk(&self, at: SwitchPort) -> bool {
        self.ports.get(&at).is_some_and(|record| record.trunk == Trunk::Yes)
    }

    /// Returns true if a port went down less than `time` ago while hosts were there.
    pub(super) fn lost_hosts_lately(&self, now: Instant, at: SwitchPort, time: Duration) -> bool {
        self.ports.get(&at).and_then(|record| record.lost_hosts).is_some_and(|down| now < down + time)
    }

    pub(super) fn hosts(&self, at: SwitchPort) -> impl Iterator<Item = MacAddr> + '_ {
        self.ports.get(&at).into_iter().flat_map(|record| record.hosts.iter().copied())
    }

    pub(super) fn n_hosts(&self, at: SwitchPort) -> usize {
        self.ports.get(&at).map_or(0, |record| record.hosts.len())
    }

    pub(super) fn add_host(&mut self, at: SwitchPort, mac: MacAddr) {
        if let Some(record) = self.ports.get_mut(&at) {
            record.hosts.insert(mac);
        }
    }

    pub(super) fn remove_host(&mut self, at: SwitchPort, mac: MacAddr) {
        if let Some(record) = self.ports.get_mut(&at) {
            record.hosts.remove(&mac);
            record.is_flooded &= !record.hosts.is_empty();
        }
    }

    /// Notes that a port has too many hosts. Returns true if it was not noted before.
    pub(super) fn note_flood(&mut self, at: SwitchPort) -> bool {
        self.ports.get_mut(&at).is_some_and(|record| !std::mem::replace(&mut record.is_flooded, true))
    }

    /// Returns true if an alarm about a link at a port is due, and notes it.
    pub(super) fn note_link_alarm(&mut self, now: Instant, at: SwitchPort) -> bool {
        let Some(record) = self.ports.get_mut(&at) else { return true };
        let is_due = record.link_alarm.is_none_or(|last| now >= last + ALARM_PAUSE);
        if is_due {
            record.link_alarm = Some(now);
        }
        is_due
    }
}
