//! Sends a scenario's streams live, on a thread of their own.
use crate::LabError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use weir_network::streams::{SparePortPeers, StreamCounters, StreamTraffic};
use weir_scenario::Scenario;
use weir_units::{Clock, Instant, SystemClock};

/// Streams that are being sent.
pub(crate) struct RunningStreams {
    thread: Option<JoinHandle<Vec<StreamCounters>>>,
    stop: Arc<AtomicBool>,
}

impl RunningStreams {
    /// Begins the scenario's streams. Calls `done` when all packets are sent and none arrives any more, or the
    /// streams are stopped.
    ///
    /// # Errors
    /// Packets cannot be made for a stream's virtual switch, or the system has no thread left.
    pub(crate) fn begin(
        peers: SparePortPeers,
        scenario: &Scenario,
        clock: SystemClock,
        start: Instant,
        done: impl FnOnce() + Send + 'static,
    ) -> Result<RunningStreams, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut streams = StreamTraffic::new(scenario, peers, start)?;
        let stopping = Arc::clone(&stop);
        let work = move || {
            run(&mut streams, clock, &stopping);
            done();
            streams.counted().to_vec()
        };
        let thread = std::thread::Builder::new().name("weir-streams".into()).spawn(work);
        Ok(RunningStreams { thread: Some(thread.map_err(LabError::system("start the thread of streams"))?), stop })
    }

    /// Ends the streams. Returns the counters of each.
    pub(crate) fn stop(&mut self) -> Vec<StreamCounters> {
        self.stop.store(true, Relaxed);
        let Some(thread) = self.thread.take() else { return Vec::new() };
        thread.join().unwrap_or_else(|_| {
            tracing::error!("the thread of streams panicked; what it measured is lost");
            Vec::new()
        })
    }
}

impl Drop for RunningStreams {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Sends and receives without sleeping, because it measures microseconds. Ends when the streams are over, the lab ends
/// or `stop` is set.
fn run(streams: &mut StreamTraffic, clock: SystemClock, stop: &AtomicBool) {
    while !stop.load(Relaxed) && streams.send(|| clock.now()) {
        if !streams.receive(|| clock.now()) && streams.is_over(clock.now()) {
            return;
        }
    }
}
