//! Runs both ends of an OpenFlow session in virtual time: bytes are cut anywhere and delayed, time passes, the
//! transport ends; and, if the input says so, bytes in transit are inserted, repeated, exchanged and lost.
//!
//! Without such interference: messages arrive as sent and in order, except those that the controller ignores before
//! the features; no message is rejected; echoes with data are answered; both ends agree on the highest version that
//! both support. In any case: no panic, bounded output and input, and a session is closed exactly when it has no
//! deadline, and reports that once.
#![no_main]
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use std::collections::VecDeque;
use std::time::Duration;
use weir_fuzz::bounded_by;
use weir_openflow::model::{
    Body, Bytes, FeaturesReply, FlowMod, Match, PacketIn, PacketInReason, PortDesc, PortNo, TableId,
    port::{PortStatus, PortStatusReason},
};
use weir_openflow::session::{Session, SessionConfig, SessionEvent};
use weir_openflow::{Message, Version};
use weir_packet::{Field, MacAddr};
use weir_units::Instant;

/// Memory limit in bytes of two sessions and the bytes in transit.
const MEMORY: usize = 16 << 20;
/// Maximum number of bytes that a session receives at once: it holds the events of all of them until they are taken.
const PIECE: usize = 4096;
/// Number of bytes in transit to one end from which on none are inserted.
const MAX_WIRE: usize = 256 << 10;
const MAX_OUTPUT: usize = 20_000;
/// Output that a session may have beyond its limit: one message.
const MESSAGE: usize = 65_536;
const SWITCH: usize = 0;
const CONTROLLER: usize = 1;

#[derive(Debug, Arbitrary)]
struct Input {
    /// Versions of the two ends, as bits.
    versions: [u8; 2],
    /// Seconds between echoes; 0 for none.
    echo_s: u8,
    operations: Vec<Operation>,
}

#[derive(Debug, Arbitrary)]
enum Operation {
    /// The application of an end sends a message.
    Send { end: bool, what: u8, length: u16 },
    /// Bytes arrive at an end.
    Carry { to: bool, bytes: u16 },
    /// All bytes in transit arrive, in both directions, until there are none.
    CarryAll,
    /// Time passes, in milliseconds.
    Wait { ms: u16 },
    /// Bytes are inserted into those in transit to an end, in front or at the end.
    Inject { to: bool, in_front: bool, bytes: Vec<u8> },
    /// Bytes in transit are repeated.
    Repeat { to: bool, bytes: u16 },
    /// Bytes in transit are exchanged at a place.
    Exchange { to: bool, at: u16 },
    /// Bytes in transit are lost.
    Lose { to: bool, bytes: u16 },
    /// The peer of an end does not read for a while, which the end tolerates.
    Excuse { end: bool },
}

fuzz_target!(|input: Input| bounded_by(MEMORY, || Pair::new(&input).run(&input.operations)));

struct Pair {
    now: Instant,
    started: Instant,
    ends: [Session; 2],
    configs: [SessionConfig; 2],
    /// Bytes in transit to each end.
    wires: [VecDeque<u8>; 2],
    /// Messages that each end is still to receive, in order.
    expected: [VecDeque<Body>; 2],
    /// Echo data that the controller's application is still to receive. The other session answers echoes, not its
    /// application, so they are not in order with the messages.
    echoes: VecDeque<Bytes>,
    up: [bool; 2],
    closed: [bool; 2],
    /// True if the input interferes with the bytes in transit.
    disturbed: bool,
}

impl Pair {
    fn new(input: &Input) -> Pair {
        let now = Instant::from_nanos(1);
        let configs = input.versions.map(|bits| {
            let chosen = Version::ALL.iter().enumerate().filter(|(at, _)| bits >> at & 1 != 0);
            let mut versions: Vec<_> = chosen.map(|(_, version)| *version).collect();
            if versions.is_empty() {
                versions = Version::ALL.to_vec();
            }
            SessionConfig {
                versions,
                echo_interval: Duration::from_secs(u64::from(input.echo_s % 16)),
                max_output_bytes: MAX_OUTPUT,
                ..SessionConfig::default()
            }
        });
        Pair {
            now,
            started: now,
            ends: [
                Session::switch(configs[SWITCH].clone(), now),
                Session::controller(configs[CONTROLLER].clone(), now),
            ],
            configs,
            wires: Default::default(),
            expected: Default::default(),
            echoes: VecDeque::new(),
            up: [false; 2],
            closed: [false; 2],
            disturbed: false,
        }
    }

    fn run(mut self, operations: &[Operation]) {
        for operation in operations {
            self.step(operation);
            self.check();
        }
        self.carry_all();
        self.check();
        self.judge_end();
    }

