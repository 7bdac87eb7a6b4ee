//! Solves systems of linear equations with symmetric, positive semidefinite matrices.

/// Share of a diagonal element below which a pivot is zero: the row then depends on those before.
const DEPENDENT: f64 = 1e-13;

/// Symmetric matrix, of which the lower half is kept.
pub(super) struct SymmetricMatrix {
    rows: Vec<Vec<f64>>,
}

impl SymmetricMatrix {
    pub(super) fn diagonal(diagonal: impl IntoIterator<Item = f64>) -> SymmetricMatrix {
        let row = |(index, value)| {
            let mut row = vec![0.0; index + 1];
            row[index] = value;
            row
        };
        SymmetricMatrix { rows: diagonal.into_iter().enumerate().map(row).collect() }
    }

    /// Adds a value to the elements at all pairs of these indices.
    pub(super) fn add_pairs(&mut self, indices: &[usize], value: f64) {
        for one in indices {
            for other in indices.iter().filter(|other| *other <= one) {
                self.rows[*one][*other] += value;
            }
        }
    }

    /// Solves the system with this right-hand side. Unknowns whose rows depend on earlier rows are 0.
    pub(super) fn solve(mut self, mut right: Vec<f64>) -> Vec<f64> {
        let pivots = self.factorise();
        let size = self.rows.len();
        for row in 0..size {
            let known: f64 = (0..row).map(|column| self.rows[row][column] * right[column]).sum();
            right[row] = if pivots[row] > 0.0 { right[row] - known } else { 0.0 };
        }
        for row in 0..size {
            right[row] = if pivots[row] > 0.0 { right[row] / pivots[row] } else { 0.0 };
        }
        for row in (0..size).rev() {
            let known: f64 = (row + 1..size).map(|below| self.rows[below][row] * right[below]).sum();
            right[row] = if pivots[row] > 0.0 { right[row] - known } else { 0.0 };
        }
        right
    }

    /// Replaces the matrix by the factor L of L D L', and returns D.
    fn factorise(&mut self) -> Vec<f64> {
        let size = self.rows.len();
        let mut pivots = vec![0.0; size];
        for row in 0..size {
            for column in 0..row {
                let known: f64 = (0..column).map(|k| self.rows[row][k] * self.rows[column][k] * pivots[k]).sum();
                let rest = self.rows[row][column] - known;
                self.rows[row][column] = if pivots[column] > 0.0 { rest / pivots[column] } else { 0.0 };
            }
            let known: f64 = (0..row).map(|k| self.rows[row][k].powi(2) * pivots[k]).sum();
            let pivot = self.rows[row][row] - known;
            pivots[row] = if pivot > DEPENDENT * self.rows[row][row] { pivot } else { 0.0 };
        }
        pivots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependent_rows_are_left_out() {
        let mut matrix = SymmetricMatrix::diagonal([1.0, 0.0, 2.0]);
        matrix.add_pairs(&[0, 1], 2.0);
        matrix.add_pairs(&[1, 2], 1.0);
        // [3 2 0; 2 3 1; 0 1 3] times [1 2 3].
        let solved = matrix.solve(vec![7.0, 11.0, 11.0]);
        assert!(solved.iter().zip([1.0, 2.0, 3.0]).all(|(one, other)| (one - other).abs() < 1e-14), "{solved:?}");
        let mut twice = SymmetricMatrix::diagonal([0.0; 2]);
        twice.add_pairs(&[0, 1], 4.0);
        assert_eq!(twice.solve(vec![8.0, 8.0]), [2.0, 0.0]);
    }
}
