//! Tests sessions: two connected sides in virtual time, and each side against a hostile peer.
mod alive;
mod handshake;
mod refusal;

use super::*;
use crate::codec::{decode, encode};
use crate::model::{FlowMod, Match, PacketIn, PacketInReason, TableId};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::time::Duration;
use weir_packet::Field;

const SECOND: Duration = Duration::from_secs(1);

fn config(versions: &[Version]) -> SessionConfig {
    SessionConfig { versions: versions.to_vec(), ..SessionConfig::default() }
}

/// A switch's session and a controller's session, connected, in virtual time. The switch's side answers features
/// requests.
struct Pair {
    now: Instant,
    switch: Session,
    controller: Session,
    /// Lengths in bytes of the pieces in which a sender's output is passed to the receiver, used cyclically; empty for
    /// whole output.
    pieces: VecDeque<usize>,
    switch_events: Vec<SessionEvent>,
    controller_events: Vec<SessionEvent>,
}

impl Pair {
    fn new(switch: SessionConfig, controller: SessionConfig, pieces: &[usize]) -> Pair {
        let now = Instant::from_nanos(1);
        Pair {
            now,
            switch: Session::switch(switch, now),
            controller: Session::controller(controller, now),
            pieces: pieces.iter().copied().collect(),
            switch_events: Vec::new(),
            controller_events: Vec::new(),
        }
    }

    fn up(versions: &[Version], pieces: &[usize]) -> Pair {
        let mut pair = Pair::new(config(versions), config(versions), pieces);
        pair.exchange();
        assert!(matches!(pair.switch_events[..], [SessionEvent::Up { .. }, ..]), "{:?}", pair.switch_events);
        assert!(matches!(pair.controller_events[..], [SessionEvent::Up { .. }]), "{:?}", pair.controller_events);
        pair.switch_events.clear();
        pair.controller_events.clear();
        pair
    }

    /// Transfers the output of each side to the other until neither has any, and collects both sides' events.
    fn exchange(&mut self) {
        while !self.switch.output().is_empty() || !self.controller.output().is_empty() {
            carry(&mut self.switch, &mut self.controller, self.now, &mut self.pieces);
            carry(&mut self.controller, &mut self.switch, self.now, &mut self.pieces);
            while let Some(event) = self.switch.take_event() {
                if let SessionEvent::Message(Message { xid, body: Body::FeaturesRequest }) = event {
                    let reply = Message { xid, body: Body::FeaturesReply(features()) };
                    self.switch.send(&reply).expect("the switch's end is up");
                }
                self.switch_events.push(event);
            }
            while let Some(event) = self.controller.take_event() {
                self.controller_events.push(event);
            }
        }
    }

    /// Advances the time by `time`, and polls both sides at their deadlines.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = [self.switch.deadline(), self.controller.deadline()].into_iter().flatten().min() {
            if next > end {
                break;
            }
            self.now = next;
            self.switch.poll(self.now);
            self.controller.poll(self.now);
            self.exchange();
        }
        self.now = end;
    }
}

fn carry(from: &mut Session, to: &mut Session, now: Instant, pieces: &mut VecDeque<usize>) {
    let bytes = std::mem::take(from.output());
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let length = pieces.front().copied().unwrap_or(usize::MAX).clamp(1, rest.len());
        pieces.rotate_left(usize::from(!pieces.is_empty()));
        to.receive(now, &rest[..length]);
        rest = &rest[length..];
    }
}

fn features() -> FeaturesReply {
    FeaturesReply { datapath_id: 0x00a5_0000_0000_0001, n_buffers: 256, n_tables: 64, ..FeaturesReply::default() }
}

fn packet_in(xid: u32) -> Message {
    let packet = PacketIn {
        buffer_id: None,
        total_len: 60,
        reason: PacketInReason::NoMatch,
        table: TableId(0),
        cookie: u64::MAX,
        matching: Match::any().with(Field::InPort, 1_u32),
        data: Bytes(vec![0xab; 60]),
    };
    Message { xid, body: Body::PacketIn(packet) }
}

fn flow_mod(xid: u32) -> Message {
    let matching = Match::any().with(Field::InPort, xid).with(Field::EthType, 0x0800_u16);
    Message { xid, body: Body::FlowMod(FlowMod::add(7, matching, Vec::new())) }
}

fn bytes_of(message: &Message, version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(message, version, &mut bytes).unwrap();
    bytes
}

fn hello(versions: Option<Vec<u8>>, header: Version) -> Vec<u8> {
    bytes_of(&Message { xid: 1, body: Body::Hello(Hello { versions }) }, header)
}

