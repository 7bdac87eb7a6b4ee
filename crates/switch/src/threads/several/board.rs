//! Which ports there are and which thread receives from each: changed by the engine, read by all threads when it has changed.
use super::port::Common;
use crate::engine::wake::Waker;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_openflow::model::PortNo;

/// See the module's page.
pub(super) struct Board {
    ports: Mutex<BTreeMap<PortNo, Arc<Common>>>,
    /// Counts changes.
    version: AtomicU64,
    /// What wakes each thread.
    threads: Vec<Arc<Waker>>,
}

impl Board {
    /// Without ports.
    pub(super) fn new(threads: Vec<Arc<Waker>>) -> Board {
        Board { ports: Mutex::default(), version: AtomicU64::new(0), threads }
    }

    pub(super) fn waker(&self, thread: usize) -> Arc<Waker> {
        Arc::clone(&self.threads[thread])
    }

    /// The thread that is to receive from a new port: the one with the fewest, the first of those.
    pub(super) fn least(&self) -> usize {
        let mut counts = vec![0_usize; self.threads.len()];
        self.lock().values().for_each(|port| counts[port.thread] += 1);
        counts.iter().enumerate().min_by_key(|(_, count)| **count).map_or(0, |(thread, _)| thread)
    }

    pub(super) fn add(&self, port: Arc<Common>) {
        self.lock().insert(port.number, port);
        self.changed();
    }

    /// Takes a port off, if it is still the one of its number.
    pub(super) fn remove(&self, port: &Arc<Common>) {
        let mut ports = self.lock();
        if ports.get(&port.number).is_some_and(|listed| Arc::ptr_eq(listed, port)) {
            ports.remove(&port.number);
        }
        drop(ports);
        self.changed();
    }

    /// Has all threads look at the ports again, and at those they watch instead of asking.
    pub(super) fn changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
        self.threads.iter().for_each(|thread| thread.wake());
    }

    /// The ports by number, and which version of them this is.
    pub(super) fn read(&self) -> (u64, Vec<(PortNo, Arc<Common>)>) {
        // Before they are read: a change meanwhile is read again.
        let version = self.version();
        (version, self.lock().iter().map(|(number, port)| (*number, Arc::clone(port))).collect())
    }

    #[inline]
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Numbers of the ports that a thread receives from.
    pub(super) fn ports_of(&self, thread: usize) -> Vec<PortNo> {
        self.lock().values().filter(|port| port.thread == thread).map(|port| port.number).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PortNo, Arc<Common>>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
