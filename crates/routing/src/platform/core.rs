//! Knowledge of the controller of a network, and what it has to send: the side of the platform that applications see.
use super::events::EventLog;
use super::islands::IndirectLinks;
use super::rerouting::Rerouting;
use super::summary::LostLinks;
use crate::app::{Network, NetworkEvent};
use crate::forwarding::admission;
use crate::map::{Host, MapLink, MapSwitch, NetworkMap, SwitchPort, is_port_up};
use crate::tables::{DesiredEntry, EntryKey, Route, RouteId, RouteState, TableKeeper};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use weir_openflow::model::multipart::{MultipartRequest, RequestBody};
use weir_openflow::model::{Action, Body, Bytes, Match, PacketOut, PortDesc, PortNo};
use weir_packet::MacAddr;
use weir_units::Instant;

/// Network, tables and messages to send.
pub(crate) struct NetworkCore {
    pub(crate) now: Instant,
    pub(crate) map: NetworkMap,
    pub(crate) keeper: TableKeeper,
    pub(super) log: EventLog,
    pub(super) rerouting: Rerouting,
    /// Links that were found and are not used yet, by their ends, with the batches that both ends have to confirm.
    pub(super) joining: BTreeMap<[SwitchPort; 2], [u64; 2]>,
    /// Links that failed again and again, by their ends, whether they are up or not.
    damped: BTreeSet<[SwitchPort; 2]>,
    /// Links through switches of others.
    pub(super) indirect: IndirectLinks,
    /// Changes that applications have not seen.
    pub(super) pending: VecDeque<NetworkEvent>,
    /// Names for hosts, for the tracker.
    pub(super) names: Vec<(MacAddr, String)>,
    /// Messages besides entries, by datapath id.
    pub(super) outgoing: Vec<(u64, Body)>,
    /// Loads of links in bit/s, by the port at which a direction begins.
    pub(super) loads: BTreeMap<SwitchPort, f64>,
    pub(super) lost_links: LostLinks,
}

impl NetworkCore {
    pub(super) fn new(keeper: TableKeeper) -> NetworkCore {
        NetworkCore {
            now: Instant::ZERO,
            map: NetworkMap::default(),
            keeper,
            log: EventLog::default(),
            rerouting: Rerouting::default(),
            joining: BTreeMap::new(),
            damped: BTreeSet::new(),
            indirect: IndirectLinks::default(),
            pending: VecDeque::new(),
            names: Vec::new(),
            outgoing: Vec::new(),
            loads: BTreeMap::new(),
            lost_links: LostLinks::default(),
        }
    }

    pub(super) fn add_switch(&mut self, dpid: u64, n_tables: u8) {
        self.map.switches.insert(dpid, MapSwitch { ports: BTreeMap::new(), n_tables });
        self.map.note_links_changed();
        self.pending.push_back(NetworkEvent::SwitchUp { dpid });
    }

    pub(super) fn remove_switch(&mut self, dpid: u64) {
        if self.map.switches.remove(&dpid).is_some() {
            self.map.note_links_changed();
            self.pending.push_back(NetworkEvent::SwitchDown { dpid });
        }
    }

    /// Notes a port as it is now. Returns true if it came up and false if it went down; `None` if neither.
    pub(super) fn set_port(&mut self, dpid: u64, desc: &PortDesc) -> Option<bool> {
        let switch = self.map.switches.get_mut(&dpid)?;
        let up = is_port_up(desc);
        let before = switch.ports.insert(desc.port_no, desc.clone()).is_some_and(|before| is_port_up(&before));
        if before == up || !desc.port_no.is_ordinary() {
            return None;
        }
        self.note_port(SwitchPort::new(dpid, desc.port_no), up);
        Some(up)
    }

    /// Forgets a port. Returns true if it was up.
    pub(super) fn remove_port(&mut self, at: SwitchPort) -> bool {
        let removed = self.map.switches.get_mut(&at.dpid).and_then(|switch| switch.ports.remove(&at.port));
        let was_up = removed.is_some_and(|desc| is_port_up(&desc));
        if was_up && at.port.is_ordinary() {
            self.note_port(at, false);
        }
        was_up
    }

    fn note_port(&mut self, at: SwitchPort, up: bool) {
        self.map.version += 1;
        self.pending.push_back(NetworkEvent::PortChanged { at, up });
    }

    /// Prepares a link that was found: it is used once the switches at both ends have confirmed that they admit packets
    /// from it.
    pub(super) fn join(&mut self, ends: [SwitchPort; 2]) {
        for end in ends {
            admission::admit_link(self, end);
        }
        let batches = ends.map(|end| self.keeper.progress(end.dpid).0);
        self.joining.insert(ends, batches);
    }

    /// Uses the links whose ends have confirmed.
    pub(super) fn use_joined(&mut self) {
        let keeper = &self.keeper;
        let is_admitted = |end: &SwitchPort, batch: &u64| {
            let (_, confirmed) = keeper.progress(end.dpid);
            confirmed >= *batch
        };
        let is_joined = |ends: &[SwitchPort; 2], batches: &[u64; 2]| {
            ends.iter().zip(batches).all(|(end, batch)| is_admitted(end, batch))
        };
        let joined: Vec<_> =
            self.joining.iter().filter(|(ends, batches)| is_joined(ends, batches)).map(|(ends, _)| *ends).collect();
        for ends in joined {
            self.joining.remove(&ends);
            self.add_link(ends);
        }
    }

