//! Handles meter-mods and requests about meters (OpenFlow 1.3.5, 7.3.4.4, 7.3.5.12 and 7.3.5.13).
use super::RestOfSweep;
use crate::flow_mod::EntrySweep;
use crate::journal::UndoRecord;
use crate::{Datapath, DatapathOutput};
use weir_openflow::model::error::{BadAction, MeterModFailed};
use weir_openflow::model::meter::{MeterConfig, MeterMod, MeterStats};
use weir_openflow::model::{Action, ErrorType, MeterId};
use weir_units::Instant;

impl Datapath {
    /// Adds, modifies or deletes meters. Channels get flow-removed messages for flow entries removed together with a
    /// meter.
    ///
    /// # Errors
    /// The error that the agent would reply with; nothing has changed.
    pub fn meter_mod(&mut self, now: Instant, change: &MeterMod, out: &mut DatapathOutput) -> Result<(), ErrorType> {
        let rest = self.change_meters(now, change, out)?;
        self.finish_sweep(now, rest, out);
        Ok(())
    }

    /// Applies a meter-mod like [`Datapath::meter_mod`], but returns the rest of the work if many entries are to be removed.
    pub(super) fn change_meters(
        &mut self,
        now: Instant,
        change: &MeterMod,
        out: &mut DatapathOutput,
    ) -> Result<Option<RestOfSweep>, ErrorType> {
        self.journal.note(|| UndoRecord::Meters(self.plane.meters.save(change.meter)));
        let deleted = self.plane.meters.apply(now, change)?;
        Ok(deleted.and_then(|meter| self.sweep(now, EntrySweep::with_meter(meter), out)))
    }

    /// Returns the statistics of one meter, or of all meters in the order of their numbers.
    ///
    /// # Errors
    /// The error that the agent would reply with: the meter does not exist.
    pub fn meter_stats(&self, now: Instant, wanted: MeterId) -> Result<Vec<MeterStats>, ErrorType> {
        self.known_meter(wanted)?;
        Ok(self.plane.meters.stats(now, wanted, |meter| self.tables.entries_of_meter(meter)))
    }

    /// Returns the configuration of one meter, or of all meters in the order of their numbers.
    ///
    /// # Errors
    /// The error that the agent would reply with: the meter does not exist.
    pub fn meter_configs(&self, wanted: MeterId) -> Result<Vec<MeterConfig>, ErrorType> {
        self.known_meter(wanted)?;
        Ok(self.plane.meters.configs(wanted))
    }

    /// Checks that the meters used in a list of actions exist.
    pub(super) fn known_meters(&self, actions: &[Action]) -> Result<(), ErrorType> {
        let is_there = |action: &Action| match action {
            Action::Meter(meter) => self.plane.meters.contains(*meter),
            _ => true,
        };
        if actions.iter().all(is_there) { Ok(()) } else { Err(BadAction::BadMeter.into()) }
    }

    /// Checks that a requested meter exists, or that all meters are requested.
    fn known_meter(&self, wanted: MeterId) -> Result<(), ErrorType> {
        let is_known = wanted == MeterId::ALL || self.plane.meters.contains(wanted);
        if is_known { Ok(()) } else { Err(MeterModFailed::UnknownMeter.into()) }
    }
}
