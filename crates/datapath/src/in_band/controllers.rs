//! Controllers that are reached in band, and whether they answer.
use super::MAX_IN_BAND_CONTROLLERS;
use std::net::SocketAddr;
use std::time::Duration;
use weir_units::Instant;

/// A controller and whether it answers.
#[derive(Debug, Clone, Copy)]
struct InBandController {
    address: SocketAddr,
    /// Time at which the oldest segment without an answer was sent.
    asked: Option<Instant>,
}

/// The controllers of a switch.
#[derive(Debug)]
pub(super) struct InBandControllers {
    controllers: Vec<InBandController>,
    /// Time without an answer after which the path to a controller counts as broken.
    silence: Duration,
}

impl InBandControllers {
    pub(super) fn new(silence: Duration) -> InBandControllers {
        InBandControllers { controllers: Vec::new(), silence }
    }

    /// Replaces the controllers, of which those that stay keep whether they answer.
    pub(super) fn set(&mut self, controllers: &[SocketAddr]) {
        let former = std::mem::take(&mut self.controllers);
        let asked = |address| former.iter().find(|known| known.address == address).and_then(|known| known.asked);
        for address in controllers {
            // Frames have no scope of link-local addresses.
            let address = SocketAddr::new(address.ip(), address.port());
            let is_new = self.controllers.iter().all(|known| known.address != address);
            if is_new && self.controllers.len() < MAX_IN_BAND_CONTROLLERS {
                self.controllers.push(InBandController { address, asked: asked(address) });
            }
        }
    }

    /// Returns the addresses.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.controllers.iter().map(|known| known.address).collect()
    }

    /// Notes a segment to a controller that has to acknowledge it. Returns true if the controller did not answer for
    /// so long that its port is to be forgotten.
    pub(super) fn ask(&mut self, now: Instant, address: SocketAddr) -> bool {
        let silence = self.silence;
        let Some(controller) = self.find(address) else { return false };
        let is_silent = now.since(*controller.asked.get_or_insert(now)) >= silence;
        if is_silent {
            controller.asked = Some(now);
        }
        is_silent
    }

    /// Notes that a controller answers.
    pub(super) fn hear(&mut self, address: SocketAddr) {
        if let Some(controller) = self.find(address) {
            controller.asked = None;
        }
    }

    fn find(&mut self, address: SocketAddr) -> Option<&mut InBandController> {
        self.controllers.iter_mut().find(|known| known.address == address)
    }
}
