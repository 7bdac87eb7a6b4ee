//! State of a switch at one moment: printed by `weir ctl show` and reported by labs.
use crate::control::ChannelRegistry;
use crate::engine::EngineSnapshot;
use crate::handle::SwitchIdentity;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use weir_datapath::{HiddenEntry, InBandState};
use weir_device::TimingSnapshot;
use weir_openflow::model::PortNo;
use weir_port::FrameCounters;
use weir_port::queues::QueueCounters;
use weir_units::Bps;

/// State of a switch at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwitchSnapshot {
    /// Name of the switch.
    pub name: String,
    /// OpenFlow datapath id.
    pub datapath_id: u64,
    /// Seconds since the switch started.
    pub uptime_s: f64,
    /// Ports by number, including those whose device is absent.
    pub ports: Vec<PortSnapshot>,
    /// Virtual switches, in the order in which packets are offered to them.
    #[serde(default)]
    pub virtual_switches: Vec<VirtualSwitchSnapshot>,
    /// Tables that hold flow entries or have looked up packets.
    pub tables: Vec<TableSnapshot>,
    /// Workers in pipeline mode, or threads in the mode where each thread does everything for its ports.
    #[serde(default)]
    pub workers: Vec<WorkerSnapshot>,
    /// Number of clients that watch time measurements at present.
    #[serde(default)]
    pub perf_watchers: u32,
    /// Accuracy of the profile's times, if the switch has a profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<TimingSnapshot>,
    /// In-band control, if it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_band: Option<InBandSnapshot>,
    /// Control channels, connected or being connected.
    pub channels: Vec<ChannelSnapshot>,
    /// Reasons of packet drops in the datapath that occurred, with their counts.
    pub drops: Vec<(String, u64)>,
    /// Packet-ins accepted by channels, counted once for each channel, including ended channels.
    pub packet_ins: u64,
    /// Packet-ins dropped because a channel's queue was full, including ended channels.
    pub packet_ins_dropped: u64,
    /// Packet-ins not sent because of a channel's rate limit, counted once for each channel, including ended
    /// channels.
    pub packet_ins_limited: u64,
}

/// State of a port at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSnapshot {
    /// OpenFlow port number.
    pub number: PortNo,
    /// Name shown to controllers.
    pub name: String,
    /// Kind and name from the port's text form.
    pub spec: String,
    /// Ethernet address of the port.
    pub mac: String,
    /// Present name of the interface, if it differs from the name the port was opened by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed: Option<String>,
    /// True if the device exists. If false, the switch waits for it to come back.
    pub present: bool,
    /// True if the link is up.
    pub link_up: bool,
    /// Rate in bit/s, if known.
    pub speed_bps: Option<u64>,
    /// Counters of received and sent packets since the port was opened.
    pub counters: FrameCounters,
    /// Queues by number, if the port has any.
    pub queues: Vec<QueueSnapshot>,
    /// Packets that were put in the default queue because the queue chosen for them does not exist.
    pub stray_packets: u64,
}

/// State of a port's queue at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSnapshot {
    /// Number of the queue.
    pub queue: u32,
    /// Guaranteed rate in bit/s.
    pub min_bps: Option<u64>,
    /// Maximum rate in bit/s.
    pub max_bps: Option<u64>,
    /// Capacity in bytes.
    pub buffer_bytes: u64,
    /// Priority for rate left over by the guaranteed rates: higher first.
    pub priority: u8,
    /// Bytes in the queue.
    pub waiting_bytes: u64,
    /// Counters since the queue was created.
    pub counters: QueueCounters,
}

/// State of a virtual switch at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VirtualSwitchSnapshot {
    /// Name of the virtual switch.
    pub name: String,
    /// OpenFlow datapath id.
    pub datapath_id: u64,
    /// Seconds until the virtual switch ends; none: no end.
    pub ends_in_s: Option<f64>,
    /// Ports of the virtual switch.
    pub ports: Vec<VirtualPortSnapshot>,
    /// Share of the engine's time.
    #[serde(default)]
    pub time: CpuShareSnapshot,
    /// Crosspoints that have received packets.
    pub crosspoints: Vec<CrosspointSnapshot>,
    /// Packets dropped by the virtual switch's tables and actions, by reason.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
    /// Specification of the virtual switch, in the words of the scenario file.
    pub spec: serde_json::Value,
}

