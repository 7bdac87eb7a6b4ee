//! Scenario files: one TOML schema for every verb.
//!
//! A scenario says what a network is (switches, hosts, links, tenants), who controls it, and what traffic crosses it. It is
//! read in two steps: `document` is the file as written, with the place of every value; `check` turns it into a
//! [`Scenario`] whose names are resolved, defaults filled in and limits kept, or into one [`ScenarioError`] that names file,
//! line, what was found and what was expected. docs/scenario.md describes the schema for its users.
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

/// Most switches, hosts, links, traffic items and tenants, each.
pub const MAX_ITEMS: usize = 1000;

/// A checked scenario. Lists keep the file's order; references are indices into them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scenario {
    /// Its name: the file's `name`, or the file name without ending.
    pub name: String,
    /// Seed of everything random.
    pub seed: u64,
    /// Who controls the switches.
    pub control: Control,
    /// How long the controller takes.
    #[serde(skip)]
    pub controller: ControllerTiming,
    /// Tenants.
    pub tenants: Vec<Tenant>,
    /// Switches.
    pub switches: Vec<Switch>,
    /// Hosts, each on one switch port.
    pub hosts: Vec<Host>,
    /// Links between switches.
    pub links: Vec<Link>,
    /// Traffic between hosts, in order of start.
    pub traffic: Vec<Traffic>,
    /// Packets by rule.
    #[serde(skip)]
    pub streams: Vec<PacketStream>,
    /// How it is simulated.
    #[serde(skip)]
    pub simulate: Simulate,
    /// How long a run with packets by rule lasts, and tcp and udp items that do not say.
    pub duration: Duration,
}

/// Who controls the switches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// The controller in this process.
    Embedded {
        /// Its application.
        app: App,
        /// The highest OpenFlow version offered: `1.0` or `1.3`.
        openflow: OpenFlow,
    },
    /// A controller elsewhere, as `tcp:IP:PORT` or `unix:PATH`.
    Connect(String),
    /// Nobody: switches work as their fail mode says.
    None,
}

/// An application of the embedded controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum App {
    /// Learning switch.
    Learning,
}

/// An OpenFlow version as files name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
pub enum OpenFlow {
    /// OpenFlow 1.0.
    #[serde(rename = "1.0")]
    V10,
    /// OpenFlow 1.3.
    #[serde(rename = "1.3")]
    V13,
}

/// What a switch does with no controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailMode {
    /// Its entries stay in force, nothing else.
    Secure,
    /// It forwards like a learning bridge.
    Standalone,
}

/// A tenant: hosts that reach each other and nobody else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// VLAN id that carries it between switches, `1..=4094`.
    pub vlan: u16,
}

/// A switch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// Its datapath id; by default its place in the file, from 1.
    pub dpid: u64,
    /// Number of flow tables, `1..=254`.
    pub tables: u8,
    /// Most entries per table.
    pub max_entries: u32,
    /// What it does with no controller.
    pub fail_mode: FailMode,
    /// How it spreads over threads, if the file says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<Threads>,
    /// Flow entries that it starts with, as `ovs-ofctl` writes them; read by the verbs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<String>,
    /// How long it takes, if the file says.
    #[serde(skip)]
    pub timing: Option<SwitchTiming>,
    /// The device that it is like in time, if the file says: `timing` and, from a profile, what else is known.
    #[serde(skip)]
    pub profile: Option<Box<Profile>>,
    /// What its virtual switches are cut from, if it has any or the file says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fabric: Option<Fabric>,
    /// Its virtual switches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub virtual_switches: Vec<VirtualSwitch>,
}

/// How a switch spreads over threads: what is not said is as the switch has it. Texts are as on its command line, and checked by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Threads {
    /// `rtc` or `pipeline`.
    pub mode: Option<String>,
    /// `auto` or `always`.
    pub hand_over: Option<String>,
    /// Threads that run packets through the tables.
    pub workers: Option<usize>,
    /// `PORT=THREAD,...` in mode `rtc`.
    pub deal: Option<String>,
    /// The six bursts, or one number for all.
    pub bursts: Option<String>,
    /// Turns that bursts of the receiving and transmitting loops wait to be full.
    pub io_loop_count: Option<u32>,
    /// Turns that bursts of a worker's loop wait to be full.
    pub worker_loop_count: Option<u32>,
    /// Time that bursts wait to be full.
    pub flush_time: Option<Span>,
    /// Frames that a ring holds.
    pub ring_size: Option<usize>,
    /// Frame buffers that there are from the start.
    pub buffers: Option<usize>,
    /// `port`, `mac` or `5-tuple`.
    pub policy: Option<String>,
    /// `MATCH=>WORKER`.
    pub class: Vec<String>,
    /// CPUs that threads are bound to.
    pub cpus: Option<String>,
}

