//! An experiment as its file says it: what is asked, what was published, how large it is rerun.
use serde::{Deserialize, Serialize};
use weir_units::Span;

/// `experiments/<id>/experiment.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Definition {
    /// What it is about, in a few words.
    pub title: String,
    /// What it asks.
    pub question: String,
    /// Where the published figures stand: authors, title, where and when, tables.
    pub source: String,
    /// What the published figures were measured on.
    pub setup: String,
    /// Sizes of the rerun that takes seconds.
    pub small: Sizes,
    /// Sizes as published.
    pub full: Sizes,
    /// The published figures.
    #[serde(default)]
    pub published: Vec<Published>,
}

/// How large a rerun is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sizes {
    /// How long each case is measured.
    pub time: Span,
    /// Time between pings, where there are any.
    #[serde(default = "every_ten_ms")]
    pub ping_interval: Span,
    /// How often each case is simulated, where it is.
    #[serde(default = "once")]
    pub replications: u32,
}

fn once() -> u32 {
    1
}

fn every_ten_ms() -> Span {
    Span(std::time::Duration::from_millis(10))
}

/// A published figure.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The case it was measured in, as the rerun calls it.
    pub case: String,
    /// What was measured, as the rerun calls it.
    pub metric: String,
    /// The figure, in the rerun's unit.
    pub value: f64,
    /// Its standard deviation, if it was published.
    #[serde(default)]
    pub sd: Option<f64>,
    /// What to know about it.
    #[serde(default)]
    pub note: Option<String>,
}

impl Definition {
    /// Reads an experiment's file.
    ///
    /// # Errors
    /// Where it is wrong, and what was expected there.
    pub fn parse(text: &str) -> Result<Definition, toml::de::Error> {
        toml::from_str(text)
    }

    /// The published figure of a case.
    pub fn published(&self, case: &str, metric: &str) -> Option<&Published> {
        self.published.iter().find(|figure| figure.case == case && figure.metric == metric)
    }
}
