//! Intents that were asked for together: taken one by one, each with its own answer, and reported together.
use super::error::IntentError;
use super::intent::IntentNo;
use super::spec::{IntentOutcome, IntentSpec, IntentState};
use super::store::{IntentAction, IntentStore};
use crate::map::NetworkMap;
use std::collections::{BTreeMap, BTreeSet};
use weir_units::Instant;

/// Most batches that are remembered; the oldest are forgotten first.
const MOST_BATCHES: usize = 64;
/// Most intents of a batch that are reported one by one when they are installed or withdrawn.
const MOST_REPORTED: usize = 16;

/// Batches of intents by their numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct IntentBatches {
    by_number: BTreeMap<u64, IntentBatch>,
    last: u64,
}

/// Intents that were set or removed together.
#[derive(Debug, Clone)]
struct IntentBatch {
    members: Vec<(IntentNo, String)>,
    /// Number of members that are not decided.
    left: usize,
    /// True if the intents are removed: decided when nothing of them is left.
    removes: bool,
}

impl IntentBatch {
    fn is_told_together(&self) -> bool {
        self.members.len() > MOST_REPORTED
    }
}

impl IntentStore {
    /// Adds intents, or changes those with the same keys, as [`IntentStore::set`] does with one. They are compiled in
    /// the order of their precedence, then in that of the request.
    ///
    /// Returns the number of the batch, for [`IntentStore::batch`], and for each intent its state, or what is wrong
    /// with it. At most [`MOST_COMPILED`](super::MOST_COMPILED) intents are compiled before the answer.
    pub fn set_all(
        &mut self,
        now: Instant,
        specs: Vec<IntentSpec>,
        map: &NetworkMap,
    ) -> (u64, Vec<Result<IntentOutcome, IntentError>>) {
        let accepted: Vec<_> = specs
            .into_iter()
            .map(|spec| {
                let key = spec.key.clone();
                self.accept(now, spec).map(|number| (number, key))
            })
            .collect();
        let members: BTreeSet<_> = accepted.iter().flatten().cloned().collect();
        let batch = self.begin_batch(members, false);
        self.compile_queue(now, map);
        let outcome = |accepted: Result<(IntentNo, String), _>| accepted.map(|(number, key)| self.outcome(number, key));
        (batch, accepted.into_iter().map(outcome).collect())
    }

    /// Removes intents, as [`IntentStore::remove`] does with one. Returns the number of the batch, and for each key the
    /// state of the intent, or that there is none.
    pub fn remove_all(&mut self, keys: Vec<String>) -> (u64, Vec<Result<IntentOutcome, IntentError>>) {
        let known: BTreeSet<_> = keys.iter().filter(|key| self.number_of(key).is_some()).collect();
        let together = known.len() > MOST_REPORTED;
        let withdraw = |key: String| self.withdraw(&key, together).map(|number| (number, key));
        let withdrawn: Vec<_> = keys.into_iter().map(withdraw).collect();
        let members: BTreeSet<_> = withdrawn.iter().flatten().cloned().collect();
        let numbers: Vec<IntentNo> = members.iter().map(|(number, _)| *number).collect();
        let batch = self.begin_batch(members, true);
        numbers.into_iter().for_each(|number| self.forget_if_gone(number));
        self.retry_failed();
        let outcome = |(_, key)| IntentOutcome { key, state: IntentState::Withdrawn, reason: String::new() };
        (batch, withdrawn.into_iter().map(|removed| removed.map(outcome)).collect())
    }

    /// Returns the keys of all intents that are not being removed.
    pub fn keys(&self) -> Vec<String> {
        self.keys.keys().filter(|key| self.number_of(key).is_some()).cloned().collect()
    }

    /// Returns how many intents of a batch are not decided: submitted or compiling, or withdrawn but not gone. Once
    /// none is, or with `states`, also those that are not installed. `None` if the batch is not known or no longer.
    pub fn batch(&self, number: u64, states: bool) -> Option<(usize, Vec<IntentOutcome>)> {
        let batch = self.batches.by_number.get(&number)?;
        if batch.left > 0 && !states || batch.removes {
            return Some((batch.left, Vec::new()));
        }
        let outcomes = batch.members.iter().map(|(number, key)| self.outcome(*number, key.clone()));
        Some((batch.left, outcomes.filter(|outcome| outcome.state != IntentState::Installed).collect()))
    }

    fn outcome(&self, number: IntentNo, key: String) -> IntentOutcome {
        let intent = self.intents.get(&number);
        let state = intent.map_or(IntentState::Withdrawn, |intent| intent.state);
        IntentOutcome { key, state, reason: intent.map(|intent| intent.reason.clone()).unwrap_or_default() }
    }

    fn begin_batch(&mut self, members: BTreeSet<(IntentNo, String)>, removes: bool) -> u64 {
        let batches = &mut self.batches;
        batches.last += 1;
        if batches.by_number.len() >= MOST_BATCHES {
            batches.by_number.pop_first();
        }
        let mut left = 0;
        for (number, _) in &members {
            let Some(intent) = self.intents.get_mut(number) else { continue };
            if removes || intent.state.is_undecided() {
                // An intent can be undecided for long, and be set again meanwhile.
                intent.batches.retain(|batch| batches.by_number.contains_key(batch));
                intent.batches.push(batches.last);
                left += 1;
            }
        }
        let members = members.into_iter().collect();
        batches.by_number.insert(batches.last, IntentBatch { members, left, removes });
        batches.last
    }

    /// Notes in the batches of an intent that its state is decided, if it is. Returns true if it belonged to one whose
    /// intents are reported together.
    pub(super) fn note_decided(&mut self, number: IntentNo) -> bool {
        let Some(intent) = self.intents.get_mut(&number) else { return false };
        if intent.batches.is_empty() || intent.state.is_undecided() {
            return false;
        }
        let of = std::mem::take(&mut intent.batches);
        of.into_iter().filter(|batch| self.count_decided(*batch)).count() > 0
    }

    /// Notes in the batches of an intent that nothing of it is left.
    pub(super) fn note_gone(&mut self, number: IntentNo) {
        let of = self.intents.get_mut(&number).map(|intent| std::mem::take(&mut intent.batches));
        for batch in of.into_iter().flatten() {
            self.count_decided(batch);
        }
    }

    /// Counts a decided intent of a batch, and reports a large one when it is the last. Returns true for a large one.
    fn count_decided(&mut self, number: u64) -> bool {
        let Some(batch) = self.batches.by_number.get_mut(&number) else { return false };
        batch.left = batch.left.saturating_sub(1);
        let (left, removes, all, is_large) = (batch.left, batch.removes, batch.members.len(), batch.is_told_together());
        if left == 0 && is_large {
            let (kind, text) = if removes {
                ("intents-withdrawn", format!("{all} intents of one request are removed"))
            } else {
                let others = self.batch(number, true).map_or(0, |(_, others)| others.len());
                ("intents-installed", format!("{} of {all} intents of one request are installed", all - others))
            };
            self.actions.push(IntentAction::Report { kind, text, alarm: false });
        }
        is_large
    }
}
