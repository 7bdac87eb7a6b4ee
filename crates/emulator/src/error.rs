//! Errors of labs.
use std::io;
use weir_network::NetworkError;
use weir_port::PortError;
use weir_switch::SwitchError;

/// Reason why a lab could not be run.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The scenario's network could not be made, or did not come up.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The scenario uses a feature that labs do not support. Holds the message for the user.
    #[error("{0}")]
    Scenario(String),
    /// The machine lacks something that the lab requires. Holds the message for the user.
    #[error("{0}")]
    Missing(String),
    /// The operating system refused an operation.
    #[error("cannot {tried}: {source}")]
    System {
        /// Operation, as a verb phrase that follows "cannot".
        tried: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A command that the lab ran (`ip`) failed.
    #[error("`{command}` failed: {said}")]
    Command {
        /// Command line that failed.
        command: String,
        /// Error output of the command.
        said: String,
    },
    /// A port could not be opened.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A switch could not be started or queried.
    #[error(transparent)]
    Switch(#[from] SwitchError),
}

impl LabError {
    /// Returns a function for `map_err` that converts an I/O error into [`LabError::System`] of the operation `tried`.
    pub fn system(tried: impl Into<String>) -> impl FnOnce(io::Error) -> LabError {
        let tried = tried.into();
        move |source| LabError::System { tried, source }
    }
}
