//! Both ends as a pair in virtual time, and each end against a hostile peer.
use super::*;
use crate::codec::{decode, encode};
use crate::model::error::BadAction;
use crate::model::{FlowMod, Match, PacketIn, PacketInReason, TableId};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::time::Duration;
use weir_packet::Field;

const SECOND: Duration = Duration::from_secs(1);

fn config(versions: &[Version]) -> SessionConfig {
    SessionConfig { versions: versions.to_vec(), ..SessionConfig::default() }
}

/// Two sessions and the bytes between them; the switch answers features requests.
struct Pair {
    now: Instant,
    switch: Session,
    controller: Session,
    /// Lengths of the pieces bytes arrive in, over and over.
    pieces: VecDeque<usize>,
    switch_events: Vec<Event>,
    controller_events: Vec<Event>,
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
        assert!(matches!(pair.switch_events[..], [Event::Up { .. }, ..]), "{:?}", pair.switch_events);
        assert!(matches!(pair.controller_events[..], [Event::Up { .. }]), "{:?}", pair.controller_events);
        pair.switch_events.clear();
        pair.controller_events.clear();
        pair
    }

    /// Moves bytes until neither end has any to say.
    fn exchange(&mut self) {
        while !self.switch.output().is_empty() || !self.controller.output().is_empty() {
            carry(&mut self.switch, &mut self.controller, self.now, &mut self.pieces);
            carry(&mut self.controller, &mut self.switch, self.now, &mut self.pieces);
            while let Some(event) = self.switch.next_event() {
                if let Event::Message(Message { xid, body: Body::FeaturesRequest }) = event {
                    let reply = Message { xid, body: Body::FeaturesReply(features()) };
                    self.switch.send(&reply).expect("the switch's end is up");
                }
                self.switch_events.push(event);
            }
            while let Some(event) = self.controller.next_event() {
                self.controller_events.push(event);
            }
        }
    }

    /// Lets time pass, polling both ends when they ask for it.
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

/// The messages in the output.
fn said(session: &mut Session) -> Vec<Message> {
    let bytes = std::mem::take(session.output());
    let (mut rest, mut messages) = (&bytes[..], Vec::new());
    while let Some(header) = Header::read(rest) {
        let (message, after) = rest.split_at(usize::from(header.length));
        messages.push(decode(message).unwrap());
        rest = after;
    }
    assert!(rest.is_empty());
    messages
}

/// A switch's end that is up on 1.3, with nothing left to say.
fn switch_up() -> Session {
    let mut session = Session::switch(SessionConfig::default(), Instant::ZERO);
    session.receive(Instant::ZERO, &hello(Some(vec![4]), Version::V13));
    assert_eq!(session.version(), Some(Version::V13));
    while session.next_event().is_some() {}
    session.output().clear();
    session
}

fn error_in(messages: &[Message]) -> Option<&ErrorMessage> {
    messages.iter().find_map(|message| match &message.body {
        Body::Error(error) => Some(error),
        _ => None,
    })
}

fn is_closed_event(event: &Event) -> bool {
    matches!(event, Event::Closed { .. })
}

#[test]
fn the_highest_common_version_is_used() {
    use Version::{V10, V13};
    for (switch, controller, expected) in [
        (&[V13, V10][..], &[V10, V13][..], V13),
        (&[V13, V10], &[V10], V10),
        (&[V10], &[V13, V10], V10),
        (&[V13], &[V13, V10], V13),
    ] {
        let mut pair = Pair::new(config(switch), config(controller), &[]);
        pair.exchange();
        assert_eq!(pair.switch_events[0], Event::Up { version: expected, features: None });
        let up = Event::Up { version: expected, features: Some(features()) };
        assert_eq!(pair.controller_events, [up], "{switch:?} {controller:?}");
    }
}

