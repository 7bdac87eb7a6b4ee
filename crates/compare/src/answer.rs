//! Common form of all answers.
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use weir_network::certificate::FidelityVerdict;
use weir_sim::stats::Estimate;

/// Verb: a way of answering a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationMethod {
    /// Answers by formulas.
    Predict,
    /// Answers by simulation in virtual time.
    Simulate,
    /// Answers by a live run with real programs in network namespaces, and certifies how far its times can be
    /// trusted.
    Emulate,
    /// Answers by a live run.
    Run,
}

impl EvaluationMethod {
    /// All verbs, the cheapest first.
    pub const ALL: [EvaluationMethod; 4] =
        [EvaluationMethod::Predict, EvaluationMethod::Simulate, EvaluationMethod::Emulate, EvaluationMethod::Run];

    /// Returns the verb's name, which is the name of the command.
    pub fn name(self) -> &'static str {
        match self {
            EvaluationMethod::Predict => "predict",
            EvaluationMethod::Simulate => "simulate",
            EvaluationMethod::Emulate => "emulate",
            EvaluationMethod::Run => "run",
        }
    }
}

impl std::str::FromStr for EvaluationMethod {
    type Err = String;

    fn from_str(text: &str) -> Result<EvaluationMethod, String> {
        let known = EvaluationMethod::ALL.into_iter().find(|verb| verb.name() == text.trim());
        known.ok_or_else(|| format!("found `{text}`, expected one of predict, simulate, emulate, run"))
    }
}

/// Source of an answer: a verb, and for formulas the model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AnswerSource {
    /// Verb that answers.
    pub verb: EvaluationMethod,
    /// Model that answers; `None` for the scenario's own formulas and for other verbs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl AnswerSource {
    /// Returns an answerer without a model.
    pub fn new(verb: EvaluationMethod) -> AnswerSource {
        AnswerSource { verb, model: None }
    }

    /// Returns the label for charts.
    pub fn label(&self) -> &str {
        match (self.verb, &self.model) {
            (EvaluationMethod::Emulate, _) => "emulated",
            (EvaluationMethod::Run, _) => "live",
            (EvaluationMethod::Simulate, _) => "simulated",
            (EvaluationMethod::Predict, Some(model)) => model,
            (EvaluationMethod::Predict, None) => "predicted",
        }
    }
}

impl fmt::Display for AnswerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb.name())?;
        self.model.as_ref().map_or(Ok(()), |model| write!(f, " {model}"))
    }
}

/// Answer of one answerer to a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScenarioAnswer {
    /// Source of the answer.
    pub by: AnswerSource,
    /// State of the answer.
    #[serde(flatten)]
    pub state: AnswerState,
    /// Number of rounds or replications; 0 for formulas.
    pub runs: usize,
    /// True if traffic did what the scenario expects, as far as the answerer can tell.
    pub passed: bool,
    /// Verdict of the certificate of the worst round; `None` for answers that no machine can disturb.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<FidelityVerdict>,
    /// Conditions of the measurement, as text.
    pub conditions: String,
    /// Rows of flows and devices.
    pub rows: Vec<AnswerRow>,
}

/// State of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "problem", rename_all = "snake_case")]
pub enum AnswerState {
    /// The answer is complete.
    Answered,
    /// The answer is partial because it was stopped.
    Partial,
    /// The answer is missing, for this reason.
    LeftOut(String),
}

/// Figures of a flow or a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnswerRow {
    /// Flow or device of the row.
    #[serde(flatten)]
    pub subject: AnswerSubject,
    /// Status of the figures.
    #[serde(flatten)]
    pub status: AnswerRowStatus,
    /// Kind of delay: `round trip`, `one way` or the like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_of: Option<&'static str>,
    /// Number of delays measured; 0 for formulas.
    pub samples: u64,
    /// Number of further delays that are set aside, because a stop of the machine touched them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<u64>,
    /// Figures by metric.
    pub figures: BTreeMap<PerformanceMetric, MetricValue>,
    /// Distribution of delays: shares, and the delay in seconds that each share does not exceed. All answers have
    /// equal shares.
    #[serde(skip)]
    pub quantiles_s: Vec<(f64, f64)>,
    /// Note on the row, such as a model's warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Status of a row's figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", content = "why", rename_all = "snake_case")]
pub enum AnswerRowStatus {
    /// Figures are available.
    Ok,
    /// No figures because the system has no steady state: where, and what to change.
    Unstable(String),
    /// No figures for this reason.
    NotAnswered(String),
}

/// Flow or device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct AnswerSubject {
    /// Kind of subject.
    pub part: SubjectKind,
    /// Name, equal in every answer.
    pub name: String,
}

/// Kind of subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SubjectKind {
    /// Flow: an item of traffic, or a group of streams.
    Flow,
    /// Device: a switch, a part of one, a link or the controller.
    Device,
}

/// Metric of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PerformanceMetric {
    /// Mean delay in seconds.
    #[serde(rename = "delay_mean_s")]
    DelayMean,
    /// Median of the delay in seconds.
    #[serde(rename = "delay_p50_s")]
    DelayP50,
    /// 95th percentile of the delay in seconds.
    #[serde(rename = "delay_p95_s")]
    DelayP95,
    /// 99th percentile of the delay in seconds.
    #[serde(rename = "delay_p99_s")]
    DelayP99,
    /// Share of packets that are lost.
    Loss,
    /// Rate of payload (flows) or frames (streams, devices), in bit/s.
    #[serde(rename = "rate_bps")]
    Rate,
    /// Share of the time in which the device is busy.
    Utilisation,
    /// Packets per second that the device handles.
    #[serde(rename = "packets_per_second")]
    Packets,
}

