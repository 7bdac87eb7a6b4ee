//! Groups latencies by optimal k-means on a line, and decides how many groups there are.
//!
//! On a line the best groups are runs of the sorted values. Dynamic programming finds them exactly (Wang and Song
//! 2011), without restarts from random centres. The number of groups maximises the mean silhouette (Rousseeuw 1987),
//! if that shows a strong structure.
use super::quantiles::sorted;
use crate::ModelError;
use crate::check::{domain, positive};
use std::ops::Range;

/// Mean silhouette below which there is no strong structure, so one group (Kaufman and Rousseeuw 1990, table 4).
pub const STRONG: f64 = 0.7;
/// Silhouette below which a value is not much closer to its own group than to another.
pub const DOUBTFUL: f64 = 0.5;
/// Maximum number of latencies.
pub const VALUES_MAX: usize = 1_000_000;

/// Latencies in groups.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyClusters {
    /// Size of each group, the fastest first.
    pub sizes: Vec<usize>,
    /// Geometric mean of each group's latencies, in their unit.
    pub centres: Vec<f64>,
    /// Mean silhouette; `None` for a single group.
    pub silhouette: Option<f64>,
    /// Number of values that are not much closer to their own group than to the next.
    pub doubtful: usize,
}

impl LatencyClusters {
    /// Groups the logarithms of latencies, into as many groups as the silhouette suggests, up to `most`.
    ///
    /// # Errors
    /// There is no latency, a latency is not above 0, or there are more than [`VALUES_MAX`].
    pub fn find(latencies: &[f64], most: usize) -> Result<LatencyClusters, ModelError> {
        latencies.iter().try_for_each(|latency| positive("latency", *latency).map(drop))?;
        if latencies.len() > VALUES_MAX {
            return Err(domain("latencies", latencies.len(), format!("{VALUES_MAX} at most")));
        }
        let logs: Vec<f64> = sorted(latencies)?.iter().map(|latency| latency.ln()).collect();
        let sums = PrefixSums::of(&logs);
        let runs = sums.best_runs(most.clamp(1, 16));
        let judged = runs.into_iter().skip(1).map(|runs| {
            let silhouettes = sums.silhouettes(&logs, &runs);
            (silhouettes.iter().sum::<f64>() / silhouettes.len() as f64, silhouettes, runs)
        });
        let best = judged.filter(|(mean, ..)| *mean >= STRONG).max_by(|left, right| left.0.total_cmp(&right.0));
        Ok(match best {
            Some((mean, silhouettes, runs)) => {
                let doubtful = silhouettes.iter().filter(|silhouette| **silhouette < DOUBTFUL).count();
                LatencyClusters { silhouette: Some(mean), doubtful, ..sums.groups(&logs, &runs) }
            }
            None => sums.groups(&logs, std::slice::from_ref(&(0..logs.len()))),
        })
    }

    /// Returns the index of the group to which a latency belongs: the group whose centre is nearest on a logarithmic
    /// scale.
    pub fn of(&self, latency: f64) -> usize {
        let last = self.centres.len().saturating_sub(1);
        let boundary = |at: usize| (self.centres[at].ln() + self.centres[at + 1].ln()) / 2.0;
        (0..last).find(|at| latency.ln() <= boundary(*at)).unwrap_or(last)
    }
}

/// Prefix sums of the values and of their squares.
struct PrefixSums {
    values: Vec<f64>,
    squares: Vec<f64>,
}

impl PrefixSums {
    fn of(values: &[f64]) -> PrefixSums {
        // Values are taken relative to the median, otherwise the squares lose significant digits.
        let middle = values[values.len() / 2];
        let running = |of: fn(f64) -> f64| {
            let next = |sum: &mut f64, value: &f64| {
                *sum += of(value - middle);
                Some(*sum)
            };
            std::iter::once(0.0).chain(values.iter().scan(0.0, next)).collect()
        };
        PrefixSums { values: running(|value| value), squares: running(|value| value * value) }
    }

