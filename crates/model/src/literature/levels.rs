//! Solves large quasi-birth-death processes with few transitions for each state, level by level instead of by
//! matrices of all phases.
//!
//! 1. The levels from 0 to one that is practically never reached are kept as vectors. Given its neighbours, each is
//!    the solution of linear equations within the level. Their matrix is banded, and equal for all levels but the
//!    first and the last: it is factored once.
//! 2. Levels are solved in turn, upwards and downwards (block Gauss-Seidel).
//! 3. After each pass, levels are scaled so that as much rises between two levels as falls (aggregation, after Koury,
//!    McAllister and Stewart, 1984). So the exchange between far levels, which is slow with Gauss-Seidel, is exact at
//!    once.
//! 4. Passes are repeated until nothing changes. If the last level then still has some probability, levels are added.
use super::banded::BandedMatrix;
use super::qbd::QbdSteadyState;
use nalgebra::DVector;

/// Transition between phases.
#[derive(Debug, Clone, Copy)]
pub(super) struct PhaseTransition {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) per_second: f64,
}

/// Transitions to the next level, within a level, and to the previous level.
#[derive(Debug, Clone, Default)]
pub(super) struct LevelTransitions {
    pub(super) phases: usize,
    pub(super) up: Vec<PhaseTransition>,
    pub(super) within: Vec<PhaseTransition>,
    pub(super) down: Vec<PhaseTransition>,
}

/// Initial number of levels.
const LEVELS: usize = 32;
/// Most probabilities that are stored.
const MOST_STATES: usize = 6_000_000;
/// Most passes over all levels.
const MOST_PASSES: usize = 2000;
/// Change in a pass below which the solution is final.
const REST: f64 = 1e-13;
/// Probability of the last level that counts as none.
const NEVER: f64 = 1e-14;

impl LevelTransitions {
    /// Returns the steady state of a process that falls more often than it rises; none if it needs too many levels or
    /// passes.
    pub(super) fn solve(&self) -> Option<QbdSteadyState> {
        let systems = LevelEquations::new(self)?;
        let mut levels = vec![vec![1.0 / self.phases as f64; self.phases]; LEVELS];
        for _ in 0..MOST_PASSES {
            let moved = self.pass(&systems, &mut levels)?;
            if moved > REST {
                continue;
            }
            let last = levels[levels.len() - 1].iter().sum::<f64>();
            if last < NEVER {
                return Some(stationary(&levels));
            }
            if levels.len() * 2 * self.phases > MOST_STATES {
                return None;
            }
            extend(&mut levels);
        }
        None
    }

    /// Returns the rates at which the level rises and falls, far from level 0, from the distribution of the phases
    /// alone. None if there is no solution.
    pub(super) fn drift(&self) -> Option<(f64, f64)> {
        let all: Vec<PhaseTransition> = [&self.up, &self.within, &self.down].into_iter().flatten().copied().collect();
        let distance = |rate: &PhaseTransition| (rate.to.saturating_sub(rate.from), rate.from.saturating_sub(rate.to));
        let (below, above) = all.iter().map(distance).fold((0, 0), |most, one| (most.0.max(one.0), most.1.max(one.1)));
        // The first phase is omitted and taken as 1: its transitions to others are on the right-hand side.
        let others = self.phases - 1;
        let mut matrix = BandedMatrix::zero(others, below.min(others), above.min(others));
        let mut phases = vec![0.0; others];
        for rate in all.iter().filter(|rate| rate.from != rate.to) {
            match (rate.from.checked_sub(1), rate.to.checked_sub(1)) {
                (Some(from), Some(to)) => {
                    matrix.add(to, from, -rate.per_second);
                    matrix.add(from, from, rate.per_second);
                }
                (Some(from), None) => matrix.add(from, from, rate.per_second),
                (None, Some(to)) => phases[to] += rate.per_second,
                (None, None) => {}
            }
        }
        matrix.factor()?.solve(&mut phases);
        let whole = 1.0 + phases.iter().sum::<f64>();
        let of = |phase: usize| if phase == 0 { 1.0 / whole } else { phases[phase - 1] / whole };
        let sum = |rates: &[PhaseTransition]| rates.iter().map(|rate| of(rate.from) * rate.per_second).sum::<f64>();
        let drift = (sum(&self.up), sum(&self.down));
        (drift.0.is_finite() && drift.1.is_finite()).then_some(drift)
    }

