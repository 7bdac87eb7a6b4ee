//! Shares a port between threads. One thread receives from it, all transmit to it, and the engine reads its link and
//! counters. Each locks the port for a burst. A thread that finds it locked continues with other work: it keeps
//! frames to be sent ([`super::sender`]), and reads the port in the next round.
//!
//! A lock replaces a ring between each two threads. A frame is sent by the thread that has it in its cache, from a
//! buffer that returns to that thread's pool. No burst waits to fill, no thread must be woken, and no ring can be
//! full.
use super::super::removed_ports::RemovedPortDrops;
use super::super::sharded_lock::spin_or_yield;
use super::port_contention::PortContention;
use super::port_registry::PortRegistry;
use super::sender::SharedPortSender;
use crate::engine::wake::ThreadWaker;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool};
use weir_port::queues::{QueuedPort, TransmitQueues};
use weir_port::{FrameCounters, LinkState, Port, PortError, PortInfo, PortResult, ReceiveReadiness};
use weir_units::Instant;

/// Number of failed attempts in a row to read a port after which a thread waits for it, because others may send by it
/// all the time.
const MAX_MISSES: u32 = 16;

/// State of a port that all threads share.
pub(super) struct SharedPort {
    pub(super) number: PortNo,
    /// Number of the thread that receives from the port.
    pub(super) thread: usize,
    info: PortInfo,
    takes_any_packet_type: bool,
    /// Descriptor that is readable when the port's is. The port can be closed while a thread waits on this one.
    descriptor: Option<OwnedFd>,
    inner: Mutex<LockedPort>,
    /// Time in ns at which the port needs attention, updated at each use; [`Instant::FAR`] if never.
    due: AtomicU64,
    /// True if a thread found that the port's device is gone.
    is_lost: AtomicBool,
    /// Waker of the thread that receives from the port.
    owner: Arc<ThreadWaker>,
    /// Waker of the engine.
    engine: Arc<ThreadWaker>,
    /// Counts frames dropped because the port was closed.
    gone: RemovedPortDrops,
}

/// State guarded by the lock.
struct LockedPort {
    /// The port; `None` once it is closed.
    port: Option<Box<dyn Port>>,
    /// Error that says why the device is gone.
    lost: Option<PortError>,
    /// Latest time passed to the port. Threads read their clocks before they lock the port, and time must not run
    /// backwards for it.
    now: Instant,
}

impl SharedPort {
    pub(super) fn new(
        number: PortNo,
        port: Box<dyn Port>,
        thread: usize,
        (owner, engine): (Arc<ThreadWaker>, Arc<ThreadWaker>),
        gone: RemovedPortDrops,
    ) -> SharedPort {
        SharedPort {
            number,
            thread,
            info: port.info().clone(),
            takes_any_packet_type: port.takes_any_packet_type(),
            descriptor: port.fd().and_then(|fd| watch(fd).ok()),
            due: AtomicU64::new(due(&*port)),
            inner: Mutex::new(LockedPort { port: Some(port), lost: None, now: Instant::ZERO }),
            is_lost: AtomicBool::new(false),
            owner,
            engine,
            gone,
        }
    }

