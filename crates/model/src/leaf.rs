//! Defines the continuous parts of delays.
use crate::distribution::Distribution;
use crate::inversion::{Line, points};
use crate::law::{Law, Shape};
use crate::mechanism::Preempted;
use crate::station::{FiniteSojourn, Stages};
use num_complex::Complex64;
use statrs::function::gamma::checked_gamma_ur;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Most pairs of line and stage for which a station's values are cached; further ones are computed each time.
const MOST_KEPT: usize = 128;

/// Independent delay of which sums are made.
#[derive(Debug, Clone)]
pub(crate) enum Leaf {
    /// Delay with a law that is neither a mixture nor constant.
    Shape(Shape),
    /// Waiting time in an M/G/1 queue: 0 if it is empty, otherwise the rest of a random number of services.
    Waiting(Arc<Waiting>),
    /// Sojourn in an M/M/1/K queue: a random number of exponential stages.
    Stages(Arc<Stages>),
    /// Sojourn in an M/G/1/K queue.
    Finite(Arc<FiniteSojourn>),
    /// Delay repeated a geometric number of times, at least once.
    Repeated(Arc<Repeated>),
    /// Sojourn in a data path that table writes seize.
    Preempted(Arc<Preempted>),
    /// Distribution with too many terms to keep separate.
    Whole(Arc<Distribution>),
}

/// Values of a transform at the points of a stage.
type Values = Arc<[Complex64]>;

/// Waiting time in an M/G/1 queue, 0 for packets that find it empty (Pollaczek and Khinchine).
#[derive(Debug)]
pub(crate) struct Waiting {
    law: Law,
    rho: f64,
    mean: f64,
    variance: f64,
    /// Cached values of the transform, by line and stage: all flows through a queue need the same.
    kept: Mutex<HashMap<(Line, usize), Values>>,
}

impl Waiting {
    /// Creates the waiting time behind services of this law, in a queue with utilisation `rho` below 1.
    pub(crate) fn new(law: Law, rho: f64) -> Waiting {
        let mean = rho * law.second_moment() / (2.0 * law.mean()) / (1.0 - rho);
        let third = rho * law.third_moment() / (3.0 * law.mean() * (1.0 - rho));
        Waiting { mean, variance: mean * mean + third, law, rho, kept: Mutex::default() }
    }

    fn lst(&self, s: Complex64) -> Complex64 {
        (Complex64::ONE - self.law.excess_lst(s) * self.rho).inv() * (1.0 - self.rho)
    }

    fn values(&self, line: Line, stage: usize) -> Values {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(values) = kept().get(&(line, stage)) {
            return Arc::clone(values);
        }
        let values: Values = points(stage).map(|k| self.lst(line.point(k))).collect();
        let mut kept = kept();
        if kept.len() < MOST_KEPT {
            kept.insert((line, stage), Arc::clone(&values));
        }
        values
    }
}

/// Delay that occurs once, and again with the same probability each time.
#[derive(Debug)]
pub(crate) struct Repeated {
    pub(crate) again: f64,
    pub(crate) once: Distribution,
}

impl Repeated {
    fn mean(&self) -> f64 {
        self.once.mean() / (1.0 - self.again)
    }

    /// Variance of the sum of a geometric number of independent delays.
    fn variance(&self) -> f64 {
        let times = 1.0 / (1.0 - self.again);
        times * self.once.variance() + self.again * times * times * self.once.mean().powi(2)
    }

    fn lst(&self, s: Complex64) -> Complex64 {
        let once = self.once.lst(s);
        once * (1.0 - self.again) / (Complex64::ONE - once * self.again)
    }
}

impl Leaf {
    pub(crate) fn mean(&self) -> f64 {
        match self {
            Leaf::Shape(shape) => shape.moment(1),
            Leaf::Waiting(waiting) => waiting.mean,
            Leaf::Stages(stages) => stages.mean(),
            Leaf::Finite(sojourn) => sojourn.mean(),
            Leaf::Repeated(repeated) => repeated.mean(),
            Leaf::Preempted(sojourn) => sojourn.mean(),
            Leaf::Whole(whole) => whole.mean(),
        }
    }

