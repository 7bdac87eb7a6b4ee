//! What is simulated: stations, gates, wires and the ways of flows through them, made of a scenario once for all replications.
use std::time::Duration;
use weir_scenario::{Gate, Jitter, Loss};
use weir_traffic::{Offered, Services};
use weir_units::Instant;

/// A scenario's devices as queueing stations.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(super) flows: Vec<Flow>,
    pub(super) devices: Vec<Device>,
    pub(super) links: Vec<LinkPlan>,
    pub(super) controller: Option<usize>,
    /// Wires from switches to the controller, and back.
    pub(super) control_wires: [usize; 2],
    pub(super) stations: Vec<StationPlan>,
    pub(super) gates: Vec<Gate>,
    /// Delays of wires.
    pub(super) wires: Vec<WirePlan>,
    /// A packet that begins a flow asks only at the first switch that takes time.
    pub(super) asks_once: bool,
    /// Traffic of the scenario that is not simulated, and why.
    pub left_out: Vec<String>,
}

/// Packets from one host to another.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) offered: Offered,
    pub(super) new_flows: f64,
    /// Flows at a time, if it is known which flow a packet is of: then all packets ask that come before an entry is there.
    pub(super) flows: Option<u32>,
    pub(super) start: Instant,
    pub(super) stop: Instant,
    pub(super) way: Vec<Stage>,
    /// Place on the way of the first switch that takes time.
    pub(super) first_switch: usize,
}

/// What is on a flow's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// A link, in one direction: its place among the links.
    Link(usize),
    /// A switch: its place among the devices.
    Switch(usize),
}

/// A link in one direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkPlan {
    /// Where it sends at its rate, if it has one.
    pub(super) line: Option<usize>,
    /// Where packets are under way, if that takes time.
    pub(super) wire: Option<usize>,
}

/// A switch: the places of its parts.
#[derive(Debug, Clone)]
pub(super) struct Device {
    pub(super) name: String,
    /// The gate in front of the data path.
    pub(super) front: Option<usize>,
    pub(super) data: Option<usize>,
    /// The gate behind it.
    pub(super) back: Option<usize>,
    pub(super) control: Control,
    /// Packets that come back pass the data path again.
    pub(super) passes_again: bool,
    pub(super) write: Duration,
    pub(super) slow: Duration,
}

/// How packets get to the controller.
#[derive(Debug, Clone, Copy)]
pub(super) enum Control {
    /// Through these agents, which may be the same.
    Agents { packet_in: Option<usize>, packet_out: Option<usize> },
    /// Through a bottleneck, and a wire for the rest of the delay.
    Measured { bottleneck: usize, rest: usize },
}

/// A server with its queue.
#[derive(Debug, Clone)]
pub(super) struct StationPlan {
    pub(super) name: String,
    pub(super) role: Role,
    /// By job: as it comes, and as it comes back from the controller.
    pub(super) jobs: [Job; 2],
    pub(super) room: Room,
}

/// A job's service.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) services: Services,
    pub(super) per_byte_ns: f64,
}

/// Who waits where, and how many.
#[derive(Debug, Clone, Copy)]
pub(super) enum Room {
    /// All in one queue: packets at most, with the one in service.
    Fifo(Option<u32>),
    /// A queue for each job, the second first: packets of it at most, with one in service.
    Priority([Option<u32>; 2]),
    /// All in one queue: bytes that wait.
    Bytes(u64),
}

/// What a station is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Line,
    Data,
    /// An agent, of one job or both.
    Agent,
    Controller,
    Bottleneck,
}

/// A constant delay.
#[derive(Debug, Clone, Copy)]
pub(super) struct WirePlan {
    pub(super) delay: Duration,
    pub(super) jitter: Option<Jitter>,
    pub(super) loss: Option<Loss>,
    pub(super) leads: Leads,
}

impl WirePlan {
    /// Whether packets are at its other end at once, all of them.
    pub(super) fn is_none(&self) -> bool {
        self.delay.is_zero() && self.jitter.is_none() && self.loss.is_none()
    }
}

/// Where a wire leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leads {
    Onwards,
    ToController,
    FromController,
    /// Out of a measured control path.
    Back,
}
