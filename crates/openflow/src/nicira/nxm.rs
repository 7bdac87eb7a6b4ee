//! Reads and writes Nicira's match fields, classes `NXM_OF_*` (0x0000) and `NXM_NX_*` (0x0001), and the headers by
//! which actions name fields.
//!
//! The fields equal those of the standard's class, which has newer names for most of them, with three exceptions:
//! ports have 16 bits, the type-of-service byte is the DSCP's six bits and two zeros, and the VLAN tag is one field.
use crate::model::OxmClass;
use crate::model::error::{BadAction, BadMatch, ErrorType};
use crate::model::matching::MatchField;
use crate::model::multipart::OxmId;
use crate::model::{Match, PortNo, Subfield};
use crate::v10::port;
use crate::v13::oxm;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};
use weir_packet::Field;

/// Class numbers.
const NXM_0: u16 = OxmClass::Nxm0.number();
const NXM_1: u16 = OxmClass::Nxm1.number();
/// Field number of `NXM_NX_COOKIE`. The cookie is not a field of packets, but selects flow entries in a request.
const COOKIE: u8 = 30;

/// Nicira's class, number and name of a field.
pub(crate) struct NxmField {
    pub(crate) field: Field,
    class: u16,
    number: u8,
    pub(crate) name: &'static str,
}

/// Fields of class 0x0000 in the order of their numbers, then fields of class 0x0001 except registers and TCP flags.
const FIELDS: [(Field, u16, u8, &str); 34] = [
    (Field::InPort, NXM_0, 0, "NXM_OF_IN_PORT"),
    (Field::EthDst, NXM_0, 1, "NXM_OF_ETH_DST"),
    (Field::EthSrc, NXM_0, 2, "NXM_OF_ETH_SRC"),
    (Field::EthType, NXM_0, 3, "NXM_OF_ETH_TYPE"),
    (Field::VlanTci, NXM_0, 4, "NXM_OF_VLAN_TCI"),
    (Field::IpDscp, NXM_0, 5, "NXM_OF_IP_TOS"),
    (Field::IpProto, NXM_0, 6, "NXM_OF_IP_PROTO"),
    (Field::Ipv4Src, NXM_0, 7, "NXM_OF_IP_SRC"),
    (Field::Ipv4Dst, NXM_0, 8, "NXM_OF_IP_DST"),
    (Field::TcpSrc, NXM_0, 9, "NXM_OF_TCP_SRC"),
    (Field::TcpDst, NXM_0, 10, "NXM_OF_TCP_DST"),
    (Field::UdpSrc, NXM_0, 11, "NXM_OF_UDP_SRC"),
    (Field::UdpDst, NXM_0, 12, "NXM_OF_UDP_DST"),
    (Field::Icmpv4Type, NXM_0, 13, "NXM_OF_ICMP_TYPE"),
    (Field::Icmpv4Code, NXM_0, 14, "NXM_OF_ICMP_CODE"),
    (Field::ArpOp, NXM_0, 15, "NXM_OF_ARP_OP"),
    (Field::ArpSpa, NXM_0, 16, "NXM_OF_ARP_SPA"),
    (Field::ArpTpa, NXM_0, 17, "NXM_OF_ARP_TPA"),
    (Field::TunnelId, NXM_1, 16, "NXM_NX_TUN_ID"),
    (Field::ArpSha, NXM_1, 17, "NXM_NX_ARP_SHA"),
    (Field::ArpTha, NXM_1, 18, "NXM_NX_ARP_THA"),
    (Field::Ipv6Src, NXM_1, 19, "NXM_NX_IPV6_SRC"),
    (Field::Ipv6Dst, NXM_1, 20, "NXM_NX_IPV6_DST"),
    (Field::Icmpv6Type, NXM_1, 21, "NXM_NX_ICMPV6_TYPE"),
    (Field::Icmpv6Code, NXM_1, 22, "NXM_NX_ICMPV6_CODE"),
    (Field::Ipv6NdTarget, NXM_1, 23, "NXM_NX_ND_TARGET"),
    (Field::Ipv6NdSll, NXM_1, 24, "NXM_NX_ND_SLL"),
    (Field::Ipv6NdTll, NXM_1, 25, "NXM_NX_ND_TLL"),
    (Field::IpFrag, NXM_1, 26, "NXM_NX_IP_FRAG"),
    (Field::Ipv6Flabel, NXM_1, 27, "NXM_NX_IPV6_LABEL"),
    (Field::IpEcn, NXM_1, 28, "NXM_NX_IP_ECN"),
    (Field::TunSrc, NXM_1, 31, "NXM_NX_TUN_IPV4_SRC"),
    (Field::TunDst, NXM_1, 32, "NXM_NX_TUN_IPV4_DST"),
    (Field::PktMark, NXM_1, 33, "NXM_NX_PKT_MARK"),
];

