//! Sends a burst of commands, and finds by packets when each command was carried out.
//!
//! Packets that match the entries are sent throughout. The time between them grows with the time that has passed. So
//! a switch that takes seconds is measured with the same relative precision, and as many packets, as one that takes
//! microseconds. The *sending* times count: an entry appeared between the last packet that did not get through and
//! the first that did, however long packets take. If the interface does not report when a packet left, sending is
//! only known to lie between its start and its end; the process may have been suspended in between. Brackets include
//! that interval.
//!
//! Packets that match no entry (not yet, or no longer) may occupy the switch as long as others, and queue up in it.
//! Packets behind them are late, not lost. A burst ends when all packets that matched their entry have come back and
//! the switch has processed the others, so that the next measurement finds no queue.
use super::{TestBench, TestEntryChange};
use crate::ProfilerError;
use crate::device::DeviceEvent;
use crate::rules::{SHORTEST, TestFlowEntry};
use crate::terms::CostTermCounts;
use std::time::Duration;
use weir_openflow::model::Body;
use weir_openflow::model::ErrorType;
use weir_openflow::model::error::FlowModFailed;
use weir_traffic::ProbeHeader;
use weir_units::Instant;

/// Consecutive missing packets after which an entry counts as gone.
pub(super) const AWAY: u32 = 3;
/// Most packets of an entry inside the switch when the first one comes back.
const FEW: u32 = 16;
/// Packets without an entry are sent at most this many times as fast as the switch processes them. The resulting
/// queue is waited for; with fewer packets the time at which entries appear would be less precise.
const AHEAD: u32 = 64;
/// Shortest time between packets when nothing is measured, because the switch's speed may not be known yet; and the
/// share of the passed time.
const COARSE: Duration = Duration::from_millis(2);
const COARSE_SHARE: f64 = 1.0 / 8.0;
/// Silence after which no more packets of a burst are expected, unless packets took longer before.
const QUIET: Duration = Duration::from_millis(100);
/// Interval at which the stop request is checked.
const LOOK: Duration = Duration::from_millis(100);
/// Most marks remembered for a burst.
pub(super) const MAX_MARKS: usize = 1 << 22;

/// Observation which shows that a command was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompletionSign {
    /// Packets leave by the interface with this index.
    Leaves(usize),
    /// Packets no longer leave the switch.
    Gone,
}

/// Entry that packets are sent to, and the observation expected for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryWatch {
    /// Index of the command in the burst.
    pub(crate) command: usize,
    pub(crate) rule: TestFlowEntry,
    pub(crate) sign: CompletionSign,
}

/// Interval in which an event happened.
pub(crate) type TimeBracket = (Instant, Instant);

/// Result of a burst.
#[derive(Debug)]
pub(crate) struct CommandBurstOutcome {
    /// Sending time of the first command.
    pub(crate) started: Instant,
    /// Arrival time of the reply to the barrier behind the burst.
    pub(crate) barrier: Instant,
    /// Completion of each watched command; none if it was refused.
    pub(crate) done: Vec<Option<TimeBracket>>,
    /// Indices of commands refused because the table was full.
    pub(crate) refused: Vec<usize>,
    /// Cost terms of the burst.
    pub(crate) terms: CostTermCounts,
    /// True if a packet inside the last bracket was late by most of the bracket's width: the bracket is wide because
    /// the measuring machine was busy.
    pub(crate) is_blurred: bool,
}

impl CommandBurstOutcome {
    /// Returns the completion of all watched commands: the latest bracket.
    pub(crate) fn completed(&self) -> Option<TimeBracket> {
        self.done.iter().flatten().copied().max()
    }

    /// Returns true if commands were certainly carried out in another order than they were sent.
    pub(crate) fn is_reordered(&self) -> bool {
        let done: Vec<TimeBracket> = self.done.iter().flatten().copied().collect();
        done.windows(2).any(|pair| pair[1].1 < pair[0].0)
    }
}

