//! Meters: changes, statistics, configuration (OpenFlow 1.3.5, 7.3.4.4, 7.3.5.12 and 7.3.5.13).
use super::Request;
use crate::Datapath;
use crate::journal::Undo;
use weir_openflow::model::error::MeterModFailed;
use weir_openflow::model::meter::{MeterConfig, MeterMod, MeterStats};
use weir_openflow::model::{ErrorType, MeterId};
use weir_units::Instant;

impl Datapath {
    pub(super) fn meter_mod(&mut self, change: &MeterMod, request: &mut Request<'_>) -> Result<(), ErrorType> {
        self.journal.note(|| Undo::Meters(self.plane.meters.save(change.meter)));
        if let Some(deleted) = self.plane.meters.apply(request.now, change)? {
            let mut gone = Vec::new();
            self.tables().remove_metered(request.now, deleted, &mut gone);
            self.tell_removed(gone, request.out);
        }
        Ok(())
    }

    pub(super) fn meter_stats(&self, now: Instant, wanted: MeterId) -> Result<Vec<MeterStats>, ErrorType> {
        self.known_meter(wanted)?;
        let flows = |meter| self.tables.iter().map(|table| table.metered().by(meter)).sum();
        Ok(self.plane.meters.stats(now, wanted, flows))
    }

    pub(super) fn meter_configs(&self, wanted: MeterId) -> Result<Vec<MeterConfig>, ErrorType> {
        self.known_meter(wanted)?;
        Ok(self.plane.meters.configs(wanted))
    }

    /// That a request's meter is there, or all are meant.
    fn known_meter(&self, wanted: MeterId) -> Result<(), ErrorType> {
        let is_known = wanted == MeterId::ALL || self.plane.meters.contains(wanted);
        if is_known { Ok(()) } else { Err(MeterModFailed::UnknownMeter.into()) }
    }
}
