//! Undoes meter-mods when a later message of their bundle fails.
use super::{MeterTable, SharedMeter};
use weir_openflow::model::MeterId;

/// Meters as they were before a meter-mod.
#[derive(Debug)]
pub(crate) struct SavedMeters {
    /// The meter-mod's meter, or [`MeterId::ALL`].
    id: MeterId,
    /// The meters that existed.
    meters: Vec<(MeterId, SharedMeter)>,
}

impl MeterTable {
    /// Saves the meter that a meter-mod concerns, or all meters.
    pub(crate) fn save(&self, id: MeterId) -> SavedMeters {
        let meters = match id {
            MeterId::ALL => self.by_id.iter().map(copy).collect(),
            id => Vec::from_iter(self.by_id.get_key_value(&id).map(copy)),
        };
        SavedMeters { id, meters }
    }

    /// Restores the meters as they were before a meter-mod. Later meter-mods must have been undone already.
    pub(crate) fn restore(&mut self, saved: SavedMeters) {
        self.by_id.remove(&saved.id);
        self.by_id.extend(saved.meters);
    }
}

fn copy((id, meter): (&MeterId, &SharedMeter)) -> (MeterId, SharedMeter) {
    (*id, meter.clone())
}
