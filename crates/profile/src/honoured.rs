//! Says which parameters of a profile have no effect on which kind of answer.
use crate::check::DEFAULT_SLOW;
use crate::{ParameterValue, Profile};

/// Kind of an answer that uses a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileUse {
    /// Formulas.
    Formulas,
    /// Simulated stations: queues with a server.
    Stations,
    /// Packets and messages, held by the timing stage: simulated packet by packet, or live.
    Packets,
}

/// Beginnings of the keys of parameters about commands and barriers, which formulas and stations do not have. Keys of
/// levels count without the level.
const OF_COMMANDS: [&str; 10] =
    ["barrier.", "effect", "batching.", "policy", "add.", "modify.", "shift", "search", "write", "delete"];

impl Profile {
    /// Returns the keys of the parameters that change nothing in an answer of this kind, in the order of the file.
    /// Parameters that have the value that they have if they are not written are left out. An answer that refuses a
    /// profile, with an error that names the parameter, is no answer.
    pub fn without_effect(&self, used: ProfileUse) -> Vec<String> {
        let is_there = |value: &ParameterValue| match value {
            ParameterValue::Number(number) => *number != 0.0,
            _ => true,
        };
        let parameters = self.parameters();
        let there = parameters.iter().filter(|parameter| is_there(&parameter.value));
        there.map(|parameter| &parameter.key).filter(|key| self.is_without_effect(key, used)).cloned().collect()
    }

    fn is_without_effect(&self, key: &str, used: ProfileUse) -> bool {
        let slow = self.timing.as_ref().map_or(DEFAULT_SLOW, |timing| timing.slow);
        match key {
            // Levels that say how they forward do not use it.
            "timing.data" => {
                !self.forwarding.is_empty() && self.forwarding.iter().all(Option::is_some) && !self.is_derived_data()
            }
            "timing.slow" => used != ProfileUse::Stations && slow != DEFAULT_SLOW,
            "timing.returns.buffer" => used == ProfileUse::Formulas,
            "cache.revalidate" => used != ProfileUse::Packets,
            _ if key.ends_with(".forward.busy") => used == ProfileUse::Formulas,
            _ if key.starts_with("timing.") || used == ProfileUse::Packets => false,
            _ => {
                let own = key.strip_prefix("level").and_then(|rest| rest.split_once('.')).map_or(key, |(_, own)| own);
                OF_COMMANDS.iter().any(|beginning| own.starts_with(beginning))
            }
        }
    }

    /// Returns true if the data path's time follows from the first level.
    fn is_derived_data(&self) -> bool {
        let data = self.timing.as_ref().and_then(|timing| timing.data.as_ref());
        let first = self.forwarding.first().and_then(Option::as_ref);
        data == first.and_then(crate::check::at_base).as_ref()
    }
}
