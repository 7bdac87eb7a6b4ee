//! Runs virtual switches on the packet path. The first lookup selects the virtual switch of a packet, that switch's
//! datapath selects the output, and the fabric schedules the departure ([`weir_fabric`]). Without virtual switches
//! this module is not entered.
//!
//! All work for the controllers of a virtual switch goes through a [`ServedSwitch`], as for the physical switch, so
//! that every operation works for all of them.
mod admit;
mod fabric;
mod path;
mod ports;
mod snapshot;
mod time;
mod timed;
mod turns;

pub(crate) use admit::NewVirtualSwitch;
pub(super) use fabric::EngineFabric;
pub(super) use ports::VirtualPorts;

use super::Engine;
use super::io::EngineIo;
use super::logical::LogicalSwitch;
use super::served::{ServedPorts, ServedSwitch};
use crate::handle::SwitchError;
use tokio::sync::watch;
use turns::ControlTimeAccount;
use weir_openflow::model::PortNo;
use weir_packet::Frame;
use weir_slicing::{CpuShares, TenantClassifier};
use weir_units::Instant;

/// The virtual switches of an engine, and the state they share.
pub(crate) struct EngineVirtualSwitches {
    pub(super) fabric: EngineFabric,
    /// First lookup, and the frames that it has sorted by virtual switch.
    classifier: TenantClassifier,
    /// Virtual switches by fabric index.
    switches: Vec<Option<Box<EngineVirtualSwitch>>>,
    /// Fabric indices, in the order in which the first lookup tries the switches.
    order: Vec<u16>,
    /// Shares of the engine's packet time, by fabric index.
    shares: CpuShares<Frame>,
    /// Value of the processor's time stamp counter when a port was last read, while shares are measured.
    asked_at: u64,
    /// Scratch list for the waiting packets of the virtual switch that is served now.
    turn: Vec<Frame>,
    /// Position in `order` of the virtual switch whose controllers are served first in the next round of control work.
    /// Advances by one each round.
    first: usize,
    /// Time up to which virtual switches have been credited with time for their control work.
    turned_at: Instant,
}

/// A virtual switch: its ports with their part of the fabric, and its logical switch.
struct EngineVirtualSwitch {
    /// Identifier of the virtual switch in calls to the engine.
    id: VirtualId,
    ports: VirtualPorts,
    logical: LogicalSwitch,
    turn: ControlTimeAccount,
    expires: Option<Instant>,
    /// Sender that is dropped with the virtual switch. The switch's control tasks observe this and end.
    _lives: watch::Sender<()>,
}

/// Identifier of a virtual switch, unique during the engine's lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VirtualId(pub(crate) u64);

impl EngineVirtualSwitches {
    /// Returns the virtual switch of fabric index `place`.
    fn switch(&mut self, place: u16) -> Option<&mut EngineVirtualSwitch> {
        self.switches.get_mut(usize::from(place))?.as_deref_mut()
    }

    /// Returns all virtual switches, in the order of the first lookup.
    fn all(&self) -> impl Iterator<Item = &EngineVirtualSwitch> + Clone {
        self.order.iter().filter_map(|place| self.switches.get(usize::from(*place))?.as_deref())
    }

    /// Returns the virtual switch `id` for work on behalf of its controllers or its owner.
    pub(super) fn served<'a>(&'a mut self, id: VirtualId, io: &'a mut EngineIo) -> Option<ServedSwitch<'a>> {
        let place = self.all().find(|switch| switch.id == id)?.place();
        self.served_at(place, io)
    }

    /// Returns the virtual switch of fabric index `place` for work on behalf of its controllers.
    fn served_at<'a>(&'a mut self, place: u16, io: &'a mut EngineIo) -> Option<ServedSwitch<'a>> {
        let switch = self.switches.get_mut(usize::from(place))?.as_deref_mut()?;
        let ports = ServedPorts::Virtual(&mut switch.ports, &mut self.fabric);
        Some(ServedSwitch { logical: &mut switch.logical, io, ports })
    }

    /// Returns the fabric index of the virtual switch `name`; the error lists the names that there are.
    fn find(&self, name: &str) -> Result<u16, SwitchError> {
        let found = self.all().find(|switch| switch.ports.spec.name == name).map(EngineVirtualSwitch::place);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.all().map(|switch| switch.ports.spec.name.as_str()).collect();
            no_such_switch(name, &names.join(", "))
        })
    }

    /// Returns true if any virtual switch has a share of `port`.
    pub(super) fn share(&self, port: PortNo) -> bool {
        self.all().any(|switch| switch.ports.inlets.iter().any(|inlet| inlet.physical == port))
    }

    /// Returns the latest time at which the engine must work for virtual switches again.
    pub(super) fn due(&self) -> Instant {
        let due = |switch: &EngineVirtualSwitch| switch.logical.due().min(switch.expires.unwrap_or(Instant::FAR));
        self.all().map(due).fold(self.fabric.due(), Instant::min)
    }

    /// Returns true if neither packets nor controllers of virtual switches have work for the engine.
    pub(super) fn are_quiet(&self) -> bool {
        !self.shares.has_waiting() && self.all().all(|switch| switch.logical.is_quiet())
    }
}

impl EngineVirtualSwitch {
    /// Index of the virtual switch in the fabric.
    fn place(&self) -> u16 {
        self.ports.index.0
    }
}

/// Returns the error for a name that no virtual switch has; `names` lists those that there are.
fn no_such_switch(name: &str, names: &str) -> SwitchError {
    let there = if names.is_empty() { "none" } else { names };
    SwitchError::Request(format!("no virtual switch `{name}`; there are: {there}"))
}

impl Engine {
    /// Does one round of work for the virtual switches: transmits the frames that are due, serves waiting packets,
    /// serves controllers, and removes virtual switches whose lifetime is over. `forwarded` is true if the engine has
    /// forwarded packets in this round. Returns true if there was any work.
    #[inline]
    pub(super) fn keep_virtuals(&mut self, now: Instant, forwarded: bool) -> bool {
        let Some(virtuals) = &mut self.virtuals else { return false };
        let left = virtuals.fabric.drive(now, &mut self.io);
        let waited = virtuals.serve_waiting(now, &mut self.io);
        let served = virtuals.take_turns(now, &mut self.io, forwarded || waited);
        self.end_expired(now);
        left || waited || served
    }

    /// Returns the virtual switch `name`.
    ///
    /// # Errors
    /// Fails if there is no virtual switch of that name.
    pub(crate) fn served_named(&mut self, name: &str) -> Result<ServedSwitch<'_>, SwitchError> {
        let virtuals = self.virtuals.as_mut().ok_or_else(|| no_such_switch(name, ""))?;
        let place = virtuals.find(name)?;
        virtuals.served_at(place, &mut self.io).ok_or(SwitchError::Ended)
    }
}
