//! Finds which entry moves to the next level when one is full: Cheng (2015), section 4.2.1, in two experiments.
//!
//! Some switches consider packets when an entry arrives for which there is no room, some continuously. So entries
//! that fill the first level get packets *first*, and then half as many more are added. Entries that are slow
//! afterwards were displaced or came too late. If only the newest entries are slow, a second experiment checks
//! whether packets bring entries back.
use crate::bench::Bench;
use crate::bench::Planned;
use crate::levels::{PRIORITY, Sizes, Slow, fastest, once};
use crate::rules::{Rule, SHORTEST, number};
use crate::store::{Row, Store};
use crate::{Grid, ProfilerError};
use std::time::Duration;
use weir_model::fit::cache_policy::{Inference, Probed, infer, plan};
use weir_model::switch::policy::{Attribute, Policy, Rank, Standing};
use weir_profile::MatchKind;

/// Passes over the entries of an experiment: a single late packet makes no entry slow.
const LOOKS: usize = 3;
/// Lowest priority given to entries.
const PRIORITIES_FROM: u16 = 501;
/// Largest first level, in entries, whose policy is searched for; larger ones take too long.
const MAX_ENTRIES: u64 = 20_000;

/// Policy found in a switch.
#[derive(serde::Serialize, serde::Deserialize, Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// Ranks of the policy, the deciding one first.
    pub policy: Policy,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// Finds the ranks one after another: those already found are made equal. Ends when the time of insertion decides.
pub(crate) fn measure(
    bench: &mut Bench<'_>,
    grid: &Grid,
    sizes: &Sizes,
    store: &mut Store,
) -> Result<Found, ProfilerError> {
    let mut found = Found::default();
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
        let equal: Vec<Attribute> = found.policy.0.iter().map(|rank| rank.attribute).collect();
        let mut experiment = Experiment { bench, sizes, spacing, equal: &equal };
        let pushed = experiment.push(room)?;
        keep(store, round, "push", &pushed)?;
        let rank = match decided(&pushed, room)? {
            Decided::By(rank) => rank,
            Decided::Newest => {
                let refreshed = experiment.refresh(room)?;
                keep(store, round, "refresh", &refreshed)?;
                match by_packets(&refreshed)? {
                    Some(rank) => rank,
                    None => break,
                }
            }
            Decided::No(why) => {
                found.notes.push(why);
                break;
            }
        };
        found.policy.0.push(rank);
        if rank.attribute == Attribute::Modified {
            break;
        }
    }
    Ok(found)
}

struct Experiment<'e, 'a> {
    bench: &'e mut Bench<'a>,
    sizes: &'e Sizes,
    spacing: Duration,
    equal: &'e [Attribute],
}