/// A host on a switch port.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Index of its switch.
    pub switch: usize,
    /// Its port's number there.
    pub port: u32,
    /// Index of its tenant.
    pub tenant: Option<usize>,
    /// Its addresses, at least one.
    pub ip: Vec<IpNet>,
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// The link to its switch, the same in both directions.
    pub link: LinkSpec,
    /// Queues of the switch's port to it, beside the default one.
    pub queues: Vec<Queue>,
}

/// A queue of a port: what it is to get of the link's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// Its number, by which flow entries choose it; 0 is for packets for which nothing is chosen.
    pub queue: u32,
    /// Rate it gets whatever the others do.
    pub min: Option<Bps>,
    /// Rate it does not go beyond.
    pub max: Option<Bps>,
    /// Bytes that wait in it at most; more are dropped.
    pub buffer: ByteSize,
    /// Who gets what minimum rates leave over: higher first, `0..=7`.
    pub priority: u8,
}

/// What a link does to frames, in each direction alike. Nothing set: as fast as the machine.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LinkSpec {
    /// Its rate.
    pub rate: Option<Bps>,
    /// Time from the last bit sent to the frame received.
    pub delay: Duration,
    /// Bytes that wait for a rate-limited link at most; more are dropped.
    pub buffer: Option<ByteSize>,
    /// How the delay varies from frame to frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// What is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
}

/// A link between two switches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Link {
    /// Its two ends.
    pub ends: [End; 2],
    /// What it does to frames.
    pub spec: LinkSpec,
    /// Queues of the ports at both ends, beside the default ones.
    pub queues: Vec<Queue>,
}

/// A link's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct End {
    /// Index of the switch.
    pub switch: usize,
    /// The port's number there.
    pub port: u32,
}

/// Traffic from one host to another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Traffic {
    /// Index of the sending host (the client).
    pub from: usize,
    /// Index of the receiving host (the server).
    pub to: usize,
    /// The receiver's address that is used, and its family.
    pub address: std::net::IpAddr,
    /// When it starts, from the start of the run.
    pub start: Duration,
    /// What is sent.
    pub kind: TrafficKind,
    /// Whether it should arrive.
    pub expect: Expect,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrafficKind {
    /// Echo requests.
    Ping {
        /// How many.
        count: u32,
        /// Time between them.
        interval: Duration,
    },
    /// One TCP connection that sends as fast as it can.
    Tcp {
        /// How long.
        duration: Duration,
    },
    /// UDP datagrams by rule.
    Udp {
        /// How long.
        duration: Duration,
        /// When they are sent, and how long their frames are.
        #[serde(skip)]
        offered: Offered,
        /// Share of them that begin a flow, `0.0..=1.0`.
        new_flows: f64,
        /// Flows that are there at a time, if the file says; flows then have `1 / new_flows` packets in the mean.
        #[serde(skip_serializing_if = "Option::is_none")]
        flows: Option<u32>,
    },
}

/// Bytes of Ethernet, IP and UDP headers in front of a datagram's payload.
pub const fn udp_headers(ipv6: bool) -> u32 {
    if ipv6 { 14 + 40 + 8 } else { 14 + 20 + 8 }
}

/// Whether traffic should arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// It should.
    Reach,
    /// It must not: the hosts are isolated.
    Isolated,
}

impl Scenario {
    /// Reads and checks a scenario file.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or does not describe a network: with its line.
    pub fn read(path: &Path) -> Result<Scenario, ScenarioError> {
        let file = path.display().to_string();
        let text = weir_units::read_text(path).map_err(|error| ScenarioError::unreadable(&file, &error))?;
        Scenario::parse(&text, &file)
    }

    /// Checks a scenario's text; `file` names it in errors, and the scenario if it has no `name`.
    ///
    /// # Errors
    /// As [`Scenario::read`].
    pub fn parse(text: &str, file: &str) -> Result<Scenario, ScenarioError> {
        let document: document::Document =
            toml::from_str(text).map_err(|error| ScenarioError::syntax(file, text, &error))?;
        check::check(document, &check::Source { file, text })
    }
}
