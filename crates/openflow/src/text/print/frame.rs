//! Prints the headers of a packet in a message, on one line, as Open vSwitch does.
use crate::text::field_value::{TCP_FLAGS, match_text, set_name};
use std::fmt::Write as _;
use weir_packet::field::{VLAN_PRESENT, eth_type, ip_proto};
use weir_packet::parse::{Layers, NetworkProtocol, ParsedHeaders, TransportProtocol, parse};
use weir_packet::{Field, FlowKey, PortNo};

/// Maximum number of MPLS label stack entries to print.
const MAX_LABELS: usize = 3;

/// Prints the headers of a frame; prints the parser's error if the Ethernet header is incomplete.
pub(super) fn headers(frame: &[u8]) -> String {
    match parse(frame, PortNo(0)) {
        Ok(parsed) => {
            FrameHeaderPrinter { frame, key: parsed.key, layers: parsed.layers, text: String::new() }.write(&parsed)
        }
        Err(short) => short.to_string(),
    }
}

/// A line being printed.
struct FrameHeaderPrinter<'a> {
    frame: &'a [u8],
    key: FlowKey,
    layers: Layers,
    text: String,
}

impl FrameHeaderPrinter<'_> {
    fn write(mut self, parsed: &ParsedHeaders) -> String {
        let word = self.protocol();
        if let Some((word, _)) = word {
            self.text.push_str(word);
        }
        self.put_vlan();
        self.put_field(Field::EthSrc, "dl_src");
        self.put_field(Field::EthDst, "dl_dst");
        if word.is_none() {
            self.put_field(Field::EthType, "dl_type");
        }
        match parsed.layers.network {
            Some((NetworkProtocol::Arp, _)) => {
                self.put_fields(&[Field::ArpSpa, Field::ArpTpa, Field::ArpOp, Field::ArpSha, Field::ArpTha])
            }
            Some((NetworkProtocol::Nsh, _)) => self.put_fields(&[
                Field::NshFlags,
                Field::NshTtl,
                Field::NshMdtype,
                Field::NshNp,
                Field::NshSpi,
                Field::NshSi,
                Field::NshC1,
                Field::NshC2,
                Field::NshC3,
                Field::NshC4,
            ]),
            Some((network, at)) => self.put_ip(network, usize::from(at), word.is_some_and(|(_, whole)| whole)),
            None => {}
        }
        self.put_labels();
        if let Some((transport, at)) = parsed.layers.transport {
            self.put_transport(transport, usize::from(at));
        }
        self.text
    }

    /// Returns the word for the protocol, and true if it includes the transport protocol.
    fn protocol(&self) -> Option<(&'static str, bool)> {
        let v6 = match self.layers.network {
            Some((NetworkProtocol::Ipv4, _)) => false,
            Some((NetworkProtocol::Ipv6, _)) => true,
            Some((NetworkProtocol::Arp, _)) if self.is_type(eth_type::RARP) => return Some(("rarp", false)),
            Some((NetworkProtocol::Arp, _)) => return Some(("arp", false)),
            None if self.is_type(eth_type::MPLS) => return Some(("mpls", false)),
            None if self.is_type(eth_type::MPLS_MULTICAST) => return Some(("mplsm", false)),
            None | Some((NetworkProtocol::Nsh, _)) => return None,
        };
        let proto = self.key.get(Field::IpProto);
        let words: [(u8, &str, &str); 3] =
            [(ip_proto::TCP, "tcp", "tcp6"), (ip_proto::UDP, "udp", "udp6"), (ip_proto::SCTP, "sctp", "sctp6")];
        let transport = words.into_iter().find(|(number, _, _)| u128::from(*number) == proto);
        Some(match transport {
            Some((_, four, six)) => (if v6 { six } else { four }, true),
            None if !v6 && proto == u128::from(ip_proto::ICMP) => ("icmp", true),
            None if v6 && proto == u128::from(ip_proto::ICMPV6) => ("icmp6", true),
            None => (if v6 { "ipv6" } else { "ip" }, false),
        })
    }

    fn is_type(&self, eth_type: u16) -> bool {
        self.key.get(Field::EthType) == u128::from(eth_type)
    }

    fn put(&mut self, name: &str, value: impl std::fmt::Display) {
        let comma = if self.text.is_empty() { "" } else { "," };
        let _ = write!(self.text, "{comma}{name}={value}");
    }

    fn put_field(&mut self, field: Field, name: &str) {
        let value = match_text(field, self.key.get(field), None);
        self.put(name, value);
    }

    fn put_fields(&mut self, fields: &[Field]) {
        for field in fields {
            self.put_field(*field, set_name(*field));
        }
    }

    fn put_vlan(&mut self) {
        let vid = self.key.get(Field::VlanVid);
        if vid & u128::from(VLAN_PRESENT) == 0 {
            return self.put("vlan_tci", "0x0000");
        }
        self.put("dl_vlan", vid & 0xfff);
        self.put_field(Field::VlanPcp, "dl_vlan_pcp");
        let inner = match self.layers.vlan_tags {
            2.. => self.be16(18).unwrap_or_default(),
            _ => 0,
        };
        match inner {
            0 => self.put("vlan_tci1", "0x0000"),
            tci => {
                self.put("dl_vlan1", tci & 0xfff);
                self.put("dl_vlan_pcp1", tci >> 13);
            }
        }
    }

    fn put_ip(&mut self, network: NetworkProtocol, at: usize, whole_word: bool) {
        let ttl_at = if network == NetworkProtocol::Ipv4 {
            self.put_field(Field::Ipv4Src, "nw_src");
            self.put_field(Field::Ipv4Dst, "nw_dst");
            at + 8
        } else {
            self.put_fields(&[Field::Ipv6Src, Field::Ipv6Dst, Field::Ipv6Flabel]);
            at + 7
        };
        if !whole_word {
            self.put_field(Field::IpProto, "nw_proto");
        }
        self.put("nw_tos", self.key.get(Field::IpDscp) << 2);
        self.put_field(Field::IpEcn, "nw_ecn");
        self.put("nw_ttl", self.frame.get(ttl_at).copied().unwrap_or_default());
        self.put_field(Field::IpFrag, "nw_frag");
    }

    /// Prints the MPLS label stack: the first entry by its fields, the next ones as whole numbers.
    fn put_labels(&mut self) {
        let Some(first) = self.layers.mpls else { return };
        let mut at = usize::from(first);
        for depth in 0..MAX_LABELS {
            let Some(entry) = self.be32(at) else { return };
            if depth == 0 {
                self.put("mpls_label", entry >> 12);
                self.put("mpls_tc", entry >> 9 & 7);
                self.put("mpls_ttl", entry & 0xff);
                self.put("mpls_bos", entry >> 8 & 1);
            } else {
                self.put(&format!("mpls_lse{depth}"), entry);
            }
            if entry & 0x100 != 0 {
                return;
            }
            at += 4;
        }
    }

    fn put_transport(&mut self, transport: TransportProtocol, at: usize) {
        let (source, destination, sum) = match transport {
            TransportProtocol::Tcp => (Field::TcpSrc, Field::TcpDst, ("tcp", self.be16(at + 16).map(u32::from))),
            TransportProtocol::Udp => (Field::UdpSrc, Field::UdpDst, ("udp", self.be16(at + 6).map(u32::from))),
            TransportProtocol::Sctp => (Field::SctpSrc, Field::SctpDst, ("sctp", self.be32(at + 8))),
            TransportProtocol::Icmpv4 => {
                (Field::Icmpv4Type, Field::Icmpv4Code, ("icmp", self.be16(at + 2).map(u32::from)))
            }
            TransportProtocol::Icmpv6 => {
                (Field::Icmpv6Type, Field::Icmpv6Code, ("icmp6", self.be16(at + 2).map(u32::from)))
            }
        };
        let is_icmp = matches!(transport, TransportProtocol::Icmpv4 | TransportProtocol::Icmpv6);
        self.put_field(source, if is_icmp { "icmp_type" } else { "tp_src" });
        self.put_field(destination, if is_icmp { "icmp_code" } else { "tp_dst" });
        if transport == TransportProtocol::Tcp {
            self.put_tcp_flags();
        }
        if transport == TransportProtocol::Icmpv6 {
            self.put_neighbour_discovery();
        }
        if let (name, Some(sum)) = sum {
            let _ = write!(self.text, " {name}_csum:{sum:x}");
        }
    }

    fn put_tcp_flags(&mut self) {
        let flags = self.key.get(Field::TcpFlags);
        let set = TCP_FLAGS.iter().enumerate().filter(|(bit, _)| flags >> bit & 1 != 0).map(|(_, name)| *name);
        let words = set.collect::<Vec<_>>().join("|");
        self.put("tcp_flags", if words.is_empty() { "0" } else { &words });
    }

    fn put_neighbour_discovery(&mut self) {
        match self.key.get(Field::Icmpv6Type) {
            135 | 136 => self.put_fields(&[Field::Ipv6NdTarget, Field::Ipv6NdSll, Field::Ipv6NdTll]),
            _ => {}
        }
    }

    fn be16(&self, at: usize) -> Option<u16> {
        self.frame.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn be32(&self, at: usize) -> Option<u32> {
        self.frame.get(at..at + 4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}
