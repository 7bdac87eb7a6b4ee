//! Solves linear programmes on rates and loads with bounds: a simplex method for bounded variables.
//!
//! Variables are the rates of the members, and the loads of the links, which are sums of rates. A load is at most the
//! capacity, or equal to it. As many variables as there are links are *basic*: each is a combination of the others, the
//! *columns*. At first the loads are basic. A pivot exchanges a basic variable and a column.
//!
//! Two methods change the solution: [`Tableau::maximise_sum`] moves from feasible rates to the largest sum (primal
//! simplex), and [`Tableau::restore`] finds feasible rates after bounds were changed, or proves that there are none
//! (Dutertre and de Moura, 2006). Both take the lowest variable that qualifies once they have made many steps (Bland's
//! rule), so that they end.
use super::component::SharingProblem;

/// Coefficients below this are zero: the others are fractions of small whole numbers.
pub(super) const ZERO: f64 = 1e-9;
/// Rounding error of a basic variable, as a share of the sum of the magnitudes that it is calculated from.
const ROUNDING: f64 = 2e-14;
/// Steps after which the method stops, in multiples of those after which it takes the lowest variables.
const MAX_PATIENCE: usize = 50;

/// Simplex tableau of a [`SharingProblem`].
pub(super) struct Tableau {
    /// For each basic variable the factors of the columns.
    rows: Vec<Vec<f64>>,
    /// Change of the sum of rates with each column.
    gains: Vec<f64>,
    /// Variable of each row and of each column: members first, then links.
    basic: Vec<usize>,
    columns: Vec<usize>,
    values: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    /// Rounding error of each row's variable.
    rounding: Vec<f64>,
    members: usize,
}

/// Position of the optima of [`Tableau::maximise_sum`]: all rates that have these properties, and no others.
pub(super) struct OptimalFace {
    /// Rates that are equal in all optima, by member.
    pub(super) rates: Vec<Option<f64>>,
    /// True for links that are full in all optima.
    pub(super) is_full: Vec<bool>,
}

impl Tableau {
    /// Returns the tableau with the minima as rates.
    pub(super) fn new(problem: &SharingProblem) -> Tableau {
        let (members, links) = (problem.members.len(), problem.capacities.len());
        let mut rows = vec![vec![0.0; members]; links];
        for (column, member) in problem.members.iter().enumerate() {
            member.links.iter().for_each(|link| rows[*link][column] = 1.0);
        }
        let lower: Vec<f64> = problem.members.iter().map(|member| member.lo).collect();
        let mut tableau = Tableau {
            rows,
            gains: vec![1.0; members],
            basic: (members..members + links).collect(),
            columns: (0..members).collect(),
            values: lower.iter().copied().chain(vec![0.0; links]).collect(),
            lower: lower.into_iter().chain(vec![f64::NEG_INFINITY; links]).collect(),
            upper: problem.members.iter().map(|member| member.hi).chain(problem.capacities.iter().copied()).collect(),
            rounding: vec![0.0; links],
            members,
        };
        tableau.update_basic();
        tableau
    }

    /// Sets the bounds of a member's rate.
    pub(super) fn bound_rate(&mut self, member: usize, lower: f64, upper: f64) {
        (self.lower[member], self.upper[member]) = (lower, upper);
    }

    /// Demands that a link be full.
    pub(super) fn fill_link(&mut self, link: usize) {
        self.lower[self.members + link] = self.upper[self.members + link];
    }

    /// Calculates the basic variables from the columns.
    fn update_basic(&mut self) {
        for (row, (factors, variable)) in self.rows.iter().zip(&self.basic).enumerate() {
            let terms = factors.iter().zip(&self.columns).map(|(factor, column)| factor * self.values[*column]);
            let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
            self.values[*variable] = sum;
            self.rounding[row] = ROUNDING * size;
        }
    }

