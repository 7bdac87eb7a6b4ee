//! Keeps unused buffers for reuse, one pool for each thread.
use super::{Frame, MAX_FRAME, SMALL};
use crate::SharedBuffers;
use crate::shared_buffers::BufferSizeClass;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Unused buffers kept for reuse, so that the packet path does not allocate.
#[derive(Debug)]
pub struct FramePool {
    small: Vec<Frame>,
    large: Vec<Frame>,
    max_small: usize,
    max_large: usize,
    shared: Option<Arc<SharedBuffers>>,
    /// Thread whose slab in the depot is used first.
    thread: usize,
    /// Counter in which the pool reports the number of its small buffers.
    reported_count: Option<Arc<AtomicUsize>>,
}

impl FramePool {
    /// Creates a pool that keeps at most `max_small` buffers of ordinary size and `max_large` of super-frame size.
    /// Further buffers are freed.
    pub fn new(max_small: usize, max_large: usize) -> Self {
        FramePool {
            small: Vec::new(),
            large: Vec::new(),
            max_small,
            max_large,
            shared: None,
            thread: 0,
            reported_count: None,
        }
    }

    /// Creates the pool of one of several threads, which exchanges buffers with the others' pools through the depot.
    /// The pool keeps at most 512 small and 64 large buffers.
    pub fn shared(depot: &Arc<SharedBuffers>, thread: usize) -> Self {
        FramePool { thread, ..FramePool::new(512, 64).of(depot) }
    }

    /// Creates the pool of the only thread. It keeps as many buffers as [`FramePool::default`], or all small buffers
    /// of the depot's slabs if these are more.
    pub fn single_threaded(depot: &Arc<SharedBuffers>) -> Self {
        let prepared: usize = depot.slabs().iter().map(|slab| slab.count() as usize).sum();
        let FramePool { max_small, max_large, .. } = FramePool::default();
        FramePool::new(max_small.max(prepared), max_large).of(depot)
    }

    fn of(self, depot: &Arc<SharedBuffers>) -> Self {
        FramePool { shared: Some(Arc::clone(depot)), reported_count: Some(depot.register_pool()), ..self }
    }

    /// Reports the number of small buffers in the pool to the depot. Costs one store.
    #[inline]
    pub fn report_count(&self) {
        if let Some(told) = &self.reported_count {
            told.store(self.small.len(), Ordering::Relaxed);
        }
    }

    /// Returns the number of small buffers in the pool.
    #[inline]
    pub fn kept(&self) -> usize {
        self.small.len()
    }

    /// Takes an empty frame with room for at least `bytes` bytes (at most [`MAX_FRAME`]).
    #[inline]
    pub fn take(&mut self, bytes: usize) -> Frame {
        let (kept, capacity) = if bytes <= SMALL { (&mut self.small, SMALL) } else { (&mut self.large, MAX_FRAME) };
        match kept.pop() {
            Some(mut frame) => {
                frame.reset();
                frame
            }
            None => self.fetch(capacity),
        }
    }

    /// Takes a buffer if the pool is empty: from the depot, from its slabs, or from the heap.
    #[cold]
    fn fetch(&mut self, capacity: usize) -> Frame {
        let (kept, size) = if capacity == SMALL {
            (&mut self.small, BufferSizeClass::Small)
        } else {
            (&mut self.large, BufferSizeClass::Large)
        };
        if let Some(load) = self.shared.as_ref().and_then(|depot| depot.take_batch(size)) {
            *kept = load;
        }
        let mut frame = kept.pop().unwrap_or_else(|| match (&self.shared, size) {
            (Some(depot), BufferSizeClass::Small) => {
                depot.take_small(self.thread).map_or_else(|| Frame::with_capacity(capacity), Frame::in_buffer)
            }
            _ => Frame::with_capacity(capacity),
        });
        frame.reset();
        frame
    }

    /// Returns a buffer to the pool if it is full: moves half of its buffers to the depot first, if there is one.
    #[cold]
    fn store_excess(&mut self, frame: Frame, size: BufferSizeClass) {
        let Some(depot) = &self.shared else { return };
        let kept = if size == BufferSizeClass::Small { &mut self.small } else { &mut self.large };
        depot.store_batch(size, kept.split_off(kept.len() / 2));
        self.give(frame);
    }

