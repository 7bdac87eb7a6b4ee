//! Results of a recorder.
use crate::{GapQuality, TimeStatistics};
use serde::{Deserialize, Serialize};

/// Results of a run's packets. Packets sent during the warm-up count in `warm_up` only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceptionReport {
    /// Packets sent; if not known, the size of the range from the lowest to the highest number received.
    pub sent: u64,
    /// Packets received, each counted once.
    pub received: u64,
    /// Bytes of the received packets.
    pub bytes: u64,
    /// Time from the first to the last received packet, in seconds.
    pub span_s: f64,
    /// Packets per second in that time.
    pub rate_pps: Option<f64>,
    /// Packets that were not received.
    pub lost: u64,
    /// Share of lost packets, `0.0..=1.0`.
    pub loss: Option<f64>,
    /// Further copies of received packets.
    pub duplicates: u64,
    /// Packets too late to be distinguished from copies; counted as received.
    pub too_late: u64,
    /// Packets sent during the warm-up.
    pub warm_up: u64,
    /// Packets that arrived before they were sent, because the clocks differ. Their delay is not recorded.
    pub before_sent: u64,
    /// Delay from sending to receiving.
    pub delay: Option<TimeStatistics>,
    /// Delay of packets of known flows, if there were packets of new flows.
    pub known_flows: Option<TimeStatistics>,
    /// Delay of packets that began a flow.
    pub new_flows: Option<TimeStatistics>,
    /// Delay in microseconds above which packets count as having gone through the controller.
    pub threshold_us: Option<f64>,
    /// Share of packets above the threshold: the effective probability of a new flow.
    pub effective_new: Option<f64>,
    /// Variation of the delay.
    pub jitter: JitterStatistics,
    /// Packets that arrived after later ones.
    pub reordering: Reordering,
    /// Times between consecutive packets, compared with those at the sender.
    pub gaps: Option<GapQuality>,
    /// Distribution of the delay: pairs of a share and the delay in microseconds that this share does not exceed.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub quantiles_us: Vec<(f64, f64)>,
}

/// Variation of the delay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct JitterStatistics {
    /// Interarrival jitter at the end of the run, smoothed over about 16 packets (RFC 3550, 6.4.1).
    pub rfc3550_us: f64,
    /// Absolute differences between the delays of packets sent in sequence (RFC 3393).
    pub between_successors: Option<TimeStatistics>,
    /// Delay that 99 % of the packets do not exceed, minus the minimum delay (RFC 5481, 4.2).
    pub above_least_p99_us: Option<f64>,
}

/// Packets that arrived after later ones (RFC 4737).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reordering {
    /// Number of reordered packets.
    pub reordered: u64,
    /// Share of reordered packets among those received.
    pub ratio: Option<f64>,
    /// Mean number of packets between a reordered packet and the first later one that it should have preceded (4.2).
    pub extent_mean: Option<f64>,
    /// Maximum of that number.
    pub extent_max: Option<f64>,
    /// Time by which reordered packets arrived after that later packet (4.3).
    pub late: Option<TimeStatistics>,
}
