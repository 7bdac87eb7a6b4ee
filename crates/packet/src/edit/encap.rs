//! Pushes and removes whole headers at the front of a packet, which changes the packet's type (OpenFlow 1.5.1,
//! 7.2.3.11, and Open vSwitch's `encap` and `decap`).
use super::{EditEffect, EditError, tag};
use crate::bytes::{read_u16, write};
use crate::nsh::{self, NshTlvRef, ParsedNshHeader};
use crate::{Frame, Layers, PacketType};

/// Length in bytes of an Ethernet header without tags.
const ETHERNET_BYTES: usize = 14;

/// Pushes an Ethernet header with zero addresses onto a packet that has none.
///
/// # Errors
/// [`EditError::PacketType`] if the packet already starts with an Ethernet header, [`EditError::TooLong`] if the
/// frame would be too long.
pub fn encap_ethernet(frame: &mut Frame) -> Result<EditEffect, EditError> {
    let eth_type = frame.packet_type().eth_type().ok_or(EditError::PacketType)?;
    frame.insert(0, ETHERNET_BYTES)?;
    let header = frame.bytes_mut();
    write(header, 0, &[0; 12]);
    write(header, 12, &eth_type.to_be_bytes());
    frame.set_packet_type(PacketType::ETHERNET);
    Ok(EditEffect::Moved)
}

/// Pushes a network service header, with the values of [`nsh::build`]. Its next protocol is the packet's type.
///
/// # Errors
/// [`EditError::PacketType`] if there is no next protocol number for that type or `tlvs` do not fit into the header,
/// [`EditError::TooLong`] if the frame would be too long.
pub fn encap_nsh<'a>(
    frame: &mut Frame,
    md_type: u8,
    tlvs: impl Iterator<Item = NshTlvRef<'a>> + Clone,
) -> Result<EditEffect, EditError> {
    let next = nsh::next_protocol(frame.packet_type()).ok_or(EditError::PacketType)?;
    let bytes = nsh::header_bytes(md_type, tlvs.clone()).ok_or(EditError::PacketType)?;
    frame.insert(0, bytes)?;
    nsh::write_header(&mut frame.bytes_mut()[..bytes], md_type, next, tlvs);
    frame.set_packet_type(PacketType::NSH);
    Ok(EditEffect::Moved)
}

/// Removes the outermost header: Ethernet without VLAN tag, or a network service header. The packet below must be of
/// type `wanted`, unless that is [`PacketType::NEXT_PROTOCOL`].
///
/// # Errors
/// [`EditError::PacketType`] if the packet starts with another header, or the packet below is of another type.
pub fn decap(frame: &mut Frame, layers: &Layers, wanted: PacketType) -> Result<EditEffect, EditError> {
    let (bytes, under) = outermost(frame, layers).ok_or(EditError::PacketType)?;
    if wanted != PacketType::NEXT_PROTOCOL && wanted != under {
        return Err(EditError::PacketType);
    }
    frame.remove(0, bytes);
    frame.set_packet_type(under);
    Ok(EditEffect::Moved)
}

/// Returns the length in bytes of the header to remove, and the type of the packet below it.
fn outermost(frame: &Frame, layers: &Layers) -> Option<(usize, PacketType)> {
    let kind = frame.packet_type();
    if kind.is_ethernet() {
        let field = tag::type_field(frame, layers).filter(|_| layers.vlan_tags == 0)?;
        let eth_type = read_u16(frame.bytes(), field.at)?;
        return Some((field.at + 2, PacketType::of_eth_type(eth_type)));
    }
    let header = ParsedNshHeader::parse(frame.bytes()).filter(|_| kind == PacketType::NSH)?;
    let under = header.payload()?;
    // An Ethernet frame needs a whole Ethernet header.
    let is_whole = !under.is_ethernet() || frame.len() >= header.bytes + ETHERNET_BYTES;
    is_whole.then_some((header.bytes, under))
}
