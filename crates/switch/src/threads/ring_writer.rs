//! Collects bursts and writes them to a ring; a full ring drops frames.
use super::RingFrame;
use super::batch::{BurstBuffer, FlushRule};
use crate::engine::wake::ThreadWaker;
use rtrb::Producer;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_packet::FramePool;
use weir_units::Instant;

/// Writing end of a ring, with the burst that is being filled.
#[derive(Debug)]
pub(crate) struct BurstRingWriter {
    rule: FlushRule,
    batch: BurstBuffer<RingFrame>,
    ring: Producer<RingFrame>,
    /// Waker of the thread that reads the ring.
    reader: Arc<ThreadWaker>,
    /// Number of frames dropped because the ring was full.
    full: Arc<AtomicU64>,
    /// Number of frames written to the ring.
    accepted: u64,
}

impl BurstRingWriter {
    pub(crate) fn new(
        rule: FlushRule,
        ring: Producer<RingFrame>,
        reader: Arc<ThreadWaker>,
        full: Arc<AtomicU64>,
    ) -> BurstRingWriter {
        BurstRingWriter { rule, batch: BurstBuffer::new(&rule), ring, reader, full, accepted: 0 }
    }

    /// Adds a frame, and writes the burst if it is full.
    #[inline]
    pub(crate) fn push(&mut self, now: Instant, carried: RingFrame, pool: &mut FramePool) {
        if self.batch.push(now, &self.rule, carried) {
            self.flush(pool);
        }
    }

    /// Ends a turn of the loop, and writes the burst if it is due.
    #[inline]
    pub(crate) fn turn(&mut self, now: Instant, pool: &mut FramePool) {
        if self.batch.turn(now) {
            self.flush(pool);
        }
    }

    /// Writes the waiting frames, due or not.
    #[inline]
    pub(crate) fn hand_on(&mut self, pool: &mut FramePool) {
        if !self.batch.is_empty() {
            self.flush(pool);
        }
    }

    /// Number of frames written to the ring since the start.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Returns true if no frame waits to be written.
    pub(crate) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Number of frames in the ring.
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

/// Moves at most `most` items from a ring to `into`. Returns the number of items.
#[inline]
pub(crate) fn read<T>(ring: &mut rtrb::Consumer<T>, most: usize, mut into: impl FnMut(T)) -> usize {
    // The writer's position is read only if less than a burst is known to be there.
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
