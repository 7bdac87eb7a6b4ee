//! A network in virtual time: real datapaths, sessions and codec, with links, hosts and control channels that take time
//! and fail.
use crate::disturbances::{ChannelFaults, FilledTables, is_twin};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use weir_controller::{ConnectionId, ControllerHub};
use weir_datapath::{ChannelId, Datapath, DatapathConfig, DatapathOutput, PortCounters};
use weir_openflow::model::multipart::{
    FlowRequest, FlowStats, MultipartReply, MultipartRequest, ReplyBody, RequestBody,
};
use weir_openflow::model::{Body, PortDesc, PortNo};
use weir_openflow::session::{Session, SessionConfig, SessionEvent};
use weir_openflow::{Message, Version};
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;
use weir_packet::parse::{parse, parse_ethernet};
use weir_packet::{Field, Frame, FramePool, MacAddr};
use weir_routing::request::{NetworkReply, NetworkRequest};
use weir_routing::state::NetworkState;
use weir_routing::{NetworkApp, NetworkConfig, NetworkController};
use weir_units::Instant;

const CHANNEL: ChannelId = ChannelId(1);
/// Time that a frame takes over a link, and bytes over a control channel.
const LINK_DELAY: Duration = Duration::from_micros(20);
const CONTROL_DELAY: Duration = Duration::from_micros(100);
/// Ports of a switch. Links use the lowest, hosts those from [`FIRST_HOST_PORT`].
pub(crate) const PORTS: u32 = 24;
pub(crate) const FIRST_HOST_PORT: u32 = 17;
/// First number of a switch of others, which learns and has no controller.
const FIRST_ISLAND: u64 = 1000;
/// EtherType of test packets, for local experiments (IEEE 802-2014, 9.2.4).
const TEST_PACKET: u16 = 0x88b5;

pub(crate) type End = (u64, u32);

/// Host that answers ARP.
#[derive(Debug, Clone)]
pub(crate) struct BedHost {
    pub(crate) mac: MacAddr,
    pub(crate) ip: Ipv4Addr,
    pub(crate) at: End,
    /// Frames received, besides ARP and test packets.
    pub(crate) received: Vec<Vec<u8>>,
    /// Replies of ARP received: who said so, and the address.
    pub(crate) resolved: Vec<(MacAddr, Ipv4Addr)>,
    /// Addresses for which ARP requests came.
    pub(crate) asked_for: Vec<Ipv4Addr>,
    /// True if it answers and sends.
    pub(crate) is_on: bool,
}

enum BedEvent {
    Frame { to: End, bytes: Vec<u8> },
    ToController { dpid: u64, session: u64, bytes: Vec<u8> },
    ToSwitch { dpid: u64, session: u64, bytes: Vec<u8> },
}

pub(crate) struct BedSwitch {
    pub(crate) datapath: Datapath,
    /// Connection to the controller, and its number.
    pub(crate) connection: Option<(ConnectionId, Session)>,
    session: u64,
}

impl BedSwitch {
    pub(crate) fn new(datapath: Datapath) -> BedSwitch {
        BedSwitch { datapath, connection: None, session: 0 }
    }
}

/// Crossing of a link by a test packet, by the packet's number.
type Crossing = (u64, End);

pub(crate) struct Bed {
    pub(crate) now: Instant,
    pub(crate) hub: ControllerHub,
    pub(crate) switches: BTreeMap<u64, BedSwitch>,
    /// Ports behind which switches of others have seen addresses.
    islands: BTreeMap<u64, HashMap<MacAddr, u32>>,
    pub(crate) wires: HashMap<End, End>,
    /// Links that swallow frames, without a word to the switches.
    silent: BTreeSet<End>,
    /// Ports without carrier.
    down: BTreeSet<End>,
    pub(crate) hosts: Vec<BedHost>,
    agenda: BinaryHeap<Reverse<(Instant, u64)>>,
    events: HashMap<u64, BedEvent>,
    n_events: u64,
    /// How often each test packet crossed each link.
    crossings: BTreeMap<Crossing, u32>,
    /// How often each host received each test packet.
    arrivals: HashMap<(usize, u64), usize>,
    n_packets: u64,
    /// Packets and bytes that ports have sent, as their devices count them.
    sent: HashMap<End, PortCounters>,
    random: fastrand::Rng,
    /// Most time by which control messages and frames are later than usual.
    pub(crate) jitter: Duration,
    /// Times until which each control channel and link is used, so that order is kept.
    busy: HashMap<(u64, u32), Instant>,
    pub(crate) channel_faults: ChannelFaults,
    /// Most entries of a table of switches that start from now on.
    pub(crate) max_entries: u32,
    pub(crate) filled: FilledTables,
}

