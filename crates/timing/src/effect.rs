//! When packets meet what commands changed: some time after these were carried out, and for all of them together.
//!
//! A switch whose data path keeps what it has decided of packets (Open vSwitch's megaflows) looks through that when its threads come round, which has little to do with how many commands
//! there were. So a round begins when nothing more is to be carried out, or at the end of a batch of a switch that gathers them, and shows, when it ends, all that was done before it
//! began. A switch that is never done begins one as soon as a change has waited for as long as a round takes in the mean.
use crate::Work;
use crate::record::Record;
use crate::server::Drawn;
use std::collections::VecDeque;
use std::time::Duration;
use weir_units::Instant;

/// A command that was carried out, and that packets do not meet yet.
#[derive(Debug)]
pub(crate) struct Done<T> {
    pub(crate) item: T,
    pub(crate) record: Record,
    /// What it does, as far as is known.
    pub(crate) work: Work,
    /// Commands that count as done for barriers only when packets meet this one: it may yet be refused.
    pub(crate) holds: u64,
}

/// Commands on their way from the control plane to packets.
#[derive(Debug)]
pub(crate) struct Effect<T> {
    /// None: packets meet at once what commands changed.
    time: Option<Drawn>,
    mean: Duration,
    waiting: VecDeque<Done<T>>,
    /// How many came in all.
    came: u64,
    /// For how many of these a round began.
    covered: u64,
    /// When rounds end, and how many of those that came they show.
    rounds: Vec<(Instant, u64)>,
    /// How many the last round that ended showed, and when.
    shown: (u64, Instant),
}

impl<T> Effect<T> {
    /// With a law of times and its mean.
    pub(crate) fn new(time: Option<Drawn>, mean: Duration) -> Effect<T> {
        let (waiting, rounds) = (VecDeque::new(), Vec::new());
        Effect { time, mean, waiting, came: 0, covered: 0, rounds, shown: (0, Instant::ZERO) }
    }

    pub(crate) fn takes_time(&self) -> bool {
        self.time.is_some()
    }

    /// Commands that wait, the first that came first.
    pub(crate) fn waiting(&self) -> &VecDeque<Done<T>> {
        &self.waiting
    }

    /// One more command counts as done for barriers only with the last that may yet be refused; whether there is such a one.
    pub(crate) fn hold(&mut self) -> bool {
        let unsure = self.waiting.iter_mut().rev().find(|done| done.holds > 0);
        unsure.map(|done| done.holds += 1).is_some()
    }

    /// Of those that came, how many packets meet.
    fn gone(&self) -> u64 {
        self.came - self.waiting.len() as u64
    }

    /// A command was carried out.
    pub(crate) fn done(&mut self, command: Done<T>) {
        self.waiting.push_back(command);
        self.came += 1;
    }

    /// A round begins if any change waits for one, and a batch is over, or it has no end and the first has waited for long.
    pub(crate) fn look(&mut self, now: Instant, is_over: bool, is_endless: bool) {
        let at = usize::try_from(self.covered.saturating_sub(self.gone())).unwrap_or(usize::MAX);
        let Some(first) = self.waiting.get(at) else { return };
        if is_over || is_endless && now.since(first.record.ended) >= self.mean {
            let ns = self.time.as_mut().map_or(0.0, |time| time.draw_ns(0));
            self.rounds.push((now + Duration::try_from_secs_f64(ns / 1e9).unwrap_or(Duration::ZERO), self.came));
            self.covered = self.came;
        }
    }

    /// When packets meet the first that waits; [`Instant::FAR`] if none does, or no round began.
    pub(crate) fn due(&self) -> Instant {
        match self.waiting.is_empty() {
            true => Instant::FAR,
            false if self.gone() < self.shown.0 => self.shown.1,
            false => self.rounds.iter().map(|(ends, _)| *ends).min().unwrap_or(Instant::FAR),
        }
    }

    /// The first that waits, if packets meet it now.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Done<T>> {
        let due = self.due();
        if due > now {
            return None;
        }
        if self.gone() >= self.shown.0 {
            let ended = self.rounds.iter().filter(|(ends, _)| *ends <= due).map(|(_, came)| *came).max()?;
            self.shown = (ended, due);
            // Rounds that began before show nothing more when they end.
            self.rounds.retain(|(_, came)| *came > ended);
        }
        let mut first = self.waiting.pop_front()?;
        first.record.shown = due;
        Some(first)
    }
}
