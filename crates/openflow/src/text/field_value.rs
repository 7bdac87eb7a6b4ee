//! Parses and prints match fields: names, values and masks.
use super::number;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use weir_packet::{Field, MacAddr, PacketType, PortNo};

/// Returns the name of the field in `ovs-ofctl`'s set_field action (`set_field:1->ip_dscp`).
pub(super) fn set_name(field: Field) -> &'static str {
    match field {
        Field::IpEcn => "nw_ecn",
        Field::IpProto => "nw_proto",
        Field::Ipv4Src => "ip_src",
        Field::Ipv4Dst => "ip_dst",
        Field::Icmpv4Type => "icmp_type",
        Field::Icmpv4Code => "icmp_code",
        Field::Ipv6Flabel => "ipv6_label",
        Field::Ipv6NdTarget => "nd_target",
        Field::Ipv6NdSll => "nd_sll",
        Field::Ipv6NdTll => "nd_tll",
        Field::TunnelId => "tun_id",
        field => field.name(),
    }
}

/// Names in addition to [`set_name`] and [`Field::name`] that denote one field, independently of the rest of the
/// match.
pub(super) const ALIASES: [(&str, Field); 11] = [
    ("dl_src", Field::EthSrc),
    ("dl_dst", Field::EthDst),
    ("dl_type", Field::EthType),
    ("dl_vlan_pcp", Field::VlanPcp),
    ("nw_frag", Field::IpFrag),
    ("ip_ecn", Field::IpEcn),
    ("tunnel_id", Field::TunnelId),
    ("eth_type", Field::EthType),
    ("ip_proto", Field::IpProto),
    ("ipv6_label", Field::Ipv6Flabel),
    ("arp_op", Field::ArpOp),
];

/// Returns the field with this name, if the name denotes it independently of the rest of the match.
pub(super) fn named(name: &str) -> Option<Field> {
    let alias = || ALIASES.into_iter().find(|(alias, _)| *alias == name).map(|(_, field)| field);
    Field::ALL.into_iter().find(|field| field.name() == name || set_name(*field) == name).or_else(alias)
}

/// Returns every name that [`named`] knows.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let own = Field::ALL.into_iter().flat_map(|field| [field.name(), set_name(field)]);
    own.chain(ALIASES.into_iter().map(|(name, _)| name))
}

/// Text form of a field's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldFormat {
    Decimal,
    /// Hexadecimal, padded to this number of digits.
    Hex(usize),
    Mac,
    Ipv4,
    Ipv6,
    Port,
    Fragment,
    TcpFlags,
    PacketType,
}

fn form(field: Field) -> FieldFormat {
    match field {
        Field::InPort | Field::InPhyPort => FieldFormat::Port,
        Field::EthSrc | Field::EthDst | Field::ArpSha | Field::ArpTha | Field::Ipv6NdSll | Field::Ipv6NdTll => {
            FieldFormat::Mac
        }
        Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa => FieldFormat::Ipv4,
        Field::Ipv6Src | Field::Ipv6Dst | Field::Ipv6NdTarget => FieldFormat::Ipv6,
        Field::Metadata | Field::TunnelId | Field::PbbIsid | Field::Ipv6Exthdr => FieldFormat::Hex(1),
        Field::EthType => FieldFormat::Hex(4),
        Field::Ipv6Flabel => FieldFormat::Hex(5),
        Field::TunSrc | Field::TunDst => FieldFormat::Ipv4,
        Field::PktMark => FieldFormat::Hex(1),
        Field::VlanTci => FieldFormat::Hex(4),
        Field::PacketType => FieldFormat::PacketType,
        register if register.is_register() => FieldFormat::Hex(1),
        Field::NshSpi | Field::NshC1 | Field::NshC2 | Field::NshC3 | Field::NshC4 => FieldFormat::Hex(1),
        Field::IpFrag => FieldFormat::Fragment,
        Field::TcpFlags => FieldFormat::TcpFlags,
        _ => FieldFormat::Decimal,
    }
}

