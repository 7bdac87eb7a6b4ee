//! When bundles with a time are carried out (OpenFlow 1.5.1, 7.3.9.8 and 7.3.5.20): controllers speak of the time of day, the
//! datapath lives in its engine's, so the engine says how they go together.
use std::time::Duration;
use weir_openflow::model::bundle::{BundleFeaturesProperty, Time};
use weir_openflow::model::error::BundleFailed;
use weir_units::Instant;

/// How far ahead a commit may be until a controller says otherwise, and at most.
const MAX_FUTURE: Duration = Duration::from_secs(3600);
/// How late a commit may come until a controller says otherwise: it is then carried out at once.
const MAX_PAST: Duration = Duration::from_secs(1);
/// How exact commits are: an engine that sleeps wakes within this.
const ACCURACY: Duration = Duration::from_millis(1);

/// See the module's page.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// An instant of the engine's, and what time of day it was then, since the beginning of 1970.
    clock: Option<(Instant, Duration)>,
    max_future: Duration,
    max_past: Duration,
}

impl Default for Schedule {
    fn default() -> Schedule {
        Schedule { clock: None, max_future: MAX_FUTURE, max_past: MAX_PAST }
    }
}

impl Schedule {
    /// Says what time of day it is.
    pub(crate) fn set_clock(&mut self, now: Instant, time_of_day: Duration) {
        self.clock = Some((now, time_of_day));
    }

    /// The instant of a time of day.
    ///
    /// # Errors
    /// [`BundleFailed`]: nobody knows the time of day, or it is too far ahead or gone by too long.
    pub(crate) fn instant_of(&self, time: Time, now: Instant) -> Result<Instant, BundleFailed> {
        let today = self.time_of_day(now).ok_or(BundleFailed::SchedNotSupported)?;
        let asked = Duration::from_secs(time.seconds).saturating_add(Duration::from_nanos(time.nanoseconds.into()));
        match asked.checked_sub(today) {
            Some(ahead) if ahead > self.max_future => Err(BundleFailed::SchedFuture),
            Some(ahead) => Ok(now + ahead),
            None if today - asked > self.max_past => Err(BundleFailed::SchedPast),
            None => Ok(now),
        }
    }

    /// What it can do, and the time of day.
    pub(crate) fn features(&self, now: Instant) -> Option<BundleFeaturesProperty> {
        let timestamp = time(self.time_of_day(now)?);
        let (max_future, max_past) = (time(self.max_future), time(self.max_past));
        Some(BundleFeaturesProperty::Time { accuracy: time(ACCURACY), max_future, max_past, timestamp })
    }

    /// Takes over the tolerances that a controller sets, as far as they go.
    pub(crate) fn set_tolerances(&mut self, max_future: Time, max_past: Time) {
        let span = |time: Time| {
            Duration::from_secs(time.seconds).saturating_add(Duration::from_nanos(time.nanoseconds.into()))
        };
        self.max_future = span(max_future).min(MAX_FUTURE);
        self.max_past = span(max_past).min(MAX_FUTURE);
    }

    fn time_of_day(&self, now: Instant) -> Option<Duration> {
        let (then, time_of_day) = self.clock?;
        Some(time_of_day + now.since(then))
    }
}

fn time(span: Duration) -> Time {
    Time { seconds: span.as_secs(), nanoseconds: span.subsec_nanos() }
}
