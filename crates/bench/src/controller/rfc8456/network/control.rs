//! Control channels of the emulated switches: what is sent on them, what is received, and what both say.
use super::{MAX_OUTPUT, STEP, TestNetwork};
use crate::controller::rfc8456::frames;
use crate::controller::rfc8456::node::{TestChannelStage, channel_id};
use crate::controller::rfc8456::requests::target_announcement;
use crate::controller::rfc8456::topology::PortPlace;
use weir_openflow::model::{Action, FlowCommand};
use weir_openflow::session::SessionEvent;
use weir_openflow::{Body, Message};
use weir_units::Instant;

impl TestNetwork {
    /// Lets each switch ask about a packet from its target host, so that the controller learns where that is.
    pub(in crate::controller::rfc8456) fn announce_targets(&mut self, now: Instant) {
        self.entered += self.nodes.len() as u64;
        for node in 0..self.nodes.len() {
            self.ask(now, node, target_announcement(self.version, node));
        }
    }

    /// Sends a message of a switch on all of its channels that are up.
    fn ask(&mut self, now: Instant, node: usize, body: Body) {
        let numbers: Vec<usize> = self.channels_of(node).collect();
        for number in numbers {
            self.send(now, number, &Message { xid: 0, body: body.clone() });
        }
    }

    /// Returns the channels of a switch that are set up.
    fn channels_of(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let is_set_up = |number: &usize| self.channels[*number].stage == TestChannelStage::SetUp;
        self.of_node[node].iter().copied().filter(is_set_up)
    }

    /// Sends a message on a channel, and notes what it says.
    pub(super) fn send(&mut self, now: Instant, number: usize, message: &Message) {
        let Some(channel) = self.channels.get_mut(number) else { return };
        let node = channel.node;
        if let Body::PacketIn(packet) = &message.body
            && self.drops_misses
            && frames::number(&packet.data.0).is_some()
        {
            return;
        }
        // A channel that is not up, or whose output is full, drops messages as a switch does.
        if channel.session.send(message).is_err() {
            return;
        }
        self.touched.add(number);
        match &message.body {
            Body::PacketIn(packet) => {
                let port = packet.in_port().map_or(0, |port| port.0);
                self.seen.note_packet_in(now, PortPlace { node, port }, &packet.data.0);
            }
            Body::PortStatus(_) => {
                self.seen.marked.first_status.get_or_insert(now);
            }
            _ => {}
        }
    }

    pub(super) fn take_events(&mut self, now: Instant, number: usize) {
        while let Some(event) = self.channels[number].session.take_event() {
            let node = self.channels[number].node;
            match event {
                SessionEvent::Up { version, .. } => {
                    self.nodes[node].datapath.channel_up(now, channel_id(number), version);
                }
                SessionEvent::Message(message) => self.take_message(now, number, message),
                SessionEvent::Closed { reason } => self.end(now, number, &reason),
            }
        }
        self.touched.add(number);
    }

    fn take_message(&mut self, now: Instant, number: usize, message: Message) {
        let node = self.channels[number].node;
        let mut is_carried_out = true;
        match &message.body {
            Body::PacketOut(out) if frames::is_discovery(&out.data.0) => {
                for port in output_ports(&out.actions) {
                    self.seen.note_probe(now, PortPlace { node, port });
                }
            }
            Body::PacketOut(_) => {
                self.seen.note_packet_out(now);
                self.seen.last_heard = Some(now);
                is_carried_out = self.note_answer(now, node, &message.body);
            }
            Body::FlowMod(flow) => {
                self.seen.last_heard = Some(now);
                if matches!(flow.command, FlowCommand::Add | FlowCommand::Modify | FlowCommand::ModifyStrict) {
                    self.seen.note_flow_mod(now);
                    is_carried_out = self.note_answer(now, node, &message.body);
                }
            }
            Body::Error(_) => self.seen.errors += 1,
            Body::FeaturesRequest => {
                self.channels[number].stage = TestChannelStage::SetUp;
                self.seen.last_heard = Some(now);
            }
            Body::EchoRequest(_) | Body::EchoReply(_) => {}
            _ => self.seen.last_heard = Some(now),
        }
        if is_carried_out {
            let at = &mut self.nodes[node];
            at.datapath.handle(now, channel_id(number), message, &mut self.pool, &mut self.out);
            // The message may have added entries that end before the known ones.
            at.expire_at = at.expire_at.min(now);
            self.deliver(now, node);
            self.settle(now);
        }
    }

    /// Notes a response to asynchronous messages. Returns true if the switch is to carry it out.
    fn note_answer(&mut self, now: Instant, node: usize, body: &Body) -> bool {
        let Some(requests) = &mut self.requests else { return true };
        requests.answered(now, node, body);
        false
    }

    pub(super) fn end(&mut self, now: Instant, number: usize, reason: &str) {
        let channel = &mut self.channels[number];
        if channel.stage != TestChannelStage::Ended {
            channel.stage = TestChannelStage::Ended;
            channel.reason = reason.to_owned();
            self.nodes[channel.node].datapath.channel_down(now, channel_id(number));
        }
    }

    /// Sends the asynchronous messages that are due.
    pub(super) fn send_requests(&mut self, now: Instant) {
        let Some(mut requests) = self.requests.take() else { return };
        for _ in 0..STEP {
            let node = requests.next_node(self.nodes.len());
            let number = self.channels_of(node).next();
            let has_room = number.is_some_and(|at| self.channels[at].session.output().len() < MAX_OUTPUT);
            if !has_room {
                break;
            }
            let Some((node, body)) = requests.next(now, self.nodes.len()) else { break };
            self.ask(now, node, body);
        }
        self.requests = Some(requests);
    }

    pub(super) fn send_invalid(&mut self, now: Instant) {
        let Some(mut invalid) = self.invalid.take() else { return };
        while let Some((node, message)) = invalid.next(now, self.nodes.len()) {
            let numbers: Vec<usize> = self.channels_of(node).collect();
            for number in numbers {
                // Sent as it is: the session only counts it.
                let _ = self.channels[number].session.send_encoded(&message, 1);
                self.touched.add(number);
            }
        }
        self.invalid = Some(invalid);
    }
}

/// Returns the ports that actions output to.
fn output_ports(actions: &[Action]) -> Vec<u32> {
    let port = |action: &Action| if let Action::Output { port, .. } = action { Some(port.0) } else { None };
    actions.iter().filter_map(port).collect()
}
