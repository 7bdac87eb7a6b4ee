//! Requests of virtual networks as users write them, in TOML (`[[network]]` of a scenario) and in JSON with equal keys.
use serde::{Deserialize, Serialize};
use weir_units::{Bps, ByteSize, TimeSpan};

/// Owner of a request that names none.
pub const DEFAULT_OWNER: &str = "operator";

/// Virtual network that is asked for: nodes, the virtual links between them and to hosts, and a lifetime.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NetworkServiceRequest {
    /// Name of the network, unique among networks.
    pub name: String,
    /// User that the network belongs to.
    #[serde(default = "default_owner")]
    pub owner: String,
    /// Time after which the network is released; `None` for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<TimeSpan>,
    /// Virtual routers and bridges. A network of links between hosts needs none.
    #[serde(default, rename = "node", skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeRequest>,
    /// Virtual links.
    #[serde(rename = "link")]
    pub links: Vec<LinkRequest>,
    /// Later changes of bandwidth, in the order of their times.
    #[serde(default, rename = "stage", skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageRequest>,
}

impl NetworkServiceRequest {
    /// Returns a network of links between hosts that stays.
    pub fn new(name: impl Into<String>, links: Vec<LinkRequest>) -> NetworkServiceRequest {
        let (name, owner) = (name.into(), default_owner());
        NetworkServiceRequest { name, owner, lifetime: None, nodes: Vec::new(), links, stages: Vec::new() }
    }
}

fn default_owner() -> String {
    DEFAULT_OWNER.to_owned()
}

/// Virtual node that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NodeRequest {
    /// Name of the node, unique among the nodes of the network and the hosts of the substrate.
    pub name: String,
    /// How the node forwards.
    #[serde(default)]
    pub kind: NodeKind,
    /// Switch that the node has to be on; `None` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Controllers of a node of kind [`NodeKind::Controller`], as `tcp:HOST:PORT` or `unix:PATH`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connect: Vec<String>,
    /// Routes of a node of kind [`NodeKind::Router`] beyond its connected prefixes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteRequest>,
}

/// How a virtual node forwards packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// A learning Ethernet bridge.
    #[default]
    Bridge,
    /// A router of IPv4 and IPv6 with an address on each of its links.
    Router,
    /// Forwards as a controller of the user says by OpenFlow.
    Controller,
}

/// Route of a virtual router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouteRequest {
    /// Prefix of destinations, such as `10.2.0.0/16`.
    pub to: String,
    /// Address of the next router, within a connected prefix; `None` to drop the packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
}

/// Virtual link that is asked for, between two ends: nodes of the network or hosts of the substrate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkRequest {
    /// Name of the link, unique within the network; both ends with a hyphen between them if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Names of both ends.
    pub ends: [String; 2],
    /// Rate from the first end to the second one, and back unless `backward` is given.
    pub bandwidth: Bandwidth,
    /// Rate from the second end to the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<Bandwidth>,
    /// Bound of the delay, in each direction; `None` for no promise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<PromisedDelay>,
    /// Bytes above the rate that may come at once and are still in profile, at least the longest packet; two of the
    /// longest packets by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<ByteSize>,
    /// Buffer at each switch, if more than the promise needs is wanted, for example for TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<ByteSize>,
    /// VLAN id of the link's packets at its hosts; `None` if they are untagged there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Switches that the link has to avoid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoid: Vec<String>,
    /// Addresses with prefix of the first end and of the second one, if these are routers.
    #[serde(default, skip_serializing_if = "has_no_address")]
    pub addresses: [Vec<String>; 2],
}

fn has_no_address(addresses: &[Vec<String>; 2]) -> bool {
    addresses.iter().all(Vec::is_empty)
}

impl LinkRequest {
    /// Returns a link without a promise of delay.
    pub fn new(from: impl Into<String>, to: impl Into<String>, bandwidth: Bandwidth) -> LinkRequest {
        LinkRequest {
            name: None,
            ends: [from.into(), to.into()],
            bandwidth,
            backward: None,
            delay: None,
            burst: None,
            buffer: None,
            vlan: None,
            avoid: Vec::new(),
            addresses: [Vec::new(), Vec::new()],
        }
    }

    /// Returns the name of the link.
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.ends.join("-"))
    }

    /// Returns the rates from the first end to the second one, and back.
    pub fn bandwidths(&self) -> [Bandwidth; 2] {
        [self.bandwidth, self.backward.unwrap_or(self.bandwidth)]
    }
}

/// Rate of a virtual link in one direction (Anhalt, 2011, section 5.2.4).
///
/// Written as a rate (a static reservation), or as a table with `minimum`, `maximum` or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a rate such as \"10Mbit/s\", or a table with `minimum`, `maximum` or both")]
pub enum Bandwidth {
    /// Exactly this rate is given: minimum and maximum are equal.
    Static(Bps),
    /// At least `minimum` and at most `maximum`.
    Range(BandwidthRange),
}

/// Limits of the rate of a virtual link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BandwidthRange {
    /// Guaranteed minimum; nothing is guaranteed if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Bps>,
    /// Allowed maximum; the rate of the slowest line on the way if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Bps>,
}

impl Bandwidth {
    /// Returns the guaranteed minimum, 0 for none.
    pub fn minimum(self) -> Bps {
        match self {
            Bandwidth::Static(rate) => rate,
            Bandwidth::Range(range) => range.minimum.unwrap_or(Bps(0)),
        }
    }

    /// Returns the allowed maximum; `None` for the rate of the slowest line.
    pub fn maximum(self) -> Option<Bps> {
        match self {
            Bandwidth::Static(rate) => Some(rate),
            Bandwidth::Range(range) => range.maximum,
        }
    }
}

/// Bound of a one-way delay. `bound` and `percentile` have the meaning of `bound` and `percentile-value` in the metric
/// bounds of IETF network slices (draft-ietf-teas-ietf-network-slice-nbi-yang, `one-way-delay-maximum` and
/// `one-way-delay-percentile`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PromisedDelay {
    /// Longest delay, from the last bit of a packet at the first switch to its last bit at the second end.
    pub bound: TimeSpan,
    /// Percentage of packets that have at most this delay, above 0 and below 100; all packets if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<f64>,
}

/// Change of bandwidth at a later time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StageRequest {
    /// Time since the network became active.
    pub start: TimeSpan,
    /// Links whose bandwidth changes.
    #[serde(rename = "link")]
    pub links: Vec<StageLink>,
}

/// Bandwidth of a virtual link from a stage on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StageLink {
    /// Name of the link.
    pub name: String,
    /// Rate from the first end to the second one, and back unless `backward` is given.
    pub bandwidth: Bandwidth,
    /// Rate from the second end to the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<Bandwidth>,
}
