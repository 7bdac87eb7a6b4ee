//! Parses and checks scenario files, which have one TOML schema for all verbs (commands of the program).
//!
//! A scenario describes a network (switches, hosts, links, tenants), its controller, and the traffic that crosses it.
//! It is read in two steps. `document` is the file as written, with the place of every value. `check` turns it into a
//! [`Scenario`] with resolved names, defaults and checked limits, or into one [`ScenarioError`] with file, line,
//! value found and value expected. Virtual switches are described with the types of `weir_slicing`. docs/scenario.md
//! describes the schema for users.
mod check;
pub mod defaults;
mod document;
mod drain_time;
mod error;
mod expand;
mod interface_name;
mod link_rate;
mod loops;
mod network_control;
pub mod networks;
mod stream;
mod tables_met;
mod timing;
mod topology;
mod virtual_switch_text;

pub use error::ScenarioError;
pub use expand::expand_topology;
pub use interface_name::{interface_name, link_interface_name};
pub use network_control::{
    DelayBound, DelayKind, ForwardingMode, IntentConstraints, IntentKind, IntentSpec, NetworkControl, NetworkFile,
    ScenarioIntent,
};
pub use stream::{PacketStream, SimulationSettings};
pub use tables_met::{MetLevel, ScenarioTables, unused_parameters};
pub use timing::{ControllerTiming, InstallScope};
pub use virtual_switch_text::{TomlVirtualSwitchReader, parse_slicing, parse_virtual_switch};
pub use weir_datapath::FailMode;
pub use weir_fabric::{BufferSharing, InterDiscipline, IntraDiscipline};
pub use weir_profile::{ControlPathTiming, ReleaseGate, ReturnDiscipline, ServiceTime, SwitchTiming};
pub use weir_profile::{FirstPackets, FlowCacheTiming, LevelForwarding, MatchLayers, Profile, ProfileUse};
pub use weir_traffic::impair::{JitterLaw, LinkJitter, LinkLoss};

use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use weir_packet::{IpNet, MacAddr};
use weir_slicing::{FabricSpec, VirtualSwitch};
use weir_traffic::OfferedPackets;
use weir_units::{Bps, ByteSize, TimeSpan};

/// Maximum number of switches in a scenario; also of hosts, of links, of traffic items, of streams, and of tenants.
pub const MAX_ITEMS: usize = 1000;

/// Checked scenario. Lists have the file's order unless stated otherwise. Items refer to others by index.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scenario {
    /// Name: the file's `name`, or the file name without extension.
    pub name: String,
    /// Seed for all random numbers.
    pub seed: u64,
    /// Controller of the switches, if there is one.
    pub control: ScenarioController,
    /// Service time and delay of the controller.
    #[serde(skip)]
    pub controller: ControllerTiming,
    /// Settings of the controller of a network, its applications, and intents.
    #[serde(skip)]
    pub network_control: NetworkControl,
    /// Virtual networks, in the file's order.
    #[serde(skip)]
    pub networks: Vec<networks::ScenarioNetwork>,
    /// Tenants, in the file's order.
    pub tenants: Vec<Tenant>,
    /// Switches, in the file's order.
    pub switches: Vec<ScenarioSwitch>,
    /// Hosts, each on one switch port.
    pub hosts: Vec<ScenarioHost>,
    /// Links between switches.
    pub links: Vec<ScenarioLink>,
    /// Traffic between hosts, in order of start.
    pub traffic: Vec<TrafficItem>,
    /// Streams of packets through one switch, described by arrival times and lengths.
    #[serde(skip)]
    pub streams: Vec<PacketStream>,
    /// Settings of the simulation.
    #[serde(skip)]
    pub simulate: SimulationSettings,
    /// Default length of tcp and udp items, and of the simulated time.
    pub duration: Duration,
}

/// Controller of a scenario's switches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioController {
    /// Controller in this process.
    Embedded {
        /// Application of the controller.
        app: EmbeddedApp,
        /// Highest OpenFlow version offered: `1.0` or `1.3`.
        openflow: OpenFlowVersion,
    },
    /// External controller, as `tcp:HOST:PORT` or `unix:PATH`.
    Connect(String),
    /// No controller: switches forward by their fail mode.
    None,
}

/// Application of the embedded controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmbeddedApp {
    /// Learning switch, with isolated tenants.
    Learning,
    /// Controller of the whole network: finds links and hosts, and gives switches the entries of shortest ways.
    Forwarding,
}

