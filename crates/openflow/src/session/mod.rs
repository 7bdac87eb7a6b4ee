//! Implements one side of an OpenFlow channel without I/O: the caller passes in received bytes and the current time,
//! and takes out events and bytes to send.
//!
//! A session sends a hello, agrees on a version, performs the handshake and keeps the channel alive with echo
//! requests. It answers messages that it cannot decode with the error that OpenFlow prescribes.
//!
//! Memory is bounded against any peer: a session holds less than one message of undecoded input, and at most
//! [`SessionConfig::max_output_bytes`] plus one message of output. No input makes it panic.
mod direction;
mod negotiate;
mod reassembly;
#[cfg(test)]
mod tests;
mod types;

use crate::EchoRequestView;
use crate::codec::{self, MessageHeader, kind};
use crate::model::error::{BadRequest, ERROR_DATA_BYTES, HelloFailed};
use crate::model::{Body, Bytes, ErrorMessage, ErrorType, FeaturesReply, Hello, Message, NxMessage, Version};
use direction::SessionSide;
use reassembly::{NextMessage, Reassembly};
use std::collections::VecDeque;
use weir_units::Instant;

pub use types::{SendError, SessionConfig, SessionCounters, SessionEvent, WatchedMessage};

/// First bytes of a TLS connection, at the positions of OpenFlow's version and type: a handshake record of version
/// 3.x (RFC 8446, 5.1).
const TLS_BEGINS: (u8, u8) = (0x16, 3);

/// State of one side of an OpenFlow channel.
#[derive(Debug)]
pub struct Session {
    end: SessionSide,
    config: SessionConfig,
    state: State,
    input: Reassembly,
    output: Vec<u8>,
    events: VecDeque<SessionEvent>,
    counters: SessionCounters,
    last_xid: u32,
    started: Instant,
    /// True if the controller's flow-mods of 1.0 carry their table number in the command (`NXT_FLOW_MOD_TABLE_ID`).
    has_tables: bool,
    /// Arrival time of the peer's last message.
    heard: Instant,
    /// Time of the echo request that awaits an answer; `None` if none does.
    probed: Option<Instant>,
    /// Messages that passed since they were last taken; `None` if the session is not watched.
    watched: Option<Vec<WatchedMessage>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Hello sent; the peer's hello is not received yet.
    Hello,
    /// Controller's side only: features request sent, with this transaction id.
    Features(Version, u32),
    Up(Version),
    Closed,
}

impl Session {
    /// Starts the switch's side: sends a hello, and is up once a version is agreed on. Answers echo requests and
    /// messages that cannot be decoded.
    ///
    /// # Panics
    /// `config.versions` is empty.
    pub fn switch(config: SessionConfig, now: Instant) -> Session {
        Session::start(SessionSide::Switch, config, now)
    }

    /// Starts the controller's side: sends a hello, then a features request, and is up once the reply is received.
    ///
    /// # Panics
    /// `config.versions` is empty.
    pub fn controller(config: SessionConfig, now: Instant) -> Session {
        Session::start(SessionSide::Controller, config, now)
    }

    fn start(end: SessionSide, mut config: SessionConfig, now: Instant) -> Session {
        assert!(!config.versions.is_empty(), "a session needs at least one version to speak");
        config.versions.sort_unstable_by(|a, b| b.cmp(a));
        let mut session = Session {
            end,
            config,
            state: State::Hello,
            input: Reassembly::default(),
            output: Vec::new(),
            events: VecDeque::new(),
            counters: SessionCounters::default(),
            last_xid: 0,
            started: now,
            has_tables: false,
            heard: now,
            probed: None,
            watched: None,
        };
        let (version, hello) = negotiate::hello(&session.config.versions);
        let xid = session.allocate_xid();
        session.answer(version, &Message { xid, body: Body::Hello(hello) });
        session
    }

