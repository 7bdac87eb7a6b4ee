//! Determines how a switch batches commands: how long it waits for a further command before it carries out those that
//! it has (time-out), and how many commands fill a batch.
//!
//! Two commands are sent, the second some time after the first. A switch that waits for further commands carries out
//! the *first* command later by that time. The time-out is the longest time for which this happens. A burst that fills
//! a batch is carried out without waiting: its first command is carried out earlier than that of a burst with one
//! command less.
//!
//! On some switches, several changes take effect together: the first of two commands takes effect only when both are
//! carried out. So its time is compared with that of the first of two commands sent at once. Delays within the noise of
//! a single command do not count as waiting.
//!
//! Both times are measured in turn, so that what disturbs the machine for a while affects both, and as often as it
//! takes until the interval of the median difference decides. A time-out that was found is looked for once more: with
//! commands clearly closer the switch has to wait, and with commands clearly farther apart not.
use crate::bench::{CompletionSign, EntryWatch, TestBench, TestEntryChange};
use crate::levels::alike;
use crate::rules::TestFlowEntry;
use crate::store::{RawDataRow, RawDataStore};
use crate::{MeasurementGrid, ProfilerError};
use std::time::Duration;
use weir_model::fit::quantiles::{MedianAndSpread, median_interval};
use weir_model::switch::batch::CommandBatching;

/// Number of measurements of each case, of which the median counts.
const RUNS: u32 = 5;
/// Number of measurements of a single command, from which the noise is estimated.
const CHANCE_RUNS: u32 = 9;
/// Maximum time between two commands in the search for the time-out.
const LONGEST: Duration = Duration::from_secs(1);
/// Width of the interval in which the time-out is found, as a share of the time-out.
const PRECISION: f64 = 0.01;
/// Allowance for noise, as a factor: a single command whose time is below the time-out even if multiplied by this
/// factor did not wait.
const SLACK: f64 = 1.2;
/// Most pairs of measurements that are compared until it is sure whether the switch waits.
const PAIRS_MOST: u32 = 25;
/// Quantile of the normal distribution for that decision.
const SURE: f64 = 1.96;
/// Times between commands with which a time-out is looked for once more, as its multiples.
const SURELY_WAITS: f64 = 0.8;
const SURELY_DOES_NOT: f64 = 1.4;
/// Minimum time-out that is searched for.
const SHORTEST: Duration = Duration::from_micros(100);

/// Result of the measurement.
#[derive(serde::Serialize, serde::Deserialize, Debug, Clone, PartialEq)]
pub struct MeasuredBatching {
    /// Batching of the switch in the form that models use.
    pub batching: CommandBatching,
    /// Interval that contains the time-out, in seconds; `None` if the switch does not batch commands.
    pub timeout_s: Option<[f64; 2]>,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// Measures the time-out and the size of batches by halving intervals.
pub(crate) fn measure(
    bench: &mut TestBench<'_>,
    grid: &MeasurementGrid,
    store: &mut RawDataStore,
) -> Result<MeasuredBatching, ProfilerError> {
    bench.during = "looking for batches".to_owned();
    bench.clear()?;
    let mut look = BatchingSearch { bench, store, next: 0 };
    let alone = look.times(1, Duration::ZERO, CHANCE_RUNS)?.first;
    let chance = Duration::from_secs_f64(alone.iqr.max(0.0));
    let alone = Duration::from_secs_f64(alone.median.max(0.0));
    let together = look.times(2, Duration::ZERO, RUNS)?;
    let blur = chance.max(together.width);
    let together = together.median();
    let mut found = MeasuredBatching { batching: CommandBatching::NONE, timeout_s: None, notes: Vec::new() };
    let (low, high) = match look.timeout(alone, blur)? {
        TimeoutKnowledge::Between(low, high) => (low, high),
        TimeoutKnowledge::None => return Ok(found),
        TimeoutKnowledge::Unknown => {
            found.notes.push(UNKNOWN.to_owned());
            return Ok(found);
        }
    };
    let timeout = (low + high) / 2;
    if alone.mul_f64(SLACK) < low {
        // A switch that waits this long for more commands makes a single command wait as long.
        let text = format!(
            "batching: none: {alone:?} for a command alone is less than the {timeout:?} that seemed to be waited for more"
        );
        found.notes.push(text);
        return Ok(found);
    }
    let is_there = look.waits(low.mul_f64(SURELY_WAITS))? == Some(true);
    if !is_there || look.waits(high.mul_f64(SURELY_DOES_NOT).min(LONGEST))? != Some(false) {
        found.notes.push(UNKNOWN.to_owned());
        return Ok(found);
    }
    found.timeout_s = Some([low.as_secs_f64(), high.as_secs_f64()]);
    let most = look.most([alone, together], timeout, grid.batch_max)?;
    if most.is_none() {
        found.notes.push(format!("batching: no end of batches was found with {} commands", grid.batch_max));
    }
    found.batching = CommandBatching { timeout_s: timeout.as_secs_f64(), most: most.unwrap_or(grid.batch_max) };
    Ok(found)
}

/// Remark if chance rules the search.
const UNKNOWN: &str = "batching: not known whether commands wait for further ones: too much noise; taken for no";

/// Knowledge about the time-out.
enum TimeoutKnowledge {
    /// Lower and upper bound of the time-out.
    Between(Duration, Duration),
    /// The switch does not wait, or it still waits for a command that comes after [`LONGEST`].
    None,
    Unknown,
}

/// Measured times of bursts of one kind.
struct FirstCommandTime {
    /// Time in seconds from sending a burst until its first command takes effect: median and spread.
    first: MedianAndSpread,
    /// Median width of the interval to which test packets narrow this time down.
    width: Duration,
}

impl FirstCommandTime {
    fn median(&self) -> Duration {
        Duration::from_secs_f64(self.first.median.max(0.0))
    }
}

/// Search in progress.
struct BatchingSearch<'e, 'a> {
    bench: &'e mut TestBench<'a>,
    store: &'e mut RawDataStore,
    /// Number of the next entry to be added.
    next: u32,
}

impl BatchingSearch<'_, '_> {
    /// Returns the median time until the first of `commands` commands takes effect. They are sent with the time `apart`
    /// between each other.
    fn first_done(&mut self, commands: u32, apart: Duration) -> Result<Duration, ProfilerError> {
        Ok(self.times(commands, apart, RUNS)?.median())
    }

