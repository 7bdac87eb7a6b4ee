//! Defines the continuous parts of delays.
use crate::distribution::Distribution;
use crate::inversion::{InversionLine, points};
use crate::law::{Law, LawShape};
use crate::mechanism::PreemptedSojourn;
use crate::station::{ErlangMixture, FiniteQueueSojourn};
use num_complex::Complex64;
use statrs::function::gamma::checked_gamma_ur;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Most pairs of line and stage for which a station's values are cached; further ones are computed each time.
const MOST_KEPT: usize = 128;

/// Independent delay of which sums are made.
#[derive(Debug, Clone)]
pub(crate) enum DelayPart {
    /// Delay with a law that is neither a mixture nor constant.
    Shape(LawShape),
    /// Waiting time in an M/G/1 queue: 0 if it is empty, otherwise the rest of a random number of services. The second
    /// value is the share of the packets that have it; the others do not wait.
    Waiting(Arc<Mg1WaitingTime>, f64),
    /// Sojourn in an M/M/1/K queue: a random number of exponential stages.
    Stages(Arc<ErlangMixture>),
    /// Sojourn in an M/G/1/K queue.
    Finite(Arc<FiniteQueueSojourn>),
    /// Delay repeated a geometric number of times, at least once.
    Repeated(Arc<GeometricSum>),
    /// Sojourn in a data path that table writes seize.
    Preempted(Arc<PreemptedSojourn>),
    /// Distribution with too many terms to keep separate.
    Whole(Arc<Distribution>),
}

/// Values of a transform at the points of a stage.
type TransformValues = Arc<[Complex64]>;

/// Waiting time in an M/G/1 queue, 0 for packets that find it empty (Pollaczek and Khinchine).
#[derive(Debug)]
pub(crate) struct Mg1WaitingTime {
    law: Law,
    rho: f64,
    mean: f64,
    variance: f64,
    /// Cached values of the transform, by line and stage: all flows through a queue need the same.
    kept: Mutex<HashMap<(InversionLine, usize), TransformValues>>,
}

impl Mg1WaitingTime {
    /// Creates the waiting time behind services of this law, in a queue with utilisation `rho` below 1.
    pub(crate) fn new(law: Law, rho: f64) -> Mg1WaitingTime {
        let mean = rho * law.second_moment() / (2.0 * law.mean()) / (1.0 - rho);
        let third = rho * law.third_moment() / (3.0 * law.mean() * (1.0 - rho));
        Mg1WaitingTime { mean, variance: mean * mean + third, law, rho, kept: Mutex::default() }
    }

    fn lst(&self, s: Complex64) -> Complex64 {
        (Complex64::ONE - self.law.excess_lst(s) * self.rho).inv() * (1.0 - self.rho)
    }

    fn values(&self, line: InversionLine, stage: usize) -> TransformValues {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(values) = kept().get(&(line, stage)) {
            return Arc::clone(values);
        }
        let values: TransformValues = points(stage).map(|k| self.lst(line.point(k))).collect();
        let mut kept = kept();
        if kept.len() < MOST_KEPT {
            kept.insert((line, stage), Arc::clone(&values));
        }
        values
    }
}

/// Delay that occurs once, and again with the same probability each time.
#[derive(Debug)]
pub(crate) struct GeometricSum {
    pub(crate) again: f64,
    pub(crate) once: Distribution,
}

impl GeometricSum {
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

impl DelayPart {
    /// Returns the waiting time of all packets in an M/G/1 queue with services of this law and the utilisation `rho`.
    pub(crate) fn waiting(law: Law, rho: f64) -> DelayPart {
        DelayPart::Waiting(Arc::new(Mg1WaitingTime::new(law, rho)), 1.0)
    }

    pub(crate) fn mean(&self) -> f64 {
        match self {
            DelayPart::Shape(shape) => shape.moment(1),
            DelayPart::Waiting(waiting, share) => share * waiting.mean,
            DelayPart::Stages(stages) => stages.mean(),
            DelayPart::Finite(sojourn) => sojourn.mean(),
            DelayPart::Repeated(repeated) => repeated.mean(),
            DelayPart::Preempted(sojourn) => sojourn.mean(),
            DelayPart::Whole(whole) => whole.mean(),
        }
    }

