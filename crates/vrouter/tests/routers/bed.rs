//! A network in virtual time: datapaths with virtual routers under a controller, links, and hosts that answer.
use crate::host::BedHost;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;
use weir_controller::{ConnectionId, ControllerHub};
use weir_datapath::{ChannelId, Datapath, DatapathConfig, DatapathOutput};
use weir_openflow::Version;
use weir_openflow::model::multipart::{
    FlowRequest, FlowStats, MultipartReply, MultipartRequest, ReplyBody, RequestBody,
};
use weir_openflow::model::{Body, FlowCommand, Message, PortDesc, PortNo};
use weir_openflow::session::{Session, SessionConfig, SessionEvent};
use weir_packet::craft::FrameBuilder;
use weir_packet::{Frame, FramePool, MacAddr, checksum};
use weir_units::Instant;
use weir_vrouter::app::VirtualRouterStatus;
use weir_vrouter::entries::RouterPlacement;
use weir_vrouter::{VirtualRouterApp, VirtualRouterSettings};

const CHANNEL: ChannelId = ChannelId(1);
/// Limit above the steps of any exchange in these tests, so that a loop fails instead of hanging.
const MOST_STEPS: usize = 10_000;

/// Port of a switch.
pub(crate) type End = (u64, u32);

struct BedSwitch {
    datapath: Datapath,
    connection: Option<(ConnectionId, Session)>,
}

pub(crate) struct Bed {
    pub(crate) now: Instant,
    hub: ControllerHub,
    switches: BTreeMap<u64, BedSwitch>,
    wires: HashMap<End, End>,
    pub(crate) hosts: Vec<BedHost>,
    on_wires: VecDeque<(End, Vec<u8>)>,
    /// Messages that switches received, of a kind that tests ask for.
    pub(crate) flow_mods: u64,
}

impl Bed {
    /// Returns switches 1 to `n`, which are not connected yet.
    pub(crate) fn new(n: u64) -> Bed {
        let app = Box::new(VirtualRouterApp::new(VirtualRouterSettings::default()));
        let hub = ControllerHub::new(app, SessionConfig::default(), 8, Box::new(|_| {}));
        let now = Instant::from_nanos(1);
        let switch = |dpid| BedSwitch { datapath: datapath(now, dpid), connection: None };
        let switches = (1..=n).map(|dpid| (dpid, switch(dpid))).collect();
        let (wires, hosts, on_wires) = Default::default();
        Bed { now, hub, switches, wires, hosts, on_wires, flow_mods: 0 }
    }

    pub(crate) fn wire(&mut self, a: End, b: End) {
        self.wires.insert(a, b);
        self.wires.insert(b, a);
    }

    /// Adds a host with its addresses and the router that it uses. Returns its number.
    pub(crate) fn host(&mut self, at: End, vlan: Option<u16>, addresses: &[&str], gateways: &[&str]) -> usize {
        let number = u8::try_from(self.hosts.len() + 1).unwrap();
        self.hosts.push(BedHost::new(number, at, vlan, addresses, gateways));
        self.hosts.len() - 1
    }

    pub(crate) fn connect(&mut self, dpid: u64) {
        let id = self.hub.connect(self.now, format!("switch {dpid}")).unwrap();
        let config = SessionConfig { versions: vec![Version::V13], ..SessionConfig::default() };
        let switch = self.switches.get_mut(&dpid).unwrap();
        switch.connection = Some((id, Session::switch(config, self.now)));
        self.settle();
    }

    pub(crate) fn disconnect(&mut self, dpid: u64) {
        let (id, _) = self.switches.get_mut(&dpid).unwrap().connection.take().unwrap();
        self.hub.disconnect(self.now, id, "the test wants it");
        self.settle();
    }

    /// Gives a command to the application. Returns its answer.
    pub(crate) fn command(&mut self, verb: &str, content: &Value) -> Value {
        let answer = self.hub.command(self.now, &format!("vrouter {verb} {content}")).unwrap();
        self.settle();
        serde_json::from_str(&answer).unwrap()
    }

