//! Parses and checks scenario files: one TOML schema for every verb.
//!
//! A scenario describes a network (switches, hosts, links, tenants), its controller, and the traffic that crosses it.
//! It is read in two steps. `document` is the file as written, with the place of every value. `check` turns it into a
//! [`Scenario`] with resolved names, defaults and checked limits, or into one [`ScenarioError`] with file, line,
//! value found and value expected. docs/scenario.md describes the schema for users.
mod address;
mod check;
mod cut;
mod document;
mod error;
pub mod native;
mod stream;
mod timing;
mod topology;
mod under_way;
mod virtual_switch;
mod written_out;

pub use address::IpNet;
pub use error::ScenarioError;
pub use stream::{PacketStream, Simulate};
pub use timing::{ControllerTiming, Install};
pub use virtual_switch::{
    Crosspoint, Fabric, FabricPort, IntraDiscipline, QueueManager, Red, Selector, VirtualPort, VirtualSwitch,
};
pub use weir_fabric::{InterDiscipline, Sharing};
pub use weir_profile::Profile;
pub use weir_profile::{ControlPath, Gate, Returns, ServiceTime, SwitchTiming};
pub use weir_traffic::impair::{Jitter, JitterLaw, Loss};
pub use written_out::write_out;

use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use weir_packet::MacAddr;
use weir_traffic::Offered;
use weir_units::{Bps, ByteSize, Span};

/// Most switches, hosts, links, traffic items, streams and tenants, each.
pub const MAX_ITEMS: usize = 1000;

/// Checked scenario. Lists keep the file's order; references are indices into them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scenario {
    /// Name: the file's `name`, or the file name without extension.
    pub name: String,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Control of the switches.
    pub control: Control,
    /// Service time and delay of the controller.
    #[serde(skip)]
    pub controller: ControllerTiming,
    /// Tenants, in the file's order.
    pub tenants: Vec<Tenant>,
    /// Switches, in the file's order.
    pub switches: Vec<Switch>,
    /// Hosts, each on one switch port.
    pub hosts: Vec<Host>,
    /// Links between switches.
    pub links: Vec<Link>,
    /// Traffic between hosts, in order of start.
    pub traffic: Vec<Traffic>,
    /// Streams: packets by rule through one switch.
    #[serde(skip)]
    pub streams: Vec<PacketStream>,
    /// Settings of the simulation.
    #[serde(skip)]
    pub simulate: Simulate,
    /// Default length of tcp and udp items, and of the simulated time.
    pub duration: Duration,
}

/// Control of a scenario's switches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Controller in this process.
    Embedded {
        /// Application of the controller.
        app: App,
        /// Highest OpenFlow version offered: `1.0` or `1.3`.
        openflow: OpenFlow,
    },
    /// External controller, as `tcp:IP:PORT` or `unix:PATH`.
    Connect(String),
    /// No controller: switches work by their fail mode.
    None,
}

/// Application of the embedded controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum App {
    /// Learning switch, with isolated tenants.
    Learning,
}

/// OpenFlow version, as files name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
pub enum OpenFlow {
    /// Version 1.0 of OpenFlow.
    #[serde(rename = "1.0")]
    V10,
    /// Version 1.3 of OpenFlow.
    #[serde(rename = "1.3")]
    V13,
}

/// Behaviour of a switch without a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailMode {
    /// Only the existing flow entries forward packets.
    Secure,
    /// The switch forwards like a learning bridge.
    Standalone,
}

/// Tenant: hosts that reach each other and no others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tenant {
    /// Name of the tenant.
    pub name: String,
    /// VLAN id that carries its frames between switches, `1..=4094`.
    pub vlan: u16,
}

/// Switch of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Switch {
    /// Name of the switch.
    pub name: String,
    /// Datapath id; by default the position in the file, from 1.
    pub dpid: u64,
    /// Number of flow tables, `1..=254`.
    pub tables: u8,
    /// Most entries per table.
    pub max_entries: u32,
    /// Behaviour without a controller.
    pub fail_mode: FailMode,
    /// Distribution over threads, if the file has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<Threads>,
    /// Initial flow entries in the format of `ovs-ofctl`. This crate does not parse them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<String>,
    /// Service times, if the file has them.
    #[serde(skip)]
    pub timing: Option<SwitchTiming>,
    /// Profile of the measured device whose times the switch has, if the file names one or has `timing`. Contains
    /// `timing`.
    #[serde(skip)]
    pub profile: Option<Box<Profile>>,
    /// Fabric that its virtual switches share; present with virtual switches or if the file has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabric: Option<Fabric>,
    /// Virtual switches cut from the switch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub virtual_switches: Vec<VirtualSwitch>,
}

