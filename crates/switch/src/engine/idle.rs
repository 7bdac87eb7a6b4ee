//! Ports that cost a system call to ask and have had nothing for a while are not asked in each round, but watched together: one
//! system call for all of them, however many there are.
//!
//! A port is watched once it has had nothing in [`QUIET_ROUNDS`] rounds in a row, until its descriptor says that there is
//! something; then it is asked again like any other. Ports that only look into memory (AF_XDP, memory, null) are always asked.
use super::ports::{Ports, Slot};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use weir_openflow::model::PortNo;
use weir_port::Ready;
use weir_units::Instant;

/// Rounds in a row without a frame after which a port is watched: a flow's gaps are shorter, and asking that often is soon
/// paid back.
const QUIET_ROUNDS: u32 = 64;
/// Descriptors told of in one round at most; the others are in the next.
const MAX_EVENTS: usize = 64;
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// What watches ports.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    /// Made when it is first needed; none also if the process has no descriptor left.
    epoll: Option<OwnedFd>,
    /// Whether the last round met a port that is watched.
    any: bool,
}

impl Idle {
    /// Finds out which of the watched ports have something.
    pub(crate) fn look(&mut self, ports: &mut Ports) {
        if !std::mem::take(&mut self.any) {
            return;
        }
        let Some(epoll) = &self.epoll else { return };
        let mut room = [const { MaybeUninit::<Event>::uninit() }; MAX_EVENTS];
        // A refusal (a signal) leaves it to a later round.
        let Ok((found, _)) = epoll::wait(epoll, &mut room, Some(&AT_ONCE)) else { return };
        for event in found {
            let number = u32::try_from(event.data.u64()).unwrap_or_default();
            if let Some(place) = ports.place(PortNo(number)) {
                ports.at(place).ask_again();
            }
        }
    }

    /// Whether a port may be passed over in this round.
    pub(crate) fn may_pass_over(&mut self, slot: &Slot, now: Instant) -> bool {
        let holds_back = || slot.port.as_ref().and_then(|port| port.next_wake()).is_some_and(|at| at <= now);
        let watched = slot.is_watched && !holds_back();
        self.any |= slot.is_watched;
        watched
    }

    /// Notes whether a port had something, and watches it if it had nothing for long.
    pub(crate) fn asked(&mut self, slot: &mut Slot, had_frames: bool) {
        if had_frames {
            return slot.ask_again();
        }
        slot.quiet_rounds = slot.quiet_rounds.saturating_add(1);
        if slot.quiet_rounds == QUIET_ROUNDS && slot.costs_a_call {
            slot.is_watched = self.watch(slot);
            self.any |= slot.is_watched;
        }
    }

    /// Whether it could.
    fn watch(&mut self, slot: &mut Slot) -> bool {
        if self.epoll.is_none() {
            self.epoll = epoll::create(CreateFlags::CLOEXEC).ok();
        }
        let (Some(epoll), Some(port)) = (&self.epoll, slot.port.as_mut()) else { return false };
        if port.arm() == Ready::Now {
            return false;
        }
        let Some(descriptor) = port.fd() else { return false };
        let data = EventData::new_u64(slot.number.0.into());
        // Once: what is found is asked, not found again.
        let flags = EventFlags::IN | EventFlags::ONESHOT;
        match epoll::modify(epoll, descriptor, data, flags) {
            // The kernel forgets a descriptor when it is closed.
            Err(Errno::NOENT) => epoll::add(epoll, descriptor, data, flags).is_ok(),
            modified => modified.is_ok(),
        }
    }
}

impl Slot {
    /// Asks the port in each round from now on.
    pub(crate) fn ask_again(&mut self) {
        (self.is_watched, self.quiet_rounds) = (false, 0);
    }
}