    /// Processes bytes received from the peer, in pieces of any size. Take the events after each call
    /// ([`Session::take_event`]); the session queues them without a limit.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) {
        self.receive_and_keep(now, bytes, |_, _| false);
    }

    /// Processes bytes as [`Session::receive`] does, except messages that the caller keeps for later. Once the session
    /// is up, `keep` is called for each whole message, with its header. If it returns true, the session leaves the
    /// message alone until [`Session::process`] brings it. It has been received nevertheless: its peer is not silent.
    pub fn receive_and_keep(
        &mut self,
        now: Instant,
        mut bytes: &[u8],
        mut keep: impl FnMut(MessageHeader, &[u8]) -> bool,
    ) {
        if self.is_closed() {
            return;
        }
        // Taken out of `self`, so that messages can be decoded in place. A session that closes frees the memory.
        let mut input = std::mem::take(&mut self.input);
        let in_place = input.is_empty();
        if !in_place {
            input.push(bytes);
        }
        while !self.is_closed() {
            match if in_place { input.next_in_place(&mut bytes) } else { input.next() } {
                NextMessage::Message(header, message) => {
                    self.note(false, message);
                    self.heard = now;
                    self.probed = None;
                    self.counters.received += 1;
                    if self.version().is_none() || !keep(header, message) {
                        self.take(header, message);
                    }
                }
                NextMessage::Broken(header, message) => {
                    self.note(false, message);
                    self.refuse(header, message, BadRequest::BadLen.into());
                    self.close(format!("a message says it is {} bytes long, expected 8 to 65535", header.length));
                }
                NextMessage::Incomplete => {
                    self.check_beginning(input.rest());
                    break;
                }
            }
        }
        if !self.is_closed() {
            self.input = input;
        }
    }

    /// Processes a whole message that the caller has kept ([`Session::receive_and_keep`]). Its length must be that of
    /// its header.
    pub fn process(&mut self, message: &[u8]) {
        if let Some(header) = MessageHeader::read(message) {
            self.take(header, message);
        }
    }

    /// Removes and returns the oldest event, if any.
    pub fn take_event(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    /// Queues a message for the peer with its `xid` unchanged: replies carry their request's id, and
    /// [`Session::allocate_xid`] gives fresh ones.
    ///
    /// # Errors
    /// The session is not up, its output is full, or the version cannot carry the message. Nothing is then queued.
    pub fn send(&mut self, message: &Message) -> Result<(), SendError> {
        let State::Up(version) = self.state else {
            return Err(SendError::NotUp);
        };
        if self.output.len() >= self.config.max_output_bytes {
            return Err(SendError::Full(self.output.len()));
        }
        let before = self.output.len();
        codec::encode(message, version, &mut self.output)?;
        self.note_output(before);
        self.counters.sent += 1;
        Ok(())
    }

    /// Queues `count` messages that are already encoded in this session's version.
    ///
    /// # Errors
    /// The session is not up, or its output is full. Nothing is then queued.
    pub fn send_encoded(&mut self, messages: &[u8], count: u64) -> Result<(), SendError> {
        if !matches!(self.state, State::Up(_)) {
            return Err(SendError::NotUp);
        }
        if self.output.len() >= self.config.max_output_bytes {
            return Err(SendError::Full(self.output.len()));
        }
        let before = self.output.len();
        self.output.extend_from_slice(messages);
        self.note_output(before);
        self.counters.sent += count;
        Ok(())
    }

    /// Begins or ends the watching of all messages in both directions, for [`Session::take_watched`]. A session that is
    /// watched from its start also shows its own hello.
    pub fn watch(&mut self, is_watched: bool) {
        if is_watched && self.watched.is_none() {
            self.watched = Some(Vec::new());
            if self.counters.sent == 1 && self.counters.received == 0 {
                self.note_output(0);
            }
        } else if !is_watched {
            self.watched = None;
        }
    }

    /// Returns the messages that passed since the last call, in order. Take them after each call of other methods: a
    /// watched session keeps them without a limit.
    pub fn take_watched(&mut self) -> Vec<WatchedMessage> {
        self.watched.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns a fresh transaction id. Ids repeat after 2^32 calls.
    pub fn allocate_xid(&mut self) -> u32 {
        self.last_xid = self.last_xid.wrapping_add(1);
        self.last_xid
    }

    /// Returns the bytes to write to the peer. Remove from the front what was written.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Runs the timers: sends echo requests and closes a session whose peer is silent. Call it at the time that
    /// [`Session::deadline`] returns.
    pub fn poll(&mut self, now: Instant) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match self.state {
            State::Hello => self.close(format!("no hello within {:?}", self.config.handshake_timeout)),
            State::Features(..) => {
                self.close(format!("no features reply within {:?} of connecting", self.config.handshake_timeout));
            }
            State::Up(_) if self.probed.is_some() => {
                self.close(format!("no answer to an echo request within {:?}", self.config.echo_interval));
            }
            State::Up(version) => self.probe(now, version),
            State::Closed => {}
        }
    }

    /// Restarts the silence timers, because the caller deliberately does not read from the peer at present.
    pub fn excuse(&mut self, now: Instant) {
        self.heard = self.heard.max(now);
        self.probed = self.probed.map(|probed| probed.max(now));
    }

    /// Returns the time of the next call of [`Session::poll`]; `None` if no timer runs.
    pub fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Closed => None,
            State::Hello | State::Features(..) => Some(self.started + self.config.handshake_timeout),
            State::Up(_) if self.config.echo_interval.is_zero() => None,
            State::Up(_) => Some(self.probed.unwrap_or(self.heard) + self.config.echo_interval),
        }
    }

    /// Returns the agreed version; `None` before the session is up and after it closed.
    pub fn version(&self) -> Option<Version> {
        match self.state {
            State::Up(version) => Some(version),
            _ => None,
        }
    }

    /// Returns true if the session is closed.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Returns the counters since the start of the session.
    pub fn counters(&self) -> SessionCounters {
        self.counters
    }
}