/// Removes the messages from a session's output and decodes them.
fn said(session: &mut Session) -> Vec<Message> {
    let bytes = std::mem::take(session.output());
    let (mut rest, mut messages) = (&bytes[..], Vec::new());
    while let Some(header) = MessageHeader::read(rest) {
        let (message, after) = rest.split_at(usize::from(header.length));
        messages.push(decode(message).unwrap());
        rest = after;
    }
    assert!(rest.is_empty());
    messages
}

/// Returns a switch's session after the handshake in version 1.3, with empty output.
fn switch_up() -> Session {
    let mut session = Session::switch(SessionConfig::default(), Instant::ZERO);
    session.receive(Instant::ZERO, &hello(Some(vec![4]), Version::V13));
    assert_eq!(session.version(), Some(Version::V13));
    while session.take_event().is_some() {}
    session.output().clear();
    session
}

fn error_in(messages: &[Message]) -> Option<&ErrorMessage> {
    messages.iter().find_map(|message| match &message.body {
        Body::Error(error) => Some(error),
        _ => None,
    })
}

fn is_closed_event(event: &SessionEvent) -> bool {
    matches!(event, SessionEvent::Closed { .. })
}

proptest! {
    #[test]
    fn messages_arrive_whole_and_in_order_however_bytes_are_split(
        pieces in prop::collection::vec(1_usize..200, 0..20),
        down in prop::collection::vec(any::<u32>(), 0..20),
        up in prop::collection::vec(any::<u32>(), 0..20),
        v10 in any::<bool>(),
    ) {
        let version = if v10 { Version::V10 } else { Version::V13 };
        let mut pair = Pair::up(&[version], &pieces);
        let (down, up): (Vec<_>, Vec<_>) = (
            down.into_iter().map(|xid| Message { xid, body: Body::BarrierRequest }).collect(),
            up.into_iter().map(packet_in_of(version)).collect(),
        );
        for message in &down {
            pair.controller.send(message).unwrap();
        }
        for message in &up {
            pair.switch.send(message).unwrap();
        }
        pair.exchange();
        prop_assert_eq!(pair.switch_events, down.into_iter().map(SessionEvent::Message).collect::<Vec<_>>());
        prop_assert_eq!(pair.controller_events, up.into_iter().map(SessionEvent::Message).collect::<Vec<_>>());
    }

    #[test]
    fn no_bytes_make_a_session_panic_or_grow(
        pieces in prop::collection::vec(hostile_piece(), 0..40),
        at_controller in any::<bool>(),
    ) {
        let start = if at_controller { Session::controller } else { Session::switch };
        let mut session = start(SessionConfig { max_output_bytes: 10_000, ..SessionConfig::default() }, Instant::ZERO);
        for (second, piece) in (0_u32..).zip(pieces) {
            let now = Instant::ZERO + second * SECOND;
            session.receive(now, &piece);
            session.poll(now);
            while session.take_event().is_some() {}
            prop_assert!(session.input.rest().len() < 65_536);
            prop_assert!(session.output().len() < 10_000 + 65_536);
            prop_assert_eq!(session.is_closed(), session.deadline().is_none());
        }
    }
}

/// Returns a function that makes a packet-in with a given xid, as it is after encoding and decoding in `version`: 1.0
/// carries neither table nor cookie.
fn packet_in_of(version: Version) -> impl Fn(u32) -> Message {
    move |xid| {
        let bytes = bytes_of(&packet_in(xid), version);
        decode(&bytes).unwrap()
    }
}

/// Generates the bytes that a hostile peer sends at a time: a message of the handshake, a flow-mod, a message with a
/// nearly valid header, or random bytes.
fn hostile_piece() -> impl Strategy<Value = Vec<u8>> {
    let header =
        (prop_oneof![Just(4_u8), Just(1), any::<u8>()], 0_u8..32, 0_u16..64, prop::collection::vec(any::<u8>(), 0..64));
    prop_oneof![
        Just(hello(Some(vec![1, 4]), Version::V13)),
        Just(hello(None, Version::V10)),
        Just(bytes_of(&Message { xid: 2, body: Body::FeaturesReply(features()) }, Version::V13)),
        Just(bytes_of(&flow_mod(3), Version::V13)),
        header.prop_map(|(version, kind, length, rest)| {
            let [high, low] = length.to_be_bytes();
            [vec![version, kind, high, low, 0, 0, 0, 9], rest].concat()
        }),
        prop::collection::vec(any::<u8>(), 0..300),
    ]
}
