//! Infers which entries a switch keeps in its fastest table when there are too many: Cheng (2015), section 4.2.1 and
//! figure 4.4.
//!
//! Twice as many entries as fit are added in eight parts. Packets are sent to the parts in another order and with
//! different lengths. Then each entry is probed: the slow entries are compared with those that each attribute, from
//! each end, would have evicted. Attributes found are made equal, and the experiment is repeated until the insertion
//! time decides, which is never equal.
use crate::ModelError;
use crate::check::domain;
use crate::switch::policy::{ATTRIBUTES, EntryAttributes, EvictedEnd, EvictionAttribute, EvictionCriterion};

/// Least agreement of the best rank with the slow entries.
pub const BEST_LEAST: f64 = 0.8;
/// Most agreement of any other rank.
pub const NEXT_MOST: f64 = 0.6;
/// Order in which packets are sent to the parts, counted from 0.
pub const PACKET_ORDER: [usize; 8] = [0, 1, 4, 5, 2, 3, 6, 7];
const BYTES: [u64; 2] = [400, 200];

/// Entry that was probed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbedEntry {
    /// Attributes of the entry before the probe.
    pub standing: EntryAttributes,
    /// True if the probe was slow: the entry had left the fastest table.
    pub slow: bool,
}

/// Agreement of a rank with the slow entries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CriterionScore {
    /// Rank that predicts the slow entries.
    pub rank: EvictionCriterion,
    /// Number of entries both slow and predicted slow, over the number that are either (Jaccard index), from 0 to 1.
    pub jaccard: f64,
}

/// Result of the probes.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyInference {
    /// Rank that decides; none if the probes do not determine it.
    pub found: Option<EvictionCriterion>,
    /// Scores of all ranks, the best first. Attributes equal for all entries are omitted.
    pub scores: Vec<CriterionScore>,
}

impl PolicyInference {
    /// Returns true if no further rank can be found: nothing decides after the insertion time.
    pub fn is_last(&self) -> bool {
        self.found.is_none_or(|rank| rank.attribute == EvictionAttribute::Modified)
    }
}

/// Returns the entries to add and the packets to send to find which attribute decides, with some attributes made
/// equal; `random` draws priorities. Entries are added in the order of the list. `used` is the turn in which an entry
/// gets its packet of `traffic` bytes, 0 if it gets none.
///
/// # Errors
/// A table of fewer than four entries or more than a million.
pub fn plan(
    table_size: u64,
    equal: &[EvictionAttribute],
    random: &mut impl FnMut() -> u16,
) -> Result<Vec<EntryAttributes>, ModelError> {
    if !(4..=1_000_000).contains(&table_size) {
        return Err(domain("table size", table_size, "4 to 1000000 entries"));
    }
    let is_equal = |attribute| equal.contains(&attribute);
    let entries = 2 * table_size;
    let standing = |at: u64| {
        let part = (0..8).rev().find(|part| at * 8 >= entries * part).unwrap_or(0);
        let place = PACKET_ORDER.iter().position(|parts| *parts as u64 == part).unwrap_or(0) as u64;
        let (used, bytes) = (place * entries + at + 1, BYTES[usize::from(part % 2 == 1)]);
        let quiet = is_equal(EvictionAttribute::Used);
        EntryAttributes {
            modified: at + 1,
            used: if quiet { 0 } else { used },
            traffic: if quiet {
                0
            } else if is_equal(EvictionAttribute::Traffic) {
                BYTES[0]
            } else {
                bytes
            },
            priority: if is_equal(EvictionAttribute::Priority) { 1000 } else { random() },
        }
    };
    Ok((0..entries).map(standing).collect())
}

/// Infers which rank decides from the probes.
///
/// # Errors
/// No entry is slow, or all are.
pub fn infer(probed: &[ProbedEntry]) -> Result<PolicyInference, ModelError> {
    let slow = probed.iter().filter(|probe| probe.slow).count();
    if slow == 0 || slow == probed.len() {
        return Err(domain(
            "slow entries",
            format!("{slow} of {}", probed.len()),
            "some, but not all: more entries than fit",
        ));
    }
    let ranks = ATTRIBUTES.into_iter().filter(|attribute| differs(probed, *attribute)).flat_map(|attribute| {
        [EvictedEnd::Lowest, EvictedEnd::Highest].map(|evicts| EvictionCriterion { attribute, evicts })
    });
    let mut scores: Vec<CriterionScore> =
        ranks.map(|rank| CriterionScore { rank, jaccard: jaccard(probed, rank, slow) }).collect();
    scores.sort_by(|left, right| right.jaccard.total_cmp(&left.jaccard));
    let next = scores.get(1).map_or(0.0, |score| score.jaccard);
    let found = scores.first().filter(|best| best.jaccard >= BEST_LEAST && next <= NEXT_MOST).map(|best| best.rank);
    Ok(PolicyInference { found, scores })
}

fn differs(probed: &[ProbedEntry], attribute: EvictionAttribute) -> bool {
    probed.windows(2).any(|pair| pair[0].standing.of(attribute) != pair[1].standing.of(attribute))
}