/// Notes for those who watch.
impl Session {
    fn note(&mut self, is_sent: bool, message: &[u8]) {
        if let Some(watched) = &mut self.watched {
            watched.push(WatchedMessage { is_sent, bytes: message.to_vec() });
        }
    }

    /// Notes the messages of the output from the byte `from`.
    fn note_output(&mut self, from: usize) {
        let Some(watched) = &mut self.watched else { return };
        let mut rest = self.output.get(from..).unwrap_or_default();
        while let Some(header) = MessageHeader::read(rest) {
            let length = usize::from(header.length).clamp(codec::HEADER_BYTES, rest.len());
            watched.push(WatchedMessage { is_sent: true, bytes: rest[..length].to_vec() });
            rest = &rest[length..];
        }
    }
}

/// Processing of received messages, depending on the state.
impl Session {
    fn take(&mut self, header: MessageHeader, bytes: &[u8]) {
        let agreed = match self.state {
            State::Hello => None,
            State::Features(version, _) | State::Up(version) => Some(version),
            State::Closed => return,
        };
        match agreed {
            _ if header.kind == kind::ERROR => self.take_error(bytes),
            _ if header.kind == kind::HELLO => self.take_hello(header, bytes, agreed),
            None => self.refuse_beginning(header, bytes),
            Some(version) if header.version != version as u8 => {
                self.refuse(header, bytes, BadRequest::BadVersion.into());
            }
            Some(_) if header.kind == kind::ECHO_REQUEST => self.answer_echo(header, bytes),
            Some(version) => match codec::decode_as(bytes, self.has_tables) {
                Ok(message) if self.end.expects(&message.body) => self.take_message(version, message),
                Ok(_) => self.refuse(header, bytes, BadRequest::BadType.into()),
                Err(error) => self.refuse(header, bytes, error.error),
            },
        }
    }

    /// Refuses a peer that speaks another protocol as soon as one header is received. The length field of such a
    /// "header" is arbitrary, so the whole "message" may never arrive.
    fn check_beginning(&mut self, rest: &[u8]) {
        let Some(header) = MessageHeader::read(rest).filter(|_| self.state == State::Hello) else {
            return;
        };
        if header.kind != kind::HELLO && header.kind != kind::ERROR {
            self.refuse_beginning(header, rest);
        }
    }

    fn refuse_beginning(&mut self, header: MessageHeader, bytes: &[u8]) {
        self.refuse(header, bytes, BadRequest::BadType.into());
        self.close(match (header.version, header.kind) {
            TLS_BEGINS => "the peer speaks TLS; use ssl: and pssl: at both ends, or tcp: and ptcp: at both".to_owned(),
            (_, kind) => format!("the first message has type {kind}, expected a hello (type 0)"),
        });
    }

    /// Processes a hello. A hello after the first has no effect, unless the agreed version no longer results from it:
    /// the session then closes, because this cannot be the peer of the handshake.
    fn take_hello(&mut self, header: MessageHeader, bytes: &[u8], agreed: Option<Version>) {
        let hello = match codec::decode(bytes).map(|message| message.body) {
            Ok(Body::Hello(hello)) => hello,
            Ok(_) => Hello::default(),
            Err(error) => {
                self.refuse(header, bytes, error.error);
                return self.close(format!("the peer's hello cannot be read: {error}"));
            }
        };
        let version = negotiate::agree(&self.config.versions, header.version, &hello);
        match (version, agreed) {
            (Some(version), None) => self.agree(version),
            (Some(version), Some(agreed)) if version == agreed => {}
            _ => {
                let reason = negotiate::disagreement(&self.config.versions, header.version, &hello);
                let data = reason.clone().into_bytes();
                self.answer_error(header, HelloFailed::Incompatible.into(), data);
                self.close(reason);
            }
        }
    }

    fn agree(&mut self, version: Version) {
        match self.end {
            SessionSide::Switch => self.go_up(version, None),
            SessionSide::Controller => {
                let xid = self.allocate_xid();
                self.state = State::Features(version, xid);
                self.answer(version, &Message { xid, body: Body::FeaturesRequest });
            }
        }
    }

