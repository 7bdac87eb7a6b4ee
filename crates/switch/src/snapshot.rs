//! What a switch looks like at one moment: what `weir ctl show` prints and labs report.
use crate::control::Registry;
use crate::engine::EngineSnapshot;
use crate::handle::Identity;
use crate::timed::TimingSnapshot;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_openflow::model::PortNo;
use weir_port::Counters;
use weir_port::queues::QueueCounters;
use weir_units::Bps;

/// A switch at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its name.
    pub name: String,
    /// Its number.
    pub datapath_id: u64,
    /// Seconds since it started.
    pub uptime_s: f64,
    /// Its ports by number, absent ones included.
    pub ports: Vec<PortSnapshot>,
    /// Its virtual switches, in the order in which packets are offered to them.
    #[serde(default)]
    pub virtual_switches: Vec<VirtualSnapshot>,
    /// Tables that hold entries or saw packets.
    pub tables: Vec<TableSnapshot>,
    /// Its workers, in pipeline mode; or its threads, where each does everything for its ports.
    #[serde(default)]
    pub workers: Vec<WorkerSnapshot>,
    /// Those who watch where its time goes at the moment.
    #[serde(default)]
    pub perf_watchers: u32,
    /// How it keeps its profile's times, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<TimingSnapshot>,
    /// Control channels, up or being tried.
    pub channels: Vec<ChannelSnapshot>,
    /// Packets dropped in the datapath by reason, those that occurred.
    pub drops: Vec<(String, u64)>,
    /// Packet-ins for controllers, one for each channel that took one, channels that ended included.
    pub packet_ins: u64,
    /// Packet-ins that no channel could take since its queue was full, channels that ended included.
    pub packet_ins_dropped: u64,
    /// Packet-ins not sent since the channel was at its rate limit, one for each channel, channels that ended included.
    pub packet_ins_limited: u64,
}

/// A port at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSnapshot {
    /// Its number.
    pub number: PortNo,
    /// Its name as controllers see it.
    pub name: String,
    /// Kind and name as the user wrote them.
    pub spec: String,
    /// Its Ethernet address.
    pub mac: String,
    /// The name that its interface has now, if it is another than the port was opened by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed: Option<String>,
    /// Whether the device is there. If not, the port is waited for.
    pub present: bool,
    /// Whether it has link.
    pub link_up: bool,
    /// Its rate in bits per second, if it has one.
    pub speed_bps: Option<u64>,
    /// What came and went since it was opened.
    pub counters: Counters,
    /// Its queues by number, if it has any.
    pub queues: Vec<QueueSnapshot>,
    /// Packets that waited in the default queue since theirs is not there.
    pub stray_packets: u64,
}

/// A queue of a port at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSnapshot {
    /// Its number.
    pub queue: u32,
    /// Rate it gets whatever the others do, in bits per second.
    pub min_bps: Option<u64>,
    /// Rate it does not go beyond, in bits per second.
    pub max_bps: Option<u64>,
    /// Bytes that wait in it at most.
    pub buffer_bytes: u64,
    /// Who gets what minimum rates leave over: higher first.
    pub priority: u8,
    /// Bytes that wait in it.
    pub waiting_bytes: u64,
    /// What it did since it was made.
    pub counters: QueueCounters,
}

/// A virtual switch at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VirtualSnapshot {
    /// Its name.
    pub name: String,
    /// Its number.
    pub datapath_id: u64,
    /// Seconds until it ends; none: for ever.
    pub ends_in_s: Option<f64>,
    /// Its ports.
    pub ports: Vec<VirtualPortSnapshot>,
    /// Its part of the engine's time.
    #[serde(default)]
    pub time: TimeSnapshot,
    /// Its crosspoints that packets came to.
    pub crosspoints: Vec<CrosspointSnapshot>,
    /// What was asked for, in the words of the file.
    pub spec: serde_json::Value,
}

/// What a virtual switch has had of the engine's time, counted while ports had more packets than the engine took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct TimeSnapshot {
    /// The part that it is to have beside the others, by weight.
    pub weight: f64,
    /// The part that it had of what all virtual switches had, 0 to 1.
    pub part: f64,
    /// Seconds.
    pub used_s: f64,
    /// Packets that wait for its turn.
    pub waiting: u64,
    /// Packets that were dropped since too many waited.
    pub dropped: u64,
}

