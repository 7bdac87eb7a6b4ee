//! What actions do to a frame. Every edit keeps checksums right; with a checksum left to the port ([`crate::frame::Offload`]) it
//! keeps the pseudo header's sum right.
//!
//! A checksum that came in wrong stays wrong: updates are incremental. What cannot be updated stays as it is: the
//! transport checksum of a later fragment (it lies in the first one), SCTP's in a fragment (a CRC needs the whole packet), and, when
//! `ipv6_dst` changes under a routing header with segments left, any (the pseudo header holds the last destination).
//!
//! A packet that does not begin with an Ethernet header ([`crate::PacketType`]) has none of its fields, and no tag can be pushed.
//!
//! VLAN and MPLS fields are the outermost header's; network and transport headers behind MPLS or PBB are not touched, but
//! for the TTL that [`copy_ttl_in`] writes.
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

/// Whether an edit left headers where they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edited {
    /// Values changed in place: offsets in [`Layers`](crate::Layers) still hold, the flow key's changed field does not.
    InPlace,
    /// Headers came or went, or mean something else now: parse again.
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
    #[error("the packet begins with another header than the action is for")]
    PacketType,
}

impl From<crate::frame::TooLong> for EditError {
    fn from(_: crate::frame::TooLong) -> Self {
        EditError::TooLong
    }
}

#[cfg(test)]
mod tests;
