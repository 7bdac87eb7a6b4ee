//! Load by other work of the machine: threads that keep processors busy.
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Threads that spin until this is dropped.
pub(super) struct CompetingThreads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl CompetingThreads {
    pub(super) fn start(count: u16) -> CompetingThreads {
        let stop = Arc::<AtomicBool>::default();
        let spin = |stop: Arc<AtomicBool>| {
            move || {
                while !stop.load(Ordering::Relaxed) {
                    spin_loop();
                }
            }
        };
        let threads = (0..count).map(|_| std::thread::spawn(spin(Arc::clone(&stop)))).collect();
        CompetingThreads { stop, threads }
    }
}

impl Drop for CompetingThreads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A spinning thread cannot fail, so the result of the join is ignored.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
