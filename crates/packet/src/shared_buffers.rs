//! Exchanges buffers between threads. Often one thread receives frames and another drops or sends them, so that
//! buffers would accumulate in one pool while the other allocates. Pools that share a depot bring excess buffers to
//! it. A pool that lacks buffers fetches them from the depot, then takes one from the slabs prepared at the start,
//! then allocates on the heap.
use crate::Frame;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_memory::{AlignedBuffer, BufferSlab};

/// Maximum number of loads of small buffers that a depot keeps; further ones are freed. A load is half of what
/// [`crate::FramePool::shared`] keeps, so this is about 18 MiB.
const MAX_SMALL: usize = 32;
/// Maximum number of loads of large buffers that a depot keeps: about 16 MiB.
const MAX_LARGE: usize = 8;

/// Store of buffers shared by the pools of several threads. A pool accesses it once for a few hundred buffers, so the
/// cost of the lock is negligible.
#[derive(Debug, Default)]
pub struct SharedBuffers {
    batches: Mutex<BufferBatches>,
    /// Slabs of small buffers, indexed by thread.
    slabs: Vec<Arc<BufferSlab>>,
    /// Number of small buffers allocated on the heap because the slabs were empty.
    n_heap: AtomicU64,
    /// Number of small buffers in each pool, as last reported.
    pool_counts: Mutex<Vec<Arc<AtomicUsize>>>,
}

#[derive(Debug, Default)]
struct BufferBatches {
    small: Vec<Vec<Frame>>,
    large: Vec<Vec<Frame>>,
}

/// Sizes of buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BufferSizeClass {
    Small,
    Large,
}

impl SharedBuffers {
    /// Creates a depot with slabs of buffers of [`crate::frame::SMALL_BUFFER`] bytes, indexed by thread. A thread
    /// whose slab is empty takes buffers from the other slabs.
    pub fn of(slabs: Vec<Arc<BufferSlab>>) -> SharedBuffers {
        SharedBuffers { slabs, ..SharedBuffers::default() }
    }

    /// Returns the slabs, indexed by thread.
    pub fn slabs(&self) -> &[Arc<BufferSlab>] {
        &self.slabs
    }

    /// Returns the number of unused small buffers: in the depot, in the slabs, and in pools as last reported
    /// ([`crate::FramePool::report_count`]).
    pub fn free_count(&self) -> usize {
        let waiting: usize = self.lock().small.iter().map(Vec::len).sum();
        let kept = self.pool_counts.lock().unwrap_or_else(PoisonError::into_inner);
        let kept: usize = kept.iter().map(|pool| pool.load(Ordering::Relaxed)).sum();
        kept + waiting + self.slabs.iter().map(|slab| slab.free_count()).sum::<usize>()
    }

    /// Returns the number of small buffers allocated on the heap so far, because the slabs were empty.
    pub fn heap_count(&self) -> u64 {
        self.n_heap.load(Ordering::Relaxed)
    }