/// Returns the Jaccard index of the slow entries and as many that the rank would evict. Entries equal at the cut are
/// evicted at random: they count with their average agreement.
fn jaccard(probed: &[ProbedEntry], rank: EvictionCriterion, slow: usize) -> f64 {
    let value = |probe: &ProbedEntry| {
        let value = probe.standing.of(rank.attribute);
        if rank.evicts == EvictedEnd::Lowest { value } else { u64::MAX - value }
    };
    let mut values: Vec<u64> = probed.iter().map(value).collect();
    values.sort_unstable();
    let cut = values[slow - 1];
    let count = |holds: &dyn Fn(&ProbedEntry) -> bool| probed.iter().filter(|probe| holds(probe)).count() as f64;
    let certain = count(&|probe| value(probe) < cut);
    let (equal, equal_slow) = (count(&|probe| value(probe) == cut), count(&|probe| value(probe) == cut && probe.slow));
    let both = count(&|probe| value(probe) < cut && probe.slow) + (slow as f64 - certain) * equal_slow / equal;
    both / (2.0 * slow as f64 - both)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::policy::EvictionPolicy;

    /// Returns the probes of a switch with this policy, `wrong` of them with the wrong result.
    fn probed(policy: &EvictionPolicy, size: usize, standings: &[EntryAttributes], wrong: usize) -> Vec<ProbedEntry> {
        let mut order: Vec<usize> = (0..standings.len()).collect();
        order.sort_by(|left, right| policy.first_to_go(&standings[*left], &standings[*right]));
        let slow = &order[..standings.len() - size];
        let probe = |(at, standing): (usize, &EntryAttributes)| {
            let really = slow.contains(&at);
            ProbedEntry { standing: *standing, slow: if wrong > 0 && at % wrong == 0 { !really } else { really } }
        };
        standings.iter().enumerate().map(probe).collect()
    }

    /// Finds all ranks of a policy as the experiment does.
    fn found(policy: &EvictionPolicy, size: usize, wrong: usize) -> Vec<EvictionCriterion> {
        let mut random = fastrand::Rng::with_seed(5);
        let mut ranks: Vec<EvictionCriterion> = Vec::new();
        loop {
            let equal: Vec<EvictionAttribute> = ranks.iter().map(|rank| rank.attribute).collect();
            let standings = plan(size as u64, &equal, &mut || random.u16(501..)).unwrap();
            let inference = infer(&probed(policy, size, &standings, wrong)).unwrap();
            ranks.extend(inference.found);
            if inference.is_last() {
                return ranks;
            }
        }
    }

    #[test]
    fn every_policy_is_found_again() {
        let ends = [EvictedEnd::Lowest, EvictedEnd::Highest];
        let last = EvictionCriterion { attribute: EvictionAttribute::Modified, evicts: EvictedEnd::Lowest };
        for first in ATTRIBUTES {
            for (evicts, then) in ends.iter().flat_map(|evicts| ends.map(|then| (*evicts, then))) {
                let first = EvictionCriterion { attribute: first, evicts };
                let second = EvictionCriterion { attribute: EvictionAttribute::Priority, evicts: then };
                let mut ranks = vec![first, second, last];
                let (first, at) =
                    (first.attribute, ranks.iter().position(|rank| rank.attribute == EvictionAttribute::Modified));
                ranks.truncate(at.map_or(3, |at| at + 1));
                if first == EvictionAttribute::Priority {
                    ranks.remove(1);
                }
                let policy = EvictionPolicy(ranks.clone());
                assert_eq!(found(&policy, 256, 0), ranks);
                assert_eq!(found(&policy, 101, 20), ranks, "with one probe in twenty wrong");
            }
        }
    }

    #[test]
    fn parts_are_slow_as_published() {
        let standings = plan(8, &[], &mut || 1).unwrap();
        let slow_parts = |attribute, evicts| {
            let policy = EvictionPolicy(vec![EvictionCriterion { attribute, evicts }]);
            let probed = probed(&policy, 8, &standings, 0);
            (0..8).filter(|part| probed[part * 2].slow).map(|part| part + 1).collect::<Vec<_>>()
        };
        assert_eq!(slow_parts(EvictionAttribute::Modified, EvictedEnd::Lowest), [1, 2, 3, 4]);
        assert_eq!(slow_parts(EvictionAttribute::Used, EvictedEnd::Lowest), [1, 2, 5, 6]);
        assert_eq!(slow_parts(EvictionAttribute::Used, EvictedEnd::Highest), [3, 4, 7, 8]);
        assert_eq!(slow_parts(EvictionAttribute::Traffic, EvictedEnd::Lowest), [2, 4, 6, 8]);
        assert_eq!(slow_parts(EvictionAttribute::Traffic, EvictedEnd::Highest), [1, 3, 5, 7]);
    }

    #[test]
    fn chance_is_not_taken_for_a_policy() {
        let mut random = fastrand::Rng::with_seed(9);
        let standings = plan(200, &[], &mut || random.u16(501..)).unwrap();
        let mut coin = fastrand::Rng::with_seed(10);
        let probed: Vec<ProbedEntry> =
            standings.iter().map(|standing| ProbedEntry { standing: *standing, slow: coin.bool() }).collect();
        let inference = infer(&probed).unwrap();
        assert_eq!((inference.found, inference.scores.len()), (None, 8));
        assert!(infer(&[]).is_err() && plan(3, &[], &mut || 1).is_err());
    }
}
