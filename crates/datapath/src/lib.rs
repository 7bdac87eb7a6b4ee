//! The datapath: ports, flow tables and the OpenFlow agent in front of them, without sockets, threads or clock.
//!
//! It is given frames, messages and `now`; it returns frames to send, messages for controllers and when to wake it.
use serde::Serialize;
use weir_openflow::model::{FlowMod, PortDesc, PortNo};
use weir_openflow::{Message, Version};
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

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
    /// Packets kept for packet-in at most; the oldest makes room.
    pub n_buffers: u32,
    /// Learned addresses of output NORMAL at most; the oldest makes room.
    pub max_learned: usize,
}

impl Default for DatapathConfig {
    fn default() -> Self {
        DatapathConfig {
            datapath_id: 1,
            name: "weir".into(),
            n_tables: 64,
            max_entries: 1_000_000,
            n_buffers: 256,
            max_learned: 8192,
        }
    }
}

/// A control channel's number, given by the engine, not reused while the datapath lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(pub u32);

impl ChannelId {
    /// The engine's own requests (control socket, embedding program), through [`Datapath::handle`] like a controller's. It
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
    /// Frames to transmit, for ports that have some, in the order they go out.
    pub frames: Vec<(PortNo, Vec<Frame>)>,
    /// Messages for channels.
    pub messages: Vec<(ChannelId, Message)>,
    /// Ports whose administrative state a port-mod changed: (port, up).
    pub port_admin: Vec<(PortNo, bool)>,
}

/// Why packets were dropped in the datapath.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[allow(missing_docs, reason = "each counts what its name says")]
pub struct Drops {
    pub too_short: u64,
    pub table_miss: u64,
    pub no_action: u64,
    pub ttl_expired: u64,
    pub port_down: u64,
    pub no_recv: u64,
    pub no_fwd: u64,
    pub unknown_port: u64,
    pub no_controller: u64,
    pub in_port_only: u64,
    pub too_long: u64,
    pub fragment: u64,
}

/// See the crate's page.
#[derive(Debug)]
pub struct Datapath {}

impl Datapath {
    /// An empty datapath without ports or entries.
    pub fn new(_config: DatapathConfig) -> Datapath {
        todo!()
    }
    /// Adds a port; tells channels. # Errors: the number is not ordinary (or LOCAL) or is taken.
    pub fn add_port(&mut self, _now: Instant, _desc: PortDesc, _out: &mut Output) -> Result<(), String> {
        todo!()
    }
    /// Removes a port; tells channels. Whether it was there.
    pub fn remove_port(&mut self, _now: Instant, _port: PortNo, _out: &mut Output) -> bool {
        todo!()
    }
    /// States whether a port has link, and at what rate (kbit/s); tells channels on change.
    pub fn set_link(&mut self, _now: Instant, _port: PortNo, _up: bool, _speed_kbps: u32, _out: &mut Output) {
        todo!()
    }
    /// The ports, as controllers see them.
    pub fn ports(&self) -> Vec<PortDesc> {
        todo!()
    }
    /// Runs frames that came in on one port through the pipeline. `frames` is empty afterwards; buffers that go nowhere are
    /// given to `pool`.
    pub fn process(
        &mut self,
        _now: Instant,
        _in_port: PortNo,
        _frames: &mut Vec<Frame>,
        _pool: &mut FramePool,
        _out: &mut Output,
    ) {
        todo!()
    }
    /// A channel is up and speaks `version`.
    pub fn channel_up(&mut self, _now: Instant, _channel: ChannelId, _version: Version) {
        todo!()
    }
    /// A channel ended.
    pub fn channel_down(&mut self, _now: Instant, _channel: ChannelId) {
        todo!()
    }
    /// What to do with no channel.
    pub fn set_fail_mode(&mut self, _mode: FailMode) {
        todo!()
    }
    /// Handles a controller's message; replies and errors go to `out`.
    pub fn handle(
        &mut self,
        _now: Instant,
        _channel: ChannelId,
        _message: Message,
        _pool: &mut FramePool,
        _out: &mut Output,
    ) {
        todo!()
    }
    /// Applies a flow-mod from configuration or tests. # Errors: as the agent would answer.
    pub fn flow_mod(&mut self, _now: Instant, _flow: &FlowMod) -> Result<(), weir_openflow::model::ErrorType> {
        todo!()
    }
    /// Removes entries whose time is up, at most a bounded number per call; says when to call again at the latest.
    pub fn expire(&mut self, _now: Instant, _out: &mut Output) -> Option<Instant> {
        todo!()
    }
    /// Counters of a port, from the engine's, right before they are asked for.
    pub fn set_port_counters(&mut self, _port: PortNo, _counters: PortCounters) {
        todo!()
    }
    /// Drops by reason since the start.
    pub fn drops(&self) -> Drops {
        todo!()
    }
    /// What would happen to a packet: tables, entries, actions, outputs; changes nothing (no counters, no learning).
    pub fn trace(&self, _now: Instant, _in_port: PortNo, _frame: &[u8]) -> Trace {
        todo!()
    }
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

/// What happened to a traced packet; `Display` for people, `Serialize` for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Trace {}
