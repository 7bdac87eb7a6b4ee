//! Determines the cost of each term ([`CostTerm`]) from the measured times of bursts of commands. Method: weighted
//! least squares that limit the weight of outliers (Huber 1964).
use super::spread;
use crate::terms::{CostTerm, CostTermCounts};
use nalgebra::{DMatrix, DVector};
use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};
use std::collections::BTreeMap;

/// Number of fits, each with weights computed from the deviations of the previous one.
const ROUNDS: usize = 8;
/// Pivot below which a column counts as a linear combination of others.
const SINGULAR: f64 = 1e-10;

/// Measured time of a burst of commands.
#[derive(Debug, Clone, PartialEq)]
pub struct CostObservation {
    /// Cost terms of the burst: how often each cost occurs in it.
    pub terms: CostTermCounts,
    /// Measured time, in seconds.
    pub seconds: f64,
    /// Standard deviation of the measured time in seconds, estimated before the fit from the precision of the
    /// measurement.
    pub sd: f64,
    /// Number of the measured case. Observations of one case are repetitions, which differ only by chance.
    pub case: u32,
}

/// Fitted cost with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostEstimate {
    /// Cost in seconds.
    pub value: f64,
    /// 95 % confidence interval of the cost, in seconds.
    pub interval: [f64; 2],
    /// Share of variance that the fit explains, among the observations that contain this cost.
    pub r2: f64,
    /// Median relative deviation of these observations from the fit.
    pub residual: f64,
    /// Number of observations that contain this cost.
    pub samples: u64,
}

/// Result of a fit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CostRegression {
    /// Costs that are significantly above 0.
    pub costs: BTreeMap<CostTerm, CostEstimate>,
    /// Costs that are taken as 0, with the reason.
    pub zero: BTreeMap<CostTerm, ZeroCostReason>,
    /// Share of the variance of all times that the fit explains.
    pub r2: f64,
    /// Median relative deviation of all times from the fit.
    pub error: f64,
    /// Median relative deviation of the cases' medians from the fit.
    pub case_error: f64,
    /// Share of the variance of all times that is chance, estimated from the spread between repetitions of a case.
    pub chance: f64,
    /// Probability that chance alone makes the cases deviate from the fit as much as they do (F test for lack of fit).
    pub by_chance: f64,
    /// Amount by which Schwarz's criterion is lower with [`CostTerm::Constant`] and [`CostTerm::Revalidate`] than
    /// without them.
    pub criterion: f64,
    /// Number of observations.
    pub samples: usize,
}

/// Reason why a cost is taken as 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ZeroCostReason {
    /// The cost is not significantly above 0. Its estimate, and the upper bound of its confidence interval, in seconds.
    Small(f64, f64),
    /// The term is a linear combination of others in all observations. The costs of the others include this cost.
    InOthers,
}

impl CostRegression {
    /// Returns the value of a cost in seconds; 0 if it was not fitted.
    pub fn value(&self, column: CostTerm) -> f64 {
        self.costs.get(&column).map_or(0.0, |estimate| estimate.value)
    }

    /// Returns the time in seconds that the fitted costs predict for a burst with these terms.
    pub fn predict(&self, terms: &CostTermCounts) -> f64 {
        terms.0.iter().map(|(column, times)| self.value(*column) * times).sum()
    }

    /// Fits non-negative costs to the observations. Costs that are not significantly above 0 are taken as 0.
    pub fn fit(observations: &[CostObservation]) -> CostRegression {
        let mut columns: Vec<CostTerm> = Vec::new();
        for column in observations.iter().flat_map(|one| one.terms.0.keys()) {
            if !columns.contains(column) {
                columns.push(*column);
            }
        }
        columns.sort_unstable();
        let mut sds = spread::spreads(observations, &vec![0.0; observations.len()]);
        let mut trust = vec![1.0; observations.len()];
        let (mut solution, mut criterion) = (LeastSquaresSolution::default(), 0.0);
        for round in 1..=ROUNDS {
            let weights: Vec<f64> = sds.iter().zip(&trust).map(|(sd, trust)| trust / (sd * sd)).collect();
            solution = LeastSquaresSolution::of(&columns, observations, &weights, round == ROUNDS);
            if round == ROUNDS {
                let is_of_effect = |column: &CostTerm| matches!(column, CostTerm::Constant | CostTerm::Revalidate);
                let others: Vec<CostTerm> = columns.iter().copied().filter(|column| !is_of_effect(column)).collect();
                let without = LeastSquaresSolution::of(&others, observations, &weights, true);
                criterion = without.criterion(observations.len()) - solution.criterion(observations.len());
            } else {
                let off: Vec<f64> = observations.iter().map(|one| one.seconds - solution.time(&one.terms)).collect();
                sds = spread::spreads(observations, &off);
                trust = spread::trust(&off, &sds);
            }
        }
        CostRegression { criterion, ..solution.described(&columns, observations, &trust) }
    }
}

