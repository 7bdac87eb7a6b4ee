//! Sends single commands at given times, and finds out by probe packets when the switch carried out each of them.
//!
//! As with bursts, the *sending* times of packets count. But there are many commands, and few of them are in progress
//! at a time. From the time a command is sent, packets that match its entry are sent until one of them is forwarded as
//! the command requires. The time between these packets grows with the time since the command was sent.
use super::burst::{AWAY, CompletionSign, MAX_MARKS};
use super::{TestBench, TestEntryChange};
use crate::ProfilerError;
use crate::device::{DeviceEvent, DeviceUnderTest};
use crate::rules::{SHORTEST, TestFlowEntry};
use crate::terms::CostTermCounts;
use std::collections::BTreeMap;
use std::time::Duration;
use weir_openflow::model::ErrorType;
use weir_openflow::model::error::FlowModFailed;
use weir_openflow::{Body, Message};
use weir_traffic::ProbeHeader;
use weir_units::Instant;

/// Pause before the first command, in which earlier packets leave the switch.
const LEAD: Duration = Duration::from_millis(1);
/// Minimum time between packets for an entry that is in the table throughout, as a multiple of the entry's forwarding
/// time. With it, packets do not queue up although several commands are in progress.
const APART: u32 = 3;
/// Minimum time between packets that may match no entry, because their entry is being added or deleted: a multiple of
/// the longest forwarding time (additions) or of the time that a packet without an entry takes (deletions). Together
/// they use half of the switch's capacity; with more, packets queue up and do not come back in time.
const APART_MISSING: u32 = 2;

/// Result of a command, as the packets show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CommandCompletion {
    /// The command was carried out.
    Done {
        /// Lower bound of the time from sending to completion, in seconds.
        low_s: f64,
        /// Upper bound of that time, in seconds.
        high_s: f64,
    },
    /// The switch refused the command because the table was full.
    Refused,
    /// Until the deadline, no packet was forwarded as the command requires.
    Unseen,
    /// The measuring machine stopped before it was carried out, so that the time is not the switch's.
    InStop,
}

impl CommandCompletion {
    /// Returns the time from sending to completion, in seconds (middle of the bracket); none if the command was
    /// refused or not seen.
    pub fn seconds(&self) -> Option<f64> {
        match self {
            CommandCompletion::Done { low_s, high_s } => Some((low_s + high_s) / 2.0),
            CommandCompletion::Refused | CommandCompletion::Unseen | CommandCompletion::InStop => None,
        }
    }
}

/// Command in progress.
struct ProbedCommand {
    xid: u32,
    rule: TestFlowEntry,
    sign: CompletionSign,
    sent: Instant,
    /// Minimum time between packets for this command while at most `among` commands are in progress.
    finest: Duration,
    /// Maximum number of commands in progress for which `finest` holds; with more, the minimum time is a multiple of
    /// it.
    among: u32,
    /// For each packet: time before and time after sending it; both are the departure time if the interface reports
    /// one.
    probes: Vec<(Instant, Instant)>,
    next_probe: Instant,
    /// Index of the latest packet that came back from the switch.
    back: Option<usize>,
}

impl ProbedCommand {
    /// Returns the bounds of the time at which the command was carried out. `first` is the index of the first packet
    /// that was forwarded as the command requires.
    fn done(&self, first: usize, device: &dyn DeviceUnderTest) -> CommandCompletion {
        if device.was_stopped(self.sent, self.probes[first].1) {
            return CommandCompletion::InStop;
        }
        let since = |at: Instant| at.since(self.sent).as_secs_f64();
        let low_s = first.checked_sub(1).map_or(0.0, |before| since(self.probes[before].0));
        CommandCompletion::Done { low_s, high_s: since(self.probes[first].1) }
    }

