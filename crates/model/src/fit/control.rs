//! Fits the costs of table changes to measured times of commands, after Cheng (2015), section 4.4. The symbols e, q,
//! m, M, W, P, R and S in this module are that paper's.
use super::curve::SpeedupCurve;
use super::line::RegressionLine;
use super::quantiles::MedianAndSpread;
use crate::ModelError;
use crate::switch::costs::{PriorityCosts, TableCosts};
use crate::switch::speedup::PerEntryCost;
use std::collections::BTreeMap;

/// Minimum number of runs per case. Fewer are accepted with a note.
pub const RUNS_LEAST: usize = 10;

/// Order of priorities in which entries were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InsertionOrder {
    /// All entries have one priority.
    Same,
    /// Each entry has a higher priority than those before it, so that adding it shifts all of them.
    Ascending,
    /// Each entry has a lower priority than those before it, so that adding it shifts none.
    Descending,
}

/// Times of commands measured with one combination of priority order, table occupancy and batch size.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandCostSample {
    /// Order of the entries' priorities.
    pub order: InsertionOrder,
    /// Number of entries in the table (e).
    pub entries: u64,
    /// Number of commands sent back to back (q).
    pub batch: u32,
    /// For each run: the time per command, in seconds.
    pub times_s: Vec<f64>,
}

/// Times of a deletion of several entries by one command.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletionSample {
    /// Number of entries deleted (m).
    pub matching: u64,
    /// For each run: the time of the whole deletion, in seconds.
    pub times_s: Vec<f64>,
}

/// Measurements of one table; each level of a switch is measured separately.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableCostSamples {
    /// Times of commands that add an entry.
    pub add: Vec<CommandCostSample>,
    /// Times of commands that modify an entry.
    pub modify: Vec<CommandCostSample>,
    /// Times of deletions.
    pub delete: Vec<DeletionSample>,
}

/// Costs of a table, with the fits behind them.
#[derive(Debug, Clone, PartialEq)]
pub struct TableCostFit {
    /// Costs of the table.
    pub costs: TableCosts,
    /// Fitted lines by name.
    pub lines: Vec<(String, RegressionLine)>,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

impl TableCostFit {
    /// Fits all costs of a table. Slopes that are not significantly different from 0 become 0, with a note.
    ///
    /// # Errors
    /// Too few cases for a line, which the error names; or invalid times.
    pub fn fit(measured: &TableCostSamples) -> Result<TableCostFit, ModelError> {
        let mut fit = TableCostFitter::default();
        // 1. Deleting: time = M + W m.
        let (search_s, write_s) = fit.deleting(&measured.delete)?;
        // 2. Adding and modifying: slopes over entries, for each batch.
        let add = fit.overheads("add", &measured.add)?;
        let modify = fit.overheads("modify", &measured.modify)?;
        // 3. Shifting: additional time of ascending priorities over descending ones.
        let shift_s = fit.shifting(&measured.add)?;
        let costs = TableCosts { add, modify, shift_s, search_s, write_s, delete_s: None };
        Ok(TableCostFit { costs, lines: fit.lines, notes: fit.notes })
    }
}

/// Fit in progress.
#[derive(Default)]
struct TableCostFitter {
    lines: Vec<(String, RegressionLine)>,
    notes: Vec<String>,
}

impl TableCostFitter {
    /// Fits a line through `points` (x, median time), and keeps it under `name`.
    fn line(&mut self, name: &str, points: &[(f64, f64)]) -> Result<RegressionLine, ModelError> {
        let (x, y): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
        let line = RegressionLine::fit(&x, &y).map_err(|error| match error {
            ModelError::Domain { parameter, found, expected } => {
                ModelError::Domain { parameter: format!("{name}: {parameter}"), found, expected }
            }
            other => other,
        })?;
        self.lines.push((name.to_owned(), line));
        Ok(line)
    }

    /// Fits a line and returns its slope, or 0 with a note if the slope is not significantly above 0.
    fn slope(&mut self, name: &str, points: &[(f64, f64)]) -> Result<f64, ModelError> {
        let line = self.line(name, points)?;
        let slope = line.slope_or_zero();
        if slope <= 0.0 {
            self.notes.push(format!("{name}: {:.3e} s is not above 0 for certain: taken for 0", line.slope));
        }
        Ok(slope.max(0.0))
    }

    fn median(&mut self, name: &str, times_s: &[f64]) -> Result<f64, ModelError> {
        if times_s.len() < RUNS_LEAST {
            self.notes.push(format!("{name}: {} runs, {RUNS_LEAST} or more are wanted", times_s.len()));
        }
        Ok(MedianAndSpread::of(times_s)?.median)
    }