    /// Exchanges the variables of a row and of a column.
    fn pivot(&mut self, row: usize, column: usize) {
        let mut pivot_row = std::mem::take(&mut self.rows[row]);
        let factor = pivot_row[column];
        pivot_row.iter_mut().for_each(|value| *value = -*value / factor);
        pivot_row[column] = 1.0 / factor;
        let others = self.rows.iter_mut().enumerate().filter(|(index, _)| *index != row).map(|(_, other)| other);
        for other in others.chain(std::iter::once(&mut self.gains)) {
            let times = std::mem::take(&mut other[column]);
            if times != 0.0 {
                other.iter_mut().zip(&pivot_row).for_each(|(value, pivot)| *value += times * pivot);
            }
        }
        self.rows[row] = pivot_row;
        std::mem::swap(&mut self.basic[row], &mut self.columns[column]);
    }

    /// Number of steps after which only the lowest variables are taken.
    fn patience(&self) -> usize {
        4 * (self.rows.len() + self.columns.len())
    }

    /// Number of steps that only rounding errors can exceed. The rates are then found wrong by the final check.
    fn most_steps(&self) -> usize {
        MAX_PATIENCE * self.patience()
    }

    /// Moves from feasible rates to the largest sum of rates.
    pub(super) fn maximise_sum(&mut self) {
        let mut steps = 0;
        while let Some(column) = self.entering(steps > self.patience()).filter(|_| steps < self.most_steps()) {
            self.raise_sum(column, steps > self.patience());
            steps += 1;
        }
        self.update_basic();
    }

    /// Returns a column whose change raises the sum.
    fn entering(&self, lowest: bool) -> Option<usize> {
        let gains = |column: usize| {
            let (variable, gain) = (self.columns[column], self.gains[column]);
            let value = self.values[variable];
            (gain > ZERO && value < self.upper[variable]) || (gain < -ZERO && value > self.lower[variable])
        };
        let found = (0..self.columns.len()).filter(|column| gains(*column));
        if lowest {
            return found.min_by_key(|column| self.columns[*column]);
        }
        // The most gain; of equals the lowest variable.
        found.min_by(|one, other| {
            let by_gain = self.gains[*other].abs().total_cmp(&self.gains[*one].abs());
            by_gain.then(self.columns[*one].cmp(&self.columns[*other]))
        })
    }

    /// Changes a column until it or a basic variable reaches a bound.
    fn raise_sum(&mut self, column: usize, lowest: bool) {
        let variable = self.columns[column];
        let direction = self.gains[column].signum();
        let far = if direction > 0.0 { self.upper[variable] } else { self.lower[variable] };
        let mut nearest: Option<(usize, f64)> = None;
        for (row, basic) in self.basic.iter().enumerate() {
            let speed = self.rows[row][column] * direction;
            if speed.abs() < ZERO {
                continue;
            }
            let bound = if speed > 0.0 { self.upper[*basic] } else { self.lower[*basic] };
            let room = ((bound - self.values[*basic]) / speed).max(0.0);
            let is_nearer = nearest.is_none_or(|(other, least)| {
                let rank = |row: usize| (self.rows[row][column].abs(), std::cmp::Reverse(self.basic[row]));
                let is_preferred = if lowest { rank(row).1 > rank(other).1 } else { rank(row) > rank(other) };
                room < least || (room == least && is_preferred)
            });
            if is_nearer {
                nearest = Some((row, room));
            }
        }
        match nearest.filter(|(_, room)| *room < (far - self.values[variable]).abs()) {
            Some((row, _)) => {
                let leaving = self.basic[row];
                let speed = self.rows[row][column] * direction;
                self.values[leaving] = if speed > 0.0 { self.upper[leaving] } else { self.lower[leaving] };
                self.pivot(row, column);
                self.update_basic();
            }
            None => {
                let change = far - self.values[variable];
                self.values[variable] = far;
                for (row, basic) in self.rows.iter().zip(&self.basic) {
                    self.values[*basic] += row[column] * change;
                }
            }
        }
    }

