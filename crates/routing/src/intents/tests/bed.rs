//! A network for tests of intents: a map, switches that follow routes packet by packet, and failures of which the map
//! knows or does not.
use crate::intents::classes::Class;
use crate::intents::store::{IntentAction, IntentStore};
use crate::intents::{IntentConfig, IntentSpec, IntentStatus, probe};
use crate::map::{Host, MapLink, MapSwitch, NetworkMap, SwitchPort};
use crate::tables::{Hop, HopKind, Route, RouteId, RouteState};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use weir_openflow::model::port::bits::LINK_DOWN;
use weir_openflow::model::{Action, PortDesc, PortNo};
use weir_packet::{Field, FlowKey, Frame, MacAddr, ParsedHeaders};
use weir_units::Instant;

/// First port of hosts.
pub(super) const HOST_PORT: u32 = 100;
/// Rate of all ports, in bit/s.
pub(super) const RATE: u64 = 1_000_000_000;

/// Ways and arrivals of a packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fate {
    /// Ports by which copies left the network.
    pub(super) left: Vec<SwitchPort>,
    /// Ports by which copies reached a switch that sent them to the controller.
    pub(super) caught: Vec<SwitchPort>,
    /// Links that copies crossed.
    pub(super) crossed: Vec<[SwitchPort; 2]>,
    /// Copies that no entry or no live output was there for.
    pub(super) lost: usize,
    /// True if a copy came to a place twice.
    pub(super) looped: bool,
}

pub(super) struct TestNetwork {
    pub(super) now: Instant,
    pub(super) map: NetworkMap,
    pub(super) store: IntentStore,
    pub(super) routes: BTreeMap<RouteId, Route>,
    /// All links, also those that are down.
    pub(super) wires: BTreeMap<SwitchPort, SwitchPort>,
    /// Ports without carrier.
    pub(super) down: BTreeSet<SwitchPort>,
    /// Switches that refuse new entries.
    pub(super) full: BTreeSet<u64>,
    /// Switches that lose all packets while they confirm everything.
    pub(super) deaf: BTreeSet<u64>,
    pub(super) reports: Vec<String>,
    pub(super) probes: usize,
}

impl TestNetwork {
    /// Returns a network of switches 1 to `n` with links, and a host at each switch.
    pub(super) fn new(n: u64, links: &[(u64, u64)], config: IntentConfig) -> TestNetwork {
        let mut network = TestNetwork {
            now: Instant::ZERO,
            map: NetworkMap::default(),
            store: IntentStore::new(config),
            routes: BTreeMap::new(),
            wires: BTreeMap::new(),
            down: BTreeSet::new(),
            full: BTreeSet::new(),
            deaf: BTreeSet::new(),
            reports: Vec::new(),
            probes: 0,
        };
        for dpid in 1..=n {
            network.map.switches.insert(dpid, MapSwitch { ports: BTreeMap::new(), n_tables: 8 });
            network.add_port(SwitchPort::new(dpid, PortNo(HOST_PORT)));
            network.add_port(SwitchPort::new(dpid, PortNo(HOST_PORT + 1)));
            network.place_host(dpid, SwitchPort::new(dpid, PortNo(HOST_PORT)));
        }
        links.iter().for_each(|(a, b)| network.add_link(*a, *b));
        network
    }

    fn add_port(&mut self, at: SwitchPort) {
        let desc = PortDesc::new(at.port, MacAddr([2, 0, 0, 0, 0, 9]), format!("p{}", at.port));
        let desc = PortDesc { curr_speed: 1_000_000, ..desc };
        self.map.switches.get_mut(&at.dpid).unwrap().ports.insert(at.port, desc);
    }

    fn add_link(&mut self, a: u64, b: u64) {
        let free = |network: &TestNetwork, dpid| {
            (1..).map(|port| SwitchPort::new(dpid, PortNo(port))).find(|at| !network.wires.contains_key(at)).unwrap()
        };
        let from = free(self, a);
        self.add_port(from);
        let to = free(self, b);
        self.add_port(to);
        self.wires.extend([(from, to), (to, from)]);
        self.set_link(from, true);
    }

