//! Taking meter-mods back, when a later message of their bundle fails.
use super::{Meters, Shared};
use weir_openflow::model::MeterId;

/// Meters as they were before a meter-mod.
#[derive(Debug)]
pub(crate) struct Saved {
    /// Which meter-mod: of one meter or all.
    id: MeterId,
    /// Those that were there.
    meters: Vec<(MeterId, Shared)>,
}

impl Meters {
    /// The meter that a meter-mod is about, or all of them, as they are.
    pub(crate) fn save(&self, id: MeterId) -> Saved {
        let meters = match id {
            MeterId::ALL => self.by_id.iter().map(copy).collect(),
            id => Vec::from_iter(self.by_id.get_key_value(&id).map(copy)),
        };
        Saved { id, meters }
    }

    /// Makes meters what they were before a meter-mod; those after it have been taken back.
    pub(crate) fn restore(&mut self, saved: Saved) {
        self.by_id.remove(&saved.id);
        self.by_id.extend(saved.meters);
    }
}

fn copy((id, meter): (&MeterId, &Shared)) -> (MeterId, Shared) {
    (*id, meter.clone())
}