impl Bed {
    /// Returns a network of switches 1 to `n`, before any of them has connected.
    pub(crate) fn new(n: u64, seed: u64, config: NetworkConfig, apps: Vec<Box<dyn NetworkApp>>) -> Bed {
        let hub = hub(NetworkController::new(config, apps));
        let mut bed = Bed {
            now: Instant::ZERO + Duration::from_secs(1),
            hub,
            switches: BTreeMap::new(),
            islands: BTreeMap::new(),
            wires: HashMap::new(),
            silent: BTreeSet::new(),
            down: BTreeSet::new(),
            hosts: Vec::new(),
            agenda: BinaryHeap::new(),
            events: HashMap::new(),
            n_events: 0,
            crossings: BTreeMap::new(),
            arrivals: HashMap::new(),
            n_packets: 0,
            sent: HashMap::new(),
            random: fastrand::Rng::with_seed(seed),
            jitter: Duration::ZERO,
            busy: HashMap::new(),
            channel_faults: ChannelFaults::default(),
            max_entries: DatapathConfig::default().max_entries,
            filled: FilledTables::default(),
        };
        for dpid in 1..=n {
            bed.switches.insert(dpid, BedSwitch::new(bed.new_datapath(dpid)));
        }
        bed
    }

    /// Limits the entries of each table of a switch that is not connected.
    pub(crate) fn limit_entries(&mut self, dpid: u64, most: u32) {
        let datapath = datapath(dpid, self.now, most);
        self.switches.get_mut(&dpid).expect("the switch is there").datapath = datapath;
    }

    /// Adds a learning switch without a controller. Returns its number.
    pub(crate) fn island(&mut self) -> u64 {
        let number = FIRST_ISLAND + self.islands.len() as u64;
        self.islands.insert(number, HashMap::new());
        number
    }

    /// Lets a frame come to a switch of others: it learns, and sends to the port of the destination or to all.
    fn cross_island(&mut self, (island, port): End, bytes: &[u8]) {
        let Some(header) = parse_ethernet(bytes) else { return };
        // Frames between bridges stay between them (IEEE 802.1Q-2022, table 8-1).
        if header.dst.to_bits() >> 4 == 0x0018_0c20_0000 {
            return;
        }
        let learned = self.islands.get_mut(&island).expect("it is an island");
        learned.insert(header.src, port);
        let ports = match learned.get(&header.dst).filter(|_| !header.dst.is_multicast()) {
            Some(known) => vec![*known],
            None => (1..=PORTS).collect(),
        };
        ports.into_iter().filter(|to| *to != port).for_each(|to| self.leave((island, to), bytes));
    }

    /// Joins two switches by their next free ports. Returns the ends.
    pub(crate) fn link(&mut self, a: u64, b: u64) -> [End; 2] {
        let free = |bed: &Bed, dpid| {
            (1..FIRST_HOST_PORT).find(|port| !bed.wires.contains_key(&(dpid, *port))).expect("a free port")
        };
        let from = (a, free(self, a));
        let to = (b, free(self, b));
        self.wires.insert(from, to);
        self.wires.insert(to, from);
        [from, to]
    }

    /// Adds a host to a switch. Returns its number.
    pub(crate) fn host(&mut self, dpid: u64) -> usize {
        let number = u32::try_from(self.hosts.len() + 1).expect("few hosts");
        let used = |port: &u32| self.hosts.iter().any(|host| host.at == (dpid, *port));
        let port = (FIRST_HOST_PORT..=PORTS).find(|port| !used(port)).expect("a free port");
        let mac = MacAddr::from_bits(0x0200_0000_0000 | u64::from(number));
        let ip = Ipv4Addr::from(0x0a00_0000 | number);
        let (received, resolved, asked_for) = Default::default();
        self.hosts.push(BedHost { mac, ip, at: (dpid, port), received, resolved, asked_for, is_on: true });
        self.hosts.len() - 1
    }