/// Packets of one watched entry.
#[derive(Debug, Clone)]
struct WatchedEntry {
    watch: EntryWatch,
    /// True if the entry existed before the burst.
    was_there: bool,
    last: Option<SendInterval>,
    /// Latest packet that came back.
    answered: Option<SendInterval>,
    /// First packet sent after that one.
    unanswered: Option<SendInterval>,
    away: u32,
    done: Option<TimeBracket>,
    refused: bool,
}

impl WatchedEntry {
    fn new(watch: EntryWatch, was_there: bool) -> WatchedEntry {
        WatchedEntry {
            watch,
            was_there,
            last: None,
            answered: None,
            unanswered: None,
            away: 0,
            done: None,
            refused: false,
        }
    }

    fn is_settled(&self) -> bool {
        self.refused || self.done.is_some()
    }

    /// Returns true if a packet sent at `at` matched the entry.
    fn met(&self, at: Instant) -> bool {
        self.was_there || self.done.is_some_and(|(_, from)| from <= at)
    }

    fn sent(&mut self, sending: SendInterval) {
        self.last = Some(sending);
        self.away += 1;
        self.unanswered.get_or_insert(sending);
    }
}

/// Start and end of sending a packet; both are the departure time if the interface reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SendInterval {
    began: Instant,
    ended: Instant,
}

/// Packet that was sent, by its mark.
struct SentProbe {
    watched: usize,
    sending: SendInterval,
    /// Sending of the entry's previous packet.
    before: Option<SendInterval>,
    /// Delay of the sending behind its due time.
    late: Duration,
    is_back: bool,
}

/// Burst in progress.
struct CommandBurstRun {
    number: u16,
    started: Instant,
    /// Sending time of each command, relative to the start.
    offsets: Vec<Duration>,
    /// Transaction identifiers of the commands sent so far.
    xids: Vec<u32>,
    ended: Instant,
    barrier_xid: Option<u32>,
    barrier: Option<Instant>,
    watched: Vec<WatchedEntry>,
    marks: Vec<SentProbe>,
    /// Number of marks that came back.
    came_back: u32,
    /// Arrival time of the latest packet, and the longest delay of any packet.
    last_back: Instant,
    longest: Duration,
    turn: usize,
    refused: Vec<usize>,
}

impl CommandBurstRun {
    fn is_over(&self) -> bool {
        self.barrier.is_some() && self.watched.iter().all(WatchedEntry::is_settled)
    }

    /// Returns true if a packet inside the bracket was late by more than half of the bracket's width.
    fn was_away(&self, (low, high): TimeBracket) -> bool {
        let within = |mark: &&SentProbe| mark.sending.ended > low && mark.sending.ended <= high;
        let late = self.marks.iter().filter(within).map(|mark| mark.late).max();
        late.is_some_and(|late| late > high.since(low) / 2)
    }

    /// Returns the number of packets that have not come back.
    fn away(&self) -> u32 {
        u32::try_from(self.marks.len()).unwrap_or(u32::MAX) - self.came_back
    }

    /// Returns true if packets that matched their entry have not come back.
    fn awaits_packets(&self) -> bool {
        let met = |mark: &SentProbe| {
            let watched = &self.watched[mark.watched];
            watched.watch.sign != CompletionSign::Gone && !watched.refused && watched.met(mark.sending.began)
        };
        self.marks.iter().any(|mark| !mark.is_back && met(mark))
    }

    /// Returns an upper bound of the time the switch still needs, if each packet that did not come back occupies it
    /// for `missing`.
    fn queue(&self, now: Instant, missing: Duration) -> Duration {
        let (mut queue, mut last) = (Duration::ZERO, self.started);
        for mark in self.marks.iter().filter(|mark| !mark.is_back) {
            queue = queue.saturating_sub(mark.sending.began.since(last)) + missing;
            last = mark.sending.began;
        }
        queue.saturating_sub(now.since(last))
    }