/// Registers, which are of class 0x0001.
const REGISTERS: [(Field, u8, &str); 20] = [
    (Field::Reg0, 0, "NXM_NX_REG0"),
    (Field::Reg1, 1, "NXM_NX_REG1"),
    (Field::Reg2, 2, "NXM_NX_REG2"),
    (Field::Reg3, 3, "NXM_NX_REG3"),
    (Field::Reg4, 4, "NXM_NX_REG4"),
    (Field::Reg5, 5, "NXM_NX_REG5"),
    (Field::Reg6, 6, "NXM_NX_REG6"),
    (Field::Reg7, 7, "NXM_NX_REG7"),
    (Field::Reg8, 8, "NXM_NX_REG8"),
    (Field::Reg9, 9, "NXM_NX_REG9"),
    (Field::Reg10, 10, "NXM_NX_REG10"),
    (Field::Reg11, 11, "NXM_NX_REG11"),
    (Field::Reg12, 12, "NXM_NX_REG12"),
    (Field::Reg13, 13, "NXM_NX_REG13"),
    (Field::Reg14, 14, "NXM_NX_REG14"),
    (Field::Reg15, 15, "NXM_NX_REG15"),
    (Field::Xxreg0, 111, "NXM_NX_XXREG0"),
    (Field::Xxreg1, 112, "NXM_NX_XXREG1"),
    (Field::Xxreg2, 113, "NXM_NX_XXREG2"),
    (Field::Xxreg3, 114, "NXM_NX_XXREG3"),
];

/// TCP flags. Outside Nicira's classes they are a field of the Open Networking Foundation's experimenter class, and a
/// basic field from OpenFlow 1.5 on.
const TCP_FLAGS: (Field, u16, u8, &str) = (Field::TcpFlags, NXM_1, 34, "NXM_NX_TCP_FLAGS");

/// Returns every field that has a Nicira name.
pub(crate) fn all() -> impl Iterator<Item = NxmField> {
    let registers = REGISTERS.into_iter().map(|(field, number, name)| (field, NXM_1, number, name));
    let fields = FIELDS.into_iter().chain([TCP_FLAGS]).chain(registers);
    fields.map(|(field, class, number, name)| NxmField { field, class, number, name })
}

fn of(field: Field) -> Option<NxmField> {
    all().find(|nxm| nxm.field == field)
}

fn from_wire(class: u16, number: u8) -> Option<NxmField> {
    all().find(|nxm| (nxm.class, nxm.number) == (class, number))
}

/// Returns true if this module reads entries of the class.
const fn is_class(class: u16) -> bool {
    class == NXM_0 || class == NXM_1
}

impl NxmField {
    /// Returns the length of a value in bytes.
    const fn bytes(&self) -> usize {
        match self.field {
            Field::InPort => 2,
            field => field.bytes(),
        }
    }

    fn value_from_wire(&self, value: u128) -> u128 {
        match self.field {
            Field::InPort => port::from_wire(u16::try_from(value).unwrap_or(u16::MAX)).0.into(),
            Field::IpDscp => value >> 2,
            _ => value,
        }
    }
}

/// Returns the field of an entry in one of Nicira's classes; `None` for other classes and unknown fields. The entry's
/// header is already read; `payload` is value and mask. Fails if the length is wrong or the field allows no mask.
pub(crate) fn field_of(class: u16, number: u8, has_mask: bool, payload: &[u8]) -> Option<Result<MatchField, String>> {
    if !is_class(class) {
        return None;
    }
    let nxm = from_wire(class, number)?;
    let (name, expected) = (nxm.name, nxm.bytes() * if has_mask { 2 } else { 1 });
    if payload.len() != expected {
        return Some(Err(format!("{name}: found {} bytes of value and mask, expected {expected}", payload.len())));
    }
    let number = |bytes: &[u8]| bytes.iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    let (value, mask) = payload.split_at(nxm.bytes());
    let value = nxm.value_from_wire(number(value));
    let mask = has_mask.then(|| match nxm.field {
        Field::InPort => Err(format!("{name}: found a mask, expected none")),
        Field::IpDscp => Ok(number(mask) >> 2),
        _ => Ok(number(mask)),
    });
    Some(mask.transpose().map(|mask| MatchField::Known { field: nxm.field, value, mask }))
}

