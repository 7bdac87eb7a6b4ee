//! A scripted controller for tests, in virtual time: it discovers links by LLDP if asked to, and it is a learning
//! switch that provisions flow entries.
use super::frames;
use super::network::TestNetwork;
use crate::controller::engine::ServedChannels as _;
use std::collections::HashMap;
use std::time::Duration;
use weir_openflow::model::{
    Action, Bytes, FlowMod, Instruction, Match, PacketIn, PacketOut, PortNo,
    port::{PortStatus, bits},
};
use weir_openflow::session::{Session, SessionConfig, SessionEvent};
use weir_openflow::{Body, Message, Version};
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;
use weir_packet::{Field, MacAddr};
use weir_units::Instant;

/// The scripted controller, with a session for each channel of the network.
pub(super) struct ScriptedLearner {
    version: Version,
    discovers: bool,
    sessions: Vec<Session>,
    /// Ports of addresses by channel.
    learned: HashMap<(usize, MacAddr), PortNo>,
}

/// Network and controller, which exchange bytes in virtual time.
pub(super) struct ScriptedRun {
    pub(super) network: TestNetwork,
    pub(super) controller: ScriptedLearner,
    pub(super) now: Instant,
    /// Ports of each switch.
    ports: u32,
}

impl ScriptedRun {
    /// Connects all switches of a network.
    pub(super) fn new(mut network: TestNetwork, version: Version, discovers: bool) -> ScriptedRun {
        let now = Instant::from_nanos(1_000_000_000);
        let config =
            SessionConfig { versions: vec![version], echo_interval: Duration::ZERO, ..SessionConfig::default() };
        let nodes = network.plan.nodes;
        (0..nodes).for_each(|node| network.connect(node, now, false));
        let sessions = (0..nodes).map(|_| Session::controller(config.clone(), now)).collect();
        let ports = network.plan.peers().iter().map(Vec::len).max().unwrap_or(0);
        let controller = ScriptedLearner { version, discovers, sessions, learned: HashMap::new() };
        ScriptedRun { network, controller, now, ports: u32::try_from(ports).unwrap() }
    }

    /// Lets the controller send discovery messages from all switches.
    pub(super) fn probe(&mut self) {
        (0..self.network.channels.len()).for_each(|channel| self.controller.probe(channel, self.ports));
    }

    /// Runs both for so many milliseconds.
    pub(super) fn run(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds {
            self.network.step(self.now);
            self.exchange();
            self.now += Duration::from_millis(1);
        }
    }

    /// Exchanges bytes until both are silent.
    fn exchange(&mut self) {
        loop {
            let mut is_silent = true;
            for channel in 0..self.network.channels.len() {
                let to_controller = std::mem::take(self.network.output(channel));
                let session = &mut self.controller.sessions[channel];
                session.receive(self.now, &to_controller);
                self.controller.take_events(channel, self.ports);
                let to_switch = std::mem::take(self.controller.sessions[channel].output());
                if !to_switch.is_empty() {
                    self.network.receive(channel, self.now, &to_switch);
                }
                is_silent &= to_controller.is_empty() && to_switch.is_empty();
            }
            self.network.take_touched();
            if is_silent {
                return;
            }
        }
    }
}

impl ScriptedLearner {
    fn take_events(&mut self, channel: usize, ports: u32) {
        while let Some(event) = self.sessions[channel].take_event() {
            match event {
                SessionEvent::Up { .. } => self.set_up(channel),
                SessionEvent::Message(Message { body: Body::PacketIn(packet), .. }) => self.answer(channel, &packet),
                SessionEvent::Message(Message { body: Body::PortStatus(PortStatus { desc, .. }), .. }) => {
                    if desc.state & bits::LINK_DOWN != 0 && self.discovers {
                        self.probe(channel, ports);
                    }
                }
                SessionEvent::Message(_) => {}
                SessionEvent::Closed { reason } => panic!("the channel closed: {reason}"),
            }
        }
    }

    fn send(&mut self, channel: usize, body: Body) {
        self.sessions[channel].send(&Message { xid: 7, body }).unwrap();
    }

    fn set_up(&mut self, channel: usize) {
        if self.version != Version::V10 {
            let to_controller = vec![Instruction::ApplyActions(vec![Action::to_controller()])];
            self.send(channel, Body::FlowMod(FlowMod::add(0, Match::any(), to_controller)));
        }
    }

    /// Sends a discovery message to each port of a switch.
    fn probe(&mut self, channel: usize, ports: u32) {
        for port in 1..=ports {
            let frame = FrameBuilder::ethernet(MacAddr::NEAREST_BRIDGE, MacAddr([2; 6]))
                .ether_type(eth_type::LLDP)
                .payload(&[0; 46])
                .build();
            let body = packet_out(PortNo::CONTROLLER, PortNo(port), frame);
            self.send(channel, body);
        }
    }

    fn answer(&mut self, channel: usize, packet: &PacketIn) {
        let frame = &packet.data.0;
        if frames::is_discovery(frame) {
            return;
        }
        let in_port = packet.in_port().unwrap();
        let address = |at: usize| MacAddr(frame[at..at + 6].try_into().unwrap());
        let (dst, src) = (address(0), address(6));
        self.learned.insert((channel, src), in_port);
        let out = self.learned.get(&(channel, dst)).copied();
        if let Some(port) = out {
            let matching = Match::any().with(Field::EthDst, dst.to_bits()).with(Field::EthSrc, src.to_bits());
            let output = vec![Instruction::ApplyActions(vec![Action::output(port)])];
            self.send(channel, Body::FlowMod(FlowMod::add(10, matching, output)));
        }
        let body = packet_out(in_port, out.unwrap_or(PortNo::FLOOD), frame.clone());
        self.send(channel, body);
    }
}

fn packet_out(in_port: PortNo, port: PortNo, frame: Vec<u8>) -> Body {
    Body::PacketOut(PacketOut {
        buffer_id: None,
        in_port,
        matching: Match::any(),
        actions: vec![Action::output(port)],
        data: Bytes(frame),
    })
}
