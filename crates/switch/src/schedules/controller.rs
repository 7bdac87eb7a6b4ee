//! A controller that follows a script drawn from a seed, and checks the switch's replies.
//!
//! Checked here: a reply or error to a message before a barrier arrives before the barrier's reply, and one to a
//! message after the barrier arrives after it. Each request is answered once. A flow-removed arrives once for an
//! entry that requested it, and never for an existing entry.
use super::forwarding_oracle::ForwardingOracle;
use super::frames;
use super::memory_connection::{ControllerEnd, DisconnectKind};
use std::collections::{HashMap, HashSet};
use weir_openflow::model::ErrorType;
use weir_openflow::model::multipart::ReplyBody;
use weir_openflow::session::{Session, SessionConfig, SessionEvent};
use weir_openflow::{Body, Message, Version};
use weir_units::Instant;

/// Number of keys of one connection.
pub(super) const KEYS: u16 = 8;
/// Maximum number of requests that are neither answered nor confirmed.
pub(super) const UNDER_WAY: usize = 400;

/// A message that was sent.
#[derive(Debug)]
pub(super) struct SentMessage {
    pub(super) xid: u32,
    pub(super) kind: ReplyExpectation,
    pub(super) is_answered: bool,
}

/// Kind of a message, by the reply expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyExpectation {
    /// Answered only if it is refused.
    Order,
    /// Refused by the datapath.
    Wrong,
    /// Refused as soon as it is read, because it cannot be decoded: its error may arrive before the reply to an
    /// earlier barrier.
    Malformed,
    /// Answered by one or more messages.
    Request,
    Barrier,
}

/// A change of a key that no barrier has confirmed.
#[derive(Debug)]
pub(super) struct UnconfirmedChange {
    /// Index in `sent` of the message that makes the change.
    pub(super) place: usize,
    pub(super) key: u16,
    pub(super) state: usize,
    /// Cookie of the entry that is added; none for a delete.
    pub(super) cookie: Option<u64>,
}

/// A controller that follows a script and checks the switch's replies.
pub(super) struct ScriptedController {
    pub(super) name: String,
    pub(super) session: Session,
    wire: ControllerEnd,
    pub(super) is_up: bool,
    /// First of the [`KEYS`] keys that only this connection uses.
    pub(super) first_key: u16,
    pub(super) sent: Vec<SentMessage>,
    /// Index in `sent` by transaction id.
    pub(super) places: HashMap<u32, usize>,
    /// Index of the first message that no barrier reply has settled.
    pub(super) settled: usize,
    pub(super) changes: Vec<UnconfirmedChange>,
    /// Indices of the packet-outs sent that no barrier reply has confirmed.
    pub(super) packet_outs: Vec<usize>,
    pub(super) packet_outs_sent: u64,
    pub(super) packet_outs_confirmed: u64,
    /// Changes of each key in order: index of the message, and cookie of the added entry, or none for a delete.
    entries: HashMap<u16, Vec<(usize, Option<u64>)>>,
    pub(super) cookies: HashSet<u64>,
    removed: HashSet<u64>,
    /// True if groups, meters and monitors have been requested.
    pub(super) is_prepared: bool,
    /// True if a bundle was dropped after its timeout, so that the existing entries are unknown.
    is_uncertain: bool,
    /// True if bytes were written or read in the last step.
    is_moving: bool,
    pub(super) next_bundle: u32,
    /// Number of updates from its flow monitor.
    updates: u64,
    /// Number of steps for which it reads nothing.
    stalls: u32,
    pub(super) is_over: bool,
    packet_ins: u64,
}

impl ScriptedController {
    /// Returns a controller of `version` at the other end of a connection.
    pub(super) fn new(
        name: String,
        version: Version,
        wire: ControllerEnd,
        first_key: u16,
        now: Instant,
    ) -> ScriptedController {
        let config = SessionConfig { versions: vec![version], ..SessionConfig::default() };
        ScriptedController {
            name,
            session: Session::controller(config, now),
            wire,
            is_up: false,
            first_key,
            sent: Vec::new(),
            places: HashMap::new(),
            settled: 0,
            changes: Vec::new(),
            packet_outs: Vec::new(),
            packet_outs_sent: 0,
            packet_outs_confirmed: 0,
            entries: HashMap::new(),
            cookies: HashSet::new(),
            removed: HashSet::new(),
            is_prepared: false,
            is_moving: false,
            is_uncertain: false,
            next_bundle: 0,
            updates: 0,
            stalls: 0,
            is_over: false,
            packet_ins: 0,
        }
    }