    fn step(&mut self, operation: &Operation) {
        match operation {
            Operation::Send { end, what, length } => self.send(usize::from(*end), *what, *length),
            Operation::Carry { to, bytes } => self.carry(usize::from(*to), usize::from(*bytes)),
            Operation::CarryAll => self.carry_all(),
            Operation::Wait { ms } => self.wait(Duration::from_millis(u64::from(*ms))),
            Operation::Excuse { end } => self.ends[usize::from(*end)].excuse(self.now),
            _ => {
                self.disturbed = true;
                self.disturb(operation);
            }
        }
    }

    fn disturb(&mut self, operation: &Operation) {
        self.flush();
        match operation {
            Operation::Inject { to, in_front, bytes } => {
                let wire = &mut self.wires[usize::from(*to)];
                match in_front {
                    true => bytes.iter().rev().for_each(|byte| wire.push_front(*byte)),
                    false => wire.extend(bytes),
                }
            }
            Operation::Repeat { to, bytes } => {
                let wire = &mut self.wires[usize::from(*to)];
                let count = usize::from(*bytes).min(wire.len()).min(MAX_WIRE.saturating_sub(wire.len()));
                let repeated: Vec<u8> = wire.iter().take(count).copied().collect();
                repeated.into_iter().rev().for_each(|byte| wire.push_front(byte));
            }
            Operation::Exchange { to, at } => {
                let wire = &mut self.wires[usize::from(*to)];
                if !wire.is_empty() {
                    wire.rotate_left(usize::from(*at) % wire.len());
                }
            }
            Operation::Lose { to, bytes } => {
                let wire = &mut self.wires[usize::from(*to)];
                let count = usize::from(*bytes).min(wire.len());
                wire.drain(..count);
            }
            _ => unreachable!("nobody is disturbed by this"),
        }
    }

    fn send(&mut self, end: usize, what: u8, length: u16) {
        let data = Bytes(vec![what; usize::from(length % 2048)]);
        let body = match (end, what % 4) {
            (SWITCH, 0) => Body::BarrierReply,
            (SWITCH, 1) => Body::PortStatus(PortStatus {
                reason: PortStatusReason::Modify,
                desc: PortDesc::new(PortNo(1), MacAddr([2, 0, 0, 0, 0, 1]), "p1"),
            }),
            (SWITCH, 2) => Body::PacketIn(PacketIn {
                buffer_id: None,
                total_len: length % 2048,
                reason: PacketInReason::NoMatch,
                table: TableId(0),
                cookie: u64::MAX,
                matching: Match::any().with(Field::InPort, 1_u32),
                data,
            }),
            (_, 0) => Body::BarrierRequest,
            (_, 1) => Body::GetConfigRequest,
            (_, 2) => {
                Body::FlowMod(FlowMod::add(what.into(), Match::any().with(Field::InPort, u32::from(what)), vec![]))
            }
            _ => Body::EchoRequest(data),
        };
        let xid = self.ends[end].allocate_xid();
        if self.ends[end].send(&Message { xid, body: body.clone() }).is_ok() {
            match body {
                // The other session answers. Only answers with data are reported, at the controller's end.
                Body::EchoRequest(data) if end == CONTROLLER && !data.0.is_empty() => {
                    self.echoes.push_back(data);
                }
                Body::EchoRequest(_) => {}
                body => self.expected[1 - end].push_back(body),
            }
        }
    }

    /// Moves the output of both ends to the wires.
    fn flush(&mut self) {
        for end in [SWITCH, CONTROLLER] {
            self.wires[1 - end].extend(self.ends[end].output().drain(..));
        }
    }

    fn carry(&mut self, to: usize, count: usize) {
        self.flush();
        let count = count.min(self.wires[to].len());
        let bytes: Vec<u8> = self.wires[to].drain(..count).collect();
        bytes.chunks(PIECE).for_each(|piece| self.receive(to, piece));
    }

    fn receive(&mut self, to: usize, bytes: &[u8]) {
        let early = self.ends[to].counters().early;
        self.ends[to].receive(self.now, bytes);
        // A controller ignores messages that arrive before the features; they are the oldest ones.
        let left_aside = self.ends[to].counters().early - early;
        let left_aside = usize::try_from(left_aside).expect("as many as there were bytes");
        self.expected[to].drain(..left_aside.min(self.expected[to].len()));
        self.events(to);
    }

    fn carry_all(&mut self) {
        loop {
            self.flush();
            if self.wires.iter().all(VecDeque::is_empty) {
                break;
            }
            self.carry(SWITCH, usize::MAX);
            self.carry(CONTROLLER, usize::MAX);
        }
    }

