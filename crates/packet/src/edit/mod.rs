//! Applies actions to a frame. Every edit keeps correct checksums correct. If a checksum is left to the port
//! ([`crate::frame::Offload`]), the edit updates the pseudo header's sum.
//!
//! Updates are incremental, so a checksum that was wrong stays wrong. Checksums that cannot be updated stay as they
//! are: the transport checksum of a later fragment, which is in the first one; SCTP's in a fragment, because a CRC
//! needs the whole packet; and all transport checksums if `ipv6_dst` changes under a routing header with segments
//! left, because the pseudo header holds the last destination.
//!
//! A packet that does not start with an Ethernet header ([`crate::PacketType`]) has no Ethernet fields, and no tag
//! can be pushed.
//!
//! VLAN and MPLS fields are those of the outermost header. Network and transport headers behind MPLS or PBB are not
//! changed, except for the TTL that [`copy_ttl_in`] writes.
mod encap;
mod field;
mod recipe;
mod rewrite;
mod tag;
mod ttl;

pub use encap::{decap, encap_ethernet, encap_nsh};
pub use field::set_field;
pub use recipe::Recipe;
pub use tag::{pop_mpls, pop_pbb, pop_vlan, push_mpls, push_pbb, push_vlan};
pub use ttl::{copy_ttl_in, copy_ttl_out, dec_mpls_ttl, dec_nsh_ttl, dec_nw_ttl, set_mpls_ttl, set_nw_ttl};

/// Effect of an edit on the positions of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditEffect {
    /// Values changed in place. Offsets in [`Layers`](crate::Layers) are still valid, but the changed field in the
    /// flow key is not.
    InPlace,
    /// Headers moved, appeared, disappeared or changed their meaning. The frame must be parsed again.
    Moved,
    /// The packet has no such header, so it is unchanged.
    Nothing,
}

/// Reason why an edit failed; the frame is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum EditError {
    #[error("the frame would be too long")]
    TooLong,
    #[error("the TTL is used up")]
    TtlExpired,
    #[error("the packet begins with another header than the action is for")]
    PacketType,
}

impl From<crate::frame::FrameTooLong> for EditError {
    fn from(_: crate::frame::FrameTooLong) -> Self {
        EditError::TooLong
    }
}

#[cfg(test)]
mod tests;
