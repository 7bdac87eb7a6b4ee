//! Runs switches, wires and a controller in virtual time: the real datapath, sessions and codec, without threads or
//! sockets.
use std::collections::HashMap;
use std::time::Duration;
use weir_controller::apps::learning::{LearningConfig, LearningSwitch};
use weir_controller::status::ControllerOverview;
use weir_controller::{ConnectionId, ControllerApp, ControllerHub, ControllerSnapshot};
use weir_datapath::{ChannelId, Datapath, DatapathConfig, DatapathOutput};
use weir_openflow::model::multipart::{
    FlowRequest, FlowStats, MultipartReply, MultipartRequest, ReplyBody, RequestBody,
};
use weir_openflow::model::{Body, PortDesc, PortNo};
use weir_openflow::session::{Session, SessionConfig, SessionEvent};
use weir_openflow::{Message, Version};
use weir_packet::{Frame, FramePool, MacAddr};
use weir_units::Instant;

const CHANNEL: ChannelId = ChannelId(1);
/// Limit above the rounds of any exchange in these tests, so that a loop fails instead of hanging.
const ROUNDS_MOST: usize = 1000;

/// Frame that left a switch by a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Left {
    /// Datapath id of the switch, from 1.
    pub(crate) switch: u64,
    pub(crate) port: u32,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) struct Network {
    pub(crate) now: Instant,
    pub(crate) hub: ControllerHub,
    switches: Vec<Switch>,
    wires: HashMap<(u64, u32), (u64, u32)>,
    left: Vec<Left>,
    on_wires: Vec<Vec<u8>>,
}

struct Switch {
    dpid: u64,
    id: ConnectionId,
    session: Session,
    datapath: Datapath,
}

impl Network {
    /// Returns a network of switches with ports 1 to 9 under a learning controller.
    pub(crate) fn new(version: Version, n_buffers: u32, switches: u64, config: LearningConfig) -> Network {
        Network::with_app(version, n_buffers, switches, Box::new(LearningSwitch::new(config)))
    }

    /// Returns a network of switches with ports 1 to 9 under a controller with an application.
    pub(crate) fn with_app(version: Version, n_buffers: u32, switches: u64, app: Box<dyn ControllerApp>) -> Network {
        let session = SessionConfig { versions: vec![version], ..SessionConfig::default() };
        let hub = ControllerHub::new(app, session, 8, Box::new(|_| {}));
        let (now, wires) = (Instant::from_nanos(1), HashMap::new());
        let mut network = Network { now, hub, switches: Vec::new(), wires, left: Vec::new(), on_wires: Vec::new() };
        for dpid in 1..=switches {
            network.add_switch(dpid, version, n_buffers);
        }
        network.settle();
        assert_eq!(network.snapshot().switches.len() as u64, switches);
        network
    }

    fn add_switch(&mut self, dpid: u64, version: Version, n_buffers: u32) {
        let mut datapath = Datapath::new(DatapathConfig { datapath_id: dpid, n_buffers, ..DatapathConfig::default() });
        for port in 1..=9 {
            datapath.add_port(self.now, desc(port), &mut DatapathOutput::default()).unwrap();
        }
        let id = self.hub.connect(self.now, format!("switch {dpid}")).unwrap();
        let config = SessionConfig { versions: vec![version], ..SessionConfig::default() };
        self.switches.push(Switch { dpid, id, session: Session::switch(config, self.now), datapath });
    }

    /// Joins two ports.
    pub(crate) fn wire(&mut self, a: (u64, u32), b: (u64, u32)) {
        self.wires.insert(a, b);
        self.wires.insert(b, a);
    }

    /// Takes the cable between two ports away.
    pub(crate) fn unwire(&mut self, a: (u64, u32), b: (u64, u32)) {
        self.wires.remove(&a);
        self.wires.remove(&b);
    }

    /// Sends a station's frame. Returns the frames that reach stations.
    pub(crate) fn send(&mut self, switch: u64, port: u32, bytes: &[u8]) -> Vec<Left> {
        self.arrive(switch, port, bytes);
        self.settle();
        std::mem::take(&mut self.left)
    }

