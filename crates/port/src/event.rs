//! Wakes a thread that sleeps on a descriptor: used between engines and memory ports.
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// An `eventfd(2)`. All methods take `&self`: share it by reference or in an `Arc`.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// Creates a descriptor that is not readable yet.
    ///
    /// # Errors
    /// The process or the system has no descriptor left.
    pub fn new() -> io::Result<EventFd> {
        Ok(EventFd(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    /// Makes the descriptor readable.
    pub fn signal(&self) {
        // The only possible error, a full counter, means that the descriptor is already readable.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable again. Returns true if it was readable.
    pub fn drain(&self) -> bool {
        rustix::io::read(&self.0, &mut [0; 8]).is_ok()
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until `fd` is readable, at most `timeout_ms` milliseconds. Returns true if it is.
pub fn wait_readable(fd: BorrowedFd<'_>, timeout_ms: u32) -> bool {
    wait_any(&[fd], Some(Duration::from_millis(timeout_ms.into())))
}

/// Sleeps until one of `fds` is readable, at most `timeout` (`None`: no limit). Returns true if one is. May return
/// early.
pub fn wait_any(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> bool {
    let mut fds: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    // A timeout of more seconds than the kernel accepts is treated as no limit.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    poll(&mut fds, timeout.as_ref()).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_add_up_to_one_wake_up() {
        let event = EventFd::new().unwrap();
        assert!(!event.drain());
        event.signal();
        event.signal();
        assert!(event.drain());
        assert!(!event.drain());
    }
}