/// Distribution of a switch over threads. Settings left out have the switch's defaults. Texts are as on the switch's
/// command line, which checks them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Threads {
    /// Mode of forwarding: `rtc` or `pipeline`.
    pub mode: Option<String>,
    /// Hand-over of bursts between threads: `auto` or `always`.
    pub hand_over: Option<String>,
    /// Number of workers, which run packets through the tables.
    pub workers: Option<usize>,
    /// Assignment of ports to threads in mode `rtc`: `PORT=THREAD,...`.
    pub deal: Option<String>,
    /// Sizes of the six bursts, or one number for all.
    pub bursts: Option<String>,
    /// Turns of the receiving and transmitting loops after which an incomplete burst is passed on.
    pub io_loop_count: Option<u32>,
    /// Turns of a worker's loop after which an incomplete burst is passed on.
    pub worker_loop_count: Option<u32>,
    /// Time after which an incomplete burst is passed on.
    pub flush_time: Option<Span>,
    /// Frames that a ring holds.
    pub ring_size: Option<usize>,
    /// Number of frame buffers at the start.
    pub buffers: Option<usize>,
    /// Policy that assigns packets to workers: `port`, `mac` or `5-tuple`.
    pub policy: Option<String>,
    /// Assignments of packets to workers: `MATCH=>WORKER`.
    pub class: Vec<String>,
    /// CPUs to which threads are bound.
    pub cpus: Option<String>,
}

/// Host on a switch port.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Host {
    /// Name of the host.
    pub name: String,
    /// Index of its switch.
    pub switch: usize,
    /// Number of its port on the switch.
    pub port: u32,
    /// Index of its tenant; `None` without one.
    pub tenant: Option<usize>,
    /// IP addresses, at least one.
    pub ip: Vec<IpNet>,
    /// Ethernet address of the host.
    pub mac: MacAddr,
    /// Link to its switch, alike in both directions.
    pub link: LinkSpec,
    /// Queues of the switch's port to the host, in addition to the default queue.
    pub queues: Vec<Queue>,
}

/// Queue of a port, with its share of the link's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// Number by which flow entries choose the queue. Queue 0 gets packets for which none is chosen.
    pub queue: u32,
    /// Guaranteed rate, independent of other queues.
    pub min: Option<Bps>,
    /// Rate that the queue does not exceed.
    pub max: Option<Bps>,
    /// Most bytes that wait in the queue; further packets are dropped.
    pub buffer: ByteSize,
    /// Priority for the rate that minimum rates leave over: higher first, `0..=7`.
    pub priority: u8,
}

/// Effects of a link on frames, alike in each direction. By default a link is as fast as the machine.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LinkSpec {
    /// Rate of the link; `None` for no limit.
    pub rate: Option<Bps>,
    /// Time from the last bit sent to the frame received.
    pub delay: Duration,
    /// Most bytes that wait for the link's rate; further frames are dropped.
    pub buffer: Option<ByteSize>,
    /// Variation of the delay from frame to frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Random loss of frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
}

/// Link between two switches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Link {
    /// Ends of the link.
    pub ends: [End; 2],
    /// Effects on frames.
    pub spec: LinkSpec,
    /// Queues of the ports at both ends, in addition to the default queues.
    pub queues: Vec<Queue>,
}

/// End of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct End {
    /// Index of the switch.
    pub switch: usize,
    /// Number of the port on that switch.
    pub port: u32,
}

/// Traffic from one host to another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Traffic {
    /// Index of the sending host (the client).
    pub from: usize,
    /// Index of the receiving host (the server).
    pub to: usize,
    /// Address of the receiver to which packets are sent; it determines the version of IP.
    pub address: std::net::IpAddr,
    /// Start, as time from the start of the run.
    pub start: Duration,
    /// Kind of packets sent.
    pub kind: TrafficKind,
    /// Outcome that is expected.
    pub expect: Expect,
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
        /// Length of sending.
        duration: Duration,
    },
    /// UDP datagrams by rule.
    Udp {
        /// Length of sending.
        duration: Duration,
        /// Arrival times and frame lengths.
        #[serde(skip)]
        offered: Offered,
        /// Share of the datagrams that begin a flow, `0.0..=1.0`.
        new_flows: f64,
        /// Number of concurrent flows, if the file gives it. Flows then have a mean of `1 / new_flows` packets.
        #[serde(skip_serializing_if = "Option::is_none")]
        flows: Option<u32>,
    },
}

/// Returns the bytes of Ethernet, IP and UDP headers in front of a datagram's payload.
pub const fn udp_headers(ipv6: bool) -> u32 {
    if ipv6 { 14 + 40 + 8 } else { 14 + 20 + 8 }
}

/// Expected outcome of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// Traffic has to arrive.
    Reach,
    /// Traffic must not arrive: the hosts are isolated.
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
        let document: document::Document =
            toml::from_str(text).map_err(|error| ScenarioError::syntax(file, text, &error))?;
        check::check(document, &check::Source { file, text })
    }
}
