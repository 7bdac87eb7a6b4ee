//! The controller of a network: joins discovery of links, hosts, tables, forwarding, intents and applications.
//!
//! The whole is one application of the controller engine. Every message of a switch, and every timer, changes the map;
//! the parts adapt what they want; and the tables are brought to it. Nothing of it has a thread or a clock.
mod application;
mod core;
mod events;
mod intents;
mod islands;
mod keeping;
mod packets;
mod requests;
mod rerouting;
mod signal;
mod summary;

pub(crate) use self::core::NetworkCore;
pub use events::MAX_EVENTS;
pub use keeping::{HAND_OUT_INTERVAL, KeptState, StateSink};
pub use signal::EventSignal;

use crate::app::{Network, NetworkApp};
use crate::forwarding::{Forwarding, ForwardingConfig, admission};
use crate::hosts::{HostChange, HostConfig, HostTracker};
use crate::intents::{IntentConfig, IntentStore};
use crate::map::SwitchPort;
use crate::tables::{TableConfig, TableEvent, TableKeeper};
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;
use weir_controller::apps::discovery::{DiscoveryConfig, LinkProber, ProbedLinkEvent};
use weir_controller::{ConnectionId, ControllerOutbox};
use weir_openflow::model::role::AsyncConfig;
use weir_openflow::model::{Body, PacketInReason, PortDesc};
use weir_openflow::{Message, Version};

/// Tables that a switch needs.
const N_TABLES: u8 = 4;

/// Settings of the controller of a network. `..NetworkConfig::default()` fills in defaults.
#[derive(Debug, Clone)]
pub struct NetworkConfig {
    /// Discovery of links. Default: a probe each 25 ms, so that a silent link is avoided within 100 ms.
    pub discovery: DiscoveryConfig,
    /// Hosts.
    pub hosts: HostConfig,
    /// Tables of switches.
    pub tables: TableConfig,
    /// Forwarding between hosts.
    pub forwarding: ForwardingConfig,
    /// Intents.
    pub intents: IntentConfig,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        NetworkConfig {
            discovery: DiscoveryConfig { interval: Duration::from_millis(25), ..DiscoveryConfig::default() },
            hosts: HostConfig::default(),
            tables: TableConfig::default(),
            forwarding: ForwardingConfig::default(),
            intents: IntentConfig::default(),
        }
    }
}

/// Controller of a network.
pub struct NetworkController {
    prober: LinkProber,
    hosts: HostTracker,
    /// Links that probes have found and that are not believed, because hosts are at one of their ports.
    doubted: BTreeSet<[SwitchPort; 2]>,
    /// Changes that the tracker wants.
    host_changes: Vec<HostChange>,
    core: NetworkCore,
    forwarding: Forwarding,
    intents: IntentStore,
    apps: Vec<Box<dyn NetworkApp>>,
    dpids: HashMap<ConnectionId, u64, RandomState>,
    connections: BTreeMap<u64, ConnectionId>,
    counters: packets::PacketCounters,
    keeping: keeping::StateKeeping,
    /// True if messages wait for the next call that can send some.
    wakes_at_once: bool,
}

impl NetworkController {
    /// Returns the controller of a network without switches, with applications in the order in which they see packets.
    pub fn new(mut config: NetworkConfig, apps: Vec<Box<dyn NetworkApp>>) -> NetworkController {
        for (macs, ips) in apps.iter().map(|app| app.own_addresses()) {
            config.hosts.own_macs.extend(macs);
            config.hosts.own_ips.extend(ips);
        }
        let retry_after = config.tables.retry_after;
        NetworkController {
            prober: LinkProber::new(config.discovery),
            hosts: HostTracker::new(config.hosts),
            doubted: BTreeSet::new(),
            host_changes: Vec::new(),
            core: NetworkCore::new(TableKeeper::new(config.tables)),
            forwarding: Forwarding::new(config.forwarding, retry_after),
            intents: IntentStore::new(config.intents),
            apps,
            dpids: HashMap::default(),
            connections: BTreeMap::new(),
            counters: packets::PacketCounters::default(),
            keeping: keeping::StateKeeping::default(),
            wakes_at_once: false,
        }
    }

