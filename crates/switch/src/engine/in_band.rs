//! Passes the settings of in-band control on to the datapath of the physical switch.
use super::Engine;
use std::net::{IpAddr, SocketAddr};
use weir_datapath::InBandConfig;

impl Engine {
    /// Turns in-band control on.
    pub(crate) fn start_in_band(&mut self, config: InBandConfig) {
        self.physical.datapath.get().start_in_band(config);
        self.physical.is_in_band = true;
    }

    /// Replaces the controllers that are reached in band.
    pub(crate) fn set_in_band_controllers(&mut self, controllers: &[SocketAddr]) {
        self.physical.datapath.get().set_in_band_controllers(controllers);
    }

    /// Replaces the routers through which controllers are reached in band.
    pub(crate) fn set_in_band_next_hops(&mut self, routers: &[IpAddr]) {
        self.physical.datapath.get().set_in_band_next_hops(routers);
    }
}
