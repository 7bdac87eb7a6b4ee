//! Takes what switches send: sorts it into queues, and handles what waits in turn.
use super::class::MessageClass;
use super::queue::MessageQueue;
use super::schedule::QUANTUM_NS;
use super::{ControllerHub, SwitchConnection};
use crate::ConnectionId;
use std::time::Duration;
use weir_openflow::model::port::{PortStatus, PortStatusReason, bits};
use weir_openflow::model::{Body, PortNo};
use weir_openflow::session::SessionEvent;
use weir_openflow::{Message, PacketInView};
use weir_units::Instant;

/// Output bytes of a switch from which on its packet-ins wait, because it does not read the answers.
const MAX_UNREAD_BYTES: usize = 256 << 10;
/// Cost of reading and sorting a message, and of dropping an older one for it, in nanoseconds.
const READ_NS: i64 = 40;
const DROP_NS: i64 = 20;
/// Cost of a switch's turn apart from its messages, most of it for the write that follows, in nanoseconds.
const TURN_NS: i64 = 1_000;
/// Most urgent messages of a switch that are handled before the turns of others.
const URGENT_AT_ONCE: usize = 8;

impl ControllerHub {
    /// Handles bytes received from a switch, at once and in order.
    pub fn receive(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.find_open(id) else { return };
        let mut kept = MessageQueue::default();
        connection.session.receive_and_keep(now, bytes, |_, message| {
            kept.push(message);
            true
        });
        self.process_events(now, id);
        while let Some(message) = kept.front() {
            self.current.clear();
            self.current.extend_from_slice(message);
            kept.pop();
            self.handle_current(now, id);
        }
    }

    /// Sorts bytes received from a switch into its queues, for [`ControllerHub::work`]. What belongs to the handshake
    /// is handled at once.
    pub fn enqueue(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        let limit = self.limit();
        let Some(connection) = self.find_open(id) else { return };
        let SwitchConnection { session, queues, turn, .. } = connection;
        let mut dropped = 0;
        session.receive_and_keep(now, bytes, |header, message| {
            dropped += queues.push(MessageClass::of(header, message), message, limit);
            turn.charge(READ_NS);
            true
        });
        if dropped > 0 {
            turn.charge(DROP_NS * i64::try_from(dropped).unwrap_or(i64::MAX / DROP_NS));
            self.drop_budget.spend(now, dropped);
            self.note_drops(now, id, dropped);
        }
        self.process_events(now, id);
        self.begin_turn(id);
    }

    /// Returns the most bytes that should be read from a switch, 0 for none. It is not read from while its control
    /// messages or statistics, which are never dropped, fill their queue, nor while it has used more than its share.
    /// Once packet-ins of all switches were dropped for a fiftieth of the time, it is read from only as far as its
    /// queues have room.
    pub fn read_limit(&self, now: Instant, id: ConnectionId) -> usize {
        let limit = self.limit();
        match self.connections.get(id) {
            Some(found) if !found.turn.may_be_read() || found.queues.is_full(limit) => 0,
            Some(found) if !self.drop_budget.has_time(now) => found.queues.room(limit),
            _ => usize::MAX,
        }
    }

    /// Handles messages that wait, until about `budget` is used. Returns true if more can be done at once.
    pub fn work(&mut self, now: Instant, budget: Duration) -> bool {
        let mut left = i64::try_from(budget.as_nanos()).unwrap_or(i64::MAX);
        left -= self.handle_urgent(now, left / 2);
        while left > 0 {
            let Some(id) = self.schedule.next() else { break };
            left -= TURN_NS + self.take_turn(now, id);
        }
        !self.schedule.is_empty()
    }

