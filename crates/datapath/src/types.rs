//! Types of the datapath's interface: configuration, channels, and the output the engine carries out.
use serde::{Deserialize, Serialize};
use weir_openflow::Message;
use weir_openflow::model::PortNo;
use weir_packet::Frame;
use weir_units::{Bps, Instant};

/// Identity and limits of a datapath.
#[derive(Debug, Clone)]
pub struct DatapathConfig {
    /// Datapath id in features replies.
    pub datapath_id: u64,
    /// Name shown in description replies.
    pub name: String,
    /// Number of flow tables, `1..=254`.
    pub n_tables: u8,
    /// Maximum number of entries per table. Beyond it a flow-mod is refused with `OFPFMFC_TABLE_FULL`.
    pub max_entries: u32,
    /// Maximum number of groups. Beyond it a group-mod is refused with `OFPGMFC_OUT_OF_GROUPS`.
    pub max_groups: u32,
    /// Maximum number of buckets per group. Beyond it a group-mod is refused with `OFPGMFC_OUT_OF_BUCKETS`.
    pub max_buckets: u32,
    /// Maximum number of buckets of all groups together. Beyond it a group-mod is refused with
    /// `OFPGMFC_OUT_OF_BUCKETS`.
    pub max_buckets_in_all: u32,
    /// Maximum number of packets buffered for packet-ins, each for up to ten seconds. A further packet replaces the
    /// oldest.
    pub n_buffers: u32,
    /// Maximum number of Ethernet addresses that output NORMAL learns. A further address replaces one that was not
    /// heard lately.
    pub max_learned: usize,
    /// Limit of packet-ins for each channel; `None` for no limit.
    pub packet_in_limit: Option<PacketInLimit>,
    /// Method of finding flow entries.
    pub lookup: LookupMethod,
    /// Use of the verdict cache: see [`VerdictCacheMode`].
    pub verdict_cache: VerdictCacheMode,
}

/// Method of finding a packet's flow entry. Both methods find the same entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LookupMethod {
    /// A classifier chosen to fit each table's entries.
    #[default]
    Adaptive,
    /// Comparison with one entry after the other: the reference, slow with many entries.
    Linear,
}

/// Use of the verdict cache: each worker caches the pipeline's outcome for packets, so that later packets of the same
/// flow skip the lookups. The cache changes neither verdicts nor counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VerdictCacheMode {
    /// Used while it saves time, which occasional trials measure.
    #[default]
    Auto,
    /// The cache is never used.
    Off,
    /// The cache is always used.
    On,
}

/// Rate limit of packet-ins for each channel. Packet-ins beyond it are dropped and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketInLimit {
    /// Packet-ins per second.
    pub per_second: u32,
    /// Maximum number of packet-ins at once after a pause; `None` for the number sent in one second.
    pub burst: Option<u32>,
}

impl Default for DatapathConfig {
    fn default() -> Self {
        DatapathConfig {
            datapath_id: 1,
            name: "weir".into(),
            n_tables: 64,
            max_entries: 1_000_000,
            max_groups: 65_536,
            max_buckets: 1024,
            max_buckets_in_all: 262_144,
            n_buffers: 256,
            max_learned: 8192,
            packet_in_limit: None,
            lookup: LookupMethod::Adaptive,
            verdict_cache: VerdictCacheMode::Auto,
        }
    }
}

/// Number of a control channel. The engine assigns it and does not use it again while the datapath exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u32);

impl ChannelId {
    /// The engine's own requests (control socket, embedding program), handled by [`crate::Datapath::handle`] like a
    /// controller's. This channel is always up, speaks 1.3, and gets replies and errors but no asynchronous messages
    /// (packet-in, flow-removed, port-status). It does not count as a controller, neither for the fail mode nor for
    /// table misses.
    pub const LOCAL: ChannelId = ChannelId(0);
    /// First number of the channels that were opened by the peer, not by the switch. The peers are often short-lived
    /// tools (`ovs-ofctl`). These channels do not count as controllers for the fail mode; otherwise inspecting a
    /// standalone switch would stop its forwarding.
    pub const FIRST_PASSIVE: ChannelId = ChannelId(1 << 31);
}

