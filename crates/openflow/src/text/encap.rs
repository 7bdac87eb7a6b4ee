//! Parses and prints the actions that push and remove headers: `encap(nsh(md_type=1))`, `decap()`.
use super::scan::{KeyValueItem, KeyValueScanner};
use super::{ParseError, number, raw};
use crate::model::{Action, EncapHeader, NshHeader, NshTlv};
use weir_packet::{PacketType, nsh};

const EXPECTED: &str = "ethernet or nsh(...), as in encap(nsh(md_type=1))";
const EXPECTED_TLV: &str = "class, type and value of at most 127 bytes, as in tlv(0x1000,10,0x12345678)";
const EXPECTED_DECAP: &str =
    "nothing, or the type of what is under the header, as in decap(packet_type(ns=1,type=0x894f))";

/// Returns the item of a list that must have exactly one.
fn only<'a>(text: &'a str, base: usize, expected: &str) -> Result<KeyValueItem<'a>, ParseError> {
    let mut items = KeyValueScanner::new(text, base);
    let found = || ParseError::new(base, text, expected);
    let item = items.next()?.ok_or_else(found)?;
    if items.next()?.is_some() { Err(found()) } else { Ok(item) }
}

/// Parses an encap, `encap(HEADER)`.
pub(super) fn parse(item: &KeyValueItem<'_>) -> Result<Action, ParseError> {
    let header = only(item.value(EXPECTED)?, item.value_at, EXPECTED)?;
    Ok(Action::Encap(match header.key {
        "ethernet" => header.alone().map(|()| EncapHeader::Ethernet)?,
        "nsh" => EncapHeader::Nsh(parse_nsh(&header)?),
        word => return Err(ParseError::unknown(header.at, word, EXPECTED, ["ethernet", "nsh"])),
    }))
}

fn parse_nsh(item: &KeyValueItem<'_>) -> Result<NshHeader, ParseError> {
    let mut header = NshHeader::default();
    let mut properties = KeyValueScanner::new(item.value.unwrap_or_default(), item.value_at);
    while let Some(property) = properties.next()? {
        match property.key {
            "md_type" if header.md_type.is_none() => header.md_type = Some(parse_md_type(&property)?),
            "tlv" => header.tlvs.push(parse_tlv(&property)?),
            word => {
                let expected = "md_type=1 or md_type=2 once, or tlv(CLASS,TYPE,VALUE)";
                return Err(ParseError::unknown(property.at, word, expected, ["md_type", "tlv"]));
            }
        }
    }
    if header.is_valid() {
        return Ok(header);
    }
    let most = nsh::MAX_BYTES;
    Err(item.wrong(format!("values only with md_type=2, and no more of them than a header of {most} bytes holds")))
}

fn parse_md_type(item: &KeyValueItem<'_>) -> Result<u8, ParseError> {
    let expected = "metadata type 1 or 2";
    let md_type = number::u8(item.value(expected)?).ok().filter(|md_type| [nsh::MD1, nsh::MD2].contains(md_type));
    md_type.ok_or_else(|| item.wrong(expected))
}

fn parse_tlv(item: &KeyValueItem<'_>) -> Result<NshTlv, ParseError> {
    let tlv = |text: &str| {
        let (class, rest) = text.split_once(',')?;
        let (kind, value) = rest.split_once(',')?;
        let value = number::hex_bytes(value.trim().strip_prefix("0x")?).ok()?;
        let (class, kind) = (number::u16(class.trim()).ok()?, number::u8(kind.trim()).ok()?);
        (value.len() <= nsh::MAX_TLV_BYTES).then_some(NshTlv { class, kind, value: value.into() })
    };
    tlv(item.value(EXPECTED_TLV)?).ok_or_else(|| item.wrong(EXPECTED_TLV))
}

