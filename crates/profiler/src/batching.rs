//! Finds how a switch batches commands: how long it waits for a further command, and how many commands fill a batch.
//!
//! Two commands are sent, the second some time after the first. A switch that waits for more commands carries out the
//! *first* command later by that time. The time-out is the longest distance for which this happens. A burst that
//! fills a batch is carried out without waiting: its first command is done earlier than that of a burst with one
//! command less.
//!
//! On a switch whose changes take effect together, the first of two commands shows only when both are carried out. So
//! it is compared with the first of two commands sent at once. Delays within the noise of a single command do not
//! count as waiting.
use crate::bench::{Bench, Change, Sign, Watch};
use crate::levels::alike;
use crate::rules::Rule;
use crate::store::{Row, Store};
use crate::{Grid, ProfilerError};
use std::time::Duration;
use weir_model::fit::order::Middle;
use weir_model::switch::batch::Batching;

/// Runs of each case.
const RUNS: u32 = 5;
/// Runs of a single command, from which the noise is estimated.
const CHANCE_RUNS: u32 = 9;
/// Longest time between two commands that is tried.
const LONGEST: Duration = Duration::from_secs(1);
/// Precision of the time-out, as a share of it.
const PRECISION: f64 = 0.01;
/// Allowance for noise, as a factor: a command alone that takes less than the time-out by this factor did not wait.
const SLACK: f64 = 1.2;
/// Shortest time-out that is searched for.
const SHORTEST: Duration = Duration::from_micros(100);

/// Batching found in a switch, with notes.
#[derive(serde::Serialize, serde::Deserialize, Debug, Clone, PartialEq)]
pub struct Found {
    /// Batching as the model describes it.
    pub batching: Batching,
    /// Interval that contains the time-out, in seconds; none without batches.
    pub timeout_s: Option<[f64; 2]>,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// Finds the time-out and the size of batches by halving intervals.
pub(crate) fn measure(bench: &mut Bench<'_>, grid: &Grid, store: &mut Store) -> Result<Found, ProfilerError> {
    bench.during = "looking for batches".to_owned();
    bench.clear()?;
    let mut look = Look { bench, store, next: 0 };
    let alone = look.times(1, Duration::ZERO, CHANCE_RUNS)?.first;
    let chance = Duration::from_secs_f64(alone.iqr.max(0.0));
    let alone = Duration::from_secs_f64(alone.median.max(0.0));
    let together = look.times(2, Duration::ZERO, RUNS)?;
    let blur = chance.max(together.width);
    let together = together.median();
    let mut found = Found { batching: Batching::NONE, timeout_s: None, notes: Vec::new() };
    let Some((low, high)) = look.timeout(alone, alone.max(together), blur)? else { return Ok(found) };
    let timeout = (low + high) / 2;
    if alone.mul_f64(SLACK) < low {
        // A switch that waits this long for more commands makes a single command wait as long.
        let text = format!(
            "batching: none: {alone:?} for a command alone is less than the {timeout:?} that seemed to be waited for more"
        );
        found.notes.push(text);
        return Ok(found);
    }
    found.timeout_s = Some([low.as_secs_f64(), high.as_secs_f64()]);
    let most = look.most([alone, together], timeout, grid.batch_max)?;
    if most.is_none() {
        found.notes.push(format!("batching: no end of batches was found with {} commands", grid.batch_max));
    }
    found.batching = Batching { timeout_s: timeout.as_secs_f64(), most: most.unwrap_or(grid.batch_max) };
    Ok(found)
}

/// Completion time of a burst's first command, in seconds, and the median width of the bracket that packets give for
/// it.
struct Times {
    first: Middle,
    width: Duration,
}

impl Times {
    fn median(&self) -> Duration {
        Duration::from_secs_f64(self.first.median.max(0.0))
    }
}

struct Look<'e, 'a> {
    bench: &'e mut Bench<'a>,
    store: &'e mut Store,
    next: u32,
}

impl Look<'_, '_> {
    /// Returns the median time until the first of `commands` commands, sent `apart` from each other, is done.
    fn first_done(&mut self, commands: u32, apart: Duration) -> Result<Duration, ProfilerError> {
        Ok(self.times(commands, apart, RUNS)?.median())
    }

