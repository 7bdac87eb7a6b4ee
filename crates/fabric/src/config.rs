//! Configuration of a fabric and of the virtual switches that share it.
use crate::{MAX_CROSSPOINT_BYTES, PortIndex};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use weir_units::{Bps, Instant};

/// Configuration of a physical switch's fabric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricConfig {
    /// Inputs of the fabric, at most [`MAX_PORTS`](crate::MAX_PORTS).
    pub inputs: Vec<InputConfig>,
    /// Outputs of the fabric, at most [`MAX_PORTS`](crate::MAX_PORTS).
    pub outputs: Vec<OutputConfig>,
    /// Sharing rule: strict, or use of buffer space that other virtual switches leave free.
    pub sharing: BufferSharing,
    /// Length of the longest packet in bytes: no virtual buffer may be smaller.
    pub max_packet: u32,
    /// Seed of the random numbers for RED's drops.
    pub seed: u64,
}

impl Default for FabricConfig {
    /// Returns a fabric without ports, with strict sharing and packets of at most 1500 bytes.
    fn default() -> Self {
        FabricConfig {
            inputs: Vec::new(),
            outputs: Vec::new(),
            sharing: BufferSharing::Strict,
            max_packet: 1500,
            seed: 0,
        }
    }
}

/// Configuration of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputConfig {
    /// Capacity in bit/s, shared out by condition (4.1).
    pub rate: Bps,
}

/// Configuration of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputConfig {
    /// Capacity in bit/s, shared out by condition (4.1).
    pub rate: Bps,
    /// Discipline that picks the next virtual switch.
    pub discipline: InterDiscipline,
    /// Buffer in bytes of each crosspoint to this output, shared out by condition (4.2).
    pub crosspoint_bytes: u64,
    /// Time a switch below its ceiling may catch up: after a pause, it may exceed its ceiling for that long. Zero if
    /// the output is served exactly on time, as in virtual time. Otherwise longer than the longest time between two
    /// calls of [`Fabric::dequeue`](crate::Fabric::dequeue), or late calls cost rate.
    pub ceiling_slack: Duration,
}

impl OutputConfig {
    /// Returns an output with deficit round robin and no ceiling slack.
    pub fn new(rate: Bps, crosspoint_bytes: u64) -> OutputConfig {
        OutputConfig { rate, discipline: InterDiscipline::Drr, crosspoint_bytes, ceiling_slack: Duration::ZERO }
    }
}

/// Discipline among the virtual switches at an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InterDiscipline {
    /// Deficit round robin by the quanta of the switches' ports (Shreedhar and Varghese, 1995).
    #[default]
    Drr,
    /// Lowest priority number first; round robin by packets among equals.
    StrictPriority,
}

/// Sharing of a crosspoint's buffer among virtual switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BufferSharing {
    /// Each virtual switch uses only its own buffer.
    #[default]
    Strict,
    /// A full queue may use any free space at its crosspoint. When the owners of that space need it, the queue gives
    /// it back, by dropping its youngest packets first. A packet is lost only if its queue, with this packet, exceeds
    /// its own buffer.
    Flexible,
}

/// Configuration of a virtual switch: ports, buffers and disciplines.
#[derive(Debug, Clone, PartialEq)]
pub struct VirtualSwitchConfig {
    /// Name of the virtual switch, for messages.
    pub name: String,
    /// Ports of the virtual switch.
    pub ports: Vec<VirtualPort>,
    /// Paths from inputs to outputs.
    pub forwarding: ForwardingMatrix,
    /// Shares of the crosspoints' buffers.
    pub buffers: CrosspointBuffers,
    /// Reaction when one of the buffers fills.
    pub drop_policy: DropPolicy,
    /// Discipline that picks which of its queues an output serves next.
    pub intra: IntraDiscipline,
    /// Bytes that each queue may send per round of [`IntraDiscipline::Drr`]. Other disciplines ignore it.
    pub intra_quantum: u32,
    /// Priority number under [`InterDiscipline::StrictPriority`]: 0 is served first.
    pub priority: u8,
    /// End of the virtual switch's lifetime ([`Fabric::expire`](crate::Fabric::expire)); `None`: unlimited.
    pub expires: Option<Instant>,
}

impl VirtualSwitchConfig {
    /// Returns a switch with full forwarding, tail drop, deficit round robin with a quantum of 1500 bytes, priority 0
    /// and no end. `buffer` is its share of each crosspoint in bytes.
    pub fn new(name: &str, ports: Vec<VirtualPort>, buffer: u64) -> VirtualSwitchConfig {
        VirtualSwitchConfig {
            name: name.to_owned(),
            ports,
            forwarding: ForwardingMatrix::All,
            buffers: CrosspointBuffers { default: buffer, per_crosspoint: Vec::new() },
            drop_policy: DropPolicy::TailDrop,
            intra: IntraDiscipline::Drr,
            intra_quantum: 1500,
            priority: 0,
            expires: None,
        }
    }

