//! A tester in place of a network: ports of a switch that offer load at times of their own and measure what comes back.
//!
//! As in a hardware tester, a frame is *due* at a time that does not depend on the switch; it waits in a receive ring of limited size until the
//! switch takes it, and is missed if the ring is full. Each frame carries the time it was due, so that delays include the wait for
//! the switch. No thread is needed: what is due is made when the switch asks. So the switch's threads have the
//! processors to themselves, at the price of making the frames (some nanoseconds each) on the thread that receives.
mod port;
mod seen;
mod source;
mod template;

pub(crate) use seen::{Seen, mean_us, quantile_us};
pub(crate) use source::{Bulk, Rate};
pub(crate) use template::{Template, Vary};

use port::TesterPort;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use weir_port::Port;
use weir_units::{Instant, SystemClock};

/// What the two ends of a tester offer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Load {
    /// What each end sends.
    pub(crate) bulk: [Option<Bulk>; 2],
    /// The first end sends echo requests of this frame, this often; the second answers with the other frame.
    pub(crate) ping: Option<(Duration, [Template; 2])>,
}

/// When load is offered, and from when on it counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// Sending begins.
    pub(crate) begin: Instant,
    /// What is due from here on counts.
    pub(crate) from: Instant,
    /// Sending ends.
    pub(crate) until: Instant,
}

impl Window {
    pub(crate) fn counts(&self, due: Instant) -> bool {
        (self.from..self.until).contains(&due)
    }
}

/// What a tester has seen at its two ends.
pub(crate) type Ends = [Arc<Mutex<Seen>>; 2];

/// Frames that a port's receive ring holds.
pub(crate) const RING_FRAMES: u64 = 4096;

/// The two ports of a tester.
pub(crate) fn tester(load: &Load, window: Window, clock: SystemClock, seed: u64) -> ([Box<dyn Port>; 2], Ends) {
    let seen = [(); 2].map(|()| Arc::new(Mutex::new(Seen::new(window))));
    let arrived = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let ports = [0, 1].map(|end: usize| {
        let source = load.bulk[end].as_ref().map(|bulk| {
            // What this end sends arrives at the other.
            source::Source::new(bulk, window, Arc::clone(&arrived[1 - end]), seed.wrapping_add(end as u64))
        });
        let ping = load.ping.as_ref().map(|(interval, templates)| (*interval, templates[end].clone()));
        let port = TesterPort::new(end, source, ping, clock, Arc::clone(&seen[end]), Arc::clone(&arrived[end]));
        Box::new(port) as Box<dyn Port>
    });
    (ports, seen)
}

#[cfg(test)]
mod tests;