    /// Returns the network as it is known.
    pub fn map(&self) -> &crate::map::NetworkMap {
        &self.core.map
    }

    /// Returns the signal that is sent with each new event.
    pub fn event_signal(&self) -> EventSignal {
        self.core.log.signal()
    }

    /// Carries on with all that follows from a change, until nothing does. Appends the messages for switches.
    fn settle(&mut self, out: &mut ControllerOutbox) {
        loop {
            self.take_link_events();
            self.core.use_joined();
            self.update_islands();
            self.take_host_changes();
            let is_changed = !self.core.pending.is_empty();
            while let Some(event) = self.core.pending.pop_front() {
                self.forwarding.handle_event(&event, &mut self.core);
                for app in &mut self.apps {
                    app.handle_event(&event, &mut self.core);
                }
                let (kind, text) = events::describe(&event);
                self.core.report(kind, text, false);
            }
            self.forwarding.update(&mut self.core);
            if is_changed {
                self.note_change_for_intents();
            }
            self.carry_out_intents();
            for (dpid, messages) in self.core.keeper.flush(self.core.now) {
                self.send(dpid, messages, out);
            }
            self.take_table_events();
            self.carry_out_intents();
            let has_names = !self.core.names.is_empty();
            let has_events = !self.core.pending.is_empty() || !self.host_changes.is_empty();
            if !has_names && !has_events && !self.core.keeper.has_work() {
                break;
            }
        }
        if let Some(text) = self.core.rerouting.take_end(self.core.now) {
            self.core.report("rerouted", text, false);
        }
        self.hand_out_changes();
        for (dpid, message) in std::mem::take(&mut self.core.outgoing) {
            self.send(dpid, [message], out);
        }
    }

    fn send(&self, dpid: u64, messages: impl IntoIterator<Item = Body>, out: &mut ControllerOutbox) {
        if let Some(id) = self.connections.get(&dpid) {
            out.extend(messages.into_iter().map(|body| (*id, Message { xid: 0, body })));
        }
    }

    fn take_link_events(&mut self) {
        let now = self.core.now;
        let place = |(dpid, port)| SwitchPort::new(dpid, port);
        for event in self.prober.take_events() {
            match event {
                ProbedLinkEvent::Found(ends) => _ = self.doubted.insert(ends.map(place)),
                ProbedLinkEvent::Lost(ends) => {
                    let ends = ends.map(place);
                    self.doubted.remove(&ends);
                    if !self.lose_indirect(ends) {
                        self.core.remove_link(ends);
                        ends.iter().for_each(|end| self.hosts.handle_edge(now, *end));
                    }
                }
                ProbedLinkEvent::Direct(ends) => {
                    let ends = ends.map(place);
                    self.lose_indirect(ends);
                    self.doubted.insert(ends);
                }
                ProbedLinkEvent::Damped(ends) => self.core.set_damped(ends.map(place), true),
                ProbedLinkEvent::Released(ends) => self.core.set_damped(ends.map(place), false),
            }
        }
        for ends in std::mem::take(&mut self.doubted) {
            if !self.believe(ends) {
                self.doubted.insert(ends);
            }
        }
    }

    /// Uses a link that was found, if it may be believed. Returns whether it may.
    fn believe(&mut self, ends: [SwitchPort; 2]) -> bool {
        let [from, to] = ends;
        if self.prober.link(ends.map(|end| (end.dpid, end.port))).is_some_and(|link| link.indirect) {
            return self.believe_indirect(ends);
        }
        // Both ends are looked at, also if the first one is doubtful.
        let believed = [(from, to), (to, from)]
            .map(|(at, peer)| self.hosts.handle_trunk(self.core.now, at, peer, &mut self.host_changes));
        if believed == [true; 2] {
            self.core.join(ends);
        }
        believed == [true; 2]
    }

