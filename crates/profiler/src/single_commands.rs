//! Measures how long single commands take until packets meet them, on a switch with a cache of flows: with an empty
//! cache, and with a full one.
//!
//! The packets that watch bursts keep the threads of a software switch busy, which delays when it looks at its cache.
//! Commands that come one by one are watched by few packets, as a controller's are met by few.
use crate::bench::TestBench;
use crate::fit::effect::{self, EffectFit};
use crate::fit::linear::CostRegression;
use crate::store::RawDataStore;
use crate::terms::{CostTerm, CostTermCounts};
use crate::validation::{self, CommandSeries, CommandSeriesParams};
use crate::{MeasurementGrid, ProfilerError};
use std::time::Duration;
use weir_traffic::RandomStream;

/// Commands of each part, and their rate per second: most find the switch idle.
const COMMANDS: u32 = 200;
const PER_SECOND: f64 = 40.0;
/// Share of the flows of a full cache up to which the cache counts as empty.
const MOSTLY_EMPTY: f64 = 0.5;
/// Stream number of the random numbers.
const STREAM: u64 = 0x51;

/// Time of a single command.
#[derive(serde::Serialize, serde::Deserialize, Debug, Clone, PartialEq)]
pub struct SingleCommandTime {
    /// Time from sending the command until packets met it, in seconds.
    pub seconds: f64,
    /// Terms of its cost, as text.
    pub terms: String,
    /// True if it was measured with a full cache.
    pub full: bool,
}

/// Measures single commands after a rest of `forgets`, in which the switch forgets all flows.
pub(crate) fn measure(
    bench: &mut TestBench<'_>,
    grid: &MeasurementGrid,
    room: u64,
    forgets: Duration,
    store: &RawDataStore,
) -> Result<Vec<SingleCommandTime>, ProfilerError> {
    if let Some(found) = store.kept("single-commands")? {
        return Ok(found);
    }
    let most = u32::try_from(room).unwrap_or(u32::MAX).min(grid.entries_max).max(2);
    let drawn =
        CommandSeriesParams { count: COMMANDS, per_second: PER_SECOND, entries: (most / 2).max(1), entries_most: most };
    let mut found = Vec::new();
    for (number, full) in (0..).zip([false, true]) {
        bench.clear()?;
        bench.rest(forgets)?;
        let mut random = RandomStream::new(bench.settings.seed, number, STREAM);
        let series = CommandSeries::draw(&drawn, &mut random)?;
        for (became, terms) in validation::run_commands(bench, &series, full)? {
            found.extend(became.seconds().map(|seconds| SingleCommandTime { seconds, terms: terms.to_string(), full }));
        }
    }
    store.keep("single-commands", &found)?;
    Ok(found)
}

/// Returns the effect of single commands, and the time of each flow in the cache, in seconds. The costs of commands are
/// those of bursts. `None` if a part has no commands that packets met.
pub(crate) fn fit(singles: &[SingleCommandTime], fitted: &CostRegression, criterion: f64) -> Option<(EffectFit, f64)> {
    let mut times: Vec<(bool, f64, f64)> = Vec::new();
    for one in singles {
        let terms: CostTermCounts = one.terms.parse().ok()?;
        let flows = terms.0.get(&CostTerm::Revalidate).copied().unwrap_or(0.0);
        times.push((one.full, flows, one.seconds - effect::terms_s(fitted, &terms)));
    }
    // Most commands take little, some wait for several threads: the mean is what many commands take.
    let middle = |full: bool, of: fn(&(bool, f64, f64)) -> f64| {
        let values: Vec<f64> = times.iter().filter(|one| one.0 == full).map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let (many, few) = (middle(true, |one| one.1)?, middle(false, |one| one.1)?);
    let more_s = middle(true, |one| one.2)? - middle(false, |one| one.2)?;
    // A cache that was not known to forget its flows was not empty in the first part: then both parts are alike.
    let each_s = if few < MOSTLY_EMPTY * many { (more_s / (many - few)).max(0.0) } else { 0.0 };
    // With a full cache, some commands are met at once, others only after all flows: less the mean time of these flows,
    // the former would count as 0, and the law would come out too long. So it is that of commands with an empty cache.
    let is_known = |full: bool| each_s == 0.0 || !full;
    let law = times.iter().filter(|(full, ..)| is_known(*full));
    let samples_s = law.map(|(_, flows, s)| (s - flows * each_s).max(0.0)).collect();
    Some((EffectFit { samples_s, criterion }, each_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::linear;

    #[test]
    fn commands_that_a_full_cache_does_not_hold_up_make_no_longer_law() {
        // Each command takes 0.2 ms. With a full cache of 1000 flows, every second one takes 2 us more for each.
        let one = |full: bool, seconds: f64| SingleCommandTime {
            seconds,
            terms: format!("revalidate={}", if full { 1000 } else { 0 }),
            full,
        };
        let mut singles = vec![one(false, 2e-4); 100];
        singles.extend((0..100).map(|at| one(true, if at % 2 == 0 { 2e-4 } else { 2.2e-3 })));
        let (law, each_s) = fit(&singles, &linear::CostRegression::default(), 20.0).unwrap();
        let mean_s = law.samples_s.iter().sum::<f64>() / law.samples_s.len() as f64;
        assert!((each_s - 1e-6).abs() < 1e-12 && (mean_s - 2e-4).abs() < 1e-9, "{each_s} {mean_s}");
        assert_eq!(law.samples_s.len(), 100);
    }
}