    /// Returns the sum of all rates.
    pub(super) fn sum(&self) -> f64 {
        self.values[..self.members].iter().sum()
    }

    /// Returns what all rates with the largest sum have in common, once the sum is largest.
    ///
    /// A column with a gain is at a bound, and an optimum with another value of it would have a smaller sum.
    pub(super) fn optimal_face(&self) -> OptimalFace {
        let mut face = OptimalFace { rates: vec![None; self.members], is_full: vec![false; self.rows.len()] };
        for (variable, gain) in self.columns.iter().zip(&self.gains).filter(|(_, gain)| gain.abs() > ZERO) {
            let bound = if *gain > 0.0 { self.upper[*variable] } else { self.lower[*variable] };
            match variable.checked_sub(self.members) {
                None => face.rates[*variable] = Some(bound),
                Some(link) => face.is_full[link] = true,
            }
        }
        face
    }

    /// Finds rates within the bounds.
    ///
    /// # Errors
    /// There are none. The error has a factor for each link, positive unless the link must be full, with which the
    /// smallest sum of loads times factors that the bounds of the rates allow is more than that of the capacities.
    pub(super) fn restore(&mut self) -> Result<(), Vec<f64>> {
        for variable in &self.columns {
            self.values[*variable] = self.values[*variable].clamp(self.lower[*variable], self.upper[*variable]);
        }
        self.update_basic();
        let mut steps = 0;
        while let Some(row) = self.violated(steps > self.patience()).filter(|_| steps < self.most_steps()) {
            let leaving = self.basic[row];
            let is_below = self.values[leaving] < self.lower[leaving];
            let direction = if is_below { 1.0 } else { -1.0 };
            let Some(column) = self.helping(row, direction, steps > self.patience()) else {
                return Err(self.proof(row, direction));
            };
            self.values[leaving] = if is_below { self.lower[leaving] } else { self.upper[leaving] };
            self.pivot(row, column);
            self.update_basic();
            steps += 1;
        }
        Ok(())
    }

    /// Returns the row of a basic variable outside its bounds.
    fn violated(&self, lowest: bool) -> Option<usize> {
        let miss = |row: usize| {
            let variable = self.basic[row];
            let value = self.values[variable];
            (self.lower[variable] - value).max(value - self.upper[variable]) - self.rounding[row]
        };
        let found = (0..self.basic.len()).filter(|row| miss(*row) > 0.0);
        if lowest {
            return found.min_by_key(|row| self.basic[*row]);
        }
        found.max_by(|one, other| miss(*one).total_cmp(&miss(*other)))
    }

    /// Returns a column that moves the row's variable in a direction.
    fn helping(&self, row: usize, direction: f64, lowest: bool) -> Option<usize> {
        let helps = |column: usize| {
            let (variable, speed) = (self.columns[column], self.rows[row][column] * direction);
            let value = self.values[variable];
            (speed > ZERO && value < self.upper[variable]) || (speed < -ZERO && value > self.lower[variable])
        };
        let found = (0..self.columns.len()).filter(|column| helps(*column));
        if lowest {
            return found.min_by_key(|column| self.columns[*column]);
        }
        found.max_by(|one, other| self.rows[row][*one].abs().total_cmp(&self.rows[row][*other].abs()))
    }

    /// Returns the factors of the links in a row that no column can move in a direction.
    fn proof(&self, row: usize, direction: f64) -> Vec<f64> {
        let mut factors = vec![0.0; self.rows.len()];
        if let Some(link) = self.basic[row].checked_sub(self.members) {
            factors[link] = -direction;
        }
        for (variable, factor) in self.columns.iter().zip(&self.rows[row]) {
            if let Some(link) = variable.checked_sub(self.members) {
                factors[link] = if factor.abs() > ZERO { direction * factor } else { 0.0 };
            }
        }
        factors
    }
}
