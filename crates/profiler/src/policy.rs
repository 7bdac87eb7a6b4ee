//! Finds which entry moves to the next level when one is full: Cheng (2015), section 4.2.1, in two experiments.
//!
//! Some switches consider packets when an entry arrives for which there is no room, some continuously. So entries
//! that fill the first level get packets *first*, and then half as many more are added. Entries that are slow
//! afterwards were displaced or came too late. If only the newest entries are slow, a second experiment checks
//! whether packets bring entries back.
use crate::bench::PlannedProbe;
use crate::bench::TestBench;
use crate::levels::{MeasuredLevels, PRIORITY, SlowEntryCounts, fastest, once};
use crate::rules::{SHORTEST, TestFlowEntry, number};
use crate::store::{RawDataRow, RawDataStore};
use crate::{MeasurementGrid, ProfilerError};
use std::time::Duration;
use weir_model::fit::cache_policy::{PolicyInference, ProbedEntry, infer, plan};
use weir_model::switch::policy::{EntryAttributes, EvictionAttribute, EvictionCriterion, EvictionPolicy};
use weir_profile::MatchLayers;

/// Passes over the entries of an experiment: a single late packet makes no entry slow.
const LOOKS: usize = 3;
/// Lowest priority given to entries.
const PRIORITIES_FROM: u16 = 501;
/// Largest first level, in entries, whose policy is searched for; larger ones take too long.
const MAX_ENTRIES: u64 = 20_000;

/// Policy found in a switch.
#[derive(serde::Serialize, serde::Deserialize, Debug, Clone, PartialEq, Default)]
pub struct MeasuredPolicy {
    /// Ranks of the policy, the deciding one first.
    pub policy: EvictionPolicy,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// Finds the ranks one after another: those already found are made equal. Ends when the time of insertion decides.
pub(crate) fn measure(
    bench: &mut TestBench<'_>,
    grid: &MeasurementGrid,
    sizes: &MeasuredLevels,
    store: &mut RawDataStore,
) -> Result<MeasuredPolicy, ProfilerError> {
    let mut found = MeasuredPolicy::default();
    let room = match sizes.sizes.as_slice() {
        [Some(first), _, ..] if (8..=MAX_ENTRIES).contains(first) => *first,
        [_] => return Ok(found),
        _ => {
            found.notes.push(format!("policy: levels of other than 8 to {MAX_ENTRIES} entries are not looked at"));
            return Ok(found);
        }
    };
    bench.during = "looking for the policy of the tables".to_owned();
    let spacing = Duration::from_millis(grid.spacing_ms.into());
    for round in 0..4 {
        let equal: Vec<EvictionAttribute> = found.policy.0.iter().map(|rank| rank.attribute).collect();
        let mut experiment = PolicyExperiment { bench, sizes, spacing, equal: &equal };
        let pushed = experiment.push(room)?;
        keep(store, round, "push", &pushed)?;
        let rank = match decided(&pushed, room)? {
            RankDecision::By(rank) => rank,
            RankDecision::Newest => {
                let refreshed = experiment.refresh(room)?;
                keep(store, round, "refresh", &refreshed)?;
                match by_packets(&refreshed)? {
                    Some(rank) => rank,
                    None => break,
                }
            }
            RankDecision::No(why) => {
                found.notes.push(why);
                break;
            }
        };
        found.policy.0.push(rank);
        if rank.attribute == EvictionAttribute::Modified {
            break;
        }
    }
    Ok(found)
}

struct PolicyExperiment<'e, 'a> {
    bench: &'e mut TestBench<'a>,
    sizes: &'e MeasuredLevels,
    spacing: Duration,
    equal: &'e [EvictionAttribute],
}

impl PolicyExperiment<'_, '_> {
    /// Fills the first level with entries, sends them packets, and adds half as many entries. Returns which ones are
    /// slow.
    fn push(&mut self, room: u64) -> Result<Vec<ProbedEntry>, ProfilerError> {
        let mut standings = self.plan(room.div_ceil(2).max(4))?;
        standings.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        let filled = standings.len();
        for at in 0..(filled / 2) as u64 {
            let priority = self.priority();
            standings.push(EntryAttributes { modified: filled as u64 + at + 1, used: 0, traffic: 0, priority });
        }
        let rules = rules(&standings);
        self.bench.clear()?;
        self.bench.fill(&rules[..filled])?;
        self.send(&rules[..filled], &standings)?;
        self.bench.fill(&rules[filled..])?;
        self.probe(&rules, &standings)
    }

    /// Adds twice as many entries as the first level holds, then sends them packets: the published experiment.
    /// Returns which ones are slow.
    fn refresh(&mut self, room: u64) -> Result<Vec<ProbedEntry>, ProfilerError> {
        let standings = self.plan(room)?;
        let rules = rules(&standings);
        self.bench.clear()?;
        let taken = self.bench.fill(&rules)?;
        self.send(&rules[..taken], &standings)?;
        self.probe(&rules[..taken], &standings)
    }

    fn plan(&mut self, room: u64) -> Result<Vec<EntryAttributes>, ProfilerError> {
        let random = &mut self.bench.random;
        Ok(plan(room, self.equal, &mut || random.u16(PRIORITIES_FROM..60_000))?)
    }

    fn priority(&mut self) -> u16 {
        if self.equal.contains(&EvictionAttribute::Priority) {
            PRIORITY
        } else {
            self.bench.random.u16(PRIORITIES_FROM..60_000)
        }
    }

