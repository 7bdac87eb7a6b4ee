//! Errors of networks.
use std::io;
use std::time::Duration;

/// Reason why a scenario's network could not be made, or did not come up.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The scenario uses a feature that its network cannot have. Holds the message for the user.
    #[error("{0}")]
    Scenario(String),
    /// The operating system refused the descriptors of a memory port.
    #[error("cannot make a memory port: {0}")]
    MemoryPort(#[source] io::Error),
    /// After this time some links were still down, or some switches were not connected to the controller.
    #[error(
        "after {0:?} not every switch is under control with all its links up; is the controller of [controller] connect running?"
    )]
    NotReady(Duration),
}
