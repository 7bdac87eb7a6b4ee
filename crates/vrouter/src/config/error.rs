//! Errors in configurations.
use super::RouterPortId;
use crate::prefix::AddressPrefix;
use std::net::IpAddr;
use weir_packet::IpNet;

/// Error in a configuration of a virtual router.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A list has too many items, or none where one is needed.
    #[error("`{what}`: found {found}, expected {least} to {most}")]
    Number {
        /// Key of the list.
        what: &'static str,
        /// Number of its items.
        found: usize,
        /// Least number.
        least: usize,
        /// Most.
        most: usize,
    },
    /// A port is not as ports are.
    #[error("port {port}: found {found}, expected {expected}")]
    Port {
        /// Port with the problem.
        port: RouterPortId,
        /// Value that is wrong.
        found: String,
        /// Values that are right.
        expected: &'static str,
    },
    /// Networks of two ports have addresses in common.
    #[error(
        "port {port}: found {net}, which overlaps with {other} of port {other_port}; give each port its own network"
    )]
    Overlap {
        /// Port with the problem.
        port: RouterPortId,
        /// Address of the port.
        net: IpNet,
        /// The other port.
        other_port: RouterPortId,
        /// Address of the other port.
        other: IpNet,
    },
    /// A route is not as routes are.
    #[error("route to {prefix}: found {found}, expected {expected}")]
    Route {
        /// Destinations of the route.
        prefix: AddressPrefix,
        /// Value that is wrong.
        found: String,
        /// Values that are right.
        expected: &'static str,
    },
    /// A filter is not as filters are.
    #[error("filter {number}: found {found}, expected {expected}")]
    Filter {
        /// Number of the filter, from 1.
        number: usize,
        /// Value that is wrong.
        found: String,
        /// Values that are right.
        expected: &'static str,
    },
    /// A pair of addresses is not as pairs are.
    #[error("translation of {inside} to {outside}: found {found}, expected {expected}")]
    Translation {
        /// Address of the host.
        inside: IpAddr,
        /// Address by which others know it.
        outside: IpAddr,
        /// Value that is wrong.
        found: String,
        /// Values that are right.
        expected: &'static str,
    },
    /// Two next hops have the same number in the metadata. Chance decides; it happens once in a million configurations
    /// with ten next hops.
    #[error("next hops {one} and {other} have the same number in metadata; change the address of one of them")]
    NextHops {
        /// Next hop of a route or a translated address.
        one: IpAddr,
        /// Another one.
        other: IpAddr,
    },
}
