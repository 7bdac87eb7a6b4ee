//! Changing a link while frames pass, from any thread.
//!
//! The link looks at one number each time it is asked to receive or transmit; only when that is another than it knows does it take the
//! lock behind which the new settings are.
use super::{Lateness, Shape};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a link is to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted {
    /// What it does to frames that are transmitted.
    pub egress: Shape,
    /// What it does to frames that are received.
    pub ingress: Shape,
    /// Whether it is there at all: one that is not loses all frames, those on their way too, and its port has no link.
    pub up: bool,
}

/// Changes a link, and tells how late its frames came. Copies are for the same link.
#[derive(Debug, Clone)]
pub struct LinkControl(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Goes up with each change, after `wanted` was written.
    generation: AtomicU64,
    wanted: Mutex<Wanted>,
    late: Lateness,
}

impl LinkControl {
    /// For a link that is up and does this to frames; see [`super::Link::controlled`].
    pub fn new(egress: Shape, ingress: Shape) -> LinkControl {
        let wanted = Mutex::new(Wanted { egress, ingress, up: true });
        LinkControl(Arc::new(Shared { generation: AtomicU64::new(0), wanted, late: Lateness::default() }))
    }

    /// What the link is to do now.
    pub fn wanted(&self) -> Wanted {
        *self.lock()
    }

    /// Changes what the link does, from its next burst on. Frames that it has begun to send keep their times.
    pub fn change(&self, change: impl FnOnce(&mut Wanted)) {
        change(&mut self.lock());
        self.0.generation.fetch_add(1, Ordering::Release);
    }

    /// How much later than it was to release frames the link did so.
    pub fn lateness(&self) -> &Lateness {
        &self.0.late
    }

    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A link's own view of its control.
pub(super) struct Followed {
    control: LinkControl,
    /// The generation that the link is at.
    known: u64,
    /// What the link does.
    pub(super) is_up: bool,
    /// What the port's user asked for, beside it.
    pub(super) admin_up: bool,
}

impl Followed {
    pub(super) fn new(control: LinkControl) -> Followed {
        // Its settings are taken over with the first burst.
        Followed { control, known: u64::MAX, is_up: true, admin_up: true }
    }

    /// What is wanted, if that has changed.
    #[inline]
    pub(super) fn news(&mut self) -> Option<Wanted> {
        let generation = self.control.0.generation.load(Ordering::Acquire);
        (generation != self.known).then(|| self.take(generation))
    }

    #[cold]
    fn take(&mut self, generation: u64) -> Wanted {
        self.known = generation;
        self.control.wanted()
    }

    /// Whether the link is to be there, whether or not the change was taken over yet.
    pub(super) fn wants_up(&self) -> bool {
        self.control.wanted().up
    }

    pub(super) fn lateness(&self) -> &Lateness {
        self.control.lateness()
    }
}