/// Engine time used by a virtual switch, counted while ports had more packets than the engine took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CpuShareSnapshot {
    /// Weight of the virtual switch in sharing the engine's time.
    pub weight: f64,
    /// Fraction used by this virtual switch of the time that all virtual switches used, 0 to 1.
    pub part: f64,
    /// Engine time used, in seconds.
    pub used_s: f64,
    /// Packets waiting for the virtual switch's turn.
    pub waiting: u64,
    /// Packets dropped because too many waited.
    pub dropped: u64,
}

/// State of a virtual switch's port at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualPortSnapshot {
    /// Port number on the virtual switch.
    pub number: PortNo,
    /// Physical port that this port is a share of.
    pub port: PortNo,
    /// Guaranteed input capacity in bit/s.
    pub rate_in: Bps,
    /// Guaranteed output capacity in bit/s.
    pub rate_out: Bps,
    /// Maximum output rate in bit/s, if limited.
    pub ceiling: Option<Bps>,
    /// VLAN id of the port's packets on the physical port.
    #[serde(default)]
    pub vlan: Option<u16>,
    /// Packets received for the virtual switch.
    pub rx_packets: u64,
    /// Bytes received for the virtual switch.
    pub rx_bytes: u64,
    /// Packets sent by the port.
    pub tx_packets: u64,
    /// Bytes sent by the port.
    pub tx_bytes: u64,
    /// Packets dropped at output because no buffer space was left.
    pub dropped: u64,
    /// Bytes waiting at the output.
    pub queued_bytes: u64,
}

/// State of one of a virtual switch's crosspoint queues at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrosspointSnapshot {
    /// Input port, on the virtual switch.
    pub from: PortNo,
    /// Output port, on the virtual switch.
    pub to: PortNo,
    /// Packets sent from the crosspoint.
    pub packets: u64,
    /// Bytes sent from the crosspoint.
    pub bytes: u64,
    /// Bytes in the queue.
    pub queued_bytes: u64,
    /// Largest number of bytes that were in the queue.
    pub peak_bytes: u64,
    /// Dropped packets by reason.
    pub dropped: BTreeMap<String, u64>,
}

/// State of a worker at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSnapshot {
    /// Number of the worker, from 0 on.
    pub worker: usize,
    /// Frames that the worker ran through the tables.
    pub frames: u64,
    /// Bursts in which the frames arrived.
    pub bursts: u64,
    /// Frames waiting for the worker.
    pub waiting: usize,
    /// Frames of the worker waiting to be transmitted.
    pub waiting_to_leave: usize,
    /// Frames dropped because the ring to the worker was full.
    pub ring_full: u64,
    /// Frames dropped because the ring from the worker was full.
    pub transmit_ring_full: u64,
    /// Packet-ins dropped because too many waited for the engine.
    pub packet_ins_dropped: u64,
    /// Ports that the worker receives from, in the mode where each thread does everything for its ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortNo>,
}

/// State of in-band control at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InBandSnapshot {
    /// Hidden entries, which no flow dump has.
    pub entries: Vec<HiddenEntrySnapshot>,
    /// Stations of the control traffic with their ports: controllers, routers, switches.
    pub stations: Vec<InBandStationSnapshot>,
    /// Frames sent to all ports.
    pub flooded: u64,
    /// Frames dropped because they are copies of others.
    pub copies: u64,
    /// Frames dropped because more were flooded, or more notices came in, than a port may have.
    #[serde(default)]
    pub excess: u64,
    /// Times that the port of a controller was forgotten because it did not answer.
    pub silences: u64,
}

/// A hidden entry at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenEntrySnapshot {
    /// Condition in the syntax of flow dumps.
    pub entry: String,
    /// Frames that matched.
    pub packets: u64,
    /// Bytes of these frames.
    pub bytes: u64,
}