    /// Adds a router, which must be accepted.
    pub(crate) fn router(&mut self, dpid: u64, placement: RouterPlacement, config: &Value) {
        let answer = self.command("add", &json!({"dpid": dpid, "placement": placement, "config": config}));
        assert_eq!(answer.get("error"), None, "{answer}");
    }

    /// Returns the state of a router.
    pub(crate) fn status(&mut self, dpid: u64, number: u16) -> VirtualRouterStatus {
        let all: Vec<VirtualRouterStatus> =
            serde_json::from_value(self.command("status", &Value::String(String::new()))).unwrap();
        all.into_iter().find(|status| (status.id.dpid, status.id.number) == (dpid, number)).unwrap()
    }

    pub(crate) fn count(&mut self, dpid: u64, number: u16, name: &str) -> u64 {
        self.status(dpid, number).counters[name]
    }

    /// Adds an entry of another user of a switch.
    pub(crate) fn foreign(&mut self, dpid: u64, text: &str) {
        let flow = weir_openflow::text::parse_flow(text, FlowCommand::Add).unwrap();
        self.tell(dpid, Body::FlowMod(flow));
    }

    /// Gives a message to a switch from outside the controller. Returns the answers.
    pub(crate) fn tell(&mut self, dpid: u64, body: Body) -> Vec<Body> {
        let (mut out, mut pool) = (DatapathOutput::default(), FramePool::new(0, 0));
        let datapath = &mut self.switches.get_mut(&dpid).unwrap().datapath;
        datapath.handle(self.now, ChannelId::LOCAL, Message { xid: 1, body }, &mut pool, &mut out);
        let (own, others): (Vec<_>, Vec<_>) =
            out.messages.into_iter().partition(|(channel, _)| *channel == ChannelId::LOCAL);
        self.punt(dpid, others);
        own.into_iter().map(|(_, message)| message.body).collect()
    }

    /// Returns the entries of a switch.
    pub(crate) fn entries(&mut self, dpid: u64) -> Vec<FlowStats> {
        let request = MultipartRequest { more: false, body: RequestBody::Flow(FlowRequest::all()) };
        let answers = self.tell(dpid, Body::MultipartRequest(request));
        let entries = answers.into_iter().flat_map(|answer| match answer {
            Body::MultipartReply(MultipartReply { body: ReplyBody::Flow(entries), .. }) => entries,
            other => panic!("{other:?}"),
        });
        entries.collect()
    }

    /// Lets a host send a packet to an address, behind its gateway. The frame begins with both addresses of Ethernet
    /// and IP. A gateway that does not answer gets nothing.
    pub(crate) fn send(&mut self, host: usize, to: &str, packet: impl FnOnce(FrameBuilder) -> FrameBuilder) {
        let to: IpAddr = to.parse().unwrap();
        if self.hosts[host].next_hop(to).is_none() {
            let question = self.hosts[host].question_for(to);
            self.leave_host(host, &question);
        }
        let Some(gateway) = self.hosts[host].next_hop(to) else { return };
        let frame = packet(self.hosts[host].packet_to(gateway, to)).build();
        self.leave_host(host, &frame);
    }

    /// Lets a host send an echo request. Returns true if it is answered.
    pub(crate) fn ping(&mut self, host: usize, to: &str) -> bool {
        let is_ipv4 = to.parse::<IpAddr>().unwrap().is_ipv4();
        let (request, reply) = if is_ipv4 { (8, 0) } else { (128, 129) };
        self.hosts[host].received.clear();
        self.send(host, to, |frame| frame.icmp(request, 0, [0, 7, 0, 1]).payload(b"ping"));
        let to: IpAddr = to.parse().unwrap();
        self.hosts[host].icmp().iter().any(|(source, kind, _)| (*source, *kind) == (to, reply))
    }

    /// Lets a host send a frame without tag.
    pub(crate) fn leave_host(&mut self, host: usize, frame: &[u8]) {
        let (at, frame) = (self.hosts[host].at, self.hosts[host].tagged(frame));
        self.on_wires.push_back((at, frame));
        self.settle();
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(wake) = self.hub.app_wake().filter(|wake| *wake <= end) {
            self.now = self.now.max(wake);
            self.settle();
        }
        self.now = end;
        self.settle();
    }