    fn take_host_changes(&mut self) {
        for (mac, name) in std::mem::take(&mut self.core.names) {
            self.hosts.set_name(mac, &name, &mut self.host_changes);
        }
        for change in std::mem::take(&mut self.host_changes) {
            match change {
                HostChange::Added(host) | HostChange::Changed(host) | HostChange::Moved { host, .. } => {
                    self.core.set_host(host);
                }
                HostChange::Seen { mac, at } => self.core.note_seen(mac, at),
                HostChange::Removed(host) => self.core.remove_host(host.mac),
                HostChange::Probe { to, frame } => self.core.send(to, frame),
                HostChange::Block { at, mac, time } => admission::block(&mut self.core, mac, at, time),
                HostChange::Unblock { at, mac } => admission::unblock(&mut self.core, mac, at),
                HostChange::Alarm { kind, text } => self.core.report(kind, text, true),
            }
        }
    }

    fn take_table_events(&mut self) {
        for event in self.core.keeper.take_events() {
            if let TableEvent::Route(id, _) | TableEvent::Removed(id) = &event {
                self.core.rerouting.remove(*id);
            }
            match event {
                TableEvent::Expired(id) => self.forwarding.handle_expired(id, &mut self.core),
                TableEvent::EntryRefused { dpid, key, reason } => {
                    let table = key.table;
                    let text = format!("switch {dpid:x} refused an entry of table {table}: {reason}");
                    self.core.report("entry-refused", text, true);
                }
                TableEvent::Route(id, state) if intents::is_of_intents(id) => {
                    self.intents.handle_route(self.core.now, id, &state);
                }
                TableEvent::Removed(id) if intents::is_of_intents(id) => self.intents.handle_removed(id),
                TableEvent::Route(_, crate::tables::RouteState::Refused { dpid, reason }) => {
                    self.forwarding.handle_refused(self.core.now);
                    let text = format!("switch {dpid:x} refused an entry of a route: {reason}");
                    self.core.report("entry-refused", text, true);
                }
                TableEvent::Route(..) | TableEvent::Removed(_) => {}
            }
        }
    }

    fn set_ports(&mut self, dpid: u64, ports: &[PortDesc]) {
        for desc in ports {
            let at = SwitchPort::new(dpid, desc.port_no);
            match self.core.set_port(dpid, desc) {
                Some(true) => self.hosts.handle_port_up(self.core.now, at),
                Some(false) => self.hosts.handle_port_down(self.core.now, at, &mut self.host_changes),
                None => {}
            }
        }
    }
}

/// Returns which messages a switch has to send: those that it sends by default (OpenFlow 1.3.5, 7.3.10), and packets
/// whose TTL has expired. The first of each pair is for a master and an equal, the second for a slave.
fn wanted_messages(version: Version) -> AsyncConfig {
    let up_to = |reason: PacketInReason| (2 << reason as u32) - 1;
    let packets = if version == Version::V13 { PacketInReason::InvalidTtl } else { PacketInReason::PacketOut };
    let removed = if version == Version::V13 { 0xf } else { 0x3f };
    AsyncConfig {
        packet_in: [Some(up_to(packets)), Some(0)],
        port_status: [Some(0x7), Some(0x7)],
        flow_removed: [Some(removed), Some(0)],
        ..AsyncConfig::default()
    }
}

impl NetworkController {
    fn applications_with_counters(&self) -> Vec<(&'static str, Vec<(&'static str, u64)>)> {
        let parts = [
            ("link discovery", self.prober.counters()),
            ("hosts", self.hosts.counters()),
            ("tables", self.core.keeper.counters()),
            ("forwarding", self.forwarding.counters()),
            ("intents", self.intents.counters()),
            ("packets", self.counters.named()),
        ];
        parts.into_iter().chain(self.apps.iter().map(|app| (app.name(), app.counters()))).collect()
    }
}
