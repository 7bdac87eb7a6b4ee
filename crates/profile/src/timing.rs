//! Defines the timing of a switch, for formulas, simulated stations and the timing stage.
use std::time::Duration;
use weir_model::Law;

/// Service time of a packet: a time by a law, plus a time for each byte of the frame.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServiceTime {
    /// Time independent of the frame; none for no time.
    pub law: Option<Law>,
    /// Seconds for each byte.
    pub per_byte_s: f64,
}

impl ServiceTime {
    /// Returns the mean service time in seconds, for frames of `bytes` bytes on average.
    pub fn mean_s(&self, bytes: f64) -> f64 {
        self.law.as_ref().map_or(0.0, Law::mean) + self.per_byte_s * bytes
    }
}

/// Timing of a switch. Buffers count packets including the one in service; none means unlimited.
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchTiming {
    /// Service of the data path; none for no time.
    pub data: Option<ServiceTime>,
    /// Most packets in the data path.
    pub data_buffer: Option<u32>,
    /// Gate at which packets also wait.
    pub gate: Option<ReleaseGate>,
    /// Path to the controller and back.
    pub control: ControlPathTiming,
    /// Treatment of packets from the controller.
    pub returns: ReturnDiscipline,
    /// Time for which a flow-mod seizes the data path.
    pub write: Duration,
    /// Delay at the switch above which a packet counts as held up, in the effective share of such packets.
    pub slow: Duration,
}

/// Gate that releases packets in groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseGate {
    /// Releases packets served by the data path at every tick.
    Tick {
        /// Time between two ticks.
        every: Duration,
        /// Most packets released at a tick; none for all.
        most: Option<u32>,
    },
    /// Releases waiting packets when there are enough of them, or when the time-out since the last release has
    /// passed.
    Batch {
        /// Number of packets that is enough.
        packets: u32,
        /// Longest time between two releases.
        timeout: Duration,
        /// Places of the gate: 1, behind the data path; 2, also in front of it.
        stages: u8,
    },
}

/// Path of packets to the controller and back.
#[derive(Debug, Clone, PartialEq)]
pub enum ControlPathTiming {
    /// Agents of the switch, with the controller between them.
    Agents {
        /// Service time of packet-ins; none for no time.
        packet_in: Option<ServiceTime>,
        /// Service time of packet-outs and flow-mods; none for no time.
        packet_out: Option<ServiceTime>,
        /// True if one processor does both, in order of arrival.
        shared: bool,
        /// Most packets at each agent, or at a shared one in total.
        buffer: Option<u32>,
    },
    /// Path measured from outside, including the controller: a bottleneck of mean service `1 / capacity`, and the
    /// rest of the delay.
    Measured {
        /// Delay of a single packet, in seconds, at least `1 / capacity`.
        delay_s: f64,
        /// Packets a second that pass without loss.
        capacity: f64,
        /// Squared coefficient of variation of the bottleneck's service; 0 for constant.
        scv: f64,
        /// Most packets at the bottleneck.
        buffer: Option<u32>,
    },
}

impl ControlPathTiming {
    /// Returns true if nothing is known of the path.
    pub fn is_unknown(&self) -> bool {
        matches!(self, ControlPathTiming::Agents { packet_in: None, packet_out: None, .. })
    }
}

/// Treatment of packets that return from the controller.
#[derive(Debug, Clone, PartialEq)]
pub enum ReturnDiscipline {
    /// Leave the switch at once.
    Direct,
    /// Pass the data path again, in order of arrival, and count for its buffer.
    Fifo,
    /// Pass the data path again with non-preemptive priority over packets from outside (Goto and others, 2016). Each
    /// class has a buffer of its own.
    Priority {
        /// Service time of these packets; none for that of others.
        service: Option<ServiceTime>,
        /// Most of these packets, including one in service; none for unlimited.
        buffer: Option<u32>,
    },
}
