//! Carries steps out on switches, and reads back what they have.
mod backoff;
mod live;

pub use backoff::SwitchBackoff;
pub use live::LiveSwitches;

use crate::plan::{PlanStep, SliceSpec};

/// Switches that have virtual switches.
pub trait SwitchAccess {
    /// Returns all virtual switches of a switch, those that are not the service's included.
    ///
    /// # Errors
    /// The switch does not answer, or what it says is not understood.
    fn read(&mut self, switch: &str) -> Result<Vec<SliceSpec>, SwitchFailure>;

    /// Carries a step out. A step that is carried out already is no error.
    ///
    /// # Errors
    /// The switch does not answer, or refuses.
    fn carry_out(&mut self, step: &PlanStep) -> Result<(), SwitchFailure>;
}

/// Failure of a switch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SwitchFailure {
    /// The switch does not answer; it may later.
    #[error("switch {switch} does not answer: {problem}")]
    Unreachable {
        /// Name of the switch.
        switch: String,
        /// Description of what was tried, and of what happened.
        problem: String,
    },
    /// The switch refuses; it would again.
    #[error("switch {switch} refuses: {problem}")]
    Refused {
        /// Name of the switch.
        switch: String,
        /// Reason that the switch gives.
        problem: String,
    },
}
