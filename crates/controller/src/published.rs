//! A value that several threads read without a lock, and that is replaced as a whole.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Wakes the thread of an application, so that the controller asks for [`ControllerApp::next_wake`] again. Does nothing
/// for an application in virtual time.
///
/// [`ControllerApp::next_wake`]: crate::ControllerApp::next_wake
#[derive(Clone, Default)]
pub struct AppWaker(Option<Arc<dyn Fn() + Send + Sync>>);

impl AppWaker {
    pub(crate) fn new(wake: impl Fn() + Send + Sync + 'static) -> AppWaker {
        AppWaker(Some(Arc::new(wake)))
    }

    /// Wakes the thread.
    pub fn wake(&self) {
        if let Some(wake) = &self.0 {
            wake();
        }
    }
}

impl std::fmt::Debug for AppWaker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AppWaker").field(&self.0.is_some()).finish()
    }
}

/// Value of the whole network, for applications of several threads. Changes are rare and made by one thread at a time;
/// a reader looks at one number to see that nothing has changed.
#[derive(Debug)]
pub struct Published<T> {
    /// Number of changes.
    version: AtomicU64,
    current: Mutex<Current<T>>,
}

#[derive(Debug)]
struct Current<T> {
    value: Arc<T>,
    /// Wakers of the threads that have readers, by the thread's number.
    readers: BTreeMap<usize, AppWaker>,
}

/// View of a published value from one thread.
#[derive(Debug)]
pub struct PublishedReader<T> {
    published: Arc<Published<T>>,
    seen: u64,
    value: Arc<T>,
}

impl<T> Published<T> {
    /// Publishes a first value.
    pub fn new(value: T) -> Arc<Published<T>> {
        let current = Current { value: Arc::new(value), readers: BTreeMap::new() };
        Arc::new(Published { version: AtomicU64::new(0), current: Mutex::new(current) })
    }

    /// Returns a reader for thread number `shard`, which `waker` wakes at every change. A thread may have several.
    pub fn reader(self: &Arc<Self>, shard: usize, waker: AppWaker) -> PublishedReader<T> {
        let mut current = self.lock();
        current.readers.insert(shard, waker);
        let (value, seen) = (Arc::clone(&current.value), self.version.load(Ordering::Acquire));
        PublishedReader { published: Arc::clone(self), seen, value }
    }

    /// Values are replaced as a whole, so the current one is right even after a panic.
    fn lock(&self) -> MutexGuard<'_, Current<T>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> PublishedReader<T> {
    /// Returns the value as of the last [`PublishedReader::refresh`] or [`PublishedReader::update`].
    pub fn get(&self) -> &T {
        &self.value
    }

    /// Returns the newest value, without taking it.
    pub fn newest(&self) -> Arc<T> {
        Arc::clone(&self.published.lock().value)
    }

    /// Returns true if there is a newer value.
    pub fn is_stale(&self) -> bool {
        self.published.version.load(Ordering::Acquire) != self.seen
    }

    /// Takes the newest value. Returns true if it is another than before.
    pub fn refresh(&mut self) -> bool {
        if !self.is_stale() {
            return false;
        }
        let current = self.published.lock();
        self.value = Arc::clone(&current.value);
        self.seen = self.published.version.load(Ordering::Acquire);
        true
    }

    /// Takes the newest value and replaces it if `change` returns another. All other readers are woken then. Returns
    /// true if the value is another than before.
    pub fn update(&mut self, change: impl FnOnce(&T) -> Option<T>) -> bool {
        let mut current = self.published.lock();
        let Some(new) = change(&current.value) else {
            drop(current);
            return self.refresh();
        };
        current.value = Arc::new(new);
        self.value = Arc::clone(&current.value);
        self.seen = self.published.version.fetch_add(1, Ordering::AcqRel) + 1;
        current.readers.values().for_each(AppWaker::wake);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn readers_are_woken_and_see_the_newest() {
        let published = Published::new(1);
        let woken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&woken);
        let mut first = published.reader(0, AppWaker::default());
        let mut second = published.reader(1, AppWaker::new(move || _ = count.fetch_add(1, Ordering::Relaxed)));
        assert!(!second.refresh() && !first.update(|_| None));
        assert!(first.update(|value| Some(value + 1)) && *first.get() == 2 && !first.is_stale());
        assert_eq!((woken.load(Ordering::Relaxed), second.is_stale(), *second.get()), (1, true, 1));
        assert_eq!((*second.newest(), second.is_stale()), (2, true));
        assert!(second.update(|_| None) && *second.get() == 2 && !second.refresh());
        assert_eq!(*published.reader(2, AppWaker::default()).get(), 2);
    }
}
