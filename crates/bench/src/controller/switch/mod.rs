//! An emulated switch without socket and clock: it is given bytes and `now`, and says what to send and when to wake it.
//!
//! The session and the codec handle the handshake and everything that is rare. Requests are patched templates, and
//! their replies are views of the bytes.
mod echo;
mod requests;

use super::answers::EmulatedIdentity;
use super::pace::RequestPace;
use super::reply::message_type;
use super::request::{RequestPlan, RequestTemplate};
use super::tally::Tally;
use echo::EchoRequests;
use std::time::Duration;
use weir_openflow::codec::{HEADER_BYTES, MessageHeader};
use weir_openflow::session::{Session, SessionConfig, SessionEvent};
use weir_openflow::{Body, EncodeError, Message};
use weir_units::Instant;

/// Silence of the controller after which its set-up counts as complete.
const QUIET: Duration = Duration::from_millis(50);
/// Most announcements of hosts that wait for an answer.
const ANNOUNCED_AT_ONCE: u32 = 16;
/// Least number of requests whose replies are recognised.
const LEAST_SLOTS: u32 = 128;
/// Time after which an announcement needs no answer: controllers may learn without one.
const ANNOUNCED_LONG_AGO: Duration = Duration::from_millis(300);
/// Bytes of output beyond which no request is added, because the controller does not read.
const MAX_OUTPUT: usize = 64 << 10;
/// Time that the controller has for the handshake.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);

/// Seen replies to a request, as bits.
const SEEN_FLOW_MOD: u8 = 1;
const SEEN_PACKET_OUT: u8 = 2;
const GIVEN_UP: u8 = 4;

/// Stage in the life of an emulated switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EmulatedStage {
    /// The handshake goes on.
    Connecting,
    /// The controller sets the switch up; it last spoke at this time.
    SetUp(Instant),
    /// Hosts announce themselves.
    Announcing,
    /// Requests may be sent.
    Ready,
    /// The channel has ended.
    Closed,
}

/// Request whose replies are awaited or were seen.
#[derive(Debug, Clone, Copy)]
struct RequestSlot {
    serial: u32,
    seen: u8,
    due: Instant,
}

/// Settings of an emulated switch.
#[derive(Debug, Clone)]
pub(super) struct EmulatedSettings {
    pub(super) plan: RequestPlan,
    pub(super) pace: RequestPace,
    /// Time after which a request counts as lost.
    pub(super) timeout: Duration,
    /// Most requests that wait for an answer.
    pub(super) most_waiting: u32,
    /// True for the switch that comes at half time.
    pub(super) is_special: bool,
    /// Time between two echo requests; `None` for none.
    pub(super) echo_interval: Option<Duration>,
}

/// Figures of one switch.
#[derive(Debug, Clone, Default)]
pub(super) struct SwitchFigures {
    /// Requests that were due in the measured time.
    pub(super) asked: u64,
    /// Requests of the measured time that could not be sent, because too many were unanswered or the controller did
    /// not read.
    pub(super) unsent: u64,
    /// Requests of the measured time that were given up.
    pub(super) lost: u64,
    /// Echo requests of the measured time that were given up.
    pub(super) echo_lost: u64,
    /// Requests answered in the measured time, each once, by window.
    pub(super) windows: Vec<u32>,
    /// Replies in the measured time, counted as cbench counts them.
    pub(super) cbench: u64,
}

impl SwitchFigures {
    /// Returns the number of requests answered in the measured time.
    pub(super) fn answered(&self) -> u64 {
        self.windows.iter().map(|count| u64::from(*count)).sum()
    }

    /// Forgets when requests were answered, but not how many.
    pub(super) fn forget_windows(&mut self) {
        self.windows = vec![self.windows.iter().sum()];
    }
}