impl Experiment<'_, '_> {
    /// Fills the first level with entries, sends them packets, and adds half as many entries. Returns which ones are
    /// slow.
    fn push(&mut self, room: u64) -> Result<Vec<Probed>, ProfilerError> {
        let mut standings = self.plan(room.div_ceil(2).max(4))?;
        standings.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        let filled = standings.len();
        for at in 0..(filled / 2) as u64 {
            let priority = self.priority();
            standings.push(Standing { modified: filled as u64 + at + 1, used: 0, traffic: 0, priority });
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
    fn refresh(&mut self, room: u64) -> Result<Vec<Probed>, ProfilerError> {
        let standings = self.plan(room)?;
        let rules = rules(&standings);
        self.bench.clear()?;
        let taken = self.bench.fill(&rules)?;
        self.send(&rules[..taken], &standings)?;
        self.probe(&rules[..taken], &standings)
    }

    fn plan(&mut self, room: u64) -> Result<Vec<Standing>, ProfilerError> {
        let random = &mut self.bench.random;
        Ok(plan(room, self.equal, &mut || random.u16(PRIORITIES_FROM..60_000))?)
    }

    fn priority(&mut self) -> u16 {
        if self.equal.contains(&Attribute::Priority) {
            PRIORITY
        } else {
            self.bench.random.u16(PRIORITIES_FROM..60_000)
        }
    }

    /// Sends packets to entries in the order given by the standings.
    fn send(&mut self, rules: &[Rule], standings: &[Standing]) -> Result<(), ProfilerError> {
        let mut turns: Vec<usize> = (0..rules.len()).filter(|at| standings[*at].used > 0).collect();
        turns.sort_by_key(|at| standings[*at].used);
        let gap = (self.bench.forwarding() * 4).max(self.bench.settings.finest * 5);
        let bytes = |standing: &Standing| u32::try_from(standing.traffic).unwrap_or(SHORTEST);
        let packets: Vec<Planned> =
            turns.into_iter().map(|at| Planned { rule: rules[at], bytes: bytes(&standings[at]), gap }).collect();
        self.bench.delays(&packets).map(drop)
    }

    fn probe(&mut self, rules: &[Rule], standings: &[Standing]) -> Result<Vec<Probed>, ProfilerError> {
        let mut looks = Vec::with_capacity(LOOKS);
        for _ in 0..LOOKS {
            looks.push(once(self.bench, rules, self.spacing)?);
        }
        // Packets of later passes may match entries where those of the first pass moved them.
        let slow = Slow::of(&looks, |_, delay| self.sizes.level(delay) > 0);
        looks.truncate(if slow.are_moved() { 1 } else { LOOKS });
        let delays = fastest(&looks);
        let probed = delays.into_iter().zip(standings).filter_map(|(delay, standing)| {
            delay.map(|delay| Probed { standing: *standing, slow: self.sizes.level(delay) > 0 })
        });
        Ok(probed.collect())
    }
}

fn rules(standings: &[Standing]) -> Vec<Rule> {
    let rule = |(at, standing): (u32, &Standing)| Rule {
        number: number(0, at),
        priority: standing.priority,
        kind: MatchKind::L2L3,
    };
    (0..).zip(standings).map(rule).collect()
}

fn keep(store: &mut Store, round: u32, experiment: &'static str, probed: &[Probed]) -> Result<(), ProfilerError> {
    for probe in probed {
        store.write(&Row::Standing { round, experiment, probe: *probe })?;
    }
    Ok(())
}

/// Result of the first experiment.
enum Decided {
    By(Rank),
    /// The newest entries found no room.
    Newest,
    /// No known attribute decides; the text says why.
    No(String),
}

fn decided(probed: &[Probed], room: u64) -> Result<Decided, ProfilerError> {
    let is_new = |probe: &Probed| probe.standing.modified > room;
    let wrong = probed.iter().filter(|probe| probe.slow != is_new(probe)).count();
    if wrong * 20 <= probed.len() {
        return Ok(Decided::Newest);
    }
    if !has_both(probed) {
        return Ok(Decided::No(of_one_level(probed)));
    }
    let inference = infer(probed)?;
    Ok(match inference.found {
        Some(rank) => Decided::By(rank),
        None => Decided::No(undetermined(&inference)),
    })
}

/// Returns true if both levels hold entries. A level feigned by a busy machine has all entries or none.
fn has_both(probed: &[Probed]) -> bool {
    probed.iter().any(|probe| probe.slow) && probed.iter().any(|probe| !probe.slow)
}

/// Returns the rank by which packets bring entries back, if they do.
fn by_packets(probed: &[Probed]) -> Result<Option<Rank>, ProfilerError> {
    if !has_both(probed) {
        return Ok(None);
    }
    let inference = infer(probed)?;
    Ok(inference.found.filter(|rank| matches!(rank.attribute, Attribute::Used | Attribute::Traffic)))
}

fn of_one_level(probed: &[Probed]) -> String {
    let slow = probed.iter().filter(|probe| probe.slow).count();
    format!("policy: undetermined: {slow} of {} entries were slow, where some, but not all, are expected", probed.len())
}

fn undetermined(inference: &Inference) -> String {
    let best = inference.scores.first();
    let best = best.map_or_else(String::new, |score| {
        let Rank { attribute, evicts } = score.rank;
        format!(": nearest is {evicts:?} {attribute:?}, which agrees to {:.0} %", score.jaccard * 100.0).to_lowercase()
    });
    format!("policy: undetermined{best}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed(is_slow: impl Fn(u64) -> bool) -> Vec<Probed> {
        let standing = |modified| Standing { modified, used: 0, traffic: 0, priority: 1000 };
        (1..=60).map(|modified| Probed { standing: standing(modified), slow: is_slow(modified) }).collect()
    }

    /// A busy machine can feign a second level: then the entries expected to be slow are all fast, or those of the
    /// first level all slow.
    #[test]
    fn a_level_that_is_none_leaves_the_policy_open() {
        for (slow, expected) in [(false, "0 of 60"), (true, "60 of 60")] {
            let Ok(Decided::No(why)) = decided(&probed(|_| slow), 40) else { panic!("{slow}: no policy can be told") };
            assert!(why.contains(expected), "{why}");
            assert_eq!(by_packets(&probed(|_| slow)).unwrap(), None);
        }
        assert!(matches!(decided(&probed(|modified| modified > 40), 40), Ok(Decided::Newest)));
    }
}