    fn len(&self) -> usize {
        self.values.len() - 1
    }

    /// Returns the sum of squared distances from the mean of a run.
    fn within(&self, run: &Range<usize>) -> f64 {
        let (n, sum) = (run.len() as f64, self.values[run.end] - self.values[run.start]);
        if run.is_empty() { 0.0 } else { (self.squares[run.end] - self.squares[run.start] - sum * sum / n).max(0.0) }
    }

    /// Returns the best division into 1, 2, ... groups: the runs with the least sum of squared distances within them.
    fn best_runs(&self, most: usize) -> Vec<Vec<Range<usize>>> {
        let n = self.len();
        let mut cost: Vec<f64> = (0..=n).map(|end| self.within(&(0..end))).collect();
        let mut starts: Vec<Vec<usize>> = vec![vec![0; n + 1]];
        for groups in 2..=most.min(n) {
            let (mut next, mut start) = (vec![f64::INFINITY; n + 1], vec![0; n + 1]);
            self.best_starts(&cost, &mut next, &mut start, groups..n + 1, groups - 1..n);
            cost = next;
            starts.push(start);
        }
        (1..=starts.len()).map(|groups| traced(&starts[..groups], n)).collect()
    }

    /// Finds the best start of the last run for each end, given the costs of the runs before. Best starts rise with
    /// the ends, so the best start of the middle end bounds those of both halves.
    fn best_starts(
        &self,
        cost: &[f64],
        next: &mut [f64],
        start: &mut [usize],
        ends: Range<usize>,
        starts: Range<usize>,
    ) {
        if ends.is_empty() {
            return;
        }
        let end = ends.start + ends.len() / 2;
        let with = |at: usize| cost[at] + self.within(&(at..end));
        let candidates = (starts.start..starts.end.min(end)).map(|at| (with(at), at));
        let Some((least, best)) = candidates.min_by(|left, right| left.0.total_cmp(&right.0)) else { return };
        (next[end], start[end]) = (least, best);
        self.best_starts(cost, next, start, ends.start..end, starts.start..best + 1);
        self.best_starts(cost, next, start, end + 1..ends.end, best..starts.end);
    }

    /// Returns each value's silhouette: how much closer it is to its own group than to the nearest other, from -1 to
    /// 1.
    fn silhouettes(&self, values: &[f64], runs: &[Range<usize>]) -> Vec<f64> {
        let middle = values[values.len() / 2];
        let of = |at: usize, own: usize| {
            if runs[own].len() < 2 {
                return 0.0;
            }
            let distance = |run: &Range<usize>| self.distance(values[at] - middle, at, run);
            let inside = distance(&runs[own]) / (runs[own].len() - 1) as f64;
            let beside = [own.checked_sub(1), Some(own + 1)].into_iter().flatten().filter_map(|other| runs.get(other));
            let outside = beside.map(|run| distance(run) / run.len() as f64).fold(f64::INFINITY, f64::min);
            let larger = inside.max(outside);
            if larger > 0.0 { (outside - inside) / larger } else { 0.0 }
        };
        runs.iter()
            .enumerate()
            .flat_map(|(own, run)| run.clone().map(move |at| (at, own)))
            .map(|(at, own)| of(at, own))
            .collect()
    }

    /// Returns the sum of distances between a run's values and the value at `at`.
    fn distance(&self, value: f64, at: usize, run: &Range<usize>) -> f64 {
        let split = at.clamp(run.start, run.end);
        let below = value * (split - run.start) as f64 - (self.values[split] - self.values[run.start]);
        let above = (self.values[run.end] - self.values[split]) - value * (run.end - split) as f64;
        (below + above).max(0.0)
    }

    fn groups(&self, logs: &[f64], runs: &[Range<usize>]) -> LatencyClusters {
        let centre = |run: &Range<usize>| (logs[run.clone()].iter().sum::<f64>() / run.len() as f64).exp();
        LatencyClusters {
            sizes: runs.iter().map(Range::len).collect(),
            centres: runs.iter().map(centre).collect(),
            silhouette: None,
            doubtful: 0,
        }
    }
}