    /// Performs one step: writes some pending output, reads some input and checks it.
    ///
    /// # Errors
    /// A message that the switch must not have sent.
    pub(super) fn step(&mut self, now: Instant, ledger: &mut ForwardingOracle) -> Result<(), String> {
        self.session.poll(now);
        let written = self.wire.write(self.session.output());
        self.session.output().drain(..written);
        if self.stalls > 0 {
            self.stalls -= 1;
            return Ok(());
        }
        let bytes = self.wire.read();
        self.is_moving = written + bytes.len() > 0;
        if bytes.is_empty() {
            self.is_over |= self.wire.is_over();
        } else {
            self.session.receive(now, &bytes);
        }
        while let Some(event) = self.session.take_event() {
            match event {
                SessionEvent::Up { .. } => self.is_up = true,
                SessionEvent::Message(message) => self.take(&message, ledger).map_err(|problem| self.says(&problem))?,
                SessionEvent::Closed { .. } => self.is_over = true,
            }
        }
        Ok(())
    }

    fn says(&self, problem: &str) -> String {
        format!("{}: {problem}", self.name)
    }

    /// Stops reading for `steps` steps.
    pub(super) fn stall(&mut self, steps: u32) {
        self.stalls = steps;
    }

    /// Ends the connection.
    pub(super) fn end(&mut self, end: DisconnectKind) {
        self.wire.end(end);
        self.is_over = true;
    }

    /// Resumes reading, and reads everything available at each step.
    pub(super) fn hurry(&mut self) {
        self.stalls = 0;
        self.wire.hurry();
    }

    /// Returns true if no message is outstanding on the connection.
    pub(super) fn is_at_rest(&mut self) -> bool {
        let is_quiet = !self.is_moving && self.session.output().is_empty();
        self.is_over || self.is_up && is_quiet && self.unanswered().is_none()
    }

    /// Returns a description of the first unanswered request.
    pub(super) fn unanswered(&self) -> Option<String> {
        let open = |sent: &&SentMessage| !sent.is_answered && sent.kind != ReplyExpectation::Order;
        self.sent
            .iter()
            .find(open)
            .map(|sent| self.says(&format!("{:?} with xid {} is not answered", sent.kind, sent.xid)))
    }

    /// Returns the number of messages sent.
    pub(super) fn messages(&self) -> u64 {
        self.sent.len() as u64
    }

    /// Returns the number of reads and writes that moved less than they could have.
    pub(super) fn partial(&self) -> u64 {
        self.wire.partial()
    }
}

/// Tracking of flow entries.
impl ScriptedController {
    /// Notes a change of a key that was sent.
    pub(super) fn changes(&mut self, change: UnconfirmedChange) {
        self.entries.entry(change.key).or_default().push((change.place, change.cookie));
        self.changes.push(change);
    }

    /// Notes that the switch dropped a bundle after its timeout. Later messages for it begin another bundle (OpenFlow
    /// 1.4.1, 6.8), so its commit may carry out a part of it. Entries of bundles whose commit is not answered are
    /// therefore unknown.
    fn bundle_is_lost(&mut self) {
        let ScriptedController { changes, sent, .. } = self;
        let is_open = |sent: &SentMessage| sent.kind == ReplyExpectation::Request && !sent.is_answered;
        changes.retain(|change| !is_open(&sent[change.place]));
        self.is_uncertain = true;
    }

    /// Removes the changes of a message that is not carried out.
    fn forget_changes(&mut self, place: usize) {
        self.changes.retain(|change| change.place != place);
        self.entries.values_mut().for_each(|states| states.retain(|(sent, _)| *sent != place));
    }

    /// Returns the keys of this connection.
    fn keys(&self) -> std::ops::Range<u16> {
        self.first_key..self.first_key + KEYS
    }