    /// Handles a few urgent messages of each switch, in turn, until `budget` nanoseconds are used. Returns what is
    /// used.
    fn handle_urgent(&mut self, now: Instant, budget: i64) -> i64 {
        let mut used = 0;
        for _ in 0..self.urgent.len() {
            if used >= budget {
                break;
            }
            let Some(id) = self.urgent.pop_front() else { break };
            for _ in 0..URGENT_AT_ONCE {
                let may = |found: &&mut SwitchConnection| found.turn.may_be_read();
                if self.find_open(id).filter(may).is_none() {
                    break;
                }
                let Some(cost) = self.handle_next(now, id, MessageClass::Control) else { break };
                used += cost;
            }
            let Some(connection) = self.find_open(id) else { continue };
            connection.is_urgent = false;
            // What is left has its share of the switch's turn.
            self.begin_turn(id);
        }
        used
    }

    /// Handles messages of the switch whose turn it is, while it has credit: first of each class its share, then the
    /// most urgent. Returns the cost.
    fn take_turn(&mut self, now: Instant, id: ConnectionId) -> i64 {
        if self.find_open(id).is_none() {
            self.schedule.drop_next();
            return 0;
        }
        let mut used = 0;
        for is_share in [true, false] {
            for class in MessageClass::ALL {
                let most = if is_share { QUANTUM_NS * class.share() / 100 } else { i64::MAX };
                let mut of_class = 0;
                while of_class < most && self.find_open(id).is_some_and(|found| found.turn.has_credit()) {
                    let Some(cost) = self.handle_next(now, id, class) else { break };
                    of_class += cost;
                }
                used += of_class;
            }
        }
        match self.connections.get_mut(id) {
            Some(connection) => {
                let has_work = connection.has_work();
                self.schedule.end_turn(&mut connection.turn, has_work);
            }
            None => self.schedule.drop_next(),
        }
        used
    }

    /// Handles the oldest message of a class, if it can be handled now. Returns its cost.
    fn handle_next(&mut self, now: Instant, id: ConnectionId, class: MessageClass) -> Option<i64> {
        let connection = self.connections.get_mut(id)?;
        if class.may_drop() && connection.reads_too_slowly() {
            return None;
        }
        let queue = connection.queues.queue(class);
        let message = queue.front()?;
        let cost = class.cost_ns(message.len());
        self.current.clear();
        self.current.extend_from_slice(message);
        queue.pop();
        connection.turn.charge(cost);
        // Echo requests and the like are answered by the session, everything else through the outbox.
        let before = (self.n_sent, connection.session.output().len());
        self.handle_current(now, id);
        if let Some(connection) = self.connections.get_mut(id) {
            let is_answered = before != (self.n_sent, connection.session.output().len());
            connection.queues.count_handled(class, is_answered);
        }
        Some(cost)
    }

    /// Handles the control messages that a switch sent before its connection ended.
    pub(super) fn handle_last_words(&mut self, now: Instant, id: ConnectionId) {
        while self.find_open(id).is_some() && self.handle_next(now, id, MessageClass::Control).is_some() {}
    }

    /// Handles the message in `self.current`.
    fn handle_current(&mut self, now: Instant, id: ConnectionId) {
        let message = std::mem::take(&mut self.current);
        self.handle_bytes(now, id, &message);
        self.current = message;
        self.note_output(id);
    }

    fn handle_bytes(&mut self, now: Instant, id: ConnectionId, message: &[u8]) {
        let Some(connection) = self.find_open(id) else { return };
        let version = connection.session.version();
        match PacketInView::read(message) {
            Ok(Some(packet)) if Some(packet.version()) == version => self.handle_packet_in(now, id, &packet),
            // What is wrong with a message is for the session to say.
            _ => {
                connection.session.process(message);
                self.process_events(now, id);
            }
        }
    }

    fn handle_packet_in(&mut self, now: Instant, id: ConnectionId, packet: &PacketInView<'_>) {
        self.counters.packet_ins += 1;
        let auxiliary = self.connections.get(id).and_then(|connection| connection.auxiliary);
        let main = auxiliary.map_or(id, |(main, _)| main);
        if self.may_change(main) {
            self.app.handle_packet_in(now, main, packet, &mut self.outbox);
            self.dispatch(Some(id));
        }
    }