    fn deleting(&mut self, deletions: &[DeletionSample]) -> Result<(f64, f64), ModelError> {
        let mut points = Vec::with_capacity(deletions.len());
        for DeletionSample { matching, times_s } in deletions {
            points.push((*matching as f64, self.median(&format!("delete {matching}"), times_s)?));
        }
        let write_s = self.slope("delete", &points)?;
        let intercept = self.lines.last().map_or(0.0, |(_, line)| line.intercept);
        if intercept < 0.0 {
            self.notes.push(format!("delete: searching takes {intercept:.3e} s: taken for 0"));
        }
        Ok((intercept.max(0.0), write_s))
    }

    fn overheads(
        &mut self,
        command: &str,
        cases: &[CommandCostSample],
    ) -> Result<PriorityCosts<PerEntryCost>, ModelError> {
        Ok(PriorityCosts {
            single: self.overhead(&format!("{command}, one priority"), cases, InsertionOrder::Same)?,
            several: self.overhead(&format!("{command}, several priorities"), cases, InsertionOrder::Descending)?,
        })
    }

    /// Fits the overhead of a command that grows with the number of entries. P is the additional time per entry of a
    /// command sent alone. The speedup R of a batch size is P divided by the additional time per entry in such
    /// batches.
    fn overhead(
        &mut self,
        name: &str,
        cases: &[CommandCostSample],
        order: InsertionOrder,
    ) -> Result<PerEntryCost, ModelError> {
        let mut batches: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
        for case in cases.iter().filter(|case| case.order == order) {
            let median =
                self.median(&format!("{name}, {} entries, {} at once", case.entries, case.batch), &case.times_s)?;
            batches.entry(case.batch).or_default().push((case.entries as f64, median));
        }
        let alone = batches.remove(&1).unwrap_or_default();
        let per_entry_s = self.slope(name, &alone)?;
        if per_entry_s <= 0.0 {
            return Ok(PerEntryCost::NONE);
        }
        let mut speedups = vec![(1, 1.0)];
        for (batch, points) in batches {
            let slope = self.slope(&format!("{name}, {batch} at once"), &points)?;
            if slope > 0.0 {
                speedups.push((batch, per_entry_s / slope));
            }
        }
        let curve = SpeedupCurve::fit(&speedups)?;
        if curve.below_one {
            self.notes.push(format!("{name}: batches make commands dearer: R = {:?}", curve.speedup.0));
        }
        Ok(PerEntryCost { per_entry_s, speedup: curve.speedup })
    }

