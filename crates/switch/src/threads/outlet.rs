//! The writing end of a ring: bursts fill in front of it, and a full ring drops.
use super::Carried;
use super::batch::{Batch, Rule};
use crate::engine::wake::Waker;
use rtrb::Producer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_packet::FramePool;
use weir_units::Instant;

/// See the module's page.
#[derive(Debug)]
pub(crate) struct Outlet {
    rule: Rule,
    batch: Batch<Carried>,
    ring: Producer<Carried>,
    /// Who reads.
    reader: Arc<Waker>,
    /// Frames dropped since the ring was full.
    full: Arc<AtomicU64>,
    /// Frames that went into the ring.
    accepted: u64,
}

impl Outlet {
    pub(crate) fn new(rule: Rule, ring: Producer<Carried>, reader: Arc<Waker>, full: Arc<AtomicU64>) -> Outlet {
        Outlet { rule, batch: Batch::new(&rule), ring, reader, full, accepted: 0 }
    }

    /// Adds a frame; a full burst goes.
    #[inline]
    pub(crate) fn push(&mut self, now: Instant, carried: Carried, pool: &mut FramePool) {
        if self.batch.push(now, &self.rule, carried) {
            self.flush(pool);
        }
    }

    /// A turn of the loop is over; a burst that is due goes.
    #[inline]
    pub(crate) fn turn(&mut self, now: Instant, pool: &mut FramePool) {
        if self.batch.turn(now) {
            self.flush(pool);
        }
    }

    /// What waits goes, due or not.
    #[inline]
    pub(crate) fn hand_on(&mut self, pool: &mut FramePool) {
        if !self.batch.is_empty() {
            self.flush(pool);
        }
    }

    /// Frames that went into the ring since the start.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Whether nothing waits in front of the ring.
    pub(crate) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Frames that wait in the ring.
    pub(crate) fn waiting(&self) -> usize {
        self.ring.buffer().capacity() - self.ring.slots()
    }

    fn flush(&mut self, pool: &mut FramePool) {
        let items = self.batch.items();
        let count = items.len().min(self.ring.slots());
        if let Ok(chunk) = self.ring.write_chunk_uninit(count) {
            chunk.fill_from_iter(items.drain(..count));
            self.accepted += count as u64;
        }
        if !items.is_empty() {
            self.full.fetch_add(items.len() as u64, Ordering::Relaxed);
            items.drain(..).for_each(|carried| pool.give(carried.frame));
        }
        self.reader.wake();
    }
}

/// Moves at most `most` items from a ring to a list; how many.
#[inline]
pub(crate) fn read<T>(ring: &mut rtrb::Consumer<T>, most: usize, mut into: impl FnMut(T)) -> usize {
    // The writer's end is looked at only if less than a burst is known to be there.
    let known = ring.cached_slots();
    let count = if known >= most { most } else { ring.slots().min(most) };
    match ring.read_chunk(count) {
        Ok(chunk) => {
            chunk.into_iter().for_each(&mut into);
            count
        }
        Err(_) => 0,
    }
}