    /// Connects all switches that are not.
    pub(crate) fn connect_all(&mut self) {
        self.dpids().into_iter().for_each(|dpid| self.connect(dpid));
    }

    pub(crate) fn connect(&mut self, dpid: u64) {
        let now = self.now;
        let switch = self.switches.get_mut(&dpid).expect("the switch is there");
        if switch.connection.is_some() {
            return;
        }
        let id = self.hub.connect(now, format!("switch {dpid}")).expect("there is room");
        let session = Session::switch(session_config(), now);
        switch.connection = Some((id, session));
        switch.session += 1;
        self.move_bytes(dpid);
    }

    /// Ends a switch's connection.
    pub(crate) fn disconnect(&mut self, dpid: u64) {
        let now = self.now;
        let switch = self.switches.get_mut(&dpid).expect("the switch is there");
        if let Some((id, _)) = switch.connection.take() {
            switch.datapath.channel_down(now, CHANNEL);
            self.hub.disconnect(now, id, "the test ends it");
            self.wake();
        }
    }

    /// Starts a switch anew, with empty tables. It is not connected.
    pub(crate) fn restart(&mut self, dpid: u64) {
        self.disconnect(dpid);
        self.filled.forget(dpid);
        let (now, datapath) = (self.now, self.new_datapath(dpid));
        let down: Vec<_> = (1..=PORTS).filter(|port| !self.is_carrier_up((dpid, *port))).collect();
        let switch = self.switches.get_mut(&dpid).expect("the switch is there");
        switch.datapath = datapath;
        for port in down {
            switch.datapath.set_link(now, PortNo(port), false, 0, &mut DatapathOutput::default());
        }
    }

    /// Replaces the controller by a new one, which knows nothing.
    pub(crate) fn restart_controller(&mut self, config: NetworkConfig, apps: Vec<Box<dyn NetworkApp>>) {
        self.replace_controller(NetworkController::new(config, apps));
    }

    /// Replaces the controller by another one, which has seen no switch.
    pub(crate) fn replace_controller(&mut self, network: NetworkController) {
        for switch in self.switches.values_mut() {
            if switch.connection.take().is_some() {
                switch.datapath.channel_down(self.now, CHANNEL);
            }
        }
        self.hub = hub(network);
    }

    /// Takes the carrier of a link's both ends away, or brings it back.
    pub(crate) fn set_link(&mut self, [a, b]: [End; 2], up: bool) {
        for (dpid, port) in [a, b] {
            if up {
                self.down.remove(&(dpid, port))
            } else {
                self.down.insert((dpid, port))
            };
            if let Some(switch) = self.switches.get_mut(&dpid) {
                let mut out = DatapathOutput::default();
                switch.datapath.set_link(self.now, PortNo(port), up, 1_000_000, &mut out);
                self.act(dpid, out);
            }
        }
    }

    /// Lets a link swallow all frames, or carry them again.
    pub(crate) fn set_silent(&mut self, [a, b]: [End; 2], silent: bool) {
        for end in [a, b] {
            if silent {
                self.silent.insert(end)
            } else {
                self.silent.remove(&end)
            };
        }
    }

    fn new_datapath(&self, dpid: u64) -> Datapath {
        datapath(dpid, self.now, self.max_entries)
    }

    pub(crate) fn is_carrier_up(&self, end: End) -> bool {
        !self.down.contains(&end)
    }

    /// Sends a test packet from one host to another. Returns its number.
    pub(crate) fn send(&mut self, from: usize, to: usize) -> u64 {
        let dst = self.hosts[to].mac;
        self.send_to(from, dst)
    }

    /// Sends a test packet from a host to an address. Returns its number.
    pub(crate) fn send_to(&mut self, from: usize, dst: MacAddr) -> u64 {
        self.n_packets += 1;
        let frame = FrameBuilder::ethernet(dst, self.hosts[from].mac)
            .ether_type(TEST_PACKET)
            .payload(&self.n_packets.to_be_bytes())
            .build();
        self.send_frame(self.hosts[from].at, frame);
        self.n_packets
    }

    /// Lets a frame come in by a port.
    pub(crate) fn send_frame(&mut self, at: End, bytes: Vec<u8>) {
        let now = self.now;
        self.schedule(now, BedEvent::Frame { to: at, bytes });
    }

