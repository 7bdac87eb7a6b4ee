//! Describes virtual switches.
use crate::{FabricPort, FabricSpec, PacketSelector, VirtualSwitchApp};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use weir_datapath::{DatapathConfig, FailMode};
use weir_fabric::IntraDiscipline;
use weir_units::{Bps, ByteSize};

/// Smallest quantum in bytes, the length of the smallest frame. A smaller quantum would only need more rounds for equal
/// shares.
pub const MIN_QUANTUM: u64 = 60;
/// Largest quantum in bytes.
pub const MAX_QUANTUM: u64 = 1 << 24;
/// Largest weight in the division of the engine's time: 1 Tbit/s in Mbit/s, the unit of default weights.
pub const MAX_TIME_WEIGHT: u64 = 1_000_000;
/// Default quantum in bytes of a share of a port's whole capacity; smaller shares get proportionally less. A 32nd of
/// the capacity sends one packet a round.
const DEFAULT_ROUND_BYTES: u64 = 32 * 1514;
/// Default burst above a ceiling: two longest frames.
const DEFAULT_CEILING_BURST: ByteSize = ByteSize(2 * 1514);
/// Largest burst above a ceiling.
pub const MAX_CEILING_BURST: u64 = 1 << 24;
/// Default maximum number of packet-in messages per second.
const DEFAULT_PACKET_INS: u32 = 1000;

/// Treatment of packets when a buffer fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueManager {
    /// Drops the arriving packet.
    #[default]
    TailDrop,
    /// Drops packets early, at random (Floyd and Jacobson, 1993).
    Red,
    /// Drops the oldest packets.
    DropHead,
}

/// Settings of [`QueueManager::Red`]. Settings left out have the values that the authors recommend.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedSpec {
    /// Average length in bytes below which no packet is dropped.
    pub min: Option<ByteSize>,
    /// Average length in bytes from which on every packet is dropped.
    pub max: Option<ByteSize>,
    /// Probability of a drop just below `max`, above 0 and at most 1.
    pub probability: Option<f64>,
    /// Weight of the current length in the average, above 0 and at most 1.
    pub weight: Option<f64>,
    /// True to raise the probability to 1 between `max` and twice `max`, instead of dropping every packet from `max`
    /// on (Floyd, 2000).
    pub gentle: bool,
}

// The check excludes values that are not numbers.
impl Eq for RedSpec {}

impl RedSpec {
    /// Checks that the settings are in their limits and fit together.
    ///
    /// # Errors
    /// A message on the settings expected.
    pub fn check(&self) -> Result<(), &'static str> {
        let is_share = |value: Option<f64>| value.is_none_or(|value| value > 0.0 && value <= 1.0);
        if !is_share(self.probability) || !is_share(self.weight) {
            return Err("expected probability and weight above 0 and at most 1");
        }
        if let (Some(min), Some(max)) = (self.min, self.max)
            && min >= max
        {
            return Err("expected min below max");
        }
        Ok(())
    }
}

/// Virtual switch: an OpenFlow datapath of its own on some of a physical switch's ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VirtualSwitch {
    /// Name of the virtual switch.
    pub name: String,
    /// Datapath id of the virtual switch.
    pub dpid: u64,
    /// Selectors of the virtual switch's packets: a packet that matches one of them belongs to the virtual switch.
    pub select: Vec<PacketSelector>,
    /// Ports of the virtual switch.
    pub ports: Vec<VirtualPortSpec>,
    /// Pairs of port numbers, from and to, between which packets may pass; `None` for all pairs.
    pub paths: Option<Vec<[u32; 2]>>,
    /// Share of the buffer of each crosspoint that `buffers` does not name.
    pub buffer: ByteSize,
    /// Shares of individual crosspoints' buffers.
    pub buffers: Vec<CrosspointBuffer>,
    /// Treatment of packets when a buffer fills.
    pub queue: QueueManager,
    /// Settings of [`QueueManager::Red`].
    pub red: RedSpec,
    /// Discipline that picks the input that sends next on an output.
    pub discipline: IntraDiscipline,
    /// Bytes that an input may send in a round of [`IntraDiscipline::Drr`].
    pub intra_quantum: ByteSize,
    /// Rank under [`weir_fabric::InterDiscipline::StrictPriority`]: 0 is first.
    pub priority: u8,
    /// Weight of this virtual switch when the engine is overloaded and divides its time, if the file gives one. See
    /// [`VirtualSwitch::time_weight`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_weight: Option<u64>,
    /// Time after which the virtual switch is removed; `None` for never.
    pub lifetime: Option<Duration>,
    /// Application in this program that controls the virtual switch; excludes `connect`.
    #[serde(flatten)]
    pub app: Option<VirtualSwitchApp>,
    /// Controllers to which the virtual switch connects, as `tcp:HOST:PORT` or `unix:PATH`.
    pub connect: Vec<String>,
    /// Addresses on which the virtual switch listens for controllers, as `ptcp:PORT:IP` or `punix:PATH`.
    pub listen: Vec<String>,
    /// Number of flow tables, `1..=254`.
    pub tables: u8,
    /// Maximum number of entries per table.
    pub max_entries: u32,
    /// Maximum number of packet-in messages per second.
    pub max_packet_ins: u32,
    /// Behaviour without a controller.
    pub fail_mode: FailMode,
    /// Initial flow entries in the format of `ovs-ofctl`, not parsed yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<String>,
}

