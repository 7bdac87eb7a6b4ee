//! Virtual switches and the fabric that they are cut from.
use crate::{FailMode, IpNet, ScenarioError, check, document};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use weir_fabric::{InterDiscipline, Sharing};
use weir_packet::MacAddr;
use weir_units::{Bps, ByteSize};

/// A physical switch's fabric: capacities and buffers that virtual switches share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fabric {
    /// Its ports with their capacity, in the order of their numbers.
    pub ports: Vec<FabricPort>,
    /// Buffer of each crosspoint: of each pair of an input and an output.
    pub crosspoint: ByteSize,
    /// Longest packet: no buffer may be smaller.
    pub max_packet: ByteSize,
    /// Who of the virtual switches gets an output next.
    pub discipline: InterDiscipline,
    /// Whether a virtual switch may use buffer that others do not use.
    pub sharing: Sharing,
}

impl Default for Fabric {
    /// What a fabric is of which a file says nothing, without ports: crosspoints as large as the largest in the literature's figures
    /// (Anhalt, 2011, chapter 4), whole Ethernet frames without tags.
    fn default() -> Self {
        Fabric {
            ports: Vec::new(),
            crosspoint: ByteSize(192_000),
            max_packet: ByteSize(1514),
            discipline: InterDiscipline::default(),
            sharing: Sharing::default(),
        }
    }
}

/// A port of a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FabricPort {
    /// Its number on the physical switch.
    pub port: u32,
    /// Its capacity, in each direction.
    pub rate: Bps,
}

/// Which of a virtual switch's inputs gets an output next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntraDiscipline {
    /// One packet each in turn.
    RoundRobin,
    /// Deficit round robin with equal quanta.
    #[default]
    Drr,
    /// The packet that has waited longest.
    Fcfs,
    /// The input with most bytes.
    Lqf,
}

/// What happens to packets when a buffer fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueManager {
    /// The arriving packet is dropped.
    #[default]
    TailDrop,
    /// Packets are dropped early, at random (Floyd and Jacobson, 1993).
    Red,
    /// The oldest packets are dropped.
    DropHead,
}

/// Settings of [`QueueManager::Red`]; what is not said is as the authors recommend.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Red {
    /// Average bytes below which nothing is dropped.
    pub min: Option<ByteSize>,
    /// Average bytes from which on everything is dropped.
    pub max: Option<ByteSize>,
    /// Probability of a drop just below `max`, above 0 and at most 1.
    pub probability: Option<f64>,
    /// Weight of the present length in the average, above 0 and at most 1.
    pub weight: Option<f64>,
    /// Raise the probability to 1 between `max` and twice that, instead of dropping everything from `max` on (Floyd, 2000).
    pub gentle: bool,
}

// Checked to be numbers.
impl Eq for Red {}

/// A virtual switch: an OpenFlow datapath of its own on some of a physical switch's ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VirtualSwitch {
    /// Its name.
    pub name: String,
    /// Its datapath id.
    pub dpid: u64,
    /// Which packets are its: those that one of these chooses.
    pub select: Vec<Selector>,
    /// Its ports.
    pub ports: Vec<VirtualPort>,
    /// Pairs of port numbers, from and to, that packets may take; all if none is given.
    pub paths: Option<Vec<[u32; 2]>>,
    /// Its share of each crosspoint's buffer that `buffers` does not name.
    pub buffer: ByteSize,
    /// Its shares of certain crosspoints' buffers.
    pub buffers: Vec<Crosspoint>,
    /// What happens when a buffer fills.
    pub queue: QueueManager,
    /// Settings of [`QueueManager::Red`].
    pub red: Red,
    /// Which of its inputs gets an output next.
    pub discipline: IntraDiscipline,
    /// What an input may send in a round of [`IntraDiscipline::Drr`].
    pub intra_quantum: ByteSize,
    /// Its place under [`InterDiscipline::StrictPriority`]: 0 is first.
    pub priority: u8,
    /// Its part of the engine's time beside those of the others, if that was said: see [`VirtualSwitch::time_weight`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_weight: Option<u64>,
    /// How long it is there; for ever if not given.
    pub lifetime: Option<Duration>,
    /// Controllers that it connects to, as `tcp:IP:PORT` or `unix:PATH`.
    pub connect: Vec<String>,
    /// Where it listens for controllers, as `ptcp:PORT:IP` or `punix:PATH`.
    pub listen: Vec<String>,
    /// Number of flow tables, `1..=254`.
    pub tables: u8,
    /// Most entries per table.
    pub max_entries: u32,
    /// Most packet-in messages a second.
    pub max_packet_ins: u32,
    /// What it does with no controller.
    pub fail_mode: FailMode,
    /// Flow entries that it starts with, as `ovs-ofctl` writes them; read by the verbs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<String>,
}

