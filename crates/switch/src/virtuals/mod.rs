//! Virtual switches: one switch cut into several, each an OpenFlow datapath of its own with guaranteed shares of ports and buffers.
pub(crate) mod convert;
pub(crate) mod edge;
pub(crate) mod first_lookup;
pub(crate) mod shares;
