//! Compares several answers to one scenario: by formulas, in virtual time, emulated and live. Gives figures side by
//! side, differences, and verdicts in words.
//!
//! Every verb gives an [`ScenarioAnswer`], a list of flows and devices with figures in seconds, shares and bit/s
//! ([`answers`] makes them of results). A [`Comparison`] compares the answers with one of them, the reference.
//! [`difference`] has the measures, [`mod@score`] sums up differences over all flows, and [`verdict`] has the words.
//! [`mod@ask`] gets the answers, [`mod@leaderboard`] sums up many scenarios, and [`page`] draws.
pub mod answer;
pub mod answers;
pub mod ask;
mod comparison;
mod decision;
pub mod difference;
pub mod leaderboard;
mod overhead;
pub mod page;
pub mod score;
pub mod verdict;

pub use answer::{
    AnswerRow, AnswerRowStatus, AnswerSource, AnswerState, AnswerSubject, EvaluationMethod, MetricValue,
    PerformanceMetric, ScenarioAnswer, SubjectKind,
};
pub use ask::{ComparisonPlan, ComparisonProgress, ask};
pub use comparison::{AnswerComparison, Comparison};
pub use decision::FlowDecision;
pub use difference::MetricDifference;
pub use leaderboard::{Leaderboard, LeaderboardRow, LeaderboardScenario, ScenarioOutcome};
pub use score::AnswerScore;
pub use verdict::DifferenceVerdict;