#[test]
fn ends_without_a_common_version_tell_each_other() {
    let mut pair = Pair::new(config(&[Version::V13]), config(&[Version::V10]), &[]);
    pair.exchange();
    for events in [&pair.switch_events, &pair.controller_events] {
        let [Event::Closed { reason }] = &events[..] else {
            panic!("{events:?}");
        };
        assert!(reason.contains("no common OpenFlow version"), "{reason}");
    }
}

#[test]
fn an_idle_pair_stays_up() {
    let mut pair = Pair::up(&[Version::V13, Version::V10], &[3]);
    pair.pass(3600 * SECOND);
    assert_eq!((pair.switch_events.len(), pair.controller_events.len()), (0, 0));
    let sent = pair.controller.counters().sent;
    assert!((700..1500).contains(&sent), "an hour has 720 intervals of 5 s: {sent} messages");
}

#[test]
fn a_silent_peer_ends_the_session_after_two_intervals() {
    let mut session = switch_up();
    let probe = session.deadline().unwrap();
    assert_eq!(probe, Instant::ZERO + 5 * SECOND);
    session.poll(probe);
    assert!(matches!(said(&mut session)[..], [Message { body: Body::EchoRequest(_), .. }]));
    let end = session.deadline().unwrap();
    session.poll(end - Duration::from_nanos(1));
    assert!(!session.is_closed());
    session.poll(end);
    assert!(session.next_event().is_some_and(|event| is_closed_event(&event)) && session.deadline().is_none());
}

#[test]
fn any_message_answers_a_probe() {
    let mut session = switch_up();
    session.poll(Instant::ZERO + 5 * SECOND);
    session.receive(Instant::ZERO + 6 * SECOND, &bytes_of(&flow_mod(1), Version::V13));
    assert_eq!(session.deadline(), Some(Instant::ZERO + 11 * SECOND));
}

#[test]
fn a_handshake_has_its_time() {
    let mut silent = Session::switch(SessionConfig::default(), Instant::ZERO);
    silent.poll(Instant::ZERO + 10 * SECOND);
    assert!(silent.is_closed());
    let mut mute = Session::controller(SessionConfig::default(), Instant::ZERO);
    mute.receive(Instant::ZERO + 9 * SECOND, &hello(None, Version::V13));
    mute.poll(Instant::ZERO + 10 * SECOND);
    assert_eq!(mute.next_event(), Some(Event::Closed { reason: "no features reply within 10s of connecting".into() }));
}

#[test]
fn without_an_echo_interval_silence_is_accepted() {
    let config = SessionConfig { echo_interval: Duration::ZERO, ..SessionConfig::default() };
    let mut session = Session::switch(config, Instant::ZERO);
    session.receive(Instant::ZERO, &hello(None, Version::V13));
    assert_eq!(session.deadline(), None);
}

#[test]
fn echo_requests_are_answered_with_their_data() {
    let mut session = switch_up();
    let request = Message { xid: 77, body: Body::EchoRequest(Bytes(vec![1, 2, 3])) };
    session.receive(Instant::ZERO, &bytes_of(&request, Version::V13));
    assert_eq!(said(&mut session), [Message { xid: 77, body: Body::EchoReply(Bytes(vec![1, 2, 3])) }]);
    assert_eq!(session.next_event(), None);
}

#[test]
fn a_handshake_without_hello_is_refused() {
    for body in [Body::FeaturesRequest, Body::EchoRequest(Bytes::default()), flow_mod(5).body] {
        let mut session = Session::switch(SessionConfig::default(), Instant::ZERO);
        session.output().clear();
        let offender = bytes_of(&Message { xid: 5, body }, Version::V13);
        session.receive(Instant::ZERO, &offender);
        let messages = said(&mut session);
        assert_eq!(messages[0].xid, 5);
        assert_eq!(error_in(&messages).unwrap().error, BadRequest::BadType.into());
        assert!(session.next_event().is_some_and(|event| is_closed_event(&event)));
        assert_eq!(session.send(&flow_mod(1)), Err(SendError::NotUp));
    }
}