    /// For a deletion: returns the index of the first packet that did not come back, if enough packets were sent since
    /// and more than `grace` has passed, so that the entry counts as deleted.
    fn is_gone(&self, now: Instant, grace: Duration) -> Option<usize> {
        let first = self.back.map_or(0, |back| back + 1);
        let is_long = self.probes.get(first).is_some_and(|away| now.since(away.1) > grace);
        (self.sign == CompletionSign::Gone && self.probes.len() >= first + AWAY as usize && is_long).then_some(first)
    }
}

/// Series in progress.
struct CommandSeriesRun {
    number: u16,
    /// Commands that were sent and have no result yet, by index.
    open: BTreeMap<usize, ProbedCommand>,
    /// For each packet, by the sequence number that it carries: index of the command, and index among the command's
    /// packets.
    marks: Vec<(usize, usize)>,
    became: Vec<CommandCompletion>,
    /// Terms of each command's cost.
    terms: Vec<CostTermCounts>,
}

impl TestBench<'_> {
    /// Sends each command at its time after the start; the times must ascend. Returns the results of the commands sent
    /// until the deadline, with the terms of their costs.
    pub(crate) fn series(
        &mut self,
        commands: &[(Duration, TestEntryChange)],
    ) -> Result<Vec<(CommandCompletion, CostTermCounts)>, ProfilerError> {
        let started = self.device.now() + LEAD;
        let last = commands.last().map_or(Duration::ZERO, |(at, _)| *at);
        let deadline = started + last + self.settings.patience;
        let mut run = CommandSeriesRun {
            number: self.next_run(),
            open: BTreeMap::new(),
            marks: Vec::new(),
            became: Vec::new(),
            terms: Vec::new(),
        };
        loop {
            self.check_stop()?;
            let now = self.device.now();
            self.settle(&mut run, now);
            let next = commands.get(run.became.len());
            if now >= deadline || (next.is_none() && run.open.is_empty()) {
                return Ok(run.became.into_iter().zip(run.terms).collect());
            }
            if let Some((at, change)) = next
                && started + *at <= now
            {
                self.note_sent(started + *at, now);
                self.command(&mut run, change)?;
                continue;
            }
            let probe = run.open.iter().map(|(at, open)| (open.next_probe, *at)).min();
            if let Some((due, at)) = probe
                && due <= now
                && run.marks.len() < MAX_MARKS
            {
                self.show(&mut run, at)?;
                continue;
            }
            let next = next.map_or(deadline, |(at, _)| started + *at);
            // With no mark left, the commands in progress can only be waited for.
            let probe = probe.filter(|_| run.marks.len() < MAX_MARKS).map_or(deadline, |(due, _)| due);
            if let Some(seen) = self.device.wait(next.min(probe).min(deadline))? {
                self.take_in(&mut run, seen)?;
            }
        }
    }

    fn command(&mut self, run: &mut CommandSeriesRun, change: &TestEntryChange) -> Result<(), ProfilerError> {
        let (rule, sign) = match change {
            TestEntryChange::Add(rule) => (*rule, CompletionSign::Leaves(1)),
            TestEntryChange::Modify(rule, way) => (*rule, CompletionSign::Leaves(self.interface(*way))),
            TestEntryChange::Delete(rule) => (*rule, CompletionSign::Gone),
            TestEntryChange::DeleteGroup(_) => {
                return Err(ProfilerError::wrong("command of a series", "many entries", "one"));
            }
        };
        let body = self.body(change);
        let message = self.message(body);
        // An entry to be deleted has its level before the change is recorded, an added one after it.
        let before = self.forwarding_of(&rule);
        let mut terms = self.account(std::slice::from_ref(change));
        let now = self.device.now();
        if self.has_cache {
            terms.revalidating(self.cache.flows(now));
        }
        run.terms.push(terms);
        let (apart, among) = match change {
            TestEntryChange::Add(_) => (self.forwarding() * APART_MISSING, 1),
            TestEntryChange::Delete(_) if before < self.missing => (self.missing * APART_MISSING, 1),
            _ => (before * APART, APART),
        };
        let xid = message.xid;
        let sent = self.device.now();
        self.device.send(&[message])?;
        let finest = self.settings.finest.max(apart);
        let next_probe = sent + finest.mul_f64(self.random.f64());
        let open = ProbedCommand { xid, rule, sign, sent, finest, among, probes: Vec::new(), next_probe, back: None };
        run.open.insert(run.became.len(), open);
        run.became.push(CommandCompletion::Unseen);
        Ok(())
    }

    /// Sends a packet that matches the entry of command `at`, and schedules the next one.
    fn show(&mut self, run: &mut CommandSeriesRun, at: usize) -> Result<(), ProfilerError> {
        let together = u32::try_from(run.open.len()).unwrap_or(u32::MAX);
        let Some(open) = run.open.get_mut(&at) else { return Ok(()) };
        let now = self.device.now();
        let sequence = u32::try_from(run.marks.len()).unwrap_or(u32::MAX);
        let mark = ProbeHeader {
            run: run.number,
            sequence,
            sent_ns: now.as_nanos(),
            is_new_flow: false,
            counts: true,
            is_wall: false,
        };
        let rule = open.rule;
        let packet = rule.packet(SHORTEST, &mark);
        run.marks.push((at, open.probes.len()));
        let share = now.since(open.sent).mul_f64(self.settings.resolution);
        let finest = open.finest * together.div_ceil(open.among);
        // Randomised, so that measuring has no period of its own.
        let gap = share.clamp(finest, self.settings.coarsest.max(finest)).mul_f64(0.75 + 0.5 * self.random.f64());
        open.next_probe = now + gap;
        let left = self.device.transmit(0, &packet)?;
        open.probes.push(left.map_or((now, self.device.now()), |left| (left, left)));
        self.note_flow(&rule);
        Ok(())
    }

    fn take_in(&mut self, run: &mut CommandSeriesRun, seen: DeviceEvent) -> Result<(), ProfilerError> {
        match seen {
            DeviceEvent::Message { message: Message { xid, body: Body::Error(error) }, .. } => {
                self.is_refused(run, xid, error.error)
            }
            DeviceEvent::Message { .. } => Ok(()),
            DeviceEvent::Frame { interface, bytes, .. } => {
                if let Some(mark) = ProbeHeader::find(&bytes, Some(run.number)) {
                    self.came_back(run, interface, mark.sequence, bytes.len());
                }
                Ok(())
            }
        }
    }

    fn is_refused(&mut self, run: &mut CommandSeriesRun, xid: u32, error: ErrorType) -> Result<(), ProfilerError> {
        let Some(at) = run.open.iter().find(|(_, open)| open.xid == xid).map(|(at, _)| *at) else { return Ok(()) };
        if error != FlowModFailed::TableFull.into() {
            return Err(ProfilerError::Refused { what: format!("a flow-mod while {}", self.during), error });
        }
        if let Some(open) = run.open.remove(&at) {
            self.forget(&open.rule);
        }
        run.became[at] = CommandCompletion::Refused;
        Ok(())
    }

    fn came_back(&mut self, run: &mut CommandSeriesRun, interface: usize, sequence: u32, bytes: usize) {
        let Some((at, probe)) = run.marks.get(sequence as usize).copied() else { return };
        let Some(open) = run.open.get_mut(&at) else { return };
        if let Some(tables) = &mut self.tables {
            tables.matched(open.rule.number.into(), u32::try_from(bytes).unwrap_or(u32::MAX));
        }
        match open.sign {
            CompletionSign::Leaves(expected) if interface == expected => {
                run.became[at] = open.done(probe, &*self.device);
                run.open.remove(&at);
            }
            CompletionSign::Gone => open.back = open.back.max(Some(probe)),
            CompletionSign::Leaves(_) => {}
        }
    }

    fn settle(&mut self, run: &mut CommandSeriesRun, now: Instant) {
        let grace = self.settings.grace.max(self.forwarding() * 4);
        let (became, device) = (&mut run.became, &*self.device);
        run.open.retain(|at, open| {
            let gone = open.is_gone(now, grace);
            if let Some(first) = gone {
                became[*at] = open.done(first, device);
            }
            gone.is_none()
        });
    }
}