/// Quality of the fit for a subset of the observations.
struct SubsetFitQuality {
    r2: f64,
    residual: f64,
    samples: usize,
}

/// Solution of one weighted least squares problem.
#[derive(Debug, Default)]
struct LeastSquaresSolution {
    /// Value and standard error of each cost.
    costs: BTreeMap<CostTerm, (f64, f64)>,
    zero: BTreeMap<CostTerm, ZeroCostReason>,
    /// Degrees of freedom: observations without the number of costs, at least 1.
    freedom: f64,
    /// Weighted sum of squared residuals.
    left: f64,
}

impl LeastSquaresSolution {
    /// Returns Schwarz's criterion (1978) for times that are normally distributed around the fit; lower is better.
    fn criterion(&self, samples: usize) -> f64 {
        let n = (samples as f64).max(1.0);
        n * (self.left.max(f64::MIN_POSITIVE) / n).ln() + self.costs.len() as f64 * n.ln()
    }

    /// Returns the probability that the cases deviate from the fit this much by chance. `left` is the share of the
    /// variance that the fit does not explain, `chance` its part between repetitions of a case.
    fn by_chance(&self, left: f64, chance: f64, cases: f64) -> f64 {
        let (of_cases, of_runs) = (cases - self.costs.len() as f64, self.freedom + self.costs.len() as f64 - cases);
        if of_cases <= 0.0 || of_runs <= 0.0 || chance <= 0.0 {
            return if left > chance { 0.0 } else { 1.0 };
        }
        // Ratio of two variances, each divided by its degrees of freedom: between cases, and between runs of a case.
        let of_one = chance / self.freedom;
        let ratio = (left - of_one * of_runs).max(0.0) / of_cases / of_one;
        FisherSnedecor::new(of_cases, of_runs).map_or(1.0, |law| 1.0 - law.cdf(ratio))
    }

    fn time(&self, terms: &CostTermCounts) -> f64 {
        terms.0.iter().map(|(column, times)| self.costs.get(column).map_or(0.0, |cost| cost.0) * times).sum()
    }

    /// Solves the weighted least squares problem. If `chooses` is true, costs that are not significantly above 0 are
    /// removed one by one, the least certain first.
    fn of(
        columns: &[CostTerm],
        observations: &[CostObservation],
        weights: &[f64],
        chooses: bool,
    ) -> LeastSquaresSolution {
        let n = columns.len();
        let place: BTreeMap<CostTerm, usize> = columns.iter().copied().zip(0..).collect();
        let mut gram = DMatrix::<f64>::zeros(n, n);
        let mut right = DVector::<f64>::zeros(n);
        let mut squares = 0.0;
        let place = |column: &CostTerm| place.get(column).copied();
        for (one, weight) in observations.iter().zip(weights) {
            squares += weight * one.seconds * one.seconds;
            let entries: Vec<(usize, f64)> =
                one.terms.0.iter().filter_map(|(column, times)| Some((place(column)?, *times))).collect();
            for (row, left) in &entries {
                right[*row] += weight * left * one.seconds;
                entries.iter().for_each(|(column, times)| gram[(*row, *column)] += weight * left * times);
            }
        }
        let mut kept: Vec<usize> = (0..n).collect();
        let mut solution = LeastSquaresSolution::default();
        loop {
            let (values, inverse, aliased) = solve(&gram, &right, &kept);
            for at in &aliased {
                solution.zero.insert(columns[*at], ZeroCostReason::InOthers);
            }
            kept.retain(|at| !aliased.contains(at));
            let fitted: f64 = kept.iter().zip(&values).map(|(at, value)| value * right[*at]).sum();
            let freedom = (observations.len() as f64 - kept.len() as f64).max(1.0);
            let variance = ((squares - fitted) / freedom).max(0.0);
            let error = |at: usize| (variance * inverse[at]).max(0.0).sqrt();
            let t = StudentsT::new(0.0, 1.0, freedom).map_or(1.96, |law| law.inverse_cdf(0.975));
            let certain = |at: usize| values[at] - t * error(at);
            let worst = (0..kept.len()).filter(|at| chooses && certain(*at) <= 0.0).min_by(|left, right| {
                let sure = |at: usize| values[at] / error(at).max(f64::MIN_POSITIVE);
                sure(*left).total_cmp(&sure(*right))
            });
            let Some(worst) = worst else {
                (solution.freedom, solution.left) = (freedom, (squares - fitted).max(0.0));
                solution.costs = (0..kept.len()).map(|at| (columns[kept[at]], (values[at], error(at)))).collect();
                return solution;
            };
            let small = ZeroCostReason::Small(values[worst], values[worst] + t * error(worst));
            solution.zero.insert(columns[kept[worst]], small);
            kept.remove(worst);
        }
    }