#[test]
fn another_protocol_is_refused_before_the_message_it_seems_to_be_is_whole() {
    for text in [&b"GET / HTTP/1.1\r\n"[..], b"SSH-2.0-OpenSSH_9.2\r\n", &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc]] {
        let mut session = Session::controller(SessionConfig::default(), Instant::ZERO);
        session.receive(Instant::ZERO, text);
        assert!(session.is_closed(), "{text:?}");
    }
}

#[test]
fn messages_before_the_features_reply_are_left_aside() {
    let mut session = Session::controller(SessionConfig::default(), Instant::ZERO);
    session.receive(Instant::ZERO, &hello(None, Version::V13));
    session.receive(Instant::ZERO, &bytes_of(&packet_in(9), Version::V13));
    assert_eq!((session.next_event(), session.counters().early), (None, 1));
    let asked = said(&mut session)[1].xid;
    let reply = |xid| bytes_of(&Message { xid, body: Body::FeaturesReply(features()) }, Version::V13);
    session.receive(Instant::ZERO, &reply(asked.wrapping_add(1)));
    assert_eq!(session.next_event(), None, "nobody asked with this transaction id");
    session.receive(Instant::ZERO, &reply(asked));
    assert_eq!(session.next_event(), Some(Event::Up { version: Version::V13, features: Some(features()) }));
}

#[test]
fn an_error_during_the_handshake_ends_it() {
    let mut session = Session::controller(SessionConfig::default(), Instant::ZERO);
    let error = ErrorMessage { error: HelloFailed::Incompatible.into(), data: Bytes(b"only \n1.5".to_vec()) };
    session.receive(Instant::ZERO, &bytes_of(&Message { xid: 1, body: Body::Error(error) }, Version::V13));
    let reason = "the peer refused the hello (OFPHFC_INCOMPATIBLE): only 1.5".to_owned();
    assert_eq!(session.next_event(), Some(Event::Closed { reason }));
}

#[test]
fn another_version_than_the_one_agreed_on_is_refused() {
    let mut session = switch_up();
    for version in [1, 2, 5, 0, 0xff] {
        let mut offender = bytes_of(&flow_mod(8), Version::V13);
        offender[0] = version;
        session.receive(Instant::ZERO, &offender);
        let messages = said(&mut session);
        let error = error_in(&messages).unwrap();
        assert_eq!((messages[0].xid, error.error), (8, BadRequest::BadVersion.into()));
        assert_eq!(error.data.0, offender[..64]);
    }
    session.receive(Instant::ZERO, &bytes_of(&flow_mod(9), Version::V13));
    assert_eq!(session.next_event(), Some(Event::Message(flow_mod(9))), "the session goes on");
    assert_eq!(session.counters().refused, 5);
}

#[test]
fn what_cannot_be_understood_is_answered_and_the_session_goes_on() {
    let mut session = switch_up();
    let mut unknown_type = bytes_of(&Message { xid: 3, body: Body::BarrierRequest }, Version::V13);
    unknown_type[1] = 99;
    session.receive(Instant::ZERO, &unknown_type);
    let messages = said(&mut session);
    assert_eq!(error_in(&messages).unwrap().error, BadRequest::BadType.into());
    assert_eq!(error_in(&messages).unwrap().data.0, unknown_type, "all of a short message");
    assert_eq!((messages[0].xid, session.version()), (3, Some(Version::V13)));
}

#[test]
fn messages_for_the_other_end_are_refused() {
    let mut session = switch_up();
    session.receive(Instant::ZERO, &bytes_of(&packet_in(4), Version::V13));
    assert_eq!(error_in(&said(&mut session)).unwrap().error, BadRequest::BadType.into());
    assert_eq!(session.next_event(), None);
}

