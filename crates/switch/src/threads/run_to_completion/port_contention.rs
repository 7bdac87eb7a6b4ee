//! Notes that a thread found ports in use by other threads, and makes it wait.
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of rounds without other work after which a thread yields, some microseconds. The thread that has the port
/// may need this very core.
const ROUNDS: u32 = 64;

/// Flag of one thread, shared with the ports that it uses. Only that thread writes it.
#[derive(Debug, Default)]
pub(super) struct PortContention(AtomicBool);

impl PortContention {
    /// Notes that a port was in use by another thread.
    #[cold]
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if the flag was set since the last call, and clears it.
    #[inline]
    fn take(&self) -> bool {
        let was = self.0.load(Ordering::Relaxed);
        if was {
            self.0.store(false, Ordering::Relaxed);
        }
        was
    }

    /// Waits briefly after a round without work, if that is only because a port was in use. Returns true if it
    /// waited. The thread must not sleep then, because no wake-up follows when the port is free. `rounds` counts such
    /// rounds.
    pub(super) fn wait(&self, rounds: &mut u32) -> bool {
        let was = self.take();
        if was {
            *rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(ROUNDS) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        was
    }
}