    /// Fits S, the time to shift one entry: the slope, over the number of entries, of the difference between adding
    /// with ascending and with descending priorities, averaged over batch sizes.
    fn shifting(&mut self, cases: &[CommandCostSample]) -> Result<f64, ModelError> {
        let mut more: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for ascending in cases.iter().filter(|case| case.order == InsertionOrder::Ascending) {
            let same = |case: &&CommandCostSample| {
                case.order == InsertionOrder::Descending
                    && (case.entries, case.batch) == (ascending.entries, ascending.batch)
            };
            if let Some(descending) = cases.iter().find(same) {
                let difference =
                    MedianAndSpread::of(&ascending.times_s)?.median - MedianAndSpread::of(&descending.times_s)?.median;
                more.entry(ascending.entries).or_default().push(difference);
            }
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let points: Vec<(f64, f64)> = more.iter().map(|(entries, values)| (*entries as f64, mean(values))).collect();
        self.slope("shift", &points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::costs::{AddCostInputs, ChangeCostInputs, add_s, delete_s, modify_s};
    use crate::switch::speedup::{BatchSpeedup, CommandBatch};

    const ENTRIES: [u64; 7] = [100, 500, 1000, 2000, 3000, 4000, 5000];
    const BATCHES: [u32; 7] = [1, 3, 5, 10, 20, 50, 80];

    fn truth() -> TableCosts {
        let overhead = |per_entry_s| PerEntryCost { per_entry_s, speedup: BatchSpeedup([0.881, 0.12, -0.001]) };
        TableCosts {
            add: PriorityCosts { single: overhead(1e-6), several: overhead(2e-6) },
            modify: PriorityCosts { single: overhead(5e-7), several: overhead(3e-6) },
            shift_s: 4e-6,
            search_s: 2e-3,
            write_s: 5e-4,
            delete_s: None,
        }
    }

    /// Returns simulated times of a switch with these costs, with up to one percent of noise.
    fn measured(costs: &TableCosts, seed: u64) -> TableCostSamples {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut runs = |time: f64| -> Vec<f64> { (0..15).map(|_| time * (0.99 + 0.02 * random.f64())).collect() };
        let mut found = TableCostSamples::default();
        for (order, entries, batch) in [InsertionOrder::Same, InsertionOrder::Ascending, InsertionOrder::Descending]
            .into_iter()
            .flat_map(|order| ENTRIES.into_iter().flat_map(move |entries| BATCHES.map(|batch| (order, entries, batch))))
        {
            let (different, together) =
                (if order == InsertionOrder::Same { 1 } else { 2 }, CommandBatch { commands: batch, most: 100 });
            let adding = AddCostInputs {
                overhead: costs.add.of(different),
                entries,
                shifts: if order == InsertionOrder::Ascending { entries } else { 0 },
                batch: together,
                shift_s: costs.shift_s,
                write_s: costs.write_s,
            };
            let changing = ChangeCostInputs {
                overhead: costs.modify.of(different),
                entries,
                matching: 1,
                search_s: costs.search_s,
                write_s: costs.write_s,
            };
            let case = |times_s| CommandCostSample { order, entries, batch, times_s };
            found.add.push(case(runs(add_s(&adding).unwrap())));
            found.modify.push(case(runs(modify_s(&[changing], together).unwrap())));
            if order == InsertionOrder::Same && batch == 1 {
                let deleting = ChangeCostInputs { matching: entries, ..changing };
                found.delete.push(DeletionSample { matching: entries, times_s: runs(delete_s(&[deleting]).unwrap()) });
            }
        }
        found
    }

    #[test]
    fn costs_are_found_again_from_noisy_times() {
        for seed in 0..10 {
            let (truth, fitted) = (truth(), TableCostFit::fit(&measured(&truth(), seed)).unwrap());
            let near = |name, found: f64, truth: f64, share: f64| {
                assert!((found / truth - 1.0).abs() < share, "{name}: {found} instead of {truth}, seed {seed}");
            };
            let costs = fitted.costs;
            near("W", costs.write_s, truth.write_s, 0.02);
            near("S", costs.shift_s, truth.shift_s, 0.05);
            for (name, found, truth) in [
                ("add, one", costs.add.single, truth.add.single),
                ("add, several", costs.add.several, truth.add.several),
                ("modify, one", costs.modify.single, truth.modify.single),
                ("modify, several", costs.modify.several, truth.modify.several),
            ] {
                near(name, found.per_entry_s, truth.per_entry_s, 0.1);
                let of = |overhead: PerEntryCost| overhead.of(3000, CommandBatch { commands: 20, most: 100 }).unwrap();
                near(name, of(found), of(truth), 0.3);
            }
            let odd = fitted.notes.iter().find(|note| !note.starts_with("delete: searching"));
            assert_eq!(odd, None, "what searching takes is lost in the noise of deleting thousands");
            assert_eq!(fitted.lines.len(), 1 + 4 * BATCHES.len() + 1);
        }
    }

    #[test]
    fn a_table_that_is_a_hash_costs_nothing_for_its_entries() {
        let mut costs = truth();
        costs.add = PriorityCosts { single: PerEntryCost::NONE, several: PerEntryCost::NONE };
        costs.shift_s = 0.0;
        let fitted = (0..20).map(|seed| TableCostFit::fit(&measured(&costs, seed)).unwrap()).collect::<Vec<_>>();
        let flat =
            fitted.iter().filter(|fitted| fitted.costs.shift_s == 0.0 && fitted.costs.add.single == PerEntryCost::NONE);
        // By chance, one slope in forty of two is significant.
        assert!(flat.count() >= 17);
        assert!(fitted.iter().all(|fitted| fitted.costs.shift_s >= 0.0 && fitted.costs.shift_s < 1e-8));
        assert!(fitted.iter().any(|fitted| fitted.notes.iter().any(|note| note.starts_with("shift: "))));
    }

    #[test]
    fn what_is_missing_is_named() {
        let mut few = measured(&truth(), 1);
        few.add.retain(|case| case.order != InsertionOrder::Same);
        let error = TableCostFit::fit(&few).unwrap_err().to_string();
        assert_eq!(error, "add, one priority: points: found 0 x, 0 y, expected as many x as y, two or more");
        few.delete[0].times_s = vec![f64::NAN];
        assert_eq!(TableCostFit::fit(&few).unwrap_err().kind(), "DOMAIN");
    }
}