impl PerformanceMetric {
    /// All metrics, in the order of tables.
    pub const ALL: [PerformanceMetric; 8] = [
        PerformanceMetric::DelayMean,
        PerformanceMetric::DelayP50,
        PerformanceMetric::DelayP95,
        PerformanceMetric::DelayP99,
        PerformanceMetric::Loss,
        PerformanceMetric::Rate,
        PerformanceMetric::Utilisation,
        PerformanceMetric::Packets,
    ];

    /// Returns the metric's name for display.
    pub fn name(self) -> &'static str {
        match self {
            PerformanceMetric::DelayMean => "mean delay",
            PerformanceMetric::DelayP50 => "p50",
            PerformanceMetric::DelayP95 => "p95",
            PerformanceMetric::DelayP99 => "p99",
            PerformanceMetric::Loss => "loss",
            PerformanceMetric::Rate => "rate",
            PerformanceMetric::Utilisation => "utilisation",
            PerformanceMetric::Packets => "packets/s",
        }
    }

    /// Returns the share of packets that a percentile of the delay is about; `None` for other metrics.
    pub fn percentile(self) -> Option<f64> {
        match self {
            PerformanceMetric::DelayP50 => Some(0.5),
            PerformanceMetric::DelayP95 => Some(0.95),
            PerformanceMetric::DelayP99 => Some(0.99),
            _ => None,
        }
    }

    /// Returns true if the metric is a mean or a percentile of delays.
    pub fn is_delay(self) -> bool {
        self == PerformanceMetric::DelayMean || self.percentile().is_some()
    }

    /// Returns true if the metric is a share. Differences of shares are given in points, because relative differences
    /// mean little near zero.
    pub fn is_share(self) -> bool {
        matches!(self, PerformanceMetric::Loss | PerformanceMetric::Utilisation)
    }
}

/// Value, with half the width of its 95 % interval if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MetricValue {
    /// Value in the metric's unit.
    pub value: f64,
    /// Half the width of the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_width: Option<f64>,
}

impl MetricValue {
    /// Returns a value without an interval.
    pub fn exact(value: f64) -> MetricValue {
        MetricValue { value, half_width: None }
    }
}

impl From<Estimate> for MetricValue {
    fn from(estimate: Estimate) -> MetricValue {
        MetricValue { value: estimate.mean, half_width: estimate.half_width }
    }
}

impl ScenarioAnswer {
    /// Returns a missing answer with the reason.
    pub fn left_out(by: AnswerSource, why: impl Into<String>) -> ScenarioAnswer {
        let state = AnswerState::LeftOut(why.into());
        ScenarioAnswer { by, state, runs: 0, passed: true, fidelity: None, conditions: String::new(), rows: Vec::new() }
    }

    /// Returns why the answer's times cannot be trusted; `None` if they can, or if nothing says that they cannot.
    pub fn doubt(&self) -> Option<String> {
        let verdict = self.fidelity.filter(|verdict| *verdict != FidelityVerdict::Faithful)?;
        Some(format!("{} is not certified: the machine disturbed it, its times are {verdict}", self.by))
    }

    /// Returns true if the answer has anything to compare.
    pub fn is_available(&self) -> bool {
        !matches!(self.state, AnswerState::LeftOut(_))
    }

    /// Removes percentiles that the measurements of one run are too few to tell. Formulas have no samples and keep
    /// theirs.
    pub(crate) fn remove_unknown_percentiles(&mut self) {
        let runs = self.runs.max(1) as u64;
        for row in self.rows.iter_mut().filter(|row| row.samples > 0) {
            let samples = row.samples / runs;
            let is_known = |metric: &PerformanceMetric| {
                metric.percentile().is_none_or(|share| weir_traffic::has_percentile(samples, share))
            };
            row.figures.retain(|metric, _| is_known(metric));
        }
    }

    /// Returns true if the answer is expected to have the subject: models of one switch are not asked about flows.
    pub fn is_asked(&self, subject: &AnswerSubject) -> bool {
        self.by.model.is_none() || self.row(subject).is_some()
    }

    /// Returns the row of a subject.
    pub fn row(&self, subject: &AnswerSubject) -> Option<&AnswerRow> {
        self.rows.iter().find(|row| row.subject == *subject)
    }
}

impl AnswerRow {
    /// Returns a row without figures.
    pub fn new(part: SubjectKind, name: impl Into<String>) -> AnswerRow {
        AnswerRow {
            subject: AnswerSubject { part, name: name.into() },
            status: AnswerRowStatus::Ok,
            delay_of: None,
            samples: 0,
            set_aside: None,
            figures: BTreeMap::new(),
            quantiles_s: Vec::new(),
            note: None,
        }
    }

    /// Inserts a figure, unless its value is not a finite number or below zero.
    pub fn insert_figure(&mut self, metric: PerformanceMetric, figure: Option<MetricValue>) {
        if let Some(figure) = figure.filter(|figure| figure.value.is_finite() && figure.value >= 0.0) {
            self.figures.insert(metric, figure);
        }
    }

    /// Returns the value of a metric.
    pub fn value(&self, metric: PerformanceMetric) -> Option<f64> {
        self.figures.get(&metric).map(|figure| figure.value)
    }
}
