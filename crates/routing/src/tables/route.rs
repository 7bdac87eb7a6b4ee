//! Routes: how a class of packets crosses the network, switch by switch.
use std::collections::BTreeMap;
use weir_openflow::model::{Action, Match, PortNo};

/// Number of a route, chosen by the part of the controller that owns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(pub u64);

/// Way of a class of packets to its destination: a tree whose root is where they leave the network. Each switch on it
/// has a hop, which becomes an entry of the forwarding table. A change of a route reaches the switches from the
/// destination outwards, so that a packet meets a switch that knows the way, whichever entries are there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Priority of the entries.
    pub priority: u16,
    /// Packets that take the route.
    pub matching: Match,
    /// Seconds without a packet after which a switch removes its entry; 0 for never.
    pub idle_timeout: u16,
    /// Hops by switch, and by input port where packets from there go elsewhere.
    pub hops: BTreeMap<HopPlace, Hop>,
}

/// Place where a hop applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HopPlace {
    /// Datapath id of the switch.
    pub dpid: u64,
    /// Input port; `None` for packets from all ports for which no other hop of the switch applies.
    pub in_port: Option<PortNo>,
}

/// Treatment of a route's packets by a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// How outputs are chosen. With one output it does not matter.
    pub kind: HopKind,
    /// Outputs; with fast failover the preferred one first. None at all drops the packets.
    pub outputs: Vec<HopOutput>,
}

/// How a hop chooses among its outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HopKind {
    /// Packets leave by all outputs, in their order.
    All,
    /// Each flow leaves by one output, by weight (select group).
    Select,
    /// Packets leave by the first output whose port has a link (fast-failover group).
    FastFailover,
}

/// An output of a hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HopOutput {
    /// Port; [`PortNo::IN_PORT`] for back to where the packet came from, [`PortNo::CONTROLLER`] for the controller.
    pub port: PortNo,
    /// Switch to which the port leads; `None` if packets leave the network there.
    pub next: Option<u64>,
    /// Share of the flows, with [`HopKind::Select`].
    pub weight: u16,
    /// Actions before the output. With [`HopKind::All`] they stay in effect for the outputs after it.
    pub actions: Vec<Action>,
    /// Port whose link says whether the output can be used, with [`HopKind::FastFailover`]; `None` for `port`.
    pub watch: Option<PortNo>,
}

/// How far a route is in the switches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteState {
    /// Switches have not confirmed all entries yet.
    Pending,
    /// All switches have confirmed their entries. Former ones are deleted a little later.
    Installed,
    /// A switch refused an entry: the former way is in use again, if there was one.
    Refused {
        /// Datapath id of the switch.
        dpid: u64,
        /// The error that it sent.
        reason: String,
    },
}

impl Route {
    /// Returns true if the other route is about the same packets with the same priority.
    pub(super) fn is_about_as(&self, other: &Route) -> bool {
        self.priority == other.priority && self.matching == other.matching && self.idle_timeout == other.idle_timeout
    }
}

impl HopOutput {
    /// Returns an output to a port, without actions.
    pub const fn new(port: PortNo, next: Option<u64>) -> HopOutput {
        HopOutput { port, next, weight: 1, actions: Vec::new(), watch: None }
    }
}

impl Hop {
    /// Returns a hop with one output.
    pub fn to(port: PortNo, next: Option<u64>) -> Hop {
        Hop { kind: HopKind::All, outputs: vec![HopOutput::new(port, next)] }
    }
}

impl HopPlace {
    /// Returns the place of the packets of a switch from all ports.
    pub const fn at(dpid: u64) -> HopPlace {
        HopPlace { dpid, in_port: None }
    }
}