    /// Handles all events of a session in order, and sends the application's answers.
    pub(super) fn process_events(&mut self, now: Instant, id: ConnectionId) {
        while let Some(event) = self.find_open(id).and_then(|connection| connection.session.take_event()) {
            match event {
                SessionEvent::Up { version, features } => {
                    self.handle_up(now, id, version, features.unwrap_or_default());
                    self.set_timer(id);
                }
                SessionEvent::Message(message) => self.handle_message(now, id, message),
                SessionEvent::Closed { reason } => self.end(now, id, reason),
            }
            self.dispatch(Some(id));
        }
        self.note_output(id);
    }

    /// Passes a message to the application, as a message of the switch's main connection.
    fn handle_message(&mut self, now: Instant, id: ConnectionId, message: Message) {
        let auxiliary = self.connections.get(id).and_then(|connection| connection.auxiliary);
        let main = auxiliary.map_or(id, |(main, _)| main);
        match &message.body {
            Body::PacketIn(_) => self.counters.packet_ins += 1,
            Body::PortStatus(status) => self.drop_stale(main, status),
            Body::Error(error) => {
                tracing::debug!("error from a switch: {:?}", error.error);
                self.counters.errors += 1;
            }
            _ => {}
        }
        if let Some(message) = self.handle_role_message(now, main, message) {
            self.app.handle_message(now, main, message, &mut self.outbox);
        }
    }

    /// Drops the packet-ins that wait from a port that has gone down: the application would learn from them what is
    /// no longer true.
    fn drop_stale(&mut self, main: ConnectionId, status: &PortStatus) {
        let desc = &status.desc;
        let is_up = desc.config & bits::PORT_DOWN == 0 && desc.state & bits::LINK_DOWN == 0;
        if is_up && status.reason != PortStatusReason::Delete {
            return;
        }
        let is_from = |message: &[u8], port: PortNo| {
            PacketInView::read(message).is_ok_and(|view| view.is_some_and(|packet| packet.in_port() == Some(port)))
        };
        for id in self.auxiliaries(main).into_iter().chain([main]) {
            if let Some(connection) = self.connections.get_mut(id) {
                let dropped = connection.queues.drop_stale(|message| is_from(message, desc.port_no));
                self.counters.packet_ins += dropped;
                self.counters.dropped_port_down += dropped;
            }
        }
    }

    fn note_drops(&mut self, now: Instant, id: ConnectionId, dropped: u64) {
        self.counters.packet_ins += dropped;
        self.counters.dropped_overload += dropped;
        if let Some(held_back) = self.drop_log.pass(now)
            && let Some(connection) = self.connections.get(id)
        {
            let peer = &connection.peer;
            let more = if held_back > 0 { format!("; {held_back} such lines were left out") } else { String::new() };
            tracing::warn!(peer, "{dropped} packet-ins dropped: the switch sends more than is handled{more}");
        }
    }

    /// Gives a connection its place in the schedule if it has work.
    pub(super) fn begin_turn(&mut self, id: ConnectionId) {
        let Some(connection) = self.find_open(id) else { return };
        let is_urgent = connection.queues.has_urgent() && !std::mem::replace(&mut connection.is_urgent, true);
        let owes = !connection.turn.may_be_read();
        if connection.has_work() || owes {
            let mut turn = connection.turn;
            self.schedule.begin(id, &mut turn);
            if let Some(connection) = self.connections.get_mut(id) {
                connection.turn = turn;
            }
        }
        if is_urgent {
            self.urgent.push_back(id);
        }
    }
}

impl SwitchConnection {
    fn reads_too_slowly(&mut self) -> bool {
        self.session.output().len() >= MAX_UNREAD_BYTES
    }

    fn has_work(&mut self) -> bool {
        let without_packets = self.reads_too_slowly();
        self.queues.has_work(without_packets)
    }
}
