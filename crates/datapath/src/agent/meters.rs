//! Handles meter-mods and requests about meters (OpenFlow 1.3.5, 7.3.4.4, 7.3.5.12 and 7.3.5.13).
use super::RestOfSweep;
use crate::flow_mod::EntrySweep;
use crate::journal::UndoRecord;
use crate::{Datapath, DatapathOutput};
use weir_openflow::model::ErrorType;
use weir_openflow::model::meter::MeterMod;
use weir_units::Instant;

impl Datapath {
    /// Applies a meter-mod. Flow entries that use a deleted meter are removed with it, and channels get flow-removed
    /// messages. Returns the rest of that work if there are many.
    ///
    /// # Errors
    /// The error to reply with; nothing has changed.
    pub(crate) fn change_meters(
        &mut self,
        now: Instant,
        change: &MeterMod,
        out: &mut DatapathOutput,
    ) -> Result<Option<RestOfSweep>, ErrorType> {
        self.journal.note(|| UndoRecord::Meters(self.plane.meters.save(change.meter)));
        let deleted = self.plane.meters.apply(now, change)?;
        Ok(deleted.and_then(|meter| self.sweep(now, EntrySweep::with_meter(meter), out)))
    }
}
