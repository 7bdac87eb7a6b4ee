//! Virtual switches: one switch divided into several, each an OpenFlow datapath with guaranteed shares of ports and
//! buffers.
//!
//! This module holds the parts without thread or clock, which the live switch and engines in virtual time share.
//! Received frames are sorted by virtual switch ([`sorter`]) and their edge tags are removed ([`edge`]). After the
//! virtual switch's datapath they cross the fabric ([`crossing`]) to the line of an output ([`outlet`]).
pub mod convert;
pub mod crossing;
pub mod edge;
pub mod first_lookup;
pub mod inlet;
pub mod outlet;
pub(crate) mod shares;
pub mod sorter;
