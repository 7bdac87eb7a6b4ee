//! Watches quiet ports with one system call for all, instead of reading each in every round. This covers only ports
//! whose reads cost a system call.
//!
//! A port is watched after [`QUIET_ROUNDS`] rounds in a row without a frame. When its descriptor becomes readable, it
//! is read in every round again. Ports that only read memory (AF_XDP, memory, null) are always read.
use super::ports::{PortPolling, PortSlot, PortSlots};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use weir_openflow::model::PortNo;
use weir_port::ReceiveReadiness;
use weir_units::Instant;

/// Number of rounds in a row without a frame after which a port is watched. The gaps within a flow are shorter, and
/// the cost of reading that often is soon recovered.
const QUIET_ROUNDS: u32 = 64;
/// Maximum number of readable descriptors handled in one round; the rest wait for the next.
const MAX_EVENTS: usize = 64;
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Set of watched ports.
#[derive(Debug, Default)]
pub(crate) struct IdlePorts {
    /// Created at first use; remains `None` if the process has no descriptor left.
    epoll: Option<OwnedFd>,
    /// True if the last round found a watched port.
    any: bool,
}

impl IdlePorts {
    /// Finds the watched ports that have frames and returns them to normal reading.
    pub(crate) fn look(&mut self, ports: &mut PortSlots) {
        if !std::mem::take(&mut self.any) {
            return;
        }
        let Some(epoll) = &self.epoll else { return };
        let mut room = [const { MaybeUninit::<Event>::uninit() }; MAX_EVENTS];
        // An interrupted call (a signal) is repeated in a later round.
        let Ok((found, _)) = epoll::wait(epoll, &mut room, Some(&AT_ONCE)) else { return };
        for event in found {
            let number = u32::try_from(event.data.u64()).unwrap_or_default();
            if let Some(place) = ports.place(PortNo(number)) {
                ports.at(place).ask_again();
            }
        }
    }

    /// Returns true if a port can be skipped in this round.
    pub(crate) fn may_pass_over(&mut self, slot: &PortSlot, now: Instant) -> bool {
        if slot.polling != PortPolling::Watched {
            return false;
        }
        self.any = true;
        slot.port.as_ref().and_then(|port| port.next_wake()).is_none_or(|at| at > now)
    }

    /// Records whether a port had frames, and starts to watch it after a long quiet time.
    pub(crate) fn asked(&mut self, slot: &mut PortSlot, had_frames: bool) {
        if had_frames {
            return slot.ask_again();
        }
        let PortPolling::EachRound { quiet_rounds } = &mut slot.polling else { return };
        *quiet_rounds = quiet_rounds.saturating_add(1);
        if *quiet_rounds == QUIET_ROUNDS && slot.costs_a_call && self.watch(slot) {
            slot.polling = PortPolling::Watched;
            self.any = true;
        }
    }

    /// Adds a port to the watched set. Returns false if it already has frames or cannot be watched.
    fn watch(&mut self, slot: &mut PortSlot) -> bool {
        if self.epoll.is_none() {
            self.epoll = epoll::create(CreateFlags::CLOEXEC).ok();
        }
        let (Some(epoll), Some(port)) = (&self.epoll, slot.port.as_mut()) else { return false };
        if port.arm() == ReceiveReadiness::Now {
            return false;
        }
        let Some(descriptor) = port.fd() else { return false };
        let data = EventData::new_u64(slot.number.0.into());
        // One-shot: a port that was found readable is read, and not reported again.
        let flags = EventFlags::IN | EventFlags::ONESHOT;
        match epoll::modify(epoll, descriptor, data, flags) {
            // The kernel drops a descriptor from the set when it is closed.
            Err(Errno::NOENT) => epoll::add(epoll, descriptor, data, flags).is_ok(),
            modified => modified.is_ok(),
        }
    }
}

impl PortSlot {
    /// Reads the port in each round from now on.
    pub(crate) fn ask_again(&mut self) {
        self.polling = PortPolling::EachRound { quiet_rounds: 0 };
    }
}
