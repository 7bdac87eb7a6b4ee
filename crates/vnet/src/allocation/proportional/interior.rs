//! Approaches rates and prices together by a primal-dual interior-point method (Boyd and Vandenberghe, 2004, 11.7).
//!
//! Rates stay strictly within bounds and capacities. Each distance to a limit has a multiplier above zero; at the
//! optimum their products are zero. A step aims at products of a tenth of their mean, by Newton's method. It is
//! shortened until distances and multipliers stay positive and the equations are met better than before.
use super::super::component::SharingProblem;
use super::symmetric::SymmetricMatrix;

/// Products that a step aims at, as a share of their mean.
const AIM: f64 = 0.1;
/// Share of the way to the nearest limit that a step goes at most.
const TO_LIMIT: f64 = 0.99;
/// Share of a full step by which the equations must be met better, as in the book.
const BETTER: f64 = 0.01;

/// Distance to a limit, and its multiplier.
#[derive(Debug, Clone, Copy)]
pub(super) struct LimitPair {
    pub(super) distance: f64,
    pub(super) multiplier: f64,
}

/// Change of a [`LimitPair`].
type PairStep = (f64, f64);

/// Rates and prices strictly inside all limits.
#[derive(Debug, Clone)]
pub(super) struct InteriorPoint {
    rates: Vec<f64>,
    /// Minimum and maximum of each member.
    below: Vec<LimitPair>,
    above: Vec<LimitPair>,
    /// Capacity of each link; its multiplier is the price.
    pub(super) links: Vec<LimitPair>,
    /// Sum of the weights.
    weight: f64,
}

/// Changes of an [`InteriorPoint`].
struct InteriorStep {
    rates: Vec<f64>,
    below: Vec<PairStep>,
    above: Vec<PairStep>,
    links: Vec<PairStep>,
}

impl LimitPair {
    fn product(self) -> f64 {
        self.distance * self.multiplier
    }

    /// Returns the change of both when the distance changes and the product becomes `aim`.
    fn step(self, change: f64, aim: f64) -> PairStep {
        (change, (aim - self.product() - self.multiplier * change) / self.distance)
    }

    fn moved(self, (distance, multiplier): PairStep, share: f64) -> LimitPair {
        LimitPair { distance: self.distance + share * distance, multiplier: self.multiplier + share * multiplier }
    }
}

impl InteriorPoint {
    /// Returns a point inside the limits of a problem in which each link has more capacity than its minima.
    pub(super) fn start(problem: &SharingProblem) -> InteriorPoint {
        let minima: Vec<f64> = problem.members.iter().map(|member| member.lo).collect();
        let widths: Vec<f64> = problem.members.iter().map(|member| member.hi - member.lo).collect();
        let (used, wanted) = (problem.loads(&minima), problem.loads(&widths));
        let share = |link: usize| (0.5 * (problem.capacities[link] - used[link]) / wanted[link]).min(0.5);
        let weight = problem.members.iter().map(|member| member.weight).sum::<f64>();
        let pair = |distance: f64, product: f64| LimitPair { distance, multiplier: product / distance };
        let mean = weight / problem.members.len() as f64;
        let (mut rates, mut below, mut above) = (Vec::new(), Vec::new(), Vec::new());
        let mut raised = Vec::new();
        for (member, width) in problem.members.iter().zip(&widths) {
            let up = width * member.links.iter().map(|link| share(*link)).fold(0.5, f64::min);
            rates.push(member.lo + up);
            raised.push(up);
            below.push(pair(up, mean));
            above.push(pair(width - up, mean));
        }
        let raised = problem.loads(&raised);
        let links = (0..used.len()).map(|link| pair(problem.capacities[link] - used[link] - raised[link], mean));
        InteriorPoint { rates, below, above, links: links.collect(), weight }
    }

    fn pairs(&self) -> impl Iterator<Item = &LimitPair> {
        self.below.iter().chain(&self.above).chain(&self.links)
    }

    /// Returns the sum of all products as a share of the weights: the duality gap, once the equations are met.
    pub(super) fn relative_gap(&self) -> f64 {
        self.pairs().map(|pair| pair.product()).sum::<f64>() / self.weight
    }

