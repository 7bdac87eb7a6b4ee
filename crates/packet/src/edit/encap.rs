//! Putting whole headers in front of a packet and taking them off, which changes the packet's type (OpenFlow 1.5.1, 7.2.3.11, and
//! Open vSwitch's `encap` and `decap`).
use super::{EditError, Edited, tag};
use crate::bytes::{read_u16, write};
use crate::nsh::{self, Header, Tlv};
use crate::{Frame, Layers, PacketType};

/// An Ethernet header without tags.
const ETHERNET_BYTES: usize = 14;

/// Puts an Ethernet header without addresses in front of a packet that has none.
///
/// # Errors
/// [`EditError::PacketType`] if the packet begins with one already, [`EditError::TooLong`].
pub fn encap_ethernet(frame: &mut Frame) -> Result<Edited, EditError> {
    let eth_type = frame.packet_type().eth_type().ok_or(EditError::PacketType)?;
    frame.insert(0, ETHERNET_BYTES)?;
    let header = frame.bytes_mut();
    write(header, 0, &[0; 12]);
    write(header, 12, &eth_type.to_be_bytes());
    frame.set_packet_type(PacketType::ETHERNET);
    Ok(Edited::Moved)
}

/// Puts a network service header in front of a packet, filled in as [`nsh::build`] says; its next protocol is the packet's type.
///
/// # Errors
/// [`EditError::PacketType`] if the header has no number for that type or `tlvs` do not fit it, [`EditError::TooLong`].
pub fn encap_nsh<'a>(
    frame: &mut Frame,
    md_type: u8,
    tlvs: impl Iterator<Item = Tlv<'a>> + Clone,
) -> Result<Edited, EditError> {
    let next = nsh::next_protocol(frame.packet_type()).ok_or(EditError::PacketType)?;
    let bytes = nsh::header_bytes(md_type, tlvs.clone()).ok_or(EditError::PacketType)?;
    frame.insert(0, bytes)?;
    nsh::write_header(&mut frame.bytes_mut()[..bytes], md_type, next, tlvs);
    frame.set_packet_type(PacketType::NSH);
    Ok(Edited::Moved)
}

/// Takes off the outermost header: Ethernet's if there is no VLAN tag, or a network service header. What is under it must be a
/// packet of type `wanted`, unless that is [`PacketType::NEXT_PROTOCOL`].
///
/// # Errors
/// [`EditError::PacketType`] if the packet begins with another header or what is under it is not what is wanted.
pub fn decap(frame: &mut Frame, layers: &Layers, wanted: PacketType) -> Result<Edited, EditError> {
    let (bytes, under) = outermost(frame, layers).ok_or(EditError::PacketType)?;
    if wanted != PacketType::NEXT_PROTOCOL && wanted != under {
        return Err(EditError::PacketType);
    }
    frame.remove(0, bytes);
    frame.set_packet_type(under);
    Ok(Edited::Moved)
}

/// Length of the header to be taken off, and the type of what is under it.
fn outermost(frame: &Frame, layers: &Layers) -> Option<(usize, PacketType)> {
    let kind = frame.packet_type();
    if kind.is_ethernet() {
        let field = tag::type_field(frame, layers).filter(|_| layers.vlan_tags == 0)?;
        let eth_type = read_u16(frame.bytes(), field.at)?;
        return Some((field.at + 2, PacketType::of_eth_type(eth_type)));
    }
    let header = Header::parse(frame.bytes()).filter(|_| kind == PacketType::NSH)?;
    let under = header.payload()?;
    // Only with a whole Ethernet header is it a frame.
    let is_whole = !under.is_ethernet() || frame.len() >= header.bytes + ETHERNET_BYTES;
    is_whole.then_some((header.bytes, under))
}