impl EmbeddedApp {
    /// All applications with their names in files and on the command line, and what they do.
    pub const ALL: [(EmbeddedApp, &'static str, &'static str); 2] = [
        (EmbeddedApp::Learning, "learning", "Learning switch: learns addresses per VLAN, adds entries"),
        (EmbeddedApp::Forwarding, "forwarding", "Network: finds links and hosts, leads packets on shortest ways"),
    ];
}

/// OpenFlow version that scenario files can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
pub enum OpenFlowVersion {
    /// Version 1.0 of OpenFlow.
    #[serde(rename = "1.0")]
    V10,
    /// Version 1.3 of OpenFlow.
    #[serde(rename = "1.3")]
    V13,
}

/// Tenant: a set of hosts that can reach each other and no other hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tenant {
    /// Name of the tenant.
    pub name: String,
    /// VLAN id of the tenant's frames between switches, `1..=4094`.
    pub vlan: u16,
}

/// Switch of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScenarioSwitch {
    /// Name of the switch.
    pub name: String,
    /// Datapath id; by default the position in the file, from 1.
    pub dpid: u64,
    /// Number of flow tables, `1..=254`.
    pub tables: u8,
    /// Maximum number of entries per table.
    pub max_entries: u32,
    /// Behaviour without a controller.
    pub fail_mode: FailMode,
    /// Division of the work among threads, if the file sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<ScenarioThreads>,
    /// Initial flow entries in the format of `ovs-ofctl`, with numbers of ports, not parsed yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<String>,
    /// Service times of the profile, if there is a profile that has them.
    #[serde(skip)]
    pub timing: Option<SwitchTiming>,
    /// Profile of the device whose delays the switch imitates. It is the one that the file names, or is made from the
    /// switch's section `timing`; `None` if the file has neither. Its service times are also in `timing`.
    #[serde(skip)]
    pub profile: Option<Box<Profile>>,
    /// Fabric (queues between the ports) that the virtual switches share; present if there are virtual switches, or if
    /// the file has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabric: Option<FabricSpec>,
    /// Virtual switches into which the switch is divided.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub virtual_switches: Vec<VirtualSwitch>,
}

impl ScenarioSwitch {
    /// Returns the datapath ids of the switch and of its virtual switches.
    pub fn dpids(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.dpid).chain(self.virtual_switches.iter().map(|cut| cut.dpid))
    }
}

/// Division of a switch's work among threads. Settings that are `None` have the switch's defaults. Texts have the
/// syntax of the command line of `weir switch`, and are not checked yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct ScenarioThreads {
    /// Mode of forwarding: `rtc` or `pipeline`.
    pub mode: Option<String>,
    /// Method of handing bursts over between threads: `auto` or `always`.
    pub hand_over: Option<String>,
    /// Number of workers, which run packets through the tables.
    pub workers: Option<usize>,
    /// Assignment of ports to threads in mode `rtc`: `PORT=THREAD,...`.
    pub deal: Option<String>,
    /// Sizes of the six bursts, or one number for all.
    pub bursts: Option<String>,
    /// Number of turns of the receiving and transmitting loops after which an incomplete burst is passed on.
    pub io_loop_count: Option<u32>,
    /// Number of turns of a worker's loop after which an incomplete burst is passed on.
    pub worker_loop_count: Option<u32>,
    /// Time after which an incomplete burst is passed on.
    pub flush_time: Option<TimeSpan>,
    /// Number of frames that a ring between threads holds.
    pub ring_size: Option<usize>,
    /// Number of frame buffers at the start.
    pub buffers: Option<usize>,
    /// Policy that assigns packets to workers: `port`, `mac` or `5-tuple`.
    pub policy: Option<String>,
    /// Assignments of packets to workers that override the policy: `MATCH=>WORKER`.
    pub class: Vec<String>,
    /// CPUs to which threads are bound.
    pub cpus: Option<String>,
}

/// Host on a switch port.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScenarioHost {
    /// Name of the host.
    pub name: String,
    /// Index of the switch that the host is connected to.
    pub switch: usize,
    /// Number of the switch port that the host is connected to.
    pub port: u32,
    /// Index of the host's tenant; `None` for a host without a tenant.
    pub tenant: Option<usize>,
    /// IP addresses of the host, at least one.
    pub ip: Vec<IpNet>,
    /// Ethernet address of the host.
    pub mac: MacAddr,
    /// Link between host and switch; it has the same effects in both directions.
    pub link: LinkSpec,
    /// Queues of the switch's port to the host, in addition to the default queue.
    pub queues: Vec<PortQueueSpec>,
}