    pub(crate) fn variance(&self) -> f64 {
        match self {
            DelayPart::Shape(shape) => shape.variance(),
            DelayPart::Waiting(waiting, share) => {
                share * (waiting.variance + (1.0 - share) * waiting.mean * waiting.mean)
            }
            DelayPart::Stages(stages) => stages.variance(),
            DelayPart::Finite(sojourn) => sojourn.variance(),
            DelayPart::Repeated(repeated) => repeated.variance(),
            DelayPart::Preempted(sojourn) => sojourn.variance(),
            DelayPart::Whole(whole) => whole.variance(),
        }
    }

    pub(crate) fn lst(&self, s: Complex64) -> Complex64 {
        match self {
            DelayPart::Shape(shape) => shape.lst(s),
            DelayPart::Waiting(waiting, share) => waiting.lst(s) * share + (1.0 - share),
            DelayPart::Stages(stages) => stages.lst(s),
            DelayPart::Finite(sojourn) => sojourn.lst(s),
            DelayPart::Repeated(repeated) => repeated.lst(s),
            DelayPart::Preempted(sojourn) => sojourn.lst(s),
            DelayPart::Whole(whole) => whole.lst(s),
        }
    }

    /// Multiplies `product`, given at a line's points of a stage, by the transform there.
    pub(crate) fn multiply(&self, line: InversionLine, stage: usize, product: &mut [Complex64]) {
        match self {
            DelayPart::Waiting(waiting, share) => {
                let values = waiting.values(line, stage);
                product.iter_mut().zip(values.iter()).for_each(|(all, own)| *all *= own * share + (1.0 - share));
            }
            _ => product.iter_mut().zip(points(stage)).for_each(|(all, k)| *all *= self.lst(line.point(k))),
        }
    }

    /// Returns the probability of no delay.
    pub(crate) fn none(&self) -> f64 {
        match self {
            DelayPart::Waiting(waiting, share) => 1.0 - share * waiting.rho,
            DelayPart::Whole(whole) => whole.none(),
            DelayPart::Shape(_)
            | DelayPart::Stages(_)
            | DelayPart::Finite(_)
            | DelayPart::Repeated(_)
            | DelayPart::Preempted(_) => 0.0,
        }
    }

    /// Returns a key that is equal for identical leaves: parameters of a shape, or the address of a shared part.
    pub(crate) fn identity(&self) -> [u64; 3] {
        let shared = |kind, address: *const ()| [kind, address as u64, 0];
        match self {
            DelayPart::Shape(LawShape::Constant(value)) => [0, value.to_bits(), 0],
            DelayPart::Shape(LawShape::Exponential(mean)) => [1, mean.to_bits(), 0],
            DelayPart::Shape(LawShape::Gamma { mean, scv }) => [2, mean.to_bits(), scv.to_bits()],
            DelayPart::Shape(LawShape::Uniform { low, high }) => [3, low.to_bits(), high.to_bits()],
            DelayPart::Waiting(waiting, share) => [4, Arc::as_ptr(waiting) as u64, share.to_bits()],
            DelayPart::Stages(stages) => shared(5, Arc::as_ptr(stages).cast()),
            DelayPart::Finite(sojourn) => shared(6, Arc::as_ptr(sojourn).cast()),
            DelayPart::Repeated(repeated) => shared(7, Arc::as_ptr(repeated).cast()),
            DelayPart::Preempted(sojourn) => shared(8, Arc::as_ptr(sojourn).cast()),
            DelayPart::Whole(whole) => shared(9, Arc::as_ptr(whole).cast()),
        }
    }

    /// Returns the probability of more than `t` >= 0, if it is known without inversion.
    pub(crate) fn tail(&self, t: f64) -> Option<f64> {
        match self {
            DelayPart::Shape(shape) => shape_tail(shape, t),
            DelayPart::Waiting(waiting, share) if t == 0.0 => Some(share * waiting.rho),
            DelayPart::Stages(stages) => Some(stages.tail(t)),
            DelayPart::Whole(whole) => Some(whole.tail(t)),
            DelayPart::Finite(sojourn) => sojourn.tail(t),
            DelayPart::Waiting(..) | DelayPart::Repeated(_) | DelayPart::Preempted(_) => None,
        }
    }
}

fn shape_tail(shape: &LawShape, t: f64) -> Option<f64> {
    match *shape {
        LawShape::Constant(value) => Some(if t < value { 1.0 } else { 0.0 }),
        LawShape::Exponential(mean) => Some((-t / mean).exp()),
        LawShape::Gamma { .. } if t == 0.0 => Some(1.0),
        LawShape::Gamma { mean, scv } => checked_gamma_ur(scv.recip(), t / (mean * scv)).ok(),
        LawShape::Uniform { low, high } => Some(((high - t) / (high - low)).clamp(0.0, 1.0)),
    }
}