/// An emulated switch.
pub(super) struct EmulatedSwitch {
    identity: EmulatedIdentity,
    settings: EmulatedSettings,
    template: RequestTemplate,
    session: Session,
    /// Bytes of a message that is not complete.
    held: Vec<u8>,
    stage: EmulatedStage,
    connected: Instant,
    reason: String,
    /// Requests by serial number modulo the length.
    slots: Vec<RequestSlot>,
    next: u32,
    oldest: u32,
    waiting: u32,
    /// Requests that cbench would count as unanswered.
    cbench_waiting: u32,
    /// Time from which on and before which requests are sent.
    is_sending: bool,
    echo: Option<EchoRequests>,
    pub(super) figures: SwitchFigures,
}

impl EmulatedSwitch {
    /// Returns a switch that has just connected.
    ///
    /// # Errors
    /// The version cannot carry the requests.
    pub(super) fn new(settings: EmulatedSettings, now: Instant) -> Result<EmulatedSwitch, EncodeError> {
        let plan = settings.plan;
        let ports = plan.hosts.max(2);
        let identity = EmulatedIdentity { version: plan.version, datapath_id: u64::from(plan.switch) + 1, ports };
        // Echo requests would add to what is measured.
        let config = SessionConfig {
            versions: vec![plan.version],
            echo_interval: Duration::ZERO,
            handshake_timeout: HANDSHAKE,
            ..SessionConfig::default()
        };
        let slots = settings.most_waiting.max(LEAST_SLOTS).next_power_of_two() as usize * 2;
        Ok(EmulatedSwitch {
            identity,
            template: RequestTemplate::new(plan)?,
            session: Session::switch(config, now),
            held: Vec::new(),
            stage: EmulatedStage::Connecting,
            connected: now,
            reason: String::new(),
            slots: vec![RequestSlot { serial: u32::MAX, seen: GIVEN_UP, due: Instant::ZERO }; slots],
            next: 0,
            oldest: 0,
            waiting: 0,
            cbench_waiting: 0,
            is_sending: false,
            echo: settings.echo_interval.map(EchoRequests::new),
            figures: SwitchFigures::default(),
            settings,
        })
    }

    /// Returns the stage.
    pub(super) fn stage(&self) -> EmulatedStage {
        self.stage
    }

    /// Returns the reason of the channel's end; empty before.
    pub(super) fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns true for the switch that comes at half time.
    pub(super) fn is_special(&self) -> bool {
        self.settings.is_special
    }

    /// Returns the number of requests without an answer.
    pub(super) fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Returns the bytes to write. Remove from the front what was written.
    pub(super) fn output(&mut self) -> &mut Vec<u8> {
        self.session.output()
    }

    /// Starts to send requests; the switch has to be ready.
    pub(super) fn start(&mut self, now: Instant, tally: &mut Tally) {
        self.is_sending = true;
        if let RequestPace::Open(times) = &mut self.settings.pace {
            times.start(now);
        }
        self.wake(now, tally);
    }

    /// Ends the sending of requests.
    pub(super) fn stop(&mut self) {
        self.is_sending = false;
    }

    /// Ends the channel.
    pub(super) fn close(&mut self, reason: &str) {
        if self.stage != EmulatedStage::Closed {
            self.stage = EmulatedStage::Closed;
            self.reason = reason.to_owned();
            self.is_sending = false;
        }
    }

    /// Returns the time of the next call of [`EmulatedSwitch::wake`].
    pub(super) fn deadline(&self) -> Option<Instant> {
        let stage = match self.stage {
            EmulatedStage::Closed => return None,
            EmulatedStage::SetUp(spoke) => Some(spoke + QUIET),
            _ => self.session.deadline(),
        };
        let oldest = (self.waiting > 0).then(|| self.slot(self.oldest).due + self.timeout());
        let due = match &self.settings.pace {
            RequestPace::Open(times) if self.is_sending => Some(times.due()),
            _ => None,
        };
        let echo = self.echo.as_ref().filter(|_| self.is_sending).map(|echo| echo.deadline(self.settings.timeout));
        [stage, oldest, due, echo].into_iter().flatten().min()
    }