    /// Puts host `number` at a port.
    pub(super) fn place_host(&mut self, number: u64, at: SwitchPort) {
        let mac = mac(number);
        let ips = BTreeSet::from([std::net::Ipv4Addr::from(0x0a00_0000 | u32::try_from(number).unwrap()).into()]);
        self.map.hosts.insert(mac, Host { mac, at, ips, name: Some(format!("h{number}")), seen: self.now });
    }

    /// Takes a link away, with the knowledge of the map, or brings it back.
    pub(super) fn set_link(&mut self, from: SwitchPort, up: bool) {
        let to = self.wires[&from];
        for (from, to) in [(from, to), (to, from)] {
            let desc = self.map.switches.get_mut(&from.dpid).unwrap().ports.get_mut(&from.port).unwrap();
            desc.state = if up { 0 } else { LINK_DOWN };
            if up {
                self.map.links.insert(from, MapLink { to, delay: Some(Duration::from_micros(100)), damped: false });
                self.down.remove(&from);
            } else {
                self.map.links.remove(&from);
                self.down.insert(from);
            }
        }
        self.map.version += 1;
    }

    pub(super) fn set_delay(&mut self, from: SwitchPort, delay: Duration) {
        let to = self.wires[&from];
        for at in [from, to] {
            self.map.links.get_mut(&at).unwrap().delay = Some(delay);
        }
    }

    /// Returns the port of a link from one switch to another.
    pub(super) fn port(&self, from: u64, to: u64) -> SwitchPort {
        *self.wires.iter().find(|(a, b)| a.dpid == from && b.dpid == to).unwrap().0
    }

    pub(super) fn set(&mut self, json: &str) -> IntentStatus {
        let spec: IntentSpec = serde_json::from_str(json).unwrap();
        self.set_spec(spec)
    }

    pub(super) fn set_spec(&mut self, spec: IntentSpec) -> IntentStatus {
        let key = spec.key.clone();
        self.store.set(self.now, spec, &self.map).unwrap();
        self.act();
        self.status(&key)
    }

    pub(super) fn status(&self, key: &str) -> IntentStatus {
        self.store.status(key, &self.map).unwrap()
    }

