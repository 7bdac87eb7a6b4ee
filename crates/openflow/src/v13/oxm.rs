//! Reads and writes matches: lists of type-length-value entries, OXM (OpenFlow 1.3.5, 7.2.3).
//!
//! Known fields are those of 1.3's class `OFPXMC_OPENFLOW_BASIC`, and further fields in the form in which they are
//! commonly sent:
//! - `tcp_flags` and `actset_output` as the Open Networking Foundation's extensions for 1.3, which Open vSwitch and
//!   os-ken send, also in 1.4; in 1.5 they are fields of the basic class.
//! - `pbb_uca` as the foundation's extension 256; in 1.4 it is a field of the basic class.
//! - Open vSwitch's own fields as it sends them.
//!
//! All other fields stay uninterpreted.
use crate::codec::DecodeError;
use crate::model::error::{BadMatch, ErrorType};
use crate::model::matching::RawField;
use crate::model::multipart::OxmId;
use crate::model::{Match, MatchField, OxmClass, Version};
use crate::nicira::nxm;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};
use weir_packet::Field;

/// Match type `OFPMT_OXM`.
pub(crate) const MATCH_OXM: u16 = 1;
/// Class numbers.
const NXM_0: u16 = OxmClass::Nxm0.number();
const NXM_1: u16 = OxmClass::Nxm1.number();
const BASIC: u16 = OxmClass::OpenflowBasic.number();
const EXPERIMENTER: u16 = OxmClass::Experimenter.number();
const PACKET_REGS: u16 = OxmClass::PacketRegs.number();
/// Field number of `NXM_NX_IP_FRAG`.
const NX_IP_FRAG: u8 = 26;
/// Field number of `NXM_NX_TUN_IPV4_SRC`; the destination's is the next.
const NX_TUN_IPV4_SRC: u8 = 31;
/// Field number of `NXM_NX_XXREG0`; those of the other registers follow.
const NX_XXREG: u8 = 111;
/// Experimenter number of Open vSwitch's NSH fields.
const NSH: &[u8] = &[0x00, 0x5a, 0xd6, 0x50];
/// Prefix of `ONFOXM_ET_PBB_UCA` of extension 256: experimenter number, then the field's own number. The field number
/// in the header is 0.
const ONF_PBB_UCA: [u8; 6] = [0x4f, 0x4e, 0x46, 0x00, 0x0a, 0x00];

/// Header of an entry, and the prefix of its value: the experimenter number.
struct OxmHeader {
    class: u16,
    number: u8,
    prefix: &'static [u8],
}

const fn oxm_header(field: Field, version: Version) -> OxmHeader {
    match field {
        Field::PbbUca if version as u8 >= Version::V14 as u8 => basic_oxm_header(field),
        Field::TcpFlags | Field::ActsetOutput if version as u8 >= Version::V15 as u8 => basic_oxm_header(field),
        Field::VlanTci => OxmHeader { class: NXM_0, number: 4, prefix: &[] },
        Field::PktMark => OxmHeader { class: NXM_1, number: 33, prefix: &[] },
        Field::IpFrag => OxmHeader { class: NXM_1, number: NX_IP_FRAG, prefix: &[] },
        // As extensions, fields keep the numbers that they have in later versions.
        Field::TcpFlags | Field::ActsetOutput => {
            OxmHeader { class: EXPERIMENTER, number: field as u8, prefix: ONF_PBB_UCA.split_at(4).0 }
        }
        Field::PbbUca => OxmHeader { class: EXPERIMENTER, number: 0, prefix: &ONF_PBB_UCA },
        Field::TunSrc | Field::TunDst => {
            OxmHeader { class: NXM_1, number: field as u8 - Field::TunSrc as u8 + NX_TUN_IPV4_SRC, prefix: &[] }
        }
        register if register.is_wide_register() && register.bits() == 64 => {
            OxmHeader { class: PACKET_REGS, number: register as u8 - Field::Xreg0 as u8, prefix: &[] }
        }
        register if register.is_wide_register() => {
            OxmHeader { class: NXM_1, number: register as u8 - Field::Xxreg0 as u8 + NX_XXREG, prefix: &[] }
        }
        register if register.is_register() => {
            OxmHeader { class: NXM_1, number: register as u8 - Field::Reg0 as u8, prefix: &[] }
        }
        nsh if nsh.is_nsh() => OxmHeader { class: EXPERIMENTER, number: nsh_number(nsh), prefix: NSH },
        // Numbers in the basic class equal the field's discriminant.
        basic => basic_oxm_header(basic),
    }
}