    /// Lets a host announce itself by ARP.
    pub(crate) fn announce(&mut self, host: usize) {
        let BedHost { mac, ip, at, .. } = self.hosts[host].clone();
        let frame = FrameBuilder::ethernet(MacAddr::BROADCAST, mac).arp(1, (mac, ip), (MacAddr::default(), ip)).build();
        self.send_frame(at, frame);
    }

    pub(crate) fn announce_all(&mut self) {
        (0..self.hosts.len()).for_each(|host| self.announce(host));
    }

    /// Returns how often a host received a test packet.
    pub(crate) fn copies(&self, host: usize, number: u64) -> usize {
        self.arrivals.get(&(host, number)).copied().unwrap_or(0)
    }

    fn crossings(&self, number: u64) -> impl Iterator<Item = u32> + '_ {
        self.crossings.range((number, (0, 0))..=(number, (u64::MAX, u32::MAX))).map(|(_, count)| *count)
    }

    /// Returns the most times that a test packet crossed one link in one direction.
    pub(crate) fn most_crossings(&self, number: u64) -> u32 {
        self.crossings(number).max().unwrap_or(0)
    }

    /// Returns the number of link crossings of a test packet.
    pub(crate) fn hops(&self, number: u64) -> u32 {
        self.crossings(number).sum()
    }

    pub(crate) fn datapath(&mut self, dpid: u64) -> &mut Datapath {
        &mut self.switches.get_mut(&dpid).expect("the switch is there").datapath
    }

    pub(crate) fn dpids(&self) -> Vec<u64> {
        self.switches.keys().copied().filter(|dpid| !is_twin(*dpid)).collect()
    }

    /// Returns the entries of a switch.
    pub(crate) fn entries(&mut self, dpid: u64) -> Vec<FlowStats> {
        let request = MultipartRequest { more: false, body: RequestBody::Flow(FlowRequest::all()) };
        let message = Message { xid: 1, body: Body::MultipartRequest(request) };
        let (now, mut out, mut pool) = (self.now, DatapathOutput::default(), FramePool::new(0, 0));
        self.datapath(dpid).handle(now, ChannelId::LOCAL, message, &mut pool, &mut out);
        let entries = out.messages.into_iter().flat_map(|(_, message)| match message.body {
            Body::MultipartReply(MultipartReply { body: ReplyBody::Flow(entries), .. }) => entries,
            other => panic!("{other:?}"),
        });
        entries.collect()
    }

    pub(crate) fn random(&mut self) -> &mut fastrand::Rng {
        &mut self.random
    }

    /// Asks the controller.
    pub(crate) fn ask(&mut self, request: &NetworkRequest) -> NetworkReply {
        let text = serde_json::to_string(request).expect("a request is JSON");
        let reply = self.hub.command(self.now, &text).expect("the application knows requests");
        self.move_all();
        serde_json::from_str(&reply).expect("a reply is JSON")
    }

    pub(crate) fn state(&mut self) -> NetworkState {
        match self.ask(&NetworkRequest::Show) {
            NetworkReply::State(state) => state,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn count(&self, name: &str) -> u64 {
        self.hub.snapshot().app.get(name).copied().unwrap_or_else(|| panic!("no counter {name}"))
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let event = self.agenda.peek().map(|Reverse((at, _))| *at);
            let wake = self.hub.next_wake().map(|at| at.max(self.now));
            let Some(next) = [event, wake].into_iter().flatten().min().filter(|at| *at <= end) else { break };
            self.now = self.now.max(next);
            if wake.is_some_and(|at| at <= self.now) {
                self.wake();
            }
            while let Some(Reverse((at, number))) =
                self.agenda.peek().copied().filter(|Reverse((at, _))| *at <= self.now)
            {
                let _ = at;
                self.agenda.pop();
                if let Some(event) = self.events.remove(&number) {
                    self.handle(event);
                }
            }
        }
        self.now = end;
        for dpid in self.dpids() {
            let mut out = DatapathOutput::default();
            let now = self.now;
            self.datapath(dpid).expire(now, &mut out);
            self.act(dpid, out);
        }
    }

    fn wake(&mut self) {
        self.hub.advance(self.now);
        self.move_all();
    }

    fn schedule(&mut self, at: Instant, event: BedEvent) {
        self.n_events += 1;
        self.events.insert(self.n_events, event);
        self.agenda.push(Reverse((at, self.n_events)));
    }

    /// Returns the time at which something arrives that is sent now over a channel that keeps order.
    fn arrival(&mut self, channel: (u64, u32), delay: Duration) -> Instant {
        let late = self.random.u64(0..=u64::try_from(self.jitter.as_nanos()).unwrap_or(0));
        let at = self.now + delay + Duration::from_nanos(late);
        let free = self.busy.entry(channel).or_insert(Instant::ZERO);
        *free = at.max(*free);
        *free
    }

    fn handle(&mut self, event: BedEvent) {
        match event {
            BedEvent::Frame { to, bytes } if self.islands.contains_key(&to.0) => self.cross_island(to, &bytes),
            BedEvent::Frame { to: (dpid, port), bytes } => {
                let (mut frames, mut pool) = (vec![Frame::from_bytes(&bytes)], FramePool::new(0, 0));
                let (now, mut out) = (self.now, DatapathOutput::default());
                if !self.is_carrier_up((dpid, port)) {
                    return;
                }
                self.datapath(dpid).process(now, PortNo(port), &mut frames, &mut pool, &mut out);
                self.act(dpid, out);
            }
            BedEvent::ToController { dpid, session, bytes } => {
                let Some(switch) = self.switches.get(&dpid).filter(|switch| switch.session == session) else { return };
                let Some((id, _)) = &switch.connection else { return };
                let id = *id;
                self.hub.receive(self.now, id, &bytes);
                self.hub.wake_app(self.now);
                if self.hub.is_ended(id) {
                    self.disconnect(dpid);
                }
                self.move_all();
            }
            BedEvent::ToSwitch { dpid, session, bytes } => self.receive(dpid, session, &bytes),
        }
    }

    fn receive(&mut self, dpid: u64, session: u64, bytes: &[u8]) {
        let now = self.now;
        let Some(switch) = self.switches.get_mut(&dpid).filter(|switch| switch.session == session) else { return };
        let Some((_, session)) = &mut switch.connection else { return };
        session.receive(now, bytes);
        let mut messages = Vec::new();
        while let Some(event) = self.take_session_event(dpid) {
            match event {
                SessionEvent::Up { version, .. } => self.datapath(dpid).channel_up(now, CHANNEL, version),
                SessionEvent::Message(message) => messages.push(message),
                SessionEvent::Closed { reason } => panic!("switch {dpid}: {reason}"),
            }
        }
        for message in self.channel_faults.at_switch(messages, &mut self.random) {
            let (mut out, mut pool) = (DatapathOutput::default(), FramePool::new(0, 0));
            self.datapath(dpid).handle(now, CHANNEL, message, &mut pool, &mut out);
            self.act(dpid, out);
        }
        self.move_bytes(dpid);
    }

    fn take_session_event(&mut self, dpid: u64) -> Option<SessionEvent> {
        self.switches.get_mut(&dpid)?.connection.as_mut()?.1.take_event()
    }

    /// Sends what a datapath has put out.
    pub(crate) fn act(&mut self, dpid: u64, out: DatapathOutput) {
        if let Some((_, session)) = self.switches.get_mut(&dpid).and_then(|switch| switch.connection.as_mut()) {
            for (_, message) in out.messages {
                for _ in 0..self.channel_faults.copies(&message, &mut self.random) {
                    // A message before the handshake is lost, as in a real switch.
                    let _ = session.send(&message);
                }
            }
        }
        for (port, frames) in out.frames {
            let sent = self.sent.entry((dpid, port.0)).or_default();
            sent.tx_packets += u64::try_from(frames.len()).unwrap_or(0);
            sent.tx_bytes += frames.iter().map(|frame| u64::try_from(frame.bytes().len()).unwrap_or(0)).sum::<u64>();
            let sent = *sent;
            self.datapath(dpid).set_port_counters(port, sent);
            for frame in frames {
                self.leave((dpid, port.0), frame.bytes());
            }
        }
        self.move_bytes(dpid);
    }

    /// Lets a frame leave a switch by a port.
    fn leave(&mut self, from: End, bytes: &[u8]) {
        let Some(to) = self.wires.get(&from).copied() else { return self.reach_host(from, bytes) };
        if let Some(number) = test_number(bytes) {
            *self.crossings.entry((number, from)).or_default() += 1;
        }
        if !self.silent.contains(&from) && self.is_carrier_up(from) && self.is_carrier_up(to) {
            let at = self.arrival(from, LINK_DELAY);
            self.schedule(at, BedEvent::Frame { to, bytes: bytes.to_vec() });
        }
    }

    fn reach_host(&mut self, at: End, bytes: &[u8]) {
        let Some(number) = self.hosts.iter().position(|host| host.at == at && host.is_on) else { return };
        let host = &mut self.hosts[number];
        let Some(header) = parse_ethernet(bytes) else { return };
        if header.eth_type != eth_type::ARP {
            if header.dst == host.mac || header.dst.is_multicast() {
                match test_number(bytes) {
                    Some(packet) => *self.arrivals.entry((number, packet)).or_default() += 1,
                    None => host.received.push(bytes.to_vec()),
                }
            }
            return;
        }
        let Ok(parsed) = parse(bytes, PortNo(1)) else { return };
        let ip = |field| Ipv4Addr::from(u32::try_from(parsed.key.get(field)).unwrap_or_default());
        let mac = |field| MacAddr::from_bits(u64::try_from(parsed.key.get(field)).unwrap_or_default());
        let (sender, asked) = ((mac(Field::ArpSha), ip(Field::ArpSpa)), ip(Field::ArpTpa));
        if parsed.key.get(Field::ArpOp) == 1 {
            host.asked_for.push(asked);
        }
        if parsed.key.get(Field::ArpOp) == 1 && asked == host.ip && sender.0 != host.mac {
            let reply = FrameBuilder::ethernet(sender.0, host.mac).arp(2, (host.mac, host.ip), sender).build();
            self.send_frame(at, reply);
        } else if parsed.key.get(Field::ArpOp) == 2 {
            host.resolved.push(sender);
        }
    }

    /// Lets a host ask for the address of another.
    pub(crate) fn ask_arp(&mut self, host: usize, target: IpAddr) {
        let IpAddr::V4(target) = target else { panic!("ARP is for IPv4") };
        let BedHost { mac, ip, at, .. } = self.hosts[host].clone();
        let to = (MacAddr::default(), target);
        self.send_frame(at, FrameBuilder::ethernet(MacAddr::BROADCAST, mac).arp(1, (mac, ip), to).build());
    }

    fn move_all(&mut self) {
        for dpid in self.dpids() {
            self.move_bytes(dpid);
        }
    }

    /// Sends the bytes that both ends of a control channel have for each other.
    fn move_bytes(&mut self, dpid: u64) {
        let Some(switch) = self.switches.get_mut(&dpid) else { return };
        let number = switch.session;
        let Some((id, session)) = &mut switch.connection else { return };
        let up = std::mem::take(session.output());
        let down = self.hub.output(*id).map(std::mem::take).unwrap_or_default();
        if !up.is_empty() {
            let at = self.arrival((dpid, 1000), CONTROL_DELAY);
            self.schedule(at, BedEvent::ToController { dpid, session: number, bytes: up });
        }
        if !down.is_empty() {
            let at = self.arrival((dpid, 1001), CONTROL_DELAY);
            self.schedule(at, BedEvent::ToSwitch { dpid, session: number, bytes: down });
        }
    }
}

fn hub(network: NetworkController) -> ControllerHub {
    ControllerHub::new(Box::new(network), session_config(), 1000, Box::new(|_| {}))
}

fn session_config() -> SessionConfig {
    SessionConfig { versions: vec![Version::V13], echo_interval: Duration::ZERO, ..SessionConfig::default() }
}

pub(crate) fn datapath(dpid: u64, now: Instant, max_entries: u32) -> Datapath {
    let mut datapath = Datapath::new(DatapathConfig { datapath_id: dpid, max_entries, ..DatapathConfig::default() });
    for port in 1..=PORTS {
        let mac = MacAddr::from_bits(0x0600_0000_0000 | dpid << 16 | u64::from(port));
        let desc = PortDesc { curr_speed: 1_000_000, ..PortDesc::new(PortNo(port), mac, format!("p{port}")) };
        datapath.add_port(now, desc, &mut DatapathOutput::default()).expect("a free number");
    }
    datapath
}

fn test_number(frame: &[u8]) -> Option<u64> {
    let header = parse_ethernet(frame)?;
    let bytes = frame.get(14..22)?.try_into().ok()?;
    (header.eth_type == TEST_PACKET).then(|| u64::from_be_bytes(bytes))
}