impl VirtualSwitch {
    /// Returns a virtual switch with all packets of `ports`, a share `buffer` of each crosspoint of `fabric`, and
    /// defaults for everything else.
    pub fn new(
        name: &str,
        dpid: u64,
        ports: Vec<VirtualPortSpec>,
        buffer: ByteSize,
        fabric: &FabricSpec,
    ) -> VirtualSwitch {
        let DatapathConfig { n_tables, max_entries, .. } = DatapathConfig::default();
        VirtualSwitch {
            name: name.to_owned(),
            dpid,
            select: ports.iter().map(VirtualPortSpec::selector).collect(),
            ports,
            paths: None,
            buffer,
            buffers: Vec::new(),
            queue: QueueManager::default(),
            red: RedSpec::default(),
            discipline: IntraDiscipline::default(),
            intra_quantum: fabric.max_packet,
            priority: 0,
            time_weight: None,
            lifetime: None,
            app: None,
            connect: Vec::new(),
            listen: Vec::new(),
            tables: n_tables,
            max_entries,
            max_packet_ins: DEFAULT_PACKET_INS,
            fail_mode: FailMode::Secure,
            entries: Vec::new(),
        }
    }

    /// Returns the weight of this virtual switch. When the engine is overloaded, it divides its time among virtual
    /// switches by weight. The default is the guaranteed input capacity in Mbit/s, at least 1.
    pub fn time_weight(&self) -> u64 {
        let rates: u64 = self.ports.iter().map(|port| port.rate_in.0 / 1_000_000).sum();
        self.time_weight.unwrap_or(rates).max(1)
    }
}

/// Port of a virtual switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct VirtualPortSpec {
    /// Port number on the virtual switch.
    pub number: u32,
    /// Number of the physical port of which the virtual port is a share.
    pub port: u32,
    /// Guaranteed input capacity; zero if no packets enter here.
    pub rate_in: Bps,
    /// Guaranteed output capacity; zero if no packets leave here.
    pub rate_out: Bps,
    /// Maximum output rate, of frames without the tag of `vlan`; `None` for no limit.
    pub ceiling: Option<Bps>,
    /// Bytes by which the ceiling may be exceeded at once, so that waiting for others costs no rate.
    pub ceiling_burst: ByteSize,
    /// Bytes that the virtual port may send in a round of [`weir_fabric::InterDiscipline::Drr`].
    pub quantum: ByteSize,
    /// VLAN id of the port's packets outside the switch, `1..=4094`. The tag is removed when packets enter and inserted
    /// when they leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
}

impl VirtualPortSpec {
    /// Returns a share of a physical port with the port's number, and a default quantum in proportion to `rate_out`.
    pub fn new(physical: &FabricPort, rate_in: Bps, rate_out: Bps) -> VirtualPortSpec {
        let share = u128::from(DEFAULT_ROUND_BYTES) * u128::from(rate_out.0) / u128::from(physical.rate.0.max(1));
        VirtualPortSpec {
            number: physical.port,
            port: physical.port,
            rate_in,
            rate_out,
            ceiling: None,
            ceiling_burst: DEFAULT_CEILING_BURST,
            quantum: ByteSize(u64::try_from(share).unwrap_or(MAX_QUANTUM).max(MIN_QUANTUM)),
            vlan: None,
        }
    }

    /// Returns the selector that matches all packets of this port.
    pub fn selector(&self) -> PacketSelector {
        PacketSelector { port: Some(self.port), vlan: self.vlan, ..PacketSelector::default() }
    }
}

/// Share of a crosspoint's buffer for a virtual switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CrosspointBuffer {
    /// Number of the virtual input port.
    pub from: u32,
    /// Number of the virtual output port.
    pub to: u32,
    /// Size of the share.
    pub buffer: ByteSize,
}
