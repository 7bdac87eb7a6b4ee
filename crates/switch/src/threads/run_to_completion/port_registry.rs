//! Lists the ports and the thread that receives from each. The engine changes the list, and all threads read it after
//! a change.
use super::port::SharedPort;
use crate::engine::wake::ThreadWaker;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_openflow::model::PortNo;

/// List of the ports that several threads use.
pub(super) struct PortRegistry {
    ports: Mutex<BTreeMap<PortNo, Arc<SharedPort>>>,
    /// Incremented with each change.
    version: AtomicU64,
    /// Wakers by thread.
    threads: Vec<Arc<ThreadWaker>>,
}

impl PortRegistry {
    /// Returns a board without ports.
    pub(super) fn new(threads: Vec<Arc<ThreadWaker>>) -> PortRegistry {
        PortRegistry { ports: Mutex::default(), version: AtomicU64::new(0), threads }
    }

    pub(super) fn waker(&self, thread: usize) -> Arc<ThreadWaker> {
        Arc::clone(&self.threads[thread])
    }

    /// Returns the thread for a new port: the first of those with the fewest ports.
    pub(super) fn least(&self) -> usize {
        let mut counts = vec![0_usize; self.threads.len()];
        self.lock().values().for_each(|port| counts[port.thread] += 1);
        counts.iter().enumerate().min_by_key(|(_, count)| **count).map_or(0, |(thread, _)| thread)
    }

    pub(super) fn add(&self, port: Arc<SharedPort>) {
        self.lock().insert(port.number, port);
        self.changed();
    }

    /// Removes a port, unless another one has taken its number.
    pub(super) fn remove(&self, port: &Arc<SharedPort>) {
        let mut ports = self.lock();
        if ports.get(&port.number).is_some_and(|listed| Arc::ptr_eq(listed, port)) {
            ports.remove(&port.number);
        }
        drop(ports);
        self.changed();
    }

    /// Makes all threads read the board again, and read the ports that they only watched.
    pub(super) fn changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
        self.threads.iter().for_each(|thread| thread.wake());
    }

    /// Returns the version and the ports, ordered by number.
    pub(super) fn read(&self) -> (u64, Vec<(PortNo, Arc<SharedPort>)>) {
        // The version is read first, so that a concurrent change causes another read.
        let version = self.version();
        (version, self.lock().iter().map(|(number, port)| (*number, Arc::clone(port))).collect())
    }

    #[inline]
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns the numbers of the ports that a thread receives from.
    pub(super) fn ports_of(&self, thread: usize) -> Vec<PortNo> {
        self.lock().values().filter(|port| port.thread == thread).map(|port| port.number).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PortNo, Arc<SharedPort>>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
