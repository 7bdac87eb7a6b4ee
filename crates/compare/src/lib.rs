//! One scenario, several answers: by formulas, in virtual time, live. Their figures side by side, differences, a verdict in words.
//!
//! Every way of answering gives an [`Answer`], a list of flows and devices with figures in seconds, shares and bits per second
//! ([`answers`] makes them of results). A [`Comparison`] holds them against one of them, the reference: [`difference`] has the measures,
//! [`mod@score`] what they come to over all flows, [`verdict`] the words. [`mod@ask`] gets the answers; [`mod@board`] sums up many scenarios,
//! [`page`] draws.
pub mod answer;
pub mod answers;
pub mod ask;
pub mod board;
mod comparison;
pub mod difference;
pub mod page;
mod rig;
pub mod score;
pub mod verdict;

pub use answer::{Answer, Answerer, Figure, Metric, Part, Row, State, Status, Subject, Verb};
pub use ask::{Plan, Told, ask};
pub use board::{Board, Entry, Outcome, Place};
pub use comparison::Comparison;
pub use difference::Difference;
pub use score::Score;
pub use verdict::Verdict;
