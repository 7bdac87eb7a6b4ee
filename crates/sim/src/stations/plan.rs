//! Describes the simulated system, made of a scenario once for all replications: stations, gates, wires, and the
//! paths of flows through them.
use std::time::Duration;
use weir_model::switch::forward::ForwardingLaw;
use weir_scenario::{FlowCacheTiming, LinkJitter, LinkLoss, MetLevel, ReleaseGate};
use weir_traffic::{LawSampler, OfferedPackets};
use weir_units::Instant;

/// Devices of a scenario as queueing stations.
#[derive(Debug, Clone)]
pub struct QueueingPlan {
    pub(super) flows: Vec<FlowPlan>,
    pub(super) devices: Vec<DevicePlan>,
    pub(super) links: Vec<LinkPlan>,
    pub(super) controller: Option<usize>,
    /// Indices of the wires from switches to the controller, and back.
    pub(super) control_wires: [usize; 2],
    pub(super) stations: Vec<StationPlan>,
    pub(super) gates: Vec<ReleaseGate>,
    /// Wires: delays of links, of the control channel and of measured control paths.
    pub(super) wires: Vec<WirePlan>,
    /// True if a packet that begins a flow asks the controller only at the first switch that takes time.
    pub(super) asks_once: bool,
    /// Descriptions of the scenario's traffic that is not simulated.
    pub left_out: Vec<String>,
    /// Parameters of profiles that have no effect on stations, by switch.
    pub unused: Vec<String>,
}

/// Packets from one host to another.
#[derive(Debug, Clone)]
pub(super) struct FlowPlan {
    pub(super) from: String,
    pub(super) to: String,
    /// Number of its two hosts as a flow in the switches' caches.
    pub(super) pair: u64,
    pub(super) offered: OfferedPackets,
    pub(super) new_flows: f64,
    /// Number of concurrent flows, if each packet's flow is known. Then every packet asks the controller until its
    /// flow has an entry.
    pub(super) flows: Option<u32>,
    pub(super) start: Instant,
    pub(super) stop: Instant,
    pub(super) stages: Vec<PathStage>,
    /// Index on the path of the first switch that takes time.
    pub(super) first_switch: usize,
}

/// Stage of a flow's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathStage {
    /// Link in one direction, by index.
    Link(usize),
    /// Switch.
    Switch(SwitchStage),
}

/// Switch on a flow's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SwitchStage {
    /// Index of the switch's device.
    pub(super) device: usize,
    /// Entries that the flow's packets meet in the switch's tables.
    pub(super) met: MetLevel,
}

/// Link in one direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkPlan {
    /// Station that sends at the link's rate, if the link has one.
    pub(super) line: Option<usize>,
    /// Wire that delays or loses packets, if the link does so.
    pub(super) wire: Option<usize>,
}

/// Switch that takes time, as indices of its parts.
#[derive(Debug, Clone)]
pub(super) struct DevicePlan {
    pub(super) name: String,
    /// Gate in front of the data path.
    pub(super) front: Option<usize>,
    /// Stations of the data path, by level of the tables; none for levels that take no time.
    pub(super) data: Vec<Option<usize>>,
    /// Level that packets without an entry reach.
    pub(super) missed: MetLevel,
    /// Gate behind the data path.
    pub(super) back: Option<usize>,
    pub(super) control: ControlPathPlan,
    /// True if packets that return from the controller pass the data path again.
    pub(super) passes_again: bool,
    /// Cache of decisions about flows, if the profile has one.
    pub(super) cache: Option<FlowCacheTiming>,
    pub(super) write: Duration,
    pub(super) slow: Duration,
}

/// Path of packets to the controller and back.
#[derive(Debug, Clone, Copy)]
pub(super) enum ControlPathPlan {
    /// Agents for packet-ins and for packet-outs, which may be one and the same station; `None` takes no time.
    Agents { packet_in: Option<usize>, packet_out: Option<usize> },
    /// Bottleneck station, and a wire for the rest of the measured delay.
    Measured { bottleneck: usize, rest: usize },
}

/// Server with its queue.
#[derive(Debug, Clone)]
pub(super) struct StationPlan {
    pub(super) name: String,
    pub(super) role: StationRole,
    /// Jobs of packets on their way in, and of packets that return from the controller.
    pub(super) jobs: [JobServiceTime; 2],
    pub(super) room: StationQueues,
}

/// Service time of a job: that of a level of tables, or a random part and a part for each byte.
#[derive(Debug, Clone)]
pub(super) struct JobServiceTime {
    pub(super) services: LawSampler,
    pub(super) per_byte_ns: f64,
    pub(super) level: Option<ForwardingLevel>,
}

/// Level of tables by whose law packets are served.
#[derive(Debug, Clone)]
pub(super) struct ForwardingLevel {
    /// Laws by kind of match.
    pub(super) laws: [ForwardingLaw; 3],
    /// Number of entries in the level.
    pub(super) entries: f64,
    /// Time of a packet that had to wait for another, in nanoseconds, if it differs.
    pub(super) busy_ns: Option<f64>,
}

/// Queues of a station and their limits.
#[derive(Debug, Clone, Copy)]
pub(super) enum StationQueues {
    /// Single queue; most packets in the station, including the one in service.
    Fifo(Option<u32>),
    /// Queue for each job, of which the second has priority; most packets of each job, including one in service.
    Priority([Option<u32>; 2]),
    /// Single queue; most bytes that wait.
    Bytes(u64),
}

/// Kind of a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StationRole {
    Line,
    Data,
    /// Agent of packet-ins, packet-outs or both.
    Agent,
    Controller,
    Bottleneck,
}

/// Wire that delays packets and may lose them.
#[derive(Debug, Clone, Copy)]
pub(super) struct WirePlan {
    pub(super) delay: Duration,
    pub(super) jitter: Option<LinkJitter>,
    pub(super) loss: Option<LinkLoss>,
    pub(super) leads: WireTarget,
}

impl WirePlan {
    /// Returns true if the wire neither delays nor loses packets.
    pub(super) fn is_none(&self) -> bool {
        self.delay.is_zero() && self.jitter.is_none() && self.loss.is_none()
    }
}

/// Next step of a packet at the far end of a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireTarget {
    Onwards,
    ToController,
    FromController,
    /// End of a measured control path.
    Back,
}
