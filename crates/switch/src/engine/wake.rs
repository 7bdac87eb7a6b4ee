//! Puts the engine to sleep on its descriptors and wakes it from other threads.
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;
use weir_port::Port;
use weir_port::event::EventFd;
use weir_port::netlink::LinkMonitor;

/// Wakes an engine. Waking costs a system call only while the engine sleeps.
#[derive(Debug)]
pub(crate) struct ThreadWaker {
    event: EventFd,
    asleep: AtomicBool,
}

/// Reason for the end of a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WakeReason {
    /// True if a descriptor was readable; false if the time was over.
    pub(crate) is_called: bool,
    /// True if the link monitor's descriptor was readable.
    pub(crate) has_news: bool,
}

impl ThreadWaker {
    /// Creates a waker.
    ///
    /// # Errors
    /// Fails if the process has no descriptor left.
    pub(crate) fn new() -> io::Result<ThreadWaker> {
        Ok(ThreadWaker { event: EventFd::new()?, asleep: AtomicBool::new(false) })
    }

    /// Wakes the engine if it sleeps. Call this after putting work where the engine looks for it.
    pub(crate) fn wake(&self) {
        // Pairs with the fence in `about_to_sleep`: either the engine sees the new work, or this thread sees it
        // asleep.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            self.event.signal();
        }
    }

    /// Announces that the engine will sleep. Afterwards the engine must look for work once more, then sleep or call
    /// [`ThreadWaker::awake`].
    pub(crate) fn about_to_sleep(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Announces that the engine is awake, or will not sleep.
    pub(crate) fn awake(&self) {
        if !self.asleep.swap(false, Ordering::Relaxed) {
            // Another thread has signalled. The signal is drained, because the next sleep would otherwise end at
            // once.
            self.event.drain();
        }
    }

    /// Sleeps until a call of [`ThreadWaker::wake`], until a port or the monitor is readable, or until `timeout` is
    /// over. Returns the reason for the end.
    pub(crate) fn sleep<'a>(
        &'a self,
        ports: impl Iterator<Item = &'a dyn Port>,
        monitor: Option<&'a LinkMonitor>,
        timeout: Duration,
    ) -> WakeReason {
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds: Vec<PollFd<'_>> = vec![readable(self.event.as_fd())];
        fds.extend(monitor.map(|monitor| readable(monitor.as_fd())));
        fds.extend(ports.filter_map(Port::fd).map(readable));
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        // An interrupted or refused poll ends the sleep early: the engine looks for work, and sleeps again.
        let ready = poll(&mut fds, Some(&timeout)).unwrap_or_default();
        WakeReason { is_called: ready > 0, has_news: monitor.is_some() && !fds[1].revents().is_empty() }
    }
}
