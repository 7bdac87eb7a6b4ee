//! How long a switch takes: what formulas, simulations of queueing stations and the timing stage need to know.
use std::time::Duration;
use weir_model::Law;

/// How long a station serves a packet: a time by a law, and something for each byte of the frame.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServiceTime {
    /// The time that does not depend on the frame; none: no time.
    pub law: Option<Law>,
    /// Seconds for each byte.
    pub per_byte_s: f64,
}

impl ServiceTime {
    /// The mean for frames of `bytes` in the mean, in seconds.
    pub fn mean_s(&self, bytes: f64) -> f64 {
        self.law.as_ref().map_or(0.0, Law::mean) + self.per_byte_s * bytes
    }
}

/// How long a switch takes. Buffers count packets with the one in service; none: without limit.
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchTiming {
    /// Service of the data path; none: it takes no time.
    pub data: Option<ServiceTime>,
    /// Packets that the data path holds at most.
    pub data_buffer: Option<u32>,
    /// What packets wait for beside that.
    pub gate: Option<Gate>,
    /// How a packet and the controller come together.
    pub control: ControlPath,
    /// What becomes of packets that come back from the controller.
    pub returns: Returns,
    /// How long a flow-mod seizes the data path.
    pub write: Duration,
    /// A packet that took longer than this at the switch counts into the effective share of packets that were held up.
    pub slow: Duration,
}

/// Packets leave, or come in, in groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Those that the data path has served leave at every tick.
    Tick {
        /// From one to the next.
        every: Duration,
        /// How many may leave at one; none: all.
        most: Option<u32>,
    },
    /// Those that wait go on together when there are enough of them, or when it was last done long enough ago.
    Batch {
        /// How many are enough.
        packets: u32,
        /// The longest time between two pushes.
        timeout: Duration,
        /// Where: 1, behind the data path; 2, in front of it as well.
        stages: u8,
    },
}

/// How packets get to the controller and back.
#[derive(Debug, Clone, PartialEq)]
pub enum ControlPath {
    /// Through the switch's agents, and the controller between them.
    Agents {
        /// Service of what makes packet-ins; none: no time.
        packet_in: Option<ServiceTime>,
        /// Service of what carries out packet-outs and flow-mods; none: no time.
        packet_out: Option<ServiceTime>,
        /// One processor does both, in the order in which the work comes.
        shared: bool,
        /// Packets that each agent (a shared one: both together) holds at most.
        buffer: Option<u32>,
    },
    /// As measured from outside, the controller included: one bottleneck of mean `1 / capacity` and the rest of the delay.
    Measured {
        /// Delay of a packet that is alone, in seconds: at least `1 / capacity`.
        delay_s: f64,
        /// Packets a second that come through without loss.
        capacity: f64,
        /// Squared coefficient of variation of the bottleneck's service; 0: constant.
        scv: f64,
        /// Packets that the bottleneck holds at most.
        buffer: Option<u32>,
    },
}

impl ControlPath {
    /// Whether nothing is said of it.
    pub fn is_unknown(&self) -> bool {
        matches!(self, ControlPath::Agents { packet_in: None, packet_out: None, .. })
    }
}

/// What becomes of packets that come back from the controller.
#[derive(Debug, Clone, PartialEq)]
pub enum Returns {
    /// They leave the switch at once.
    Direct,
    /// They pass the data path again, in turn, and count for its buffer.
    Fifo,
    /// They pass the data path again, before packets that come from outside, but interrupt none (Goto and others, 2016). The classes have waiting
    /// places of their own.
    Priority {
        /// Service of these; none: as of others.
        service: Option<ServiceTime>,
        /// Packets of these at most, with one in service; none: without limit.
        buffer: Option<u32>,
    },
}
