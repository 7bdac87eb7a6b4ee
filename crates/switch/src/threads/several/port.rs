//! A port that several threads use: one receives from it, all transmit to it, and the engine asks it for its link and counters. Each locks it
//! for the time of a burst. Who finds it locked goes on with something else: frames to be sent are kept ([`super::sender`]), it is asked for
//! frames in the next round.
//!
//! A lock instead of a ring between each two threads: a frame that another thread's port sends is sent by the thread that has it in its
//! cache, from a buffer that goes back to that thread's pool; no burst is waited for, nobody is woken, and no ring can be full.
use super::super::gone::GonePorts;
use super::super::seats::look_again;
use super::board::Board;
use super::hindered::Hindered;
use super::sender::Sender;
use crate::engine::wake::Waker;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool};
use weir_port::queues::{Queued, Queues};
use weir_port::{Counters, LinkState, Port, PortError, PortInfo, Ready};
use weir_units::Instant;

/// How often in a row a thread finds one of its ports in use before it waits for it: others may send by it all the time.
const MAX_MISSES: u32 = 16;

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
    /// When it is to be looked after, as of the last time that somebody used it; [`Instant::FAR`] if it need not.
    due: AtomicU64,
    /// Whether the thread that receives from it found its device gone.
    is_lost: AtomicBool,
    /// Wakes the thread that receives from it, and the engine.
    owner: Arc<Waker>,
    engine: Arc<Waker>,
    /// Counts frames that are to be sent when it is closed.
    gone: GonePorts,
}

/// What the lock guards.
struct Inner {
    /// None once it is closed.
    port: Option<Box<dyn Port>>,
    /// Why its device is gone.
    lost: Option<PortError>,
    /// The latest time that it was told: threads read their clocks before they have the port, and time is not to run back for it.
    now: Instant,
}

impl Common {
    pub(super) fn new(
        number: PortNo,
        port: Box<dyn Port>,
        thread: usize,
        (owner, engine): (Arc<Waker>, Arc<Waker>),
        gone: GonePorts,
    ) -> Common {
        Common {
            number,
            thread,
            info: port.info().clone(),
            takes_any_packet_type: port.takes_any_packet_type(),
            descriptor: port.fd().and_then(|fd| watch(fd).ok()),
            due: AtomicU64::new(due(&*port)),
            inner: Mutex::new(Inner { port: Some(port), lost: None, now: Instant::ZERO }),
            is_lost: AtomicBool::new(false),
            owner,
            engine,
            gone,
        }
    }

