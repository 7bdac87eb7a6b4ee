//! Runs virtual switches on the packet path. The first lookup selects the virtual switch of a packet, that switch's
//! datapath selects the output, and the fabric schedules the departure ([`weir_fabric`]). Without virtual switches
//! this module is not entered.
//!
//! The engine serves one logical switch at a time. To work for a virtual switch, it exchanges that switch with its
//! own ([`Engine::serve`]), so that every operation for controllers works for all of them.
mod admit;
mod path;
mod ports;
mod snapshot;
mod time;
mod turns;

pub(crate) use admit::NewVirtualSwitch;

use super::Engine;
use super::logical::LogicalSwitch;
use crate::handle::SwitchError;
use tokio::sync::watch;
use turns::ControlTimeAccount;
use weir_fabric::{Fabric, FabricDrop, VirtualSwitchIndex};
use weir_packet::{Frame, FramePool};
use weir_slicing::{CpuShares, FabricEgressLine, FabricSpec, TenantClassifier, VirtualPortState, VirtualSwitch};
use weir_units::Instant;

/// The virtual switches of an engine, and the state they share.
pub(crate) struct EngineVirtualSwitches {
    fabric: Fabric<Frame>,
    /// Configuration of the fabric: its ports and capacities.
    shape: FabricSpec,
    sorter: TenantClassifier,
    /// Virtual switches by fabric index.
    switches: Vec<Option<Box<EngineVirtualSwitch>>>,
    /// Fabric indices, in the order in which the first lookup tries the switches.
    order: Vec<u16>,
    /// Outlets, by port of the fabric.
    outlets: Vec<FabricEgressLine>,
    /// Shares of the engine's packet time, by fabric index.
    shares: CpuShares<Frame>,
    /// Value of the processor's time stamp counter when a port was last read, while shares are measured.
    asked_at: u64,
    /// Scratch list for the waiting packets of the virtual switch that is served now.
    turn: Vec<Frame>,
    /// Frames that the fabric dropped last.
    dropped: Vec<FabricDrop<Frame>>,
    /// Position in `order` of the virtual switch whose controllers are served first in the next round of control work.
    /// Advances by one each round.
    first: usize,
    /// Time up to which virtual switches have been credited with time for their control work.
    turned_at: Instant,
}

/// A virtual switch: its part of the fabric and its logical switch.
pub(super) struct EngineVirtualSwitch {
    /// Identifier of the virtual switch in calls to the engine.
    id: VirtualId,
    spec: VirtualSwitch,
    index: VirtualSwitchIndex,
    inlets: Vec<VirtualPortState>,
    /// Logical switch (datapath and channels) of the virtual switch. While the virtual switch is being served, the
    /// logical switch of the physical switch is stored here instead.
    logical: Box<LogicalSwitch>,
    turn: ControlTimeAccount,
    expires: Option<Instant>,
    /// Sender that is dropped with the virtual switch. The switch's control tasks observe this and end.
    _lives: watch::Sender<()>,
}

/// Identifier of a virtual switch, unique during the engine's lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VirtualId(pub(crate) u64);

impl EngineVirtualSwitches {
    fn cut(&mut self, place: u16) -> Option<&mut EngineVirtualSwitch> {
        self.switches.get_mut(usize::from(place))?.as_deref_mut()
    }

    fn all(&self) -> impl Iterator<Item = &EngineVirtualSwitch> + Clone {
        self.order.iter().filter_map(|place| self.switches.get(usize::from(*place))?.as_deref())
    }

    fn place_of(&self, id: VirtualId) -> Option<u16> {
        self.all().find(|cut| cut.id == id).map(|cut| cut.index.0)
    }

    /// Returns to the pool the buffers of frames that the fabric dropped.
    fn give_back(&mut self, pool: &mut FramePool) {
        self.dropped.drain(..).for_each(|dropped| pool.give(dropped.packet.item));
    }
}

impl Engine {
    /// Runs `what` with a virtual switch in the place of the engine's own. Returns `None` if the virtual switch does
    /// not exist.
    pub(crate) fn serve<R>(&mut self, id: VirtualId, what: impl FnOnce(&mut Engine) -> R) -> Option<R> {
        let place = self.virtuals.as_ref()?.place_of(id)?;
        self.serve_at(place, what)
    }

    /// Runs `what` with the virtual switch `name` in the place of the engine's own.
    ///
    /// # Errors
    /// Fails if there is no virtual switch of that name, or if another one is being served.
    pub(crate) fn serve_named<R>(&mut self, name: &str, what: impl FnOnce(&mut Engine) -> R) -> Result<R, SwitchError> {
        let place = self.find_virtual(name)?;
        self.serve_at(place, what).ok_or(SwitchError::Ended)
    }

    /// Runs `what` with the virtual switch of fabric index `place` in the place of the engine's own. Returns `None`
    /// if there is no such switch, or if another one is being served.
    fn serve_at<R>(&mut self, place: u16, what: impl FnOnce(&mut Engine) -> R) -> Option<R> {
        if self.serving.is_some() {
            return None;
        }
        self.exchange(place)?;
        self.serving = Some(place);
        let result = what(self);
        self.serving = None;
        self.exchange(place)?;
        Some(result)
    }

    /// Exchanges the served logical switch with the one stored at fabric index `place`.
    fn exchange(&mut self, place: u16) -> Option<()> {
        let cut = self.virtuals.as_mut()?.cut(place)?;
        std::mem::swap(&mut self.logical, &mut cut.logical);
        Some(())
    }
}