    /// Solves all levels upwards, then downwards, and scales them. Returns the total change.
    fn pass(&self, systems: &LevelEquations, levels: &mut [Vec<f64>]) -> Option<f64> {
        let before: Vec<f64> = levels.iter().map(|level| level.iter().sum()).collect();
        let (ground, last) = (levels[0].clone(), levels.len() - 1);
        for level in (0..=last).chain((0..last).rev()) {
            let mut right = vec![0.0; self.phases];
            if level > 0 {
                flow(&self.up, &levels[level - 1], &mut right);
            }
            if level < last {
                flow(&self.down, &levels[level + 1], &mut right);
            }
            systems.of(level, last).solve(&mut right);
            levels[level] = right;
        }
        self.weigh(levels)?;
        let masses =
            levels.iter().map(|level| level.iter().sum::<f64>()).zip(before).map(|(now, then)| (now - then).abs());
        let phases = levels[0].iter().zip(&ground).map(|(now, then)| (now - then).abs());
        Some(masses.sum::<f64>() + phases.sum::<f64>())
    }

    /// Scales each level so that as much rises from the previous level as falls back.
    fn weigh(&self, levels: &mut [Vec<f64>]) -> Option<()> {
        let rises = |level: &[f64]| self.up.iter().map(|rate| level[rate.from] * rate.per_second).sum::<f64>();
        let falls = |level: &[f64]| self.down.iter().map(|rate| level[rate.from] * rate.per_second).sum::<f64>();
        let mut whole = 0.0;
        for number in 0..levels.len() {
            let own: f64 = levels[number].iter().sum();
            let factor = match number.checked_sub(1) {
                None => 1.0 / own,
                Some(before) => rises(&levels[before]) / falls(&levels[number]),
            };
            if !factor.is_finite() {
                return None;
            }
            levels[number].iter_mut().for_each(|p| *p *= factor);
            whole += own * factor;
        }
        levels.iter_mut().flatten().for_each(|p| *p /= whole);
        Some(())
    }
}

/// Factored equations of the first level, those between, and the last, which is never left upwards.
struct LevelEquations {
    first: BandedMatrix,
    between: BandedMatrix,
    last: BandedMatrix,
}

impl LevelEquations {
    fn new(of: &LevelTransitions) -> Option<LevelEquations> {
        Some(LevelEquations {
            first: system(of, &[&of.up])?,
            between: system(of, &[&of.up, &of.down])?,
            last: system(of, &[&of.down])?,
        })
    }

    fn of(&self, level: usize, last: usize) -> &BandedMatrix {
        match level {
            0 => &self.first,
            level if level == last => &self.last,
            _ => &self.between,
        }
    }
}

/// Returns the factored equations of a level: the flow out of each phase less the flow in from other phases of the
/// level. `leaving` holds the transitions to other levels that exist. On the last level, upward transitions stay
/// within the level.
fn system(of: &LevelTransitions, leaving: &[&Vec<PhaseTransition>]) -> Option<BandedMatrix> {
    let rises = leaving.iter().any(|rates| std::ptr::eq(*rates, &of.up));
    let inside: Vec<&PhaseTransition> = of.within.iter().chain(of.up.iter().filter(|_| !rises)).collect();
    let distance = |rate: &&PhaseTransition| (rate.to.saturating_sub(rate.from), rate.from.saturating_sub(rate.to));
    let (below, above) = inside.iter().map(distance).fold((0, 0), |most, one| (most.0.max(one.0), most.1.max(one.1)));
    let mut matrix = BandedMatrix::zero(of.phases, below, above);
    for rate in &inside {
        if rate.from != rate.to {
            matrix.add(rate.to, rate.from, -rate.per_second);
            matrix.add(rate.from, rate.from, rate.per_second);
        }
    }
    for rate in leaving.iter().copied().flatten() {
        matrix.add(rate.from, rate.from, rate.per_second);
    }
    matrix.factor()
}

/// Adds the flow from a level's phases by these transitions to `into`.
fn flow(rates: &[PhaseTransition], from: &[f64], into: &mut [f64]) {
    for rate in rates {
        into[rate.to] += from[rate.from] * rate.per_second;
    }
}

/// Doubles the number of levels; each new one is less probable than the previous one by the ratio of the last two.
fn extend(levels: &mut Vec<Vec<f64>>) {
    let mass = |level: &[f64]| level.iter().sum::<f64>();
    let count = levels.len();
    let ratio = (mass(&levels[count - 1]) / mass(&levels[count - 2])).clamp(0.0, 1.0);
    for _ in 0..count {
        let next = levels[levels.len() - 1].iter().map(|p| p * ratio).collect();
        levels.push(next);
    }
}

fn stationary(levels: &[Vec<f64>]) -> QbdSteadyState {
    let mut phases = DVector::zeros(levels[0].len());
    let mut mean = 0.0;
    for (number, level) in levels.iter().enumerate() {
        phases.iter_mut().zip(level).for_each(|(sum, p)| *sum += p);
        mean += number as f64 * level.iter().sum::<f64>();
    }
    QbdSteadyState { ground: DVector::from_column_slice(&levels[0]), phases, level: mean }
}