    /// Returns the counter in which a pool reports the number of its buffers.
    pub(crate) fn register_pool(&self) -> Arc<AtomicUsize> {
        let told = Arc::<AtomicUsize>::default();
        self.pool_counts.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&told));
        told
    }

    /// Takes a small buffer from the thread's own slab, otherwise from another one. If all are empty, counts this and
    /// returns `None`.
    pub(crate) fn take_small(&self, thread: usize) -> Option<AlignedBuffer> {
        let own = self.slabs.get(thread).and_then(BufferSlab::take);
        let found = own.or_else(|| self.slabs.iter().find_map(BufferSlab::take));
        if found.is_none() {
            self.n_heap.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    /// Stores a load of buffers; frees it if the depot is full.
    pub(crate) fn store_batch(&self, size: BufferSizeClass, load: Vec<Frame>) {
        let mut loads = self.lock();
        let kept = loads.of(size);
        let max = if size == BufferSizeClass::Small { MAX_SMALL } else { MAX_LARGE };
        if !load.is_empty() && kept.len() < max {
            kept.push(load);
        }
    }

    /// Returns a load of buffers, if there is one.
    pub(crate) fn take_batch(&self, size: BufferSizeClass) -> Option<Vec<Frame>> {
        self.lock().of(size).pop()
    }

    fn lock(&self) -> MutexGuard<'_, BufferBatches> {
        // The lists are valid even if a thread panicked while it held the lock.
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BufferBatches {
    fn of(&mut self, size: BufferSizeClass) -> &mut Vec<Vec<Frame>> {
        match size {
            BufferSizeClass::Small => &mut self.small,
            BufferSizeClass::Large => &mut self.large,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::frame::SMALL_BUFFER;
    use crate::{Frame, FramePool, SharedBuffers};
    use std::collections::HashSet;
    use std::sync::Arc;
    use weir_memory::BufferSlab;

    /// Returns the address of a frame's buffer, which identifies the buffer.
    fn place(frame: &mut Frame) -> usize {
        frame.begin_receive().as_ptr().addr()
    }

    #[test]
    fn what_one_pool_has_too_many_of_another_uses() {
        for bytes in [60, 9000] {
            let depot = Arc::new(SharedBuffers::default());
            let (mut gives, mut takes) = (FramePool::shared(&depot, 0), FramePool::shared(&depot, 0));
            let mut made: Vec<Frame> = (0..1200).map(|_| takes.take(bytes)).collect();
            let places: HashSet<usize> = made.iter_mut().map(place).collect();
            made.into_iter().for_each(|frame| gives.give(frame));
            let mut used: Vec<Frame> = (0..1200).map(|_| takes.take(bytes)).collect();
            let again = used.iter_mut().map(place).filter(|place| places.contains(place)).count();
            assert!(again >= 128, "{bytes} bytes: {again} buffers were used again");
        }
    }

    #[test]
    fn a_depot_keeps_a_bounded_number() {
        let depot = Arc::new(SharedBuffers::default());
        let mut gives = FramePool::shared(&depot, 0);
        (0..100_000).for_each(|_| gives.give(Frame::with_capacity(2048)));
        assert_eq!(depot.lock().small.len(), super::MAX_SMALL);
    }

    #[test]
    fn a_pool_on_its_own_shares_nothing() {
        let mut pool = FramePool::new(2, 2);
        (0..5).for_each(|_| pool.give(Frame::with_capacity(2048)));
        assert!(pool.take(60).room() >= 60);
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn what_was_prepared_is_used_first_and_comes_back() {
        let slabs = [3, 5].map(|count| BufferSlab::new(count, SMALL_BUFFER).expect("there is memory"));
        let depot = Arc::new(SharedBuffers::of(slabs.to_vec()));
        let mut pool = FramePool::shared(&depot, 1);
        let mut frames: Vec<Frame> = (0..5).map(|_| pool.take(60)).collect();
        assert_eq!((slabs[0].free_count(), slabs[1].free_count(), depot.heap_count()), (3, 0, 0), "its own first");
        frames.extend((0..5).map(|_| pool.take(60)));
        assert_eq!((depot.free_count(), depot.heap_count()), (0, 2), "then others', then the heap's");
        for (number, frame) in (0..).zip(&mut frames) {
            frame.assign(&[number; 2048]);
        }
        assert!((0..).zip(&frames).all(|(number, frame)| frame.bytes() == [number; 2048]));
        // More headers than fit: the frame moves to the heap, and its place in the slab becomes free.
        frames[0].insert(0, 200).expect("that is not too long");
        assert_eq!((frames[0].len(), depot.free_count()), (2248, 1));
        frames.into_iter().for_each(|frame| pool.give(frame));
        assert_eq!(pool.kept(), 10, "the one that grew is as good as any");
        drop(pool);
        assert_eq!((depot.free_count(), depot.heap_count()), (8, 2));
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn one_thread_keeps_all() {
        let depot = Arc::new(SharedBuffers::of(vec![BufferSlab::new(5000, SMALL_BUFFER).expect("there is memory")]));
        let mut pool = FramePool::single_threaded(&depot);
        let frames: Vec<Frame> = (0..5000).map(|_| pool.take(60)).collect();
        frames.into_iter().for_each(|frame| pool.give(frame));
        assert_eq!((pool.kept(), depot.free_count(), depot.heap_count()), (5000, 0, 0));
        pool.report_count();
        assert_eq!(depot.free_count(), 5000);
    }
}