/// A virtual switch's port at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualPortSnapshot {
    /// Its number on the virtual switch.
    pub number: PortNo,
    /// The physical port that it is a share of.
    pub port: PortNo,
    /// Guaranteed input capacity.
    pub rate_in: Bps,
    /// Guaranteed output capacity.
    pub rate_out: Bps,
    /// The output rate that it does not go beyond.
    pub ceiling: Option<Bps>,
    /// The VLAN that its packets are in outside.
    #[serde(default)]
    pub vlan: Option<u16>,
    /// Packets that came in for the virtual switch.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Packets that left.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Packets that were to leave and found no room.
    pub dropped: u64,
    /// Bytes that wait to leave.
    pub queued_bytes: u64,
}

/// A crosspoint's queue of a virtual switch at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrosspointSnapshot {
    /// The port that packets come in by.
    pub from: PortNo,
    /// The port that they leave by.
    pub to: PortNo,
    /// Packets that left.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that wait.
    pub queued_bytes: u64,
    /// Most bytes that waited.
    pub peak_bytes: u64,
    /// Packets dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
}

/// A worker at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSnapshot {
    /// Its number, from 0 on.
    pub worker: usize,
    /// Frames that it ran through the tables.
    pub frames: u64,
    /// Bursts that they came in.
    pub bursts: u64,
    /// Frames that wait for it.
    pub waiting: usize,
    /// Frames of it that wait to be transmitted.
    pub waiting_to_leave: usize,
    /// Frames dropped since its ring was full.
    pub ring_full: u64,
    /// Frames dropped since the ring from it was full.
    pub transmit_ring_full: u64,
    /// Packet-ins dropped since the engine did not take them fast enough.
    pub packet_ins_dropped: u64,
    /// Ports that it receives from, where each thread does everything for its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortNo>,
}

/// A flow table at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSnapshot {
    /// Its number.
    pub table: u8,
    /// Flow entries in it.
    pub entries: u32,
    /// Packets looked up in it.
    pub lookups: u64,
    /// Packets that hit an entry.
    pub matches: u64,
}

/// A control channel at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSnapshot {
    /// The other end: `tcp:10.0.0.1:6653`, `ptcp:6654:127.0.0.1 from 127.0.0.1:40122`, `in-process`.
    pub target: String,
    /// How far it is.
    pub state: ChannelState,
    /// `equal`, `master` or `slave`, while it is up.
    pub role: Option<String>,
    /// Why it ended last, or could not be made.
    pub last_error: Option<String>,
    /// How often it came up.
    pub connects: u64,
    /// Messages from the controller.
    pub received: u64,
    /// Messages to the controller.
    pub sent: u64,
    /// Packet-ins for the controller, without those dropped.
    pub packet_ins: u64,
    /// Packet-ins dropped since the controller does not read them fast enough.
    pub packet_ins_dropped: u64,
    /// Packet-ins not sent since there would be more than the switch is to send it.
    pub packet_ins_limited: u64,
    /// Other asynchronous messages (flow-removed, port-status) dropped for the same reason.
    pub notices_dropped: u64,
}

/// How far a control channel is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelState {
    /// Being connected to, or waiting to be tried again.
    Connecting,
    /// Connected; versions are being agreed on.
    Handshake,
    /// Up, in this version of OpenFlow.
    Up {
        /// `1.0`, `1.3`, `1.4` or `1.5`.
        version: String,
    },
}

impl Snapshot {
    pub(crate) fn new(identity: &Identity, engine: EngineSnapshot, registry: &Registry) -> Snapshot {
        let (channels, packet_ins) = registry.snapshot(&engine.roles);
        Snapshot {
            name: identity.name.clone(),
            datapath_id: identity.datapath_id,
            uptime_s: engine.uptime_s,
            ports: engine.ports,
            virtual_switches: engine.virtual_switches,
            tables: engine.tables,
            workers: engine.workers,
            perf_watchers: engine.perf_watchers,
            timing: engine.timing,
            channels,
            drops: engine.drops,
            packet_ins: packet_ins.taken,
            packet_ins_dropped: packet_ins.dropped,
            packet_ins_limited: packet_ins.limited,
        }
    }

    /// Number of channels that are up.
    pub fn channels_up(&self) -> usize {
        self.channels.iter().filter(|channel| matches!(channel.state, ChannelState::Up { .. })).count()
    }

    /// Flow entries in all tables.
    pub fn entries(&self) -> u64 {
        self.tables.iter().map(|table| u64::from(table.entries)).sum()
    }
}
