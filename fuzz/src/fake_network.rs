//! The controller of a network, with switches that an input plays: whatever they send, the controller stays within its
//! limits, says nothing that cannot be encoded, and waits in between.
use crate::messages::{announcement, datagram, desc, dhcp, port_status};
use std::collections::VecDeque;
use std::time::Duration;
use weir_controller::apps::discovery::DiscoveryConfig;
use weir_controller::{ConnectionId, ControllerApp, ControllerOutbox};
use weir_openflow::model::error::{ErrorType, FlowModFailed, GroupModFailed};
use weir_openflow::model::multipart::{MultipartReply, MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::model::{
    Body, Bytes, ErrorMessage, FeaturesReply, FlowRemoved, FlowRemovedReason, Match, PacketIn, PacketInReason, PortNo,
    TableId,
};
use weir_openflow::{Message, PacketInView, Version, decode, encode};
use weir_packet::Field;
use weir_routing::apps::NetworkFile;
use weir_routing::forwarding::{ForwardingConfig, ForwardingMode};
use weir_routing::hosts::HostConfig;
use weir_routing::intents::IntentConfig;
use weir_routing::request::NetworkReply;
use weir_routing::{NetworkConfig, NetworkController};
use weir_units::{Bps, Instant};

/// Rounds without waiting after which the controller counts as stuck.
const MAX_ROUNDS: usize = 200;
const MAX_OPERATIONS: usize = 60;
/// Calls of the controller while time passes; after them time jumps.
const MAX_WAKES: usize = 30;
/// Time between link probes: long, because probes are most of what an input causes.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);
const SWITCHES: usize = 3;
const PORTS: u32 = 4;
const MAX_HOSTS: usize = 8;
const MAX_INTENTS: usize = 4;
/// Messages that are remembered of what the controller has sent.
const REMEMBERED: usize = 16;

const FILE: &str = r#"
[[access-list]]
name = "no-ssh"
action = "deny"
protocol = "tcp"
destination-port = "22-23"
[router]
mac = "02:00:00:00:ff:01"
gateways = ["10.0.0.254/24", "10.0.1.254/24"]
[dhcp]
address = "10.0.0.254"
[[dhcp.pool]]
subnet = "10.0.0.0/24"
range = "10.0.0.100-10.0.0.103"
router = "10.0.0.254"
[monitor]
interval = "1s"
elephant-rate = "1Mbit/s"
"#;

/// A controller, and switches that answer what they must.
pub struct FakeNetwork {
    controller: NetworkController,
    now: Instant,
    version: Version,
    /// Connections of the switches that are connected.
    up: [Option<ConnectionId>; SWITCHES],
    connections: u64,
    /// True if switches answer barriers.
    confirms: bool,
    /// Barriers that were not answered.
    owed: VecDeque<ConnectionId>,
    /// Frames and changes of entries that the controller has sent lately, with their switches.
    frames: VecDeque<Vec<u8>>,
    changes: VecDeque<(ConnectionId, Body)>,
}

impl FakeNetwork {
    /// Returns a controller with all switches connected. `choice` chooses its mode and the version of OpenFlow.
    pub fn new(choice: u8) -> FakeNetwork {
        let modes = [ForwardingMode::Proactive, ForwardingMode::ReactivePath, ForwardingMode::ReactiveHop];
        let mode = modes[usize::from(choice >> 2) % modes.len()];
        let config = NetworkConfig {
            discovery: DiscoveryConfig { interval: PROBE_INTERVAL, ..DiscoveryConfig::default() },
            hosts: HostConfig {
                max_hosts: MAX_HOSTS,
                max_hosts_per_port: 4,
                max_ports: 10,
                max_checks: 4,
                max_checks_per_port: 2,
                max_blocks: 4,
                ..HostConfig::default()
            },
            forwarding: ForwardingConfig { mode, ecmp: choice & 16 != 0, max_pairs: 4, ..ForwardingConfig::default() },
            intents: IntentConfig {
                most_intents: MAX_INTENTS,
                assumed_rate: Some(Bps(1_000_000_000)),
                labels: 2048..=2051,
                ..IntentConfig::default()
            },
            ..NetworkConfig::default()
        };
        let apps = NetworkFile::parse("fuzz.toml", FILE).and_then(|file| Ok(file.apps().expect("checked")));
        let mut network = FakeNetwork {
            controller: NetworkController::new(config, apps.expect("a file")),
            now: Instant::from_nanos(1),
            version: [Version::V13, Version::V14, Version::V15][usize::from(choice >> 5) % 3],
            up: [None; SWITCHES],
            connections: 0,
            confirms: true,
            owed: VecDeque::new(),
            frames: VecDeque::new(),
            changes: VecDeque::new(),
        };
        (0..SWITCHES).for_each(|switch| network.connect(switch));
        network
    }

    /// Carries the operations of an input out.
    pub fn run(&mut self, mut rest: &[u8]) {
        for _ in 0..MAX_OPERATIONS {
            let [choice, length, more @ ..] = rest else { return };
            let (bytes, more) = more.split_at(usize::from(*length).min(more.len()));
            rest = more;
            self.step(*choice, bytes);
            self.wait_for_controller();
            let state = self.controller.state();
            assert!(state.hosts.len() <= MAX_HOSTS && state.intents.len() <= MAX_INTENTS);
            assert!(state.switches.len() == self.up.iter().flatten().count());
            assert!(state.links.iter().all(|link| link.from < link.to));
        }
    }

    fn step(&mut self, choice: u8, bytes: &[u8]) {
        let switch = usize::from(choice >> 4 & 3) % SWITCHES;
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let port = PortNo(1 + u32::from(choice >> 6));
        match (choice & 15, self.up[switch]) {
            (0, _) => self.pass(Duration::from_millis(u64::from(byte(0)) << (byte(1) & 15))),
            (1, None) => self.connect(switch),
            (1, Some(id)) => {
                self.up[switch] = None;
                self.controller.handle_switch_down(self.now, id);
            }
            (2, _) => self.set_confirms(byte(0) & 1 != 0),
            (3, _) => self.ask(bytes),
            (_, None) => {}
            (4, Some(id)) => self.receive(id, port, TableId(3), bytes.to_vec()),
            (5, Some(id)) => {
                // A link probe, or another packet that the controller has sent, with a byte changed.
                let Some(mut frame) = self.frames.get(usize::from(byte(0))).cloned() else { return };
                if let Some(place) = frame.get_mut(usize::from(byte(1))) {
                    *place ^= byte(2);
                }
                self.receive(id, port, TableId(0), frame);
            }
            (6, Some(id)) => self.tell(id, port_status(port, byte(0))),
            (7, Some(id)) => self.refuse(id, byte(0), byte(1)),
            (8, Some(id)) => self.remove(id, byte(0), byte(1)),
            (9, Some(id)) => {
                if let Ok(message) = decode(bytes) {
                    self.tell(id, message.body);
                }
            }
            (10, Some(id)) => self.receive(id, port, TableId(0), announcement(byte(0), byte(1))),
            (11, Some(id)) => self.receive(id, port, TableId(0), dhcp(byte(0), bytes.get(1..).unwrap_or_default())),
            (12, Some(id)) => self.receive(id, port, TableId(0), datagram(byte(0), byte(1), byte(2))),
            (_, Some(id)) => self.receive(id, port, TableId(0), bytes.to_vec()),
        }
    }

    fn pass(&mut self, time: Duration) {
        // In steps, because nothing wakes late in an engine that works.
        let end = self.now + time;
        for _ in 0..MAX_WAKES {
            match self.controller.next_wake().filter(|at| *at <= end) {
                Some(at) => self.now = self.now.max(at),
                None => break,
            }
            self.wait_for_controller();
        }
        self.now = end;
    }

    /// Lets the controller do what is due, until it waits.
    fn wait_for_controller(&mut self) {
        for round in 0.. {
            assert!(round < MAX_ROUNDS, "the controller asks to be called at once again and again");
            if self.controller.next_wake().is_none_or(|at| at > self.now) {
                return;
            }
            self.call(|controller, now, out| controller.handle_wake(now, out));
        }
    }

    fn connect(&mut self, switch: usize) {
        self.connections += 1;
        let id = ConnectionId(self.connections << 32 | switch as u64);
        let datapath_id = switch as u64 + 1;
        let (n_tables, version) = (4, self.version);
        let features = FeaturesReply { datapath_id, n_tables, ..FeaturesReply::default() };
        self.up[switch] = Some(id);
        self.call(|controller, now, out| controller.handle_switch_up(now, id, version, &features, out));
    }

    fn tell(&mut self, id: ConnectionId, body: Body) {
        self.call(|controller, now, out| controller.handle_message(now, id, Message { xid: 0, body }, out));
    }

    fn receive(&mut self, id: ConnectionId, port: PortNo, table: TableId, data: Vec<u8>) {
        let total_len = u16::try_from(data.len()).expect("short");
        let (matching, data) = (Match::any().with(Field::InPort, port.0), Bytes(data));
        let reason = PacketInReason::NoMatch;
        let packet = PacketIn { buffer_id: None, total_len, reason, table, cookie: 0, matching, data };
        let mut bytes = Vec::new();
        encode(&Message { xid: 0, body: Body::PacketIn(packet) }, self.version, &mut bytes).expect("a short packet");
        let view = PacketInView::read(&bytes).expect("it was encoded").expect("a packet-in");
        self.call(|controller, now, out| _ = controller.handle_packet_in(now, id, &view, out));
    }

    fn ask(&mut self, bytes: &[u8]) {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let mut reply = None;
        self.call(|controller, now, out| reply = controller.handle_command(now, text, out));
        let parsed = reply.map(|reply| serde_json::from_str::<NetworkReply>(&reply));
        assert!(parsed.is_none_or(|parsed| parsed.is_ok()), "a reply that cannot be read");
    }

    fn set_confirms(&mut self, confirms: bool) {
        self.confirms = confirms;
        for id in if confirms { std::mem::take(&mut self.owed) } else { VecDeque::new() } {
            if self.up.contains(&Some(id)) {
                self.tell(id, Body::BarrierReply);
            }
        }
    }

    /// Refuses a change of an entry or a group.
    fn refuse(&mut self, id: ConnectionId, which: u8, full: u8) {
        let Some((_, change)) = self.changes.get(usize::from(which)).cloned() else { return };
        let error = match (&change, full & 1) {
            (Body::GroupMod(_), _) => ErrorType::GroupModFailed(GroupModFailed::OutOfGroups),
            (_, 0) => ErrorType::FlowModFailed(FlowModFailed::Unknown),
            _ => ErrorType::FlowModFailed(FlowModFailed::TableFull),
        };
        let mut data = Vec::new();
        encode(&Message { xid: 0, body: change }, self.version, &mut data).expect("it was encoded before");
        self.tell(id, Body::Error(ErrorMessage { error, data: Bytes(data) }));
    }

    /// Removes an entry that the controller has asked for.
    fn remove(&mut self, id: ConnectionId, which: u8, reason: u8) {
        let Some((_, Body::FlowMod(flow))) = self.changes.get(usize::from(which)).cloned() else { return };
        let reasons = [FlowRemovedReason::IdleTimeout, FlowRemovedReason::HardTimeout, FlowRemovedReason::Delete];
        let removed = FlowRemoved {
            cookie: flow.cookie,
            priority: flow.priority,
            reason: reasons[usize::from(reason) % reasons.len()],
            table: flow.table,
            duration_sec: 1,
            duration_nsec: 0,
            idle_timeout: flow.idle_timeout,
            hard_timeout: flow.hard_timeout,
            packet_count: 0,
            byte_count: 0,
            more: Default::default(),
            matching: flow.matching,
        };
        self.tell(id, Body::FlowRemoved(removed));
    }

    /// Calls the controller, and answers what it asks, until it asks nothing.
    fn call(&mut self, what: impl FnOnce(&mut NetworkController, Instant, &mut ControllerOutbox)) {
        let mut out = ControllerOutbox::default();
        what(&mut self.controller, self.now, &mut out);
        for round in 0.. {
            assert!(round < MAX_ROUNDS, "the controller answers answers without end");
            let answers: Vec<_> = out.take().into_iter().filter_map(|(id, message)| self.answer(id, message)).collect();
            if answers.is_empty() {
                return;
            }
            for (id, body) in answers {
                self.controller.handle_message(self.now, id, Message { xid: 0, body }, &mut out);
            }
        }
    }

    /// Remembers a message of the controller. Returns the answer of the switch.
    fn answer(&mut self, id: ConnectionId, message: Message) -> Option<(ConnectionId, Body)> {
        let encoded = encode(&message, self.version, &mut Vec::new());
        assert!(encoded.is_ok(), "{encoded:?}: {message:?}");
        assert!(self.up.contains(&Some(id)), "a message for a switch that is away");
        let reply = |body| Some((id, Body::MultipartReply(MultipartReply { more: false, body })));
        match message.body {
            Body::BarrierRequest if self.confirms => Some((id, Body::BarrierReply)),
            Body::BarrierRequest => {
                self.owed.push_back(id);
                None
            }
            Body::MultipartRequest(MultipartRequest { body: RequestBody::PortDesc(_), .. }) => {
                reply(ReplyBody::PortDesc((1..=PORTS).map(|port| desc(PortNo(port))).collect()))
            }
            Body::MultipartRequest(MultipartRequest { body: RequestBody::GroupDesc(_), .. }) => {
                reply(ReplyBody::GroupDesc(Vec::new()))
            }
            Body::MultipartRequest(MultipartRequest { body: RequestBody::Flow(_), .. }) => {
                reply(ReplyBody::Flow(Vec::new()))
            }
            Body::PacketOut(packet) => {
                remember(&mut self.frames, packet.data.0);
                None
            }
            body @ (Body::FlowMod(_) | Body::GroupMod(_)) => {
                remember(&mut self.changes, (id, body));
                None
            }
            _ => None,
        }
    }
}

/// Adds a value in front; the oldest goes.
fn remember<T>(kept: &mut VecDeque<T>, value: T) {
    kept.push_front(value);
    kept.truncate(REMEMBERED);
}
