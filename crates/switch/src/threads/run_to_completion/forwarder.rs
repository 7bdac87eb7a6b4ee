//! Runs a thread that does everything for its ports, next to the engine's thread.
use super::super::removed_ports::RemovedPortDrops;
use super::super::worker_context::WorkerContext;
use super::port::{SharedPort, SharedPortHandle};
use super::port_contention::PortContention;
use super::port_registry::PortRegistry;
use super::sender::SharedPortSender;
use crate::clock::SwitchClock;
use crate::engine::idle::IdlePorts;
use crate::engine::ports::{PortSlot, PortSlots};
use crate::engine::wake::ThreadWaker;
use crate::spin::SpinState;
use crate::turns::{AnnouncedSleep, ThreadWork, TurnOutcome};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_datapath::{DatapathOutput, MAX_PORTS};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool};
use weir_port::Port;
use weir_units::{Clock, Instant};

/// Longest sleep of a thread, a safeguard against a lost wake-up.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// State of a forwarding thread.
pub(super) struct ForwarderThread {
    pub(super) thread: usize,
    pub(super) hand: WorkerContext,
    pub(super) board: Arc<PortRegistry>,
    pub(super) waker: Arc<ThreadWaker>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) clock: SwitchClock,
    pub(super) spinner: SpinState,
    pub(super) pool: FramePool,
    /// Maximum number of frames taken from a port at once.
    pub(super) burst: usize,
    pub(super) seen: ThreadPortView,
}

/// A thread's view of the ports, from one version of the board.
#[derive(Default)]
pub(super) struct ThreadPortView {
    version: u64,
    /// Ports that the thread receives from.
    own: PortSlots,
    /// Sending sides of all ports, ordered by number.
    all: Vec<(PortNo, SharedPortSender)>,
    /// True if frames may wait for ports that other threads were using.
    holds: bool,
    hindered: Arc<PortContention>,
    /// Counter of frames dropped because their port was removed.
    gone: RemovedPortDrops,
    /// Number of rounds without work other than waiting for ports.
    hindered_rounds: u32,
    idle: IdlePorts,
    batch: Vec<Frame>,
    out: DatapathOutput,
}

impl ThreadPortView {
    /// Returns an empty view. Frames of removed ports are counted in `gone`.
    pub(super) fn new(gone: RemovedPortDrops) -> ThreadPortView {
        ThreadPortView { gone, ..ThreadPortView::default() }
    }

    /// Reads the board if it has changed.
    #[inline]
    fn refresh(&mut self, board: &PortRegistry, thread: usize, pool: &mut FramePool) {
        if self.version != board.version() {
            self.read(board, thread, pool);
        }
    }

    #[cold]
    fn read(&mut self, board: &PortRegistry, thread: usize, pool: &mut FramePool) {
        let mut before: BTreeMap<PortNo, SharedPortSender> = std::mem::take(&mut self.all).into_iter().collect();
        let ports;
        (self.version, ports) = board.read();
        for (number, port) in ports {
            let sender = match before.remove(&number) {
                Some(known) if Arc::ptr_eq(known.port(), &port) => known,
                other => {
                    other.into_iter().for_each(|gone| self.end(gone, thread, pool));
                    self.begin(port, thread)
                }
            };
            self.all.push((number, sender));
        }
        before.into_values().for_each(|gone| self.end(gone, thread, pool));
        self.own.iter_mut().for_each(PortSlot::ask_again);
    }

    /// Adds a new port to the view.
    fn begin(&mut self, port: Arc<SharedPort>, thread: usize) -> SharedPortSender {
        if port.thread == thread && !port.is_over() {
            let shared = SharedPortHandle::of_receiver(Arc::clone(&port), Arc::clone(&self.hindered));
            self.own.insert(PortSlot::new(port.number, Box::new(shared), None));
        }
        SharedPortSender::new(port, Arc::clone(&self.hindered))
    }

    /// Removes a port that was removed or replaced.
    fn end(&mut self, gone: SharedPortSender, thread: usize, pool: &mut FramePool) {
        if gone.port().thread == thread {
            self.own.remove(gone.port().number);
        }
        gone.end(pool);
    }

    /// Earliest time at which one of the thread's ports has frames to release.
    fn due(&self) -> Option<Instant> {
        self.own.open().filter_map(Port::next_wake).min()
    }