/// Fields with different headers in different versions. Their number is the same in all headers that `OxmId` can hold.
const MOVED: [Field; 3] = [Field::PbbUca, Field::TcpFlags, Field::ActsetOutput];

// A new field outside the basic class needs an arm above; one that a later version moves has to be in `MOVED`.
const _: () = {
    let mut at = 0;
    while at < Field::ALL.len() {
        let field = Field::ALL[at];
        let (first, last) = (oxm_header(field, Version::V13), oxm_header(field, Version::V15));
        assert!(first.class != BASIC || field.oxm().is_some(), "a field has no header");
        let is_moved = matches!(field, Field::PbbUca | Field::TcpFlags | Field::ActsetOutput);
        assert!(is_moved || (first.class == last.class && first.number == last.number), "a moved field is missing");
        at += 1;
    }
};

const fn basic_oxm_header(field: Field) -> OxmHeader {
    OxmHeader { class: BASIC, number: field as u8, prefix: &[] }
}

/// Returns the number of an NSH field, `NXOXM_NSH_*`.
const fn nsh_number(field: Field) -> u8 {
    match field {
        Field::NshFlags => 1,
        Field::NshMdtype => 2,
        Field::NshNp => 3,
        Field::NshSpi => 4,
        Field::NshSi => 5,
        Field::NshTtl => 10,
        context => 6 + context as u8 - Field::NshC1 as u8,
    }
}

/// Returns the field for an entry's header and payload, and the prefix before its value. Extensions that are basic
/// fields in `version` are still accepted.
fn field_of(class: u16, number: u8, payload: &[u8], version: Version) -> Option<(Field, &'static [u8])> {
    if class == BASIC {
        let field = Field::from_oxm(number).filter(|field| oxm_header(*field, version).class == BASIC);
        return field.map(|field| (field, &[][..]));
    }
    Field::ALL.into_iter().find_map(|field| {
        let head = oxm_header(field, Version::V13);
        let is_it = (head.class, head.number) == (class, number) && payload.starts_with(head.prefix);
        is_it.then_some((field, head.prefix))
    })
}

/// Reads a match with its header and padding.
pub(crate) fn decode_match(reader: &mut WireReader<'_>) -> Decoded<Match> {
    let at = reader.at();
    let mut fields = reader.take_element("match", 2, 4, BadMatch::BadLen)?;
    let length = fields.left();
    let kind = fields.read_u16()?;
    if kind != MATCH_OXM {
        return Err(fields.error_at(at, BadMatch::BadType, format_args!("found match type {kind}, expected 1 (OXM)")));
    }
    fields.skip(2)?;
    let fields = fields.read_list(|fields| decode_entry(fields, BadMatch::BadLen.into()))?;
    // Missing padding is an error of the match. Otherwise the error would be reported for the instructions that
    // follow.
    let padding = length.next_multiple_of(8) - length;
    reader.take_part(padding, "match padding", BadMatch::BadLen)?;
    Ok(Match { fields })
}

/// Writes a match with its header and padding.
pub(crate) fn encode_match(matching: &Match, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    encode_unpadded(matching, writer)?;
    writer.pad_from(start);
    Ok(())
}

