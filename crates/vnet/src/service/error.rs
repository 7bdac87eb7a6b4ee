//! Refusals of virtual networks, with what is short and the nearest offers, and errors of malformed requests.
use super::{NetworkServiceRequest, PortName};
use std::fmt;
use std::time::Duration;
use weir_units::{Bps, ByteSize, Instant};

/// Resource that a refused virtual link is short of on one way.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkShortage {
    /// Rate of a line.
    Rate {
        /// Port that sends on the line, or port of the host that does.
        port: PortName,
        /// Rate that is asked for.
        asked: Bps,
        /// Largest rate that is left.
        left: Bps,
    },
    /// Places among the virtual links at a port.
    Shares {
        /// The port.
        port: PortName,
        /// Most virtual links there.
        most: u32,
    },
    /// Buffer between two ports of a switch.
    Buffer {
        /// Port at which packets enter the switch.
        from: PortName,
        /// Number of the port at which they leave.
        to: u32,
        /// Buffer that is needed.
        asked: ByteSize,
        /// Buffer that is left.
        left: ByteSize,
    },
    /// Delay: the bound of this way is longer than what is to be promised.
    Delay {
        /// Bound of this way.
        bound: Duration,
        /// Delay that is asked for.
        asked: Duration,
    },
    /// VLAN ids on a line between switches.
    Vlan {
        /// Port at one end of the line.
        port: PortName,
    },
    /// Port of a host, which other virtual links have.
    HostPort {
        /// Name of the host.
        host: String,
        /// VLAN id that is asked for; `None` for untagged packets.
        vlan: Option<u16>,
    },
    /// Virtual switches on a switch.
    Slices {
        /// Name of the switch.
        switch: String,
        /// Most virtual switches there.
        most: usize,
    },
    /// A line between two nodes of one switch.
    OneSwitch {
        /// Name of the switch.
        switch: String,
    },
    /// Places for its nodes: there are none that are joined as its links need.
    Place,
    /// A way: none leads from one switch to the other without what the request avoids, and without ports that other
    /// links of its nodes have.
    Way {
        /// Names of both switches.
        switches: [String; 2],
    },
}

impl fmt::Display for NetworkShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate { port, asked, left } => {
                write!(f, "port {port} has {} left of its rate, and {} is asked for", left.exact(), asked.exact())
            }
            Self::Shares { port, most } => write!(f, "port {port} has {most} virtual links, and serves no more"),
            Self::Buffer { from, to, asked, left } => {
                write!(f, "the buffer from port {from} to port {to} has {left} left, and {asked} is needed")
            }
            Self::Delay { bound, asked } => {
                write!(f, "the delay can be {bound:?}, which is longer than the promise of {asked:?}")
            }
            Self::Vlan { port } => write!(f, "the line at port {port} has no VLAN id left"),
            Self::HostPort { host, vlan: None } => {
                write!(f, "the port of host {host} has other virtual links: give this one a `vlan` there")
            }
            Self::HostPort { host, vlan: Some(vlan) } => write!(
                f,
                "the port of host {host} has another virtual link with VLAN id {vlan}, or one with untagged packets"
            ),
            Self::Slices { switch, most } => write!(f, "switch {switch} has {most} virtual switches, and no more"),
            Self::OneSwitch { switch } => write!(
                f,
                "both its nodes are on switch {switch}, where no line joins them: give one of them another `place`"
            ),
            Self::Place => write!(f, "there are no switches for its nodes that are joined as its links need"),
            Self::Way { switches: [from, to] } => write!(
                f,
                "no way leads from switch {from} to switch {to} without what is avoided, and without ports that other \
                 links of its nodes have"
            ),
        }
    }
}

/// A changed request that would be admitted in place of a refused one. Each was tried.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkOffer {
    /// Difference from the refused request.
    pub change: OfferedChange,
    /// The changed request.
    pub request: NetworkServiceRequest,
}

/// Difference between a refused request and an offer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum OfferedChange {
    /// Less guaranteed rate of one link: in both directions at most this. One bit/s more is refused.
    Rate {
        /// Name of the link.
        link: String,
        /// Guaranteed rate.
        rate: Bps,
    },
    /// A longer delay of one link. One nanosecond less is refused.
    Delay {
        /// Name of the link.
        link: String,
        /// Delay that can be promised.
        delay: Duration,
    },
    /// Ways over what one link avoids.
    WithoutAvoid {
        /// Name of the link.
        link: String,
    },
    /// A later start, when other networks have ended.
    Later(Instant),
}

impl fmt::Display for OfferedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate { link, rate } => write!(f, "{} for link {link}", rate.exact()),
            Self::Delay { link, delay } => write!(f, "a delay of {delay:?} for link {link}"),
            Self::WithoutAvoid { link } => write!(f, "link {link} without `avoid`"),
            Self::Later(at) => write!(f, "the request as it is from {:?} on", Duration::from_nanos(at.as_nanos())),
        }
    }
}

/// Refusal of a virtual network: the link that binds, and what it is short of.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Name of the network.
    pub network: String,
    /// Name of the link that is refused.
    pub link: String,
    /// Ways with what each is short of, the shortest way first.
    pub ways: Vec<RefusedNetworkWay>,
    /// Changed requests that would be admitted.
    pub offers: Vec<NetworkOffer>,
}

/// A way that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedNetworkWay {
    /// Switches of the way.
    pub switches: Vec<String>,
    /// Resources that the way is short of.
    pub shortages: Vec<NetworkShortage>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "network {}, link {}: ", self.network, self.link)?;
        if let Some(first) = self.ways.first() {
            if first.switches.len() > 1 {
                write!(f, "on the way {}, ", first.switches.join(", "))?;
            }
            let shortages: Vec<String> = first.shortages.iter().map(NetworkShortage::to_string).collect();
            write!(f, "{}", shortages.join("; "))?;
        }
        if self.ways.len() > 1 {
            write!(f, "; {} more ways are short of something, too", self.ways.len() - 1)?;
        }
        if self.offers.is_empty() {
            return write!(f, "; no smaller change is enough");
        }
        let offers: Vec<String> = self.offers.iter().map(|offer| offer.change.to_string()).collect();
        write!(f, "; possible: {}", offers.join(", or "))
    }
}

/// Error of the virtual network service.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The network is refused: something is short.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The request contradicts itself or names what does not exist.
    #[error("network {network}: {problem}")]
    Malformed {
        /// Name of the network.
        network: String,
        /// Text of what was found, and what was expected.
        problem: String,
    },
    /// The description of the substrate is wrong.
    #[error("{0}")]
    Substrate(String),
    /// A network that does not exist.
    #[error("found no network {name}")]
    NoNetwork {
        /// Name that was given.
        name: String,
    },
}
