//! Whether a thread met a port that another one was using, and how it waits then.
use std::sync::atomic::{AtomicBool, Ordering};

/// Rounds with nothing else to do after which a thread gives way: some microseconds. Whoever has the port may need this very core.
const ROUNDS: u32 = 64;

/// One thread's, known to the ports it uses. Only that thread writes to it.
#[derive(Debug, Default)]
pub(super) struct Hindered(AtomicBool);

impl Hindered {
    /// A port could not be used now: another thread has it.
    #[cold]
    pub(super) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether that was so since this was last asked.
    #[inline]
    fn take(&self) -> bool {
        let was = self.0.load(Ordering::Relaxed);
        if was {
            self.0.store(false, Ordering::Relaxed);
        }
        was
    }

    /// A round found nothing else to do: waits a little if that is only because a port was in use. Whether it did; it must not sleep then, since
    /// nobody wakes it when the port is free. `rounds` counts such rounds.
    pub(super) fn wait(&self, rounds: &mut u32) -> bool {
        let was = self.take();
        if was {
            *rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(ROUNDS) { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
        was
    }
}