    fn go_up(&mut self, version: Version, features: Option<FeaturesReply>) {
        self.state = State::Up(version);
        self.events.push_back(SessionEvent::Up { version, features });
    }

    /// Processes an error message. An error before the session is up closes it, because the peer refuses the
    /// handshake. An error that cannot be decoded is only counted, because an error must not be answered with an
    /// error.
    fn take_error(&mut self, bytes: &[u8]) {
        let Ok(message) = codec::decode(bytes) else {
            self.counters.refused += 1;
            return;
        };
        let Body::Error(error) = &message.body else {
            return;
        };
        if self.version().is_none() || matches!(error.error, ErrorType::HelloFailed(_)) {
            self.close(refusal(error));
        } else {
            self.events.push_back(SessionEvent::Message(message));
        }
    }

    fn take_message(&mut self, version: Version, message: Message) {
        if let Body::Nx(nicira) = &message.body
            && let NxMessage::FlowModTableId(set) = **nicira
        {
            self.has_tables = set;
        }
        match (self.state, message) {
            // The session's own echo requests are empty; a reply with data answers a request of the application.
            (State::Up(_), message @ Message { body: Body::EchoReply(_), .. }) if self.wants_echo(&message) => {
                self.events.push_back(SessionEvent::Message(message));
            }
            (_, Message { body: Body::EchoReply(_), .. }) => {}
            (State::Features(_, asked), Message { xid, body: Body::FeaturesReply(features) }) if xid == asked => {
                self.go_up(version, Some(features));
            }
            (State::Up(_), message) => self.events.push_back(SessionEvent::Message(message)),
            _ => self.counters.early += 1,
        }
    }
}

/// Answers to the peer, echo requests, closing.
impl Session {
    /// Returns true if `reply` answers an echo request of the application: at the controller's side, with data.
    fn wants_echo(&self, reply: &Message) -> bool {
        self.end == SessionSide::Controller && matches!(&reply.body, Body::EchoReply(data) if !data.0.is_empty())
    }

    fn refuse(&mut self, header: MessageHeader, bytes: &[u8], error: ErrorType) {
        self.counters.refused += 1;
        let data = bytes[..bytes.len().min(ERROR_DATA_BYTES)].to_vec();
        self.answer_error(header, error, data);
    }

    fn answer_error(&mut self, header: MessageHeader, error: ErrorType, data: Vec<u8>) {
        let version = match self.state {
            State::Features(version, _) | State::Up(version) => version,
            State::Hello | State::Closed => negotiate::answer_version(&self.config.versions, header.version),
        };
        self.answer(
            version,
            &Message { xid: header.xid, body: Body::Error(ErrorMessage { error, data: Bytes(data) }) },
        );
    }

    /// Answers an echo request by the request with another type. Drops and counts the answer if the output is full.
    fn answer_echo(&mut self, header: MessageHeader, bytes: &[u8]) {
        let before = self.output.len();
        match EchoRequestView::read(bytes) {
            Some(request) if before < self.config.max_output_bytes => {
                request.write_reply(&mut self.output);
                self.note_output(before);
                self.counters.sent += 1;
            }
            Some(_) => self.counters.answers_dropped += 1,
            // A kept message of another length than its header says.
            None => self.refuse(header, bytes, BadRequest::BadLen.into()),
        }
    }

    fn probe(&mut self, now: Instant, version: Version) {
        self.probed = Some(now);
        let xid = self.allocate_xid();
        self.answer(version, &Message { xid, body: Body::EchoRequest(Bytes::default()) });
    }

    /// Queues a message that the session sends by itself. Drops and counts it if the output is full.
    fn answer(&mut self, version: Version, message: &Message) {
        let before = self.output.len();
        let full = before >= self.config.max_output_bytes;
        if full || codec::encode(message, version, &mut self.output).is_err() {
            self.counters.answers_dropped += 1;
        } else {
            self.note_output(before);
            self.counters.sent += 1;
        }
    }

    fn close(&mut self, reason: String) {
        self.state = State::Closed;
        self.input = Reassembly::default();
        self.events.push_back(SessionEvent::Closed { reason });
    }
}

/// Returns a description of an error received during the handshake, including the text that a failed hello carries.
fn refusal(error: &ErrorMessage) -> String {
    let text = String::from_utf8_lossy(&error.data.0);
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    match error.error {
        ErrorType::HelloFailed(code) => format!("the peer refused the hello ({}): {text}", code.name()),
        other => format!("the peer answered the handshake with an error: {other:?}"),
    }
}
