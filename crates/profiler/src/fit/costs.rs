//! Fits the costs of flow table changes for each level to the grid's times.
use super::effect::{self, EffectFit};
use super::linear::{CostEstimate, CostObservation, CostRegression, ZeroCostReason};
use crate::control::{MeasuredBurst, TimedCommandKind};
use crate::single_commands::{self, SingleCommandTime};
use crate::terms::CostTerm;
use std::collections::BTreeMap;
use weir_model::fit::curve::SpeedupCurve;
use weir_model::switch::batch::CommandBatching;
use weir_model::switch::costs::{PriorityCosts, TableCosts};
use weir_model::switch::speedup::{BatchSpeedup, PerEntryCost};
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
pub struct FittedTableCosts {
    /// Costs of each level, from the first.
    pub levels: Vec<TableCosts>,
    /// Evidence by parameter name.
    pub evidence: BTreeMap<String, Evidence>,
    /// Time that a burst takes in addition to its commands, if it is certain; otherwise the notes mention it.
    pub effect: Option<EffectFit>,
    /// Time of each flow in the switch's cache in addition to the effect, in seconds.
    pub revalidate_s: f64,
    /// Remarks for the user.
    pub notes: Vec<String>,
    /// Result of the fit from which the costs were taken.
    pub fitted: CostRegression,
}

/// Returns a burst as an observation for the fit, with the number of its case.
fn observation(timed: &MeasuredBurst, case: u32) -> CostObservation {
    let seconds = timed.seconds();
    let bracket = (timed.high_s - timed.low_s) / 12f64.sqrt();
    let sd = (bracket.powi(2) + (NOISE * seconds).powi(2) + FLOOR_S.powi(2)).sqrt();
    CostObservation { terms: timed.terms.clone(), seconds, sd, case }
}

/// Fits the costs of `levels` levels.
pub fn fit(timed: &[MeasuredBurst], levels: usize, batching: CommandBatching) -> FittedTableCosts {
    // Larger bursts are several batches, of which one waits while another is carried out.
    let is_whole = |one: &&MeasuredBurst| {
        one.seconds() > 0.0
            && (batching.most == 1 || one.command == TimedCommandKind::DeleteMany || one.batch <= batching.most)
    };
    let mut cases = BTreeMap::new();
    let mut case = |one: &MeasuredBurst| {
        let next = u32::try_from(cases.len()).unwrap_or(u32::MAX);
        *cases.entry((one.command, one.priorities, one.entries, one.batch)).or_insert(next)
    };
    let whole: Vec<&MeasuredBurst> = timed.iter().filter(is_whole).collect();
    let observations: Vec<CostObservation> = whole.iter().map(|one| observation(one, case(one))).collect();
    let fitted = CostRegression::fit(&observations);
    let shows = effect::shows(&fitted, &whole);
    let effect = EffectFit::of(&fitted, &whole);
    let mut made = FittedTableCosts {
        levels: Vec::new(),
        evidence: BTreeMap::new(),
        effect,
        revalidate_s: 0.0,
        notes: Vec::new(),
        fitted,
    };
    if made.effect.is_some() {
        made.revalidate_s = made.cost("cache.revalidate", CostTerm::Revalidate);
    }
    for level in 0..levels {
        let costs = made.level(level, batching);
        made.levels.push(costs);
    }
    if let Some(constant) = made.fitted.costs.get(&CostTerm::Constant).filter(|_| shows && made.effect.is_none()) {
        let text = format!(
            "every burst takes {:.3e} s beside what its commands take (control channel, rig): too little to be told from these",
            constant.value
        );
        made.notes.push(text);
    }
    let CostRegression { case_error, by_chance, .. } = made.fitted;
    if case_error > UNEXPLAINED && by_chance < BY_CHANCE {
        let share = case_error * 100.0;
        let text = format!(
            "commands: half of the cases' medians are more than {share:.0} % off what these costs come to: something else takes the time"
        );
        made.notes.push(text);
    }
    made
}

fn evidence(estimate: &CostEstimate) -> Evidence {
    Evidence {
        interval: Some(estimate.interval),
        r2: Some(estimate.r2),
        residual: Some(estimate.residual),
        samples: Some(estimate.samples),
        note: None,
    }
}

impl FittedTableCosts {
    /// Replaces the effect by that of single commands, if there are some: bursts are watched by so many packets that
    /// the switch's threads are busy.
    pub(crate) fn use_singles(&mut self, singles: &[SingleCommandTime]) {
        // Bursts may vary so much that they show no effect, and single commands one all the same.
        let criterion = self.effect.as_ref().map_or(0.0, |of_bursts| of_bursts.criterion);
        if let Some((effect, each_s)) = single_commands::fit(singles, &self.fitted, criterion) {
            let note = Some("of single commands, with an empty and a full cache".to_owned());
            let samples = Some(effect.samples_s.len() as u64);
            let found = Evidence { samples, note, ..Evidence::default() };
            self.evidence.insert("cache.revalidate".to_owned(), found);
            (self.effect, self.revalidate_s) = (Some(effect), each_s);
        }
    }

