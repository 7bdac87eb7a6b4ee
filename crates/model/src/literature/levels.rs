//! Large quasi-birth-death processes with few transitions a state, solved level by level instead of by matrices of all phases.
//!
//! 1. The levels from 0 to one that is hardly ever reached are kept as vectors. Given its neighbours, each is the solution of linear equations within it, whose matrix is
//!    the same for all levels but the first and the last, and banded: it is factored once.
//! 2. Levels are solved in turn, upwards and downwards (block Gauss and Seidel).
//! 3. After each pass, levels get the probabilities that they have to have: what rises between two levels falls (aggregation, after Koury, McAllister and
//!    Stewart, 1984). So what is slow with Gauss and Seidel, the way between far levels, is exact at once.
//! 4. This goes on until nothing moves. If the last level is reached after all, there are more.
use super::banded::Banded;
use super::qbd::Stationary;
use nalgebra::DVector;

/// A transition between phases.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) per_second: f64,
}

/// Transitions to the next level, within a level, and to the one before.
#[derive(Debug, Clone, Default)]
pub(super) struct Transitions {
    pub(super) phases: usize,
    pub(super) up: Vec<Rate>,
    pub(super) within: Vec<Rate>,
    pub(super) down: Vec<Rate>,
}

/// Levels to begin with.
const LEVELS: usize = 32;
/// Most probabilities that are kept.
const MOST_STATES: usize = 6_000_000;
/// Most passes over all levels.
const MOST_PASSES: usize = 2000;
/// What moves less than this in a pass rests.
const REST: f64 = 1e-13;
/// The last level's probability that is as good as none.
const NEVER: f64 = 1e-14;

impl Transitions {
    /// The steady state of a process that falls more often than it rises; none if it has too many levels, or takes too many passes.
    pub(super) fn solve(&self) -> Option<Stationary> {
        let systems = Systems::new(self)?;
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

    /// How often per second the level would rise and fall, far from level 0: of the phases alone, whatever the level. None if there is no answer.
    pub(super) fn drift(&self) -> Option<(f64, f64)> {
        let all: Vec<Rate> = [&self.up, &self.within, &self.down].into_iter().flatten().copied().collect();
        let distance = |rate: &Rate| (rate.to.saturating_sub(rate.from), rate.from.saturating_sub(rate.to));
        let (below, above) = all.iter().map(distance).fold((0, 0), |most, one| (most.0.max(one.0), most.1.max(one.1)));
        // The first phase is left out, and taken as 1: what it sends to others is on the right.
        let others = self.phases - 1;
        let mut matrix = Banded::zero(others, below.min(others), above.min(others));
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
        let sum = |rates: &[Rate]| rates.iter().map(|rate| of(rate.from) * rate.per_second).sum::<f64>();
        let drift = (sum(&self.up), sum(&self.down));
        (drift.0.is_finite() && drift.1.is_finite()).then_some(drift)
    }

    /// Solves all levels upwards, then downwards, and gives them their probabilities; how far they moved.
    fn pass(&self, systems: &Systems, levels: &mut [Vec<f64>]) -> Option<f64> {
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

    /// Gives each level the probability for which as much rises from the level before as falls back.
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

/// The equations of a level: the first, those between, and the last, which is never left upwards.
struct Systems {
    first: Banded,
    between: Banded,
    last: Banded,
}

impl Systems {
    fn new(of: &Transitions) -> Option<Systems> {
        Some(Systems {
            first: system(of, &[&of.up])?,
            between: system(of, &[&of.up, &of.down])?,
            last: system(of, &[&of.down])?,
        })
    }

    fn of(&self, level: usize, last: usize) -> &Banded {
        match level {
            0 => &self.first,
            level if level == last => &self.last,
            _ => &self.between,
        }
    }
}

/// What flows out of each phase, less what flows in from others within the level; `leaving` are the transitions to other levels that there are. On the
/// last level what would rise stays where it would arrive.
fn system(of: &Transitions, leaving: &[&Vec<Rate>]) -> Option<Banded> {
    let rises = leaving.iter().any(|rates| std::ptr::eq(*rates, &of.up));
    let inside: Vec<&Rate> = of.within.iter().chain(of.up.iter().filter(|_| !rises)).collect();
    let distance = |rate: &&Rate| (rate.to.saturating_sub(rate.from), rate.from.saturating_sub(rate.to));
    let (below, above) = inside.iter().map(distance).fold((0, 0), |most, one| (most.0.max(one.0), most.1.max(one.1)));
    let mut matrix = Banded::zero(of.phases, below, above);
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

/// Adds what flows from a level's phases by these transitions.
fn flow(rates: &[Rate], from: &[f64], into: &mut [f64]) {
    for rate in rates {
        into[rate.to] += from[rate.from] * rate.per_second;
    }
}

/// Twice as many levels, each new one as much less probable than the one before it as the last was.
fn extend(levels: &mut Vec<Vec<f64>>) {
    let mass = |level: &[f64]| level.iter().sum::<f64>();
    let count = levels.len();
    let ratio = (mass(&levels[count - 1]) / mass(&levels[count - 2])).clamp(0.0, 1.0);
    for _ in 0..count {
        let next = levels[levels.len() - 1].iter().map(|p| p * ratio).collect();
        levels.push(next);
    }
}

fn stationary(levels: &[Vec<f64>]) -> Stationary {
    let mut phases = DVector::zeros(levels[0].len());
    let mut mean = 0.0;
    for (number, level) in levels.iter().enumerate() {
        phases.iter_mut().zip(level).for_each(|(sum, p)| *sum += p);
        mean += number as f64 * level.iter().sum::<f64>();
    }
    Stationary { ground: DVector::from_column_slice(&levels[0]), phases, level: mean }
}
