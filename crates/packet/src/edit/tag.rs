//! Pushes and pops VLAN tags, MPLS label stack entries and PBB service tags (OpenFlow 1.3.5, 5.12).
use super::{EditEffect, EditError, ttl};
use crate::bytes::{read, read_u16, read_u32, write};
use crate::field::eth_type;
use crate::parse::MIN_ETH_TYPE;
use crate::{Frame, Layers, PacketType};

/// Length in bytes of the PBB header before a customer's frame: addresses, type and I-TAG.
const PBB_BYTES: usize = 18;
/// Bottom-of-stack bit of a label stack entry.
const BOTTOM: u32 = 0x100;

/// Position of the EtherType of the packet that follows the Ethernet header and its VLAN tags.
pub(super) struct EtherTypePosition {
    pub(super) at: usize,
    /// Offset of the length field of an IEEE 802.3 frame, whose type is in its SNAP header.
    length_at: Option<usize>,
}

/// Returns the position of the EtherType after the VLAN tags, which the field `eth_type` is read from. `None` for IEEE
/// 802.3 without SNAP, and for packets without Ethernet header.
pub(super) fn type_field(frame: &Frame, layers: &Layers) -> Option<EtherTypePosition> {
    if !frame.packet_type().is_ethernet() {
        return None;
    }
    let frame = frame.bytes();
    let at = 12 + 4 * usize::from(layers.vlan_tags);
    if read_u16(frame, at)? >= MIN_ETH_TYPE {
        return Some(EtherTypePosition { at, length_at: None });
    }
    let snap = read(frame, at + 2)? == [0xaa, 0xaa, 0x03, 0, 0, 0];
    snap.then_some(EtherTypePosition { at: at + 8, length_at: Some(at) })
}

/// Returns the offset of the I-TAG's four bytes after PBB's type. `None` unless a whole customer Ethernet header
/// follows.
pub(super) fn service_tag(frame: &Frame, layers: &Layers) -> Option<usize> {
    let at = type_field(frame, layers)?.at;
    let frame = frame.bytes();
    let is_there = read_u16(frame, at)? == eth_type::PBB && read::<16>(frame, at + 2).is_some();
    is_there.then_some(at + 2)
}

/// Pushes a VLAN tag with EtherType `tpid` before the others. Id and priority are copied from the outermost tag, or
/// zero (OpenFlow 1.3.5, 5.12.1).
///
/// # Errors
/// [`EditError::TooLong`] if the frame would be too long.
pub fn push_vlan(frame: &mut Frame, layers: &Layers, tpid: u16) -> Result<EditEffect, EditError> {
    if frame.len() < 14 || !frame.packet_type().is_ethernet() {
        return Ok(EditEffect::Nothing);
    }
    let tci = if layers.vlan_tags > 0 { read_u16(frame.bytes(), 14).unwrap_or(0) } else { 0 };
    frame.insert(12, 4)?;
    write(frame.bytes_mut(), 12, &tpid.to_be_bytes());
    write(frame.bytes_mut(), 14, &tci.to_be_bytes());
    Ok(EditEffect::Moved)
}

/// Pops the outermost VLAN tag.
pub fn pop_vlan(frame: &mut Frame, layers: &Layers) -> EditEffect {
    if layers.vlan_tags == 0 || frame.len() < 18 || !frame.packet_type().is_ethernet() {
        return EditEffect::Nothing;
    }
    frame.remove(12, 4);
    EditEffect::Moved
}