    /// Returns the frames that crossed wires between switches since the last call.
    pub(crate) fn crossed(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.on_wires)
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        for at in 0..self.switches.len() {
            let mut out = DatapathOutput::default();
            self.switches[at].datapath.expire(self.now, &mut out);
            self.act(at, out);
        }
        self.settle();
    }

    pub(crate) fn set_link(&mut self, switch: u64, port: u32, up: bool) {
        let (at, mut out) = (self.at(switch), DatapathOutput::default());
        self.switches[at].datapath.set_link(self.now, PortNo(port), up, 0, &mut out);
        self.act(at, out);
        self.settle();
    }

    pub(crate) fn status(&self) -> ControllerOverview {
        self.hub.status(self.now)
    }

    pub(crate) fn snapshot(&self) -> ControllerSnapshot {
        self.hub.snapshot()
    }

    /// Returns an application counter by name.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.snapshot().app[name]
    }

    /// Returns the entries of a switch without the table-miss entry.
    pub(crate) fn entries(&mut self, switch: u64) -> Vec<FlowStats> {
        let request = MultipartRequest { more: false, body: RequestBody::Flow(FlowRequest::all()) };
        let message = Message { xid: 1, body: Body::MultipartRequest(request) };
        let (at, mut out) = (self.at(switch), DatapathOutput::default());
        let mut pool = FramePool::new(0, 0);
        self.switches[at].datapath.handle(self.now, ChannelId::LOCAL, message, &mut pool, &mut out);
        let replies = out.messages.into_iter().flat_map(|(_, message)| match message.body {
            Body::MultipartReply(MultipartReply { body: ReplyBody::Flow(entries), .. }) => entries,
            other => panic!("{other:?}"),
        });
        replies.filter(|entry| entry.priority > 0).collect()
    }

    fn at(&self, switch: u64) -> usize {
        self.switches.iter().position(|known| known.dpid == switch).expect("the switch is there")
    }

    fn arrive(&mut self, switch: u64, port: u32, bytes: &[u8]) {
        let (at, mut out) = (self.at(switch), DatapathOutput::default());
        let mut frames = vec![Frame::from_bytes(bytes)];
        let mut pool = FramePool::new(0, 0);
        self.switches[at].datapath.process(self.now, PortNo(port), &mut frames, &mut pool, &mut out);
        self.act(at, out);
    }

    /// Sends a datapath's output.
    fn act(&mut self, at: usize, out: DatapathOutput) {
        let switch = &mut self.switches[at];
        for (channel, message) in out.messages {
            assert_eq!(channel, CHANNEL);
            switch.session.send(&message).expect("the session takes all that is sent here");
        }
        let dpid = switch.dpid;
        for (port, frame) in
            out.frames.into_iter().flat_map(|(port, frames)| frames.into_iter().map(move |f| (port, f)))
        {
            match self.wires.get(&(dpid, port.0)).copied() {
                Some((peer, peer_port)) => {
                    self.on_wires.push(frame.bytes().to_vec());
                    self.arrive(peer, peer_port, frame.bytes());
                }
                None => self.left.push(Left { switch: dpid, port: port.0, bytes: frame.bytes().to_vec() }),
            }
        }
    }

    /// Moves bytes between switches and controller until none are left.
    fn settle(&mut self) {
        for _ in 0..ROUNDS_MOST {
            self.hub.wake_app(self.now);
            let busy = (0..self.switches.len()).filter(|at| self.exchange(*at)).count();
            if busy == 0 {
                return;
            }
        }
        panic!("switches and controller never come to rest");
    }

    fn exchange(&mut self, at: usize) -> bool {
        let switch = &mut self.switches[at];
        let up = std::mem::take(switch.session.output());
        self.hub.receive(self.now, switch.id, &up);
        let down = self.hub.output(switch.id).map(std::mem::take).unwrap_or_default();
        switch.session.receive(self.now, &down);
        while let Some(event) = self.switches[at].session.take_event() {
            let (mut out, mut pool) = (DatapathOutput::default(), FramePool::new(0, 0));
            let datapath = &mut self.switches[at].datapath;
            match event {
                SessionEvent::Up { version, .. } => datapath.channel_up(self.now, CHANNEL, version),
                SessionEvent::Message(message) => datapath.handle(self.now, CHANNEL, message, &mut pool, &mut out),
                SessionEvent::Closed { reason } => panic!("switch {}: {reason}", self.switches[at].dpid),
            }
            self.act(at, out);
        }
        !up.is_empty() || !down.is_empty()
    }
}

fn desc(port: u32) -> PortDesc {
    PortDesc::new(PortNo(port), MacAddr::from_bits(0x0200_0000_ff00 | u64::from(port)), format!("p{port}"))
}