    fn level(&mut self, level: usize, batching: CommandBatching) -> TableCosts {
        let key = format!("level{}", level + 1);
        let mut both = |name: &str, column: fn(usize, bool, u32) -> CostTerm| {
            let mut of = |several: bool| {
                let key = format!("{key}.{name}.{}.per_entry", if several { "several" } else { "single" });
                self.overhead(&key, batching, |batch| column(level, several, batch))
            };
            let (single, several) = (of(false), of(true));
            // A level without data for one kind of priorities takes the costs of the other kind.
            PriorityCosts {
                single: single.or(several).unwrap_or(PerEntryCost::NONE),
                several: several.or(single).unwrap_or(PerEntryCost::NONE),
            }
        };
        let add = both("add", |level, several, batch| CostTerm::Add { level, several, batch });
        let modify = both("modify", |level, several, batch| CostTerm::Modify { level, several, batch });
        let shift_s = self.cost(&format!("{key}.shift"), CostTerm::Shift { level });
        // Every command searches all levels, so only the sum can be measured.
        let search_s = if level == 0 { self.cost(&format!("{key}.search"), CostTerm::Search) } else { 0.0 };
        let (write_s, delete_s) = self.written(&key, level);
        TableCosts { add, modify, shift_s, search_s, write_s, delete_s }
    }

