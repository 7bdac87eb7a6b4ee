//! Lanes on which intents with a bound of their delay depend, so that a reservation is checked against those alone.
use super::intent::IntentNo;
use super::lanes::{Lane, lanes};
use super::way::Way;
use std::collections::{BTreeMap, BTreeSet};

/// Intents with a bound of their delay, by the lanes of their ways.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct BoundedLanes {
    by_lane: BTreeMap<Lane, BTreeSet<IntentNo>>,
    by_intent: BTreeMap<IntentNo, BTreeSet<Lane>>,
}

impl BoundedLanes {
    /// Notes the ways of an intent in place of its former ones; none if it has no bound or is not carried out.
    pub(super) fn set<'a>(&mut self, intent: IntentNo, ways: impl Iterator<Item = &'a Way>) {
        for lane in self.by_intent.remove(&intent).into_iter().flatten() {
            if let Some(there) = self.by_lane.get_mut(&lane) {
                there.remove(&intent);
                if there.is_empty() {
                    self.by_lane.remove(&lane);
                }
            }
        }
        let used: BTreeSet<Lane> = ways.flat_map(lanes).collect();
        for lane in &used {
            self.by_lane.entry(*lane).or_default().insert(intent);
        }
        if !used.is_empty() {
            self.by_intent.insert(intent, used);
        }
    }

    /// Returns the intents that use one of these lanes.
    pub(super) fn on<'a>(&self, lanes: impl Iterator<Item = &'a Lane>) -> BTreeSet<IntentNo> {
        lanes.filter_map(|lane| self.by_lane.get(lane)).flatten().copied().collect()
    }

    /// Returns true if no intent has a bound.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_lane.is_empty() && self.by_intent.is_empty()
    }
}