    fn times(&mut self, commands: u32, apart: Duration, runs: u32) -> Result<Times, ProfilerError> {
        let (mut times, mut widths) = (Vec::new(), Vec::new());
        for run in 0..runs {
            let rules: Vec<Rule> = (0..commands).map(|at| alike(self.next + at)).collect();
            self.next = (self.next + commands) % 32_768;
            let changes: Vec<Change> = rules.iter().copied().map(Change::Add).collect();
            let offsets: Vec<Duration> = (0..commands).map(|at| apart * at).collect();
            let watches: Vec<Watch> = [0, rules.len() - 1]
                .into_iter()
                .map(|command| Watch { command, rule: rules[command], sign: Sign::Leaves(1) })
                .take(rules.len().min(2))
                .collect();
            let outcome = self.bench.burst(&changes, &offsets, &watches)?;
            let Some((low, high)) = outcome.done[0] else {
                return Err(ProfilerError::wrong("the switch's tables", "no room", "room for a few entries"));
            };
            let s = (low.since(outcome.started) + high.since(outcome.started)).as_secs_f64() / 2.0;
            self.store.write(&Row::Apart { commands, apart_s: apart.as_secs_f64(), run, first_s: s })?;
            times.push(s);
            widths.push(high.since(low).as_secs_f64());
            self.bench.take_out(&rules)?;
        }
        Ok(Times { first: Middle::of(&times)?, width: Duration::from_secs_f64(Middle::of(&widths)?.median) })
    }

    /// Returns true if the first of two commands sent `apart` from each other waits for the second: if it is done
    /// later than `usual` by more than half of `apart`.
    fn waits(&mut self, usual: Duration, apart: Duration) -> Result<bool, ProfilerError> {
        Ok(self.first_done(2, apart)? > usual + apart / 2)
    }

    /// Returns bounds of the time-out; none if the switch does not wait, or if the time-out exceeds [`LONGEST`].
    fn timeout(
        &mut self,
        alone: Duration,
        usual: Duration,
        blur: Duration,
    ) -> Result<Option<(Duration, Duration)>, ProfilerError> {
        // A time-out much shorter than a single command's duration, the noise or the packet spacing cannot be
        // measured, and does not matter.
        let shortest = SHORTEST.max(alone.mul_f64(0.02)).max(blur * 2);
        if !self.waits(usual, shortest)? {
            return Ok(None);
        }
        let (mut low, mut high) = (shortest, shortest * 2);
        while self.waits(usual, high)? {
            (low, high) = (high, high * 2);
            if high > LONGEST {
                return Ok(None);
            }
        }
        while (high - low).as_secs_f64() > PRECISION * low.as_secs_f64() {
            let middle = (low + high) / 2;
            if self.waits(usual, middle)? { low = middle } else { high = middle }
        }
        Ok(Some((low, high)))
    }

    /// Returns the size of the smallest burst that fills a batch, up to `batch_max` commands; none if no burst did.
    /// `first` holds the completion times of a single command and of the first of two.
    fn most(&mut self, first: [Duration; 2], timeout: Duration, batch_max: u32) -> Result<Option<u32>, ProfilerError> {
        let half_s = timeout.as_secs_f64() / 2.0;
        let [alone_s, together_s] = first.map(|time| time.as_secs_f64());
        if together_s < alone_s - half_s {
            return Ok(Some(2));
        }
        // Largest burst that did not fill a batch, its time, and the additional time for each further command.
        let (mut low, mut at_s, mut each_s) = (2, together_s, (together_s - alone_s).max(0.0));
        let (mut tried, mut high) = (4.min(batch_max), None);
        while tried > low {
            let s = self.first_done(tried, Duration::ZERO)?.as_secs_f64();
            let more = f64::from(tried - low);
            if s < at_s + each_s * more - half_s {
                high = Some(tried);
            } else {
                (low, at_s, each_s) = (tried, s, ((s - at_s) / more).max(0.0));
            }
            tried = match high {
                Some(high) => low + (high - low) / 2,
                None => (low * 2).min(batch_max),
            };
        }
        Ok(high)
    }
}