    /// Sends packets to entries in the order given by the standings.
    fn send(&mut self, rules: &[TestFlowEntry], standings: &[EntryAttributes]) -> Result<(), ProfilerError> {
        let mut turns: Vec<usize> = (0..rules.len()).filter(|at| standings[*at].used > 0).collect();
        turns.sort_by_key(|at| standings[*at].used);
        let gap = (self.bench.forwarding() * 4).max(self.bench.settings.finest * 5);
        let bytes = |standing: &EntryAttributes| u32::try_from(standing.traffic).unwrap_or(SHORTEST);
        let packets: Vec<PlannedProbe> =
            turns.into_iter().map(|at| PlannedProbe { rule: rules[at], bytes: bytes(&standings[at]), gap }).collect();
        self.bench.delays(&packets).map(drop)
    }

    fn probe(
        &mut self,
        rules: &[TestFlowEntry],
        standings: &[EntryAttributes],
    ) -> Result<Vec<ProbedEntry>, ProfilerError> {
        let mut looks = Vec::with_capacity(LOOKS);
        for _ in 0..LOOKS {
            looks.push(once(self.bench, rules, self.spacing)?);
        }
        // Packets of later passes may match entries where those of the first pass moved them.
        let slow = SlowEntryCounts::of(&looks, |_, delay| self.sizes.level(delay) > 0);
        looks.truncate(if slow.are_moved() { 1 } else { LOOKS });
        let delays = fastest(&looks);
        let probed = delays.into_iter().zip(standings).filter_map(|(delay, standing)| {
            delay.map(|delay| ProbedEntry { standing: *standing, slow: self.sizes.level(delay) > 0 })
        });
        Ok(probed.collect())
    }
}

fn rules(standings: &[EntryAttributes]) -> Vec<TestFlowEntry> {
    let rule = |(at, standing): (u32, &EntryAttributes)| TestFlowEntry {
        number: number(0, at),
        priority: standing.priority,
        kind: MatchLayers::L2L3,
    };
    (0..).zip(standings).map(rule).collect()
}

fn keep(
    store: &mut RawDataStore,
    round: u32,
    experiment: &'static str,
    probed: &[ProbedEntry],
) -> Result<(), ProfilerError> {
    for probe in probed {
        store.write(&RawDataRow::Standing { round, experiment, probe: *probe })?;
    }
    Ok(())
}

/// Result of the first experiment.
enum RankDecision {
    By(EvictionCriterion),
    /// The newest entries found no room.
    Newest,
    /// No known attribute decides; the text says why.
    No(String),
}

fn decided(probed: &[ProbedEntry], room: u64) -> Result<RankDecision, ProfilerError> {
    let is_new = |probe: &ProbedEntry| probe.standing.modified > room;
    let wrong = probed.iter().filter(|probe| probe.slow != is_new(probe)).count();
    if wrong * 20 <= probed.len() {
        return Ok(RankDecision::Newest);
    }
    if !has_both(probed) {
        return Ok(RankDecision::No(of_one_level(probed)));
    }
    let inference = infer(probed)?;
    Ok(match inference.found {
        Some(rank) => RankDecision::By(rank),
        None => RankDecision::No(undetermined(&inference)),
    })
}

/// Returns true if both levels hold entries. A level feigned by a busy machine has all entries or none.
fn has_both(probed: &[ProbedEntry]) -> bool {
    probed.iter().any(|probe| probe.slow) && probed.iter().any(|probe| !probe.slow)
}

/// Returns the rank by which packets bring entries back, if they do.
fn by_packets(probed: &[ProbedEntry]) -> Result<Option<EvictionCriterion>, ProfilerError> {
    if !has_both(probed) {
        return Ok(None);
    }
    let inference = infer(probed)?;
    Ok(inference.found.filter(|rank| matches!(rank.attribute, EvictionAttribute::Used | EvictionAttribute::Traffic)))
}

fn of_one_level(probed: &[ProbedEntry]) -> String {
    let slow = probed.iter().filter(|probe| probe.slow).count();
    format!("policy: undetermined: {slow} of {} entries were slow, where some, but not all, are expected", probed.len())
}

fn undetermined(inference: &PolicyInference) -> String {
    let best = inference.scores.first();
    let best = best.map_or_else(String::new, |score| {
        let EvictionCriterion { attribute, evicts } = score.rank;
        format!(": nearest is {evicts:?} {attribute:?}, which agrees to {:.0} %", score.jaccard * 100.0).to_lowercase()
    });
    format!("policy: undetermined{best}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed(is_slow: impl Fn(u64) -> bool) -> Vec<ProbedEntry> {
        let standing = |modified| EntryAttributes { modified, used: 0, traffic: 0, priority: 1000 };
        (1..=60).map(|modified| ProbedEntry { standing: standing(modified), slow: is_slow(modified) }).collect()
    }

    /// A busy machine can feign a second level: then the entries expected to be slow are all fast, or those of the
    /// first level all slow.
    #[test]
    fn a_level_that_is_none_leaves_the_policy_open() {
        for (slow, expected) in [(false, "0 of 60"), (true, "60 of 60")] {
            let Ok(RankDecision::No(why)) = decided(&probed(|_| slow), 40) else {
                panic!("{slow}: no policy can be told")
            };
            assert!(why.contains(expected), "{why}");
            assert_eq!(by_packets(&probed(|_| slow)).unwrap(), None);
        }
        assert!(matches!(decided(&probed(|modified| modified > 40), 40), Ok(RankDecision::Newest)));
    }
}
