//! Settings of intents, and the limits that hold whatever the settings are.
use std::ops::RangeInclusive;
use std::time::Duration;
use weir_units::{Bps, ByteSize};

/// Longest key of an intent, in bytes.
pub const MAX_KEY_BYTES: usize = 128;
/// Most sources, and most destinations, of an intent.
pub const MAX_ENDS: usize = 64;
/// Most switches that an intent's way has to pass.
pub const MAX_WAYPOINTS: usize = 16;
/// Most switches and ports that an intent avoids.
pub const MAX_AVOIDED: usize = 256;
/// Longest text of an intent's traffic, in bytes.
pub const MAX_TRAFFIC_BYTES: usize = 1024;
/// Highest precedence of an intent.
pub const MAX_PRECEDENCE: u16 = 1000;
/// Priority of the routes of an intent with precedence 0. Each step of precedence adds 2, so routes of intents have the
/// even priorities from 2000 to 4000; those that catch confirmation packets have the odd ones above them. All hops are
/// for one input port, so the priorities of entries are higher by one: 2001 to 4002.
pub const FIRST_PRIORITY: u16 = 2000;
/// Number of the first route of intents. Routes of other parts have lower numbers.
pub const FIRST_ROUTE: u64 = 1 << 48;
/// Highest number of a route of intents.
pub const LAST_ROUTE: u64 = (1 << 49) - 1;
/// Intents that are compiled in one call; further ones wait for the next call, due at once.
pub const MOST_COMPILED: usize = 256;

/// Confirmation packets that are under way at a time; those of further intents wait, so that links do not lose them.
pub(super) const MOST_PROBES: usize = 1024;

/// Settings of intents.
#[derive(Debug, Clone)]
pub struct IntentConfig {
    /// Most intents at a time; further ones are refused.
    pub most_intents: usize,
    /// Rate of ports that state none; `None` to refuse bandwidth and bounds of delay over them.
    pub assumed_rate: Option<Bps>,
    /// Delay of links that was not measured.
    pub assumed_link_delay: Duration,
    /// Time that a switch takes for a packet, without waiting and sending.
    pub switch_delay: Duration,
    /// Bytes that can wait at a port; `None` to refuse bounds of the worst case.
    pub port_buffer: Option<ByteSize>,
    /// Bytes of the packets that the model of delays assumes.
    pub packet_bytes: u64,
    /// VLAN ids for packets of intents that do not begin at hosts. Hosts must not use them.
    pub labels: RangeInclusive<u16>,
    /// Share by which another way has to be shorter to be used in place of one that works.
    pub better_by: f64,
    /// Time by which it has to be shorter as well if it has not fewer links: delays are measured through the
    /// controller, and vary by so much when switches or the controller are busy.
    pub better_by_time: Duration,
    /// Time for which it has to be shorter.
    pub better_after: Duration,
    /// Time after which an intent that switches refused is tried again.
    pub retry_after: Duration,
    /// Time in which confirmation packets have to arrive before they are sent again.
    pub probe_timeout: Duration,
    /// Times that confirmation packets are sent.
    pub probe_tries: u32,
    /// Time in which switches have to confirm entries before the intent counts as degraded.
    pub confirm_within: Duration,
}

impl Default for IntentConfig {
    fn default() -> IntentConfig {
        IntentConfig {
            most_intents: 10_000,
            assumed_rate: None,
            assumed_link_delay: Duration::from_micros(10),
            switch_delay: Duration::from_micros(10),
            port_buffer: None,
            packet_bytes: 1500,
            labels: 2048..=4094,
            better_by: 0.1,
            better_by_time: Duration::from_millis(1),
            better_after: Duration::from_secs(10),
            retry_after: Duration::from_secs(10),
            probe_timeout: Duration::from_millis(200),
            probe_tries: 5,
            confirm_within: Duration::from_secs(10),
        }
    }
}
