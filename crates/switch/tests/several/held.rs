//! Ports held by threads that do not return for a while, as when another program has their core.
use crate::bed::PATIENCE;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_packet::{Frame, FramePool};
use weir_port::{FrameCounters, LinkState, Port, PortInfo, PortResult};
use weir_units::{Clock, Instant, SystemClock};

/// Longest stay of a thread, so that a failing test ends.
const MAX_STAY: Duration = PATIENCE.saturating_mul(2);

/// Request to hold a port, and its state.
#[derive(Default)]
pub(crate) struct Hold {
    is_wanted: AtomicBool,
    is_there: AtomicBool,
}

impl Hold {
    /// Makes the next thread that receives from the port stay in it.
    pub(crate) fn begin(&self) {
        self.is_wanted.store(true, Ordering::SeqCst);
    }

    /// Waits until a thread stays in the port.
    pub(crate) fn wait(&self) {
        let clock = SystemClock::start();
        while !self.is_there.load(Ordering::SeqCst) {
            assert!(clock.now().since(Instant::ZERO) < PATIENCE, "nobody asks the port for frames");
            std::thread::yield_now();
        }
    }

    /// Lets the thread leave the port.
    pub(crate) fn end(&self) {
        self.is_wanted.store(false, Ordering::SeqCst);
    }

    /// Stays in the port as long as requested, on the calling thread.
    fn stay(&self) {
        let clock = SystemClock::start();
        self.is_there.store(true, Ordering::SeqCst);
        while self.is_wanted.load(Ordering::SeqCst) && clock.now().since(Instant::ZERO) < MAX_STAY {
            std::thread::yield_now();
        }
        self.is_there.store(false, Ordering::SeqCst);
    }
}

/// Way in which a thread stays in a port.
enum Stay {
    /// Stays as long as the hold lasts, when the thread receives.
    Held(Arc<Hold>),
    /// Now and then, for a random number of yields; the field is the random state.
    Lazy(u64),
}

/// A port that wraps another one and delays the threads using it.
pub(crate) struct Held {
    port: Box<dyn Port>,
    stay: Stay,
}

impl Held {
    pub(crate) fn new(port: Box<dyn Port>, hold: Arc<Hold>) -> Held {
        Held { port, stay: Stay::Held(hold) }
    }

    pub(crate) fn lazy(port: Box<dyn Port>, seed: u64) -> Held {
        Held { port, stay: Stay::Lazy(seed) }
    }

    fn is_asked(&mut self) {
        match &mut self.stay {
            Stay::Held(hold) if hold.is_wanted.load(Ordering::SeqCst) => hold.stay(),
            Stay::Held(_) => {}
            Stay::Lazy(_) => self.idle(),
        }
    }

    fn idle(&mut self) {
        let Stay::Lazy(dice) = &mut self.stay else { return };
        *dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let drawn = *dice >> 32;
        // One time in eight, for up to 64 yields to other threads.
        let turns = if drawn.is_multiple_of(8) { drawn / 8 % 64 } else { 0 };
        (0..turns).for_each(|_| std::thread::yield_now());
    }
}

impl Port for Held {
    fn info(&self) -> &PortInfo {
        self.port.info()
    }

    fn inner(&self) -> Option<&dyn Port> {
        Some(&*self.port)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Port> {
        Some(&mut *self.port)
    }

    fn receive(&mut self, now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        self.is_asked();
        self.port.receive(now, pool, batch, max)
    }

    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        self.idle();
        self.port.transmit(now, pool, frames)
    }

    fn link(&mut self) -> LinkState {
        self.port.link()
    }

    fn counters(&self) -> FrameCounters {
        self.port.counters()
    }
}