    /// Returns the crosspoints that it uses (input, output) with their buffers in bytes. Paths between ports that it
    /// does not have are ignored.
    pub(crate) fn crosspoints(&self) -> Vec<(PortIndex, PortIndex, u64)> {
        let certain: HashMap<_, _> =
            self.buffers.per_crosspoint.iter().map(|(from, to, bytes)| ((*from, *to), *bytes)).collect();
        let all = || self.outputs().flat_map(|to| self.inputs().map(|from| (from.physical, to.physical)));
        let paths: Vec<_> = match &self.forwarding {
            ForwardingMatrix::All => all().collect(),
            ForwardingMatrix::Paths(paths) => {
                let paths: HashSet<_> = paths.iter().copied().collect();
                all().filter(|path| paths.contains(path)).collect()
            }
        };
        let sized = |path: (PortIndex, PortIndex)| {
            (path.0, path.1, certain.get(&path).copied().unwrap_or(self.buffers.default))
        };
        paths.into_iter().map(sized).collect()
    }

    /// Iterates over the ports that packets enter by.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &VirtualPort> {
        self.ports.iter().filter(|port| port.rate_in.0 > 0)
    }

    /// Iterates over the ports that packets leave by.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &VirtualPort> {
        self.ports.iter().filter(|port| port.rate_out.0 > 0)
    }
}

/// Port of a virtual switch: a share of the input and the output with this index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VirtualPort {
    /// Index of the input and output.
    pub physical: PortIndex,
    /// Guaranteed input capacity; 0: no packets enter here, and the input need not exist.
    pub rate_in: Bps,
    /// Guaranteed output capacity; 0: no packets leave here, and the output need not exist.
    pub rate_out: Bps,
    /// Maximum output rate; `None`: unlimited.
    pub ceiling: Option<Bps>,
    /// Bytes by which the ceiling may be exceeded at once: the depth of its token bucket. While packets wait for those
    /// of other switches, tokens up to this depth are kept, so that the wait costs no rate.
    pub ceiling_burst: u32,
    /// Bytes of each packet that the ceiling does not count, such as a tag that tells switches apart on the line.
    pub uncounted: u32,
    /// Bytes that the switch may send per round of [`InterDiscipline::Drr`]; shares of an output are proportional to
    /// quanta.
    pub quantum: u32,
}

impl VirtualPort {
    /// Returns a port with `rate` in both directions, no ceiling (nor a burst above one) and a quantum of 1500 bytes.
    pub fn new(physical: PortIndex, rate: Bps) -> VirtualPort {
        VirtualPort {
            physical,
            rate_in: rate,
            rate_out: rate,
            ceiling: None,
            ceiling_burst: 0,
            uncounted: 0,
            quantum: 1500,
        }
    }
}

/// Forwarding matrix of a virtual switch: its paths from inputs to outputs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ForwardingMatrix {
    /// All inputs lead to all outputs.
    #[default]
    All,
    /// Only these paths, input first.
    Paths(Vec<(PortIndex, PortIndex)>),
}

/// Shares of a virtual switch in the crosspoints' buffers, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrosspointBuffers {
    /// Share of crosspoints that `certain` does not name.
    pub default: u64,
    /// Shares of named crosspoints: input, output, bytes. The last entry for a crosspoint counts.
    pub per_crosspoint: Vec<(PortIndex, PortIndex, u64)>,
}

/// Reaction when a buffer fills.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum DropPolicy {
    /// Drops the arriving packet.
    #[default]
    TailDrop,
    /// Random early detection (RED).
    Red(RedConfig),
    /// Drops the oldest packets until the arriving packet fits.
    DropHead,
}

/// Random early detection in bytes (Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance",
/// 1993).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedConfig {
    /// Average queue length in bytes below which no packet is dropped; `None`: a third of `max`.
    pub min: Option<u64>,
    /// Average queue length in bytes from which on every packet is dropped; `None`: the authors' 15 packets of 1000
    /// bytes, but at most three quarters of the buffer.
    pub max: Option<u64>,
    /// Probability of a drop as the average approaches `max`, above 0 and at most 1.
    pub probability: f64,
    /// Weight of the current length in the average, above 0 and at most 1.
    pub weight: f64,
    /// Between `max` and twice `max`, raises the probability from `probability` to 1 instead of dropping every packet
    /// (Floyd, 2000). The paper of 1993 does not.
    pub gentle: bool,
}

impl Default for RedConfig {
    /// Returns the values of the simulations of 1993: weight 0.002, probability 1/50, not gentle.
    fn default() -> Self {
        RedConfig { min: None, max: None, probability: 0.02, weight: 0.002, gentle: false }
    }
}

impl RedConfig {
    /// Returns the lower and the upper threshold in bytes for a buffer of this size.
    pub(crate) fn thresholds(&self, buffer: u64) -> (u64, u64) {
        let max = self.max.unwrap_or_else(|| 15_000.min(buffer / 4 * 3));
        (self.min.unwrap_or(max / 3), max.min(MAX_CROSSPOINT_BYTES))
    }
}

/// Discipline among a virtual switch's queues to an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntraDiscipline {
    /// Round robin: one packet of each queue in turn.
    RoundRobin,
    /// Deficit round robin with one quantum for all queues, [`VirtualSwitchConfig::intra_quantum`].
    #[default]
    Drr,
    /// First come, first served: the packet that arrived first.
    Fcfs,
    /// Longest queue first: the queue with the most bytes; among equals the next one after the queue served last.
    Lqf,
    /// Order of the packets' numbers, which rise within each queue: reassembles a split virtual link. Not in files.
    #[serde(skip_deserializing)]
    Merge {
        /// Time that a packet waits for packets with smaller numbers. Then it is served, and the missing packets are
        /// given up.
        #[serde(skip)]
        patience: Duration,
    },
}