impl VirtualSwitch {
    /// Its part of the engine's time while packets want more than all of it, beside those of the others: what was said, or its guaranteed
    /// input capacity in Mbit/s.
    pub fn time_weight(&self) -> u64 {
        let rates: u64 = self.ports.iter().map(|port| port.rate_in.0 / 1_000_000).sum();
        self.time_weight.unwrap_or(rates).max(1)
    }
}

/// Which packets are a virtual switch's: those of which all that is said is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Selector {
    /// The physical port that they come in by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
    /// Their VLAN id, `1..=4094`; 0: they have no tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Their Ethernet source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eth_src: Option<MacAddr>,
    /// Their Ethernet destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eth_dst: Option<MacAddr>,
    /// A prefix of their IP source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_src: Option<IpNet>,
    /// A prefix of their IP destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_dst: Option<IpNet>,
    /// Their outermost MPLS label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpls: Option<u32>,
    /// The id of the tunnel they came through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<u64>,
}

/// A virtual switch's port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct VirtualPort {
    /// Its number on the virtual switch.
    pub number: u32,
    /// The physical port that it is a share of.
    pub port: u32,
    /// Its guaranteed input capacity; zero: nothing comes in here.
    pub rate_in: Bps,
    /// Its guaranteed output capacity; zero: nothing leaves here.
    pub rate_out: Bps,
    /// The output rate that it does not go beyond.
    pub ceiling: Option<Bps>,
    /// What it may send in a round of [`InterDiscipline::Drr`].
    pub quantum: ByteSize,
    /// The VLAN that its packets are in outside, `1..=4094`: the tag is taken away as they come in and put there as they leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
}

impl VirtualPort {
    /// What chooses all packets that can be its.
    pub fn selector(&self) -> Selector {
        Selector { port: Some(self.port), vlan: self.vlan, ..Selector::default() }
    }
}

/// A virtual switch's share of a crosspoint's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Crosspoint {
    /// Number of the virtual port that packets come in by.
    pub from: u32,
    /// Number of the virtual port that they leave by.
    pub to: u32,
    /// The share.
    pub buffer: ByteSize,
}

impl Fabric {
    /// Checks the text of a file with a section `[fabric]` and items `[[virtual]]`, with the keys of a scenario's `[switch.fabric]` and
    /// `[[switch.virtual]]`, for the switch of this name with these ports, by number, and their rates as far as they have any.
    ///
    /// # Errors
    /// It is not TOML, or something in it is wrong: with its line.
    pub fn parse_cut(
        text: &str,
        file: &str,
        switch: &str,
        ports: BTreeMap<u32, Option<Bps>>,
    ) -> Result<(Fabric, Vec<VirtualSwitch>), ScenarioError> {
        let document: document::Cut =
            toml::from_str(text).map_err(|error| ScenarioError::syntax(file, text, &error))?;
        check::alone(&check::Source { file, text }, switch, document, ports)
    }
}

impl VirtualSwitch {
    /// Checks a virtual switch's text, the same keys as a scenario's `[[switch.virtual]]`, for a physical switch with this fabric.
    ///
    /// # Errors
    /// It is not TOML or not a virtual switch, or names ports that the fabric does not have: with its line.
    pub fn parse(text: &str, file: &str, fabric: &Fabric) -> Result<VirtualSwitch, ScenarioError> {
        let document: document::VirtualSwitch =
            toml::from_str(text).map_err(|error| ScenarioError::syntax(file, text, &error))?;
        check::virtual_switch(document, &check::Source { file, text }, fabric)
    }
}

impl crate::Switch {
    /// Its datapath id, and its virtual switches'.
    pub fn dpids(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.dpid).chain(self.virtual_switches.iter().map(|cut| cut.dpid))
    }
}

impl fmt::Display for Selector {
    /// As files have it: `{ port = 1, vlan = 10 }`.
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
