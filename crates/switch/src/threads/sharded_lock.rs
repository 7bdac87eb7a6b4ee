//! Shares a value between threads: readers use it concurrently, and a writer gets it exclusively. Each reader
//! ([`ShardReader`]) has a seat with a handle to the value. A thread that needs exclusive access first collects all
//! handles.
//!
//! A reader locks only its own seat, whose cache line no other thread touches meanwhile. Its cost does not grow with
//! the number of readers, unlike the reader count of a shared lock. Exclusive access costs one lock per reader, and
//! waits for the burst that each reader is working on.
//!
//! No thread sleeps: a reader that finds its seat empty tries again. Exclusive work takes a few tens of microseconds
//! at once, and the owner leaves as much time in between ([`ShardWriter::is_waited_for`]).
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Number of attempts at a lock between yields, some microseconds. The holder of the lock may need this very core.
const LOOKS: u32 = 1000;

/// A handle to the shared value. The box makes taking the value back a move of a pointer, not of the whole value.
type ValueHandle<T> = Arc<Box<T>>;

/// State shared by the owner and the readers.
#[derive(Debug)]
struct ShardedLock<T> {
    /// Handle that is present while no thread has exclusive access. It is taken first and put back last.
    home: LockShard<T>,
    seats: Vec<Arc<LockShard<T>>>,
}

/// Place of a reader's handle. Aligned to two cache lines, because processors fetch them in pairs.
#[repr(align(128))]
#[derive(Debug)]
struct LockShard<T> {
    handle: Mutex<Option<ValueHandle<T>>>,
    /// True if a reader found the seat empty since it was last emptied.
    is_waited_for: AtomicBool,
}

/// The main writer. It has exclusive access from the start, and takes it back from the readers whenever it needs it;
/// readers wait until it is released.
#[derive(Debug)]
pub struct ShardWriter<T> {
    /// The value while the owner has it; `None` while the readers have it.
    alone: Option<Box<T>>,
    shared: Arc<ShardedLock<T>>,
}

/// A reader, which can also get exclusive access.
#[derive(Debug)]
pub struct ShardReader<T> {
    seat: Arc<LockShard<T>>,
    shared: Arc<ShardedLock<T>>,
}

/// Exclusive access of a reader. Dropping it returns the value, also after a panic.
struct ExclusiveGuard<'a, T> {
    value: Option<Box<T>>,
    shared: &'a ShardedLock<T>,
}

impl<T> ShardWriter<T> {
    /// Returns the owner of a value without readers.
    pub fn new(value: T) -> ShardWriter<T> {
        ShardWriter {
            alone: Some(Box::new(value)),
            shared: Arc::new(ShardedLock { home: LockShard::empty(), seats: Vec::new() }),
        }
    }

    /// Creates readers, which can use the value from the next [`ShardWriter::share`] on. Earlier readers become
    /// invalid.
    pub fn add_readers(&mut self, guests: usize) -> Vec<ShardReader<T>> {
        self.get();
        let seats: Vec<_> = (0..guests).map(|_| Arc::new(LockShard::empty())).collect();
        self.shared = Arc::new(ShardedLock { home: LockShard::empty(), seats: seats.clone() });
        seats.into_iter().map(|seat| ShardReader { seat, shared: Arc::clone(&self.shared) }).collect()
    }

    /// Returns exclusive access to the value. Takes it from the readers, if necessary, until [`ShardWriter::share`].
    #[inline]
    pub fn get(&mut self) -> &mut T {
        self.alone.get_or_insert_with(|| self.shared.take())
    }

    /// Returns true if the owner has exclusive access.
    #[inline]
    pub fn has_exclusive(&self) -> bool {
        self.alone.is_some()
    }

    /// Gives the value to the readers, if there are any and they do not have it. Returns true if it did.
    #[inline]
    pub fn share(&mut self) -> bool {
        if self.shared.seats.is_empty() {
            return false;
        }
        let value = self.alone.take();
        let had_it = value.is_some();
        if let Some(value) = value {
            self.shared.put(value);
        }
        had_it
    }

    /// Returns true if a reader has waited for the value since the owner last took it.
    pub fn is_waited_for(&self) -> bool {
        self.shared.seats.iter().any(|seat| seat.is_waited_for.load(Ordering::Relaxed))
    }
}

impl<T> ShardReader<T> {
    /// Waits for the value and runs `work` on it, concurrently with other readers. Returns `None` if `is_over`
    /// returns true during the wait.
    #[inline]
    pub fn read_shared<R>(&self, is_over: impl Fn() -> bool, work: impl FnOnce(&T) -> R) -> Option<R> {
        let mut looks = 0;
        loop {
            if let Some(handle) = self.seat.try_lock()
                && let Some(value) = &*handle
            {
                return Some(work(value));
            }
            self.seat.is_waited_for.store(true, Ordering::Relaxed);
            if is_over() {
                return None;
            }
            spin_or_yield(&mut looks);
        }
    }

    /// Waits for exclusive access and runs `work` on the value. Returns `None` if `is_over` returns true during the
    /// wait.
    pub fn write_exclusive<R>(&self, is_over: impl Fn() -> bool, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut looks = 0;
        let value = loop {
            if let Some(value) = self.shared.try_take() {
                break value;
            }
            self.seat.is_waited_for.store(true, Ordering::Relaxed);
            if is_over() {
                return None;
            }
            spin_or_yield(&mut looks);
        };
        let mut alone = ExclusiveGuard { value: Some(value), shared: &self.shared };
        alone.value.as_deref_mut().map(work)
    }
}

