//! Solves quasi-birth-death processes: levels 0, 1, 2, ..., phases within each, equal rates between neighbouring
//! levels everywhere.
use crate::ModelError;
use nalgebra::{DMatrix, DVector};

/// Maximum number of rounds of the reduction. Each round squares the remaining error.
const MAX_ROUNDS: u32 = 64;
/// Largest remaining error.
const PRECISION: f64 = 1e-14;

/// Rates of the process, per second. [`QuasiBirthDeath::solve`] computes the diagonals.
#[derive(Debug)]
pub(super) struct QuasiBirthDeath {
    /// Rates to the next level.
    pub(super) up: DMatrix<f64>,
    /// Rates within a level.
    pub(super) within: DMatrix<f64>,
    /// Rates to the previous level.
    pub(super) down: DMatrix<f64>,
}

/// Steady state of the process.
#[derive(Debug)]
pub(super) struct QbdSteadyState {
    /// Probabilities of the phases at level 0.
    pub(super) ground: DVector<f64>,
    /// Probabilities of the phases over all levels.
    pub(super) phases: DVector<f64>,
    /// Mean of the level.
    pub(super) level: f64,
}

impl QuasiBirthDeath {
    /// Returns the rates per second at which the level rises and falls, far from level 0.
    pub(super) fn drift(&self) -> Result<(f64, f64), ModelError> {
        let all = with_diagonal(&self.up + &self.within + &self.down, &[]);
        let phases = stationary(all, DVector::from_element(self.up.nrows(), 1.0))?;
        Ok((phases.dot(&row_sums(&self.up)), phases.dot(&row_sums(&self.down))))
    }

    /// Returns the steady state of a process that falls more often than it rises.
    pub(super) fn solve(&self) -> Result<QbdSteadyState, ModelError> {
        let size = self.up.nrows();
        let local = with_diagonal(self.within.clone(), &[&self.up, &self.down]);
        let returning = self.first_returns(&local)?;
        // R = up (-(local + up G))^-1
        let rates = right_divided(&self.up, &-(&local + &self.up * returning))?;
        let identity = DMatrix::identity(size, size);
        let rest = (&identity - &rates).lu();
        let ones = rest.solve(&DVector::from_element(size, 1.0)).ok_or_else(singular)?;
        let ground_local = with_diagonal(self.within.clone(), &[&self.up]);
        let ground = stationary(ground_local + &rates * &self.down, ones.clone())?;
        let phases = (&identity - &rates).transpose().lu().solve(&ground).ok_or_else(singular)?;
        let level = phases.dot(&(&rates * &ones));
        Ok(QbdSteadyState { ground, phases: phases.map(|p| p.max(0.0)), level: level.max(0.0) })
    }

    /// Returns G, the probabilities of the phases in which the previous level is first reached, by logarithmic
    /// reduction (Latouche and Ramaswami, Introduction to Matrix Analytic Methods, 1999, 8.4).
    fn first_returns(&self, local: &DMatrix<f64>) -> Result<DMatrix<f64>, ModelError> {
        let size = local.nrows();
        let jumps = (-local).lu();
        let mut high = jumps.solve(&self.up).ok_or_else(singular)?;
        let mut low = jumps.solve(&self.down).ok_or_else(singular)?;
        let mut returning = low.clone();
        let mut still = high.clone();
        for _ in 0..MAX_ROUNDS {
            let twice = &high * &low + &low * &high;
            let stay = (DMatrix::identity(size, size) - twice).lu();
            high = stay.solve(&(&high * &high)).ok_or_else(singular)?;
            low = stay.solve(&(&low * &low)).ok_or_else(singular)?;
            let more = &still * &low;
            returning += &more;
            still *= &high;
            // Each row of G sums to 1: the missing part is not yet summed.
            if more.amax() < PRECISION || still.amax() < PRECISION {
                return Ok(returning);
            }
        }
        Err(ModelError::NoConvergence { what: "logarithmic reduction".into(), rounds: MAX_ROUNDS })
    }
}

fn singular() -> ModelError {
    ModelError::NoConvergence { what: "equations of the process without a solution".into(), rounds: 1 }
}

fn row_sums(matrix: &DMatrix<f64>) -> DVector<f64> {
    matrix.column_sum()
}

/// Adds the diagonal that makes each row, together with the rows of `others`, sum to zero.
fn with_diagonal(mut matrix: DMatrix<f64>, others: &[&DMatrix<f64>]) -> DMatrix<f64> {
    let mut leaving = row_sums(&matrix);
    others.iter().for_each(|other| leaving += row_sums(other));
    for row in 0..matrix.nrows() {
        matrix[(row, row)] -= leaving[row];
    }
    matrix
}

/// Solves `X * divisor = matrix` for `X`.
fn right_divided(matrix: &DMatrix<f64>, divisor: &DMatrix<f64>) -> Result<DMatrix<f64>, ModelError> {
    let solution = divisor.transpose().lu().solve(&matrix.transpose()).ok_or_else(singular)?;
    Ok(solution.transpose())
}

/// Solves `x * generator = 0` and `x * weights = 1` for the row vector `x`.
fn stationary(mut generator: DMatrix<f64>, weights: DVector<f64>) -> Result<DVector<f64>, ModelError> {
    // One equation follows from the others; the last is replaced by the sum.
    let last = generator.ncols() - 1;
    generator.set_column(last, &weights);
    let mut sum = DVector::zeros(generator.nrows());
    sum[last] = 1.0;
    let solution = generator.transpose().lu().solve(&sum).ok_or_else(singular)?;
    Ok(solution.map(|p| p.max(0.0)))
}
