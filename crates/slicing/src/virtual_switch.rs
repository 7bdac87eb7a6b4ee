//! Virtual switches and the fabric that they are cut from.
use crate::{IpNet, ScenarioError, SwitchFailMode, check, document};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use weir_fabric::{BufferSharing, InterDiscipline};
use weir_packet::MacAddr;
use weir_units::{Bps, ByteSize};

/// Fabric of a physical switch: capacities and buffers that virtual switches share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FabricSpec {
    /// Ports with their capacity, in the order of their numbers.
    pub ports: Vec<FabricPort>,
    /// Buffer of each crosspoint, that is, of each pair of an input and an output.
    pub crosspoint: ByteSize,
    /// Longest packet. No buffer may be smaller.
    pub max_packet: ByteSize,
    /// Discipline that picks the virtual switch that sends next on an output.
    pub discipline: InterDiscipline,
    /// Policy by which a virtual switch may use buffer that others do not use.
    pub sharing: BufferSharing,
}

impl Default for FabricSpec {
    /// Returns the defaults of a fabric, without ports: crosspoints as large as the largest in the literature's
    /// figures (Anhalt, 2011, chapter 4), and whole Ethernet frames without tags.
    fn default() -> Self {
        FabricSpec {
            ports: Vec::new(),
            crosspoint: ByteSize(192_000),
            max_packet: ByteSize(1514),
            discipline: InterDiscipline::default(),
            sharing: BufferSharing::default(),
        }
    }
}

/// Port of a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FabricPort {
    /// Port number on the physical switch.
    pub port: u32,
    /// Capacity in each direction.
    pub rate: Bps,
}

/// Discipline that picks which of a virtual switch's inputs sends next on an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntraDisciplineKind {
    /// Each input in turn sends one packet.
    RoundRobin,
    /// Deficit round robin with equal quanta.
    #[default]
    Drr,
    /// First come, first served: the packet that has waited longest.
    Fcfs,
    /// Longest queue first: the input with most bytes.
    Lqf,
}

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
    pub discipline: IntraDisciplineKind,
    /// Bytes that an input may send in a round of [`IntraDisciplineKind::Drr`].
    pub intra_quantum: ByteSize,
    /// Rank under [`InterDiscipline::StrictPriority`]: 0 is first.
    pub priority: u8,
    /// Weight of this virtual switch when the engine is overloaded and divides its time, if the file gives one. See
    /// [`VirtualSwitch::time_weight`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_weight: Option<u64>,
    /// Time after which the virtual switch is removed; `None` for never.
    pub lifetime: Option<Duration>,
    /// Controllers to which the virtual switch connects, as `tcp:IP:PORT` or `unix:PATH`.
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
    pub fail_mode: SwitchFailMode,
    /// Initial flow entries in the format of `ovs-ofctl`. This crate does not parse them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<String>,
}

impl VirtualSwitch {
    /// Returns the weight of this virtual switch. When the engine is overloaded, it divides its time among virtual
    /// switches by weight. The default is the guaranteed input capacity in Mbit/s, at least 1.
    pub fn time_weight(&self) -> u64 {
        let rates: u64 = self.ports.iter().map(|port| port.rate_in.0 / 1_000_000).sum();
        self.time_weight.unwrap_or(rates).max(1)
    }
}

/// Selector of a virtual switch's packets: matches packets for which all given fields are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PacketSelector {
    /// Physical input port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
    /// VLAN id, `1..=4094`; 0 for packets without a tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Ethernet source address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eth_src: Option<MacAddr>,
    /// Ethernet destination address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eth_dst: Option<MacAddr>,
    /// Prefix of the IP source address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_src: Option<IpNet>,
    /// Prefix of the IP destination address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_dst: Option<IpNet>,
    /// Outermost MPLS label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpls: Option<u32>,
    /// Id of the tunnel through which the packets arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<u64>,
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
    /// Maximum output rate; `None` for no limit.
    pub ceiling: Option<Bps>,
    /// Bytes that the virtual port may send in a round of [`InterDiscipline::Drr`].
    pub quantum: ByteSize,
    /// VLAN id of the port's packets outside the switch, `1..=4094`. The tag is removed when packets enter and inserted
    /// when they leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
}

impl VirtualPortSpec {
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

impl FabricSpec {
    /// Checks the text of a file with a section `[fabric]` and items `[[virtual]]`, which have the keys of a
    /// scenario's `[switch.fabric]` and `[[switch.virtual]]`. `switch` is the name of the switch, `ports` are its
    /// port numbers with their rates, if known.
    ///
    /// # Errors
    /// The text is not TOML, or a value in it is wrong. The error has the line.
    pub fn parse_cut(
        text: &str,
        file: &str,
        switch: &str,
        ports: BTreeMap<u32, Option<Bps>>,
    ) -> Result<(FabricSpec, Vec<VirtualSwitch>), ScenarioError> {
        let document: document::SlicingToml =
            toml::from_str(text).map_err(|error| ScenarioError::syntax(file, text, &error))?;
        check::fabric_file(&check::SourceFile { file, text }, switch, document, ports)
    }
}

impl VirtualSwitch {
    /// Checks the text of a virtual switch for a physical switch with this fabric. Its keys are those of a scenario's
    /// `[[switch.virtual]]`.
    ///
    /// # Errors
    /// The text is not TOML or not a virtual switch, or names ports that the fabric does not have. The error has the
    /// line.
    pub fn parse(text: &str, file: &str, fabric: &FabricSpec) -> Result<VirtualSwitch, ScenarioError> {
        let document: document::VirtualSwitchToml =
            toml::from_str(text).map_err(|error| ScenarioError::syntax(file, text, &error))?;
        check::virtual_switch(document, &check::SourceFile { file, text }, fabric)
    }
}

impl crate::ScenarioSwitch {
    /// Returns the datapath ids of the switch and of its virtual switches.
    pub fn dpids(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.dpid).chain(self.virtual_switches.iter().map(|cut| cut.dpid))
    }
}

impl fmt::Display for PacketSelector {
    /// Writes the selector as in scenario files: `{ port = 1, vlan = 10 }`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |what: &str, value: Option<String>| value.map(|value| format!("{what} = {value}"));
        let quoted = |what: &str, value: Option<String>| value.map(|value| format!("{what} = \"{value}\""));
        let parts = [
            text("port", self.port.map(|port| port.to_string())),
            text("vlan", self.vlan.map(|vlan| vlan.to_string())),
            quoted("eth_src", self.eth_src.map(|mac| mac.to_string())),
            quoted("eth_dst", self.eth_dst.map(|mac| mac.to_string())),
            quoted("ip_src", self.ip_src.map(|net| net.to_string())),
            quoted("ip_dst", self.ip_dst.map(|net| net.to_string())),
            text("mpls", self.mpls.map(|label| label.to_string())),
            text("tunnel", self.tunnel.map(|id| id.to_string())),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        write!(f, "{{ {} }}", parts.join(", "))
    }
}
