//! Sends a scenario's streams live: one thread sends packets by rule into memory ports of switches and receives them
//! from others.
mod sources;
mod stamp;
mod template;

use crate::LabError;
use sources::StreamSources;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_network::link::MEMORY_FRAMES;
use weir_network::result::StreamResult;
use weir_packet::{Frame, FramePool, PortNo};
use weir_port::{Port, memory};
use weir_scenario::Scenario;
use weir_traffic::TimeHistogram;
use weir_units::{Clock, Instant, SystemClock};

pub(crate) use template::check;

/// Frames taken from a port at once.
const BURST: usize = 64;
/// Time without arrivals after the last packet was sent, after which streams end. Until then packets may still be
/// queued.
const DRAIN: Duration = Duration::from_millis(200);

/// Ports of switches that no host or link uses, by switch and number.
pub(crate) type SparePorts = Vec<(usize, PortNo, Box<dyn Port>)>;

/// Far ends of the spare ports, before traffic begins.
pub(crate) struct SparePortPeers {
    ports: BTreeMap<(usize, u32), Box<dyn Port>>,
}

/// Counters of a stream's packets that were sent in the counting window.
#[derive(Debug, Clone, Default)]
pub(crate) struct LabStreamCounters {
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received: u64,
    pub(crate) received_bytes: u64,
    /// Delays from sending to receiving.
    pub(crate) delays: TimeHistogram,
    /// Lateness of sending against the plan.
    pub(crate) late: TimeHistogram,
}

/// Makes a memory port for each port of a fabric that no host or link uses. Returns the switches' ends, and the rig
/// with the far ends.
pub(crate) fn ports(scenario: &Scenario) -> Result<(SparePorts, SparePortPeers), LabError> {
    let (mut near_ends, mut ports) = (Vec::new(), BTreeMap::new());
    for (index, switch) in scenario.switches.iter().enumerate() {
        let is_used = |number: u32| {
            let ends = scenario.links.iter().flat_map(|link| link.ends);
            let hosts = scenario.hosts.iter().map(|host| (host.switch, host.port));
            hosts.chain(ends.map(|end| (end.switch, end.port))).any(|used| used == (index, number))
        };
        let free = switch.fabric.iter().flat_map(|fabric| &fabric.ports).filter(|port| !is_used(port.port));
        for port in free {
            let (near, far) = memory::pair(MEMORY_FRAMES).map_err(LabError::system("make a memory port"))?;
            let name = format!("p{}", port.port);
            near_ends.push((index, PortNo(port.port), Box::new(near.named(&name)) as Box<dyn Port>));
            ports.insert((index, port.port), Box::new(far.named(&name)) as Box<dyn Port>);
        }
    }
    Ok((near_ends, SparePortPeers { ports }))
}

/// Streams that are being sent.
pub(crate) struct RunningStreams {
    thread: Option<JoinHandle<Vec<LabStreamCounters>>>,
    stop: Arc<AtomicBool>,
}

impl SparePortPeers {
    /// Begins the scenario's streams. Calls `done` when all packets are sent and none arrives any more, or the
    /// streams are stopped.
    ///
    /// # Errors
    /// Packets cannot be made for a stream's virtual switch, or the system has no thread left.
    pub(crate) fn begin(
        self,
        scenario: &Scenario,
        clock: SystemClock,
        start: Instant,
        done: impl FnOnce() + Send + 'static,
    ) -> Result<RunningStreams, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let sources = StreamSources::new(scenario, start)?;
        let counted = scenario.streams.iter().map(|_| LabStreamCounters::default()).collect();
        let (pool, stopping) = (FramePool::new(1024, 8), Arc::clone(&stop));
        let mut tester = StreamThreadState { ports: self.ports, sources, clock, pool, counted, batch: Vec::new() };
        let work = move || {
            tester.run(&stopping);
            done();
            tester.counted
        };
        let thread = std::thread::Builder::new().name("weir-streams".into()).spawn(work);
        Ok(RunningStreams { thread: Some(thread.map_err(LabError::system("start the thread of streams"))?), stop })
    }
}

