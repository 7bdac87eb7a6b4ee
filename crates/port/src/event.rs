//! A descriptor that another thread makes readable: how engines and memory ports wake each other.
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// An `eventfd(2)`. All methods take `&self`: share it by reference or in an `Arc`.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// A descriptor that is not readable yet.
    ///
    /// # Errors
    /// The process or the system has no descriptor left.
    pub fn new() -> io::Result<EventFd> {
        // SAFETY: eventfd takes two integers and gives a new descriptor or -1.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, so nobody else owns it.
        Ok(EventFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Makes the descriptor readable.
    pub fn signal(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: the pointer and length describe `one`. A full counter (EAGAIN) is readable already: nothing to do.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Makes it unreadable again; whether it was readable.
    pub fn drain(&self) -> bool {
        let mut count = [0u8; 8];
        // SAFETY: the pointer and length describe `count`; an unreadable descriptor answers EAGAIN at once.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) == 8 }
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until `fd` is readable, at most `timeout_ms` milliseconds; whether it is. For tests and simple loops: engines
/// wait on many descriptors at once.
pub fn wait_readable(fd: BorrowedFd<'_>, timeout_ms: i32) -> bool {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer describes one pollfd that outlives the call.
    unsafe { libc::poll(&mut poll, 1, timeout_ms) > 0 }
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