    /// Moves frames and messages until all is quiet.
    pub(crate) fn settle(&mut self) {
        for _ in 0..MOST_STEPS {
            self.hub.wake_app(self.now);
            let dpids: Vec<u64> = self.switches.keys().copied().collect();
            let busy = dpids.into_iter().filter(|dpid| self.exchange(*dpid)).count();
            if let Some((to, frame)) = self.on_wires.pop_front() {
                self.arrive(to, &frame);
            } else if busy == 0 {
                return;
            }
        }
        panic!("the network never comes to rest");
    }

    /// Lets a frame arrive at a switch.
    fn arrive(&mut self, (dpid, port): End, frame: &[u8]) {
        let (mut out, mut pool) = (DatapathOutput::default(), FramePool::new(0, 0));
        let switch = self.switches.get_mut(&dpid).unwrap();
        switch.datapath.process(self.now, PortNo(port), &mut vec![Frame::from_bytes(frame)], &mut pool, &mut out);
        self.act(dpid, out);
    }

    fn act(&mut self, dpid: u64, out: DatapathOutput) {
        self.punt(dpid, out.messages);
        for (port, frame) in
            out.frames.into_iter().flat_map(|(port, frames)| frames.into_iter().map(move |f| (port, f)))
        {
            let at = (dpid, port.0);
            assert_eq!(checksum::verify(frame.bytes()), Ok(()), "{at:?}");
            if let Some(peer) = self.wires.get(&at) {
                self.on_wires.push_back((*peer, frame.bytes().to_vec()));
            }
            for host in self.hosts.iter_mut().filter(|host| host.at == at) {
                let answers = host.receive(frame.bytes());
                self.on_wires.extend(answers.into_iter().map(|answer| (at, answer)));
            }
        }
    }

    fn punt(&mut self, dpid: u64, messages: Vec<(ChannelId, Message)>) {
        let Some((_, session)) = &mut self.switches.get_mut(&dpid).unwrap().connection else { return };
        for (channel, message) in messages {
            assert_eq!(channel, CHANNEL);
            session.send(&message).unwrap();
        }
    }

    /// Moves bytes between a switch and the controller. Returns true if there were any.
    fn exchange(&mut self, dpid: u64) -> bool {
        let Some((id, session)) = &mut self.switches.get_mut(&dpid).unwrap().connection else { return false };
        let up = std::mem::take(session.output());
        self.hub.receive(self.now, *id, &up);
        let down = self.hub.output(*id).map(std::mem::take).unwrap_or_default();
        session.receive(self.now, &down);
        let mut events = Vec::new();
        while let Some(event) = session.take_event() {
            events.push(event);
        }
        for event in events {
            let (mut out, mut pool) = (DatapathOutput::default(), FramePool::new(0, 0));
            let datapath = &mut self.switches.get_mut(&dpid).unwrap().datapath;
            match event {
                SessionEvent::Up { version, .. } => datapath.channel_up(self.now, CHANNEL, version),
                SessionEvent::Message(message) => {
                    self.flow_mods += u64::from(matches!(message.body, Body::FlowMod(_)));
                    datapath.handle(self.now, CHANNEL, message, &mut pool, &mut out);
                }
                SessionEvent::Closed { reason } => panic!("switch {dpid}: {reason}"),
            }
            self.act(dpid, out);
        }
        !up.is_empty() || !down.is_empty()
    }
}

fn datapath(now: Instant, dpid: u64) -> Datapath {
    let mut datapath = Datapath::new(DatapathConfig { datapath_id: dpid, n_buffers: 0, ..DatapathConfig::default() });
    for port in 1..=9 {
        let mac = MacAddr::from_bits(0x0200_0000_ff00 | u64::from(port));
        let desc = PortDesc::new(PortNo(port), mac, format!("p{port}"));
        datapath.add_port(now, desc, &mut DatapathOutput::default()).unwrap();
    }
    datapath
}
