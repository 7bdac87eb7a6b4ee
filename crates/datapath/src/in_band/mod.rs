//! In-band control: keeps the control traffic of a switch flowing whose controllers are reached through its own ports,
//! before a controller is connected, and after it is lost.
//!
//! A switch needs a controller to forward, and a controller that is reached in band needs switches that forward.
//! Therefore [`hidden`] entries recognise control traffic, of this switch and of switches behind it. They come before
//! the flow tables. What they take is forwarded like in a learning switch ("learning switch with selected flows").
//! Its table of [`paths`], and what is remembered of [`floods`], keep floods from circling. The switch's own control
//! traffic comes from and goes to the port LOCAL, which is an interface of the machine's network stack.
//!
//! A path that fails is given up in three cases:
//!
//! * The port loses its link: all stations on it are forgotten at once, and neighbours that reach them through this
//!   switch are told ([`lost`]).
//! * A segment that a controller has to acknowledge gets no answer ([`InBandConfig::silence`]): the controller's
//!   station is forgotten, and TCP's next retransmission is flooded.
//! * A frame arrives on the port that it would leave by: the neighbour does not know the path either. The destination
//!   is forgotten, and the frame is flooded to the other ports.
mod config;
mod control_frame;
mod controllers;
mod filter;
mod floods;
mod frames;
mod hidden;
mod lost;
mod paths;
#[cfg(test)]
mod tests;

use crate::{DropReason, EXPIRE_MOST};
pub(crate) use config::ControlDecision;
pub use config::{InBandConfig, InBandCounters, InBandState, MAX_IN_BAND_CONTROLLERS};
use control_frame::{ControlFrame, ControlHeaders};
use controllers::InBandControllers;
use filter::ControlFilter;
use floods::{FloodVerdict, RecentFloods};
pub(crate) use frames::{contains_control, forget_port, take, take_one};
pub use hidden::HiddenEntry;
use hidden::{HiddenAddresses, HiddenEntries, HiddenMatch};
use lost::NoticeLimits;
use paths::{ControlPaths, Transport};
use std::net::{IpAddr, SocketAddr};
use weir_openflow::model::PortNo;
use weir_packet::MacAddr;
use weir_units::Instant;

/// A frame that a hidden entry takes, as far as it was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecognisedFrame {
    frame: ControlFrame,
    /// Index of the entry.
    entry: usize,
    kind: HiddenMatch,
}

/// In-band control of a switch, without its ports.
#[derive(Debug)]
pub(crate) struct InBand {
    controllers: InBandControllers,
    next_hops: Vec<IpAddr>,
    queue: Option<u32>,
    vlan: Option<u16>,
    /// Ethernet address of the local port.
    local: MacAddr,
    filter: ControlFilter,
    entries: HiddenEntries,
    paths: ControlPaths,
    floods: RecentFloods,
    notices: NoticeLimits,
    counters: InBandCounters,
}

impl InBand {
    pub(crate) fn new(config: InBandConfig) -> InBand {
        let mut in_band = InBand {
            controllers: InBandControllers::new(config.silence),
            next_hops: Vec::new(),
            queue: config.queue,
            vlan: config.vlan,
            local: MacAddr([0; 6]),
            filter: ControlFilter::default(),
            entries: HiddenEntries::default(),
            paths: ControlPaths::new(),
            floods: RecentFloods::default(),
            notices: NoticeLimits::new(),
            counters: InBandCounters::default(),
        };
        in_band.set_controllers(&config.controllers);
        in_band
    }

    /// Replaces the controllers.
    pub(crate) fn set_controllers(&mut self, controllers: &[SocketAddr]) {
        self.controllers.set(controllers);
        self.renew_entries();
    }

    /// Replaces the routers through which controllers are reached; at most one for each controller.
    pub(crate) fn set_next_hops(&mut self, next_hops: &[IpAddr]) {
        let next_hops = &next_hops[..next_hops.len().min(MAX_IN_BAND_CONTROLLERS)];
        if self.next_hops != next_hops {
            self.next_hops = next_hops.to_vec();
            self.renew_entries();
        }
    }

    /// Sets the Ethernet address of the local port.
    pub(crate) fn set_local(&mut self, local: MacAddr) {
        if self.local != local {
            self.local = local;
            self.renew_entries();
        }
    }

    fn renew_entries(&mut self) {
        let controllers = self.controllers.addresses();
        self.filter = ControlFilter::new(&controllers, self.vlan.is_some());
        let (next_hops, local, vlan) = (&self.next_hops, self.local, self.vlan);
        self.entries.set(&HiddenAddresses { controllers: &controllers, next_hops, local, vlan });
    }

    /// Returns the queue that control traffic waits in, if one was chosen.
    pub(crate) fn queue(&self) -> Option<u32> {
        self.queue
    }

    /// Returns a frame that a hidden entry takes, with the entry.
    #[inline(always)]
    pub(crate) fn recognise(&self, in_port: PortNo, bytes: &[u8]) -> Option<RecognisedFrame> {
        if self.filter.passes(bytes) { self.recognise_in_full(in_port, bytes) } else { None }
    }

    #[cold]
    fn recognise_in_full(&self, in_port: PortNo, bytes: &[u8]) -> Option<RecognisedFrame> {
        let frame = ControlFrame::of(bytes, self.vlan)?;
        let (entry, kind) = self.entries.find(in_port, &frame, &self.paths)?;
        Some(RecognisedFrame { frame, entry, kind })
    }

    /// Returns the hidden entry that takes a frame, if one does.
    pub(crate) fn entry_of(&self, in_port: PortNo, bytes: &[u8]) -> Option<&HiddenEntry> {
        self.entries.all().get(self.recognise_in_full(in_port, bytes)?.entry)
    }

