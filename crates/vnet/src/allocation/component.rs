//! Represents virtual links that depend on each other as numbers, for the solvers, and checks what they return.
use super::max_min::max_min;
use super::max_sum::max_sum;
use super::proportional::proportional;
use super::{AllocationError, SharingRule};

/// Largest relative difference of loads from capacities, and of sums from their maximum.
const ACCEPTED: f64 = 1e-11;

/// Virtual links that depend on each other, and the substrate links that join them. Members and links are in the order
/// of their names, so that equal sets give equal rates to the last digit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SharingProblem {
    /// Capacity of each substrate link, in bit/s.
    pub(super) capacities: Vec<f64>,
    /// Virtual links, each through at least one of the links.
    pub(super) members: Vec<ProblemMember>,
}

/// A virtual link of a [`SharingProblem`].
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProblemMember {
    /// Guaranteed minimum in bit/s.
    pub(super) lo: f64,
    /// Allowed maximum in bit/s, at most the capacity of the path.
    pub(super) hi: f64,
    pub(super) weight: f64,
    /// Indices of its substrate links.
    pub(super) links: Vec<usize>,
}

impl ProblemMember {
    /// Returns the rate at a level: as much as the weight has it, within the bounds.
    pub(super) fn rate_at(&self, level: f64) -> f64 {
        (self.weight * level).clamp(self.lo, self.hi)
    }

    pub(super) fn fix(&mut self, rate: f64) {
        (self.lo, self.hi) = (rate, rate);
    }

    pub(super) fn is_fixed(&self) -> bool {
        self.lo == self.hi
    }
}

impl SharingProblem {
    /// Returns the sum of the rates on each link.
    pub(super) fn loads(&self, rates: &[f64]) -> Vec<f64> {
        let mut loads = vec![0.0; self.capacities.len()];
        for (member, rate) in self.members.iter().zip(rates) {
            member.links.iter().for_each(|link| loads[*link] += rate);
        }
        loads
    }

    /// Returns the members through each link.
    pub(super) fn members_of_links(&self) -> Vec<Vec<usize>> {
        let mut through = vec![Vec::new(); self.capacities.len()];
        for (index, member) in self.members.iter().enumerate() {
            member.links.iter().for_each(|link| through[*link].push(index));
        }
        through
    }
}

/// Returns the highest level at which the rates of members, each times a positive factor, add up to at most `budget`.
/// Infinite if the maxima fit.
pub(super) fn highest_level(terms: &[(f64, &ProblemMember)], budget: f64) -> f64 {
    let used = |level: f64| terms.iter().map(|(factor, member)| factor * member.rate_at(level)).sum::<f64>();
    let bends = |(_, member): &(f64, &ProblemMember)| [member.lo / member.weight, member.hi / member.weight];
    let mut levels: Vec<f64> = terms.iter().filter(|(_, member)| !member.is_fixed()).flat_map(bends).collect();
    levels.sort_by(f64::total_cmp);
    // 1. Find the bends between which the budget is spent. Between them the sum is a straight line.
    let above = levels.partition_point(|level| used(*level) <= budget);
    let Some(next) = levels.get(above).copied() else { return f64::INFINITY };
    let last = if above == 0 { 0.0 } else { levels[above - 1] };
    // 2. Solve the line.
    let (mut constant, mut slope) = (0.0, 0.0);
    for (factor, member) in terms {
        if !member.is_fixed() && member.lo / member.weight <= last && member.hi / member.weight >= next {
            slope += factor * member.weight;
        } else {
            constant += factor * member.rate_at(last);
        }
    }
    if slope > 0.0 { ((budget - constant) / slope).clamp(last, next) } else { last }
}

/// Returns the rates of the members by a rule.
///
/// # Errors
/// The rates do not pass the check of their rule: only rounding errors in badly scaled problems can cause this.
pub(super) fn solve(rule: SharingRule, problem: &SharingProblem) -> Result<Vec<f64>, AllocationError> {
    let rates = match rule {
        SharingRule::MaxMin => max_min(problem.clone()),
        SharingRule::ProportionalFair => proportional(problem.clone())?.rates,
        SharingRule::MaximumSum => {
            let (sum, rates) = max_sum(problem.clone());
            accept((rates.iter().sum::<f64>() - sum).abs(), sum)?;
            rates
        }
    };
    let loads = problem.loads(&rates);
    loads.iter().zip(&problem.capacities).try_for_each(|(load, capacity)| accept(load - capacity, *capacity))?;
    Ok(rates)
}

/// Checks that a difference is a rounding error of `whole`.
fn accept(difference: f64, whole: f64) -> Result<(), AllocationError> {
    if difference <= ACCEPTED * whole {
        return Ok(());
    }
    Err(AllocationError::Uncertified { residual: difference / whole, limit: ACCEPTED })
}