    /// Sends the output of the tables. Frames for ports that other threads are using are kept.
    fn deliver(&mut self, now: Instant, pool: &mut FramePool) {
        for (number, frames) in self.out.frames.iter_mut().filter(|(_, frames)| !frames.is_empty()) {
            match self.all.binary_search_by_key(number, |(listed, _)| *listed) {
                Ok(at) => {
                    let sender = &mut self.all[at].1;
                    sender.send(now, pool, frames);
                    self.holds |= sender.holds();
                }
                // The port was removed in this round.
                Err(_) => self.gone.drop_frames(frames, pool),
            }
        }
        if self.out.frames.len() > MAX_PORTS {
            // Removed ports must not leave lists behind forever.
            self.out.frames.clear();
        }
    }
}

impl ThreadPortView {
    /// Sends kept frames.
    #[cold]
    fn flush(&mut self, now: Instant, pool: &mut FramePool) {
        self.holds = false;
        for (_, sender) in self.all.iter_mut().filter(|(_, sender)| sender.holds()) {
            sender.flush(now, pool);
            self.holds |= sender.holds();
        }
    }
}

impl ForwarderThread {
    /// Runs a burst of each of the thread's ports. Returns true if there was any work.
    fn round(&mut self, now: Instant) -> bool {
        let mut worked = false;
        if self.seen.holds {
            self.seen.flush(now, &mut self.pool);
        }
        self.seen.idle.look(&mut self.seen.own);
        // A port whose device is gone is removed during this loop. The port that moves to its index is handled in the
        // next round.
        let mut place = 0;
        while place < self.seen.own.len() {
            if !self.seen.idle.may_pass_over(self.seen.own.at(place), now) {
                worked |= self.forward_from(place, now);
            }
            place += 1;
        }
        worked
    }

    fn forward_from(&mut self, place: usize, now: Instant) -> bool {
        let ThreadPortView { own, idle, batch, out, .. } = &mut self.seen;
        let slot = own.at(place);
        let Some(port) = slot.port.as_mut() else { return false };
        let number = slot.number;
        let mut result = port.receive(now, &mut self.pool, batch, self.burst);
        if result.is_ok() && port.next_wake().is_some_and(|at| at <= now) {
            // A port that delays frames transmits those that are due.
            result = port.transmit(now, &mut self.pool, &mut Vec::new());
        }
        let frames = batch.len();
        idle.asked(slot, frames > 0);
        if frames > 0 {
            let (stop, now) = (&self.stop, self.clock.now());
            self.hand.forward(now, number, batch, &mut self.pool, out, || stop.load(Ordering::Relaxed));
            batch.clear();
            self.hand.end_burst(frames, out);
            self.seen.deliver(now, &mut self.pool);
            self.pool.report_count();
        }
        if let Err(error) = result {
            self.lose(number, error);
        }
        frames > 0
    }

    /// Stops receiving from a port whose device is gone, and tells the engine to remove it.
    #[cold]
    fn lose(&mut self, number: PortNo, error: weir_port::PortError) {
        self.seen.own.remove(number);
        if let Some((_, sender)) = self.seen.all.iter().find(|(listed, _)| *listed == number) {
            sender.port().lose(error);
        }
    }

    /// Decides what follows a turn without work that began at `now`.
    fn look_or_sleep(&mut self, now: Instant) -> TurnOutcome {
        if self.seen.hindered.wait(&mut self.seen.hindered_rounds) {
            return TurnOutcome::Turn;
        }
        let is_near = self.seen.due().is_some_and(|due| self.spinner.is_near(now, due));
        match self.spinner.look_or_sleep(now, self.clock) {
            TurnOutcome::Sleep if is_near => {
                std::hint::spin_loop();
                TurnOutcome::Turn
            }
            next => next,
        }
    }
}

impl ThreadWork for ForwarderThread {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    #[inline]
    fn turn(&mut self) -> TurnOutcome {
        let now = self.clock.now();
        self.seen.refresh(&self.board, self.thread, &mut self.pool);
        if !self.round(now) {
            return self.look_or_sleep(now);
        }
        self.spinner.found(now);
        TurnOutcome::Turn
    }

    fn fall_asleep(&mut self) -> Option<AnnouncedSleep> {
        self.waker.about_to_sleep();
        // Changes made before the other threads knew of the sleep are found here.
        let is_quiet = self.seen.version == self.board.version() && !self.is_over();
        if !is_quiet || self.seen.own.arm() {
            return None;
        }
        let from = self.clock.now();
        let timeout = self.seen.due().map_or(SLEEP_MAX, |due| due.since(from).min(SLEEP_MAX));
        Some(AnnouncedSleep { from, timeout, release: Instant::FAR })
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        self.waker.sleep(self.seen.own.open(), None, timeout).is_called
    }

    fn wake_up(&mut self, _slept: Option<AnnouncedSleep>) {
        self.waker.awake();
    }
}