    /// Locks the port. Waits without sleeping, because the lock is held only for a burst.
    fn lock(&self) -> MutexGuard<'_, LockedPort> {
        let mut looks = 0;
        loop {
            match self.try_lock() {
                Some(inner) => return inner,
                None => spin_or_yield(&mut looks),
            }
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<MutexGuard<'_, LockedPort>> {
        match self.inner.try_lock() {
            Ok(inner) => Some(inner),
            // A panic ends the switch; until then the port stays usable.
            Err(TryLockError::Poisoned(poisoned)) => Some(PoisonError::into_inner(poisoned)),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Waits for the port and runs `work` on it. Returns `None` if it is closed.
    fn with<R>(&self, work: impl FnOnce(&mut dyn Port) -> R) -> Option<R> {
        self.using(&mut self.lock(), work)
    }

    /// Runs `work` on the locked port and updates `due`. Returns `None` if the port is closed.
    #[inline]
    fn using<R>(&self, inner: &mut LockedPort, work: impl FnOnce(&mut dyn Port) -> R) -> Option<R> {
        let port = &mut **inner.port.as_mut()?;
        let result = work(port);
        self.due.store(due(port), Ordering::Relaxed);
        Some(result)
    }

    fn gone(&self) -> PortError {
        PortError::Gone { spec: self.info.spec.clone() }
    }

    /// Drops and counts frames for the port, which is gone.
    pub(super) fn drop_frames(&self, frames: &mut Vec<Frame>, pool: &mut FramePool) {
        self.gone.drop_frames(frames, pool);
    }

    /// Time at which the port needs attention, if any.
    #[inline]
    fn due(&self) -> Option<Instant> {
        Some(Instant::from_nanos(self.due.load(Ordering::Relaxed))).filter(|due| *due < Instant::FAR)
    }

    /// Sends frames from any thread, unless another thread is using the port. Frames for a closed port are dropped.
    /// Returns true if the frames were sent or dropped.
    #[inline]
    pub(super) fn try_transmit(&self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> bool {
        let inner = self.try_lock();
        let could = inner.is_some();
        if let Some(inner) = inner {
            self.transmit_with(inner, now, pool, frames);
        }
        could
    }

    /// Waits for the port and sends frames from any thread. Frames for a closed port are dropped.
    pub(super) fn transmit(&self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) {
        self.transmit_with(self.lock(), now, pool, frames);
    }

    #[inline]
    fn transmit_with(
        &self,
        mut inner: MutexGuard<'_, LockedPort>,
        now: Instant,
        pool: &mut FramePool,
        frames: &mut Vec<Frame>,
    ) {
        let now = inner.at(now);
        let sent = self.using(&mut inner, |port| port.transmit(now, pool, frames));
        drop(inner);
        match sent {
            // The port delays frames, so its thread must know when they are due.
            Some(Ok(())) if self.due().is_some() => self.owner.wake(),
            Some(Ok(())) => {}
            Some(Err(error)) => self.lose(error),
            None => self.gone.drop_frames(frames, pool),
        }
    }

    /// Records that the device is gone, and wakes the engine to remove the port.
    pub(super) fn lose(&self, error: PortError) {
        self.lock().lost.get_or_insert(error);
        self.is_lost.store(true, Ordering::Release);
        self.engine.wake();
    }

    /// Returns true if the port is closed or its device is gone.
    pub(super) fn is_over(&self) -> bool {
        self.is_lost.load(Ordering::Acquire) || self.lock().port.is_none()
    }
}

impl LockedPort {
    /// Returns the time to pass to the port: `now`, but never earlier than before.
    #[inline]
    fn at(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }
}

/// Returns the time in ns at which a port needs attention, or the maximum for never.
#[inline]
fn due(port: &dyn Port) -> u64 {
    port.next_wake().map_or(u64::MAX, Instant::as_nanos)
}

/// Returns a descriptor that is readable when `fd` is, as long as `fd` is open.
fn watch(fd: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, fd, EventData::new_u64(0), EventFlags::IN)?;
    Ok(epoll)
}

/// Handle of a shared port for one thread.
pub(super) struct SharedPortHandle {
    common: Arc<SharedPort>,
    sender: SharedPortSender,
    hindered: Arc<PortContention>,
    /// True if this thread receives from the port; others only transmit and do maintenance.
    receives: bool,
    /// Number of failed attempts in a row to read the port because it was in use.
    misses: u32,
    /// Set only in the engine's handle; dropping it closes the port.
    listed: Option<PortRegistration>,
}

impl SharedPortHandle {
    /// Returns the handle for the receiving thread, if that is not the engine's.
    pub(super) fn of_receiver(common: Arc<SharedPort>, hindered: Arc<PortContention>) -> SharedPortHandle {
        SharedPortHandle::new(common, hindered, true, None)
    }

    /// Returns the handle for the engine's thread.
    pub(super) fn of_engine(
        common: Arc<SharedPort>,
        hindered: Arc<PortContention>,
        receives: bool,
        listed: PortRegistration,
    ) -> SharedPortHandle {
        SharedPortHandle::new(common, hindered, receives, Some(listed))
    }

    fn new(
        common: Arc<SharedPort>,
        hindered: Arc<PortContention>,
        receives: bool,
        listed: Option<PortRegistration>,
    ) -> SharedPortHandle {
        let sender = SharedPortSender::new(Arc::clone(&common), Arc::clone(&hindered));
        SharedPortHandle { common, sender, hindered, receives, misses: 0, listed }
    }

    /// Locks the port for receiving. Returns `None` if another thread is using it, but waits after [`MAX_MISSES`]
    /// failed attempts.
    #[inline]
    fn look<'a>(
        common: &'a SharedPort,
        hindered: &PortContention,
        misses: &mut u32,
    ) -> Option<MutexGuard<'a, LockedPort>> {
        let inner = common.try_lock();
        if inner.is_some() {
            *misses = 0;
            return inner;
        }
        hindered.note();
        *misses += 1;
        (*misses > MAX_MISSES).then(|| common.lock())
    }
}