    /// Decides about a frame with these bytes, and learns from it. `is_live` tells which ports are up.
    pub(crate) fn decide(
        &mut self,
        now: Instant,
        in_port: PortNo,
        recognised: &RecognisedFrame,
        bytes: &[u8],
        is_live: impl Fn(PortNo) -> bool,
    ) -> ControlDecision {
        self.entries.count(recognised.entry, bytes.len());
        let decision = match recognised.kind {
            HiddenMatch::LostPaths if !self.notices.take(now, in_port) => {
                ControlDecision::Drop(DropReason::ControlExcess)
            }
            HiddenMatch::LostPaths => {
                let lost = lost::stations(bytes).filter(|station| self.paths.forget_on(in_port, *station));
                ControlDecision::Tell(lost.collect())
            }
            _ => self.forward(now, in_port, bytes, recognised, is_live),
        };
        match decision {
            ControlDecision::Flood { .. } => self.counters.flooded += 1,
            ControlDecision::Drop(DropReason::ControlCopy) => self.counters.copies += 1,
            ControlDecision::Drop(DropReason::ControlExcess) => self.counters.excess += 1,
            _ => {}
        }
        decision
    }

    fn forward(
        &mut self,
        now: Instant,
        in_port: PortNo,
        bytes: &[u8],
        recognised: &RecognisedFrame,
        is_live: impl Fn(PortNo) -> bool,
    ) -> ControlDecision {
        let RecognisedFrame { ref frame, kind, .. } = *recognised;
        let (source, destination) = (frame.source, frame.destination);
        let is_from_local = in_port == PortNo::LOCAL;
        if is_from_local {
            // The address of an interface may be changed while it is in use.
            self.set_local(source);
        } else if source == self.local {
            return ControlDecision::Drop(DropReason::ControlCopy);
        }
        self.watch_answers(now, in_port, frame, kind);
        let is_for_local = destination == self.local || matches!(kind, HiddenMatch::DhcpToLocal { .. });
        let known = if is_for_local {
            Some(PortNo::LOCAL)
        } else if destination.is_multicast() {
            None
        } else {
            self.paths.port(now, destination).filter(|port| is_live(*port))
        };
        let is_reversed = known == Some(in_port) && !is_for_local;
        let port = known.filter(|_| !is_reversed);
        let transport = if port.is_some() { Transport::Directed } else { Transport::Flooded };
        match self.admit(now, in_port, bytes, source, transport) {
            FloodVerdict::New => {}
            FloodVerdict::Copy => return ControlDecision::Drop(DropReason::ControlCopy),
            FloodVerdict::Excess => return ControlDecision::Drop(DropReason::ControlExcess),
        }
        if self.entries.is_from_controller(kind, frame) {
            self.paths.note_controller(source);
        }
        if is_reversed {
            self.paths.forget(destination);
        }
        match port {
            Some(port) if port == in_port => ControlDecision::Drop(DropReason::InPortOnly),
            Some(port) => ControlDecision::To(port),
            None => ControlDecision::Flood { with_local: destination.is_multicast() && !is_from_local },
        }
    }

    /// Judges a frame of a station, and learns the station's port unless the frame is to be dropped.
    fn admit(
        &mut self,
        now: Instant,
        in_port: PortNo,
        bytes: &[u8],
        source: MacAddr,
        transport: Transport,
    ) -> FloodVerdict {
        let is_from_local = in_port == PortNo::LOCAL;
        // No station sends from an address of a group (IEEE 802-2014, 8.2).
        let is_locked = || source.is_multicast() || self.paths.is_locked(now, in_port, source, transport);
        if !is_from_local && is_locked() {
            return FloodVerdict::Copy;
        }
        // Only frames that are flooded, or would move their source, are compared with those flooded before.
        let is_plain = transport == Transport::Directed && (is_from_local || self.paths.is_on(in_port, source));
        let verdict = if is_plain { FloodVerdict::New } else { self.floods.admit(now, in_port, bytes, transport) };
        if verdict == FloodVerdict::New && !is_from_local {
            self.paths.learn(now, in_port, source, transport);
        }
        verdict
    }

    /// Notes questions to and answers from controllers, and forgets the port of a controller that does not answer.
    fn watch_answers(&mut self, now: Instant, in_port: PortNo, frame: &ControlFrame, kind: HiddenMatch) {
        match (kind, &frame.headers) {
            (HiddenMatch::TcpTo(address), ControlHeaders::Tcp { asks: true, .. }) if in_port == PortNo::LOCAL => {
                let is_silent = self.controllers.ask(now, address);
                if is_silent {
                    self.paths.forget(frame.destination);
                    self.counters.silences += 1;
                }
            }
            (HiddenMatch::TcpFrom(address), _) if frame.destination == self.local => self.controllers.hear(address),
            _ => {}
        }
    }

    /// Forgets the stations on a port that lost its link or was removed. Returns them.
    pub(crate) fn forget_port(&mut self, port: PortNo) -> Vec<MacAddr> {
        self.floods.forget_port(port);
        self.notices.forget_port(port);
        self.paths.forget_port(port)
    }

    /// Returns the notices that tell neighbours of lost stations.
    pub(crate) fn notices(&self, lost: &[MacAddr]) -> impl Iterator<Item = Vec<u8>> {
        lost::notices(self.local, lost)
    }

    /// Forgets stations that were not heard for a long time. Returns the time of the next call, or `None` if no station
    /// is left.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Instant> {
        self.paths.expire(now, EXPIRE_MOST)
    }

    /// Returns the state at this moment.
    pub(crate) fn state(&self, now: Instant) -> InBandState {
        InBandState { entries: self.entries.all().to_vec(), stations: self.paths.known(now), counters: self.counters }
    }
}