impl<T> Drop for ExclusiveGuard<'_, T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.shared.put(value);
        }
    }
}

impl<T> ShardedLock<T> {
    /// Takes the value from all readers; waits until it is available.
    #[cold]
    fn take(&self) -> Box<T> {
        let mut looks = 0;
        loop {
            match self.try_take() {
                Some(value) => return value,
                None => spin_or_yield(&mut looks),
            }
        }
    }

    /// Takes the value from all readers, unless another thread has it. Waits only for readers to finish their current
    /// work.
    fn try_take(&self) -> Option<Box<T>> {
        let last = self.home.try_lock()?.take()?;
        for seat in &self.seats {
            let mut handle = seat.lock();
            seat.is_waited_for.store(false, Ordering::Relaxed);
            *handle = None;
        }
        let value = Arc::into_inner(last);
        Some(value.unwrap_or_else(|| unreachable!("handles are in seats only, and those are empty")))
    }

    /// Gives the value to all readers.
    fn put(&self, value: Box<T>) {
        let handle = Arc::new(value);
        for seat in &self.seats {
            *seat.lock() = Some(Arc::clone(&handle));
        }
        *self.home.lock() = Some(handle);
    }
}

impl<T> LockShard<T> {
    fn empty() -> LockShard<T> {
        LockShard { handle: Mutex::new(None), is_waited_for: AtomicBool::new(false) }
    }

    fn lock(&self) -> MutexGuard<'_, Option<ValueHandle<T>>> {
        let mut looks = 0;
        loop {
            match self.try_lock() {
                Some(handle) => return handle,
                None => spin_or_yield(&mut looks),
            }
        }
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Option<ValueHandle<T>>>> {
        match self.handle.try_lock() {
            Ok(handle) => Some(handle),
            // A reader has panicked. The handle is intact, and the engine detects the panic on its own.
            Err(TryLockError::Poisoned(poisoned)) => Some(PoisonError::into_inner(poisoned)),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Waits briefly before the next attempt, and yields the processor after every [`LOOKS`] attempts.
pub(super) fn spin_or_yield(looks: &mut u32) {
    #[cfg(any(test, feature = "schedules"))]
    crate::clock::virtual_time::ThreadVirtualTime::refuse_to_wait(*looks);
    *looks += 1;
    if looks.is_multiple_of(LOOKS) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn an_owner_without_guests_is_never_without_it() {
        let mut owner = ShardWriter::new(1);
        *owner.get() += 1;
        owner.share();
        *owner.get() += 1;
        assert_eq!((*owner.get(), owner.is_waited_for()), (3, false));
    }

    #[test]
    fn changes_are_seen_whole_whoever_makes_them() {
        const CHANGES: u64 = 2000;
        let mut owner = ShardWriter::new([0u64; 64]);
        let (looks, changes, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        let raise = |numbers: &mut [u64; 64]| {
            numbers.iter_mut().for_each(|number| *number += 1);
            changes.fetch_add(1, Ordering::Relaxed);
        };
        let guests = owner.add_readers(3);
        std::thread::scope(|scope| {
            for guest in guests {
                let (looks, stop, raise) = (&looks, &stop, &raise);
                scope.spawn(move || {
                    let is_over = || stop.load(Ordering::Relaxed);
                    let mut last = 0;
                    while !is_over() {
                        for _ in 0..5 {
                            let Some(seen) = guest.read_shared(is_over, |numbers| *numbers) else { return };
                            assert!(seen.iter().all(|number| *number == seen[0]), "half a change: {seen:?}");
                            assert!(seen[0] >= last, "an old state");
                            last = seen[0];
                            looks.fetch_add(1, Ordering::Relaxed);
                        }
                        guest.write_exclusive(is_over, raise);
                    }
                });
            }
            for _ in 1..=CHANGES {
                raise(owner.get());
                owner.share();
            }
            let seen = looks.load(Ordering::Relaxed);
            while looks.load(Ordering::Relaxed) < seen + 20 {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(owner.get()[63], changes.load(Ordering::Relaxed));
    }

    #[test]
    fn who_waits_is_known_and_the_end_is_noticed() {
        let mut owner = ShardWriter::new(5);
        let guest = owner.add_readers(1).remove(0);
        assert_eq!(guest.read_shared(|| true, |value| *value), None, "not shared yet");
        assert_eq!(guest.write_exclusive(|| true, |value| *value), None);
        assert!(owner.is_waited_for());
        owner.share();
        assert_eq!(guest.read_shared(|| true, |value| *value), Some(5));
        assert_eq!(guest.write_exclusive(|| true, |value| std::mem::replace(value, 6)), Some(5));
        assert_eq!((*owner.get(), owner.is_waited_for()), (6, false));
        assert_eq!(guest.read_shared(|| true, |value| *value), None);
    }

    #[test]
    fn it_survives_a_guest_that_panics() {
        let mut owner = ShardWriter::new(5);
        let guest = owner.add_readers(1).remove(0);
        owner.share();
        let panicked = std::thread::spawn(move || {
            guest.write_exclusive(
                || false,
                |value| {
                    *value = 7;
                    panic!("as this test wants it")
                },
            )
        });
        assert!(panicked.join().is_err());
        assert_eq!(*owner.get(), 7);
    }
}
