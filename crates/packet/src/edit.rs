//! What actions do to a frame. Every edit keeps checksums right; with a checksum left to the port ([`crate::frame::Offload`]) it
//! keeps the pseudo header's sum right.
use crate::parse::Layers;
use crate::{Field, Frame};

/// Whether an edit left headers where they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edited {
    /// Values changed in place: offsets in [`Layers`] still hold, the flow key's changed field does not.
    InPlace,
    /// Headers came or went: parse again.
    Moved,
    /// The packet has no such header: nothing was done.
    Nothing,
}

/// Why an edit could not be done; the frame is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum EditError {
    #[error("the frame would be too long")]
    TooLong,
    #[error("the TTL is used up")]
    TtlExpired,
}

/// Writes `value` (low bits) to a header field of the packet; nothing if the packet has no such header. Pipeline fields
/// (in_port, metadata, tunnel_id) are not in the frame: nothing.
pub fn set_field(_frame: &mut Frame, _layers: &Layers, _field: Field, _value: u128) -> Edited {
    todo!()
}
/// Pushes a VLAN tag of EtherType `tpid` in front of others, its id and priority copied from the outermost tag or zero
/// (OpenFlow 1.3.5, 5.12.1).
pub fn push_vlan(_frame: &mut Frame, _layers: &Layers, _tpid: u16) -> Result<Edited, EditError> {
    todo!()
}
/// Pops the outermost VLAN tag.
pub fn pop_vlan(_frame: &mut Frame, _layers: &Layers) -> Edited {
    todo!()
}
/// Pushes an MPLS label stack entry behind the Ethernet and VLAN headers, its label, TC and TTL copied from the outermost entry, or the TTL from IP.
pub fn push_mpls(_frame: &mut Frame, _layers: &Layers, _eth_type: u16) -> Result<Edited, EditError> {
    todo!()
}
/// Pops the outermost MPLS label stack entry; `eth_type` names what is under it.
pub fn pop_mpls(_frame: &mut Frame, _layers: &Layers, _eth_type: u16) -> Edited {
    todo!()
}
/// Sets the TTL of the outermost MPLS entry.
pub fn set_mpls_ttl(_frame: &mut Frame, _layers: &Layers, _ttl: u8) -> Edited {
    todo!()
}
/// Takes one off the TTL of the outermost MPLS entry.
/// # Errors
/// [`EditError::TtlExpired`] if it was 0 or 1.
pub fn dec_mpls_ttl(_frame: &mut Frame, _layers: &Layers) -> Result<Edited, EditError> {
    todo!()
}
/// Sets the IPv4 TTL or IPv6 hop limit.
pub fn set_nw_ttl(_frame: &mut Frame, _layers: &Layers, _ttl: u8) -> Edited {
    todo!()
}
/// Takes one off the IPv4 TTL or IPv6 hop limit.
/// # Errors
/// [`EditError::TtlExpired`] if it was 0 or 1.
pub fn dec_nw_ttl(_frame: &mut Frame, _layers: &Layers) -> Result<Edited, EditError> {
    todo!()
}
/// Copies the TTL from the next-to-outermost header with a TTL to the outermost (OpenFlow 1.3.5, 5.12).
pub fn copy_ttl_out(_frame: &mut Frame, _layers: &Layers) -> Edited {
    todo!()
}
/// Copies the TTL from the outermost header with a TTL to the next.
pub fn copy_ttl_in(_frame: &mut Frame, _layers: &Layers) -> Edited {
    todo!()
}
