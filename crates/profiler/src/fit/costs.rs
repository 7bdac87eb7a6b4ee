//! Fits the costs of flow table changes for each level to the grid's times.
use super::effect::{self, Effect};
use super::linear::{Estimate, Fitted, Observation, Zero};
use crate::control::{Command, Timed};
use crate::terms::Column;
use std::collections::BTreeMap;
use weir_model::fit::curve::Curve;
use weir_model::switch::batch::Batching;
use weir_model::switch::costs::{ByPriorities, TableCosts};
use weir_model::switch::speedup::{Overhead, Speedup};
use weir_profile::Evidence;

/// Smallest noise assumed, as a share of a time.
const NOISE: f64 = 0.003;
/// Smallest error assumed, in seconds, for clock and wire.
const FLOOR_S: f64 = 2e-6;
/// Smallest relative difference from the cost of writing at which deleting gets a cost of its own. The two confidence
/// intervals must be disjoint, too.
const APART: f64 = 0.02;
/// Costs do not explain the times if half of the cases' medians deviate from the fit by more than this share, and
/// chance is no explanation ([`BY_CHANCE`]).
const UNEXPLAINED: f64 = 0.25;
/// Probability from which on chance explains the deviation: medians of a few runs deviate, too.
const BY_CHANCE: f64 = 0.01;

/// Costs by level, with the evidence for each parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// Costs of each level, from the first.
    pub levels: Vec<TableCosts>,
    /// Evidence by parameter name.
    pub evidence: BTreeMap<String, Evidence>,
    /// Time that a burst takes in addition to its commands, if it is certain; otherwise the notes mention it.
    pub effect: Option<Effect>,
    /// Remarks for the user.
    pub notes: Vec<String>,
    /// Result of the fit from which the costs were taken.
    pub fitted: Fitted,
}

/// Returns a burst as an observation for the fit, with the number of its case.
fn observation(timed: &Timed, case: u32) -> Observation {
    let seconds = timed.seconds();
    let bracket = (timed.high_s - timed.low_s) / 12f64.sqrt();
    let sd = (bracket.powi(2) + (NOISE * seconds).powi(2) + FLOOR_S.powi(2)).sqrt();
    Observation { terms: timed.terms.clone(), seconds, sd, case }
}

/// Fits the costs of `levels` levels.
pub fn fit(timed: &[Timed], levels: usize, batching: Batching) -> Costs {
    // Larger bursts are several batches, of which one waits while another is carried out.
    let is_whole = |one: &&Timed| {
        one.seconds() > 0.0 && (batching.most == 1 || one.command == Command::DeleteMany || one.batch <= batching.most)
    };
    let mut cases = BTreeMap::new();
    let mut case = |one: &Timed| {
        let next = u32::try_from(cases.len()).unwrap_or(u32::MAX);
        *cases.entry((one.command, one.priorities, one.entries, one.batch)).or_insert(next)
    };
    let whole: Vec<&Timed> = timed.iter().filter(is_whole).collect();
    let observations: Vec<Observation> = whole.iter().map(|one| observation(one, case(one))).collect();
    let fitted = Fitted::fit(&observations);
    let shows = effect::shows(&fitted, &whole);
    let effect = Effect::of(&fitted, &whole);
    let mut made = Costs { levels: Vec::new(), evidence: BTreeMap::new(), effect, notes: Vec::new(), fitted };
    for level in 0..levels {
        let costs = made.level(level, batching);
        made.levels.push(costs);
    }
    if let Some(constant) = made.fitted.costs.get(&Column::Constant).filter(|_| shows && made.effect.is_none()) {
        let text = format!(
            "every burst takes {:.3e} s beside what its commands take (control channel, rig): too little to be told from these",
            constant.value
        );
        made.notes.push(text);
    }
    let Fitted { case_error, by_chance, .. } = made.fitted;
    if case_error > UNEXPLAINED && by_chance < BY_CHANCE {
        let share = case_error * 100.0;
        let text = format!(
            "commands: half of the cases' medians are more than {share:.0} % off what these costs come to: something else takes the time"
        );
        made.notes.push(text);
    }
    made
}