    /// Lets time pass and polls the ends at their deadlines. Bytes in transit do not move.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        for _ in 0..1000 {
            let next = self.ends.iter().filter_map(Session::deadline).min().filter(|next| *next <= end);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            for which in [SWITCH, CONTROLLER] {
                let before = self.ends[which].deadline();
                self.ends[which].poll(self.now);
                if before.is_some_and(|deadline| deadline <= self.now) {
                    let after = self.ends[which].deadline();
                    assert!(
                        after.is_none_or(|after| after > self.now),
                        "an end that was asked wants to be asked again at once"
                    );
                }
                self.events(which);
            }
        }
        self.now = end;
    }

    fn events(&mut self, end: usize) {
        while let Some(event) = self.ends[end].take_event() {
            assert!(!self.closed[end], "an event behind the end: {event:?}");
            match event {
                SessionEvent::Up { version, features } => {
                    assert!(!std::mem::replace(&mut self.up[end], true), "up twice");
                    assert_eq!(features.is_some(), end == CONTROLLER);
                    assert_eq!(self.ends[end].version().unwrap_or(version), version);
                    assert!(self.configs[end].versions.contains(&version));
                }
                SessionEvent::Closed { reason } => {
                    assert!(!reason.is_empty());
                    self.closed[end] = true;
                }
                SessionEvent::Message(message) => self.message(end, message),
            }
        }
    }

    fn message(&mut self, end: usize, message: Message) {
        assert!(self.up[end], "a message before the handshake's end: {message:?}");
        if message.body == Body::FeaturesRequest {
            assert_eq!(end, SWITCH);
            let features = FeaturesReply { datapath_id: 7, n_tables: 4, ..FeaturesReply::default() };
            let _ = self.ends[SWITCH].send(&Message { xid: message.xid, body: Body::FeaturesReply(features) });
        } else if let Body::EchoReply(data) = &message.body {
            assert_eq!(end, CONTROLLER);
            assert!(self.disturbed || self.answered(data), "an echo of another request");
        } else if !self.disturbed {
            let expected = self.expected[end].pop_front();
            // One version cannot express every message of another: for such messages only the kind is compared.
            assert_eq!(
                expected.as_ref().map(std::mem::discriminant),
                Some(std::mem::discriminant(&message.body)),
                "{expected:?}, not {message:?}"
            );
        }
    }

    /// Returns true if the controller sent this echo request. Earlier requests remain unanswered, because the switch
    /// drops answers that are not read.
    fn answered(&mut self, data: &Bytes) -> bool {
        while let Some(asked) = self.echoes.pop_front() {
            if asked == *data {
                return true;
            }
        }
        false
    }

    fn check(&mut self) {
        for end in [SWITCH, CONTROLLER] {
            self.events(end);
            let session = &mut self.ends[end];
            assert!(session.output().len() < MAX_OUTPUT + MESSAGE);
            assert_eq!(session.is_closed(), self.closed[end]);
            let has_deadline = session.deadline().is_some();
            let waits_for_ever = self.configs[end].echo_interval.is_zero() && self.up[end];
            assert!(if session.is_closed() { !has_deadline } else { has_deadline || waits_for_ever });
            let counters = session.counters();
            assert!(
                self.disturbed || counters.refused == 0 && (end == CONTROLLER || counters.early == 0),
                "{counters:?}"
            );
        }
    }

    /// Checks the final state, after all bytes have arrived.
    fn judge_end(&mut self) {
        if self.disturbed {
            return;
        }
        let [ours, theirs] = &self.configs;
        let agreed = ours.versions.iter().filter(|version| theirs.versions.contains(version)).max();
        for end in [SWITCH, CONTROLLER] {
            match agreed {
                None => assert!(!self.up[end]),
                Some(agreed) => assert!(self.ends[end].version().is_none_or(|version| version == *agreed)),
            }
        }
        let patience =
            ours.handshake_timeout.min(if ours.echo_interval.is_zero() { Duration::MAX } else { ours.echo_interval });
        if self.now.since(self.started) < patience {
            // No timeout has passed that would close the session.
            assert_eq!(self.up, [agreed.is_some(); 2]);
            assert_eq!(self.closed, [agreed.is_none(); 2]);
        }
        if self.up == [true; 2] && self.closed == [false; 2] {
            assert!(self.expected.iter().all(VecDeque::is_empty), "{:?} did not arrive", self.expected);
            let dropped = self.ends[SWITCH].counters().answers_dropped;
            assert!(self.echoes.len() as u64 <= dropped, "{} echoes were not answered", self.echoes.len());
        }
    }
}
