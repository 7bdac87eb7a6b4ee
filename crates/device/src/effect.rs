//! Delays the moment at which packets see changes after commands were carried out, for all commands together.
//!
//! A switch whose data path caches decisions about packets (Open vSwitch's megaflows) revalidates that cache
//! periodically, whatever the number of commands. So a round begins when no further command is to be carried out, or
//! at the end of a batch if the switch gathers them. When the round ends, it shows all changes done before it began.
//! A switch that is never idle begins a round as soon as a change has waited for the mean length of a round.
use crate::TableEffect;
use crate::record::CommandRecord;
use crate::server::ServiceTimeSampler;
use std::collections::VecDeque;
use std::time::Duration;
use weir_units::Instant;

/// Command that was carried out but that packets do not see yet.
#[derive(Debug)]
pub(crate) struct ExecutedCommand<T> {
    pub(crate) item: T,
    pub(crate) record: CommandRecord,
    /// Effect of the command, as far as known.
    pub(crate) work: TableEffect,
    /// Number of commands that count as done for barriers only when packets see this one, because it may still be
    /// refused.
    pub(crate) holds: u64,
}

/// Commands whose changes are not yet visible to packets.
#[derive(Debug)]
pub(crate) struct VisibilityQueue<T> {
    /// Law of the delay; none if packets see changes at once.
    time: Option<ServiceTimeSampler>,
    mean: Duration,
    /// Time of a round beside that of the law.
    more: Duration,
    waiting: VecDeque<ExecutedCommand<T>>,
    /// Number of commands so far.
    came: u64,
    /// Number of commands covered by rounds that began.
    covered: u64,
    /// Rounds in progress: end time, and number of commands they show.
    rounds: Vec<(Instant, u64)>,
    /// Number of commands shown by the latest round that ended, and its end time.
    shown: (u64, Instant),
}

impl<T> VisibilityQueue<T> {
    /// Creates the queue with a law of delays and its mean.
    pub(crate) fn new(time: Option<ServiceTimeSampler>, mean: Duration) -> VisibilityQueue<T> {
        let (waiting, rounds) = (VecDeque::new(), Vec::new());
        VisibilityQueue {
            time,
            mean,
            more: Duration::ZERO,
            waiting,
            came: 0,
            covered: 0,
            rounds,
            shown: (0, Instant::ZERO),
        }
    }

    pub(crate) fn takes_time(&self) -> bool {
        self.time.is_some()
    }

    /// Sets the time that rounds which begin from now on take in addition to the law.
    pub(crate) fn lengthen(&mut self, more: Duration) {
        self.more = more;
    }

    /// Returns the commands that wait, in order of arrival.
    pub(crate) fn waiting(&self) -> &VecDeque<ExecutedCommand<T>> {
        &self.waiting
    }

    /// Makes one more command count as done for barriers together with the latest one that may be refused. Returns
    /// true if there is such a command.
    pub(crate) fn hold(&mut self) -> bool {
        let unsure = self.waiting.iter_mut().rev().find(|done| done.holds > 0);
        unsure.map(|done| done.holds += 1).is_some()
    }

    /// Returns the number of commands that packets see.
    fn gone(&self) -> u64 {
        self.came - self.waiting.len() as u64
    }

    /// Adds a command that was carried out.
    pub(crate) fn done(&mut self, command: ExecutedCommand<T>) {
        self.waiting.push_back(command);
        self.came += 1;
    }

    /// Begins a round if a change waits for one, and a batch is over, or batches have no end and the first change has
    /// waited for the mean length.
    pub(crate) fn look(&mut self, now: Instant, is_over: bool, is_endless: bool) {
        let at = usize::try_from(self.covered.saturating_sub(self.gone())).unwrap_or(usize::MAX);
        let Some(first) = self.waiting.get(at) else { return };
        if is_over || is_endless && now.since(first.record.ended) >= self.mean + self.more {
            let ns = self.time.as_mut().map_or(0.0, |time| time.draw_ns(0));
            let takes = Duration::try_from_secs_f64(ns / 1e9).unwrap_or(Duration::ZERO) + self.more;
            self.rounds.push((now + takes, self.came));
            self.covered = self.came;
        }
    }

    /// Returns the time at which packets see the first waiting command; [`Instant::FAR`] if there is none, or no
    /// round began.
    pub(crate) fn due(&self) -> Instant {
        match self.waiting.is_empty() {
            true => Instant::FAR,
            false if self.gone() < self.shown.0 => self.shown.1,
            false => self.rounds.iter().map(|(ends, _)| *ends).min().unwrap_or(Instant::FAR),
        }
    }

    /// Returns the first waiting command if packets see it now.
    pub(crate) fn take(&mut self, now: Instant) -> Option<ExecutedCommand<T>> {
        let due = self.due();
        if due > now {
            return None;
        }
        if self.gone() >= self.shown.0 {
            let ended = self.rounds.iter().filter(|(ends, _)| *ends <= due).map(|(_, came)| *came).max()?;
            self.shown = (ended, due);
            // Rounds that began earlier show nothing new when they end.
            self.rounds.retain(|(_, came)| *came > ended);
        }
        let mut first = self.waiting.pop_front()?;
        first.record.shown = due;
        Some(first)
    }
}