/// Cookie and mask that a match contains in addition to fields of packets.
pub(crate) type CookieMatch = Option<(u64, u64)>;

/// Reads a match as in Nicira's messages: `length` bytes of entries, then padding.
pub(crate) fn decode_match(reader: &mut WireReader<'_>, length: u16) -> Decoded<(Match, CookieMatch)> {
    let fields = decode_fields(reader, length)?;
    let length = usize::from(length);
    reader.take_part(length.next_multiple_of(8) - length, "match padding", BadMatch::BadLen)?;
    Ok(fields)
}

/// Reads `length` bytes of entries.
pub(crate) fn decode_fields(reader: &mut WireReader<'_>, length: u16) -> Decoded<(Match, CookieMatch)> {
    let mut part = reader.take_part(length.into(), "match", BadMatch::BadLen)?;
    let (mut fields, mut cookie) = (Vec::new(), None);
    while !part.is_empty() {
        let at = part.at();
        match oxm::decode_entry(&mut part, BadMatch::BadLen.into())? {
            MatchField::Raw(raw) if (raw.class, raw.number) == (NXM_1, COOKIE) => {
                let bytes: &[u8] = &raw.payload.0;
                let number =
                    |at: usize| bytes.get(at..at + 8).and_then(|b| Some(u64::from_be_bytes(b.try_into().ok()?)));
                cookie = match (raw.has_mask, bytes.len(), number(0), number(8)) {
                    (false, 8, Some(value), _) => Some((value, u64::MAX)),
                    (true, 16, Some(value), Some(mask)) => Some((value, mask)),
                    _ => {
                        let reason = format!("found {} bytes of cookie and mask", bytes.len());
                        return Err(part.error_at(at, BadMatch::BadLen, reason));
                    }
                };
            }
            field => fields.push(field),
        }
    }
    Ok((Match { fields }, cookie))
}

/// Writes a match as in Nicira's messages, with padding, and its length into the 16 bits at offset `place`.
pub(crate) fn encode_match(
    matching: &Match,
    cookie: CookieMatch,
    place: usize,
    writer: &mut WireWriter<'_>,
) -> Encoded {
    let start = writer.at();
    encode_fields(matching, writer)?;
    if let Some((value, mask)) = cookie {
        writer.write_u16(NXM_1);
        writer.write_u8(COOKIE << 1 | 1);
        writer.write_u8(16);
        writer.write_u64(value);
        writer.write_u64(mask);
    }
    writer.set_length(place, start)?;
    writer.pad_from(start);
    Ok(())
}

/// Writes the entries of a match.
pub(crate) fn encode_fields(matching: &Match, writer: &mut WireWriter<'_>) -> Encoded {
    matching.fields.iter().try_for_each(|entry| match entry {
        MatchField::Known { field, value, mask } => encode_field(*field, *value, *mask, writer),
        MatchField::Raw(raw) => oxm::encode_raw(raw, writer),
    })
}

/// Writes a field in Nicira's class if it has a Nicira name, otherwise in the standard's class.
fn encode_field(field: Field, value: u128, mask: Option<u128>, writer: &mut WireWriter<'_>) -> Encoded {
    let Some(nxm) = of(field) else { return oxm::encode_field(field, value, mask, writer) };
    if field != Field::InPort && field != Field::IpDscp {
        return oxm::encode_under(nxm.class, nxm.number, field, value, mask, writer);
    }
    if mask.is_some_and(|mask| mask != field.all_ones()) || value > field.all_ones() {
        return Err(writer.cannot(format!("{field} with a mask or too large a value")));
    }
    writer.write_u16(nxm.class);
    writer.write_u8(nxm.number << 1);
    writer.write_u8(u8::try_from(nxm.bytes()).unwrap_or(u8::MAX));
    if field == Field::InPort {
        return port::encode_no(PortNo(u32::try_from(value).unwrap_or(u32::MAX)), writer);
    }
    writer.write_u8(u8::try_from(value << 2).unwrap_or(u8::MAX));
    Ok(())
}

