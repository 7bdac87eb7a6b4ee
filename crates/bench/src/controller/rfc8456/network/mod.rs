//! The forwarding-plane test emulator of RFC 8456, section 3.1, without sockets and clock: switches with weir's
//! datapath, links between them in memory, and two traffic generators. Frames pass links in no time.
mod control;

use super::exceptions::InvalidMessages;
use super::frames;
use super::node::{TestChannel, TestChannelStage, TestNode, TouchedChannels, channel_number};
use super::offer::OfferedStream;
use super::requests::AsyncRequests;
use super::seen::{ArrivalLog, SouthboundView};
use super::topology::{PortPeer, PortPlace, TestNetworkPlan};
use crate::controller::engine::ServedChannels;
use std::collections::VecDeque;
use std::time::Duration;
use weir_datapath::DatapathOutput;
use weir_openflow::Version;
use weir_packet::{Frame, FramePool, PortNo};
use weir_units::Instant;

/// Buffers that the pool keeps.
const POOL_FRAMES: usize = 4096;
const POOL_BURST: usize = 32;
/// Unwritten output of a channel from which on no further asynchronous message is added.
const MAX_OUTPUT: usize = 64 << 10;
/// Most frames of a generator, and messages, in one step, so that reading has its turn.
const STEP: usize = 128;
/// Time between two looks at time-outs; and while a command is running, whose end is looked for.
const TIMER_STEP: Duration = Duration::from_millis(10);
const WATCHED_STEP: Duration = Duration::from_millis(3);
/// Twice the crossings of each link that a frame which is flooded has in a network without loops; and the number of
/// frames that entered before anything is judged.
const CROSSINGS: u64 = 2;
const CROSSING_SLACK: u64 = 64;

/// A network of emulated switches.
pub(super) struct TestNetwork {
    pub(super) plan: TestNetworkPlan,
    version: Version,
    peers: Vec<Vec<PortPeer>>,
    nodes: Vec<TestNode>,
    pub(super) channels: Vec<TestChannel>,
    /// Channels of each switch, ended ones too.
    of_node: Vec<Vec<usize>>,
    is_up: Vec<bool>,
    pool: FramePool,
    out: DatapathOutput,
    /// Frames that have arrived at switches.
    moving: VecDeque<(PortPlace, Frame)>,
    batch: Vec<Frame>,
    touched: TouchedChannels,
    pub(super) seen: SouthboundView,
    /// Frames that arrived at TP1 and TP2.
    pub(super) arrivals: [ArrivalLog; 2],
    pub(super) streams: Vec<OfferedStream>,
    pub(super) requests: Option<AsyncRequests>,
    pub(super) invalid: Option<InvalidMessages>,
    /// True if test traffic without a flow entry is dropped instead of asked about (section 5.1.5, prerequisite 3).
    /// Packets by which a controller looks whether a path works still reach it.
    pub(super) drops_misses: bool,
    /// Frames that crossed links, and frames that entered the network; discovery messages count in neither.
    crossings: u64,
    entered: u64,
    /// Last link by which a frame of TP1 left its first switch.
    pub(super) last_link: Option<usize>,
    /// Ask to be called again soon: a command is running.
    pub(super) is_watched: bool,
    step_at: Instant,
}

impl TestNetwork {
    /// Returns a network without channels.
    pub(super) fn new(plan: TestNetworkPlan, version: Version) -> TestNetwork {
        let mut out = DatapathOutput::default();
        let peers = plan.peers();
        let nodes: Vec<TestNode> =
            peers.iter().enumerate().map(|(node, ports)| TestNode::new(node, ports.len(), &mut out)).collect();
        TestNetwork {
            is_up: vec![true; plan.links.len()],
            plan,
            version,
            peers,
            of_node: vec![Vec::new(); nodes.len()],
            nodes,
            channels: Vec::new(),
            pool: FramePool::new(POOL_FRAMES, POOL_BURST),
            out: DatapathOutput::default(),
            moving: VecDeque::new(),
            batch: Vec::new(),
            touched: TouchedChannels::default(),
            seen: SouthboundView::default(),
            arrivals: Default::default(),
            streams: Vec::new(),
            requests: None,
            invalid: None,
            drops_misses: false,
            crossings: 0,
            entered: 0,
            last_link: None,
            is_watched: false,
            step_at: Instant::ZERO,
        }
    }

    /// Adds a channel that has just connected.
    pub(super) fn connect(&mut self, node: usize, now: Instant, is_standby: bool) {
        self.channels.push(TestChannel::new(node, self.version, now, is_standby));
        self.of_node[node].push(self.channels.len() - 1);
        self.touched.add(self.channels.len() - 1);
    }

    /// Returns the number of channels that are set up.
    pub(super) fn set_up(&self) -> usize {
        self.channels.iter().filter(|channel| channel.stage == TestChannelStage::SetUp).count()
    }

    /// Returns the reason of the first connection that ended and was not renewed; `None` if none has.
    pub(super) fn ended(&self) -> Option<&str> {
        let is_ended = |channel: &&TestChannel| channel.stage == TestChannelStage::Ended && !channel.is_replaced;
        self.channels.iter().find(is_ended).map(|channel| channel.reason.as_str())
    }

    /// Returns true if each direction of each link has had a discovery message.
    pub(super) fn is_discovered(&self) -> bool {
        let ends = self.plan.links.iter().flatten();
        !self.plan.links.is_empty() && ends.into_iter().all(|end| self.seen.probed.contains(end))
    }