/// Words of `nw_frag`, each with value and mask. Bit 0: the packet is a fragment; bit 1: it is not the first
/// fragment.
const FRAGMENTS: [(&str, u128, u128); 5] =
    [("no", 0, 3), ("first", 1, 3), ("later", 3, 3), ("yes", 1, 1), ("not_later", 0, 2)];

/// Names of the TCP flags, lowest bit first.
pub(super) const TCP_FLAGS: [&str; 12] =
    ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns", "[200]", "[400]", "[800]"];

/// Parses a value with an optional mask. Returns `None` for a mask of all ones. Clears the value's bits outside the
/// mask.
pub(super) fn parse(field: Field, text: &str) -> Result<(u128, Option<u128>), String> {
    let (value, mask) = match form(field) {
        FieldFormat::Fragment => parse_fragment(text)?,
        FieldFormat::TcpFlags if text.starts_with(['+', '-']) => parse_signed_flags(text)?,
        form => {
            let (value, mask) = text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
            let mask = mask.map(|mask| parse_mask(form, field, mask)).transpose()?;
            (parse_one(form, field, value)?, mask.unwrap_or(field.all_ones()))
        }
    };
    if mask == field.all_ones() {
        return Ok((value, None));
    }
    if !field.is_maskable() {
        return Err(format!("a value without mask: {} is matched exactly or not at all", set_name(field)));
    }
    Ok((value & mask, Some(mask)))
}

fn parse_one(form: FieldFormat, field: Field, text: &str) -> Result<u128, String> {
    match form {
        FieldFormat::Mac => mac(text),
        FieldFormat::Ipv4 => text
            .parse::<Ipv4Addr>()
            .map(|address| u128::from(address.to_bits()))
            .map_err(|_| "an IPv4 address such as 10.0.0.1".into()),
        FieldFormat::Ipv6 => {
            text.parse::<Ipv6Addr>().map(Ipv6Addr::to_bits).map_err(|_| "an IPv6 address such as 2001:db8::1".into())
        }
        FieldFormat::PacketType => packet_type(text).map(|kind| u128::from(kind.to_bits())),
        FieldFormat::Port => port(text).map(|port| u128::from(port.0)),
        FieldFormat::TcpFlags if text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '[') => {
            text.split('|').try_fold(0, |flags, name| Ok(flags | flag(name)?))
        }
        _ => number::parse(text, field.all_ones()),
    }
}

fn parse_mask(form: FieldFormat, field: Field, text: &str) -> Result<u128, String> {
    let bits = field.bits();
    if matches!(form, FieldFormat::Ipv4 | FieldFormat::Ipv6) && !text.contains(['.', ':']) {
        let length = number::parse(text, u128::from(bits)).map_err(|_| format!("a prefix length from 0 to {bits}"))?;
        let host_bits = bits - u32::try_from(length).unwrap_or(bits);
        return Ok(field.all_ones() & u128::MAX.checked_shl(host_bits).unwrap_or(0));
    }
    parse_one(form, field, text).map_err(|expected| format!("as mask {expected}"))
}

fn parse_fragment(text: &str) -> Result<(u128, u128), String> {
    let known = FRAGMENTS.into_iter().find(|(name, _, _)| *name == text);
    if let Some((_, value, mask)) = known {
        return Ok((value, mask));
    }
    let bits = |text: &str| number::parse(text, 3).ok();
    let numbers = text.split_once('/').and_then(|(value, mask)| Some((bits(value)?, bits(mask)?)));
    numbers.ok_or_else(|| "one of no, yes, first, later, not_later".into())
}

/// Parses TCP flags with signs, `+syn-ack`: `+` for set, `-` for not set.
fn parse_signed_flags(text: &str) -> Result<(u128, u128), String> {
    let (mut value, mut mask, mut rest) = (0, 0, text);
    while let Some(sign) = rest.chars().next() {
        if !matches!(sign, '+' | '-') {
            return Err("`+` or `-` before every flag, as in +syn-ack".into());
        }
        let end = rest[1..].find(['+', '-']).map_or(rest.len(), |end| end + 1);
        let bit = flag(&rest[1..end])?;
        if mask & bit != 0 {
            return Err(format!("every flag at most once; {} is there twice", &rest[1..end]));
        }
        mask |= bit;
        value |= if sign == '+' { bit } else { 0 };
        rest = &rest[end..];
    }
    Ok((value, mask))
}

