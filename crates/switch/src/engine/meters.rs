//! Changes and reads meters for the control socket.
use super::Engine;
use crate::handle::SwitchError;
use weir_openflow::model::MeterId;
use weir_openflow::model::meter::{MeterConfig, MeterMod, MeterStats};
use weir_units::Clock;

impl Engine {
    /// Adds, modifies or deletes meters. Channels are notified of flow entries that are removed with a meter.
    ///
    /// # Errors
    /// Returns the OpenFlow error that a controller would receive.
    pub(crate) fn meter_mod(&mut self, change: &MeterMod) -> Result<(), SwitchError> {
        let now = self.clock.now();
        let changed = self.logical.datapath.get().meter_mod(now, change, &mut self.logical.out);
        self.deliver(now);
        changed.map_err(SwitchError::MeterMod)
    }

    /// Returns the configuration of one meter, or of all, ordered by number.
    ///
    /// # Errors
    /// Fails if there is no such meter.
    pub(crate) fn meters(&mut self, wanted: MeterId) -> Result<Vec<MeterConfig>, SwitchError> {
        self.logical.datapath.get().meter_configs(wanted).map_err(SwitchError::MeterMod)
    }

    /// Returns the counters of one meter, or of all.
    ///
    /// # Errors
    /// Fails if there is no such meter.
    pub(crate) fn meter_stats(&mut self, wanted: MeterId) -> Result<Vec<MeterStats>, SwitchError> {
        self.logical.datapath.get().meter_stats(self.clock.now(), wanted).map_err(SwitchError::MeterMod)
    }
}