/// Parses `decap`, `decap()` or `decap(packet_type(ns=NAMESPACE,type=TYPE))`.
pub(super) fn parse_decap(item: &KeyValueItem<'_>) -> Result<Action, ParseError> {
    let value = item.value.unwrap_or_default();
    if value.is_empty() {
        return Ok(Action::Decap(PacketType::NEXT_PROTOCOL));
    }
    let under = only(value, item.value_at, EXPECTED_DECAP)?;
    let (mut namespace, mut kind) = (None, None);
    let mut parts =
        KeyValueScanner::new(under.value.filter(|_| under.key == "packet_type").unwrap_or_default(), under.value_at);
    while let Some(part) = parts.next()? {
        let number = number::u16(part.value(EXPECTED_DECAP)?).map_err(|expected| part.wrong(expected))?;
        let place = match part.key {
            "ns" => &mut namespace,
            "type" => &mut kind,
            _ => return Err(item.wrong(EXPECTED_DECAP)),
        };
        *place = Some(u32::from(number));
    }
    let bits = namespace.zip(kind).map(|(namespace, kind)| namespace << 16 | kind);
    bits.map(|bits| Action::Decap(PacketType::from_bits(bits))).ok_or_else(|| item.wrong(EXPECTED_DECAP))
}

pub(super) fn write(header: &EncapHeader) -> String {
    match header {
        EncapHeader::Ethernet => "encap(ethernet)".into(),
        EncapHeader::Nsh(header) => match properties(header) {
            none if none.is_empty() => "encap(nsh)".into(),
            some => format!("encap(nsh({}))", some.join(",")),
        },
    }
}

fn properties(header: &NshHeader) -> Vec<String> {
    let md_type = header.md_type.map(|md_type| format!("md_type={md_type}"));
    let tlv = |tlv: &NshTlv| format!("tlv({:#06x},{},0x{})", tlv.class, tlv.kind, raw::hex(&tlv.value.0));
    md_type.into_iter().chain(header.tlvs.iter().map(tlv)).collect()
}

pub(super) fn write_decap(wanted: PacketType) -> String {
    match (wanted, wanted.number()) {
        (PacketType::NEXT_PROTOCOL, _) => "decap()".into(),
        (_, 0) => format!("decap(packet_type(ns={},type=0))", wanted.namespace()),
        (_, number) => format!("decap(packet_type(ns={},type={number:#x}))", wanted.namespace()),
    }
}

#[cfg(test)]
mod tests {
    use crate::model::Version;
    use crate::text::{format_actions, parse_actions};

    #[test]
    fn as_ovs_ofctl_prints_them() {
        // Texts as `ovs-ofctl parse-flow` of Open vSwitch 3.1 prints them.
        for text in [
            "encap(nsh)",
            "encap(nsh(md_type=1))",
            "encap(nsh(md_type=2,tlv(0x1000,10,0x12345678),tlv(0x2000,20,0xfedcba9876543210)))",
            "encap(ethernet)",
            "decap()",
            "decap(packet_type(ns=1,type=0x894f))",
            "decap(packet_type(ns=1,type=0))",
            "dec_nsh_ttl",
        ] {
            assert_eq!(format_actions(&parse_actions(text).unwrap(), Version::V13), text);
        }
        for (text, printed) in [("encap(nsh())", "encap(nsh)"), ("decap", "decap()")] {
            assert_eq!(format_actions(&parse_actions(text).unwrap(), Version::V13), printed);
        }
    }

    #[test]
    fn wrong_ones_say_what_would_be_right() {
        for (text, part) in [
            ("encap", "ethernet or nsh"),
            ("encap(vlan)", "ethernet or nsh"),
            ("encap(nsh,ethernet)", "ethernet or nsh"),
            ("encap(nsh(md_type=3))", "metadata type 1 or 2"),
            ("encap(nsh(md_type=1,tlv(1,2,0x03)))", "only with md_type=2"),
            ("encap(nsh(md_type=2,tlv(1,2,3)))", "tlv(0x1000,10,0x12345678)"),
            ("encap(nsh(md_tipe=2))", "md_type"),
            ("decap(nsh)", "packet_type"),
            ("decap(packet_type(ns=1))", "packet_type"),
            ("decap(packet_type(ns=1,type=0x10000))", "0 to 65535"),
        ] {
            let error = parse_actions(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        let long = format!("encap(nsh(md_type=2,tlv(1,2,0x{}),tlv(1,2,0x{})))", "00".repeat(127), "00".repeat(127));
        assert!(parse_actions(&long).is_err());
    }
}