    /// Selects the watched entry that gets the next packet. Every second packet is for the last command, which is
    /// usually done last; the other packets are for the remaining entries in turn. After the barrier's reply, entries
    /// whose packets have stopped coming get none, because their absence only has to last.
    fn next_watched(&mut self) -> Option<usize> {
        let is_open = |watched: &WatchedEntry| {
            let is_away = watched.watch.sign == CompletionSign::Gone && watched.away >= FEW && self.barrier.is_some();
            !watched.is_settled() && !is_away
        };
        let open: Vec<usize> = (0..self.watched.len()).filter(|at| is_open(&self.watched[*at])).collect();
        self.turn += 1;
        if self.turn.is_multiple_of(2) {
            open.last().copied()
        } else {
            open.get((self.turn / 2) % open.len().max(1)).copied()
        }
    }
}

fn is_modified(changes: &[TestEntryChange], watch: &EntryWatch) -> bool {
    matches!(changes.get(watch.command), Some(TestEntryChange::Modify(..)))
}

impl TestBench<'_> {
    /// Sends changes at `offsets` after the start (at once where there is no offset). Watches until all watched
    /// commands are done and the barrier is answered.
    pub(crate) fn burst(
        &mut self,
        changes: &[TestEntryChange],
        offsets: &[Duration],
        watches: &[EntryWatch],
    ) -> Result<CommandBurstOutcome, ProfilerError> {
        self.check_stop()?;
        let bodies: Vec<Body> = changes.iter().map(|change| self.body(change)).collect();
        let goes_through = |watch: &&EntryWatch| watch.sign == CompletionSign::Gone || is_modified(changes, watch);
        let through = watches.iter().filter(goes_through).map(|watch| self.forwarding_of(&watch.rule)).max();
        let mut terms = self.account(changes);
        // Packets of an entry that is being added pass only once it exists: few of them may be inside the switch
        // until the first one is back.
        let coming = |watch: &EntryWatch| (self.forwarding_of(&watch.rule) / FEW).max(self.missing / AHEAD);
        let coming = watches.iter().map(coming).max();
        let slowest = through.max(coming).unwrap_or_default();
        let started = self.device.now();
        let mut run = CommandBurstRun {
            number: self.next_run(),
            started,
            offsets: (0..changes.len()).map(|at| offsets.get(at).copied().unwrap_or_default()).collect(),
            xids: Vec::new(),
            ended: started,
            barrier_xid: None,
            barrier: None,
            watched: watches.iter().map(|watch| WatchedEntry::new(*watch, goes_through(&watch))).collect(),
            marks: Vec::new(),
            came_back: 0,
            last_back: started,
            longest: Duration::ZERO,
            turn: 0,
            refused: Vec::new(),
        };
        self.carry_through(&mut run, &bodies, slowest)?;
        self.take_back(&mut run)?;
        self.note_met(&run);
        let now = self.device.now();
        if self.has_cache {
            terms.revalidating(self.cache.flows(now));
        }
        for at in &run.refused {
            if let Some(TestEntryChange::Add(rule)) = changes.get(*at) {
                self.forget(rule);
            }
        }
        let is_blurred = run.watched.iter().filter_map(|one| one.done).max().is_some_and(|last| run.was_away(last));
        Ok(CommandBurstOutcome {
            is_blurred,
            started,
            barrier: run.barrier.unwrap_or(run.ended),
            done: run.watched.iter().map(|watched| watched.done).collect(),
            refused: run.refused,
            terms,
        })
    }

    /// Records in the tables that packets matched their entries, in sending order, including packets whose return was
    /// not awaited.
    fn note_met(&mut self, run: &CommandBurstRun) {
        let Some(tables) = &mut self.tables else { return };
        for mark in &run.marks {
            let watched = &run.watched[mark.watched];
            if watched.met(mark.sending.began) {
                tables.matched(watched.watch.rule.number.into(), SHORTEST);
            }
        }
    }

    fn carry_through(
        &mut self,
        run: &mut CommandBurstRun,
        bodies: &[Body],
        slowest: Duration,
    ) -> Result<(), ProfilerError> {
        let last = run.offsets.last().copied().unwrap_or_default();
        let deadline = run.started + last + self.settings.patience;
        let mut next_probe = run.started;
        while !run.is_over() {
            let now = self.device.now();
            if now >= deadline {
                return Err(self.silence(run));
            }
            let next_command = self.send_due(run, bodies, now)?;
            if now >= next_probe {
                self.note_sent(next_probe, now);
                self.probe(run, next_probe)?;
                next_probe = self.device.now() + self.gap(run, slowest);
            }
            let until = next_command.unwrap_or(deadline).min(next_probe).min(deadline);
            if let Some(seen) = self.device.wait(until)? {
                self.look(run, seen)?;
            }
            self.settle_gone(run);
        }
        Ok(())
    }

    /// Waits for the packets that matched their entry, some of which may be lost, and until the switch has processed
    /// the others.
    fn take_back(&mut self, run: &mut CommandBurstRun) -> Result<(), ProfilerError> {
        run.last_back = self.device.now();
        let mut rests_from = None;
        loop {
            self.check_stop()?;
            let now = self.device.now();
            let quiet = run.last_back + QUIET.max(run.longest * 2).min(self.settings.patience);
            let is_due = now < quiet && run.awaits_packets();
            let until = if is_due {
                quiet
            } else {
                let latest = *rests_from.get_or_insert(now) + self.settings.patience;
                latest.min(now + run.queue(now, self.missing))
            };
            if until <= now {
                return Ok(());
            }
            if let Some(seen) = self.device.wait(until.min(now + LOOK))? {
                self.look(run, seen)?;
            }
        }
    }

    fn silence(&self, run: &CommandBurstRun) -> ProfilerError {
        let what = match run.barrier {
            Some(_) => "packet that shows that a command was carried out",
            None => "barrier reply",
        };
        ProfilerError::silent(format!("{what} while {}", self.during), self.settings.patience)
    }

    /// Sends the commands that are due, and the barrier behind the last one. Returns when the next command is due.
    fn send_due(
        &mut self,
        run: &mut CommandBurstRun,
        bodies: &[Body],
        now: Instant,
    ) -> Result<Option<Instant>, ProfilerError> {
        if run.barrier_xid.is_some() {
            return Ok(None);
        }
        let mut messages = Vec::new();
        while run.xids.len() < bodies.len() && run.started + run.offsets[run.xids.len()] <= now {
            let message = self.message(bodies[run.xids.len()].clone());
            run.xids.push(message.xid);
            messages.push(message);
        }
        if run.xids.len() == bodies.len() {
            let barrier = self.message(Body::BarrierRequest);
            run.barrier_xid = Some(barrier.xid);
            messages.push(barrier);
            run.ended = now;
        }
        if !messages.is_empty() {
            self.device.send(&messages)?;
        }
        Ok(run.offsets.get(run.xids.len()).map(|offset| run.started + *offset))
    }

    /// Returns the time until the next packet: a randomised share of the time that has passed, so that measuring has
    /// no period of its own.
    fn gap(&mut self, run: &CommandBurstRun, slowest: Duration) -> Duration {
        let passed = self.device.now().since(run.ended.max(run.started));
        let resolution = if self.is_coarse { COARSE_SHARE } else { self.settings.resolution };
        let share = passed.mul_f64(resolution * (0.5 + self.random.f64()));
        // Packets that the switch forwards throughout must not queue up in it.
        let finest = self.settings.finest.max(slowest.mul_f64(1.0 + 0.5 * self.random.f64()));
        let finest = if self.is_coarse { finest.max(COARSE) } else { finest };
        share.clamp(finest, self.settings.coarsest.max(finest))
    }

    /// Sends the next packet, which was due at `due`.
    fn probe(&mut self, run: &mut CommandBurstRun, due: Instant) -> Result<(), ProfilerError> {
        let Some(at) = run.next_watched().filter(|_| run.marks.len() < MAX_MARKS) else { return Ok(()) };
        let now = self.device.now();
        let mark = ProbeHeader {
            run: run.number,
            sequence: u32::try_from(run.marks.len()).unwrap_or(u32::MAX),
            sent_ns: now.as_nanos(),
            is_new_flow: false,
            counts: true,
            is_wall: false,
        };
        let rule = run.watched[at].watch.rule;
        self.note_flow(&rule);
        let packet = rule.packet(SHORTEST, &mark);
        let left = self.device.transmit(0, &packet)?;
        let sending = SendInterval { began: left.unwrap_or(now), ended: left.unwrap_or(self.device.now()) };
        let (before, late) = (run.watched[at].last, now.since(due));
        run.marks.push(SentProbe { watched: at, sending, before, late, is_back: false });
        run.watched[at].sent(sending);
        Ok(())
    }

    fn look(&mut self, run: &mut CommandBurstRun, seen: DeviceEvent) -> Result<(), ProfilerError> {
        match seen {
            DeviceEvent::Message { at, message } if Some(message.xid) == run.barrier_xid => match message.body {
                Body::Error(error) => Err(ProfilerError::Refused { what: "barriers".to_owned(), error: error.error }),
                _ => {
                    run.barrier = Some(at);
                    Ok(())
                }
            },
            DeviceEvent::Message { message, .. } => match message.body {
                Body::Error(error) => self.refused(run, message.xid, error.error),
                _ => Ok(()),
            },
            DeviceEvent::Frame { interface, bytes, .. } => {
                if let Some(mark) = ProbeHeader::find(&bytes, Some(run.number)) {
                    self.answered(run, interface, mark.sequence);
                }
                Ok(())
            }
        }
    }

    fn refused(&mut self, run: &mut CommandBurstRun, xid: u32, error: ErrorType) -> Result<(), ProfilerError> {
        let Some(at) = run.xids.iter().position(|sent| *sent == xid) else { return Ok(()) };
        if error != FlowModFailed::TableFull.into() {
            return Err(ProfilerError::Refused { what: format!("a flow-mod while {}", self.during), error });
        }
        run.refused.push(at);
        run.watched.iter_mut().filter(|watched| watched.watch.command == at).for_each(|one| one.refused = true);
        Ok(())
    }

    fn answered(&mut self, run: &mut CommandBurstRun, interface: usize, sequence: u32) {
        let Some(sent) = run.marks.get_mut(sequence as usize) else { return };
        let (sending, before) = (sent.sending, sent.before);
        run.came_back += u32::from(!sent.is_back);
        sent.is_back = true;
        run.last_back = self.device.now();
        run.longest = run.longest.max(run.last_back.since(sending.began));
        let sent = &run.marks[sequence as usize];
        let next = run.marks[sequence as usize + 1..].iter().find(|other| other.watched == sent.watched);
        let (next, watched) = (next.map(|next| next.sending), &mut run.watched[sent.watched]);
        match watched.watch.sign {
            CompletionSign::Leaves(expected) if interface == expected && watched.done.is_none() => {
                watched.done = Some((before.map_or(run.started, |before| before.began), sending.ended));
            }
            CompletionSign::Gone if watched.answered.is_none_or(|latest| latest < sending) => {
                (watched.answered, watched.unanswered) = (Some(sending), next);
                watched.away = u32::from(next.is_some());
            }
            _ => {}
        }
    }

    /// Marks entries as gone whose packets have stopped coming: since the packet after the last one that came back,
    /// or since the start.
    fn settle_gone(&mut self, run: &mut CommandBurstRun) {
        let now = self.device.now();
        // Packets that have not come back may delay those behind them.
        let grace = self.settings.grace.max(self.forwarding() * 4) + self.missing * run.away();
        if run.barrier.is_none() {
            return;
        }
        for watched in run.watched.iter_mut().filter(|watched| watched.watch.sign == CompletionSign::Gone) {
            if let Some(since) = watched.unanswered
                && watched.done.is_none()
                && watched.away >= AWAY
                && now.since(since.ended) > grace
            {
                let met = watched.answered.map_or(run.started, |answered| answered.began);
                watched.done = Some((met, since.ended));
            }
        }
    }

    /// Waits until packets of an entry no longer come back.
    pub(super) fn until_gone(&mut self, rule: TestFlowEntry) -> Result<(), ProfilerError> {
        self.coarsely(&[], EntryWatch { command: 0, rule, sign: CompletionSign::Gone }).map(drop)
    }
}
