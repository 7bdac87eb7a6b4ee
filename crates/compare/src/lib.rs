//! One scenario, several answers: by formulas, in virtual time, live. Their figures side by side, differences, a verdict in words.
//!
//! Every way of answering gives an [`Answer`], a list of flows and devices with figures in seconds, shares and bits per second
//! ([`answers`] makes them of results). A [`Comparison`] holds them against one of them, the reference: [`difference`] has the measures,
//! [`mod@score`] what they come to over all flows, [`verdict`] the words. [`mod@ask`] gets the answers.
pub mod answer;
pub mod answers;
pub mod ask;
mod comparison;
pub mod difference;
pub mod score;
pub mod verdict;

pub use answer::{Answer, Answerer, Figure, Metric, Part, Row, State, Status, Subject, Verb};
pub use ask::{Plan, Told, ask};
pub use comparison::Comparison;
pub use difference::Difference;
pub use score::Score;
pub use verdict::Verdict;
