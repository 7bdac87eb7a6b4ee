//! Counters of intents.
use super::spec::IntentState;
use super::store::IntentStore;
use std::collections::BTreeMap;

/// Counters of intents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct IntentCounters {
    pub(super) compiled: u64,
    pub(super) rerouted: u64,
    pub(super) bettered: u64,
    pub(super) refused_by_switches: u64,
    pub(super) refused_full: u64,
    pub(super) probes_sent: u64,
    pub(super) probes_arrived: u64,
    pub(super) probes_not_ours: u64,
    pub(super) probes_lost: u64,
}

impl IntentStore {
    /// Returns counters by name.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let all = &self.counters;
        let states = self.count_by_state();
        let in_state = |name| states.get(name).copied().unwrap_or(0);
        vec![
            ("intents_installed", in_state("installed")),
            ("intents_degraded", in_state("degraded")),
            ("intents_failed", in_state("failed")),
            ("intents_compiled", all.compiled),
            ("intents_rerouted", all.rerouted),
            ("intents_on_better_ways", all.bettered),
            ("intents_refused_by_switches", all.refused_by_switches),
            ("intents_refused_full", all.refused_full),
            ("intent_probes_sent", all.probes_sent),
            ("intent_probes_arrived", all.probes_arrived),
            ("intent_probes_lost", all.probes_lost),
            ("intent_probes_not_ours", all.probes_not_ours),
        ]
    }

    /// Returns the number of intents in each state, by the state's name in JSON; states without intents have 0.
    pub fn count_by_state(&self) -> BTreeMap<String, u64> {
        let all = [
            (IntentState::Submitted, "submitted"),
            (IntentState::Compiling, "compiling"),
            (IntentState::Installed, "installed"),
            (IntentState::Degraded, "degraded"),
            (IntentState::Failed, "failed"),
            (IntentState::Withdrawn, "withdrawn"),
        ];
        let count = |state| self.intents.values().filter(|intent| intent.state == state).count() as u64;
        all.into_iter().map(|(state, name)| (name.to_owned(), count(state))).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::NetworkMap;
    use crate::intents::{IntentConfig, IntentState, IntentStore};
    use weir_units::Instant;

    #[test]
    fn states_have_their_names_of_json() {
        let mut store = IntentStore::new(IntentConfig::default());
        let json = r#"{"key":"k","kind":"host-to-host","from":["a"],"to":["b"]}"#;
        store.set(Instant::ZERO, serde_json::from_str(json).unwrap(), &NetworkMap::default()).unwrap();
        let counted = store.count_by_state();
        let name = serde_json::to_value(IntentState::Failed).unwrap();
        assert_eq!(counted[name.as_str().unwrap()], 1, "there is no host");
        assert_eq!((counted.len(), counted.values().sum::<u64>()), (6, 1));
    }
}