/// Behaviour of the switch without a controller (OpenFlow 1.3.5, 6.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailMode {
    /// Packets continue to be processed by the flow tables. Packets for the controller are dropped.
    Secure,
    /// All packets are forwarded as by output NORMAL, and the flow tables are not used.
    Standalone,
}

/// Work that the datapath leaves to the engine. The engine carries it out, empties the value and uses it again.
#[derive(Debug, Default)]
pub struct DatapathOutput {
    /// Frames to transmit by port, in the order of transmission. An engine that drains the frames and keeps the lists
    /// saves allocations.
    pub frames: Vec<(PortNo, Vec<Frame>)>,
    /// Messages to send, with their channels.
    pub messages: Vec<(ChannelId, Message)>,
    /// Numbers of packet-ins that rate limits suppressed, with their channels.
    pub limited: Vec<(ChannelId, u64)>,
    /// Ports whose administrative state a port-mod changed, with the new state: true if up.
    pub port_admin: Vec<(PortNo, bool)>,
}

impl DatapathOutput {
    /// Appends a frame to the list of a port. The list is looked for at index `hint` first. Returns its index.
    #[inline]
    pub(crate) fn send(&mut self, port: PortNo, frame: Frame, hint: usize) -> usize {
        let at = self.list(port, hint);
        self.frames[at].1.push(frame);
        at
    }

    /// Returns the index of the list of a port, and adds the list if it is missing. The list is looked for at index
    /// `hint` first.
    #[inline]
    pub(crate) fn list(&mut self, port: PortNo, hint: usize) -> usize {
        match self.frames.get(hint) {
            Some((hinted, _)) if *hinted == port => hint,
            _ => self.list_of(port),
        }
    }

    /// Appends a frame to the list of a port.
    pub fn add_frame(&mut self, port: PortNo, frame: Frame) {
        self.send(port, frame, 0);
    }

    /// Appends the contents of another output.
    pub(crate) fn append(&mut self, other: DatapathOutput) {
        for (port, frames) in other.frames {
            let at = self.list_of(port);
            self.frames[at].1.extend(frames);
        }
        self.messages.extend(other.messages);
        self.port_admin.extend(other.port_admin);
        self.limited.extend(other.limited);
    }

    /// Counts a packet-in that a channel's rate limit suppressed.
    pub(crate) fn limited(&mut self, channel: ChannelId) {
        match self.limited.last_mut() {
            Some((last, count)) if *last == channel => *count += 1,
            _ => self.limited.push((channel, 1)),
        }
    }

    #[inline(never)]
    fn list_of(&mut self, port: PortNo) -> usize {
        self.frames.iter().position(|(listed, _)| *listed == port).unwrap_or_else(|| {
            self.frames.push((port, Vec::new()));
            self.frames.len() - 1
        })
    }
}

/// Queues of a port, as the engine reports them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortQueues {
    /// Rate that the queues share, if the port has one.
    pub rate: Option<Bps>,
    /// Queues, ascending by number.
    pub queues: Vec<PortQueue>,
}

/// A queue of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortQueue {
    /// Number of the queue within its port.
    pub id: u32,
    /// Guaranteed rate, if one is set.
    pub min: Option<Bps>,
    /// Maximum rate, if one is set.
    pub max: Option<Bps>,
    /// Number of packets sent.
    pub tx_packets: u64,
    /// Number of bytes sent.
    pub tx_bytes: u64,
    /// Number of packets dropped because the queue was full.
    pub tx_dropped: u64,
    /// Creation time of the queue.
    pub since: Instant,
}

/// Counters of a port, named as in `ofp_port_stats`. The engine sets them ([`crate::Datapath::set_port_counters`]),
/// because the port drivers count frames and the datapath does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "named by the specification (OpenFlow 1.3.5, 7.3.5.6)")]
pub struct PortCounters {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_over_err: u64,
}

/// Returns the whole seconds and the remaining nanoseconds since `from`, as in messages.
pub(crate) fn duration(now: Instant, from: Instant) -> (u32, u32) {
    let span = now.since(from);
    (u32::try_from(span.as_secs()).unwrap_or(u32::MAX), span.subsec_nanos())
}
