//! Solves for the largest sum of rates, and for the max-min fair rates among those with this sum.
//!
//! 1. The simplex method maximises the sum. Its multipliers describe all optima: rates that are equal in all of them,
//!    and links that are full in all of them. The other rates are open.
//! 2. The highest level is sought for which optima exist with each open rate at least its weight times the level
//!    (within its bounds). A level that is too high has a proof: factors of links, with which the rates at this level
//!    exceed the capacities. The highest level that this proof allows is tried next, until a level is possible.
//! 3. The last proof then holds with equality, so that it fixes the rates which it counts. Step 2 is repeated with the
//!    rest.
//!
//! Rates thus are bounds or levels in closed form; the numbers in the tableau only choose among them.
use super::component::{ProblemMember, SharingProblem, highest_level};
use super::max_min::FillingLevels;
use super::tableau::{Tableau, ZERO};

/// Relative difference of levels that counts as none.
const SAME_LEVEL: f64 = 1e-13;

/// Highest level for open rates, and the factors of links that prove it.
struct ProvenLevel {
    level: f64,
    factors: Vec<f64>,
}

/// Returns the largest sum, and the max-min fair rates among those with this sum.
pub(super) fn max_sum(mut problem: SharingProblem) -> (f64, Vec<f64>) {
    // 1.
    let mut tableau = Tableau::new(&problem);
    tableau.maximise_sum();
    let (sum, face) = (tableau.sum(), tableau.optimal_face());
    for (member, rate) in face.rates.iter().enumerate() {
        if let Some(rate) = rate {
            fix(&mut problem, &mut tableau, member, *rate);
        }
    }
    (0..face.is_full.len()).filter(|link| face.is_full[*link]).for_each(|link| tableau.fill_link(link));
    let mut filling = FillingLevels::of(&problem);
    // 2.
    while let Some(ProvenLevel { level, factors }) = highest_possible(&problem, &mut tableau, filling.first()) {
        // 3.
        let is_open = |member: &usize| !problem.members[*member].is_fixed();
        let open: Vec<usize> = (0..problem.members.len()).filter(is_open).collect();
        for index in &open {
            let member = &problem.members[*index];
            let counted = factor_of(member, &factors);
            if counted.abs() > ZERO {
                let rate = if counted > 0.0 { member.rate_at(level) } else { member.hi };
                fix(&mut problem, &mut tableau, *index, rate);
            }
        }
        filling.fixed(&problem, &open);
    }
    // Nothing limits the rest but their maxima.
    (sum, problem.members.iter().map(|member| member.hi).collect())
}

fn fix(problem: &mut SharingProblem, tableau: &mut Tableau, member: usize, rate: f64) {
    problem.members[member].fix(rate);
    tableau.bound_rate(member, rate, rate);
}

/// Returns the sum of the factors of a member's links.
fn factor_of(member: &ProblemMember, factors: &[f64]) -> f64 {
    member.links.iter().map(|link| factors[*link]).sum()
}

/// Returns the highest level that is possible; `None` if all open rates can have their maxima. `first` is the link that
/// would be full first, which proves a level that is often possible, with this level.
fn highest_possible(
    problem: &SharingProblem,
    tableau: &mut Tableau,
    first: Option<(usize, f64)>,
) -> Option<ProvenLevel> {
    if problem.members.iter().all(ProblemMember::is_fixed) {
        return None;
    }
    let mut best = first.map(|(link, level)| {
        let mut factors = vec![0.0; problem.capacities.len()];
        factors[link] = 1.0;
        ProvenLevel { level, factors }
    });
    loop {
        let level = best.as_ref().map_or(f64::INFINITY, |best| best.level);
        for (index, member) in problem.members.iter().enumerate() {
            tableau.bound_rate(index, member.rate_at(level), member.hi);
        }
        let Err(factors) = tableau.restore() else { return best };
        let lower = level_of(problem, &factors);
        // A proof that lowers nothing is a rounding error: the level is possible.
        if lower >= level * (1.0 - SAME_LEVEL) {
            return best;
        }
        best = Some(ProvenLevel { level: lower, factors });
    }
}

/// Returns the highest level that a proof allows.
fn level_of(problem: &SharingProblem, factors: &[f64]) -> f64 {
    let mut budget: f64 = problem.capacities.iter().zip(factors).map(|(capacity, factor)| capacity * factor).sum();
    let mut terms = Vec::new();
    for member in &problem.members {
        let factor = factor_of(member, factors);
        if factor > ZERO {
            terms.push((factor, member));
        } else if factor < -ZERO {
            budget -= factor * member.hi;
        }
    }
    highest_level(&terms, budget)
}
