//! What changes cost each level, from the grid's times.
use super::linear::{Estimate, Fitted, Observation};
use crate::control::{Command, Timed};
use crate::terms::Column;
use std::collections::BTreeMap;
use weir_model::fit::curve::Curve;
use weir_model::switch::batch::Batching;
use weir_model::switch::costs::{ByPriorities, TableCosts};
use weir_model::switch::speedup::{Overhead, Speedup};
use weir_profile::Evidence;

/// The share of a time that noise is taken for at least.
const NOISE: f64 = 0.003;
/// What a clock and a wire leave at least, in seconds.
const FLOOR_S: f64 = 2e-6;

/// Costs by level, and what they rest on by parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// The first level's first.
    pub levels: Vec<TableCosts>,
    /// What they rest on.
    pub evidence: BTreeMap<String, Evidence>,
    /// What to know about them.
    pub notes: Vec<String>,
    /// The fit behind them.
    pub fitted: Fitted,
}

/// A burst's time as the fit takes it.
fn observation(timed: &Timed) -> Observation {
    let seconds = timed.seconds();
    let bracket = (timed.high_s - timed.low_s) / 12f64.sqrt();
    let sd = (bracket.powi(2) + (NOISE * seconds).powi(2) + FLOOR_S.powi(2)).sqrt();
    Observation { terms: timed.terms.clone(), seconds, sd }
}

/// Costs of so many levels.
pub fn fit(timed: &[Timed], levels: usize, batching: Batching) -> Costs {
    // Larger bursts are several batches, of which one waits beside another's work.
    let is_whole = |one: &&Timed| {
        one.seconds() > 0.0 && (batching.most == 1 || one.command == Command::DeleteMany || one.batch <= batching.most)
    };
    let observations: Vec<Observation> = timed.iter().filter(is_whole).map(observation).collect();
    let fitted = Fitted::fit(&observations);
    let mut made = Costs { levels: Vec::new(), evidence: BTreeMap::new(), notes: Vec::new(), fitted };
    for level in 0..levels {
        let costs = made.level(level, batching);
        made.levels.push(costs);
    }
    if let Some(constant) = made.fitted.costs.get(&Column::Constant) {
        let text = format!(
            "every burst takes {:.3e} s beside what its commands take (control channel, rig): profiles have no place for it",
            constant.value
        );
        made.notes.push(text);
    }
    made
}

fn evidence(estimate: &Estimate) -> Evidence {
    Evidence { interval: Some(estimate.interval), r2: Some(estimate.r2), samples: Some(estimate.samples), note: None }
}

impl Costs {
    fn level(&mut self, level: usize, batching: Batching) -> TableCosts {
        let key = format!("level{}", level + 1);
        let mut both = |name: &str, column: fn(usize, bool, u32) -> Column| {
            let mut of = |several: bool| {
                let key = format!("{key}.{name}.{}.per_entry", if several { "several" } else { "single" });
                self.overhead(&key, batching, |batch| column(level, several, batch))
            };
            let (single, several) = (of(false), of(true));
            // A level where entries of one kind were never alone has the other's costs.
            ByPriorities {
                single: single.or(several).unwrap_or(Overhead::NONE),
                several: several.or(single).unwrap_or(Overhead::NONE),
            }
        };
        let add = both("add", |level, several, batch| Column::Add { level, several, batch });
        let modify = both("modify", |level, several, batch| Column::Modify { level, several, batch });
        let shift_s = self.cost(&format!("{key}.shift"), Column::Shift { level });
        // Every command searches all levels: what that takes is one number.
        let search_s = if level == 0 { self.cost(&format!("{key}.search"), Column::Search) } else { 0.0 };
        let write_s = self.written(&format!("{key}.write"), level);
        TableCosts { add, modify, shift_s, search_s, write_s }
    }

    fn cost(&mut self, key: &str, column: Column) -> f64 {
        if let Some(estimate) = self.fitted.costs.get(&column) {
            self.evidence.insert(key.to_owned(), evidence(estimate));
            return estimate.value;
        }
        if let Some(value) = self.fitted.zero.get(&column) {
            let note = format!("not told from 0: {value:.3e} s");
            self.evidence.insert(key.to_owned(), Evidence { note: Some(note), ..Evidence::default() });
        }
        0.0
    }

    /// One number stands for writing an entry that comes and for taking one out: where they differ, the first, with a note.
    fn written(&mut self, key: &str, level: usize) -> f64 {
        let (write, delete) = (Column::Write { level }, Column::Delete { level });
        let deleted = self.fitted.costs.get(&delete).copied();
        match (self.fitted.costs.get(&write).copied(), deleted) {
            (None, Some(_)) => self.cost(key, delete),
            (Some(written), Some(deleted)) => {
                let apart = written.interval[1] < deleted.interval[0] || deleted.interval[1] < written.interval[0];
                let far = (written.value / deleted.value).ln().abs() > 0.1;
                let value = self.cost(key, write);
                if apart
                    && far
                    && let Some(evidence) = self.evidence.get_mut(key)
                {
                    evidence.note = Some(format!("adding; deleting an entry takes {:.3e} s", deleted.value));
                }
                value
            }
            _ => self.cost(key, write),
        }
    }

    /// Cost for each entry that is there, alone and in batches; none if that was not measured.
    fn overhead(&mut self, key: &str, batching: Batching, column: impl Fn(u32) -> Column) -> Option<Overhead> {
        let is_measured = |batch: &u32| {
            let column = column(*batch);
            self.fitted.costs.contains_key(&column) || self.fitted.zero.contains_key(&column)
        };
        let batches: Vec<u32> = (1..=4096).filter(is_measured).collect();
        let first = *batches.first()?;
        let alone = self.fitted.value(column(first));
        if first != 1 || alone == 0.0 {
            if batches.iter().any(|batch| self.fitted.value(column(*batch)) > 0.0) {
                self.notes.push(format!("{key}: a command alone does not show it, taken for 0"));
            }
            return Some(Overhead::NONE);
        }
        let per_entry_s = self.cost(key, column(1));
        let points: Vec<(u32, f64)> = batches
            .iter()
            .filter(|batch| **batch <= batching.most)
            .filter_map(|batch| Some((*batch, alone / self.fitted.costs.get(&column(*batch))?.value)))
            .collect();
        let speedup = match Curve::fit(&points) {
            Ok(curve) if batching.most > 1 && (1..=batching.most).all(|batch| curve.speedup.at(batch).is_ok()) => {
                curve.speedup
            }
            Ok(_) if batching.most == 1 => Speedup::NONE,
            _ => {
                self.notes.push(format!("{key}: what batches save is no curve above 0; left out"));
                Speedup::NONE
            }
        };
        Some(Overhead { per_entry_s, speedup })
    }
}
