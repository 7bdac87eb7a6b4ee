//! Defines the output of a prediction.
use serde::Serialize;
use weir_model::{Distribution, ModelError, Warning};

/// Prediction for a scenario.
#[derive(Debug, Clone, Serialize)]
pub struct Prediction {
    /// Name of the scenario.
    pub scenario: String,
    /// Predictions for the traffic, in order of its start, followed by those for streams.
    pub flows: Vec<FlowPrediction>,
    /// Promises of the scenario's virtual networks to its traffic.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub promises: Vec<PredictedPromise>,
    /// Predictions for all devices with load, the busiest first.
    pub devices: Vec<DevicePrediction>,
    /// Models used for the switches, with the reasons for their choice.
    pub models: Vec<ModelChoice>,
    /// Device that would saturate first if all traffic grew in proportion; `None` without traffic.
    pub bottleneck: Option<String>,
    /// Assumptions about what the scenario leaves open.
    pub assumptions: Vec<String>,
    /// Reasons to trust the answers less.
    pub warnings: Vec<Warning>,
    /// Whole-network answers of other models, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<AlternativeModel>,
}

/// Promise of a virtual network to an item of traffic.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PredictedPromise {
    /// Name of the network.
    pub network: String,
    /// Name of the sending host.
    pub from: String,
    /// Name of the receiving host.
    pub to: String,
    /// Guaranteed rate in bit/s.
    pub guaranteed_bps: u64,
    /// Delay that was asked for; `None` without such a promise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promised_s: Option<f64>,
    /// Longest delay of packets in profile, a bound and no model; `None` without a guaranteed rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_s: Option<f64>,
    /// 99th percentile of the delay by the model of the flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_s: Option<f64>,
    /// Reason why nothing is promised to these packets; `None` if they are in profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_profile: Option<String>,
}

/// Status of a flow or a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PredictionStatus {
    /// Steady state, with an answer.
    Ok,
    /// No steady state: an unlimited queue gets as much load as it can serve, or more.
    Unstable,
    /// Steady state, with an answer: a queue is full, because TCP keeps it so, or because it is limited and gets as
    /// much load as it can serve, or more.
    Full,
    /// No packet is delivered, because the hosts are isolated from each other.
    Isolated,
    /// No packet is delivered, because no path leads from the sender to the receiver, or a switch on it forwards
    /// nothing.
    NoPath,
}

/// How far the delays of an answer can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PredictionValidity {
    /// The formulas cover what the packets meet. docs/models.md has their errors.
    Good,
    /// A formula covers something on the path only roughly. The notes say what and where.
    Approximate,
}

impl PredictionValidity {
    /// Returns the validity of an answer with or without a doubt.
    pub(crate) fn of(doubt: bool) -> PredictionValidity {
        if doubt { PredictionValidity::Approximate } else { PredictionValidity::Good }
    }
}

/// Delays in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PredictedDelay {
    /// Mean of the delay.
    pub mean_s: f64,
    /// Median of the delay.
    pub p50_s: f64,
    /// 95th percentile of the delay.
    pub p95_s: f64,
    /// 99th percentile of the delay.
    pub p99_s: f64,
}

impl PredictedDelay {
    /// Computes mean and percentiles of a distribution.
    pub(crate) fn of(delay: &Distribution) -> Result<PredictedDelay, ModelError> {
        let [p50_s, p95_s, p99_s] = delay.quantiles([0.5, 0.95, 0.99])?;
        Ok(PredictedDelay { mean_s: delay.mean(), p50_s, p95_s, p99_s })
    }
}