impl Port for SharedPortHandle {
    fn info(&self) -> &PortInfo {
        &self.common.info
    }

    fn receive(&mut self, now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        let common = &self.common;
        if common.is_lost.load(Ordering::Acquire) {
            return Err(common.lock().lost.take().unwrap_or_else(|| common.gone()));
        }
        if !self.receives {
            return Ok(());
        }
        let Some(mut inner) = Self::look(common, &self.hindered, &mut self.misses) else { return Ok(()) };
        let now = inner.at(now);
        common.using(&mut inner, |port| port.receive(now, pool, batch, max)).unwrap_or_else(|| Err(common.gone()))
    }

    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        self.sender.send(now, pool, frames);
        Ok(())
    }

    fn arm(&mut self) -> ReceiveReadiness {
        let common = &self.common;
        if self.sender.holds() || common.is_lost.load(Ordering::Acquire) {
            return ReceiveReadiness::Now;
        }
        if !self.receives {
            return ReceiveReadiness::OnDescriptor;
        }
        match common.try_lock() {
            Some(mut inner) => common.using(&mut inner, |port| port.arm()).unwrap_or(ReceiveReadiness::Now),
            None => {
                self.hindered.note();
                ReceiveReadiness::Now
            }
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.common.descriptor.as_ref().filter(|_| self.receives).map(AsFd::as_fd)
    }

    fn next_wake(&self) -> Option<Instant> {
        match self.sender.holds() {
            true => Some(Instant::ZERO),
            false => self.common.due().filter(|_| self.receives),
        }
    }

    fn takes_any_packet_type(&self) -> bool {
        self.common.takes_any_packet_type
    }

    fn link(&mut self) -> LinkState {
        let link = self.common.with(|port| port.link()).unwrap_or(LinkState { up: false, speed: None });
        if let Some(listed) = self.listed.as_ref().filter(|_| !self.receives) {
            // A port detects a missing device when it is read.
            listed.board.changed();
        }
        link
    }

    fn counters(&self) -> FrameCounters {
        self.common.with(|port| port.counters()).unwrap_or_default()
    }

    fn set_admin(&mut self, up: bool) -> std::io::Result<()> {
        self.common.with(|port| port.set_admin(up)).unwrap_or(Ok(()))
    }

    fn look_at_queues(&self, look: &mut dyn FnMut(&TransmitQueues)) {
        self.common.with(|port| port.look_at_queues(look));
    }

    fn change_queues(&mut self, change: &mut dyn FnMut(&mut TransmitQueues)) {
        self.common.with(|port| port.change_queues(change));
        // Frames may have become due for the receiving thread.
        self.common.owner.wake();
    }

    fn begin_queues(&mut self) -> bool {
        let port = &mut self.common.lock().port;
        *port = port.take().map(|port| Box::new(QueuedPort::new(port)) as Box<dyn Port>);
        port.is_some()
    }
}

/// A port's entry on the board. Dropping it removes the entry and closes the port, even if other threads still hold
/// it.
pub(super) struct PortRegistration {
    common: Arc<SharedPort>,
    board: Arc<PortRegistry>,
}

impl PortRegistration {
    /// Adds a port to the board.
    pub(super) fn new(common: &Arc<SharedPort>, board: &Arc<PortRegistry>) -> PortRegistration {
        board.add(Arc::clone(common));
        PortRegistration { common: Arc::clone(common), board: Arc::clone(board) }
    }
}

impl Drop for PortRegistration {
    fn drop(&mut self) {
        self.board.remove(&self.common);
        // The port is closed after the lock is released, because closing a device may take time.
        let port = self.common.lock().port.take();
        drop(port);
    }
}