/// Rebuilds a division into runs. `starts` has the best start of the last run by number of runs and end.
fn traced(starts: &[Vec<usize>], n: usize) -> Vec<Range<usize>> {
    let mut end = n;
    let mut runs: Vec<Range<usize>> = starts
        .iter()
        .rev()
        .map(|start| {
            let run = start[end]..end;
            end = run.start;
            run
        })
        .collect();
    runs.reverse();
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns latencies around centres, spread by a share.
    fn latencies(groups: &[(f64, usize)], spread: f64) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(3);
        let mut all: Vec<f64> = groups
            .iter()
            .flat_map(|(centre, size)| std::iter::repeat_n(*centre, *size))
            .map(|centre| centre * (spread * (2.0 * random.f64() - 1.0)).exp())
            .collect();
        random.shuffle(&mut all);
        all
    }

    #[test]
    fn levels_are_counted_exactly() {
        for groups in [vec![(1e-5, 4000), (1e-3, 500)], vec![(1e-5, 100), (5e-5, 1000), (1e-3, 30)], vec![(1.0, 7)]] {
            let found = LatencyClusters::find(&latencies(&groups, 0.3), 4).unwrap();
            assert_eq!(found.sizes, groups.iter().map(|(_, size)| *size).collect::<Vec<_>>(), "{found:?}");
            assert_eq!((found.of(1e-9), found.of(1e9)), (0, groups.len() - 1));
        }
    }

    #[test]
    fn one_wide_group_is_not_taken_for_several() {
        let found = LatencyClusters::find(&latencies(&[(1.0, 3000)], 1.0), 4).unwrap();
        assert_eq!((found.sizes, found.silhouette), (vec![3000], None));
        assert_eq!(LatencyClusters::find(&[2.0; 50], 4).unwrap().sizes, [50]);
    }

    #[test]
    fn runs_are_the_best_there_are() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..200 {
            let mut values: Vec<f64> = (0..9).map(|_| random.f64()).collect();
            values.sort_by(f64::total_cmp);
            let sums = PrefixSums::of(&values);
            let cost = |runs: &[Range<usize>]| runs.iter().map(|run| sums.within(run)).sum::<f64>();
            let splits =
                (1..8).flat_map(|first| (first + 1..9).map(move |second| [0..first, first..second, second..9]));
            let least = splits.map(|runs| cost(&runs)).fold(f64::INFINITY, f64::min);
            assert!((cost(&sums.best_runs(3)[2]) - least).abs() < 1e-12);
        }
    }

    #[test]
    fn silhouettes_are_those_of_the_definition() {
        let values: [f64; 7] = [0.0, 0.1, 0.4, 2.0, 2.2, 5.0, 5.5];
        let runs = [0..3, 3..5, 5..7];
        let mean = |at: usize, run: &Range<usize>, less: usize| {
            run.clone().map(|other| (values[at] - values[other]).abs()).sum::<f64>() / (run.len() - less) as f64
        };
        for (at, found) in PrefixSums::of(&values).silhouettes(&values, &runs).into_iter().enumerate() {
            let own = runs.iter().position(|run| run.contains(&at)).unwrap();
            let inside = mean(at, &runs[own], 1);
            let others = (0..3).filter(|other| *other != own).map(|other| mean(at, &runs[other], 0));
            let outside = others.fold(f64::INFINITY, f64::min);
            assert!((found - (outside - inside) / outside.max(inside)).abs() < 1e-12);
        }
    }

    #[test]
    fn what_is_no_latency_is_refused() {
        assert!(LatencyClusters::find(&[], 4).is_err() && LatencyClusters::find(&[0.0], 4).is_err());
        assert!(LatencyClusters::find(&[f64::INFINITY, 1.0], 4).is_err());
    }
}