/// A station of the control traffic at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InBandStationSnapshot {
    /// Ethernet address of the station.
    pub address: String,
    /// Port that it is on.
    pub port: PortNo,
}

impl From<InBandState> for InBandSnapshot {
    fn from(state: InBandState) -> InBandSnapshot {
        let entry = |entry: HiddenEntry| HiddenEntrySnapshot {
            entry: entry.to_string(),
            packets: entry.packets,
            bytes: entry.bytes,
        };
        let station = |(address, port): (weir_packet::MacAddr, PortNo)| InBandStationSnapshot {
            address: address.to_string(),
            port,
        };
        InBandSnapshot {
            entries: state.entries.into_iter().map(entry).collect(),
            stations: state.stations.into_iter().map(station).collect(),
            flooded: state.counters.flooded,
            copies: state.counters.copies,
            excess: state.counters.excess,
            silences: state.counters.silences,
        }
    }
}

/// State of a flow table at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSnapshot {
    /// Number of the table.
    pub table: u8,
    /// Number of flow entries.
    pub entries: u32,
    /// Packets looked up in the table.
    pub lookups: u64,
    /// Packets that matched a flow entry.
    pub matches: u64,
}

/// State of a control channel at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSnapshot {
    /// The peer: `tcp:10.0.0.1:6653`, `ptcp:6654:127.0.0.1 from 127.0.0.1:40122`, `in-process`.
    pub target: String,
    /// Progress of the channel.
    pub state: ChannelState,
    /// Controller role while the channel is up: `equal`, `master` or `slave`.
    pub role: Option<String>,
    /// Reason of the last end or of the last failed attempt to connect.
    pub last_error: Option<String>,
    /// Number of times that the channel came up.
    pub connects: u64,
    /// Messages received from the controller.
    pub received: u64,
    /// Messages sent to the controller.
    pub sent: u64,
    /// Packet-ins accepted for the controller, without the dropped ones.
    pub packet_ins: u64,
    /// Packet-ins dropped because the controller reads them too slowly.
    pub packet_ins_dropped: u64,
    /// Packet-ins not sent because of the channel's rate limit.
    pub packet_ins_limited: u64,
    /// Other asynchronous messages (flow-removed, port-status) dropped because the controller reads too slowly.
    pub notices_dropped: u64,
}

/// Progress of a control channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelState {
    /// Connecting, or waiting for the next attempt.
    Connecting,
    /// Connected; versions are being negotiated.
    Handshake,
    /// Up: messages are exchanged.
    Up {
        /// OpenFlow version: `1.0`, `1.3`, `1.4` or `1.5`.
        version: String,
    },
}

impl fmt::Display for ChannelState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChannelState::Connecting => f.write_str("connecting"),
            ChannelState::Handshake => f.write_str("handshake"),
            ChannelState::Up { version } => write!(f, "up, OpenFlow {version}"),
        }
    }
}

impl SwitchSnapshot {
    pub(crate) fn new(identity: &SwitchIdentity, engine: EngineSnapshot, registry: &ChannelRegistry) -> SwitchSnapshot {
        let (channels, packet_ins) = registry.snapshot(&engine.roles);
        SwitchSnapshot {
            name: identity.name.clone(),
            datapath_id: identity.datapath_id,
            uptime_s: engine.uptime_s,
            ports: engine.ports,
            virtual_switches: engine.virtual_switches,
            tables: engine.tables,
            workers: engine.workers,
            perf_watchers: engine.perf_watchers,
            timing: engine.timing,
            in_band: engine.in_band,
            channels,
            drops: engine.drops,
            packet_ins: packet_ins.taken,
            packet_ins_dropped: packet_ins.dropped,
            packet_ins_limited: packet_ins.limited,
        }
    }

    /// Returns the number of channels that are up.
    pub fn channels_up(&self) -> usize {
        self.channels.iter().filter(|channel| matches!(channel.state, ChannelState::Up { .. })).count()
    }

    /// Returns the number of flow entries in all tables.
    pub fn entries(&self) -> u64 {
        self.tables.iter().map(|table| u64::from(table.entries)).sum()
    }
}
