//! A port that several threads use: one receives from it, all transmit to it, and the engine asks it for its link and counters. Each locks it
//! for the time of a burst.
//!
//! A lock instead of a ring between each two threads: a frame that another thread's port sends is sent by the thread that has it in its
//! cache, from a buffer that goes back to that thread's pool; no burst is waited for, nobody is woken, and no ring can be full.
use super::super::seats::look_again;
use super::board::Board;
use crate::engine::wake::Waker;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool};
use weir_port::{Counters, LinkState, Port, PortError, PortInfo, Ready};
use weir_units::Instant;

/// What all threads know of a port.
pub(super) struct Common {
    pub(super) number: PortNo,
    /// The thread that receives from it.
    pub(super) thread: usize,
    info: PortInfo,
    takes_any_packet_type: bool,
    /// Readable when the port's descriptor is. The port can be closed while somebody waits on this.
    descriptor: Option<OwnedFd>,
    inner: Mutex<Inner>,
    /// Whether the thread that receives from it found its device gone.
    is_lost: AtomicBool,
    /// Wakes the thread that receives from it, and the engine.
    owner: Arc<Waker>,
    engine: Arc<Waker>,
}

struct Inner {
    /// None once it is closed.
    port: Option<Box<dyn Port>>,
    /// Why its device is gone.
    lost: Option<PortError>,
}

impl Common {
    pub(super) fn new(
        number: PortNo,
        port: Box<dyn Port>,
        thread: usize,
        owner: Arc<Waker>,
        engine: Arc<Waker>,
    ) -> Common {
        Common {
            number,
            thread,
            info: port.info().clone(),
            takes_any_packet_type: port.takes_any_packet_type(),
            descriptor: port.fd().and_then(|fd| watch(fd).ok()),
            inner: Mutex::new(Inner { port: Some(port), lost: None }),
            is_lost: AtomicBool::new(false),
            owner,
            engine,
        }
    }

    /// Held for a burst, so nobody sleeps for it.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        let mut looks = 0;
        loop {
            match self.inner.try_lock() {
                Ok(inner) => return inner,
                // Who panicked takes the switch down with it; until then the port is one.
                Err(TryLockError::Poisoned(poisoned)) => return PoisonError::into_inner(poisoned),
                Err(TryLockError::WouldBlock) => look_again(&mut looks),
            }
        }
    }

    /// The same with the port, if it is not closed.
    fn with<R>(&self, work: impl FnOnce(&mut dyn Port) -> R) -> Option<R> {
        self.lock().port.as_mut().map(|port| work(&mut **port))
    }

    fn gone(&self) -> PortError {
        PortError::Gone { spec: self.info.spec.clone() }
    }

    /// Sends frames from any thread; without the port they are dropped.
    pub(super) fn transmit(&self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) {
        let sent = self.with(|port| (port.transmit(now, pool, frames), port.next_wake()));
        match sent {
            Some((Ok(()), None)) => {}
            // It holds frames back: its thread is to know when they are due.
            Some((Ok(()), Some(_))) => self.owner.wake(),
            Some((Err(error), _)) => self.lose(error),
            None => frames.drain(..).for_each(|frame| pool.give(frame)),
        }
    }

    /// States that its device is gone: the engine is to take it out.
    pub(super) fn lose(&self, error: PortError) {
        self.lock().lost.get_or_insert(error);
        self.is_lost.store(true, Ordering::Release);
        self.engine.wake();
    }

    /// Whether it is closed, or its device gone.
    pub(super) fn is_over(&self) -> bool {
        self.is_lost.load(Ordering::Acquire) || self.lock().port.is_none()
    }
}

/// Something that is readable when `fd` is, as long as that is open.
fn watch(fd: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, fd, EventData::new_u64(0), EventFlags::IN)?;
    Ok(epoll)
}

/// The port as one thread has it.
pub(super) struct Shared {
    common: Arc<Common>,
    /// Whether this thread receives from it; others only transmit, and look after it.
    receives: bool,
    /// With the engine's: when this goes, the port is closed.
    listed: Option<Listed>,
}

impl Shared {
    /// For the thread that receives from it, beside the engine's.
    pub(super) fn of_receiver(common: Arc<Common>) -> Shared {
        Shared { common, receives: true, listed: None }
    }

    /// For the engine.
    pub(super) fn of_engine(common: Arc<Common>, receives: bool, listed: Listed) -> Shared {
        Shared { common, receives, listed: Some(listed) }
    }
}

impl Port for Shared {
    fn info(&self) -> &PortInfo {
        &self.common.info
    }

    fn receive(
        &mut self,
        now: Instant,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
        max: usize,
    ) -> Result<(), PortError> {
        let common = &self.common;
        if common.is_lost.load(Ordering::Acquire) {
            return Err(common.lock().lost.take().unwrap_or_else(|| common.gone()));
        }
        if !self.receives {
            return Ok(());
        }
        common.with(|port| port.receive(now, pool, batch, max)).unwrap_or_else(|| Err(common.gone()))
    }

    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> Result<(), PortError> {
        self.common.transmit(now, pool, frames);
        Ok(())
    }

    fn arm(&mut self) -> Ready {
        match &self.common {
            common if common.is_lost.load(Ordering::Acquire) => Ready::Now,
            common if self.receives => common.with(|port| port.arm()).unwrap_or(Ready::Now),
            _ => Ready::OnDescriptor,
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.common.descriptor.as_ref().filter(|_| self.receives).map(AsFd::as_fd)
    }

    fn next_wake(&self) -> Option<Instant> {
        if self.receives { self.common.with(|port| port.next_wake()).flatten() } else { None }
    }

    fn takes_any_packet_type(&self) -> bool {
        self.common.takes_any_packet_type
    }

    fn link(&mut self) -> LinkState {
        let link = self.common.with(|port| port.link()).unwrap_or(LinkState { up: false, speed: None });
        if let Some(listed) = self.listed.as_ref().filter(|_| !self.receives) {
            // A port that finds its device gone tells so when it is asked for frames.
            listed.board.changed();
        }
        link
    }

    fn counters(&self) -> Counters {
        self.common.with(|port| port.counters()).unwrap_or_default()
    }

    fn set_admin(&mut self, up: bool) -> std::io::Result<()> {
        self.common.with(|port| port.set_admin(up)).unwrap_or(Ok(()))
    }
}

/// A port's place on the board; dropped, it is off, and the port closed, whoever else still knows of it.
pub(super) struct Listed {
    common: Arc<Common>,
    board: Arc<Board>,
}

impl Listed {
    /// Puts a port on the board.
    pub(super) fn new(common: &Arc<Common>, board: &Arc<Board>) -> Listed {
        board.add(Arc::clone(common));
        Listed { common: Arc::clone(common), board: Arc::clone(board) }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.board.remove(&self.common);
        // Closed once the lock is free again: a device may take its time.
        let port = self.common.lock().port.take();
        drop(port);
    }
}
