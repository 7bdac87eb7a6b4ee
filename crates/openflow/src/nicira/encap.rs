//! Reads and writes the actions encap and decap, with their properties (`include/openvswitch/ofp-ed-props.h`).
use crate::model::error::BadAction;
use crate::model::{Action, EncapHeader, NshHeader, NshTlv};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};
use weir_packet::PacketType;

/// Class of properties about network service headers.
const NSH: u16 = 4;
const MD_TYPE: u8 = 1;
const TLV: u8 = 2;
/// Length in bytes of a property's class, type and length fields.
const HEAD: usize = 4;

/// Reads an encap after the subtype: header size (ignored), packet type, properties.
pub(super) fn decode(action: &mut WireReader<'_>) -> Decoded<Action> {
    action.rename("encap");
    action.skip(2)?;
    let at = action.at();
    let kind = PacketType::from_bits(action.read_u32()?);
    let header = if kind == PacketType::NSH {
        EncapHeader::Nsh(decode_nsh(action)?)
    } else if kind.is_ethernet() {
        // Ethernet has no properties.
        action.finish()?;
        EncapHeader::Ethernet
    } else {
        let reason = format!("found packet type {kind}, expected {} or {}", PacketType::ETHERNET, PacketType::NSH);
        return Err(action.error_at(at, BadAction::BadArgument, reason));
    };
    Ok(Action::Encap(header))
}

fn decode_nsh(action: &mut WireReader<'_>) -> Decoded<NshHeader> {
    let mut header = NshHeader::default();
    while !action.is_empty() {
        let at = action.at();
        let (class, kind, length) = (action.read_u16()?, action.read_u8()?, usize::from(action.read_u8()?));
        // The length may or may not include the padding.
        let Some(body) = length.next_multiple_of(8).checked_sub(HEAD).filter(|_| length > HEAD) else {
            let reason = format!("found property of length {length}, expected at least {}", HEAD + 1);
            return Err(action.error_at(at, BadAction::BadLen, reason));
        };
        let mut property = action.take_part(body, "encap property", BadAction::BadLen)?;
        match (class, kind) {
            (NSH, MD_TYPE) if header.md_type.is_none() => header.md_type = Some(decode_md_type(&mut property)?),
            (NSH, TLV) => header.tlvs.push(decode_tlv(&mut property)?),
            _ => {
                let reason = format!("found property {kind} of class {class}, expected metadata type once, or values");
                return Err(action.error_at(at, BadAction::BadArgument, reason));
            }
        }
    }
    Ok(header)
}

fn decode_md_type(property: &mut WireReader<'_>) -> Decoded<u8> {
    let md_type = property.read_u8()?;
    property.skip(3)?;
    property.finish()?;
    Ok(md_type)
}

fn decode_tlv(property: &mut WireReader<'_>) -> Decoded<NshTlv> {
    let (class, kind, length) = (property.read_u16()?, property.read_u8()?, usize::from(property.read_u8()?));
    let value = property.take(length)?;
    property.skip(length.next_multiple_of(8) - length)?;
    property.finish()?;
    Ok(NshTlv { class, kind, value: value.to_vec().into() })
}

pub(super) fn encode(header: &EncapHeader, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u16(0);
    match header {
        EncapHeader::Ethernet => writer.write_u32(PacketType::ETHERNET.to_bits()),
        EncapHeader::Nsh(header) => {
            writer.write_u32(PacketType::NSH.to_bits());
            if let Some(md_type) = header.md_type {
                // This length does not include the padding, as in Open vSwitch; the length of a TLV property does.
                property(MD_TYPE, 5, writer);
                writer.write_u8(md_type);
                writer.write_zeros(3);
            }
            header.tlvs.iter().try_for_each(|tlv| encode_tlv(tlv, writer))?;
        }
    }
    Ok(())
}

fn encode_tlv(tlv: &NshTlv, writer: &mut WireWriter<'_>) -> Encoded {
    let padded = tlv.value.0.len().next_multiple_of(8);
    let (Ok(length), Ok(value)) = (u8::try_from(8 + padded), u8::try_from(tlv.value.0.len())) else {
        return Err(writer.cannot(format!("{} bytes in an NSH value, at most 240 fit", tlv.value.0.len())));
    };
    property(TLV, length, writer);
    writer.write_u16(tlv.class);
    writer.write_u8(tlv.kind);
    writer.write_u8(value);
    writer.write_bytes(&tlv.value.0);
    writer.write_zeros(padded - tlv.value.0.len());
    Ok(())
}

fn property(kind: u8, length: u8, writer: &mut WireWriter<'_>) {
    writer.write_u16(NSH);
    writer.write_u8(kind);
    writer.write_u8(length);
}

/// Reads a decap after the subtype: padding, and the packet type below the header.
pub(super) fn decode_decap(action: &mut WireReader<'_>) -> Decoded<Action> {
    action.rename("decap");
    action.skip(2)?;
    let wanted = PacketType::from_bits(action.read_u32()?);
    action.skip(action.left().min(4))?;
    action.finish()?;
    Ok(Action::Decap(wanted))
}

pub(super) fn encode_decap(wanted: PacketType, writer: &mut WireWriter<'_>) {
    writer.write_zeros(2);
    writer.write_u32(wanted.to_bits());
}
