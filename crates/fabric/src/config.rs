//! What a fabric has, and what a virtual switch asks of it.
use crate::{MAX_CROSSPOINT_BYTES, PortIndex};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use weir_units::{Bps, Instant};

/// A physical switch's fabric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricConfig {
    /// Its inputs, at most [`MAX_PORTS`](crate::MAX_PORTS).
    pub inputs: Vec<InputConfig>,
    /// Its outputs, at most [`MAX_PORTS`](crate::MAX_PORTS).
    pub outputs: Vec<OutputConfig>,
    /// Whether a virtual switch may use buffer that others leave free.
    pub sharing: Sharing,
    /// Longest packet in bytes: no virtual buffer may be smaller.
    pub max_packet: u32,
    /// What RED's drops are drawn with.
    pub seed: u64,
}

impl Default for FabricConfig {
    /// No ports, strict sharing, packets of at most 1500 bytes.
    fn default() -> Self {
        FabricConfig { inputs: Vec::new(), outputs: Vec::new(), sharing: Sharing::Strict, max_packet: 1500, seed: 0 }
    }
}

/// An input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputConfig {
    /// Its capacity, shared out by condition (4.1).
    pub rate: Bps,
}

/// An output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputConfig {
    /// Its capacity, shared out by condition (4.1).
    pub rate: Bps,
    /// Which virtual switch gets it next.
    pub discipline: InterDiscipline,
    /// Buffer of each crosspoint that leads to it, shared out by condition (4.2).
    pub crosspoint_bytes: u64,
    /// Time that a switch below its ceiling may catch up: after a pause, it may for so long send at more than its ceiling. Zero if the
    /// output is asked in time, in virtual time; longer than the longest time between two questions otherwise, or late ones cost rate.
    pub ceiling_slack: Duration,
}

impl OutputConfig {
    /// An output with deficit round robin, asked in time.
    pub fn new(rate: Bps, crosspoint_bytes: u64) -> OutputConfig {
        OutputConfig { rate, discipline: InterDiscipline::Drr, crosspoint_bytes, ceiling_slack: Duration::ZERO }
    }
}

/// Which virtual switch gets an output next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InterDiscipline {
    /// Deficit round robin by the quanta of their ports (Shreedhar and Varghese, 1995).
    #[default]
    Drr,
    /// The lowest priority number first; round robin by packets among equals.
    StrictPriority,
}

/// How virtual switches share a crosspoint's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Each has its own.
    #[default]
    Strict,
    /// A full queue grows into whatever is free at its crosspoint, and gives it back, the youngest packets first, when those whose it
    /// is need it. A packet is lost only if its queue holds more than its own buffer with it.
    Flexible,
}

/// A virtual switch: its ports, buffers and disciplines.
#[derive(Debug, Clone, PartialEq)]
pub struct VirtualSwitchConfig {
    /// Its name, for messages.
    pub name: String,
    /// Its ports.
    pub ports: Vec<VirtualPort>,
    /// Which inputs lead to which outputs.
    pub forwarding: Forwarding,
    /// Its shares of the crosspoints' buffers.
    pub buffers: Buffers,
    /// What happens when one of its buffers fills.
    pub queue: QueueConfig,
    /// Which of its queues an output serves next.
    pub intra: IntraDiscipline,
    /// Its place under [`InterDiscipline::StrictPriority`]: 0 is first.
    pub priority: u8,
    /// When it ends ([`Fabric::expire`](crate::Fabric::expire)).
    pub expires: Option<Instant>,
}

impl VirtualSwitchConfig {
    /// A switch with full forwarding, tail drop, deficit round robin with a quantum of 1500 bytes, priority 0, for ever.
    pub fn new(name: &str, ports: Vec<VirtualPort>, buffer: u64) -> VirtualSwitchConfig {
        VirtualSwitchConfig {
            name: name.to_owned(),
            ports,
            forwarding: Forwarding::All,
            buffers: Buffers { default: buffer, certain: Vec::new() },
            queue: QueueConfig::TailDrop,
            intra: IntraDiscipline::Drr { quantum: 1500 },
            priority: 0,
            expires: None,
        }
    }

