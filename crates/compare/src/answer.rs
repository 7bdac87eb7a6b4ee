//! The common form of answers.
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use weir_sim::stats::Estimate;

/// A way of answering a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// By formulas.
    Predict,
    /// In virtual time.
    Simulate,
    /// Live, with real programs in network namespaces, and a certificate of how far its times can be trusted.
    Emulate,
    /// Live.
    Run,
}

impl Verb {
    /// All of them, the cheapest first.
    pub const ALL: [Verb; 4] = [Verb::Predict, Verb::Simulate, Verb::Emulate, Verb::Run];

    /// Its name: that of the command.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Predict => "predict",
            Verb::Simulate => "simulate",
            Verb::Emulate => "emulate",
            Verb::Run => "run",
        }
    }
}

impl std::str::FromStr for Verb {
    type Err = String;

    fn from_str(text: &str) -> Result<Verb, String> {
        let known = Verb::ALL.into_iter().find(|verb| verb.name() == text.trim());
        known.ok_or_else(|| format!("found `{text}`, expected one of predict, simulate, emulate, run"))
    }
}

/// Who answers: a verb, and for formulas the model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Answerer {
    /// How.
    pub verb: Verb,
    /// With which model, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Answerer {
    /// Without a choice of models.
    pub fn new(verb: Verb) -> Answerer {
        Answerer { verb, model: None }
    }

    /// What it is called on charts.
    pub fn label(&self) -> &str {
        match (self.verb, &self.model) {
            (Verb::Emulate, _) => "emulated",
            (Verb::Run, _) => "live",
            (Verb::Simulate, _) => "simulated",
            (Verb::Predict, Some(model)) => model,
            (Verb::Predict, None) => "predicted",
        }
    }
}

impl fmt::Display for Answerer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb.name())?;
        self.model.as_ref().map_or(Ok(()), |model| write!(f, " {model}"))
    }
}

/// What one way of answering had to say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// Who answers.
    pub by: Answerer,
    /// Whether there is an answer.
    #[serde(flatten)]
    pub state: State,
    /// Rounds or replications in it; 0 of formulas.
    pub runs: usize,
    /// Whether traffic did what the scenario expects, as far as this way of answering can say.
    pub passed: bool,
    /// What it was made with.
    pub conditions: String,
    /// Flows and devices.
    pub rows: Vec<Row>,
}

/// Whether there is an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "problem", rename_all = "snake_case")]
pub enum State {
    /// There is.
    Answered,
    /// Of a part only: it was stopped.
    Partial,
    /// There is none: why.
    LeftOut(String),
}

/// What is said about a flow or a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What it is about.
    #[serde(flatten)]
    pub subject: Subject,
    /// Whether there are figures.
    #[serde(flatten)]
    pub status: Status,
    /// What delays are: `round trip`, `one way` or the like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_of: Option<&'static str>,
    /// Delays measured; 0 of formulas.
    pub samples: u64,
    /// What is known.
    pub figures: BTreeMap<Metric, Figure>,
    /// The distribution of delays: shares, and the seconds that they do not exceed. The same shares from every answer.
    #[serde(skip)]
    pub quantiles_s: Vec<(f64, f64)>,
    /// What to know about it, such as a model's warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Whether there are figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", content = "why", rename_all = "snake_case")]
pub enum Status {
    /// There are.
    Ok,
    /// There is no steady state: where, and what to change.
    Unstable(String),
    /// This is not answered: why.
    NotAnswered(String),
}

/// A flow or a device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Subject {
    /// Which of them.
    pub part: Part,
    /// Its name, the same in every answer.
    pub name: String,
}

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// An item of traffic, or packets by rule.
    Flow,
    /// A switch, a part of one, a link, the controller.
    Device,
}

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Mean delay, in seconds.
    #[serde(rename = "delay_mean_s")]
    DelayMean,
    /// Delay that half do not exceed.
    #[serde(rename = "delay_p50_s")]
    DelayP50,
    /// Delay that 95 % do not exceed.
    #[serde(rename = "delay_p95_s")]
    DelayP95,
    /// Delay that 99 % do not exceed.
    #[serde(rename = "delay_p99_s")]
    DelayP99,
    /// Share of packets that are lost.
    Loss,
    /// Payload (flows), or frames (streams, devices), in bits per second.
    #[serde(rename = "rate_bps")]
    Rate,
    /// Share of the time in which it is busy.
    Utilisation,
    /// Packets a second that it handles.
    #[serde(rename = "packets_per_second")]
    Packets,
}

impl Metric {
    /// All of them, in the order of tables.
    pub const ALL: [Metric; 8] = [
        Metric::DelayMean,
        Metric::DelayP50,
        Metric::DelayP95,
        Metric::DelayP99,
        Metric::Loss,
        Metric::Rate,
        Metric::Utilisation,
        Metric::Packets,
    ];

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Metric::DelayMean => "mean delay",
            Metric::DelayP50 => "p50",
            Metric::DelayP95 => "p95",
            Metric::DelayP99 => "p99",
            Metric::Loss => "loss",
            Metric::Rate => "rate",
            Metric::Utilisation => "utilisation",
            Metric::Packets => "packets/s",
        }
    }

    /// Whether it is a share, whose differences are told in points: relative ones say nothing near zero.
    pub fn is_share(self) -> bool {
        matches!(self, Metric::Loss | Metric::Utilisation)
    }
}

/// A value, with half the width of its 95 % interval where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// The value.
    pub value: f64,
    /// Half the width of its interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_width: Option<f64>,
}

impl Figure {
    /// A value that is as it is.
    pub fn exact(value: f64) -> Figure {
        Figure { value, half_width: None }
    }
}

impl From<Estimate> for Figure {
    fn from(estimate: Estimate) -> Figure {
        Figure { value: estimate.mean, half_width: estimate.half_width }
    }
}

impl Answer {
    /// No answer.
    pub fn left_out(by: Answerer, why: impl Into<String>) -> Answer {
        let state = State::LeftOut(why.into());
        Answer { by, state, runs: 0, passed: true, conditions: String::new(), rows: Vec::new() }
    }

    /// Whether there is something to compare.
    pub fn is_there(&self) -> bool {
        !matches!(self.state, State::LeftOut(_))
    }

    /// Whether it is asked about a subject: models of one switch are not asked about flows.
    pub fn is_asked(&self, subject: &Subject) -> bool {
        self.by.model.is_none() || self.row(subject).is_some()
    }

    /// What it says about a subject.
    pub fn row(&self, subject: &Subject) -> Option<&Row> {
        self.rows.iter().find(|row| row.subject == *subject)
    }
}

impl Row {
    /// A row without figures yet.
    pub fn new(part: Part, name: impl Into<String>) -> Row {
        Row {
            subject: Subject { part, name: name.into() },
            status: Status::Ok,
            delay_of: None,
            samples: 0,
            figures: BTreeMap::new(),
            quantiles_s: Vec::new(),
            note: None,
        }
    }

    /// Adds a figure, if it is one: what is no number, or below zero, is left out.
    pub fn put(&mut self, metric: Metric, figure: Option<Figure>) {
        if let Some(figure) = figure.filter(|figure| figure.value.is_finite() && figure.value >= 0.0) {
            self.figures.insert(metric, figure);
        }
    }

    /// A figure's value.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.figures.get(&metric).map(|figure| figure.value)
    }
}
