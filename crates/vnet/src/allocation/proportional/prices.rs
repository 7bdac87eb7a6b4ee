//! Makes prices exact: Newton's method on the links that are full.
use super::super::component::{ProblemMember, SharingProblem};
use super::CertifiedRates;
use super::interior::InteriorPoint;
use super::symmetric::SymmetricMatrix;

/// Relative difference of a load from the capacity that is not improved.
const FULL: f64 = 1e-15;
/// Price times capacity, as a share of the weights, below which a link that is not full has no price.
const FREE: f64 = 1e-13;
/// Largest factor by which a step lowers a price.
const LOWER: f64 = 0.1;
/// Number of steps; without links that turn out to be full or not, a few suffice.
const MAX_STEPS: usize = 60;

/// Returns the sum of the prices that a member pays.
fn paid(member: &ProblemMember, prices: &[f64]) -> f64 {
    member.links.iter().map(|link| prices[*link]).sum()
}

/// Returns the rate that a member takes at a sum of prices.
fn rate(member: &ProblemMember, paid: f64) -> f64 {
    // The quotient is infinite without prices.
    (member.weight / paid).clamp(member.lo, member.hi)
}

/// Returns the rates at prices.
pub(super) fn rates_at(problem: &SharingProblem, prices: &[f64]) -> Vec<f64> {
    problem.members.iter().map(|member| rate(member, paid(member, prices))).collect()
}

/// Returns the largest relative difference between the capacities and those for which the rates at these prices are
/// the exact optimum.
pub(super) fn residual(problem: &SharingProblem, prices: &[f64], rates: &[f64]) -> f64 {
    let loads = problem.loads(rates);
    let misses = loads.iter().zip(&problem.capacities).zip(prices).map(|((load, capacity), price)| {
        let over = (load - capacity) / capacity;
        if *price > 0.0 { over.abs() } else { over.max(0.0) }
    });
    misses.fold(0.0, f64::max)
}

/// Returns the best rates that were found from an interior point, and their residual.
pub(super) fn exact_prices(problem: &SharingProblem, point: &InteriorPoint) -> (CertifiedRates, f64) {
    let weight: f64 = problem.members.iter().map(|member| member.weight).sum();
    let is_full = |(pair, capacity): (&super::interior::LimitPair, &f64)| {
        let (price, room) = (pair.multiplier * capacity / weight, pair.distance / capacity);
        if price > room { pair.multiplier } else { 0.0 }
    };
    let mut prices: Vec<f64> = point.links.iter().zip(&problem.capacities).map(is_full).collect();
    let mut rates = rates_at(problem, &prices);
    let mut best =
        (CertifiedRates { rates: rates.clone(), prices: prices.clone() }, residual(problem, &prices, &rates));
    for _ in 0..MAX_STEPS {
        if best.1 <= FULL {
            break;
        }
        improve(problem, &mut prices, &rates, weight);
        rates = rates_at(problem, &prices);
        let now = residual(problem, &prices, &rates);
        if now < best.1 {
            best = (CertifiedRates { rates: rates.clone(), prices: prices.clone() }, now);
        }
    }
    best
}

/// Makes a step of Newton's method: the loads of links with prices become their capacities.
fn improve(problem: &SharingProblem, prices: &mut [f64], rates: &[f64], weight: f64) {
    let over: Vec<f64> = problem.loads(rates).iter().zip(&problem.capacities).map(|(load, all)| load - all).collect();
    for (link, price) in prices.iter_mut().enumerate() {
        let capacity = problem.capacities[link];
        if *price * capacity < FREE * weight {
            *price = if over[link] > 0.0 { FREE * weight / capacity } else { 0.0 };
        }
    }
    let has_price = |link: &usize| prices[*link] > 0.0;
    let mut matrix = SymmetricMatrix::diagonal(prices.iter().map(|price| if *price > 0.0 { 0.0 } else { 1.0 }));
    for (member, rate) in problem.members.iter().zip(rates) {
        // Rates at a bound do not change with prices.
        if *rate > member.lo && *rate < member.hi {
            let full: Vec<usize> = member.links.iter().copied().filter(has_price).collect();
            matrix.add_pairs(&full, rate * rate / member.weight);
        }
    }
    let right = over.iter().zip(prices.iter()).map(|(over, price)| if *price > 0.0 { *over } else { 0.0 });
    let changes = matrix.solve(right.collect());
    for (price, change) in prices.iter_mut().zip(changes) {
        *price = (*price + change).max(LOWER * *price);
    }
}