    fn cost(&mut self, key: &str, column: CostTerm) -> f64 {
        if let Some(estimate) = self.fitted.costs.get(&column) {
            self.evidence.insert(key.to_owned(), evidence(estimate));
            return estimate.value;
        }
        if let Some(zero) = self.fitted.zero.get(&column) {
            let found = match *zero {
                ZeroCostReason::Small(value, most) => Evidence {
                    interval: Some([0.0, most.max(0.0)]),
                    note: Some(format!("not told from 0: {value:.3e} s")),
                    ..Evidence::default()
                },
                ZeroCostReason::InOthers => Evidence {
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
        let (write, delete) = (CostTerm::Write { level }, CostTerm::Delete { level });
        let is_measured =
            |column: &CostTerm| self.fitted.costs.contains_key(column) || self.fitted.zero.contains_key(column);
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
    fn range(&self, column: CostTerm) -> Option<(f64, [f64; 2])> {
        let fitted = self.fitted.costs.get(&column).map(|estimate| (estimate.value, estimate.interval));
        fitted.or_else(|| match self.fitted.zero.get(&column)? {
            ZeroCostReason::Small(_, most) => Some((0.0, [0.0, most.max(0.0)])),
            ZeroCostReason::InOthers => None,
        })
    }

    /// Returns the cost for each present entry, of a command alone and in batches; none if it was not measured.
    fn overhead(
        &mut self,
        key: &str,
        batching: CommandBatching,
        column: impl Fn(u32) -> CostTerm,
    ) -> Option<PerEntryCost> {
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
            // One cost of several may seem to be above 0 by chance.
            let shown = batches.iter().filter(|batch| self.fitted.value(column(**batch)) > 0.0).count();
            if 2 * shown > batches.len() {
                self.notes.push(format!("{key}: a command alone does not show it, taken for 0"));
            }
            return Some(PerEntryCost::NONE);
        }
        let per_entry_s = self.cost(key, column(1));
        let points: Vec<(u32, f64)> = batches
            .iter()
            .filter(|batch| **batch <= batching.most)
            .filter_map(|batch| Some((*batch, alone / self.fitted.costs.get(&column(*batch))?.value)))
            .collect();
        let speedup = match SpeedupCurve::fit(&points) {
            Ok(curve) if batching.most > 1 && (1..=batching.most).all(|batch| curve.speedup.at(batch).is_ok()) => {
                curve.speedup
            }
            Ok(_) if batching.most == 1 => BatchSpeedup::NONE,
            _ => {
                self.notes.push(format!("{key}: what batches save is no curve above 0; left out"));
                BatchSpeedup::NONE
            }
        };
        Some(PerEntryCost { per_entry_s, speedup })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PriorityOrder;

    /// A burst after so many entries, its number of commands, and its run, that took this time.
    fn burst(
        command: TimedCommandKind,
        (entries, batch, run): (u32, u32, u32),
        seconds: f64,
        terms: &str,
    ) -> MeasuredBurst {
        MeasuredBurst {
            command,
            priorities: PriorityOrder::Same,
            entries: entries.into(),
            batch,
            run,
            low_s: seconds - 1e-5,
            high_s: seconds + 1e-5,
            barrier_s: 1e-3,
            reordered: false,
            terms: terms.parse().unwrap(),
        }
    }

    /// A software switch: commands take constant time, and show when its threads check for changes. Rarely the
    /// machine is busy with something else.
    fn in_software(spread: f64, seed: u64) -> Vec<MeasuredBurst> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut all = Vec::new();
        for (command, each_s, what) in [
            (TimedCommandKind::Add, 3e-4, "write.0"),
            (TimedCommandKind::Modify, 4e-4, "write.0"),
            (TimedCommandKind::Delete, 2e-4, "delete.0"),
        ] {
            for (entries, batch, run) in [1_u32, 50, 200, 1000]
                .into_iter()
                .flat_map(|entries| [1_u32, 5, 20].map(move |batch| (entries, batch)))
                .flat_map(|(entries, batch)| (0..5).map(move |run| (entries, batch, run)))
            {
                let searched = if command == TimedCommandKind::Add { 0 } else { batch };
                let text = format!(
                    "constant=1 search={searched} {what}={batch} add.0.single.{batch}={}",
                    if command == TimedCommandKind::Add { entries * batch } else { 0 }
                );
                let chance = (spread * (random.f64() + random.f64() - 1.0)).exp();
                let stopped = if random.u32(0..20) == 0 { 0.05 } else { 0.0 };
                let seconds = (4e-3 + each_s * f64::from(batch)) * chance + stopped;
                all.push(burst(command, (entries, batch, run), seconds, &text));
            }
        }
        all
    }

    #[test]
    fn a_switch_whose_commands_take_the_same_time_is_explained() {
        for seed in 0..5 {
            let timed = in_software(0.1, seed);
            let costs = fit(&timed, 1, CommandBatching::NONE);
            let of = costs.levels[0];
            let near = |found: f64, truth: f64, share: f64| (found / truth - 1.0).abs() < share;
            assert!(near(of.write_s, 3e-4, 0.15) && near(of.search_s, 1e-4, 0.5), "{costs:?}");
            assert!(near(costs.fitted.value(CostTerm::Constant), 4e-3, 0.1), "{costs:?}");
            assert!(costs.fitted.error < 0.15 && costs.fitted.r2 > 0.3, "{costs:?}");
            assert!(costs.notes.iter().all(|note| !note.starts_with("commands:")), "{:?}", costs.notes);
            assert!(costs.evidence["level1.write"].residual.is_some_and(|share| share > 0.01 && share < 0.1));
            // Commands alone all take the same time, so there is no variance to explain, and nothing unexplained.
            let alone: Vec<MeasuredBurst> = timed.into_iter().filter(|one| one.batch == 1).collect();
            let costs = fit(&alone, 1, CommandBatching::NONE);
            assert!(costs.fitted.r2 < 0.5 && costs.fitted.error < 0.1, "{costs:?}");
            assert!(costs.notes.iter().all(|note| !note.starts_with("commands:")), "{:?}", costs.notes);
        }
    }

    /// Times of bursts on a switch whose effect varies much, with a skewed law: an exponential one.
    fn with_skewed_effect(each_s: f64, seed: u64) -> Vec<MeasuredBurst> {
        let mut random = fastrand::Rng::with_seed(seed);
        let cells =
            [1_u32, 40, 200].into_iter().flat_map(|entries| [1_u32, 5, 20, 50].map(move |batch| (entries, batch)));
        let runs: Vec<(u32, u32, u32)> =
            cells.flat_map(|(entries, batch)| (0..30).map(move |run| (entries, batch, run))).collect();
        let timed = |(entries, batch, run): (u32, u32, u32)| {
            let seconds = each_s * f64::from(batch) - 4e-3 * (1.0 - random.f64()).ln() + 3e-5;
            burst(TimedCommandKind::Add, (entries, batch, run), seconds, &format!("constant=1 write.0={batch}"))
        };
        runs.into_iter().map(timed).collect()
    }

    #[test]
    fn skewed_chance_biases_no_cost() {
        let found =
            (0..100).map(|seed| fit(&with_skewed_effect(60e-6, seed), 1, CommandBatching::NONE).levels[0].write_s);
        let mean_s = found.sum::<f64>() / 100.0;
        assert!((mean_s / 60e-6 - 1.0).abs() < 0.1, "{mean_s}");
    }

    #[test]
    fn chance_is_told_from_what_costs_do_not_explain() {
        let says = |timed: &[MeasuredBurst]| {
            let costs = fit(timed, 1, CommandBatching::NONE);
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
        timed.retain(|one| one.command == TimedCommandKind::Add);
        let costs = fit(&timed, 1, CommandBatching::NONE);
        let found = &costs.evidence["level1.add.single.per_entry"];
        assert_eq!(costs.levels[0].add.single.per_entry_s, 0.0);
        assert!(found.interval.is_some_and(|[low, high]| low == 0.0 && high < 1e-5), "{found:?}");
        assert!(found.note.as_ref().is_some_and(|note| note.starts_with("not told from 0")), "{found:?}");
    }
}
