//! What a recorder found.
use crate::{Delay, GapQuality};
use serde::{Deserialize, Serialize};

/// What became of the packets of a run. Those sent while warming up are in `warm_up` alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Packets sent; if nobody said how many, those from the lowest number that came to the highest.
    pub sent: u64,
    /// Packets that came, each once.
    pub received: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From the first to the last of them.
    pub span_s: f64,
    /// Packets a second meanwhile.
    pub rate_pps: Option<f64>,
    /// Packets that did not come.
    pub lost: u64,
    /// Their share, `0.0..=1.0`.
    pub loss: Option<f64>,
    /// Further copies of packets that came.
    pub duplicates: u64,
    /// Packets so late that they cannot be told from copies; counted as received.
    pub too_late: u64,
    /// Packets sent while warming up.
    pub warm_up: u64,
    /// Packets that came before they were sent: the clocks are two. They are in no delay.
    pub before_sent: u64,
    /// From sending to receiving.
    pub delay: Option<Delay>,
    /// The same of packets of known flows, if there were others.
    pub known_flows: Option<Delay>,
    /// The same of packets that began a flow.
    pub new_flows: Option<Delay>,
    /// From which delay on packets count as having gone through the controller.
    pub threshold_us: Option<f64>,
    /// The share of packets that took longer: the effective probability of a new flow.
    pub effective_new: Option<f64>,
    /// How delays vary.
    pub jitter: Jitter,
    /// Packets that came after later ones.
    pub reordering: Reordering,
    /// Times between packets that followed each other, against those in which they were sent.
    pub gaps: Option<GapQuality>,
    /// Shares of delays, and what they do not exceed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub quantiles_us: Vec<(f64, f64)>,
}

/// How delays vary.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// Interarrival jitter at the end, smoothed over some 16 packets (RFC 3550, 6.4.1).
    pub rfc3550_us: f64,
    /// Differences of the delays of packets sent one after the other, without sign (RFC 3393).
    pub between_successors: Option<Delay>,
    /// What 99 % of the delays do not exceed, above the least (RFC 5481, 4.2).
    pub above_least_p99_us: Option<f64>,
}

/// Packets that came after later ones (RFC 4737).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reordering {
    /// How many.
    pub reordered: u64,
    /// Their share of those received.
    pub ratio: Option<f64>,
    /// How many packets came between them and the first later one, in the mean (4.2).
    pub extent_mean: Option<f64>,
    /// At most.
    pub extent_max: Option<f64>,
    /// How much later than that one they came (4.3).
    pub late: Option<Delay>,
}