/// Queue of a switch port, with its share of the link's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PortQueueSpec {
    /// Number by which flow entries select the queue. Queue 0 gets packets for which no queue is selected.
    pub queue: u32,
    /// Guaranteed rate; `None` for no guarantee.
    pub min: Option<Bps>,
    /// Maximum rate; `None` for no maximum.
    pub max: Option<Bps>,
    /// Maximum number of bytes that wait in the queue. Packets that exceed it are dropped.
    pub buffer: ByteSize,
    /// Priority, `0..=7`, in the division of the rate that remains after all guaranteed rates; higher values first.
    pub priority: u8,
}

/// Effects of a link on frames, equal in both directions. By default a link adds no delay and has no
/// limit of its rate.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LinkSpec {
    /// Rate of the link; `None` for no limit.
    pub rate: Option<Bps>,
    /// Time from the end of a frame's transmission to its reception.
    pub delay: Duration,
    /// Maximum number of bytes that wait for transmission at the link's rate. Frames that exceed it are dropped.
    pub buffer: Option<ByteSize>,
    /// Variation of the delay from frame to frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<LinkJitter>,
    /// Random loss of frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<LinkLoss>,
}

/// Link between two switches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScenarioLink {
    /// Ends of the link.
    pub ends: [LinkEnd; 2],
    /// Effects of the link on frames.
    pub spec: LinkSpec,
    /// Queues of the ports at both ends, in addition to the default queues.
    pub queues: Vec<PortQueueSpec>,
}

/// End of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LinkEnd {
    /// Index of the switch.
    pub switch: usize,
    /// Number of the port on that switch.
    pub port: u32,
}

/// Traffic from one host to another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrafficItem {
    /// Index of the sending host (the client).
    pub from: usize,
    /// Index of the receiving host (the server).
    pub to: usize,
    /// IP address of the receiver to which packets are sent, IPv4 or IPv6.
    pub address: std::net::IpAddr,
    /// Time from the start of the run to the start of this traffic.
    pub start: Duration,
    /// Kind of the traffic, with its parameters.
    pub kind: TrafficKind,
    /// Expected outcome.
    pub expect: TrafficExpectation,
}

/// Kind of traffic between hosts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrafficKind {
    /// ICMP echo requests.
    Ping {
        /// Number of requests.
        count: u32,
        /// Time between requests.
        interval: Duration,
    },
    /// Single TCP connection that sends as fast as it can.
    Tcp {
        /// Time for which the client sends.
        duration: Duration,
    },
    /// UDP datagrams with described arrival times and lengths.
    Udp {
        /// Time for which the client sends.
        duration: Duration,
        /// Arrival times and frame lengths.
        #[serde(skip)]
        offered: OfferedPackets,
        /// Share of the datagrams that begin a flow, `0.0..=1.0`.
        new_flows: f64,
        /// Number of concurrent flows, if the file sets it. A flow then has `1 / new_flows` packets on average.
        #[serde(skip_serializing_if = "Option::is_none")]
        flows: Option<u32>,
    },
}

impl TrafficKind {
    /// Sets the time for which the client sends, of kinds that have one. A replayed capture ends earlier if it has no
    /// more packets.
    pub fn set_duration(&mut self, wanted: Duration) {
        match self {
            TrafficKind::Ping { .. } => {}
            TrafficKind::Udp { duration, offered: OfferedPackets::Trace(trace), .. } if trace.is_replayed() => {
                *duration = wanted.min(trace.length());
            }
            TrafficKind::Tcp { duration } | TrafficKind::Udp { duration, .. } => *duration = wanted,
        }
    }
}

/// Returns the total length of the Ethernet, IP and UDP headers of a datagram, in bytes.
pub const fn udp_headers(ipv6: bool) -> u32 {
    if ipv6 { 14 + 40 + 8 } else { 14 + 20 + 8 }
}

/// Expected outcome of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrafficExpectation {
    /// The traffic must arrive.
    Reach,
    /// The traffic must not arrive, because the hosts are isolated from each other.
    Isolated,
}

impl Scenario {
    /// Reads and checks a scenario file.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or does not describe a network. The error has the line.
    pub fn read(path: &Path) -> Result<Scenario, ScenarioError> {
        let file = path.display().to_string();
        let text = weir_units::read_text(path).map_err(|error| ScenarioError::unreadable(&file, &error))?;
        Scenario::parse(&text, &file)
    }

    /// Checks a scenario's text. `file` names it in errors, names the scenario if it has no `name`, and is the base
    /// of relative paths.
    ///
    /// # Errors
    /// The text is not TOML, or does not describe a network. The error has the line.
    pub fn parse(text: &str, file: &str) -> Result<Scenario, ScenarioError> {
        let document: document::ScenarioToml =
            toml::from_str(text).map_err(|error| ScenarioError::syntax(file, text, &error))?;
        check::check(document, &check::SourceFile { file, text })
    }
}
