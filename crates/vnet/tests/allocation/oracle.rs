//! Independent solvers: a plain simplex tableau with lexicographic objectives, and coordinate ascent on prices.

/// A virtual link as numbers: bounds, weight, and indices of links.
#[derive(Debug, Clone)]
pub(crate) struct OracleLink {
    pub(crate) lo: f64,
    pub(crate) hi: f64,
    pub(crate) weight: f64,
    pub(crate) path: Vec<usize>,
}

/// Tableau of: maximise objectives in order, subject to rows `a x <= b` with `x >= 0` and `b >= 0`.
struct LexicographicProgramme {
    /// Factors of variables, then of slacks, then the right-hand side.
    rows: Vec<Vec<f64>>,
    objectives: Vec<Vec<f64>>,
    basic: Vec<usize>,
    allowed: Vec<bool>,
}

const ZERO: f64 = 1e-9;

impl LexicographicProgramme {
    fn new(rows: Vec<(Vec<f64>, f64)>, objectives: Vec<Vec<f64>>) -> LexicographicProgramme {
        let (variables, slacks) = (objectives[0].len(), rows.len());
        let full = |(index, (factors, right)): (usize, (Vec<f64>, f64))| {
            assert!(right >= 0.0, "the start is feasible, but a right-hand side is {right}");
            let slack = (0..slacks).map(|slack| f64::from(u8::from(slack == index)));
            factors.into_iter().chain(slack).chain([right]).collect()
        };
        let objectives = objectives.into_iter().map(|factors| [factors, vec![0.0; slacks + 1]].concat()).collect();
        LexicographicProgramme {
            rows: rows.into_iter().enumerate().map(full).collect(),
            objectives,
            basic: (variables..variables + slacks).collect(),
            allowed: vec![true; variables + slacks],
        }
    }

    fn solve(&mut self) {
        for objective in 0..self.objectives.len() {
            while let Some(column) = (0..self.allowed.len())
                .find(|column| self.allowed[*column] && self.objectives[objective][*column] > ZERO)
            {
                self.enter(column);
            }
            // Whatever lowers this objective stays out of the next.
            for column in 0..self.allowed.len() {
                self.allowed[column] &= self.objectives[objective][column] > -ZERO;
            }
        }
    }

    fn enter(&mut self, column: usize) {
        let right = self.allowed.len();
        let candidates = (0..self.rows.len()).filter(|row| self.rows[*row][column] > ZERO);
        let ratio = |row: usize| self.rows[row][right] / self.rows[row][column];
        let leaving = candidates
            .min_by(|one, other| ratio(*one).total_cmp(&ratio(*other)).then(self.basic[*one].cmp(&self.basic[*other])));
        let leaving = leaving.expect("rates are bounded");
        let factor = self.rows[leaving][column];
        self.rows[leaving].iter_mut().for_each(|value| *value /= factor);
        let pivot = self.rows[leaving].clone();
        let others = self.rows.iter_mut().enumerate().filter(|(row, _)| *row != leaving).map(|(_, row)| row);
        for row in others.chain(&mut self.objectives) {
            let times = row[column];
            row.iter_mut().zip(&pivot).for_each(|(value, pivot)| *value -= times * pivot);
        }
        self.basic[leaving] = column;
    }

    fn value(&self, variable: usize) -> f64 {
        let row = self.basic.iter().position(|basic| *basic == variable);
        row.map_or(0.0, |row| *self.rows[row].last().expect("the right-hand side"))
    }
}

