//! Holds intents against a network that has changed.
use super::intent::{Intent, IntentNo};
use super::spec::IntentState;
use super::store::IntentStore;
use crate::map::NetworkMap;
use weir_units::Instant;

impl IntentStore {
    /// Handles a change of the network: intents that are touched get other ways at once, those of the highest
    /// precedence first, and failed ones are tried again. Better ways for the others are looked for later, by
    /// [`IntentStore::handle_wake`].
    pub fn handle_network_change(&mut self, now: Instant, map: &NetworkMap) {
        let is_new = self.version != map.version();
        self.version = map.version();
        let touched = |intent: &Intent| match (&intent.laid, intent.state) {
            (_, IntentState::Withdrawn) => false,
            (None, _) => true,
            (Some(laid), _) => {
                let lacks = laid.plan.lacks.is_some() || intent.notes.condition.is_some();
                is_new && lacks || !laid.plan.is_intact(map, &intent.wanted)
            }
        };
        let numbers = self.intents.iter().filter(|(_, intent)| touched(intent)).map(|(number, _)| *number);
        let numbers: Vec<IntentNo> = numbers.collect();
        numbers.into_iter().for_each(|number| self.enqueue(number));
        self.compile_queue(now, map);
    }
}