    fn described(self, columns: &[CostTerm], observations: &[CostObservation], trust: &[f64]) -> CostRegression {
        let t = StudentsT::new(0.0, 1.0, self.freedom.max(1.0)).map_or(1.96, |law| law.inverse_cdf(0.975));
        let explained = |column: Option<CostTerm>| {
            let has = |one: &CostObservation| column.is_none_or(|column| one.terms.0.contains_key(&column));
            let those = || observations.iter().zip(trust).filter(|(one, _)| has(one));
            // Outliers have the weight that they have in the fit.
            let sum = |of: &dyn Fn(&CostObservation) -> f64| those().map(|(one, trust)| trust * of(one)).sum::<f64>();
            let mean = sum(&|one| one.seconds) / sum(&|_| 1.0).max(f64::MIN_POSITIVE);
            let total = sum(&|one| (one.seconds - mean).powi(2));
            let left = sum(&|one| (one.seconds - self.time(&one.terms)).powi(2));
            let is_timed = those().filter(|(one, _)| one.seconds > 0.0);
            let mut shares: Vec<f64> =
                is_timed.map(|(one, _)| (one.seconds - self.time(&one.terms)) / one.seconds).collect();
            SubsetFitQuality {
                r2: if total > 0.0 { (1.0 - left / total).max(0.0) } else { 1.0 },
                residual: spread::median_size(&mut shares),
                samples: those().count(),
            }
        };
        let estimate = |column: CostTerm| {
            let (value, error) = *self.costs.get(&column)?;
            let SubsetFitQuality { r2, residual, samples } = explained(Some(column));
            let interval = [value - t * error, value + t * error];
            Some((column, CostEstimate { value, interval, r2, residual, samples: samples as u64 }))
        };
        let SubsetFitQuality { r2, residual, samples } = explained(None);
        let off: Vec<f64> = observations.iter().map(|one| one.seconds - self.time(&one.terms)).collect();
        let spread::ChanceVariance { share, cases } = spread::chance(observations, trust);
        let chance = (share * self.freedom / observations.len().max(1) as f64).min(1.0 - r2);
        CostRegression {
            costs: columns.iter().copied().filter_map(estimate).collect(),
            r2,
            error: residual,
            case_error: spread::by_case(observations, &off),
            chance,
            by_chance: self.by_chance(1.0 - r2, chance, cases as f64),
            criterion: 0.0,
            samples,
            zero: self.zero,
        }
    }
}

/// Solves the normal equations (`gram` * values = `right`) of the kept columns. Returns the values and the diagonal of
/// the inverse for the independent columns, and the columns that are linear combinations of others.
fn solve(gram: &DMatrix<f64>, right: &DVector<f64>, kept: &[usize]) -> (Vec<f64>, Vec<f64>, Vec<usize>) {
    let (independent, aliased) = independent(gram, kept);
    let n = independent.len();
    // The columns are scaled to norm 1, because they differ greatly in size.
    let scale: Vec<f64> = independent.iter().map(|at| gram[(*at, *at)].sqrt().max(f64::MIN_POSITIVE)).collect();
    let scaled = DMatrix::from_fn(n, n, |row, column| {
        gram[(independent[row], independent[column])] / (scale[row] * scale[column])
    });
    let target = DVector::from_fn(n, |row, _| right[independent[row]] / scale[row]);
    let inverse = scaled.cholesky().map(|factors| factors.inverse()).unwrap_or_else(|| DMatrix::identity(n, n));
    let solved = &inverse * target;
    let values = (0..n).map(|at| solved[at] / scale[at]).collect();
    let diagonal = (0..n).map(|at| inverse[(at, at)] / (scale[at] * scale[at])).collect();
    (values, diagonal, aliased)
}