/// Pushes an MPLS label stack entry with EtherType `eth_type` after the Ethernet and VLAN headers. Label, TC and TTL
/// are copied from the outermost entry; otherwise the TTL is copied from IP, or zero.
///
/// # Errors
/// [`EditError::TooLong`] if the frame would be too long.
pub fn push_mpls(frame: &mut Frame, layers: &Layers, eth_type: u16) -> Result<EditEffect, EditError> {
    let field = type_field(frame, layers);
    if field.is_none() && frame.packet_type().is_ethernet() {
        return Ok(EditEffect::Nothing);
    }
    let entry = match layers.mpls.and_then(|at| read_u32(frame.bytes(), at.into())) {
        Some(outermost) => outermost & !BOTTOM,
        None => BOTTOM | u32::from(ttl::nw_ttl(frame.bytes(), layers).unwrap_or(0)),
    };
    let Some(field) = field else {
        frame.insert(0, 4)?;
        write(frame.bytes_mut(), 0, &entry.to_be_bytes());
        frame.set_packet_type(PacketType::of_eth_type(eth_type));
        return Ok(EditEffect::Moved);
    };
    let length = field.length_at.map(|at| (at, read_u16(frame.bytes(), at).map_or(MIN_ETH_TYPE, |length| length + 4)));
    if length.is_some_and(|(_, length)| length >= MIN_ETH_TYPE) {
        return Err(EditError::TooLong);
    }
    frame.insert(field.at + 2, 4)?;
    let bytes = frame.bytes_mut();
    write(bytes, field.at, &eth_type.to_be_bytes());
    write(bytes, field.at + 2, &entry.to_be_bytes());
    if let Some((at, length)) = length {
        write(bytes, at, &length.to_be_bytes());
    }
    Ok(EditEffect::Moved)
}

/// Pops the outermost MPLS label stack entry. `eth_type` is the type of the packet below.
pub fn pop_mpls(frame: &mut Frame, layers: &Layers, eth_type: u16) -> EditEffect {
    let Some(at) = layers.mpls else { return EditEffect::Nothing };
    if !frame.packet_type().is_ethernet() {
        frame.remove(at.into(), 4);
        frame.set_packet_type(PacketType::of_eth_type(eth_type));
        return EditEffect::Moved;
    }
    let Some(field) = type_field(frame, layers) else { return EditEffect::Nothing };
    let length = field.length_at.and_then(|at| Some((at, read_u16(frame.bytes(), at)?.saturating_sub(4))));
    frame.remove(at.into(), 4);
    write(frame.bytes_mut(), field.at, &eth_type.to_be_bytes());
    if let Some((at, length)) = length {
        write(frame.bytes_mut(), at, &length.to_be_bytes());
    }
    EditEffect::Moved
}

/// Pushes a PBB header with EtherType `eth_type` before the frame. The frame's addresses are copied to the
/// backbone's, the service id from the outermost I-TAG or zero, the priority from the outermost VLAN tag or zero
/// (OpenFlow 1.3.5, 5.12.1). VLAN tags stay with the customer's frame.
///
/// # Errors
/// [`EditError::TooLong`] if the frame would be too long.
pub fn push_pbb(frame: &mut Frame, layers: &Layers, eth_type: u16) -> Result<EditEffect, EditError> {
    let addresses = read::<12>(frame.bytes(), 0).filter(|_| frame.packet_type().is_ethernet());
    let Some(addresses) = addresses else { return Ok(EditEffect::Nothing) };
    let service = service_tag(frame, layers).and_then(|at| read_u32(frame.bytes(), at)).unwrap_or(0) & 0xff_ffff;
    let vlan = if layers.vlan_tags > 0 { read_u16(frame.bytes(), 14).unwrap_or(0) } else { 0 };
    let tag = u32::from(vlan >> 13) << 29 | service;
    frame.insert(0, PBB_BYTES)?;
    let bytes = frame.bytes_mut();
    write(bytes, 0, &addresses);
    write(bytes, 12, &eth_type.to_be_bytes());
    write(bytes, 14, &tag.to_be_bytes());
    Ok(EditEffect::Moved)
}

/// Pops the PBB header. The customer's addresses become the frame's; backbone VLAN tags stay (OpenFlow 1.3.5, 7.2.5).
pub fn pop_pbb(frame: &mut Frame, layers: &Layers) -> EditEffect {
    let Some(tag) = service_tag(frame, layers) else { return EditEffect::Nothing };
    let Some(customer) = read::<12>(frame.bytes(), tag + 4) else { return EditEffect::Nothing };
    write(frame.bytes_mut(), 0, &customer);
    frame.remove(tag - 2, PBB_BYTES);
    EditEffect::Moved
}