/// Reads the header by which an action names a field. Returns the field, with the range of bits that the header
/// stands for.
pub(crate) fn decode_header(reader: &mut WireReader<'_>) -> Decoded<Subfield> {
    let at = reader.at();
    let id = oxm::decode_id(reader)?;
    let found = match from_wire(id.class.number(), id.number) {
        // The two low bits of the type-of-service byte belong to no field.
        Some(NxmField { field: Field::IpDscp, .. }) => None,
        Some(nxm) => Some((nxm.field, nxm.bytes())),
        None => id.field().map(|field| (field, field.bytes() + if id.experimenter.is_some() { 4 } else { 0 })),
    };
    let unknown = || {
        let reason = format!("found field {:#06x}:{}, which weir does not know", id.class.number(), id.number);
        reader.error_at(at, BadMatch::BadField, reason)
    };
    let (field, bytes) = found.ok_or_else(unknown)?;
    if usize::from(id.length) != bytes || id.has_mask {
        let reason = format!("{field}: found length {}, mask: {}, expected {bytes}, no mask", id.length, id.has_mask);
        return Err(reader.error_at(at, BadMatch::BadLen, reason));
    }
    let all = Subfield::all(field);
    Ok(if field == Field::InPort && bytes == 2 { Subfield { bits: 16, ..all } } else { all })
}

/// Reads a header, including its padding to eight bytes, and checks that the bits lie within the field.
pub(crate) fn decode_subfield(reader: &mut WireReader<'_>, offset: u16, bits: u16) -> Decoded<Subfield> {
    let at = reader.at();
    let all = decode_header(reader)?;
    within(all, offset, bits).ok_or_else(|| {
        let reason = format!("found bits {offset} and {bits} on, expected some of the {} of {}", all.bits, all.field);
        reader.error_at(at, ErrorType::from(BadAction::BadArgument), reason)
    })
}

fn within(all: Subfield, offset: u16, bits: u16) -> Option<Subfield> {
    (bits > 0 && u32::from(offset) + u32::from(bits) <= u32::from(all.bits)).then_some(Subfield { offset, bits, ..all })
}

/// Splits `ofs_nbits` into the offset (ten bits) and the number of bits (stored minus one).
pub(crate) const fn split_bits(both: u16) -> (u16, u16) {
    (both >> 6, (both & 0x3f) + 1)
}

/// Highest offset that ten bits can hold.
const MAX_OFFSET: u16 = 0x3ff;

/// Writes `ofs_nbits`; fails if the range does not fit.
pub(crate) fn encode_bits(part: Subfield, writer: &mut WireWriter<'_>) -> Encoded {
    if part.bits == 0 || part.bits > 64 {
        return Err(writer.cannot(format!("{} bits of {} at once, at most 64", part.bits, part.field)));
    }
    if part.offset > MAX_OFFSET {
        return Err(writer.cannot(format!("bits of {} from {} on, at most from {MAX_OFFSET}", part.field, part.offset)));
    }
    writer.write_u16(part.offset << 6 | (part.bits - 1));
    Ok(())
}

/// Writes the header by which an action names a field.
pub(crate) fn encode_header(part: Subfield, writer: &mut WireWriter<'_>) -> Encoded {
    // The 32-bit port field has only the standard's header.
    let is_wide_port = part.field == Field::InPort && u32::from(part.offset) + u32::from(part.bits) > 16;
    let own = of(part.field).filter(|nxm| !is_wide_port && nxm.field != Field::IpDscp);
    if let Some(nxm) = own {
        writer.write_u16(nxm.class);
        writer.write_u8(nxm.number << 1);
        writer.write_u8(u8::try_from(nxm.bytes()).unwrap_or(u8::MAX));
        return Ok(());
    }
    let id = OxmId::of(part.field, false).ok_or_else(|| writer.cannot(format!("an action on bits of {}", part.field)));
    oxm::encode_id(&id?, writer)
}

/// Returns the length of a field's header in bytes.
pub(crate) fn header_bytes(part: Subfield) -> usize {
    let is_own = of(part.field).is_some_and(|nxm| nxm.field != Field::IpDscp);
    if is_own || OxmId::of(part.field, false).is_none_or(|id| id.experimenter.is_none()) { 4 } else { 8 }
}