impl RunningStreams {
    /// Ends the streams. Returns the counters of each.
    pub(crate) fn stop(&mut self) -> Vec<LabStreamCounters> {
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

/// State of the thread.
struct StreamThreadState {
    ports: BTreeMap<(usize, u32), Box<dyn Port>>,
    sources: StreamSources,
    clock: SystemClock,
    pool: FramePool,
    counted: Vec<LabStreamCounters>,
    batch: Vec<Frame>,
}

impl StreamThreadState {
    /// Sends and receives without sleeping, because it measures microseconds.
    fn run(&mut self, stop: &AtomicBool) {
        let mut last_came = self.clock.now();
        while !stop.load(Relaxed) {
            let is_over = !self.send();
            if self.receive() || !is_over {
                last_came = self.clock.now();
            } else if self.clock.now().since(last_came) > DRAIN {
                return;
            }
        }
    }

    /// Sends the packets that are due. Returns true if more are planned.
    fn send(&mut self) -> bool {
        while let Some(packet) = self.sources.due(self.clock.now()) {
            let (Some(port), counted) = (self.ports.get_mut(&packet.port), &mut self.counted[packet.stream]) else {
                continue;
            };
            let now = self.clock.now();
            self.batch.push(packet.frame(now, &mut self.pool));
            if packet.counts {
                counted.sent += 1;
                counted.sent_bytes += u64::from(packet.bytes);
                counted.late.record(now.since(packet.at));
            }
            if port.transmit(now, &mut self.pool, &mut self.batch).is_err() {
                // Fails if the switch has ended because the lab is ending.
                return false;
            }
        }
        !self.sources.is_over()
    }

    /// Receives and counts arrived packets. Returns true if any arrived.
    fn receive(&mut self) -> bool {
        let mut came = false;
        for port in self.ports.values_mut() {
            let now = self.clock.now();
            if port.receive(now, &mut self.pool, &mut self.batch, BURST).is_err() {
                continue;
            }
            for frame in self.batch.drain(..) {
                came = true;
                if let Some(stamp) = stamp::read(frame.bytes())
                    && let Some(counted) = self.counted.get_mut(usize::from(stamp.stream))
                    && stamp.counts
                {
                    counted.received += 1;
                    counted.received_bytes += u64::from(frame.bytes_len());
                    counted.delays.record(now.since(stamp.sent));
                }
                self.pool.give(frame);
            }
        }
        came
    }
}

/// Returns the results of the scenario's streams. Shares are of all bytes that arrived.
pub(crate) fn results(scenario: &Scenario, counted: &[LabStreamCounters]) -> Vec<StreamResult> {
    let all: u64 = counted.iter().map(|counted| counted.received_bytes).sum();
    let window = scenario.simulate.duration.as_secs_f64();
    let result = |(stream, counted): (&weir_scenario::PacketStream, &LabStreamCounters)| {
        let switch = &scenario.switches[stream.switch];
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        let lost = counted.sent.saturating_sub(counted.received);
        StreamResult {
            name: stream.name.clone(),
            switch: switch.name.clone(),
            virtual_switch: stream.virtual_switch.map(|index| switch.virtual_switches[index].name.clone()),
            output: stream.output,
            class: stream.class,
            sent: counted.sent,
            received: counted.received,
            throughput: share(counted.received, counted.sent),
            throughput_bytes: share(counted.received_bytes, counted.sent_bytes),
            loss: share(lost, counted.sent),
            rate_bps: counted.received_bytes as f64 * 8.0 / window,
            share: share(counted.received_bytes, all),
            delay: counted.delays.summary(),
            late: counted.late.summary(),
        }
    };
    scenario.streams.iter().zip(counted).map(result).collect()
}