    fn add_link(&mut self, ends: [SwitchPort; 2]) {
        let [from, to] = ends;
        let is_new = !self.map.links.contains_key(&from);
        let damped = self.damped.contains(&ends);
        for (from, to) in [(from, to), (to, from)] {
            self.map.links.insert(from, MapLink { to, delay: None, damped });
        }
        self.lost_links.note_up(ends);
        if is_new {
            self.map.note_links_changed();
            self.rerouting.begin(self.now);
            self.pending.push_back(NetworkEvent::LinkUp { ends });
        }
    }

    pub(super) fn remove_link(&mut self, ends: [SwitchPort; 2]) {
        let [from, to] = ends;
        let was_joining = self.joining.remove(&ends).is_some();
        let is_there = self.map.links.get(&from).is_some_and(|link| link.to == to);
        if was_joining || is_there {
            ends.iter().for_each(|end| admission::forget_link(self, *end));
        }
        if is_there {
            ends.iter().for_each(|end| _ = self.map.links.remove(end));
            ends.iter().for_each(|end| _ = self.loads.remove(end));
            self.map.note_links_changed();
            self.rerouting.begin(self.now);
            self.lost_links.note_down(ends);
            self.pending.push_back(NetworkEvent::LinkDown { ends });
        }
    }

    /// Notes whether a link failed again and again. It is mostly down when it is found to do so.
    pub(super) fn set_damped(&mut self, ends: [SwitchPort; 2], damped: bool) {
        if damped {
            self.damped.insert(ends);
        } else {
            self.damped.remove(&ends);
        }
        let [from, to] = ends;
        for (from, to) in [(from, to), (to, from)] {
            if let Some(link) = self.map.links.get_mut(&from).filter(|link| link.to == to && link.damped != damped) {
                link.damped = damped;
                self.map.note_links_changed();
            }
        }
    }

    /// Changes hosts as the tracker says.
    pub(super) fn set_host(&mut self, host: Host) {
        let event = match self.map.hosts.insert(host.mac, host.clone()) {
            None => NetworkEvent::HostAdded { host },
            Some(before) if before.at != host.at => NetworkEvent::HostMoved { host, from: before.at },
            Some(_) => NetworkEvent::HostChanged { host },
        };
        self.pending.push_back(event);
    }

    /// Notes that a host was seen.
    pub(super) fn note_seen(&mut self, mac: MacAddr, at: Instant) {
        if let Some(host) = self.map.hosts.get_mut(&mac) {
            host.seen = at;
        }
    }

    pub(super) fn remove_host(&mut self, mac: MacAddr) {
        if let Some(host) = self.map.hosts.remove(&mac) {
            self.pending.push_back(NetworkEvent::HostRemoved { host });
        }
    }

    /// Returns true if a port has a link that was found and is not used yet.
    pub(crate) fn is_joining(&self, at: SwitchPort) -> bool {
        self.joining.keys().any(|ends| ends.contains(&at))
    }

    /// Sends a packet out of ports, by one message for each switch.
    pub(crate) fn send_to_ports(&mut self, ports: impl IntoIterator<Item = SwitchPort>, data: &[u8]) {
        let mut by_switch: BTreeMap<u64, Vec<PortNo>> = BTreeMap::new();
        for at in ports {
            by_switch.entry(at.dpid).or_default().push(at.port);
        }
        for (dpid, ports) in by_switch {
            self.packet_out(dpid, PortNo::CONTROLLER, ports, data.to_vec());
        }
    }

    pub(crate) fn set_route(&mut self, id: RouteId, route: Route) {
        self.keeper.set_route(id, route, &self.map);
        if self.keeper.route_state(id) == Some(RouteState::Pending) {
            self.rerouting.add(id);
        }
    }

    fn packet_out(&mut self, dpid: u64, in_port: PortNo, ports: impl IntoIterator<Item = PortNo>, data: Vec<u8>) {
        let actions = ports.into_iter().map(Action::output).collect();
        let packet = PacketOut { buffer_id: None, in_port, matching: Match::any(), actions, data: Bytes(data) };
        self.outgoing.push((dpid, Body::PacketOut(packet)));
    }
}

impl Network for NetworkCore {
    fn now(&self) -> Instant {
        self.now
    }

    fn map(&self) -> &NetworkMap {
        &self.map
    }

    fn set_entry(&mut self, dpid: u64, entry: DesiredEntry) {
        self.keeper.set_entry(dpid, entry);
    }

    fn remove_entry(&mut self, dpid: u64, key: &EntryKey) {
        self.keeper.remove_entry(dpid, key);
    }

    fn send(&mut self, to: SwitchPort, data: Vec<u8>) {
        self.packet_out(to.dpid, PortNo::CONTROLLER, [to.port], data);
    }

    fn send_to_hosts(&mut self, except: Option<SwitchPort>, data: Vec<u8>) {
        let is_meant = |at: &SwitchPort| Some(*at) != except && !self.is_joining(*at);
        let ports: Vec<_> = self.map.edge_ports().filter(is_meant).collect();
        self.send_to_ports(ports, &data);
    }

    fn forward(&mut self, at: SwitchPort, data: Vec<u8>) {
        self.packet_out(at.dpid, at.port, [PortNo::TABLE], data);
    }

    fn ask(&mut self, dpid: u64, request: RequestBody) {
        let message = Body::MultipartRequest(MultipartRequest { more: false, body: request });
        self.outgoing.push((dpid, message));
    }

    fn name_host(&mut self, mac: MacAddr, name: &str) {
        self.names.push((mac, name.to_owned()));
    }

    fn set_load(&mut self, from: SwitchPort, bps: f64) {
        if self.map.is_trunk(from) {
            self.loads.insert(from, bps);
        }
    }

    fn report(&mut self, kind: &'static str, text: String, alarm: bool) {
        self.log.add(self.now, kind, text, alarm);
    }
}
