//! Changes a link while frames pass, from any thread.
//!
//! At each receive or transmit the link reads one atomic number. Only if the number differs from the last one does it
//! take the lock that protects the new settings.
use super::{LinkLatenessHistogram, LinkShape};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Settings of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkParameters {
    /// Properties for transmitted frames.
    pub egress: LinkShape,
    /// Properties for received frames.
    pub ingress: LinkShape,
    /// True if the link is up. A link that is down loses all frames, including those in flight, and its port has no
    /// link.
    pub up: bool,
}

/// Handle that changes a link and reports the lateness of its frames. Clones control the same link.
#[derive(Debug, Clone)]
pub struct LinkControl(Arc<LinkControlState>);

#[derive(Debug)]
struct LinkControlState {
    /// Incremented with each change, after `wanted` was written.
    generation: AtomicU64,
    wanted: Mutex<LinkParameters>,
    late: LinkLatenessHistogram,
}

impl LinkControl {
    /// Creates a handle for a link that is up and has these properties; see [`super::LinkEmulator::controlled`].
    pub fn new(egress: LinkShape, ingress: LinkShape) -> LinkControl {
        let wanted = Mutex::new(LinkParameters { egress, ingress, up: true });
        LinkControl(Arc::new(LinkControlState {
            generation: AtomicU64::new(0),
            wanted,
            late: LinkLatenessHistogram::default(),
        }))
    }

    /// Returns the link's current settings.
    pub fn wanted(&self) -> LinkParameters {
        *self.lock()
    }

    /// Changes the link's settings from its next burst on. Frames that it has begun to send keep their times.
    pub fn change(&self, change: impl FnOnce(&mut LinkParameters)) {
        change(&mut self.lock());
        self.0.generation.fetch_add(1, Ordering::Release);
    }

    /// Returns how much later than due the link released frames.
    pub fn lateness(&self) -> &LinkLatenessHistogram {
        &self.0.late
    }

    fn lock(&self) -> MutexGuard<'_, LinkParameters> {
        self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// State of a link relative to its control handle.
pub(super) struct LinkControlTracker {
    control: LinkControl,
    /// Generation that the link has adopted.
    known: u64,
    /// True if the link is currently up.
    pub(super) is_up: bool,
    /// Administrative state that the port's user requested, independent of the link's state.
    pub(super) admin_up: bool,
}

impl LinkControlTracker {
    pub(super) fn new(control: LinkControl) -> LinkControlTracker {
        // The unknown generation makes the link adopt the settings with the first burst.
        LinkControlTracker { control, known: u64::MAX, is_up: true, admin_up: true }
    }

    /// Returns the settings if they changed since the last call.
    #[inline]
    pub(super) fn news(&mut self) -> Option<LinkParameters> {
        let generation = self.control.0.generation.load(Ordering::Acquire);
        (generation != self.known).then(|| self.take(generation))
    }

    #[cold]
    fn take(&mut self, generation: u64) -> LinkParameters {
        self.known = generation;
        self.control.wanted()
    }

    /// Returns true if the link should be up, even if the change was not adopted yet.
    pub(super) fn wants_up(&self) -> bool {
        self.control.wanted().up
    }

    pub(super) fn lateness(&self) -> &LinkLatenessHistogram {
        self.control.lateness()
    }
}
