//! Describes a network with its state.
use serde::{Deserialize, Serialize};
use weir_units::Instant;
use weir_vnet::service::NetworkServiceRequest;

/// State of a network. The module's page has the ways from one to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LifecycleState {
    /// Refused, with changed requests that would be admitted. Nothing is reserved.
    Offered,
    /// Reserved for a limited time.
    Held,
    /// Reserved until it is released; no switch knows it yet.
    Committed,
    /// Steps on switches are under way.
    Provisioning,
    /// Read back from all switches.
    Active,
    /// Was active; a switch does not answer, or does not have what it should have.
    Degraded,
    /// Virtual switches are being removed.
    Releasing,
    /// Ended.
    Released,
    /// Ended: it could not be carried out.
    Failed,
}

impl LifecycleState {
    /// Returns true if the network is reserved.
    pub fn is_reserved(self) -> bool {
        !matches!(self, LifecycleState::Offered | LifecycleState::Released | LifecycleState::Failed)
    }

    /// Returns true if switches may have virtual switches of the network.
    pub fn is_on_switches(self) -> bool {
        self.is_wanted() || self == LifecycleState::Releasing
    }

    /// Returns true if switches should have the virtual switches of the network.
    pub fn is_wanted(self) -> bool {
        matches!(self, LifecycleState::Provisioning | LifecycleState::Active | LifecycleState::Degraded)
    }

    /// Returns true if nothing of the network is left.
    pub fn has_ended(self) -> bool {
        matches!(self, LifecycleState::Released | LifecycleState::Failed)
    }

    /// Returns the name of the state.
    pub fn name(self) -> &'static str {
        match self {
            LifecycleState::Offered => "offered",
            LifecycleState::Held => "held",
            LifecycleState::Committed => "committed",
            LifecycleState::Provisioning => "provisioning",
            LifecycleState::Active => "active",
            LifecycleState::Degraded => "degraded",
            LifecycleState::Releasing => "releasing",
            LifecycleState::Released => "released",
            LifecycleState::Failed => "failed",
        }
    }
}

/// Network with its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkRecord {
    /// Request as it was admitted, or refused.
    pub request: NetworkServiceRequest,
    /// State.
    pub state: LifecycleState,
    /// Service time at which the state began.
    #[serde(rename = "since_ns", with = "nanos")]
    pub since: Instant,
    /// Number of the admission, from 1 on; 0 if the network was not admitted.
    pub order: u64,
    /// Service time at which a hold or an offer ends.
    #[serde(default, rename = "until_ns", with = "optional_nanos", skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
    /// Service time at which the network became active, from which stages count.
    #[serde(default, rename = "activated_ns", with = "optional_nanos", skip_serializing_if = "Option::is_none")]
    pub activated: Option<Instant>,
    /// True if the present rates were read back from switches.
    pub is_settled: bool,
    /// Reason why it is degraded, has failed, or cannot be carried out at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// True if the network is released because it could not be carried out.
    #[serde(default)]
    pub fails: bool,
    /// Changed requests that would be admitted, if the request was refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<KeptOffer>,
}

/// Changed request that would be admitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptOffer {
    /// Description of the change for people.
    pub text: String,
    /// Changed request.
    pub request: NetworkServiceRequest,
    /// Service time from which on it would be admitted; `None` for at once.
    #[serde(default, rename = "from_ns", with = "optional_nanos", skip_serializing_if = "Option::is_none")]
    pub from: Option<Instant>,
}

/// Times as numbers of nanoseconds.
pub(super) mod nanos {
    use serde::{Deserialize as _, Deserializer, Serializer};
    use weir_units::Instant;

    pub(crate) fn serialize<S: Serializer>(time: &Instant, into: S) -> Result<S::Ok, S::Error> {
        into.serialize_u64(time.as_nanos())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Instant, D::Error> {
        u64::deserialize(from).map(Instant::from_nanos)
    }
}

/// Times that may be missing as numbers of nanoseconds.
pub(super) mod optional_nanos {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use weir_units::Instant;

    pub(crate) fn serialize<S: Serializer>(time: &Option<Instant>, into: S) -> Result<S::Ok, S::Error> {
        time.map(Instant::as_nanos).serialize(into)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Instant>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Instant::from_nanos))
    }
}
