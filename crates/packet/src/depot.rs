//! Where threads exchange buffers: one receives frames, another drops or sends them, so the buffers would pile up in one pool
//! while the other allocates. Pools that share a depot bring what they have too many of there, and fetch what they lack.
use crate::Frame;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Loads of small buffers that a depot keeps at most; what is brought beyond is freed. A load is half of what
/// [`crate::FramePool::shared`] keeps: 19 MiB wait here at most.
const MAX_SMALL: usize = 32;
/// The same of large buffers: 17 MiB.
const MAX_LARGE: usize = 8;

/// See the module's page. Visited once for a few hundred buffers, so a lock does not matter.
#[derive(Debug, Default)]
pub struct Depot {
    loads: Mutex<Loads>,
}

#[derive(Debug, Default)]
struct Loads {
    small: Vec<Vec<Frame>>,
    large: Vec<Vec<Frame>>,
}

/// The two kinds of buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Small,
    Large,
}

impl Depot {
    /// Takes a load of buffers; frees it if there are enough.
    pub(crate) fn bring(&self, size: Size, load: Vec<Frame>) {
        let mut loads = self.lock();
        let kept = loads.of(size);
        let max = if size == Size::Small { MAX_SMALL } else { MAX_LARGE };
        if !load.is_empty() && kept.len() < max {
            kept.push(load);
        }
    }

    /// Gives a load of buffers, if there is one.
    pub(crate) fn fetch(&self, size: Size) -> Option<Vec<Frame>> {
        self.lock().of(size).pop()
    }

    fn lock(&self) -> MutexGuard<'_, Loads> {
        // Lists of buffers are whole whatever happened to who held them.
        self.loads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Loads {
    fn of(&mut self, size: Size) -> &mut Vec<Vec<Frame>> {
        match size {
            Size::Small => &mut self.small,
            Size::Large => &mut self.large,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Depot, Frame, FramePool};
    use std::collections::HashSet;
    use std::sync::Arc;

    /// Where a frame's bytes lie: tells buffers apart.
    fn place(frame: &mut Frame) -> usize {
        frame.receive_buffer().as_ptr().addr()
    }

    #[test]
    fn what_one_pool_has_too_many_of_another_uses() {
        for bytes in [60, 9000] {
            let depot = Arc::new(Depot::default());
            let (mut gives, mut takes) = (FramePool::shared(&depot), FramePool::shared(&depot));
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
        let depot = Arc::new(Depot::default());
        let mut gives = FramePool::shared(&depot);
        (0..100_000).for_each(|_| gives.give(Frame::with_capacity(2048)));
        assert_eq!(depot.lock().small.len(), super::MAX_SMALL);
    }

    #[test]
    fn a_pool_on_its_own_shares_nothing() {
        let mut pool = FramePool::new(2, 2);
        (0..5).for_each(|_| pool.give(Frame::with_capacity(2048)));
        assert!(pool.take(60).room() >= 60);
    }
}
