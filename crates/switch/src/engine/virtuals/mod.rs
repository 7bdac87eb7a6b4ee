//! Virtual switches on the packet path: the first lookup says which of them a packet is for, its own datapath where it goes, and the
//! fabric when it leaves ([`weir_fabric`]). Without any, the engine does not come here.
//!
//! The engine serves one logical switch at a time: to do something for a virtual one, it puts that in the place of its own
//! ([`Engine::serve`]), so that whatever it can do for controllers it can do for all of them.
mod admit;
mod path;
mod ports;
mod snapshot;
mod time;
mod turns;

pub(crate) use admit::Coming;

use super::Engine;
use super::logical::LogicalSwitch;
use crate::handle::SwitchError;
use crate::virtuals::inlet::Inlet;
use crate::virtuals::outlet::Outlet;
use crate::virtuals::shares::Shares;
use crate::virtuals::sorter::Sorter;
use tokio::sync::watch;
use turns::Turn;
use weir_fabric::{Dropped, Fabric, SwitchIndex};
use weir_packet::{Frame, FramePool};
use weir_scenario::VirtualSwitch;
use weir_units::Instant;

/// The virtual switches of an engine, and what they share.
pub(crate) struct Virtuals {
    fabric: Fabric<Frame>,
    /// What there is to share.
    shape: weir_scenario::Fabric,
    sorter: Sorter,
    /// By their place in the fabric.
    cuts: Vec<Option<Box<Cut>>>,
    /// Their places, in the order in which the first lookup asks them.
    order: Vec<u16>,
    /// By port of the fabric.
    outlets: Vec<Outlet>,
    /// Who has how much of the engine's time for its packets, by place.
    shares: Shares<Frame>,
    /// The counter when a port was asked last, while it is measured who has how much.
    asked_at: u64,
    /// Those whose turn it is; a list that is used again.
    turn: Vec<Frame>,
    /// What the fabric dropped last.
    dropped: Vec<Dropped<Frame>>,
    /// The switch whose turn at the engine's time comes first.
    first: usize,
    /// Time counted for turns up to then.
    turned_at: Instant,
}

/// A virtual switch.
pub(super) struct Cut {
    /// Its name for calls.
    id: VirtualId,
    spec: VirtualSwitch,
    index: SwitchIndex,
    inlets: Vec<Inlet>,
    /// Its own; while it is served, the physical switch's.
    logical: Box<LogicalSwitch>,
    turn: Turn,
    expires: Option<Instant>,
    /// Dropped with it, which tells its control tasks.
    _lives: watch::Sender<()>,
}

/// A virtual switch, as long as the engine lives; not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VirtualId(pub(crate) u64);

impl Virtuals {
    fn cut(&mut self, place: u16) -> Option<&mut Cut> {
        self.cuts.get_mut(usize::from(place))?.as_deref_mut()
    }

    fn all(&self) -> impl Iterator<Item = &Cut> + Clone {
        self.order.iter().filter_map(|place| self.cuts.get(usize::from(*place))?.as_deref())
    }

    fn place_of(&self, id: VirtualId) -> Option<u16> {
        self.all().find(|cut| cut.id == id).map(|cut| cut.index.0)
    }

    /// The virtual switch that has taken the engine's place.
    fn give_back(&mut self, pool: &mut FramePool) {
        self.dropped.drain(..).for_each(|dropped| pool.give(dropped.packet.item));
    }
}

impl Engine {
    /// Does something for a virtual switch, as for the engine's own; none if it is not there.
    pub(crate) fn serve<R>(&mut self, id: VirtualId, what: impl FnOnce(&mut Engine) -> R) -> Option<R> {
        let place = self.virtuals.as_ref()?.place_of(id)?;
        self.serve_at(place, what)
    }

    /// The same, by name.
    ///
    /// # Errors
    /// There is none of that name.
    pub(crate) fn serve_named<R>(&mut self, name: &str, what: impl FnOnce(&mut Engine) -> R) -> Result<R, SwitchError> {
        let place = self.find_virtual(name)?;
        self.serve_at(place, what).ok_or(SwitchError::Ended)
    }

    /// The same, for the one at a place of the fabric.
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

    /// Puts a virtual switch in the place of the one that is served, and that in its place.
    fn exchange(&mut self, place: u16) -> Option<()> {
        let cut = self.virtuals.as_mut()?.cut(place)?;
        std::mem::swap(&mut self.logical, &mut cut.logical);
        Some(())
    }
}
