//! Parses an experiment's file: its question, the published figures, the sizes of the rerun.
use serde::{Deserialize, Serialize};
use weir_units::TimeSpan;

/// Contents of `experiments/<id>/experiment.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExperimentDefinition {
    /// Title, a few words.
    pub title: String,
    /// The question that the experiment answers.
    pub question: String,
    /// Source of the published figures: authors, title, venue and year, tables.
    pub source: String,
    /// Setup on which the published figures were measured.
    pub setup: String,
    /// Sizes of the rerun that takes seconds.
    pub small: ExperimentSizes,
    /// Sizes as published.
    pub full: ExperimentSizes,
    /// The published figures.
    #[serde(default)]
    pub published: Vec<PublishedFigure>,
}

/// Sizes of a rerun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExperimentSizes {
    /// Duration of the measurement of each case.
    pub time: TimeSpan,
    /// Time between pings, for cases with pings.
    #[serde(default = "every_ten_ms")]
    pub ping_interval: TimeSpan,
    /// Number of replications of each case, for simulated cases.
    #[serde(default = "once")]
    pub replications: u32,
}

fn once() -> u32 {
    1
}

fn every_ten_ms() -> TimeSpan {
    TimeSpan(std::time::Duration::from_millis(10))
}

/// A published figure.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// Case of the figure, by the rerun's name.
    pub case: String,
    /// Measured quantity, by the rerun's name.
    pub metric: String,
    /// Value of the figure, in the rerun's unit.
    pub value: f64,
    /// Standard deviation of the figure, if published.
    #[serde(default)]
    pub sd: Option<f64>,
    /// Remark about the figure.
    #[serde(default)]
    pub note: Option<String>,
}

impl ExperimentDefinition {
    /// Parses an experiment's file.
    ///
    /// # Errors
    /// The text is malformed; the error names the place and what was expected there.
    pub fn parse(text: &str) -> Result<ExperimentDefinition, toml::de::Error> {
        toml::from_str(text)
    }

    /// Returns the published figure of a metric in a case.
    pub fn published(&self, case: &str, metric: &str) -> Option<&PublishedFigure> {
        self.published.iter().find(|figure| figure.case == case && figure.metric == metric)
    }
}
