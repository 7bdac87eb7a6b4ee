//! How an engine that sleeps is woken, and how it sleeps.
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;
use weir_port::Port;
use weir_port::event::EventFd;
use weir_port::link::Monitor;

/// Wakes an engine: costs a system call only when it sleeps.
#[derive(Debug)]
pub(crate) struct Waker {
    event: EventFd,
    asleep: AtomicBool,
}

/// What ended a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slept {
    /// Whether a descriptor was readable; otherwise the time was over.
    pub(crate) is_called: bool,
    /// Whether the monitor's was.
    pub(crate) has_news: bool,
}

impl Waker {
    /// # Errors
    /// The process has no descriptor left.
    pub(crate) fn new() -> io::Result<Waker> {
        Ok(Waker { event: EventFd::new()?, asleep: AtomicBool::new(false) })
    }

    /// To be called after something was put where the engine looks for it.
    pub(crate) fn wake(&self) {
        // Pairs with the fence in `about_to_sleep`: either the engine sees what was put, or this sees it asleep.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            self.event.signal();
        }
    }

    /// The engine says it will sleep. It must look once more for work after this, then sleep or call [`Waker::awake`].
    pub(crate) fn about_to_sleep(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The engine does not sleep (any more).
    pub(crate) fn awake(&self) {
        if !self.asleep.swap(false, Ordering::Relaxed) {
            // Somebody woke the engine: take the signal back, or the next sleep ends at once.
            self.event.drain();
        }
    }

    /// Sleeps until this is woken, a port or the monitor has something, or `timeout` is over. Says what ended the
    /// sleep.
    pub(crate) fn sleep<'a>(
        &'a self,
        ports: impl Iterator<Item = &'a dyn Port>,
        monitor: Option<&'a Monitor>,
        timeout: Duration,
    ) -> Slept {
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds: Vec<PollFd<'_>> = vec![readable(self.event.as_fd())];
        fds.extend(monitor.map(|monitor| readable(monitor.as_fd())));
        fds.extend(ports.filter_map(Port::fd).map(readable));
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        // An interrupted or refused poll ends the sleep early: the engine looks, and sleeps again.
        let ready = poll(&mut fds, Some(&timeout)).unwrap_or_default();
        Slept { is_called: ready > 0, has_news: monitor.is_some() && !fds[1].revents().is_empty() }
    }
}