    /// Returns a frame with a copy of `original`'s bytes, offload, packet type, queue and tunnel.
    pub fn copy(&mut self, original: &Frame) -> Frame {
        let mut copy = self.take(original.len());
        copy.assign(original.bytes());
        copy.inherit(original);
        copy
    }

    /// Returns a buffer to the pool.
    #[inline]
    pub fn give(&mut self, frame: Frame) {
        // Nearly all buffers are small.
        if (SMALL..MAX_FRAME).contains(&frame.room()) && self.small.len() < self.max_small {
            self.small.push(frame);
        } else {
            self.give_other(frame);
        }
    }

    /// Appends `count` frames to `into`, each as from [`FramePool::take`].
    #[inline]
    pub fn take_burst(&mut self, bytes: usize, count: usize, into: &mut Vec<Frame>) {
        match self.small.len().checked_sub(count) {
            Some(rest) if bytes <= SMALL => {
                self.small[rest..].iter_mut().for_each(|frame| frame.reset());
                into.extend(self.small.drain(rest..));
            }
            _ => into.extend((0..count).map(|_| self.take(bytes))),
        }
    }

    /// Returns the buffers of a burst to the pool, each as with [`FramePool::give`]. `frames` is empty afterwards.
    #[inline]
    pub fn give_burst(&mut self, frames: &mut Vec<Frame>) {
        let are_small = frames.iter().all(|frame| (SMALL..MAX_FRAME).contains(&frame.room()));
        if are_small && self.small.len() + frames.len() <= self.max_small {
            self.small.append(frames);
        } else {
            frames.drain(..).for_each(|frame| self.give(frame));
        }
    }

    #[cold]
    fn give_other(&mut self, frame: Frame) {
        let (kept, max, size) = match frame.room() {
            room if room >= MAX_FRAME => (&mut self.large, self.max_large, BufferSizeClass::Large),
            room if room >= SMALL => (&mut self.small, self.max_small, BufferSizeClass::Small),
            _ => return,
        };
        if kept.len() < max {
            kept.push(frame);
        } else {
            self.store_excess(frame, size);
        }
    }
}

impl Default for FramePool {
    /// Creates a pool for a worker: at most 4096 small (9 MiB) and 128 large buffers (8 MiB).
    fn default() -> Self {
        FramePool::new(4096, 128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::DEFAULT_QUEUE;

    #[test]
    fn the_queue_goes_with_copies_and_ends_with_the_frame() {
        let mut pool = FramePool::default();
        let mut frame = Frame::from_bytes(&[0; 60]);
        frame.queue = 7;
        assert_eq!(pool.copy(&frame).queue, 7);
        pool.give(frame);
        assert_eq!(pool.take(60).queue, DEFAULT_QUEUE);
    }

    #[test]
    fn bursts_are_as_many_frames() {
        let mut pool = FramePool::new(10, 2);
        for (bytes, count, kept) in
            [(60, 0, (0, 0)), (60, 4, (4, 0)), (60, 7, (7, 0)), (9000, 3, (7, 2)), (60, 12, (10, 2))]
        {
            let mut burst = vec![Frame::from_bytes(&[1; 3])];
            pool.take_burst(bytes, count, &mut burst);
            assert_eq!(burst.len(), count + 1);
            assert!(
                burst[1..]
                    .iter()
                    .all(|frame| frame.is_empty() && frame.queue == DEFAULT_QUEUE && frame.room() >= bytes)
            );
            burst.iter_mut().for_each(|frame| frame.queue = 5);
            burst[0] = Frame::with_capacity(10);
            pool.give_burst(&mut burst);
            assert_eq!((burst.len(), (pool.small.len(), pool.large.len())), (0, kept));
        }
        let mut all = Vec::new();
        pool.take_burst(60, 3, &mut all);
        pool.give_burst(&mut all);
        assert_eq!(pool.small.len(), 10);
    }

    #[test]
    fn pool_gives_back_what_it_got() {
        let mut pool = FramePool::new(1, 1);
        let frame = pool.take(60);
        assert!(frame.room() >= 60);
        pool.give(frame);
        pool.give(Frame::with_capacity(10));
        assert_eq!(pool.small.len(), 1);
        let large = pool.take(9000);
        assert!(large.room() >= MAX_FRAME);
        pool.give(large);
        assert_eq!(pool.large.len(), 1);
    }
}
