//! Why a lab could not be run.
use std::io;
use std::time::Duration;
use weir_port::PortError;
use weir_switch::SwitchError;

/// Why a lab could not be run.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The scenario asks for something that a lab cannot give.
    #[error("{0}")]
    Scenario(String),
    /// Something that the machine lacks.
    #[error("{0}")]
    Missing(String),
    /// The system refused something.
    #[error("cannot {tried}: {source}")]
    System {
        /// What was tried.
        tried: String,
        /// What the system said.
        source: io::Error,
    },
    /// A program failed.
    #[error("`{command}` failed: {said}")]
    Command {
        /// The command.
        command: String,
        /// What it said.
        said: String,
    },
    /// A port could not be opened.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A switch could not be started or asked.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// Ports did not get link, or switches did not come under control, in time.
    #[error(
        "after {0:?} not every switch is under control with all its links up; is the controller of [controller] connect running?"
    )]
    NotReady(Duration),
}

impl LabError {
    /// For `map_err`: what was tried.
    pub fn system(tried: impl Into<String>) -> impl FnOnce(io::Error) -> LabError {
        let tried = tried.into();
        move |source| LabError::System { tried, source }
    }
}
