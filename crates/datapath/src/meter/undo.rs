//! Undoes meter-mods when a later message of their bundle fails.
use super::{Meters, Shared};
use weir_openflow::model::MeterId;

/// Meters as they were before a meter-mod.
#[derive(Debug)]
pub(crate) struct Saved {
    /// The meter-mod's meter, or [`MeterId::ALL`].
    id: MeterId,
    /// The meters that existed.
    meters: Vec<(MeterId, Shared)>,
}

impl Meters {
    /// Saves the meter that a meter-mod concerns, or all meters.
    pub(crate) fn save(&self, id: MeterId) -> Saved {
        let meters = match id {
            MeterId::ALL => self.by_id.iter().map(copy).collect(),
            id => Vec::from_iter(self.by_id.get_key_value(&id).map(copy)),
        };
        Saved { id, meters }
    }

    /// Restores the meters as they were before a meter-mod. Later meter-mods must have been undone already.
    pub(crate) fn restore(&mut self, saved: Saved) {
        self.by_id.remove(&saved.id);
        self.by_id.extend(saved.meters);
    }
}

fn copy((id, meter): (&MeterId, &Shared)) -> (MeterId, Shared) {
    (*id, meter.clone())
}
