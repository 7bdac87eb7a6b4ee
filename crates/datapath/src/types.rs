//! What a datapath is told, and what it tells.
use weir_openflow::Message;
use weir_openflow::model::PortNo;
use weir_packet::Frame;
use weir_units::{Bps, Instant};

/// What a datapath is and its limits.
#[derive(Debug, Clone)]
pub struct DatapathConfig {
    /// Its number.
    pub datapath_id: u64,
    /// Name shown in descriptions.
    pub name: String,
    /// Number of tables, `1..=254`.
    pub n_tables: u8,
    /// Most entries in each table; beyond it a flow-mod is refused with `OFPFMFC_TABLE_FULL`.
    pub max_entries: u32,
    /// Most groups; beyond it a group-mod is refused with `OFPGMFC_OUT_OF_GROUPS`.
    pub max_groups: u32,
    /// Most buckets of a group; beyond it a group-mod is refused with `OFPGMFC_OUT_OF_BUCKETS`.
    pub max_buckets: u32,
    /// Most buckets of all groups together; beyond it the same.
    pub max_buckets_in_all: u32,
    /// Packets kept for packet-in at most, for up to ten seconds; the oldest makes room.
    pub n_buffers: u32,
    /// Learned addresses of output NORMAL at most; the oldest makes room.
    pub max_learned: usize,
    /// Packet-ins for each controller at most; none for no limit.
    pub packet_in_limit: Option<PacketInLimit>,
    /// How entries are found.
    pub lookup: Lookup,
    /// Whether what lookups in several tables come to is kept for the next packet of the same flow.
    pub verdict_cache: VerdictCache,
}

/// How a packet's entry is found. What is found is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lookup {
    /// In the way that suits each table's entries.
    #[default]
    Adaptive,
    /// By comparing one entry after the other: the reference, slow with many entries.
    Linear,
}

/// Whether each worker keeps what packets' ways through the tables came to, so that the next packets of the same flow need not go them.
/// What becomes of packets, and what is counted, is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VerdictCache {
    /// While it pays: found out by trying it now and then.
    #[default]
    Auto,
    /// Never.
    Off,
    /// Always.
    On,
}

/// How fast packet-ins are sent to each controller; those beyond are dropped and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketInLimit {
    /// Packet-ins per second.
    pub per_second: u32,
    /// Packet-ins at once, after a time without; none for a second's.
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
            lookup: Lookup::Adaptive,
            verdict_cache: VerdictCache::Auto,
        }
    }
}

/// A control channel's number, given by the engine, not reused while the datapath lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u32);

impl ChannelId {
    /// The engine's own requests (control socket, embedding program), through [`crate::Datapath::handle`] like a controller's. It
    /// is always up, speaks 1.3, gets replies and errors but no asynchronous message (packet-in, flow-removed, port-status),
    /// and does not count as a controller: neither for the fail mode nor for what a table miss does.
    pub const LOCAL: ChannelId = ChannelId(0);
    /// Channels that the switch listened for have numbers from here on: often short-lived tools (`ovs-ofctl`). They do not
    /// count for the fail mode, or looking at a standalone switch would stop its forwarding.
    pub const FIRST_PASSIVE: ChannelId = ChannelId(1 << 31);
}

/// What the switch does with no controller (OpenFlow 1.3.5, 6.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailMode {
    /// Tables stay in force; packets for the controller are dropped.
    Secure,
    /// With no channel, packets are forwarded as by output NORMAL, entries or not.
    Standalone,
}

/// What a datapath wants done. Reused from batch to batch; the engine empties it.
#[derive(Debug, Default)]
pub struct Output {
    /// Frames to transmit, for ports that have some, in the order they go out. An engine that drains the frames and leaves the
    /// lists in place saves their memory.
    pub frames: Vec<(PortNo, Vec<Frame>)>,
    /// Messages for channels.
    pub messages: Vec<(ChannelId, Message)>,
    /// Packet-ins that a channel did not get since it is at its rate limit.
    pub limited: Vec<(ChannelId, u64)>,
    /// Ports whose administrative state a port-mod changed: (port, up).
    pub port_admin: Vec<(PortNo, bool)>,
}

impl Output {
    /// Adds a frame for a port, whose list is probably at `hint`; says where it is.
    #[inline]
    pub(crate) fn send(&mut self, port: PortNo, frame: Frame, hint: usize) -> usize {
        let at = self.list(port, hint);
        self.frames[at].1.push(frame);
        at
    }

    /// Where the list of a port is, which is probably at `hint`.
    #[inline]
    pub(crate) fn list(&mut self, port: PortNo, hint: usize) -> usize {
        match self.frames.get(hint) {
            Some((hinted, _)) if *hinted == port => hint,
            _ => self.list_of(port),
        }
    }

    /// Adds a frame for a port.
    pub fn add_frame(&mut self, port: PortNo, frame: Frame) {
        self.send(port, frame, 0);
    }

    /// Adds what another has, behind what is here.
    pub(crate) fn append(&mut self, other: Output) {
        for (port, frames) in other.frames {
            let at = self.list_of(port);
            self.frames[at].1.extend(frames);
        }
        self.messages.extend(other.messages);
        self.port_admin.extend(other.port_admin);
        self.limited.extend(other.limited);
    }

    /// Counts a packet-in that a channel does not get.
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

/// The queues of a port; the engine keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortQueues {
    /// The rate they share, if the port has one.
    pub rate: Option<Bps>,
    /// Ascending by number.
    pub queues: Vec<PortQueue>,
}

/// A queue of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortQueue {
    /// Its number.
    pub id: u32,
    /// Rate it gets whatever the others do.
    pub min: Option<Bps>,
    /// Rate it does not go beyond.
    pub max: Option<Bps>,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped since it was full.
    pub tx_dropped: u64,
    /// When it was made; the port's beginning if that was later.
    pub since: Instant,
}

/// A port's counters as `ofp_port_stats` has them; the engine keeps them (ports count themselves).
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
