//! Errors of labs.
use std::io;
use std::time::Duration;
use weir_port::PortError;
use weir_switch::SwitchError;

/// Reason why a lab could not be run.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The scenario needs something that a lab does not support.
    #[error("{0}")]
    Scenario(String),
    /// The machine lacks a requirement.
    #[error("{0}")]
    Missing(String),
    /// The system refused an operation.
    #[error("cannot {tried}: {source}")]
    System {
        /// Operation, as a verb phrase.
        tried: String,
        /// Error of the system.
        source: io::Error,
    },
    /// A program failed.
    #[error("`{command}` failed: {said}")]
    Command {
        /// Command line of the program.
        command: String,
        /// Error output of the program.
        said: String,
    },
    /// A port could not be opened.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A switch could not be started or queried.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// Ports did not have link, or switches did not come under control, in time.
    #[error(
        "after {0:?} not every switch is under control with all its links up; is the controller of [controller] connect running?"
    )]
    NotReady(Duration),
}

impl LabError {
    /// Returns a function for `map_err` that adds the operation to a system error.
    pub fn system(tried: impl Into<String>) -> impl FnOnce(io::Error) -> LabError {
        let tried = tried.into();
        move |source| LabError::System { tried, source }
    }
}