    /// Returns the number of directions of links that had a discovery message.
    pub(super) fn discovered_directions(&self) -> usize {
        self.plan.links.iter().flatten().filter(|end| self.seen.probed.contains(end)).count()
    }

    /// Returns true if frames go round in circles: the controller floods in a network with loops.
    pub(super) fn is_storming(&self) -> bool {
        let links = self.plan.links.len() as u64;
        self.crossings > (self.entered + CROSSING_SLACK) * links.max(1) * CROSSINGS
    }

    /// Brings a link up or down. Both switches tell their controllers.
    pub(super) fn set_link(&mut self, now: Instant, link: usize, is_up: bool) {
        self.is_up[link] = is_up;
        for end in self.plan.links[link] {
            self.nodes[end.node].set_link(now, end.port, is_up, &mut self.out);
            self.deliver(now, end.node);
        }
        self.settle(now);
    }

    /// Lets a frame enter at a generator's port.
    fn enter(&mut self, now: Instant, generator: usize, frame: &[u8]) {
        let mut buffer = self.pool.take(frame.len());
        buffer.assign(frame);
        self.entered += 1;
        self.moving.push_back((self.plan.generators[generator], buffer));
        self.settle(now);
    }

    /// Moves frames until none is on the way.
    fn settle(&mut self, now: Instant) {
        while let Some((place, frame)) = self.moving.pop_front() {
            self.batch.push(frame);
            let node = &mut self.nodes[place.node];
            node.datapath.process(now, PortNo(place.port), &mut self.batch, &mut self.pool, &mut self.out);
            node.expire_at = node.expire_at.min(now);
            self.deliver(now, place.node);
        }
    }

    /// Passes on a switch's output: frames to links and generators, messages to channels.
    fn deliver(&mut self, now: Instant, node: usize) {
        let mut out = std::mem::take(&mut self.out);
        for (port, list) in &mut out.frames {
            for frame in list.drain(..) {
                self.transmit(now, PortPlace { node, port: port.0 }, frame);
            }
        }
        for (id, message) in out.messages.drain(..) {
            if let Some(number) = channel_number(id) {
                self.send(now, number, &message);
            }
        }
        out.limited.clear();
        // The datapath itself obeys a port's configuration.
        out.port_admin.clear();
        self.out = out;
    }

    fn transmit(&mut self, now: Instant, from: PortPlace, frame: Frame) {
        let peer = self.peers[from.node].get(from.port as usize - 1).copied().unwrap_or(PortPeer::Nothing);
        match peer {
            PortPeer::Link(link, to) if self.is_up[link] => {
                if !frames::is_discovery(frame.bytes()) {
                    self.crossings += 1;
                    if from.node == self.plan.generators[0].node && frames::number(frame.bytes()).is_some() {
                        self.last_link = Some(link);
                    }
                    if self.is_storming() {
                        return self.pool.give(frame);
                    }
                }
                self.moving.push_back((to, frame));
            }
            PortPeer::Generator(generator) => {
                self.arrivals[generator].take(now, frame.bytes());
                self.pool.give(frame);
            }
            PortPeer::Link(..) | PortPeer::Nothing => self.pool.give(frame),
        }
    }

    /// Sends the frames of the generators that are due.
    fn send_traffic(&mut self, now: Instant) {
        let mut streams = std::mem::take(&mut self.streams);
        for stream in &mut streams {
            for _ in 0..STEP {
                let Some(frame) = stream.next(now, &self.arrivals[1 - stream.generator]) else { break };
                self.enter(now, stream.generator, &frame);
            }
        }
        self.streams = streams;
    }
}

impl ServedChannels for TestNetwork {
    fn receive(&mut self, number: usize, now: Instant, bytes: &[u8]) {
        self.channels[number].session.receive(now, bytes);
        self.take_events(now, number);
    }

    fn close(&mut self, number: usize, now: Instant, reason: &str) {
        self.end(now, number, reason);
        self.touched.add(number);
    }

    fn refill(&mut self, _number: usize, _now: Instant) {}

    fn step(&mut self, now: Instant) {
        self.send_traffic(now);
        self.send_requests(now);
        self.send_invalid(now);
        if now < self.step_at {
            return;
        }
        // Time-outs of sessions and entries are no finer than this.
        self.step_at = now + if self.is_watched { WATCHED_STEP } else { TIMER_STEP };
        for number in 0..self.channels.len() {
            if self.channels[number].session.deadline().is_some_and(|at| at <= now) {
                self.channels[number].session.poll(now);
                self.take_events(now, number);
            }
        }
        for node in 0..self.nodes.len() {
            if self.nodes[node].expire_at <= now {
                let at = &mut self.nodes[node];
                at.expire_at = at.datapath.expire(now, &mut self.out).unwrap_or(Instant::FAR);
                self.deliver(now, node);
            }
        }
        self.settle(now);
    }

    fn next_wake(&self) -> Option<Instant> {
        let streams = self.streams.iter().filter_map(OfferedStream::due);
        let requests = self.requests.as_ref().and_then(AsyncRequests::due);
        let invalid = self.invalid.as_ref().map(InvalidMessages::due);
        streams.chain(requests).chain(invalid).chain([self.step_at]).min()
    }

    fn take_touched(&mut self) -> Vec<usize> {
        self.touched.take()
    }

    fn output(&mut self, number: usize) -> &mut Vec<u8> {
        self.channels[number].session.output()
    }

    fn is_ended(&self, number: usize) -> bool {
        self.channels[number].stage == TestChannelStage::Ended
    }
}
