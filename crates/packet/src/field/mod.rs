//! Defines OpenFlow's match fields: names, widths, prerequisites, and their places in a [`FlowKey`](crate::FlowKey).
//!
//! | word | high bits ... low bits |
//! |---|---|
//! | 0 | eth_dst 48, eth_type 16 |
//! | 1 | eth_src 48, vlan_pcp 3, vlan_vid 13 (bit 12: a tag is there) |
//! | 2 | ipv4_src / arp_spa 32, ipv4_dst / arp_tpa 32 |
//! | 3, high half | source port / ICMP type / arp_op 16, destination port / ICMP code 16 |
//! | 3, low half | ip_proto 8, ip_dscp 6, ip_ecn 2, tcp_flags 12, ip_frag 2, the second tag 2 |
//! | 4 | in_port 32, ipv6_flabel 20, - 12 |
//! | 5 | metadata |
//! | 6 | tunnel_id |
//! | 7 | mpls_label 20, mpls_tc 3, mpls_bos 1, pbb_isid 24, pbb_uca 1, - 15 |
//! | 8, 9 | ipv6_src |
//! | 10, 11 | ipv6_dst |
//! | 12, 13 | ipv6_nd_target |
//! | 14 | arp_sha / ipv6_nd_sll 48, ipv6_exthdr 9, - 7 |
//! | 15 | arp_tha / ipv6_nd_tll 48, - 16 |
//! | 16 | in_phy_port 32, packet_type 32 |
//! | 17 ... 24 | reg0 32, reg1 32 ... reg14 32, reg15 32; xreg0 64 ... xreg7 64; xxreg0 128 ... xxreg3 128 |
//! | 25 | nsh_spi 24, nsh_si 8, nsh_mdtype 8, nsh_np 8, nsh_flags 8, nsh_ttl 8 |
//! | 26, 27 | nsh_c1 32, nsh_c2 32; nsh_c3 32, nsh_c4 32 |
//! | 28 | tun_src 32, tun_dst 32 |
//! | 29 | actset_output 32, pkt_mark 32 |
//!
//! The second tag is not a field: 1.0 uses it as the type of frames with two or more tags
//! ([`FlowKey::set_second_tag`](crate::FlowKey::set_second_tag)). The words that ordinary traffic uses come first, so
//! that a parser for common shapes writes only words 0 to 7.
mod numbers;

pub use numbers::{VLAN_PRESENT, eth_type, icmpv6_type, ip_frag, ip_proto, ipv6_exthdr};

use std::fmt;
use std::str::FromStr;

/// A match field. Fields of OpenFlow 1.3 have their number in the class `OFPXMC_OPENFLOW_BASIC` as discriminant
/// (OpenFlow 1.3.5, 7.2.3.7). [`Field::TcpFlags`], [`Field::ActsetOutput`] and [`Field::PacketType`] are from
/// OpenFlow 1.5, [`Field::PbbUca`] is from 1.4. Fields from 128 on are Open vSwitch's: fragments, the whole VLAN tag,
/// registers, the mark, NSH (RFC 8300), tunnel addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is named by the specification; `info` carries name, width and prerequisite")]
pub enum Field {
    InPort = 0,
    InPhyPort = 1,
    Metadata = 2,
    EthDst = 3,
    EthSrc = 4,
    EthType = 5,
    VlanVid = 6,
    VlanPcp = 7,
    IpDscp = 8,
    IpEcn = 9,
    IpProto = 10,
    Ipv4Src = 11,
    Ipv4Dst = 12,
    TcpSrc = 13,
    TcpDst = 14,
    UdpSrc = 15,
    UdpDst = 16,
    SctpSrc = 17,
    SctpDst = 18,
    Icmpv4Type = 19,
    Icmpv4Code = 20,
    ArpOp = 21,
    ArpSpa = 22,
    ArpTpa = 23,
    ArpSha = 24,
    ArpTha = 25,
    Ipv6Src = 26,
    Ipv6Dst = 27,
    Ipv6Flabel = 28,
    Icmpv6Type = 29,
    Icmpv6Code = 30,
    Ipv6NdTarget = 31,
    Ipv6NdSll = 32,
    Ipv6NdTll = 33,
    MplsLabel = 34,
    MplsTc = 35,
    MplsBos = 36,
    PbbIsid = 37,
    TunnelId = 38,
    Ipv6Exthdr = 39,
    PbbUca = 41,
    TcpFlags = 42,
    ActsetOutput = 43,
    PacketType = 44,
    IpFrag = 128,
    VlanTci = 129,
    Reg0 = 130,
    Reg1 = 131,
    Reg2 = 132,
    Reg3 = 133,
    Reg4 = 134,
    Reg5 = 135,
    Reg6 = 136,
    Reg7 = 137,
    Reg8 = 138,
    Reg9 = 139,
    Reg10 = 140,
    Reg11 = 141,
    Reg12 = 142,
    Reg13 = 143,
    Reg14 = 144,
    Reg15 = 145,
    Xreg0 = 146,
    Xreg1 = 147,
    Xreg2 = 148,
    Xreg3 = 149,
    Xreg4 = 150,
    Xreg5 = 151,
    Xreg6 = 152,
    Xreg7 = 153,
    Xxreg0 = 154,
    Xxreg1 = 155,
    Xxreg2 = 156,
    Xxreg3 = 157,
    NshFlags = 160,
    NshTtl = 161,
    NshMdtype = 162,
    NshNp = 163,
    NshSpi = 164,
    NshSi = 165,
    NshC1 = 166,
    NshC2 = 167,
    NshC3 = 168,
    NshC4 = 169,
    TunSrc = 170,
    TunDst = 171,
    PktMark = 172,
}