fn evidence(estimate: &Estimate) -> Evidence {
    Evidence {
        interval: Some(estimate.interval),
        r2: Some(estimate.r2),
        residual: Some(estimate.residual),
        samples: Some(estimate.samples),
        note: None,
    }
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
            // A level without data for one kind of priorities takes the costs of the other kind.
            ByPriorities {
                single: single.or(several).unwrap_or(Overhead::NONE),
                several: several.or(single).unwrap_or(Overhead::NONE),
            }
        };
        let add = both("add", |level, several, batch| Column::Add { level, several, batch });
        let modify = both("modify", |level, several, batch| Column::Modify { level, several, batch });
        let shift_s = self.cost(&format!("{key}.shift"), Column::Shift { level });
        // Every command searches all levels, so only the sum can be measured.
        let search_s = if level == 0 { self.cost(&format!("{key}.search"), Column::Search) } else { 0.0 };
        let (write_s, delete_s) = self.written(&key, level);
        TableCosts { add, modify, shift_s, search_s, write_s, delete_s }
    }

    fn cost(&mut self, key: &str, column: Column) -> f64 {
        if let Some(estimate) = self.fitted.costs.get(&column) {
            self.evidence.insert(key.to_owned(), evidence(estimate));
            return estimate.value;
        }
        if let Some(zero) = self.fitted.zero.get(&column) {
            let found = match *zero {
                Zero::Small(value, most) => Evidence {
                    interval: Some([0.0, most.max(0.0)]),
                    note: Some(format!("not told from 0: {value:.3e} s")),
                    ..Evidence::default()
                },
                Zero::InOthers => Evidence {
                    note: Some("no burst tells it apart from other costs, which have it in them".to_owned()),
                    ..Evidence::default()
                },
            };
            self.evidence.insert(key.to_owned(), found);
        }
        0.0
    }

    /// Returns the cost of writing an entry, and that of deleting one where it differs.
    fn written(&mut self, key: &str, level: usize) -> (f64, Option<f64>) {
        let (write, delete) = (Column::Write { level }, Column::Delete { level });
        let is_measured =
            |column: &Column| self.fitted.costs.contains_key(column) || self.fitted.zero.contains_key(column);
        let (of_write, of_delete) = (self.range(write), self.range(delete));
        let key_of = |name: &str| format!("{key}.{name}");
        if !is_measured(&write) && is_measured(&delete) {
            return (self.cost(&key_of("write"), delete), None);
        }
        let write_s = self.cost(&key_of("write"), write);
        let is_else = match (of_write, of_delete) {
            (Some((written, [low, high])), Some((deleted, [from, to]))) => {
                (high < from || to < low) && (written - deleted).abs() > APART * written.max(deleted)
            }
            _ => false,
        };
        (write_s, is_else.then(|| self.cost(&key_of("delete"), delete)))
    }

    /// Returns a cost and its interval; none if the times do not determine it.
    fn range(&self, column: Column) -> Option<(f64, [f64; 2])> {
        let fitted = self.fitted.costs.get(&column).map(|estimate| (estimate.value, estimate.interval));
        fitted.or_else(|| match self.fitted.zero.get(&column)? {
            Zero::Small(_, most) => Some((0.0, [0.0, most.max(0.0)])),
            Zero::InOthers => None,
        })
    }

    /// Returns the cost for each present entry, of a command alone and in batches; none if it was not measured.
    fn overhead(&mut self, key: &str, batching: Batching, column: impl Fn(u32) -> Column) -> Option<Overhead> {
        let is_measured = |batch: &u32| {
            let column = column(*batch);
            self.fitted.costs.contains_key(&column) || self.fitted.zero.contains_key(&column)
        };
        let batches: Vec<u32> = (1..=4096).filter(is_measured).collect();
        let first = *batches.first()?;
        let alone = self.fitted.value(column(first));
        if first != 1 || alone == 0.0 {
            // The evidence gives the largest value that the cost may have.
            self.cost(key, column(1));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Priorities;

    /// A software switch: commands take constant time, and show when its threads check for changes. Rarely the
    /// machine is busy with something else.
    fn in_software(spread: f64, seed: u64) -> Vec<Timed> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut all = Vec::new();
        for (command, each_s, what) in
            [(Command::Add, 3e-4, "write.0"), (Command::Modify, 4e-4, "write.0"), (Command::Delete, 2e-4, "delete.0")]
        {
            for (entries, batch, run) in [1_u32, 50, 200, 1000]
                .into_iter()
                .flat_map(|entries| [1_u32, 5, 20].map(move |batch| (entries, batch)))
                .flat_map(|(entries, batch)| (0..5).map(move |run| (entries, batch, run)))
            {
                let searched = if command == Command::Add { 0 } else { batch };
                let text = format!(
                    "constant=1 search={searched} {what}={batch} add.0.single.{batch}={}",
                    if command == Command::Add { entries * batch } else { 0 }
                );
                let chance = (spread * (random.f64() + random.f64() - 1.0)).exp();
                let stopped = if random.u32(0..20) == 0 { 0.05 } else { 0.0 };
                let seconds = (4e-3 + each_s * f64::from(batch)) * chance + stopped;
                all.push(Timed {
                    command,
                    priorities: Priorities::Same,
                    entries: entries.into(),
                    batch,
                    run,
                    low_s: seconds - 1e-5,
                    high_s: seconds + 1e-5,
                    barrier_s: 1e-3,
                    reordered: false,
                    terms: text.parse().unwrap(),
                });
            }
        }
        all
    }

    #[test]
    fn a_switch_whose_commands_take_the_same_time_is_explained() {
        for seed in 0..5 {
            let timed = in_software(0.1, seed);
            let costs = fit(&timed, 1, Batching::NONE);
            let of = costs.levels[0];
            let near = |found: f64, truth: f64, share: f64| (found / truth - 1.0).abs() < share;
            assert!(near(of.write_s, 3e-4, 0.15) && near(of.search_s, 1e-4, 0.5), "{costs:?}");
            assert!(near(costs.fitted.value(Column::Constant), 4e-3, 0.1), "{costs:?}");
            assert!(costs.fitted.error < 0.15 && costs.fitted.r2 > 0.3, "{costs:?}");
            assert!(costs.notes.iter().all(|note| !note.starts_with("commands:")), "{:?}", costs.notes);
            assert!(costs.evidence["level1.write"].residual.is_some_and(|share| share > 0.01 && share < 0.1));
            // Commands alone all take the same time, so there is no variance to explain, and nothing unexplained.
            let alone: Vec<Timed> = timed.into_iter().filter(|one| one.batch == 1).collect();
            let costs = fit(&alone, 1, Batching::NONE);
            assert!(costs.fitted.r2 < 0.5 && costs.fitted.error < 0.1, "{costs:?}");
            assert!(costs.notes.iter().all(|note| !note.starts_with("commands:")), "{:?}", costs.notes);
        }
    }

    #[test]
    fn chance_is_told_from_what_costs_do_not_explain() {
        let says = |timed: &[Timed]| {
            let costs = fit(timed, 1, Batching::NONE);
            let says = costs.notes.iter().any(|note| note.starts_with("commands: half of the cases' medians"));
            (says, costs.fitted)
        };
        let (is_said, fitted) = says(&in_software(1.0, 1));
        assert!(!is_said && fitted.error > 0.2 && fitted.case_error < UNEXPLAINED, "runs are far apart: {fitted:?}");
        // The extra time depends on the case in a way that no profile can express.
        let mut timed = in_software(0.1, 1);
        timed.iter_mut().filter(|one| (one.entries + u64::from(one.batch)) % 2 == 0).for_each(|one| {
            one.low_s *= 5.0;
            one.high_s *= 5.0;
        });
        let (is_said, fitted) = says(&timed);
        assert!(is_said, "{fitted:?}");
    }

    #[test]
    fn what_may_be_nothing_says_how_much_it_may_be() {
        let mut timed = in_software(0.2, 7);
        timed.retain(|one| one.command == Command::Add);
        let costs = fit(&timed, 1, Batching::NONE);
        let found = &costs.evidence["level1.add.single.per_entry"];
        assert_eq!(costs.levels[0].add.single.per_entry_s, 0.0);
        assert!(found.interval.is_some_and(|[low, high]| low == 0.0 && high < 1e-5), "{found:?}");
        assert!(found.note.as_ref().is_some_and(|note| note.starts_with("not told from 0")), "{found:?}");
    }
}
