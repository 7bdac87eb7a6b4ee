//! Limits for one received packet: operations that might go on without end stop there.

/// Maximum depth of nested resubmits (Open vSwitch: 64 that do not go to a later table).
pub(crate) const MAX_DEPTH: u8 = 64;
/// Maximum number of resubmits of one packet and its clones (as in Open vSwitch).
pub(crate) const MAX_RESUBMITS: u16 = 4096;
/// Maximum number of values on a packet's stack, of up to 128 bits each (Open vSwitch: 64 KiB).
pub(crate) const MAX_STACK: usize = 4096;

/// Maximum number of buckets that one received packet runs through in all groups together. Without a limit, chains of
/// groups could make any number of copies.
pub(crate) const MAX_BUCKETS_OF_PACKET: u16 = 4096;
