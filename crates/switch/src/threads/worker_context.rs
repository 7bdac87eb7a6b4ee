//! Gives a forwarding thread its access to the shared tables, its part of the datapath, and its path for messages to
//! the engine.
use super::pipeline::WorkerMessage;
use super::sharded_lock::ShardReader;
use crate::engine::wake::ThreadWaker;
use crate::snapshot::WorkerSnapshot;
use crossbeam_channel::Sender;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use weir_datapath::perf::Perf;
use weir_datapath::{Datapath, DatapathOutput, Drops};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

/// Counters of a worker, for other threads to read.
#[derive(Debug, Default)]
pub(super) struct WorkerCounters {
    pub(super) frames: AtomicU64,
    pub(super) bursts: AtomicU64,
    /// Number of frames that left the worker: their output is in the ring behind it, or they were dropped.
    pub(super) handed_on: AtomicU64,
    /// Number of frames dropped because the ring to the worker was full.
    pub(super) full_in: Arc<AtomicU64>,
    /// Number of frames dropped because the ring from the worker was full.
    pub(super) full_out: Arc<AtomicU64>,
    /// Number of packet-ins dropped because too many were on their way to the engine.
    pub(super) full_notes: AtomicU64,
    /// Packets dropped while sharing the tables, by reason; updated after each burst.
    pub(super) drops: Mutex<Drops>,
    /// True while a client measures the worker's times.
    pub(super) is_watched: AtomicBool,
    /// Times measured while `is_watched` is set.
    pub(super) perf: Mutex<Perf>,
}

impl WorkerCounters {
    /// Number of frames that the worker forwarded and passed on.
    pub(super) fn done(&self) -> u64 {
        self.frames.load(Ordering::Relaxed).saturating_sub(self.full_out.load(Ordering::Relaxed))
    }

    /// Returns the counters in the form of a snapshot.
    pub(super) fn snapshot(&self, worker: usize) -> WorkerSnapshot {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        WorkerSnapshot {
            worker,
            frames: read(&self.frames),
            bursts: read(&self.bursts),
            waiting: 0,
            waiting_to_leave: 0,
            ring_full: read(&self.full_in),
            transmit_ring_full: read(&self.full_out),
            packet_ins_dropped: read(&self.full_notes),
            ports: Vec::new(),
        }
    }

    /// Number of frames that left the worker; all their output is in the ring behind it.
    pub(super) fn handed_on(&self) -> u64 {
        self.handed_on.load(Ordering::Acquire)
    }
}

/// A forwarding thread's access to the tables and to the engine.
pub(super) struct WorkerContext {
    pub(super) tables: ShardReader<Datapath>,
    /// The thread's part of the datapath.
    pub(super) own: weir_datapath::Worker,
    /// Number of packets in [`WorkerCounters::drops`].
    told_drops: u64,
    notes: Sender<WorkerMessage>,
    pub(super) counters: Arc<WorkerCounters>,
    engine: Arc<ThreadWaker>,
}

impl WorkerContext {
    pub(super) fn new(
        tables: ShardReader<Datapath>,
        own: weir_datapath::Worker,
        notes: Sender<WorkerMessage>,
        counters: Arc<WorkerCounters>,
        engine: Arc<ThreadWaker>,
    ) -> WorkerContext {
        WorkerContext { tables, own, told_drops: 0, notes, counters, engine }
    }

    /// Runs frames of one port through the flow tables. `is_over` ends the wait for the tables; the remaining frames
    /// are then dropped.
    #[inline]
    pub(super) fn forward(
        &mut self,
        now: Instant,
        port: PortNo,
        frames: &mut Vec<Frame>,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
        is_over: impl Fn() -> bool,
    ) {
        let WorkerContext { tables, own, .. } = self;
        // Most packets leave while other workers use the tables, too. Packets that notify controllers or change the
        // tables need exclusive access.
        let beside = |datapath: &Datapath| datapath.forward(own, now, port, frames, pool, out);
        if tables.read_shared(&is_over, beside) == Some(false) {
            tables.write_exclusive(&is_over, |datapath| datapath.process_for(own, now, port, frames, pool, out));
        }
    }

    /// Counts a finished burst, and passes messages and measurements to the engine.
    #[inline]
    pub(super) fn end_burst(&mut self, frames: usize, out: &mut DatapathOutput) {
        if !out.messages.is_empty() || !out.limited.is_empty() {
            self.tell(out);
        }
        self.count_burst(frames);
        self.tell_perf();
    }

    /// Counts a burst and publishes the thread's drops.
    #[inline]
    pub(super) fn count_burst(&mut self, frames: usize) {
        count(&self.counters.frames, frames as u64);
        count(&self.counters.bursts, 1);
        self.tell_drops();
    }

    /// Publishes the thread's dropped packets, if there are new ones.
    #[inline]
    fn tell_drops(&mut self) {
        let drops = self.own.drops();
        if drops.total() != self.told_drops {
            self.told_drops = drops.total();
            *self.counters.drops.lock().unwrap_or_else(PoisonError::into_inner) = drops;
        }
    }

    /// Starts or stops measuring as requested, and publishes the measured times.
    #[inline]
    fn tell_perf(&mut self) {
        let is_watched = self.counters.is_watched.load(Ordering::Relaxed);
        if is_watched || self.own.watch().is_on() {
            self.measured(is_watched);
        }
    }

    #[cold]
    fn measured(&mut self, is_watched: bool) {
        if self.own.watch().is_on() != is_watched {
            self.own.watch_mut().watch(is_watched);
        }
        self.counters.perf.lock().unwrap_or_else(PoisonError::into_inner).clone_from(self.own.watch().perf());
    }

    /// Passes packet-ins to the engine; drops and counts those that do not fit.
    #[cold]
    fn tell(&mut self, out: &mut DatapathOutput) {
        let messages = out.messages.drain(..).map(|(channel, message)| WorkerMessage::Message(channel, message));
        let limited = out.limited.drain(..).map(|(channel, count)| WorkerMessage::Limited(channel, count));
        for note in messages.chain(limited) {
            if self.notes.try_send(note).is_err() {
                count(&self.counters.full_notes, 1);
            }
        }
        self.engine.wake();
    }
}

/// Adds to a counter that only this thread writes.
#[inline]
pub(super) fn count(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}
