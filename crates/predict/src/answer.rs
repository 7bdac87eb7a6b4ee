//! What a prediction says.
use serde::Serialize;
use weir_model::{Distribution, ModelError, Warning};

/// A scenario's prediction.
#[derive(Debug, Clone, Serialize)]
pub struct Prediction {
    /// The scenario's name.
    pub scenario: String,
    /// Traffic, in the file's order of start; streams after it.
    pub flows: Vec<FlowAnswer>,
    /// Devices that have something to do, the busiest first.
    pub devices: Vec<DeviceAnswer>,
    /// Which formulas stand for which switch, and why.
    pub models: Vec<ModelChoice>,
    /// The device that would be full first if all traffic grew alike; none if there is no traffic.
    pub bottleneck: Option<String>,
    /// What was assumed that the scenario does not say.
    pub assumptions: Vec<String>,
    /// Why to trust the answers less.
    pub warnings: Vec<Warning>,
    /// Whole-network answers of other models, where they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
}

/// What became of a flow or a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// It has an answer.
    Ok,
    /// A queue without limit gets as much as it can serve, or more.
    Unstable,
    /// TCP keeps it full: there is an answer.
    Full,
    /// The hosts are not to reach each other: nothing is delivered.
    Isolated,
    /// No way leads there, or a switch on it forwards nothing.
    NoPath,
}

/// Delays, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Delays {
    /// Mean.
    pub mean_s: f64,
    /// Half of the packets take no longer.
    pub p50_s: f64,
    /// 95 of 100 packets take no longer.
    pub p95_s: f64,
    /// 99 of 100 packets take no longer.
    pub p99_s: f64,
}

impl Delays {
    /// Of a distribution.
    pub(crate) fn of(delay: &Distribution) -> Result<Delays, ModelError> {
        let [p50_s, p95_s, p99_s] = delay.quantiles([0.5, 0.95, 0.99])?;
        Ok(Delays { mean_s: delay.mean(), p50_s, p95_s, p99_s })
    }
}

/// A flow's prediction.
#[derive(Debug, Clone, Serialize)]
pub struct FlowAnswer {
    /// Its place in the scenario's traffic; none for streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<usize>,
    /// `ping`, `tcp`, `udp` or `stream`.
    pub kind: &'static str,
    /// Of packets by rule: their places among the scenario's streams.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<usize>,
    /// Of packets by rule: what they meet with as much of the port as others leave, where `delay` and `loss` are with no more than is guaranteed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
    /// Where it begins.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// Whether there is an answer.
    pub status: Status,
    /// Packets a second that are sent.
    pub packets_per_s: f64,
    /// Delay from being sent to being received; of pings, there and back.
    pub delay: Option<Delays>,
    /// The same of packets that no switch asks the controller about, if there are others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Delays>,
    /// The same of packets about which switches ask the controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<Delays>,
    /// Share of the packets that ask the controller, where some do: those that begin a flow, and those that come before its entry is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks: Option<f64>,
    /// Share of the packets that is lost.
    pub loss: Option<f64>,
    /// Bits of payload a second that arrive, of TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_bps: Option<f64>,
    /// Where it waits longest, or what is full.
    pub bottleneck: Option<String>,
    /// What to know about the answer, or why there is none.
    pub notes: Vec<String>,
    /// Delays as a distribution, for charts.
    #[serde(skip)]
    pub distribution: Option<Distribution>,
}

/// What packets by rule meet beside others.
#[derive(Debug, Clone, Serialize)]
pub struct Expected {
    /// What the others leave of the port, in bits per second, and at least what is guaranteed.
    pub rate_bps: u64,
    /// Delay to the start of transmission.
    pub delay: Delays,
    /// Share of the packets that is lost.
    pub loss: f64,
    /// Delays as a distribution, for charts.
    #[serde(skip)]
    pub distribution: Distribution,
}

/// A device's prediction, in the busiest part of the scenario's time.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceAnswer {
    /// Its name, such as `s1 data path`.
    pub device: String,
    /// Whether there is an answer.
    pub status: Status,
    /// Packets a second that come.
    pub packets_per_s: f64,
    /// Share of the time in which it serves; of unstable ones, what comes over what can be served.
    pub utilisation: f64,
    /// Delay from coming to leaving.
    pub delay: Option<Delays>,
    /// Share of the packets that find no place.
    pub loss: Option<f64>,
    /// The formula.
    pub model: String,
    /// What to change, if it is unstable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// Which formulas stand for a switch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelChoice {
    /// The switches, by name.
    pub switches: Vec<String>,
    /// The model: `sdn4q`, `lcs`, `mg1`, `native`.
    pub model: &'static str,
    /// Why this one.
    pub why: String,
    /// Under which conditions it holds.
    pub validity: String,
}

/// Another model's answer for the whole network.
#[derive(Debug, Clone, Serialize)]
pub struct Alternative {
    /// The model.
    pub model: String,
    /// Its answer, or why there is none.
    #[serde(flatten)]
    pub answer: AlternativeAnswer,
}

/// What another model says of the mean packet at the switch and its controller.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum AlternativeAnswer {
    /// An answer.
    Numbers {
        /// Mean time at the switch, the controller included.
        mean_s: f64,
        /// Half of the packets take no longer, if the model tells.
        p50_s: Option<f64>,
        /// 95 of 100.
        p95_s: Option<f64>,
        /// 99 of 100.
        p99_s: Option<f64>,
        /// Share of the packets that is lost.
        loss: Option<f64>,
    },
    /// None, with the reason.
    None {
        /// `DOMAIN`, `UNSTABLE`, `NO_CONVERGENCE` or `NOT_COVERED`.
        status: &'static str,
        /// In words.
        reason: String,
    },
}

impl Prediction {
    /// How many flows and devices have no steady state.
    pub fn unstable(&self) -> usize {
        let flows = self.flows.iter().filter(|flow| flow.status == Status::Unstable).count();
        flows + self.devices.iter().filter(|device| device.status == Status::Unstable).count()
    }
}