    /// Held for a burst, so nobody sleeps for it.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        let mut looks = 0;
        loop {
            match self.try_lock() {
                Some(inner) => return inner,
                None => look_again(&mut looks),
            }
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<MutexGuard<'_, Inner>> {
        match self.inner.try_lock() {
            Ok(inner) => Some(inner),
            // Who panicked takes the switch down with it; until then the port is one.
            Err(TryLockError::Poisoned(poisoned)) => Some(PoisonError::into_inner(poisoned)),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Waits for the port and uses it, if it is not closed.
    fn with<R>(&self, work: impl FnOnce(&mut dyn Port) -> R) -> Option<R> {
        self.using(&mut self.lock(), work)
    }

    /// Uses the port, if it is not closed, and notes when it is due next.
    #[inline]
    fn using<R>(&self, inner: &mut Inner, work: impl FnOnce(&mut dyn Port) -> R) -> Option<R> {
        let port = &mut **inner.port.as_mut()?;
        let result = work(port);
        self.due.store(due(port), Ordering::Relaxed);
        Some(result)
    }

    fn gone(&self) -> PortError {
        PortError::Gone { spec: self.info.spec.clone() }
    }

    /// Drops frames that were to be sent, since it is gone.
    pub(super) fn drop_frames(&self, frames: &mut Vec<Frame>, pool: &mut FramePool) {
        self.gone.drop_frames(frames, pool);
    }

    /// When it is to be looked after.
    #[inline]
    fn due(&self) -> Option<Instant> {
        Some(Instant::from_nanos(self.due.load(Ordering::Relaxed))).filter(|due| *due < Instant::FAR)
    }

    /// Sends frames from any thread, unless another one is using the port; without the port they are dropped. Whether they went.
    #[inline]
    pub(super) fn try_transmit(&self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> bool {
        let inner = self.try_lock();
        let could = inner.is_some();
        if let Some(inner) = inner {
            self.transmit_with(inner, now, pool, frames);
        }
        could
    }

    /// The same; waits for the port.
    pub(super) fn transmit(&self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) {
        self.transmit_with(self.lock(), now, pool, frames);
    }

    #[inline]
    fn transmit_with(
        &self,
        mut inner: MutexGuard<'_, Inner>,
        now: Instant,
        pool: &mut FramePool,
        frames: &mut Vec<Frame>,
    ) {
        let now = inner.at(now);
        let sent = self.using(&mut inner, |port| port.transmit(now, pool, frames));
        drop(inner);
        match sent {
            // It holds frames back: its thread is to know when they are due.
            Some(Ok(())) if self.due().is_some() => self.owner.wake(),
            Some(Ok(())) => {}
            Some(Err(error)) => self.lose(error),
            None => self.gone.drop_frames(frames, pool),
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

impl Inner {
    /// The time to tell the port.
    #[inline]
    fn at(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }
}

/// When a port is to be looked after, as a number; the last there is for never.
#[inline]
fn due(port: &dyn Port) -> u64 {
    port.next_wake().map_or(u64::MAX, Instant::as_nanos)
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
    sender: Sender,
    hindered: Arc<Hindered>,
    /// Whether this thread receives from it; others only transmit, and look after it.
    receives: bool,
    /// How often in a row it was in use when it was to be asked for frames.
    misses: u32,
    /// With the engine's: when this goes, the port is closed.
    listed: Option<Listed>,
}

impl Shared {
    /// For the thread that receives from it, beside the engine's.
    pub(super) fn of_receiver(common: Arc<Common>, hindered: Arc<Hindered>) -> Shared {
        Shared::new(common, hindered, true, None)
    }

    /// For the engine.
    pub(super) fn of_engine(common: Arc<Common>, hindered: Arc<Hindered>, receives: bool, listed: Listed) -> Shared {
        Shared::new(common, hindered, receives, Some(listed))
    }

    fn new(common: Arc<Common>, hindered: Arc<Hindered>, receives: bool, listed: Option<Listed>) -> Shared {
        let sender = Sender::new(Arc::clone(&common), Arc::clone(&hindered));
        Shared { common, sender, hindered, receives, misses: 0, listed }
    }

    /// The port to be received from, unless another thread is using it.
    #[inline]
    fn look<'a>(common: &'a Common, hindered: &Hindered, misses: &mut u32) -> Option<MutexGuard<'a, Inner>> {
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
        let Some(mut inner) = Self::look(common, &self.hindered, &mut self.misses) else { return Ok(()) };
        let now = inner.at(now);
        common.using(&mut inner, |port| port.receive(now, pool, batch, max)).unwrap_or_else(|| Err(common.gone()))
    }

    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> Result<(), PortError> {
        self.sender.send(now, pool, frames);
        Ok(())
    }

    fn arm(&mut self) -> Ready {
        let common = &self.common;
        if self.sender.holds() || common.is_lost.load(Ordering::Acquire) {
            return Ready::Now;
        }
        if !self.receives {
            return Ready::OnDescriptor;
        }
        match common.try_lock() {
            Some(mut inner) => common.using(&mut inner, |port| port.arm()).unwrap_or(Ready::Now),
            None => {
                self.hindered.note();
                Ready::Now
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

    fn look_at_queues(&self, look: &mut dyn FnMut(&Queues)) {
        self.common.with(|port| port.look_at_queues(look));
    }

    fn change_queues(&mut self, change: &mut dyn FnMut(&mut Queues)) {
        self.common.with(|port| port.change_queues(change));
        // Frames may have become due for who receives.
        self.common.owner.wake();
    }

    fn begin_queues(&mut self) -> bool {
        let port = &mut self.common.lock().port;
        *port = port.take().map(|port| Box::new(Queued::new(port)) as Box<dyn Port>);
        port.is_some()
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
