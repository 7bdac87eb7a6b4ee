//! Solves for proportional fairness by weight: the largest sum of `w log r`.
//!
//! Each link has a price of at least zero, and a member pays the prices of its links. A member that pays `q` takes
//! `r = w / q`, within its bounds. The programme is convex, so by duality these rates are optimal if no link is
//! overloaded and each link with a price above zero is full (Kelly, Maulloo and Tan, 1998).
//!
//! 1. An interior-point method (`interior`) approaches rates and prices together, from any start, in some twenty steps.
//! 2. Newton's method on the prices of the links that appear full (`prices`) makes them exact to the last digits.
//! 3. The prices are a certificate: rates that follow from them are the exact optimum of a substrate in which the
//!    capacity of each link with a price is its load. They are accepted if these capacities differ from the given ones
//!    by at most [`CERTIFIED`]; otherwise step 1 goes on.
mod interior;
mod prices;
mod symmetric;

use super::AllocationError;
use super::component::SharingProblem;
use interior::InteriorPoint;
use prices::exact_prices;

/// Largest relative difference between a capacity and the one for which rates are the exact optimum.
pub(super) const CERTIFIED: f64 = 1e-12;
/// Share of the weights below which the duality gap suffices to tell which links are full.
const SMALL_GAP: f64 = 1e-6;
/// Steps of the interior-point method after which it is given up. It takes at most 30 in tests.
const MAX_STEPS: usize = 500;

/// Rates with the prices that certify them.
#[derive(Debug)]
pub(super) struct CertifiedRates {
    pub(super) rates: Vec<f64>,
    /// Price of each link; zero for links without room and those whose members are fixed.
    pub(super) prices: Vec<f64>,
}

/// Returns the proportionally fair rates.
///
/// # Errors
/// No prices were found that certify rates.
pub(super) fn proportional(mut problem: SharingProblem) -> Result<CertifiedRates, AllocationError> {
    fix_members_without_room(&mut problem);
    let open = OpenPart::of(&problem);
    let mut rates: Vec<f64> = problem.members.iter().map(|member| member.lo).collect();
    let mut prices = vec![0.0; problem.capacities.len()];
    if !open.members.is_empty() {
        let solved = solve(&open.problem)?;
        open.members.iter().zip(solved.rates).for_each(|(member, rate)| rates[*member] = rate);
        open.links.iter().zip(solved.prices).for_each(|(link, price)| prices[*link] = price);
    }
    Ok(CertifiedRates { rates, prices })
}

fn solve(problem: &SharingProblem) -> Result<CertifiedRates, AllocationError> {
    let mut point = InteriorPoint::start(problem);
    let mut best = f64::INFINITY;
    for _ in 0..MAX_STEPS {
        if point.relative_gap() < SMALL_GAP {
            let (found, residual) = exact_prices(problem, &point);
            if residual <= CERTIFIED {
                return Ok(found);
            }
            best = best.min(residual);
        }
        point.step(problem);
    }
    Err(AllocationError::Uncertified { residual: best, limit: CERTIFIED })
}

/// Fixes members through links that their members' minima fill.
fn fix_members_without_room(problem: &mut SharingProblem) {
    let minima: Vec<f64> = problem.members.iter().map(|member| member.lo).collect();
    let loads = problem.loads(&minima);
    for member in &mut problem.members {
        if member.links.iter().any(|link| loads[*link] >= problem.capacities[*link]) {
            member.fix(member.lo);
        }
    }
}

/// Members that are not fixed, and their links without the capacity that the fixed ones take.
struct OpenPart {
    problem: SharingProblem,
    members: Vec<usize>,
    links: Vec<usize>,
}

impl OpenPart {
    fn of(problem: &SharingProblem) -> OpenPart {
        let is_open = |member: &usize| !problem.members[*member].is_fixed();
        let members: Vec<usize> = (0..problem.members.len()).filter(is_open).collect();
        let taken: Vec<f64> = problem.members.iter().map(|one| if one.is_fixed() { one.lo } else { 0.0 }).collect();
        let taken = problem.loads(&taken);
        let mut places = vec![None; problem.capacities.len()];
        let mut links = Vec::new();
        let mut open = Vec::new();
        for index in &members {
            let mut member = problem.members[*index].clone();
            for link in &mut member.links {
                let place = *places[*link].get_or_insert_with(|| {
                    links.push(*link);
                    links.len() - 1
                });
                *link = place;
            }
            open.push(member);
        }
        let capacities = links.iter().map(|link| problem.capacities[*link] - taken[*link]).collect();
        OpenPart { problem: SharingProblem { capacities, members: open }, members, links }
    }
}

#[cfg(test)]
mod tests;
