//! Errors of requests to the manager.
use super::LifecycleState;
use weir_vnet::service::ServiceError;

/// Error of a request to the manager.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// The request is malformed, or refused with offers.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// No network has this name, or it belongs to another user.
    #[error("found no network {name}")]
    NoNetwork {
        /// Name that was given.
        name: String,
    },
    /// A user requests a network for another one.
    #[error("owner: found `{found}`, expected your own name `{expected}`")]
    Owner {
        /// Owner in the request.
        found: String,
        /// Name of the user.
        expected: String,
    },
    /// The name belongs to a network that has not ended.
    #[error("network {name}: found another network of this name, expected a name of its own")]
    NameTaken {
        /// Name that was given.
        name: String,
    },
    /// The owner would have more than allowed.
    #[error("quota of {owner}: {problem}; release a network, or ask the operator for more")]
    Quota {
        /// Owner of the network.
        owner: String,
        /// Limit that is exceeded.
        problem: String,
    },
    /// The manager keeps as many networks as it may.
    #[error("found {most} networks, and no more are kept: release one first")]
    Full {
        /// Most networks that have not ended.
        most: usize,
    },
    /// The network's state does not allow the request.
    #[error("network {name} is {}: {expected}", state.name())]
    State {
        /// Name of the network.
        name: String,
        /// State of the network.
        state: LifecycleState,
        /// Description of what is possible.
        expected: &'static str,
    },
    /// The offer does not exist, or not yet.
    #[error("network {name}, offer {number}: {problem}")]
    Offer {
        /// Name of the network.
        name: String,
        /// Number of the offer, from 1 on.
        number: usize,
        /// Reason.
        problem: String,
    },
    /// A stage cannot begin.
    #[error("network {name}, stage {stage}: {problem}")]
    Stage {
        /// Name of the network.
        name: String,
        /// Number of the stage, from 1 on.
        stage: usize,
        /// Reason.
        problem: String,
    },
    /// A network that was kept does not fit any more.
    #[error("network {name} cannot be restored: {problem}")]
    Restore {
        /// Name of the network.
        name: String,
        /// Reason.
        problem: String,
    },
}