    /// The crosspoints that it uses with their buffers, as far as its ports are its own.
    pub(crate) fn crosspoints(&self) -> Vec<(PortIndex, PortIndex, u64)> {
        let certain: HashMap<_, _> =
            self.buffers.certain.iter().map(|(from, to, bytes)| ((*from, *to), *bytes)).collect();
        let all = || self.outputs().flat_map(|to| self.inputs().map(|from| (from.physical, to.physical)));
        let paths: Vec<_> = match &self.forwarding {
            Forwarding::All => all().collect(),
            Forwarding::Paths(paths) => {
                let paths: HashSet<_> = paths.iter().copied().collect();
                all().filter(|path| paths.contains(path)).collect()
            }
        };
        let sized = |path: (PortIndex, PortIndex)| {
            (path.0, path.1, certain.get(&path).copied().unwrap_or(self.buffers.default))
        };
        paths.into_iter().map(sized).collect()
    }

    /// Its ports that packets come in by.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &VirtualPort> {
        self.ports.iter().filter(|port| port.rate_in.0 > 0)
    }

    /// Its ports that packets leave by.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &VirtualPort> {
        self.ports.iter().filter(|port| port.rate_out.0 > 0)
    }
}

/// A virtual switch's port: a share of an input and an output of the same index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VirtualPort {
    /// Which.
    pub physical: PortIndex,
    /// Guaranteed input capacity; 0: nothing comes in here, and there need not be such an input.
    pub rate_in: Bps,
    /// Guaranteed output capacity; 0: nothing leaves here, and there need not be such an output.
    pub rate_out: Bps,
    /// The output rate that it does not go beyond.
    pub ceiling: Option<Bps>,
    /// Bytes that it may send in a round of [`InterDiscipline::Drr`]; shares of an output are as quanta are.
    pub quantum: u32,
}

impl VirtualPort {
    /// A port with the same rate in both directions, no ceiling and a quantum of 1500 bytes.
    pub fn new(physical: PortIndex, rate: Bps) -> VirtualPort {
        VirtualPort { physical, rate_in: rate, rate_out: rate, ceiling: None, quantum: 1500 }
    }
}

/// Which inputs of a virtual switch lead to which outputs: the forwarding matrix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Forwarding {
    /// All to all.
    #[default]
    All,
    /// These, input first.
    Paths(Vec<(PortIndex, PortIndex)>),
}

/// A virtual switch's shares of the crosspoints' buffers, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffers {
    /// Of crosspoints that `certain` does not name.
    pub default: u64,
    /// Of certain crosspoints: input, output, bytes.
    pub certain: Vec<(PortIndex, PortIndex, u64)>,
}

/// What happens when a buffer fills.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum QueueConfig {
    /// What arrives is dropped.
    #[default]
    TailDrop,
    /// Random early detection.
    Red(RedConfig),
    /// The oldest are dropped until what arrives fits.
    DropHead,
}

/// Random early detection (Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993), in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RedConfig {
    /// Average bytes below which nothing is dropped; none: a third of `max`.
    pub min: Option<u64>,
    /// Average bytes from which on everything is dropped; none: the authors' 15 packets, of 1000 bytes, but at most three quarters of the
    /// buffer.
    pub max: Option<u64>,
    /// Probability of a drop as the average comes to `max`, above 0 and at most 1.
    pub probability: f64,
    /// Weight of the present length in the average, above 0 and at most 1.
    pub weight: f64,
    /// Between `max` and twice that, raise the probability from `probability` to 1 instead of dropping everything (Floyd, 2000). The
    /// authors of 1993 do not.
    pub gentle: bool,
}

impl Default for RedConfig {
    /// The values of the simulations of 1993: weight 0.002, probability 1/50, not gentle.
    fn default() -> Self {
        RedConfig { min: None, max: None, probability: 0.02, weight: 0.002, gentle: false }
    }
}

impl RedConfig {
    /// Both thresholds for a buffer of this size.
    pub(crate) fn thresholds(&self, buffer: u64) -> (u64, u64) {
        let max = self.max.unwrap_or_else(|| 15_000.min(buffer / 4 * 3));
        (self.min.unwrap_or(max / 3), max.min(MAX_CROSSPOINT_BYTES))
    }
}

/// Which of a virtual switch's queues to an output is served next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntraDiscipline {
    /// One packet of each in turn.
    RoundRobin,
    /// Deficit round robin with the same quantum for all, in bytes.
    Drr {
        /// Bytes that a queue may send in a round.
        quantum: u32,
    },
    /// The packet that arrived first.
    Fcfs,
    /// The queue with the most bytes; among equals the next in turn after the one served last.
    Lqf,
    /// In the order of the packets' numbers, which the queues hold rising: puts a split virtual link together again.
    Merge {
        /// How long a packet waits for one with a smaller number that may yet come. Then it is served, and what it waited for is given up.
        patience: Duration,
    },
}