/// Place of a field in a flow key: `bits` bits, `shift` above the low end of `word`. 128-bit fields take two words,
/// the high one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowKeyPosition {
    /// Index of the first word.
    pub word: usize,
    /// Number of bits below the field in its word.
    pub shift: u32,
    /// Width in bits.
    pub bits: u32,
}

/// Condition on other fields for a field to be present (OpenFlow 1.3.5, table 12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prerequisite {
    /// No condition on other fields.
    None,
    /// A VLAN tag is present.
    VlanPresent,
    /// The match contains `in_port`.
    InPort,
    /// `eth_type` is in this list.
    EthType(&'static [u16]),
    /// `eth_type` is IPv4 or IPv6, and `ip_proto` is this number.
    IpProto(u8),
    /// `eth_type` is IPv4, and `ip_proto` is 1.
    Icmpv4,
    /// `eth_type` is IPv6, and `ip_proto` is 58.
    Icmpv6,
    /// The packet is ICMPv6, and its type is in this list.
    Icmpv6Type(&'static [u8]),
}

const IP: &[u16] = &[eth_type::IPV4, eth_type::IPV6];
const IPV4: &[u16] = &[eth_type::IPV4];
const IPV6: &[u16] = &[eth_type::IPV6];
const ARP: &[u16] = &[eth_type::ARP, eth_type::RARP];
const MPLS: &[u16] = &[eth_type::MPLS, eth_type::MPLS_MULTICAST];
const PBB: &[u16] = &[eth_type::PBB];
const NSH: &[u16] = &[eth_type::NSH];

struct FieldInfo {
    name: &'static str,
    position: FlowKeyPosition,
    prerequisite: Prerequisite,
    maskable: bool,
}

/// Lookup tables for properties that are needed for every field of every flow-mod.
struct FieldTables {
    infos: [FieldInfo; 256],
    by_oxm: [Option<Field>; 128],
}

const TABLES: &FieldTables = &{
    const NO_FIELD: FieldInfo = info("", 0, 0, 1, Prerequisite::None);
    let mut tables = FieldTables { infos: [NO_FIELD; 256], by_oxm: [None; 128] };
    let mut at = 0;
    while at < Field::ALL.len() {
        let field = Field::ALL[at];
        tables.infos[field as usize] = field.described();
        if let Some(number) = field.oxm() {
            tables.by_oxm[number as usize] = Some(field);
        }
        at += 1;
    }
    tables
};

const fn info(name: &'static str, word: usize, shift: u32, bits: u32, prerequisite: Prerequisite) -> FieldInfo {
    FieldInfo { name, position: FlowKeyPosition { word, shift, bits }, prerequisite, maskable: false }
}

const fn register(name: &'static str, word: usize, shift: u32, bits: u32) -> FieldInfo {
    masked(info(name, word, shift, bits, Prerequisite::None))
}

const fn masked(info: FieldInfo) -> FieldInfo {
    FieldInfo { maskable: true, ..info }
}

impl Field {
    /// All fields, in the order of their numbers.
    pub const ALL: [Field; 87] = {
        use Field::*;
        [
            InPort,
            InPhyPort,
            Metadata,
            EthDst,
            EthSrc,
            EthType,
            VlanVid,
            VlanPcp,
            IpDscp,
            IpEcn,
            IpProto,
            Ipv4Src,
            Ipv4Dst,
            TcpSrc,
            TcpDst,
            UdpSrc,
            UdpDst,
            SctpSrc,
            SctpDst,
            Icmpv4Type,
            Icmpv4Code,
            ArpOp,
            ArpSpa,
            ArpTpa,
            ArpSha,
            ArpTha,
            Ipv6Src,
            Ipv6Dst,
            Ipv6Flabel,
            Icmpv6Type,
            Icmpv6Code,
            Ipv6NdTarget,
            Ipv6NdSll,
            Ipv6NdTll,
            MplsLabel,
            MplsTc,
            MplsBos,
            PbbIsid,
            TunnelId,
            Ipv6Exthdr,
            PbbUca,
            TcpFlags,
            ActsetOutput,
            PacketType,
            IpFrag,
            VlanTci,
            Reg0,
            Reg1,
            Reg2,
            Reg3,
            Reg4,
            Reg5,
            Reg6,
            Reg7,
            Reg8,
            Reg9,
            Reg10,
            Reg11,
            Reg12,
            Reg13,
            Reg14,
            Reg15,
            Xreg0,
            Xreg1,
            Xreg2,
            Xreg3,
            Xreg4,
            Xreg5,
            Xreg6,
            Xreg7,
            Xxreg0,
            Xxreg1,
            Xxreg2,
            Xxreg3,
            NshFlags,
            NshTtl,
            NshMdtype,
            NshNp,
            NshSpi,
            NshSi,
            NshC1,
            NshC2,
            NshC3,
            NshC4,
            TunSrc,
            TunDst,
            PktMark,
        ]
    };

    #[inline]
    const fn info(self) -> &'static FieldInfo {
        &TABLES.infos[self as usize]
    }

    const fn described(self) -> FieldInfo {
        use Prerequisite::{EthType as Eth, Icmpv4, Icmpv6, Icmpv6Type, InPort, IpProto, None, VlanPresent};
        match self {
            Field::InPort => info("in_port", 4, 32, 32, None),
            Field::InPhyPort => info("in_phy_port", 16, 32, 32, InPort),
            Field::Metadata => masked(info("metadata", 5, 0, 64, None)),
            Field::EthDst => masked(info("eth_dst", 0, 16, 48, None)),
            Field::EthSrc => masked(info("eth_src", 1, 16, 48, None)),
            Field::EthType => info("eth_type", 0, 0, 16, None),
            Field::VlanVid => masked(info("vlan_vid", 1, 0, 13, None)),
            Field::VlanPcp => info("vlan_pcp", 1, 13, 3, VlanPresent),
            Field::IpDscp => info("ip_dscp", 3, 18, 6, Eth(IP)),
            Field::IpEcn => info("ip_ecn", 3, 16, 2, Eth(IP)),
            Field::IpProto => info("ip_proto", 3, 24, 8, Eth(IP)),
            Field::Ipv4Src => masked(info("ipv4_src", 2, 32, 32, Eth(IPV4))),
            Field::Ipv4Dst => masked(info("ipv4_dst", 2, 0, 32, Eth(IPV4))),
            Field::TcpSrc => masked(info("tcp_src", 3, 48, 16, IpProto(ip_proto::TCP))),
            Field::TcpDst => masked(info("tcp_dst", 3, 32, 16, IpProto(ip_proto::TCP))),
            Field::UdpSrc => masked(info("udp_src", 3, 48, 16, IpProto(ip_proto::UDP))),
            Field::UdpDst => masked(info("udp_dst", 3, 32, 16, IpProto(ip_proto::UDP))),
            Field::SctpSrc => masked(info("sctp_src", 3, 48, 16, IpProto(ip_proto::SCTP))),
            Field::SctpDst => masked(info("sctp_dst", 3, 32, 16, IpProto(ip_proto::SCTP))),
            Field::Icmpv4Type => info("icmpv4_type", 3, 48, 8, Icmpv4),
            Field::Icmpv4Code => info("icmpv4_code", 3, 32, 8, Icmpv4),
            Field::ArpOp => info("arp_op", 3, 48, 16, Eth(ARP)),
            Field::ArpSpa => masked(info("arp_spa", 2, 32, 32, Eth(ARP))),
            Field::ArpTpa => masked(info("arp_tpa", 2, 0, 32, Eth(ARP))),
            Field::ArpSha => masked(info("arp_sha", 14, 16, 48, Eth(ARP))),
            Field::ArpTha => masked(info("arp_tha", 15, 16, 48, Eth(ARP))),
            Field::Ipv6Src => masked(info("ipv6_src", 8, 0, 128, Eth(IPV6))),
            Field::Ipv6Dst => masked(info("ipv6_dst", 10, 0, 128, Eth(IPV6))),
            Field::Ipv6Flabel => masked(info("ipv6_flabel", 4, 12, 20, Eth(IPV6))),
            Field::Icmpv6Type => info("icmpv6_type", 3, 48, 8, Icmpv6),
            Field::Icmpv6Code => info("icmpv6_code", 3, 32, 8, Icmpv6),
            Field::Ipv6NdTarget => masked(info("ipv6_nd_target", 12, 0, 128, Icmpv6Type(&[135, 136]))),
            Field::Ipv6NdSll => masked(info("ipv6_nd_sll", 14, 16, 48, Icmpv6Type(&[135]))),
            Field::Ipv6NdTll => masked(info("ipv6_nd_tll", 15, 16, 48, Icmpv6Type(&[136]))),
            Field::MplsLabel => info("mpls_label", 7, 44, 20, Eth(MPLS)),
            Field::MplsTc => info("mpls_tc", 7, 41, 3, Eth(MPLS)),
            Field::MplsBos => info("mpls_bos", 7, 40, 1, Eth(MPLS)),
            Field::PbbIsid => masked(info("pbb_isid", 7, 16, 24, Eth(PBB))),
            Field::TunnelId => masked(info("tunnel_id", 6, 0, 64, None)),
            Field::Ipv6Exthdr => masked(info("ipv6_exthdr", 14, 7, 9, Eth(IPV6))),
            Field::PbbUca => info("pbb_uca", 7, 15, 1, Eth(PBB)),
            Field::TcpFlags => masked(info("tcp_flags", 3, 4, 12, IpProto(ip_proto::TCP))),
            Field::IpFrag => masked(info("ip_frag", 3, 2, 2, Eth(IP))),
            Field::VlanTci => masked(info("vlan_tci", 1, 0, 16, None)),
            Field::ActsetOutput => info("actset_output", 29, 32, 32, None),
            Field::PacketType => info("packet_type", 16, 0, 32, None),
            Field::Reg0 => register("reg0", 17, 32, 32),
            Field::Reg1 => register("reg1", 17, 0, 32),
            Field::Reg2 => register("reg2", 18, 32, 32),
            Field::Reg3 => register("reg3", 18, 0, 32),
            Field::Reg4 => register("reg4", 19, 32, 32),
            Field::Reg5 => register("reg5", 19, 0, 32),
            Field::Reg6 => register("reg6", 20, 32, 32),
            Field::Reg7 => register("reg7", 20, 0, 32),
            Field::Reg8 => register("reg8", 21, 32, 32),
            Field::Reg9 => register("reg9", 21, 0, 32),
            Field::Reg10 => register("reg10", 22, 32, 32),
            Field::Reg11 => register("reg11", 22, 0, 32),
            Field::Reg12 => register("reg12", 23, 32, 32),
            Field::Reg13 => register("reg13", 23, 0, 32),
            Field::Reg14 => register("reg14", 24, 32, 32),
            Field::Reg15 => register("reg15", 24, 0, 32),
            Field::Xreg0 => register("xreg0", 17, 0, 64),
            Field::Xreg1 => register("xreg1", 18, 0, 64),
            Field::Xreg2 => register("xreg2", 19, 0, 64),
            Field::Xreg3 => register("xreg3", 20, 0, 64),
            Field::Xreg4 => register("xreg4", 21, 0, 64),
            Field::Xreg5 => register("xreg5", 22, 0, 64),
            Field::Xreg6 => register("xreg6", 23, 0, 64),
            Field::Xreg7 => register("xreg7", 24, 0, 64),
            Field::Xxreg0 => register("xxreg0", 17, 0, 128),
            Field::Xxreg1 => register("xxreg1", 19, 0, 128),
            Field::Xxreg2 => register("xxreg2", 21, 0, 128),
            Field::Xxreg3 => register("xxreg3", 23, 0, 128),
            Field::NshFlags => masked(info("nsh_flags", 25, 8, 8, Eth(NSH))),
            Field::NshTtl => info("nsh_ttl", 25, 0, 8, Eth(NSH)),
            Field::NshMdtype => info("nsh_mdtype", 25, 24, 8, Eth(NSH)),
            Field::NshNp => info("nsh_np", 25, 16, 8, Eth(NSH)),
            Field::NshSpi => masked(info("nsh_spi", 25, 40, 24, Eth(NSH))),
            Field::NshSi => masked(info("nsh_si", 25, 32, 8, Eth(NSH))),
            Field::NshC1 => masked(info("nsh_c1", 26, 32, 32, Eth(NSH))),
            Field::NshC2 => masked(info("nsh_c2", 26, 0, 32, Eth(NSH))),
            Field::NshC3 => masked(info("nsh_c3", 27, 32, 32, Eth(NSH))),
            Field::NshC4 => masked(info("nsh_c4", 27, 0, 32, Eth(NSH))),
            Field::TunSrc => masked(info("tun_src", 28, 32, 32, None)),
            Field::TunDst => masked(info("tun_dst", 28, 0, 32, None)),
            Field::PktMark => masked(info("pkt_mark", 29, 0, 32, None)),
        }
    }

    /// Returns the name in OpenFlow 1.3's `oxm_` spelling, as Open vSwitch prints it for OpenFlow 1.3: `eth_dst`,
    /// `ipv4_src`, ...
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// Returns the field's place in a flow key.
    #[inline]
    pub const fn key_position(self) -> FlowKeyPosition {
        self.info().position
    }

    /// Returns the width in bits, `1..=128`.
    pub const fn bits(self) -> u32 {
        self.info().position.bits
    }

    /// Returns the width of an OXM value in bytes (OpenFlow 1.3.5, 7.2.3.7). Labels of 20 bits and service paths take
    /// four bytes.
    pub const fn bytes(self) -> usize {
        match (self, self.bits()) {
            (Field::NshSpi, _) | (_, 20) => 4,
            (_, bits) => bits.div_ceil(8) as usize,
        }
    }

    /// Returns the value or mask with all of the field's bits set.
    pub const fn all_ones(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }

    /// Returns true if a match may have a mask for the field (OpenFlow 1.3.5, table 12).
    pub const fn is_maskable(self) -> bool {
        self.info().maskable
    }

    /// Returns true if a set-field action may name the field (OpenFlow 1.3.5, 7.2.5): not fields that tell how the
    /// packet was received or is built.
    pub const fn is_settable(self) -> bool {
        use Field::{
            ActsetOutput, InPhyPort, InPort, IpFrag, Ipv6Exthdr, Metadata, NshMdtype, NshNp, PacketType, TcpFlags,
            VlanTci,
        };
        !matches!(self, InPort | InPhyPort | Metadata | Ipv6Exthdr | TcpFlags | IpFrag)
            && !matches!(self, ActsetOutput | PacketType | NshMdtype | NshNp | VlanTci)
    }

    /// Returns the condition for the field to be present in a packet or match.
    pub const fn prerequisite(self) -> Prerequisite {
        self.info().prerequisite
    }

    /// Returns true for pipeline fields, which accompany the packet and are not in its bytes: ports, metadata,
    /// tunnel, registers, ... (OpenFlow 1.5.1, 7.2.3.9).
    pub const fn is_pipeline(self) -> bool {
        use Field::{ActsetOutput, InPhyPort, InPort, Metadata, PacketType, PktMark, TunDst, TunSrc, TunnelId};
        matches!(self, InPort | InPhyPort | Metadata | TunnelId | TunSrc | TunDst | ActsetOutput | PacketType | PktMark)
            || self.is_register()
    }

    /// Returns true if the field is in the Ethernet header or its tags, which packets of other types do not have.
    pub const fn is_ethernet(self) -> bool {
        use Field::{EthDst, EthSrc, EthType, VlanPcp, VlanVid};
        matches!(self, EthDst | EthSrc | EthType | VlanVid | VlanPcp)
    }

    /// Returns true if the field is a register of any width.
    pub const fn is_register(self) -> bool {
        matches!(self as u8, 130..=157)
    }

    /// Returns true if the field is another name for the bits of several 32-bit registers.
    pub const fn is_wide_register(self) -> bool {
        matches!(self as u8, 146..=157)
    }

    /// Returns true if the field is in the network service header (RFC 8300).
    pub const fn is_nsh(self) -> bool {
        matches!(self.prerequisite(), Prerequisite::EthType([eth_type::NSH]))
    }

    /// Returns true if the field is another name for the bits of several other fields: a wide register, or the whole
    /// VLAN tag.
    pub const fn is_alias(self) -> bool {
        self.is_wide_register() || matches!(self, Field::VlanTci)
    }

    /// Returns the field with this number in the class `OFPXMC_OPENFLOW_BASIC`.
    pub fn from_oxm(number: u8) -> Option<Field> {
        *TABLES.by_oxm.get(usize::from(number))?
    }

    /// Returns the number in the class `OFPXMC_OPENFLOW_BASIC`; `None` for Open vSwitch's own fields.
    pub const fn oxm(self) -> Option<u8> {
        match self {
            field if field as u8 >= 128 => None,
            field => Some(field as u8),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Field {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Field::ALL.into_iter().find(|field| field.name() == text);
        named.ok_or_else(|| format!("found `{text}`, expected the name of a match field such as eth_dst"))
    }
}

impl serde::Serialize for Field {
    fn serialize<S: serde::Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        into.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if both fields may share bits, because their prerequisites exclude that a packet has both.
    fn exclusive(a: Field, b: Field) -> bool {
        use Prerequisite::*;
        let family = |field: Field| match field.prerequisite() {
            EthType(types) if types == ARP => 1,
            EthType(types) if types == IPV4 => 2,
            IpProto(proto) => u32::from(proto) + 10,
            Icmpv4 => 3,
            Icmpv6 => 4,
            Icmpv6Type(types) => {
                if types == [135] {
                    6
                } else {
                    7
                }
            }
            _ => 0,
        };
        family(a) != family(b) && family(a) != 0 && family(b) != 0
    }

    #[test]
    fn places_overlap_only_where_packets_cannot_have_both() {
        let mask = |field: Field| {
            let mut mask = crate::FlowMask::EMPTY;
            mask.set(field, field.all_ones());
            mask
        };
        for (i, a) in Field::ALL.into_iter().enumerate() {
            for b in Field::ALL.into_iter().skip(i + 1) {
                let same_registers = a.is_register() && b.is_wide_register() || a.is_alias() || b.is_alias();
                let overlap = !mask(a).masked(&mask(b)).is_empty();
                assert!(!overlap || exclusive(a, b) || same_registers, "{a} and {b} overlap");
            }
        }
    }

    #[test]
    fn numbers_and_names_find_their_field() {
        for field in Field::ALL {
            assert_eq!(field.name().parse(), Ok(field));
            if let Some(number) = field.oxm() {
                assert_eq!(Field::from_oxm(number), Some(field));
            }
        }
        assert_eq!(Field::from_oxm(40), None);
    }
}