fn flag(name: &str) -> Result<u128, String> {
    let bit = TCP_FLAGS.iter().position(|known| *known == name);
    bit.map(|bit| 1 << bit).ok_or_else(|| format!("TCP flags: some of {}", TCP_FLAGS.join(", ")))
}

/// Parses a packet type, `(NAMESPACE,TYPE)` or both as one number.
fn packet_type(text: &str) -> Result<PacketType, String> {
    let expected = "a packet type such as (1,0x894f)";
    let inside = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let bits = match inside {
        None => number::u32(text).ok(),
        Some(inside) => inside.split_once(',').and_then(|(namespace, kind)| {
            let [namespace, kind] = [namespace, kind].map(|part| number::u16(part.trim()).ok().map(u32::from));
            Some(namespace? << 16 | kind?)
        }),
    };
    bits.map(PacketType::from_bits).ok_or_else(|| expected.into())
}

fn mac(text: &str) -> Result<u128, String> {
    let expected = "an Ethernet address such as 02:00:00:00:00:01";
    text.parse::<MacAddr>().map(|mac| u128::from(mac.to_bits())).map_err(|_| expected.into())
}

/// Parses a port number, decimal or hexadecimal, or the name of a reserved port.
pub(super) fn port(text: &str) -> Result<PortNo, String> {
    let expected =
        "a port number, or one of in_port, table, normal, flood, all, controller, local, any (NONE in OpenFlow 1.0)";
    match number::u32(text) {
        Ok(number) => Ok(PortNo(number)),
        Err(_) if text.eq_ignore_ascii_case("none") => Ok(PortNo::ANY),
        Err(_) => text.parse().map_err(|_| expected.into()),
    }
}

/// Prints a value without mask.
#[expect(clippy::cast_possible_truncation, reason = "a field's value has no more bits than the field")]
pub(super) fn value_text(field: Field, value: u128) -> String {
    match form(field) {
        FieldFormat::Decimal => value.to_string(),
        FieldFormat::Hex(digits) => format!("0x{value:0digits$x}"),
        FieldFormat::Mac => MacAddr::from_bits(value as u64).to_string(),
        FieldFormat::Ipv4 => Ipv4Addr::from_bits(value as u32).to_string(),
        FieldFormat::Ipv6 => Ipv6Addr::from_bits(value).to_string(),
        FieldFormat::Port => PortNo(value as u32).to_string(),
        FieldFormat::Fragment => fragment_text(value, 3),
        FieldFormat::PacketType => PacketType::from_bits(value as u32).to_string(),
        FieldFormat::TcpFlags => flags_text(value),
    }
}

/// Prints a value in the form of `set_field`: like [`value_text`], but hexadecimal numbers have no leading zeros.
pub(super) fn set_text(field: Field, value: u128) -> String {
    if matches!(form(field), FieldFormat::Hex(_)) { format!("{value:#x}") } else { value_text(field, value) }
}

/// Prints a value and its optional mask in the form of a match.
#[expect(clippy::cast_possible_truncation, reason = "a field's value has no more bits than the field")]
pub(super) fn match_text(field: Field, value: u128, mask: Option<u128>) -> String {
    let Some(mask) = mask.filter(|mask| *mask != field.all_ones()) else {
        return value_text(field, value);
    };
    match form(field) {
        FieldFormat::Ipv4 | FieldFormat::Ipv6 => match prefix_length(field, mask) {
            Some(length) => format!("{}/{length}", value_text(field, value)),
            None => format!("{}/{}", value_text(field, value), value_text(field, mask)),
        },
        FieldFormat::Hex(digits) => format!("0x{value:0digits$x}/0x{mask:0digits$x}"),
        FieldFormat::Mac => format!("{}/{}", MacAddr::from_bits(value as u64), MacAddr::from_bits(mask as u64)),
        FieldFormat::Fragment => fragment_text(value, mask),
        FieldFormat::TcpFlags if value & !mask == 0 && mask != 0 => signed_flags_text(value, mask),
        _ => format!("{value:#x}/{mask:#x}"),
    }
}