/// Prediction for a flow.
#[derive(Debug, Clone, Serialize)]
pub struct FlowPrediction {
    /// Index in the scenario's traffic; `None` for streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<usize>,
    /// Kind: `ping`, `tcp`, `udp` or `stream`.
    pub kind: &'static str,
    /// For streams: their indices in the scenario's streams.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<usize>,
    /// For streams: delay and loss at the rate that other traffic leaves of the port. `delay` and `loss` assume the
    /// guaranteed rate only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<StreamExpectation>,
    /// Name of the sender.
    pub from: String,
    /// Name of the receiver.
    pub to: String,
    /// Status of the answer.
    pub status: PredictionStatus,
    /// Sending rate, in packets a second.
    pub packets_per_s: f64,
    /// Delay from sending to receiving; for pings, the round trip.
    pub delay: Option<PredictedDelay>,
    /// Delay of packets that no switch sends to the controller. Present only if there are other packets, or no steady
    /// state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<PredictedDelay>,
    /// Delay of packets that a switch sends to the controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<PredictedDelay>,
    /// Share of the packets that a switch sends to the controller, if there are any: packets that begin a flow, and
    /// packets that arrive before the flow's entry is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks: Option<f64>,
    /// Share of the packets that are lost.
    pub loss: Option<f64>,
    /// Rate at which payload arrives, in bit/s; for TCP only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_bps: Option<f64>,
    /// How far the delay can be trusted.
    pub validity: PredictionValidity,
    /// Device at which packets wait longest, or whose queue is full.
    pub bottleneck: Option<String>,
    /// Remarks about the answer, or the reason why there is none.
    pub notes: Vec<String>,
    /// Distribution of the delays, for charts.
    #[serde(skip)]
    pub distribution: Option<Distribution>,
}

/// Delay and loss of a stream at the rate that other traffic leaves of the port.
#[derive(Debug, Clone, Serialize)]
pub struct StreamExpectation {
    /// Rate that other traffic leaves of the port, in bit/s; at least the guaranteed rate.
    pub rate_bps: u64,
    /// Delay until the start of transmission.
    pub delay: PredictedDelay,
    /// Share of the packets that are lost.
    pub loss: f64,
    /// Distribution of the delays, for charts.
    #[serde(skip)]
    pub distribution: Distribution,
}

/// Prediction for a device, in the phase with its highest load.
#[derive(Debug, Clone, Serialize)]
pub struct DevicePrediction {
    /// Name of the device, such as `s1 data path`.
    pub device: String,
    /// Status of the answer.
    pub status: PredictionStatus,
    /// Arrival rate, in packets a second.
    pub packets_per_s: f64,
    /// Share of the time in which the device is busy; for an unstable device, offered load over capacity.
    pub utilisation: f64,
    /// Delay from arrival to departure.
    pub delay: Option<PredictedDelay>,
    /// Share of the packets that are lost because the queue is full.
    pub loss: Option<f64>,
    /// Name of the formula used.
    pub model: String,
    /// Advice on how to make the device stable; `None` if it is stable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// Model used for some switches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelChoice {
    /// Names of the switches.
    pub switches: Vec<String>,
    /// Name of the model: `sdn4q`, `lcs`, `mg1`, `native`.
    pub model: &'static str,
    /// Reason for this model.
    pub why: String,
    /// Conditions under which the model is valid.
    pub validity: String,
}

/// Answer of another model for the whole network.
#[derive(Debug, Clone, Serialize)]
pub struct AlternativeModel {
    /// Name of the model.
    pub model: String,
    /// Numbers that the model gives, or the reason why it gives none.
    #[serde(flatten)]
    pub answer: AlternativeAnswer,
}

/// Answer of another model for the mean packet at the switch and its controller.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum AlternativeAnswer {
    /// The model gives times and a loss.
    Numbers {
        /// Mean time at the switch, including the controller, in seconds.
        mean_s: f64,
        /// Median in seconds, if the model gives it.
        p50_s: Option<f64>,
        /// 95th percentile in seconds, if the model gives it.
        p95_s: Option<f64>,
        /// 99th percentile in seconds, if the model gives it.
        p99_s: Option<f64>,
        /// Share of the packets that are lost.
        loss: Option<f64>,
    },
    /// No answer, with the reason.
    None {
        /// Kind of the reason: `DOMAIN`, `UNSTABLE`, `NO_CONVERGENCE` or `NOT_COVERED`.
        status: &'static str,
        /// Reason in words.
        reason: String,
    },
}

impl Prediction {
    /// Returns the number of flows and devices without a steady state.
    pub fn unstable(&self) -> usize {
        let flows = self.flows.iter().filter(|flow| flow.status == PredictionStatus::Unstable).count();
        flows + self.devices.iter().filter(|device| device.status == PredictionStatus::Unstable).count()
    }
}