    /// Checks that each added entry exists, was replaced, or was reported once by a flow-removed. `are_there` holds
    /// the cookies of all entries.
    ///
    /// # Errors
    /// A description of the first entry for which that does not hold.
    pub(super) fn check_entries(&self, are_there: &HashSet<u64>) -> Result<(), String> {
        if self.is_uncertain {
            return Ok(());
        }
        for (key, states) in &self.entries {
            for (place, cookie) in
                states.iter().enumerate().filter_map(|(place, (_, cookie))| Some((place, (*cookie)?)))
            {
                let (is_there, was_removed) = (are_there.contains(&cookie), self.removed.contains(&cookie));
                let is_right = match states.get(place + 1) {
                    // The next entry replaced this one if it still existed.
                    Some((_, Some(_))) => !is_there,
                    Some((_, None)) => !is_there && was_removed,
                    None => is_there != was_removed,
                };
                if !is_right {
                    return Err(self.says(&format!(
                        "entry {cookie:#x} of key {key} is there: {is_there}, flow-removed: {was_removed}"
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Handling of received messages.
impl ScriptedController {
    fn take(&mut self, message: &Message, ledger: &mut ForwardingOracle) -> Result<(), String> {
        match &message.body {
            Body::PacketIn(packet) => {
                self.packet_ins += 1;
                let number = frames::number(&packet.data.0).ok_or("a packet-in without its frame's number")?;
                ledger.punted(number)
            }
            Body::FlowRemoved(removed) => self.removed(removed.cookie),
            Body::PortStatus(_) | Body::EchoReply(_) | Body::RequestForward(_) | Body::RoleStatus(_) => Ok(()),
            Body::MultipartReply(reply) if message.xid == 0 && matches!(reply.body, ReplyBody::FlowMonitor(_)) => {
                self.updates += 1;
                Ok(())
            }
            Body::MultipartReply(reply) => self.answered(message, !reply.more, ledger),
            _ if message.xid == 0 && is_late_bundle(message) => {
                self.bundle_is_lost();
                Ok(())
            }
            _ => self.answered(message, true, ledger),
        }
    }

    fn removed(&mut self, cookie: u64) -> Result<(), String> {
        let is_own = self.keys().contains(&u16::try_from(cookie >> 32).unwrap_or(u16::MAX));
        if is_own && (!self.cookies.contains(&cookie) || !self.removed.insert(cookie)) {
            return Err(format!("flow-removed of cookie {cookie:#x} once more, or of no entry"));
        }
        Ok(())
    }

    /// Handles a reply or an error; `is_last` if no other part follows.
    fn answered(&mut self, message: &Message, is_last: bool, ledger: &mut ForwardingOracle) -> Result<(), String> {
        let (xid, what) = (message.xid, format!("{:.200}", format!("{message:?}")));
        let place =
            *self.places.get(&xid).ok_or_else(|| format!("an answer with xid {xid}, which was not sent: {what}"))?;
        let SentMessage { kind, is_answered, .. } = self.sent[place];
        if is_answered {
            return Err(format!("{kind:?} with xid {xid} is answered twice"));
        }
        if place < self.settled {
            return Err(format!("the answer to {kind:?} with xid {xid} comes behind the reply to a later barrier"));
        }
        let before = &self.sent[self.settled..place];
        let open_barrier = before.iter().find(|sent| sent.kind == ReplyExpectation::Barrier && !sent.is_answered);
        if let Some(barrier) = open_barrier.filter(|_| kind != ReplyExpectation::Malformed) {
            return Err(format!("the answer to {kind:?} with xid {xid} overtakes barrier {}", barrier.xid));
        }
        let is_error = matches!(message.body, Body::Error(_));
        if is_error {
            self.forget_changes(place);
        }
        if kind == ReplyExpectation::Order && !is_late_bundle(message) {
            return Err(format!("an order with xid {xid} is refused or answered: {what}"));
        }
        self.sent[place].is_answered = is_last;
        if kind == ReplyExpectation::Barrier { self.settle(place, ledger) } else { Ok(()) }
    }

    /// Handles a barrier reply: everything before the barrier must have been carried out and answered.
    fn settle(&mut self, place: usize, ledger: &mut ForwardingOracle) -> Result<(), String> {
        let open = |sent: &&SentMessage| !sent.is_answered && sent.kind != ReplyExpectation::Order;
        if let Some(open) = self.sent[self.settled..place].iter().find(open) {
            return Err(format!("a barrier reply overtakes the answer to {:?} with xid {}", open.kind, open.xid));
        }
        self.settled = place;
        let (done, open): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.changes).into_iter().partition(|c| c.place < place);
        self.changes = open;
        done.iter().for_each(|change| ledger.confirm(change.key, change.state));
        let before = self.packet_outs.len();
        self.packet_outs.retain(|sent| *sent > place);
        self.packet_outs_confirmed += (before - self.packet_outs.len()) as u64;
        Ok(())
    }
}

/// Returns true for the error that a bundle was dropped after its timeout, or that a message belongs to such a
/// bundle.
fn is_late_bundle(message: &Message) -> bool {
    matches!(&message.body, Body::Error(error) if matches!(error.error, ErrorType::BundleFailed(_)))
}