    pub(crate) fn variance(&self) -> f64 {
        match self {
            Leaf::Shape(shape) => shape.variance(),
            Leaf::Waiting(waiting) => waiting.variance,
            Leaf::Stages(stages) => stages.variance(),
            Leaf::Finite(sojourn) => sojourn.variance(),
            Leaf::Repeated(repeated) => repeated.variance(),
            Leaf::Preempted(sojourn) => sojourn.variance(),
            Leaf::Whole(whole) => whole.variance(),
        }
    }

    pub(crate) fn lst(&self, s: Complex64) -> Complex64 {
        match self {
            Leaf::Shape(shape) => shape.lst(s),
            Leaf::Waiting(waiting) => waiting.lst(s),
            Leaf::Stages(stages) => stages.lst(s),
            Leaf::Finite(sojourn) => sojourn.lst(s),
            Leaf::Repeated(repeated) => repeated.lst(s),
            Leaf::Preempted(sojourn) => sojourn.lst(s),
            Leaf::Whole(whole) => whole.lst(s),
        }
    }

    /// Multiplies `product`, given at a line's points of a stage, by the transform there.
    pub(crate) fn multiply(&self, line: Line, stage: usize, product: &mut [Complex64]) {
        match self {
            Leaf::Waiting(waiting) => {
                product.iter_mut().zip(waiting.values(line, stage).iter()).for_each(|(all, own)| *all *= own);
            }
            _ => product.iter_mut().zip(points(stage)).for_each(|(all, k)| *all *= self.lst(line.point(k))),
        }
    }

    /// Returns the probability of no delay.
    pub(crate) fn none(&self) -> f64 {
        match self {
            Leaf::Waiting(waiting) => 1.0 - waiting.rho,
            Leaf::Whole(whole) => whole.none(),
            Leaf::Shape(_) | Leaf::Stages(_) | Leaf::Finite(_) | Leaf::Repeated(_) | Leaf::Preempted(_) => 0.0,
        }
    }

    /// Returns a key that is equal for identical leaves: parameters of a shape, or the address of a shared part.
    pub(crate) fn identity(&self) -> [u64; 3] {
        let shared = |kind, address: *const ()| [kind, address as u64, 0];
        match self {
            Leaf::Shape(Shape::Constant(value)) => [0, value.to_bits(), 0],
            Leaf::Shape(Shape::Exponential(mean)) => [1, mean.to_bits(), 0],
            Leaf::Shape(Shape::Gamma { mean, scv }) => [2, mean.to_bits(), scv.to_bits()],
            Leaf::Shape(Shape::Uniform { low, high }) => [3, low.to_bits(), high.to_bits()],
            Leaf::Waiting(waiting) => shared(4, Arc::as_ptr(waiting).cast()),
            Leaf::Stages(stages) => shared(5, Arc::as_ptr(stages).cast()),
            Leaf::Finite(sojourn) => shared(6, Arc::as_ptr(sojourn).cast()),
            Leaf::Repeated(repeated) => shared(7, Arc::as_ptr(repeated).cast()),
            Leaf::Preempted(sojourn) => shared(8, Arc::as_ptr(sojourn).cast()),
            Leaf::Whole(whole) => shared(9, Arc::as_ptr(whole).cast()),
        }
    }

    /// Returns the probability of more than `t` >= 0, if it is known without inversion.
    pub(crate) fn tail(&self, t: f64) -> Option<f64> {
        match self {
            Leaf::Shape(shape) => shape_tail(shape, t),
            Leaf::Waiting(waiting) if t == 0.0 => Some(waiting.rho),
            Leaf::Stages(stages) => Some(stages.tail(t)),
            Leaf::Whole(whole) => Some(whole.tail(t)),
            Leaf::Finite(sojourn) => sojourn.tail(t),
            Leaf::Waiting(_) | Leaf::Repeated(_) | Leaf::Preempted(_) => None,
        }
    }
}

fn shape_tail(shape: &Shape, t: f64) -> Option<f64> {
    match *shape {
        Shape::Constant(value) => Some(if t < value { 1.0 } else { 0.0 }),
        Shape::Exponential(mean) => Some((-t / mean).exp()),
        Shape::Gamma { .. } if t == 0.0 => Some(1.0),
        Shape::Gamma { mean, scv } => checked_gamma_ur(scv.recip(), t / (mean * scv)).ok(),
        Shape::Uniform { low, high } => Some(((high - t) / (high - low)).clamp(0.0, 1.0)),
    }
}
