//! Schedules bundles with a time (OpenFlow 1.5.1, 7.3.9.8 and 7.3.5.20). Controllers state the time of day, but the
//! datapath uses the engine's instants. So the engine tells how the two correspond.
use std::time::Duration;
use weir_openflow::model::bundle::{
    BundleControl, BundleFeatures, BundleFeaturesProperty, BundleFeaturesRequest, BundleFlags, BundleProperty,
    BundleTime,
};
use weir_openflow::model::error::BundleFailed;
use weir_units::Instant;

/// `OFPBF_TIME_SET_SCHED` of a bundle features request: the request sets tolerances.
const SETS_SCHEDULE: u32 = 1 << 1;

/// Maximum delay of a scheduled commit, by default and as the upper limit of a controller's setting.
const MAX_FUTURE: Duration = Duration::from_secs(3600);
/// Default for the maximum lateness of a commit's scheduled time. A late commit is executed at once.
const MAX_PAST: Duration = Duration::from_secs(1);
/// Accuracy of commits: an engine that sleeps wakes up within this time.
const ACCURACY: Duration = Duration::from_millis(1);

/// The clock and tolerances of scheduled bundles.
#[derive(Debug)]
pub(crate) struct BundleSchedule {
    /// An instant of the engine and the time of day at that instant, since the beginning of 1970.
    clock: Option<(Instant, Duration)>,
    max_future: Duration,
    max_past: Duration,
}

impl Default for BundleSchedule {
    fn default() -> BundleSchedule {
        BundleSchedule { clock: None, max_future: MAX_FUTURE, max_past: MAX_PAST }
    }
}

impl BundleSchedule {
    /// Sets the time of day at the instant `now`.
    pub(crate) fn set_clock(&mut self, now: Instant, time_of_day: Duration) {
        self.clock = Some((now, time_of_day));
    }

    /// Converts a time of day to an instant.
    ///
    /// # Errors
    /// [`BundleFailed`]: the time of day is not known, or `time` is too far in the future or past.
    fn instant_of(&self, time: BundleTime, now: Instant) -> Result<Instant, BundleFailed> {
        let today = self.time_of_day(now).ok_or(BundleFailed::SchedNotSupported)?;
        let asked = Duration::from_secs(time.seconds).saturating_add(Duration::from_nanos(time.nanoseconds.into()));
        match asked.checked_sub(today) {
            Some(ahead) if ahead > self.max_future => Err(BundleFailed::SchedFuture),
            Some(ahead) => Ok(now + ahead),
            None if today - asked > self.max_past => Err(BundleFailed::SchedPast),
            None => Ok(now),
        }
    }

    /// Returns the features for scheduled bundles with the present time of day, or `None` if that is not known.
    fn features(&self, now: Instant) -> Option<BundleFeaturesProperty> {
        let timestamp = time(self.time_of_day(now)?);
        let (max_future, max_past) = (time(self.max_future), time(self.max_past));
        Some(BundleFeaturesProperty::Time { accuracy: time(ACCURACY), max_future, max_past, timestamp })
    }

    /// Returns the features of bundles (OpenFlow 1.5.1, 7.3.5.20). A request may set the tolerances of scheduled
    /// bundles.
    pub(crate) fn bundle_features(&mut self, now: Instant, asked: &BundleFeaturesRequest) -> BundleFeatures {
        for property in &asked.properties {
            if let BundleFeaturesProperty::Time { max_future, max_past, .. } = property
                && asked.flags & SETS_SCHEDULE != 0
            {
                self.set_tolerances(*max_future, *max_past);
            }
        }
        let time = self.features(now);
        let timed = if time.is_some() { BundleFlags::TIME.0 } else { 0 };
        let capabilities = BundleFlags(BundleFlags::ATOMIC.0 | BundleFlags::ORDERED.0 | timed);
        BundleFeatures { capabilities, properties: time.into_iter().collect() }
    }

    /// Returns the time of a scheduled commit, or `None` if it is to happen at once.
    ///
    /// # Errors
    /// [`BundleFailed`], as of [`BundleSchedule::instant_of`].
    pub(crate) fn time_of(&self, control: &BundleControl, now: Instant) -> Result<Option<Instant>, BundleFailed> {
        if !control.flags.contains(BundleFlags::TIME) {
            return Ok(None);
        }
        let time = control.properties.iter().find_map(|property| match property {
            BundleProperty::Time(time) => Some(*time),
            BundleProperty::Other(_) => None,
        });
        match time {
            Some(time) => self.instant_of(time, now).map(|at| (at > now).then_some(at)),
            None => Ok(None),
        }
    }

    /// Sets the tolerances that a controller requests, up to [`MAX_FUTURE`].
    fn set_tolerances(&mut self, max_future: BundleTime, max_past: BundleTime) {
        let span = |time: BundleTime| {
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

fn time(span: Duration) -> BundleTime {
    BundleTime { seconds: span.as_secs(), nanoseconds: span.subsec_nanos() }
}
