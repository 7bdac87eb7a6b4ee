//! A tester in place of a network: ports of a switch that offer load at predetermined times and measure what arrives.
//!
//! As in a hardware tester, a frame is *due* at a time that does not depend on the switch. It waits in a receive ring
//! of limited size until the switch takes it, and is missed if the ring is full. Each frame carries its due time, so
//! that delays include the wait for the switch. The tester has no thread: due frames are generated when the switch
//! asks for them. So the switch's threads have the processors to themselves; in return, generating the frames (some
//! nanoseconds each) costs time of the receiving thread.
mod port;
mod results;
mod source;
mod template;

pub(crate) use results::{TesterResults, mean_us, quantile_us};
pub(crate) use source::{BulkFlow, BulkFlowRate};
pub(crate) use template::{TesterFrameTemplate, VaryingHeaderField};

use port::TesterPort;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use weir_port::Port;
use weir_units::{Instant, SystemClock};

/// Load that the two ends of a tester offer.
#[derive(Debug, Clone, Default)]
pub(crate) struct TesterLoad {
    /// Bulk flow that each end sends.
    pub(crate) bulk: [Option<BulkFlow>; 2],
    /// Interval and frames of pings: the first end sends the first frame as echo request, the second end answers with
    /// the other.
    pub(crate) ping: Option<(Duration, [TesterFrameTemplate; 2])>,
}

/// Times of a measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TesterWindow {
    /// Start of sending.
    pub(crate) begin: Instant,
    /// Start of counting: frames due from here on count.
    pub(crate) from: Instant,
    /// End of sending.
    pub(crate) until: Instant,
}

impl TesterWindow {
    pub(crate) fn counts(&self, due: Instant) -> bool {
        (self.from..self.until).contains(&due)
    }
}

/// Observations of a tester's two ends.
pub(crate) type TesterEndResults = [Arc<Mutex<TesterResults>>; 2];

/// Capacity of a port's receive ring in frames.
pub(crate) const RING_FRAMES: u64 = 4096;

/// Creates the two ports of a tester.
pub(crate) fn tester(
    load: &TesterLoad,
    window: TesterWindow,
    clock: SystemClock,
    seed: u64,
) -> ([Box<dyn Port>; 2], TesterEndResults) {
    let seen = [(); 2].map(|()| Arc::new(Mutex::new(TesterResults::new(window))));
    let arrived = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let ports = [0, 1].map(|end: usize| {
        let source = load.bulk[end].as_ref().map(|bulk| {
            // Frames sent by this end arrive at the other.
            source::BulkFlowSource::new(bulk, window, Arc::clone(&arrived[1 - end]), seed.wrapping_add(end as u64))
        });
        let ping = load.ping.as_ref().map(|(interval, templates)| (*interval, templates[end].clone()));
        let port = TesterPort::new(end, source, ping, clock, Arc::clone(&seen[end]), Arc::clone(&arrived[end]));
        Box::new(port) as Box<dyn Port>
    });
    (ports, seen)
}

#[cfg(test)]
mod tests;