/// Returns the max-min fair rates by weight: of all feasible rates, or of those with the largest sum.
pub(crate) fn leximin(capacities: &[f64], links: &[OracleLink], largest_sum: bool) -> Vec<f64> {
    let count = links.len();
    let mut rates: Vec<Option<f64>> = vec![None; count];
    while rates.iter().any(Option::is_none) {
        let lo: Vec<f64> = (0..count).map(|index| rates[index].unwrap_or(links[index].lo)).collect();
        let mut rows = Vec::new();
        for (link, capacity) in capacities.iter().enumerate() {
            let through = |index: &usize| links[*index].path.contains(&link);
            let used: f64 = (0..count).filter(through).map(|index| lo[index]).sum();
            let factors = (0..=count).map(|index| f64::from(u8::from(index < count && through(&index)))).collect();
            rows.push((factors, (capacity - used).max(0.0)));
        }
        for index in 0..count {
            let mut above = vec![0.0; count + 1];
            above[index] = 1.0;
            rows.push((above, rates[index].map_or(links[index].hi - lo[index], |_| 0.0)));
        }
        let levels = rows.len();
        let open: Vec<usize> = (0..count).filter(|index| rates[*index].is_none()).collect();
        for index in &open {
            let mut level = vec![0.0; count + 1];
            (level[*index], level[count]) = (-1.0, links[*index].weight);
            rows.push((level, lo[*index]));
        }
        let [sum, level] =
            [0, 1].map(|which| (0..=count).map(|index| f64::from(u8::from(index == count) == which)).collect());
        let mut programme = LexicographicProgramme::new(rows, if largest_sum { vec![sum, level] } else { vec![level] });
        programme.solve();
        let highest = programme.value(count);
        let prices = &programme.objectives[usize::from(largest_sum)][count + 1 + levels..];
        for (index, price) in open.iter().zip(prices) {
            if *price < -ZERO {
                rates[*index] = Some((highest * links[*index].weight).clamp(links[*index].lo, links[*index].hi));
            }
        }
    }
    rates.into_iter().flatten().collect()
}

/// Returns the largest sum of rates.
pub(crate) fn largest_sum(capacities: &[f64], links: &[OracleLink]) -> f64 {
    let mut rows = Vec::new();
    for (link, capacity) in capacities.iter().enumerate() {
        let through = |one: &OracleLink| one.path.contains(&link);
        let used: f64 = links.iter().filter(|one| through(one)).map(|one| one.lo).sum();
        rows.push((links.iter().map(|one| f64::from(u8::from(through(one)))).collect(), capacity - used));
    }
    for (index, one) in links.iter().enumerate() {
        let factors = (0..links.len()).map(|other| f64::from(u8::from(other == index))).collect();
        rows.push((factors, one.hi - one.lo));
    }
    let mut programme = LexicographicProgramme::new(rows, vec![vec![1.0; links.len()]]);
    programme.solve();
    links.iter().enumerate().map(|(index, one)| one.lo + programme.value(index)).sum()
}

/// Returns the proportionally fair rates: each price in turn is set to what fills its link, or to zero.
pub(crate) fn proportional(capacities: &[f64], links: &[OracleLink]) -> Vec<f64> {
    let mut prices = vec![0.0; capacities.len()];
    let rate = |one: &OracleLink, paid: f64| (one.weight / paid).clamp(one.lo, one.hi);
    let paid = |one: &OracleLink, prices: &[f64]| one.path.iter().map(|link| prices[*link]).sum::<f64>();
    for _ in 0..20_000 {
        let mut largest_change: f64 = 0.0;
        for (link, capacity) in capacities.iter().enumerate() {
            let through: Vec<(&OracleLink, f64)> = links
                .iter()
                .filter(|one| one.path.contains(&link))
                .map(|one| {
                    let others = one.path.iter().filter(|other| **other != link).map(|other| prices[*other]).sum();
                    (one, others)
                })
                .collect();
            let load = |price: f64| through.iter().map(|(one, others)| rate(one, price + others)).sum::<f64>();
            let new = if load(0.0) <= *capacity { 0.0 } else { filling(load, *capacity) };
            largest_change = largest_change.max((new - prices[link]).abs() / new.max(f64::MIN_POSITIVE));
            prices[link] = new;
        }
        if largest_change < 1e-15 {
            break;
        }
    }
    links.iter().map(|one| rate(one, paid(one, &prices))).collect()
}

/// Returns the lowest price with a load of at most the capacity.
fn filling(load: impl Fn(f64) -> f64, capacity: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0 / capacity);
    while load(high) > capacity {
        (low, high) = (high, high * 4.0);
    }
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return high;
        }
        if load(middle) > capacity { low = middle } else { high = middle }
    }
}
