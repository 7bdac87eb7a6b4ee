//! Virtual switches: one switch cut into several, each an OpenFlow datapath of its own with guaranteed shares of ports and buffers.
//!
//! Here is what has neither thread nor clock, for the live switch and for engines in virtual time: frames that came in by a port are *sorted* by
//! whose they are ([`sorter`]), their tags of the edge taken off ([`edge`]), and after the virtual switch's datapath they *cross* the fabric
//! ([`crossing`]) to the line of an output ([`outlet`]).
pub mod convert;
pub mod crossing;
pub mod edge;
pub mod first_lookup;
pub mod inlet;
pub mod outlet;
pub(crate) mod shares;
pub mod sorter;