    /// Returns the slope of a member's share of the objective, less its prices.
    fn slope(&self, problem: &SharingProblem, index: usize) -> f64 {
        let member = &problem.members[index];
        member.weight / self.rates[index] - member.links.iter().map(|link| self.links[*link].multiplier).sum::<f64>()
    }

    /// Returns how far the equations are from being met, with products of `aim`. Slopes count by `scale`, a rate for
    /// each member.
    fn residual(&self, problem: &SharingProblem, aim: f64, scale: &[f64]) -> f64 {
        let equation = |index: usize| {
            let bounds = self.below[index].multiplier - self.above[index].multiplier;
            scale[index] * (self.slope(problem, index) + bounds)
        };
        let slopes = (0..self.rates.len()).map(|index| equation(index).powi(2)).sum::<f64>();
        (slopes + self.pairs().map(|pair| (pair.product() - aim).powi(2)).sum::<f64>()).sqrt()
    }

    /// Makes a step.
    pub(super) fn step(&mut self, problem: &SharingProblem) {
        let aim = AIM * self.relative_gap() * self.weight / self.pairs().count() as f64;
        let step = self.newton(problem, aim);
        let steps = || step.below.iter().chain(&step.above).chain(&step.links);
        let limits = self.pairs().zip(steps()).flat_map(|(pair, (distance, multiplier))| {
            [pair.distance / -distance, pair.multiplier / -multiplier].into_iter().filter(|share| *share > 0.0)
        });
        let mut share = limits.fold(1.0 / TO_LIMIT, f64::min) * TO_LIMIT;
        let before = self.residual(problem, aim, &self.rates);
        let mut next = self.moved(&step, share);
        // Rounding errors end the improvement at some point.
        while next.residual(problem, aim, &self.rates) > (1.0 - BETTER * share) * before && share > 1e-6 {
            share /= 2.0;
            next = self.moved(&step, share);
        }
        *self = next;
    }

    /// Returns the step that meets the linearised equations.
    fn newton(&self, problem: &SharingProblem, aim: f64) -> InteriorStep {
        let curve = |index: usize| {
            let [below, above] = [self.below[index], self.above[index]].map(|pair| pair.multiplier / pair.distance);
            problem.members[index].weight / self.rates[index].powi(2) + below + above
        };
        let curves: Vec<f64> = (0..self.rates.len()).map(curve).collect();
        let push = |index: usize| aim / self.below[index].distance - aim / self.above[index].distance;
        let slopes: Vec<f64> = (0..curves.len()).map(|index| self.slope(problem, index) + push(index)).collect();
        // The rates are eliminated: what remains are equations of the prices.
        let mut matrix = SymmetricMatrix::diagonal(self.links.iter().map(|link| link.distance / link.multiplier));
        let mut right: Vec<f64> = self.links.iter().map(|link| aim / link.multiplier - link.distance).collect();
        for (index, member) in problem.members.iter().enumerate() {
            matrix.add_pairs(&member.links, 1.0 / curves[index]);
            member.links.iter().for_each(|link| right[*link] += slopes[index] / curves[index]);
        }
        let prices = matrix.solve(right);
        let rate = |(index, slope): (usize, &f64)| {
            let paid: f64 = problem.members[index].links.iter().map(|link| prices[*link]).sum();
            (slope - paid) / curves[index]
        };
        let rates: Vec<f64> = slopes.iter().enumerate().map(rate).collect();
        let loads = problem.loads(&rates);
        InteriorStep {
            below: self.below.iter().zip(&rates).map(|(pair, change)| pair.step(*change, aim)).collect(),
            above: self.above.iter().zip(&rates).map(|(pair, change)| pair.step(-change, aim)).collect(),
            links: loads.iter().zip(prices).map(|(load, price)| (-load, price)).collect(),
            rates,
        }
    }

    fn moved(&self, step: &InteriorStep, share: f64) -> InteriorPoint {
        let moved = |pairs: &[LimitPair], steps: &[PairStep]| {
            pairs.iter().zip(steps).map(|(pair, step)| pair.moved(*step, share)).collect::<Vec<_>>()
        };
        InteriorPoint {
            rates: self.rates.iter().zip(&step.rates).map(|(rate, change)| rate + share * change).collect(),
            below: moved(&self.below, &step.below),
            above: moved(&self.above, &step.above),
            links: moved(&self.links, &step.links),
            weight: self.weight,
        }
    }
}