#[test]
fn an_error_is_never_answered_with_an_error() {
    let mut session = switch_up();
    let mut error = ErrorMessage { error: BadAction::BadType.into(), data: Bytes::default() };
    let message = Message { xid: 4, body: Body::Error(error.clone()) };
    session.receive(Instant::ZERO, &bytes_of(&message, Version::V13));
    assert_eq!(session.next_event(), Some(Event::Message(message)));
    // Too short to hold a type and a code.
    session.receive(Instant::ZERO, &[4, 1, 0, 8, 0, 0, 0, 4]);
    assert_eq!(session.next_event(), None);
    error.error = HelloFailed::Eperm.into();
    session.receive(Instant::ZERO, &bytes_of(&Message { xid: 4, body: Body::Error(error) }, Version::V13));
    assert!(session.is_closed() && session.output().is_empty());
}

#[test]
fn a_length_that_cannot_be_ends_the_session() {
    for length in 0..8 {
        let mut session = switch_up();
        session.receive(Instant::ZERO, &[4, 2, 0, length, 0, 0, 0, 6, 1, 2, 3]);
        assert_eq!(error_in(&said(&mut session)).unwrap().error, BadRequest::BadLen.into());
        assert!(session.is_closed());
        session.receive(Instant::ZERO, &bytes_of(&flow_mod(1), Version::V13));
        assert!(session.next_event().is_some_and(|event| is_closed_event(&event)));
        assert_eq!((session.next_event(), session.output().len()), (None, 0));
    }
}

#[test]
fn a_later_hello_must_fit_the_version_agreed_on() {
    let mut session = switch_up();
    session.receive(Instant::ZERO, &hello(Some(vec![4]), Version::V13));
    assert_eq!((session.next_event(), session.version()), (None, Some(Version::V13)));
    session.receive(Instant::ZERO, &hello(None, Version::V10));
    assert_eq!(error_in(&said(&mut session)).unwrap().error, HelloFailed::Incompatible.into());
    assert!(session.is_closed());
}

#[test]
fn a_peer_that_does_not_read_fills_a_bounded_output() {
    let config = SessionConfig { max_output_bytes: 1000, ..SessionConfig::default() };
    let mut session = Session::switch(config, Instant::ZERO);
    session.receive(Instant::ZERO, &hello(None, Version::V13));
    let full = (0..100).map(|xid| session.send(&packet_in(xid))).find(Result::is_err).unwrap();
    assert!(matches!(full, Err(SendError::Full(1000..))));
    let echo = bytes_of(&Message { xid: 1, body: Body::EchoRequest(Bytes(vec![0; 60_000])) }, Version::V13);
    session.receive(Instant::ZERO, &echo.repeat(50));
    assert!(session.output().len() < 1000 + 65_536);
    assert_eq!(session.counters().answers_dropped, 50);
    session.output().clear();
    assert_eq!(session.send(&packet_in(1)), Ok(()));
}

#[test]
fn input_held_is_less_than_a_message() {
    let mut session = switch_up();
    let large = bytes_of(&Message { xid: 1, body: Body::EchoReply(Bytes(vec![0; 65_527])) }, Version::V13);
    for _ in 0..20 {
        session.receive(Instant::ZERO, &large[..60_000]);
        session.receive(Instant::ZERO, &large[60_000..]);
    }
    assert_eq!(session.counters().received, 21);
    session.receive(Instant::ZERO, &large[..65_534]);
    assert_eq!(session.input.rest().len(), 65_534);
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
        prop_assert_eq!(pair.switch_events, down.into_iter().map(Event::Message).collect::<Vec<_>>());
        prop_assert_eq!(pair.controller_events, up.into_iter().map(Event::Message).collect::<Vec<_>>());
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
            while session.next_event().is_some() {}
            prop_assert!(session.input.rest().len() < 65_536);
            prop_assert!(session.output().len() < 10_000 + 65_536);
            prop_assert_eq!(session.is_closed(), session.deadline().is_none());
        }
    }
}

/// 1.0 carries neither the table nor the cookie of a packet-in.
fn packet_in_of(version: Version) -> impl Fn(u32) -> Message {
    move |xid| {
        let bytes = bytes_of(&packet_in(xid), version);
        decode(&bytes).unwrap()
    }
}

/// Pieces that get past the handshake, with headers that nearly fit.
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
