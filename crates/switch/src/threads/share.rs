//! A worker's share of the flows, with all it takes to run them through the tables: a ring in front of it, one behind it, and one thread
//! that runs it, which may run others too.
use super::pipeline::Note;
use super::seats::Guest;
use super::worker::Stage;
use crate::engine::wake::Waker;
use crossbeam_channel::Sender;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use weir_datapath::perf::Perf;
use weir_datapath::{Datapath, Drops};
use weir_packet::FramePool;
use weir_units::Instant;

/// What is counted for a share, for others to read.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) frames: AtomicU64,
    pub(super) bursts: AtomicU64,
    /// Frames of which nothing is left here: they wait behind this, or are gone.
    pub(super) handed_on: AtomicU64,
    /// Frames dropped since the ring to the worker was full.
    pub(super) full_in: Arc<AtomicU64>,
    /// Frames dropped since the ring from the worker was full.
    pub(super) full_out: Arc<AtomicU64>,
    /// Packet-ins dropped since too many were on their way to the engine.
    pub(super) full_notes: AtomicU64,
    /// Packets dropped beside others; as of a short while ago.
    pub(super) drops: Mutex<Drops>,
    /// Whether somebody looks where its time goes.
    pub(super) is_watched: AtomicBool,
    /// What it measured, while somebody looks.
    pub(super) perf: Mutex<Perf>,
}

impl Counters {
    /// Frames that it ran and handed on.
    pub(super) fn done(&self) -> u64 {
        self.frames.load(Ordering::Relaxed).saturating_sub(self.full_out.load(Ordering::Relaxed))
    }

    /// Frames of which nothing is left here; all they gave is in the ring behind.
    pub(super) fn handed_on(&self) -> u64 {
        self.handed_on.load(Ordering::Acquire)
    }
}

/// When what was forwarded is handed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandOn {
    /// When its burst is due.
    WhenDue,
    /// At once: no burst is to be waited for.
    AtOnce,
}

/// See the module's page.
pub(super) struct Share {
    pub(super) stage: Stage,
    pub(super) tables: Guest<Datapath>,
    /// Its part of the datapath.
    pub(super) own: weir_datapath::Worker,
    /// Packets in [`Counters::drops`].
    pub(super) told_drops: u64,
    pub(super) notes: Sender<Note>,
    pub(super) counters: Arc<Counters>,
    pub(super) engine: Arc<Waker>,
}

impl Share {
    /// Runs a burst; how many frames there were. `is_over` ends waiting for the tables.
    #[inline]
    pub(super) fn run(
        &mut self,
        now: Instant,
        pool: &mut FramePool,
        hand_on: HandOn,
        is_over: impl Fn() -> bool,
    ) -> usize {
        let frames = self.stage.read();
        if frames > 0 {
            self.forward(now, pool, is_over);
            count(&self.counters.frames, frames as u64);
            count(&self.counters.bursts, 1);
            self.tell_drops();
            self.tell_perf();
        }
        self.stage.write(now, pool, hand_on);
        if self.stage.has_handed_on() {
            // After what it gave is in the ring behind it, for who reads both.
            let frames = self.counters.frames.load(Ordering::Relaxed);
            self.counters.handed_on.store(frames, Ordering::Release);
        }
        frames
    }

    fn forward(&mut self, now: Instant, pool: &mut FramePool, is_over: impl Fn() -> bool) {
        let Share { stage, tables, own, .. } = self;
        stage.process(pool, |port, frames, pool, out| {
            // Most packets leave as they are, beside those of other workers; for the rest it takes the tables alone.
            let beside = |datapath: &Datapath| datapath.forward(own, now, port, frames, pool, out);
            if tables.beside(&is_over, beside) == Some(false) {
                // Without it this is the end: what is left of the frames is dropped with them.
                tables.alone(&is_over, |datapath| datapath.process_for(own, now, port, frames, pool, out));
            }
        });
        if !self.stage.out.messages.is_empty() || !self.stage.out.limited.is_empty() {
            self.tell();
        }
    }

    /// Tells the engine of packets that were dropped.
    #[inline]
    fn tell_drops(&mut self) {
        let drops = self.own.drops();
        if drops.total() != self.told_drops {
            self.told_drops = drops.total();
            *self.counters.drops.lock().unwrap_or_else(PoisonError::into_inner) = drops;
        }
    }

    /// Begins or ends measuring as was asked, and tells what was measured.
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

    /// Hands packet-ins to the engine.
    #[cold]
    fn tell(&mut self) {
        let out = &mut self.stage.out;
        let messages = out.messages.drain(..).map(|(channel, message)| Note::Message(channel, message));
        let limited = out.limited.drain(..).map(|(channel, count)| Note::Limited(channel, count));
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