/// Splits the kept columns in two: columns that are linearly independent of those before them, and the others.
fn independent(gram: &DMatrix<f64>, kept: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let n = kept.len();
    let mut left = DMatrix::from_fn(n, n, |row, column| {
        let scale = (gram[(kept[row], kept[row])] * gram[(kept[column], kept[column])]).sqrt();
        if scale > 0.0 { gram[(kept[row], kept[column])] / scale } else { 0.0 }
    });
    let (mut good, mut aliased) = (Vec::new(), Vec::new());
    for at in 0..n {
        if left[(at, at)] < SINGULAR {
            aliased.push(kept[at]);
            continue;
        }
        good.push(kept[at]);
        let pivot = left[(at, at)];
        for row in at + 1..n {
            let factor = left[(row, at)] / pivot;
            if factor != 0.0 {
                for column in at + 1..n {
                    let taken = factor * left[(at, column)];
                    left[(row, column)] -= taken;
                }
            }
        }
    }
    (good, aliased)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observations(noise: f64, seed: u64) -> Vec<CostObservation> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut all = Vec::new();
        for entries in [1_u32, 10, 100, 1000, 5000] {
            for batch in [1_u32, 5, 20] {
                for _ in 0..5 {
                    let (e, q) = (f64::from(entries), f64::from(batch));
                    let text = format!(
                        "constant=1 add.0.single.{batch}={} shift.0={} write.0={q}",
                        e * q,
                        random.f64() * e * q
                    );
                    let terms: CostTermCounts = text.parse().unwrap();
                    let of = |name: &str| terms.0.get(&name.parse().unwrap()).copied().unwrap_or(0.0);
                    let exact = 5e-4 * q + 1e-6 / q.sqrt() * e * q + 4e-6 * of("shift.0");
                    let seconds = exact * (1.0 + noise * (random.f64() - 0.5));
                    all.push(CostObservation { terms, seconds, sd: 0.003 * seconds, case: entries * 100 + batch });
                }
            }
        }
        all
    }

    #[test]
    fn costs_are_found_and_what_is_none_is_none() {
        let fitted = CostRegression::fit(&observations(0.01, 3));
        let near = |name: &str, truth: f64| {
            let found = fitted.costs[&name.parse().unwrap()];
            assert!((found.value / truth - 1.0).abs() < 0.05, "{name}: {found:?}");
            assert!(found.interval[0] < found.value && found.value < found.interval[1]);
        };
        near("write.0", 5e-4);
        near("shift.0", 4e-6);
        near("add.0.single.1", 1e-6);
        near("add.0.single.20", 1e-6 / 20_f64.sqrt());
        assert!(fitted.zero.contains_key(&CostTerm::Constant), "there is no constant part");
        assert!(fitted.r2 > 0.99 && fitted.error < 0.01);
    }

    #[test]
    fn runs_that_went_wrong_count_little() {
        let mut all = observations(0.01, 4);
        all.iter_mut().step_by(17).for_each(|one| one.seconds += 0.05);
        let fitted = CostRegression::fit(&all);
        let write = fitted.costs[&CostTerm::Write { level: 0 }].value;
        assert!((write / 5e-4 - 1.0).abs() < 0.05, "{write}");
    }

    #[test]
    fn a_column_that_is_a_sum_of_others_is_told() {
        let mut all = observations(0.01, 5);
        for one in &mut all {
            let same = one.terms.0[&CostTerm::Write { level: 0 }];
            one.terms.0.insert(CostTerm::Write { level: 1 }, same);
        }
        let fitted = CostRegression::fit(&all);
        assert_eq!(fitted.zero.get(&CostTerm::Write { level: 1 }), Some(&ZeroCostReason::InOthers));
        assert!(CostRegression::fit(&[]).costs.is_empty());
    }
}
