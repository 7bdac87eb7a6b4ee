//! Tells with some comparisons that a frame is no control traffic. All frames pass this filter while in-band control is
//! on; the few that it lets through are then read in full.
use super::control_frame::{ETHERNET, TAG, dhcp_port};
use super::lost;
use std::net::SocketAddr;
use weir_packet::field::{eth_type, ip_proto};

/// Bytes from the EtherType to the ports behind an IPv4 header without options. No control frame is shorter.
const SHORTEST: usize = 2 + 20 + 4;
/// Place of the ports behind an IPv6 header without extensions, from the EtherType on.
const PORTS_OF_IPV6: usize = 2 + 40;
/// First byte of an IPv4 header without options.
const NO_OPTIONS: u8 = 0x45;

/// A filter for the controllers of a switch.
#[derive(Debug, Default)]
pub(super) struct ControlFilter {
    /// True if control traffic is tagged.
    is_tagged: bool,
    /// Set of the controllers' TCP ports, each by its last six bits.
    tcp_ports: u64,
}

impl ControlFilter {
    pub(super) fn new(controllers: &[SocketAddr], is_tagged: bool) -> ControlFilter {
        let tcp_ports = controllers.iter().fold(0, |set, controller| set | bit(controller.port()));
        ControlFilter { is_tagged, tcp_ports }
    }

    /// Returns false for a frame that no hidden entry takes. True says nothing.
    #[inline(always)]
    pub(super) fn passes(&self, frame: &[u8]) -> bool {
        let start = if self.is_tagged { ETHERNET + TAG } else { ETHERNET } - 2;
        let headers = frame.get(start..).unwrap_or_default();
        let Some(fixed) = headers.first_chunk::<SHORTEST>() else { return false };
        match u16::from_be_bytes([fixed[0], fixed[1]]) {
            eth_type::IPV4 => {
                let [.., a, b, c, d] = *fixed;
                let protocol = fixed[2 + 9];
                // Behind options the ports are elsewhere.
                fixed[2] != NO_OPTIONS || self.may_be(protocol, [a, b, c, d])
            }
            eth_type::IPV6 => {
                let ports = headers.get(PORTS_OF_IPV6..).and_then(|ports| ports.first_chunk());
                ports.is_some_and(|ports| self.may_be(fixed[2 + 6], *ports))
            }
            eth_type::ARP | lost::ETHER_TYPE => true,
            // Notices have no tag.
            _ => self.is_tagged && frame.get(12..14) == Some(&lost::ETHER_TYPE.to_be_bytes()),
        }
    }

    /// Returns false if no packet of this protocol with these first four bytes is control traffic.
    #[inline(always)]
    fn may_be(&self, protocol: u8, [source_high, source_low, high, low]: [u8; 4]) -> bool {
        match protocol {
            ip_proto::TCP => {
                let ports = [[source_high, source_low], [high, low]].map(u16::from_be_bytes);
                (bit(ports[0]) | bit(ports[1])) & self.tcp_ports != 0
            }
            ip_proto::UDP => matches!(
                u16::from_be_bytes([high, low]),
                dhcp_port::CLIENT | dhcp_port::SERVER | dhcp_port::CLIENT_V6 | dhcp_port::SERVER_V6
            ),
            ip_proto::ICMPV6 => true,
            _ => false,
        }
    }
}

#[inline(always)]
fn bit(port: u16) -> u64 {
    1 << (port & 63)
}
