//! Sends a scenario's streams into spare ports of switches and receives them from others, in any kind of time.
mod sources;
mod stamp;
mod template;

pub use template::check;

use crate::NetworkError;
use crate::link::MEMORY_FRAMES;
use crate::result::StreamResult;
use sources::StreamSources;
use std::collections::BTreeMap;
use std::time::Duration;
use weir_packet::{Frame, FramePool, PortNo};
use weir_port::{Port, memory};
use weir_scenario::Scenario;
use weir_traffic::TimeHistogram;
use weir_units::Instant;

/// Frames taken from a port at once.
const BURST: usize = 64;
/// Time without arrivals after the last packet was sent, after which streams end. Until then packets may still be
/// queued.
const DRAIN: Duration = Duration::from_millis(200);

/// Ports of switches that no host or link uses, by switch and number.
pub type SparePorts = Vec<(usize, PortNo, Box<dyn Port>)>;

/// Far ends of the spare ports, before traffic begins.
pub struct SparePortPeers {
    ports: BTreeMap<(usize, u32), Box<dyn Port>>,
}

/// Counters of a stream's packets that were sent in the counting window.
#[derive(Debug, Clone, Default)]
pub struct StreamCounters {
    /// Packets sent.
    pub sent: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// Packets of these that arrived.
    pub received: u64,
    /// Bytes of these.
    pub received_bytes: u64,
    /// Delays from sending to receiving.
    pub delays: TimeHistogram,
    /// Lateness of sending against the plan.
    pub late: TimeHistogram,
}

/// Streams of a run: plans, sends and receives their packets.
pub struct StreamTraffic {
    ports: BTreeMap<(usize, u32), Box<dyn Port>>,
    sources: StreamSources,
    pool: FramePool,
    counted: Vec<StreamCounters>,
    batch: Vec<Frame>,
    /// Time at which a packet was last sent or received.
    busy_at: Instant,
}

/// Makes a memory port for each port of a fabric that no host or link uses. Returns the switches' ends, and the far
/// ends.
///
/// # Errors
/// The system has no more descriptors for memory ports.
pub fn ports(scenario: &Scenario) -> Result<(SparePorts, SparePortPeers), NetworkError> {
    let (mut near_ends, mut ports) = (Vec::new(), BTreeMap::new());
    for (index, switch) in scenario.switches.iter().enumerate() {
        let is_used = |number: u32| {
            let ends = scenario.links.iter().flat_map(|link| link.ends);
            let hosts = scenario.hosts.iter().map(|host| (host.switch, host.port));
            hosts.chain(ends.map(|end| (end.switch, end.port))).any(|used| used == (index, number))
        };
        let free = switch.fabric.iter().flat_map(|fabric| &fabric.ports).filter(|port| !is_used(port.port));
        for port in free {
            let (near, far) = memory::pair(MEMORY_FRAMES).map_err(NetworkError::MemoryPort)?;
            let name = format!("p{}", port.port);
            near_ends.push((index, PortNo(port.port), Box::new(near.named(&name)) as Box<dyn Port>));
            ports.insert((index, port.port), Box::new(far.named(&name)) as Box<dyn Port>);
        }
    }
    Ok((near_ends, SparePortPeers { ports }))
}

impl StreamTraffic {
    /// Returns the scenario's streams, whose times count from `start`.
    ///
    /// # Errors
    /// Packets cannot be made for a stream's virtual switch.
    pub fn new(scenario: &Scenario, peers: SparePortPeers, start: Instant) -> Result<StreamTraffic, NetworkError> {
        Ok(StreamTraffic {
            ports: peers.ports,
            sources: StreamSources::new(scenario, start)?,
            pool: FramePool::new(1024, 8),
            counted: scenario.streams.iter().map(|_| StreamCounters::default()).collect(),
            batch: Vec::new(),
            busy_at: start,
        })
    }

    /// Sends all packets that are due; `now` is asked for the time of each. Returns false if the switch at the other
    /// end of a port is gone.
    pub fn send(&mut self, mut now: impl FnMut() -> Instant) -> bool {
        while let Some(packet) = self.sources.due(now()) {
            let (Some(port), counted) = (self.ports.get_mut(&packet.port), &mut self.counted[packet.stream]) else {
                continue;
            };
            let now = now();
            self.busy_at = now;
            self.batch.push(packet.frame(now, &mut self.pool));
            if packet.counts {
                counted.sent += 1;
                counted.sent_bytes += u64::from(packet.bytes);
                counted.late.record(now.since(packet.at));
            }
            if port.transmit(now, &mut self.pool, &mut self.batch).is_err() {
                return false;
            }
        }
        true
    }

    /// Receives and counts packets that have arrived, a burst from each port; `now` is asked for the time of each
    /// burst. Returns true if any has arrived.
    pub fn receive(&mut self, mut now: impl FnMut() -> Instant) -> bool {
        let mut has_arrived = false;
        for port in self.ports.values_mut() {
            let now = now();
            if port.receive(now, &mut self.pool, &mut self.batch, BURST).is_err() {
                continue;
            }
            for frame in self.batch.drain(..) {
                has_arrived = true;
                self.busy_at = now;
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
        has_arrived
    }

    /// Returns the time at which to send next, or, when all is sent, the time at which the streams are over if nothing
    /// arrives before.
    pub fn next_wake(&self) -> Instant {
        if self.sources.is_over() { self.busy_at + DRAIN } else { self.sources.next_event() }
    }

    /// Returns true if all packets are sent and none has arrived for a while.
    pub fn is_over(&self, now: Instant) -> bool {
        self.sources.is_over() && now.since(self.busy_at) >= DRAIN
    }

    /// Returns the counters of each stream.
    pub fn counted(&self) -> &[StreamCounters] {
        &self.counted
    }
}

/// Returns the results of the scenario's streams. Shares are of all bytes that arrived.
pub fn results(scenario: &Scenario, counted: &[StreamCounters]) -> Vec<StreamResult> {
    let all: u64 = counted.iter().map(|counted| counted.received_bytes).sum();
    let window = scenario.simulate.duration.as_secs_f64();
    let result = |(stream, counted): (&weir_scenario::PacketStream, &StreamCounters)| {
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
