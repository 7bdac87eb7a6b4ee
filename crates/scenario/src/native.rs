//! What is assumed of devices of which a scenario does not say how long they take: weir's own switches, hosts and controller, and links
//! without a rate. The one place of these numbers; verbs that use them have settings for others.
use std::time::Duration;
use weir_units::{Bps, ByteSize};

/// Rate of a link that has none: enough not to matter, slow enough for virtual time to pass.
pub const LINK_RATE: Bps = Bps(10_000_000_000);
/// How long a control message is under way between a switch and the controller, each way.
pub const CONTROL_DELAY: Duration = Duration::from_micros(50);
/// What a packet costs a switch's thread: a table of one entry, frames of 60 bytes, one thread of a processor of 2023 (`weir bench datapath`; the
/// records in bench/ have machine and spread).
pub const PACKET: Duration = Duration::from_nanos(12);
/// What waits for a link that has a rate and no buffer.
pub const BUFFER: ByteSize = ByteSize(128_000);
/// Bytes that a TCP connection of the hosts in this process has under way at most.
pub const TCP_WINDOW_BYTES: usize = 96 << 10;
/// What it begins with.
pub const TCP_FIRST_BYTES: usize = 2 << 10;
/// How long it waits at least before it sends again what was not acknowledged.
pub const TCP_TIMEOUT: Duration = Duration::from_secs(1);
/// How long what it holds is still sent after its end.
pub const TCP_PATIENCE: Duration = Duration::from_secs(1);
