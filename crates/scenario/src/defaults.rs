//! Default values for devices without timing in the scenario: weir's own switches, hosts and controller, and links
//! without a rate. All these numbers are here; verbs that use them have settings for others.
use std::time::Duration;
use weir_units::{Bps, ByteSize};

/// Rate of a link without one: high enough not to matter, low enough for virtual time to pass.
pub const LINK_RATE: Bps = Bps(10_000_000_000);
/// Delay of a control message between switch and controller, each way.
pub const CONTROL_DELAY: Duration = Duration::from_micros(50);
/// Time of a switch's thread for a packet: a table of one entry, frames of 60 bytes, one thread of a processor of
/// 2023 (`weir bench datapath`; the records in bench/ have machine and spread).
pub const PACKET_TIME: Duration = Duration::from_nanos(12);
/// Buffer of a link that has a rate and no buffer.
pub const LINK_BUFFER: ByteSize = ByteSize(128_000);
/// Most bytes under way on a TCP connection of hosts in this process.
pub const TCP_WINDOW_BYTES: usize = 96 << 10;
/// Bytes under way at the start of such a TCP connection.
pub const TCP_INITIAL_WINDOW_BYTES: usize = 2 << 10;
/// Shortest time after which it retransmits unacknowledged bytes.
pub const TCP_MIN_RTO: Duration = Duration::from_secs(1);
/// Time after its end in which it still sends buffered bytes.
pub const TCP_LINGER: Duration = Duration::from_secs(1);
