//! Waits until sockets can be read or written, or another thread has something.
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Most events taken at once. More than that come in the next turn, in the order in which they became ready.
const EVENTS_AT_ONCE: usize = 64;

/// Events of a socket that are waited for. They are reported as long as they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interest {
    pub(super) read: bool,
    pub(super) write: bool,
}

/// Something that can be done with a socket.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ready {
    /// Number that the socket was added with.
    pub(super) token: u64,
    /// Reading gives bytes, the end, or an error.
    pub(super) read: bool,
    pub(super) write: bool,
}

/// Set of sockets that are waited for (`epoll(7)`).
pub(super) struct Poller {
    epoll: OwnedFd,
    events: Vec<Event>,
}

/// Wakes a poller from any thread.
#[derive(Debug, Clone)]
pub(super) struct PollerWaker(Arc<OwnedFd>);

impl PollerWaker {
    pub(super) fn new() -> io::Result<PollerWaker> {
        Ok(PollerWaker(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    pub(super) fn wake(&self) {
        // A counter that is full is readable, too.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    pub(super) fn acknowledge(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }

    pub(super) fn source(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Poller {
    pub(super) fn new() -> io::Result<Poller> {
        Ok(Poller { epoll: epoll::create(CreateFlags::CLOEXEC)?, events: Vec::with_capacity(EVENTS_AT_ONCE) })
    }

    pub(super) fn add(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(token), interest.flags())?)
    }

    pub(super) fn change(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, source, EventData::new_u64(token), interest.flags())?)
    }

    pub(super) fn remove(&self, source: impl AsFd) {
        // Closing the socket removes it, too.
        let _ = epoll::delete(&self.epoll, source);
    }

    /// Waits at most `timeout`, or without an end. Moves what is ready to `into`.
    pub(super) fn wait(&mut self, timeout: Option<Duration>, into: &mut Vec<Ready>) -> io::Result<()> {
        let timeout = timeout.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        self.events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        into.extend(self.events.iter().map(|event| {
            let flags = event.flags;
            Ready {
                token: event.data.u64(),
                read: flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP),
                write: flags.contains(EventFlags::OUT),
            }
        }));
        Ok(())
    }
}

impl Interest {
    fn flags(self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.read);
        flags.set(EventFlags::OUT, self.write);
        flags
    }
}
