//! Solves linear equations with banded matrices.

/// Square banded matrix with a limited number of entries below and above the diagonal; after [`BandedMatrix::factor`],
/// its factors.
#[derive(Debug, Clone)]
pub(super) struct BandedMatrix {
    size: usize,
    below: usize,
    above: usize,
    /// Entries row by row, `below + 1 + above` for each.
    entries: Vec<f64>,
}

impl BandedMatrix {
    pub(super) fn zero(size: usize, below: usize, above: usize) -> BandedMatrix {
        BandedMatrix { size, below, above, entries: vec![0.0; size * (below + 1 + above)] }
    }

    fn at(&self, row: usize, column: usize) -> usize {
        row * (self.below + 1 + self.above) + (self.below + column - row)
    }

    /// Adds to an entry within the band.
    pub(super) fn add(&mut self, row: usize, column: usize, value: f64) {
        let at = self.at(row, column);
        self.entries[at] += value;
    }

    /// Factors the matrix by elimination without pivoting. This loses no digits if each diagonal entry is at least
    /// the sum of the other entries of its column, as in matrices of rates. None if the matrix is singular.
    pub(super) fn factor(mut self) -> Option<BandedMatrix> {
        for pivot in 0..self.size {
            let diagonal = self.entries[self.at(pivot, pivot)];
            if !(diagonal.is_finite() && diagonal > 0.0) {
                return None;
            }
            let last = (pivot + self.above).min(self.size - 1);
            for row in pivot + 1..=(pivot + self.below).min(self.size - 1) {
                let at = self.at(row, pivot);
                let factor = self.entries[at] / diagonal;
                self.entries[at] = factor;
                if factor != 0.0 {
                    for column in pivot + 1..=last {
                        let (own, other) = (self.at(row, column), self.at(pivot, column));
                        self.entries[own] -= factor * self.entries[other];
                    }
                }
            }
        }
        Some(self)
    }

    /// Solves the factored equations in place.
    pub(super) fn solve(&self, right: &mut [f64]) {
        let width = self.below + 1 + self.above;
        for row in 0..self.size {
            let first = row.saturating_sub(self.below);
            let own = &self.entries[row * width + self.below + first - row..row * width + self.below];
            let known: f64 = own.iter().zip(&right[first..row]).map(|(factor, x)| factor * x).sum();
            right[row] -= known;
        }
        for row in (0..self.size).rev() {
            let last = (row + self.above).min(self.size - 1);
            let diagonal = row * width + self.below;
            let own = &self.entries[diagonal + 1..diagonal + 1 + last - row];
            let known: f64 = own.iter().zip(&right[row + 1..=last]).map(|(factor, x)| factor * x).sum();
            right[row] = (right[row] - known) / self.entries[diagonal];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved() {
        // Rates in a ring of seven states with exits: up to two below and three above the diagonal.
        let entry = |row: usize, column: usize| match (row, column) {
            (row, column) if row == column => 9.0 + row as f64,
            (row, column) if row <= column + 2 && column <= row + 3 => -1.0 - (row * 7 + column) as f64 / 50.0,
            _ => 0.0,
        };
        let mut matrix = BandedMatrix::zero(7, 2, 3);
        let mut right = [0.0; 7];
        for (row, sum) in right.iter_mut().enumerate() {
            for column in (0..7).filter(|column| entry(row, *column) != 0.0) {
                matrix.add(row, column, entry(row, column));
                *sum += entry(row, column) * (column as f64 - 2.5);
            }
        }
        matrix.factor().unwrap().solve(&mut right);
        for (place, x) in right.iter().enumerate() {
            assert!((x - (place as f64 - 2.5)).abs() < 1e-12, "{right:?}");
        }
        assert!(BandedMatrix::zero(3, 1, 1).factor().is_none());
    }
}