/// Writes a match with its header, without padding.
pub(crate) fn encode_unpadded(matching: &Match, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u16(MATCH_OXM);
    writer.write_u16(0);
    matching.fields.iter().try_for_each(|entry| encode_entry(entry, writer))?;
    writer.set_length(start + 2, start)
}

/// Writes one entry.
pub(crate) fn encode_entry(entry: &MatchField, writer: &mut WireWriter<'_>) -> Encoded {
    match entry {
        MatchField::Known { field, value, mask } => encode_field(*field, *value, *mask, writer),
        MatchField::Raw(raw) => encode_raw(raw, writer),
    }
}

/// Reads one entry. `bad_length` is the error for a known field with a wrong length.
pub(crate) fn decode_entry(reader: &mut WireReader<'_>, bad_length: ErrorType) -> Decoded<MatchField> {
    let at = reader.at();
    let (class, tail) = (reader.read_u16()?, reader.read_u8()?);
    let (number, has_mask) = (tail >> 1, tail & 1 != 0);
    let length = usize::from(reader.read_u8()?);
    let mut payload = reader.take_part(length, "field", bad_length)?;
    let bytes = payload.read_rest_slice();
    if let Some(known) = nxm::field_of(class, number, has_mask, bytes) {
        return known.map_err(|reason| DecodeError { error: bad_length, reason: format!("byte {at}: {reason}") });
    }
    let Some((field, prefix)) = field_of(class, number, bytes, reader.version()) else {
        return Ok(MatchField::Raw(RawField { class, number, has_mask, payload: bytes.to_vec().into() }));
    };
    let data = &bytes[prefix.len()..];
    let expected = field.bytes() * if has_mask { 2 } else { 1 };
    if data.len() != expected {
        let found = data.len();
        let reason = format!("byte {at}: {field}: found {found} bytes of value and mask, expected {expected}");
        return Err(DecodeError { error: bad_length, reason });
    }
    let (value, mask) = data.split_at(field.bytes());
    Ok(MatchField::Known { field, value: number_of(value), mask: has_mask.then(|| number_of(mask)) })
}

