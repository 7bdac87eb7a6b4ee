//! A network for unit tests of applications: a map of switches and hosts, and a record of what an application asks for.
use crate::app::{Network, NetworkApp, NetworkEvent};
use crate::map::{Host, MapLink, MapSwitch, NetworkMap, SwitchPort};
use crate::tables::{DesiredEntry, EntryKey};
use crate::{HostPacket, PacketDecision};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use weir_openflow::model::multipart::RequestBody;
use weir_openflow::model::{Instruction, PortDesc, PortNo};
use weir_packet::MacAddr;
use weir_packet::{FlowKey, parse};
use weir_units::Instant;

/// Network that records what is asked of it.
#[derive(Default)]
pub(crate) struct FakeNetwork {
    pub(crate) now: Instant,
    pub(crate) map: NetworkMap,
    /// Entries by switch, as asked for.
    pub(crate) entries: BTreeMap<u64, Vec<DesiredEntry>>,
    pub(crate) sent: Vec<(SwitchPort, Vec<u8>)>,
    pub(crate) flooded: Vec<Vec<u8>>,
    pub(crate) forwarded: Vec<(SwitchPort, Vec<u8>)>,
    pub(crate) asked: Vec<(u64, RequestBody)>,
    pub(crate) names: BTreeMap<MacAddr, String>,
    pub(crate) loads: BTreeMap<SwitchPort, f64>,
    /// Events: kind, text, alarm.
    pub(crate) reports: Vec<(&'static str, String, bool)>,
}

impl FakeNetwork {
    /// Returns a network of `switches` switches, 1 and up, each with ports 1 to 4 of 1 Gbit/s that are up.
    pub(crate) fn of(switches: u64) -> FakeNetwork {
        let mut network = FakeNetwork::default();
        for dpid in 1..=switches {
            let port = |number: u32| {
                let mac = MacAddr::from_bits(0x0200_0000_0000 | dpid << 8 | u64::from(number));
                let desc = PortDesc::new(PortNo(number), mac, format!("s{dpid}-{number}"));
                (PortNo(number), PortDesc { curr_speed: 1_000_000, ..desc })
            };
            network.map.switches.insert(dpid, MapSwitch { ports: (1..=4).map(port).collect(), n_tables: 254 });
        }
        network
    }

    /// Adds a link between two ports.
    pub(crate) fn link(&mut self, one: SwitchPort, other: SwitchPort) {
        for (from, to) in [(one, other), (other, one)] {
            self.map.links.insert(from, MapLink { to, delay: None, damped: false });
        }
    }

    /// Puts a host on the map, in place of one with its Ethernet address, and tells the application.
    pub(crate) fn host(&mut self, mac: MacAddr, at: SwitchPort, ips: &[IpAddr], app: &mut dyn NetworkApp) {
        let host = Host { mac, at, ips: ips.iter().copied().collect(), name: None, seen: self.now };
        let former = self.map.hosts.insert(mac, host.clone());
        let event = match former {
            None => NetworkEvent::HostAdded { host },
            Some(former) if former.at != at => NetworkEvent::HostMoved { host, from: former.at },
            Some(_) => NetworkEvent::HostChanged { host },
        };
        app.handle_event(&event, self);
    }

    /// Tells the application that each switch has come up.
    pub(crate) fn bring_up(&mut self, app: &mut dyn NetworkApp) {
        for dpid in self.map.switches.keys().copied().collect::<Vec<_>>() {
            app.handle_event(&NetworkEvent::SwitchUp { dpid }, self);
        }
    }

    /// Gives the application a packet of a host.
    pub(crate) fn packet(&mut self, at: SwitchPort, data: &[u8], app: &mut dyn NetworkApp) -> PacketDecision {
        app.handle_packet(&HostPacket { at, from_trunk: self.map.is_trunk(at), data }, self)
    }

    /// Lets time pass, with the application's timers.
    pub(crate) fn pass(&mut self, span: Duration, app: &mut dyn NetworkApp) {
        let end = self.now + span;
        while let Some(wake) = app.next_wake().filter(|wake| *wake <= end) {
            self.now = self.now.max(wake);
            app.handle_wake(self);
            assert!(app.next_wake().is_none_or(|next| next > self.now), "a timer stays due");
        }
        self.now = end;
    }

    /// Returns what a table of a switch does with a packet: the instructions of the matching entry of the highest
    /// priority; `None` if no entry matches.
    pub(crate) fn lookup(&self, at: SwitchPort, table: u8, data: &[u8]) -> Option<Vec<Instruction>> {
        let key = key_of(at, data);
        let matching = |entry: &&DesiredEntry| {
            let (value, mask) = entry.key.matching.key_and_mask().expect("a valid match");
            entry.key.table == table && key.matches(&value, &mask)
        };
        let entries = self.entries.get(&at.dpid)?;
        entries.iter().filter(matching).max_by_key(|entry| entry.key.priority).map(|entry| entry.instructions.clone())
    }
}

/// Returns the fields of a packet that enters by a port.
pub(crate) fn key_of(at: SwitchPort, data: &[u8]) -> FlowKey {
    parse(data, at.port).expect("an Ethernet header").key
}

/// Returns the port with a number at a switch.
pub(crate) const fn port(dpid: u64, number: u32) -> SwitchPort {
    SwitchPort::new(dpid, PortNo(number))
}

/// Returns the Ethernet address of a host.
pub(crate) const fn mac(number: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 1, number])
}

impl Network for FakeNetwork {
    fn now(&self) -> Instant {
        self.now
    }

    fn map(&self) -> &NetworkMap {
        &self.map
    }

    fn set_entry(&mut self, dpid: u64, entry: DesiredEntry) {
        entry.key.matching.key_and_mask().expect("a match that a switch accepts");
        self.remove_entry(dpid, &entry.key);
        self.entries.entry(dpid).or_default().push(entry);
    }

    fn remove_entry(&mut self, dpid: u64, key: &EntryKey) {
        self.entries.entry(dpid).or_default().retain(|entry| entry.key != *key);
    }

    fn send(&mut self, to: SwitchPort, data: Vec<u8>) {
        self.sent.push((to, data));
    }

    fn send_to_hosts(&mut self, _except: Option<SwitchPort>, data: Vec<u8>) {
        self.flooded.push(data);
    }

    fn forward(&mut self, at: SwitchPort, data: Vec<u8>) {
        self.forwarded.push((at, data));
    }

    fn ask(&mut self, dpid: u64, request: RequestBody) {
        self.asked.push((dpid, request));
    }

    fn name_host(&mut self, mac: MacAddr, name: &str) {
        self.names.insert(mac, name.to_owned());
    }

    fn set_load(&mut self, from: SwitchPort, bps: f64) {
        self.loads.insert(from, bps);
    }

    fn report(&mut self, kind: &'static str, text: String, alarm: bool) {
        self.reports.push((kind, text, alarm));
    }
}