    fn times(&mut self, commands: u32, apart: Duration, runs: u32) -> Result<FirstCommandTime, ProfilerError> {
        let (mut times, mut widths) = (Vec::new(), Vec::new());
        for run in 0..runs {
            let rules: Vec<TestFlowEntry> = (0..commands).map(|at| alike(self.next + at)).collect();
            self.next = (self.next + commands) % 32_768;
            let changes: Vec<TestEntryChange> = rules.iter().copied().map(TestEntryChange::Add).collect();
            let offsets: Vec<Duration> = (0..commands).map(|at| apart * at).collect();
            let watches: Vec<EntryWatch> = [0, rules.len() - 1]
                .into_iter()
                .map(|command| EntryWatch { command, rule: rules[command], sign: CompletionSign::Leaves(1) })
                .take(rules.len().min(2))
                .collect();
            let outcome = self.bench.burst(&changes, &offsets, &watches)?;
            let Some((low, high)) = outcome.done[0] else {
                return Err(ProfilerError::wrong("the switch's tables", "no room", "room for a few entries"));
            };
            let s = (low.since(outcome.started) + high.since(outcome.started)).as_secs_f64() / 2.0;
            self.store.write(&RawDataRow::Apart { commands, apart_s: apart.as_secs_f64(), run, first_s: s })?;
            times.push(s);
            widths.push(high.since(low).as_secs_f64());
            self.bench.take_out(&rules)?;
        }
        Ok(FirstCommandTime {
            first: MedianAndSpread::of(&times)?,
            width: Duration::from_secs_f64(MedianAndSpread::of(&widths)?.median),
        })
    }

    /// Returns true if the first of two commands, sent with the time `apart` between them, waits for the second: if it
    /// takes effect later than the first of two sent at once, by more than half of `apart`. `None` if chance does not
    /// let it be decided.
    fn waits(&mut self, apart: Duration) -> Result<Option<bool>, ProfilerError> {
        let limit_s = apart.as_secs_f64() / 2.0;
        let mut more_s = Vec::new();
        for _ in 0..PAIRS_MOST {
            let together_s = self.times(2, Duration::ZERO, 1)?.first.median;
            more_s.push(self.times(2, apart, 1)?.first.median - together_s);
            if more_s.len() < RUNS as usize {
                continue;
            }
            let [low_s, high_s] = median_interval(&more_s, SURE)?;
            if low_s > limit_s || high_s <= limit_s {
                return Ok(Some(low_s > limit_s));
            }
        }
        Ok(None)
    }

    /// Searches the time-out.
    fn timeout(&mut self, alone: Duration, blur: Duration) -> Result<TimeoutKnowledge, ProfilerError> {
        // A time-out that is much shorter than the time of a single command, the noise or the time between test
        // packets cannot be measured, and hardly changes the times of commands.
        let shortest = SHORTEST.max(alone.mul_f64(0.02)).max(blur * 2);
        if shortest >= LONGEST {
            return Ok(TimeoutKnowledge::None);
        }
        match self.waits(shortest)? {
            Some(true) => {}
            Some(false) => return Ok(TimeoutKnowledge::None),
            None => return Ok(TimeoutKnowledge::Unknown),
        }
        let (mut low, mut high) = (shortest, LONGEST.min(shortest * 2));
        loop {
            match self.waits(high)? {
                Some(true) if high == LONGEST => return Ok(TimeoutKnowledge::None),
                Some(true) => (low, high) = (high, LONGEST.min(high * 2)),
                Some(false) => break,
                None => return Ok(TimeoutKnowledge::Unknown),
            }
        }
        while (high - low).as_secs_f64() > PRECISION * low.as_secs_f64() {
            let middle = (low + high) / 2;
            // Nearer to the limit than chance lets it be decided.
            let Some(waits) = self.waits(middle)? else { break };
            if waits { low = middle } else { high = middle }
        }
        Ok(TimeoutKnowledge::Between(low, high))
    }

    /// Returns the number of commands in the smallest burst that fills a batch; `None` if `batch_max` commands do not.
    /// `first` holds the times until a single command and the first of two commands take effect.
    fn most(&mut self, first: [Duration; 2], timeout: Duration, batch_max: u32) -> Result<Option<u32>, ProfilerError> {
        let half_s = timeout.as_secs_f64() / 2.0;
        let [alone_s, together_s] = first.map(|time| time.as_secs_f64());
        if together_s < alone_s - half_s {
            return Ok(Some(2));
        }
        // Size of the largest burst that did not fill a batch, its time, and the time that each further command adds.
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