/// Returns a big-endian number of up to 16 bytes.
fn number_of(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Writes an entry of a known field.
pub(crate) fn encode_field(field: Field, value: u128, mask: Option<u128>, writer: &mut WireWriter<'_>) -> Encoded {
    encode(oxm_header(field, writer.version()), field, value, mask, writer)
}

/// Writes an entry of a known field with another class and number.
pub(crate) fn encode_under(
    class: u16,
    number: u8,
    field: Field,
    value: u128,
    mask: Option<u128>,
    writer: &mut WireWriter<'_>,
) -> Encoded {
    encode(OxmHeader { class, number, prefix: &[] }, field, value, mask, writer)
}

fn encode(head: OxmHeader, field: Field, value: u128, mask: Option<u128>, writer: &mut WireWriter<'_>) -> Encoded {
    let width = field.bytes();
    let largest = u128::MAX >> (128 - 8 * width);
    if let Some(wrong) = [Some(value), mask].into_iter().flatten().find(|number| *number > largest) {
        return Err(writer.cannot(format!("{wrong:#x} in {field}, whose value has {width} bytes")));
    }
    let OxmHeader { class, number, prefix } = head;
    let length = prefix.len() + width * if mask.is_some() { 2 } else { 1 };
    writer.write_u16(class);
    writer.write_u8(number << 1 | u8::from(mask.is_some()));
    #[expect(clippy::cast_possible_truncation, reason = "at most 6 + 2 * 16")]
    writer.write_u8(length as u8);
    writer.write_bytes(prefix);
    for number in [Some(value), mask].into_iter().flatten() {
        writer.write_bytes(&number.to_be_bytes()[16 - width..]);
    }
    Ok(())
}

/// Writes an uninterpreted entry.
pub(crate) fn encode_raw(raw: &RawField, writer: &mut WireWriter<'_>) -> Encoded {
    let Ok(length) = u8::try_from(raw.payload.0.len()) else {
        return Err(writer.cannot(format!("a field of {} bytes, at most 255 fit", raw.payload.0.len())));
    };
    writer.write_u16(raw.class);
    writer.write_u8(raw.number << 1 | u8::from(raw.has_mask));
    writer.write_u8(length);
    writer.write_bytes(&raw.payload.0);
    Ok(())
}

/// Reads a header without payload, as in table features.
pub(crate) fn decode_id(reader: &mut WireReader<'_>) -> Decoded<OxmId> {
    let (class, tail, length) = (OxmClass::from_number(reader.read_u16()?), reader.read_u8()?, reader.read_u8()?);
    let experimenter = if class == OxmClass::Experimenter { Some(reader.read_u32()?) } else { None };
    Ok(OxmId { class, number: tail >> 1, has_mask: tail & 1 != 0, length, experimenter }.in_version(reader.version()))
}

pub(crate) fn encode_id(id: &OxmId, writer: &mut WireWriter<'_>) -> Encoded {
    let id = id.in_version(writer.version());
    if (id.class == OxmClass::Experimenter) != id.experimenter.is_some() {
        return Err(writer.cannot("a field id whose class and experimenter disagree"));
    }
    writer.write_u16(id.class.number());
    writer.write_u8(id.number << 1 | u8::from(id.has_mask));
    writer.write_u8(id.length);
    if let Some(experimenter) = id.experimenter {
        writer.write_u32(experimenter);
    }
    Ok(())
}

/// Writes the header of a field's entry, without mask.
pub(crate) fn encode_field_id(field: Field, writer: &mut WireWriter<'_>) -> Encoded {
    match OxmId::of_version(field, false, writer.version()) {
        Some(id) => encode_id(&id, writer),
        None => Err(writer.cannot(format!("{field} by its header"))),
    }
}

impl OxmId {
    /// Returns the header of a field's entry in 1.3, for table features. The codecs of later versions convert it to
    /// their form.
    ///
    /// `None` for `pbb_uca`, whose number does not fit a header.
    pub fn of(field: Field, has_mask: bool) -> Option<OxmId> {
        OxmId::of_version(field, has_mask, Version::V13)
    }

    /// Returns the header of a field's entry in a version. `None` for `pbb_uca` in 1.3, whose number does not fit a
    /// header.
    #[expect(clippy::cast_possible_truncation, reason = "at most 4 + 2 * 16")]
    pub fn of_version(field: Field, has_mask: bool, version: Version) -> Option<OxmId> {
        let OxmHeader { class, number, prefix } = oxm_header(field, version);
        let length = (prefix.len() + field.bytes() * if has_mask { 2 } else { 1 }) as u8;
        let own = prefix.first_chunk().map(|id| u32::from_be_bytes(*id));
        let experimenter = own.filter(|_| class == EXPERIMENTER);
        let is_whole = field != Field::PbbUca || class == BASIC;
        let class = OxmClass::from_number(class);
        is_whole.then_some(OxmId { class, number, has_mask, length, experimenter })
    }

    /// Returns the field that this is the header of; `None` if weir does not know it.
    pub fn field(&self) -> Option<Field> {
        let prefix = self.experimenter.map(u32::to_be_bytes);
        let field = field_of(self.class.number(), self.number, prefix.as_ref().map_or(&[], |id| &id[..]), Version::V15);
        field.map(|(field, _)| field)
    }

    /// Returns the header of the same field in another version. Headers of unknown fields, and headers that no
    /// version has, are returned unchanged.
    fn in_version(self, version: Version) -> OxmId {
        // A description of tables has thousands of headers: most are known by their number to be the same everywhere.
        let Some(field) = MOVED.into_iter().find(|field| *field as u8 == self.number) else { return self };
        let of_version = |version| OxmId::of_version(field, self.has_mask, version);
        match of_version(version) {
            Some(found) if Version::ALL.iter().any(|from| of_version(*from) == Some(self)) => found,
            _ => self,
        }
    }
}