/// Returns the prefix length of a mask; `None` if the mask does not select a prefix.
fn prefix_length(field: Field, mask: u128) -> Option<u32> {
    let length = mask.count_ones();
    let host_bits = field.bits() - length.min(field.bits());
    (mask == field.all_ones() & u128::MAX.checked_shl(host_bits).unwrap_or(0)).then_some(length)
}

fn fragment_text(value: u128, mask: u128) -> String {
    let known = FRAGMENTS.into_iter().find(|(_, v, m)| (*v, *m) == (value, mask));
    known.map_or_else(|| format!("{value:#x}/{mask:#x}"), |(name, _, _)| name.into())
}

fn flags_text(flags: u128) -> String {
    let set = (0..TCP_FLAGS.len()).filter(|bit| flags >> bit & 1 != 0);
    let names: Vec<&str> = set.map(|bit| TCP_FLAGS[bit]).collect();
    if names.is_empty() { "0".into() } else { names.join("|") }
}

fn signed_flags_text(value: u128, mask: u128) -> String {
    let mut text = String::new();
    for bit in (0..TCP_FLAGS.len()).filter(|bit| mask >> bit & 1 != 0) {
        let sign = if value >> bit & 1 != 0 { '+' } else { '-' };
        let _ = write!(text, "{sign}{}", TCP_FLAGS[bit]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_masks_both_ways() {
        let cases = [
            (Field::Ipv4Dst, "10.0.0.0/8"),
            (Field::Ipv4Dst, "10.0.0.1/255.0.0.255"),
            (Field::Ipv6Src, "2001:db8::/32"),
            (Field::EthDst, "01:00:00:00:00:00/01:00:00:00:00:00"),
            (Field::Metadata, "0x10/0xf0"),
            (Field::TcpDst, "0x1000/0xf000"),
            (Field::TcpFlags, "+syn-ack"),
            (Field::TcpFlags, "syn|ack"),
            (Field::IpFrag, "not_later"),
            (Field::IpFrag, "first"),
            (Field::IpFrag, "0x2/0x2"),
            (Field::InPort, "LOCAL"),
            (Field::Ipv6Flabel, "0x00005/0x000ff"),
            (Field::MplsLabel, "1048575"),
            (Field::PacketType, "(1,0x894f)"),
            (Field::PacketType, "(0,0)"),
        ];
        for (field, text) in cases {
            let (value, mask) = parse(field, text).unwrap();
            assert_eq!(match_text(field, value, mask), text);
        }
    }

    #[test]
    fn a_value_loses_bits_outside_its_mask() {
        assert_eq!(parse(Field::Ipv4Dst, "10.1.2.3/8"), Ok((0x0a00_0000, Some(0xff00_0000))));
        assert_eq!(parse(Field::Ipv4Dst, "10.1.2.3/32"), Ok((0x0a01_0203, None)));
        assert_eq!(parse(Field::Ipv4Dst, "10.1.2.3/0"), Ok((0, Some(0))));
        assert_eq!(parse(Field::Ipv6Dst, "::1/0"), Ok((0, Some(0))));
    }

    #[test]
    fn wrong_values_are_refused() {
        let wrong = [
            (Field::Ipv4Dst, "10.0.0.0/33"),
            (Field::Ipv4Dst, "10.0.0"),
            (Field::IpDscp, "64"),
            (Field::IpDscp, "1/1"),
            (Field::TcpFlags, "+syn+syn"),
            (Field::TcpFlags, "+sun"),
            (Field::TcpFlags, "+é"),
            (Field::IpFrag, "maybe"),
            (Field::EthDst, "1:2:3"),
            (Field::PacketType, "(1)"),
            (Field::PacketType, "(1,0x10000)"),
            (Field::PacketType, "(1,2"),
            (Field::InPort, "eth0"),
        ];
        for (field, text) in wrong {
            assert!(parse(field, text).is_err(), "{field} {text}");
        }
    }

    #[test]
    fn names_find_their_field() {
        for field in Field::ALL {
            assert_eq!((named(field.name()), named(set_name(field))), (Some(field), Some(field)));
        }
        assert_eq!(named("dl_src"), Some(Field::EthSrc));
    }
}