    /// Tells the store of a change.
    pub(super) fn change(&mut self) {
        self.store.handle_network_change(self.now, &self.map);
        self.act();
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.store.next_wake().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.store.handle_wake(self.now, &self.map);
            self.act();
        }
        self.now = end;
    }

    /// Does what the store asks for. Switches confirm at once.
    pub(super) fn act(&mut self) {
        loop {
            let actions = self.store.take_actions();
            if actions.is_empty() {
                return;
            }
            for action in actions {
                self.act_on(action);
            }
        }
    }

    fn act_on(&mut self, action: IntentAction) {
        match action {
            IntentAction::SetRoute(id, route) => {
                let before = self.routes.get(&id);
                let is_new = |place| before.is_none_or(|before| before.hops.get(place) != route.hops.get(place));
                let full = route.hops.keys().find(|place| self.full.contains(&place.dpid) && is_new(*place));
                let state = match full {
                    Some(place) => RouteState::Refused { dpid: place.dpid, reason: "TABLE_FULL".into() },
                    None => {
                        self.routes.insert(id, route);
                        RouteState::Installed
                    }
                };
                self.store.handle_route(self.now, id, &state);
            }
            IntentAction::RemoveRoute(id) => {
                self.routes.remove(&id);
                self.store.handle_removed(id);
            }
            IntentAction::SendProbe { at, frame } => {
                self.probes += 1;
                for end in self.walk(at, &frame).caught {
                    assert!(self.store.handle_probe(end, &frame));
                }
            }
            IntentAction::Report { text, .. } => self.reports.push(text),
        }
    }

    /// Follows a packet that comes in by a port.
    pub(super) fn walk(&self, at: SwitchPort, frame: &[u8]) -> Fate {
        let key = ParsedHeaders::of(&Frame::from_bytes(frame), at.port).unwrap().key;
        let (mut fate, mut seen) = (Fate::default(), BTreeSet::new());
        let mut copies = vec![(at, key)];
        while let Some((at, mut key)) = copies.pop() {
            if !seen.insert((at, key.get(Field::VlanVid))) {
                fate.looped = true;
                continue;
            }
            key.set(Field::InPort, at.port.0.into());
            let hop = if self.deaf.contains(&at.dpid) { None } else { self.hop(at, &key) };
            let before = copies.len() + fate.left.len() + fate.caught.len();
            if let Some(hop) = hop {
                self.send(at, key, &hop, &mut fate, &mut copies);
            }
            fate.lost += usize::from(copies.len() + fate.left.len() + fate.caught.len() == before);
        }
        fate
    }

    /// Returns what a switch does with a packet; panics if entries of equal priority say different things.
    fn hop(&self, at: SwitchPort, key: &FlowKey) -> Option<Hop> {
        let here = self.routes.values().flat_map(|route| {
            let hops = route.hops.iter().filter(|(place, _)| place.dpid == at.dpid);
            hops.map(move |(place, hop)| (route, place, hop))
        });
        let applies = here.filter(|(route, place, _)| {
            let (value, mask) = route.matching.key_and_mask().unwrap();
            place.in_port.is_none_or(|port| port == at.port) && key.matches(&value, &mask)
        });
        let applies: Vec<_> = applies.collect();
        let most = applies.iter().map(|(route, ..)| route.priority).max()?;
        let best: Vec<_> = applies.iter().filter(|(route, ..)| route.priority == most).map(|(.., hop)| hop).collect();
        assert!(best.iter().all(|hop| hop == &best[0]), "contrary entries at {at}: {best:?}");
        Some((*best[0]).clone())
    }

    fn send(
        &self,
        at: SwitchPort,
        mut key: FlowKey,
        hop: &Hop,
        fate: &mut Fate,
        copies: &mut Vec<(SwitchPort, FlowKey)>,
    ) {
        let real = |port: PortNo| SwitchPort::new(at.dpid, if port == PortNo::IN_PORT { at.port } else { port });
        let is_live = |port: PortNo| !self.down.contains(&real(port));
        let outputs: Vec<_> = match hop.kind {
            HopKind::FastFailover => {
                let live = hop.outputs.iter().find(|output| is_live(output.watch.unwrap_or(output.port)));
                assert!(hop.outputs.iter().all(|output| output.watch.unwrap_or(output.port).is_ordinary()));
                live.into_iter().collect()
            }
            _ => hop.outputs.iter().collect(),
        };
        for output in outputs {
            for action in &output.actions {
                match action {
                    Action::PushVlan(_) => assert_eq!(key.get(Field::VlanVid), 0, "two tags"),
                    Action::SetField { field, value } => key.set(*field, *value),
                    Action::PopVlan => {
                        assert_ne!(key.get(Field::VlanVid), 0, "no tag");
                        key.set(Field::VlanVid, 0);
                    }
                    other => panic!("{other:?}"),
                }
            }
            if output.port == PortNo::CONTROLLER {
                fate.caught.push(at);
                continue;
            }
            assert_ne!(output.port, at.port, "a switch drops packets for the port by which they came");
            let out = real(output.port);
            match self.wires.get(&out) {
                None => {
                    assert_eq!(key.get(Field::VlanVid), 0, "a tag leaves the network");
                    fate.left.push(out);
                }
                Some(into) if is_live(output.port) && !self.down.contains(into) => {
                    fate.crossed.push([out, *into]);
                    copies.push((*into, key));
                }
                Some(_) => {}
            }
        }
    }

    /// Returns a packet of a class, which is no confirmation packet.
    pub(super) fn packet(class: &Class) -> Vec<u8> {
        let matching = class.matching.clone();
        let is_free = matching.get(Field::EthType).is_none();
        let matching = if is_free { matching.with(Field::EthType, 0x88b6_u16) } else { matching };
        probe::build(&matching, 0, 0).unwrap()
    }
}

/// Returns the address of host `number`.
pub(super) fn mac(number: u64) -> MacAddr {
    MacAddr::from_bits(0x0200_0000_0000 | number)
}