    /// Does what is due: sends requests, gives up old ones.
    pub(super) fn wake(&mut self, now: Instant, tally: &mut Tally) {
        self.session.poll(now);
        self.take_events(now, tally);
        if let EmulatedStage::SetUp(spoke) = self.stage
            && now >= spoke + QUIET
        {
            self.stage = EmulatedStage::Announcing;
        }
        self.give_up(now, tally);
        match self.stage {
            EmulatedStage::Announcing => self.announce(now),
            EmulatedStage::Ready if self.is_sending => {
                self.send_echo(now, tally);
                self.send_requests(now, tally);
            }
            _ => {}
        }
    }

    /// Processes bytes from the controller, in pieces of any size.
    pub(super) fn receive(&mut self, now: Instant, bytes: &[u8], tally: &mut Tally) {
        if self.held.is_empty() {
            let used = self.take_messages(now, bytes, tally);
            self.held.extend_from_slice(&bytes[used..]);
        } else {
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(bytes);
            let used = self.take_messages(now, &held, tally);
            held.drain(..used);
            self.held = held;
        }
        self.wake(now, tally);
    }

    /// Processes all whole messages. Returns their length.
    fn take_messages(&mut self, now: Instant, bytes: &[u8], tally: &mut Tally) -> usize {
        let mut at = 0;
        while let Some(header) = MessageHeader::read(&bytes[at..]).filter(|_| self.stage != EmulatedStage::Closed) {
            let (rest, length) = (&bytes[at..], usize::from(header.length));
            let is_first = self.session.version().is_none();
            // The session refuses at once what is no OpenFlow; its length may be any.
            if length < HEADER_BYTES || is_first && header.kind > message_type::ERROR {
                tally.counts.malformed += 1;
                self.session.receive(now, rest);
                self.take_events(now, tally);
                return bytes.len();
            }
            let Some(message) = rest.get(..length) else { break };
            let is_reply = matches!(header.kind, message_type::FLOW_MOD | message_type::PACKET_OUT);
            if is_reply && header.version == self.settings.plan.version as u8 {
                self.take_reply(now, message, tally);
            } else if header.kind == message_type::ECHO_REPLY && self.echo.is_some() {
                self.take_echo_reply(now, header.xid, tally);
            } else {
                let refused = self.session.counters().refused;
                self.session.receive(now, message);
                tally.counts.malformed += self.session.counters().refused - refused;
                self.take_events(now, tally);
            }
            // A controller that discovers links sends probes without end.
            if header.kind != message_type::PACKET_OUT {
                self.hear(now);
            }
            at += length;
        }
        if self.stage == EmulatedStage::Closed { bytes.len() } else { at }
    }

    fn hear(&mut self, now: Instant) {
        if let EmulatedStage::SetUp(spoke) = &mut self.stage {
            *spoke = now;
        }
    }

    fn take_events(&mut self, now: Instant, tally: &mut Tally) {
        while let Some(event) = self.session.take_event() {
            match event {
                SessionEvent::Up { .. } => {}
                SessionEvent::Closed { reason } => self.close(&reason),
                SessionEvent::Message(message) => self.take_message(now, &message, tally),
            }
        }
    }

    fn take_message(&mut self, now: Instant, message: &Message, tally: &mut Tally) {
        if self.stage == EmulatedStage::Connecting && message.body == Body::FeaturesRequest {
            self.stage = EmulatedStage::SetUp(now);
            tally.handshakes.record(now.since(self.connected));
        }
        tally.counts.errors += u64::from(matches!(message.body, Body::Error(_)));
        for body in self.identity.answers(&message.body) {
            // A controller that reads nothing has no answers either.
            let _ = self.session.send(&Message { xid: message.xid, body });
        }
    }
}
