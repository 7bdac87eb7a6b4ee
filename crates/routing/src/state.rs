//! State of a network for its operator, as the interface and `weir net` show it: JSON objects with these fields.
use crate::map::SwitchPort;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use weir_openflow::model::PortNo;
use weir_packet::MacAddr;

/// The whole network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkState {
    /// Seconds since the start of the controller.
    pub time_s: f64,
    /// Number of the newest event; see [`EventRecord::number`].
    pub last_event: u64,
    /// Switches that are connected, in order of their datapath ids.
    pub switches: Vec<SwitchState>,
    /// Links between switches, each once.
    pub links: Vec<NetworkLink>,
    /// Hosts, in order of their addresses.
    pub hosts: Vec<HostState>,
    /// Intents, in order of their keys.
    pub intents: Vec<crate::intents::IntentStatus>,
    /// Counters by name.
    pub counters: BTreeMap<String, u64>,
}

/// Numbers of what a network has, for counters: cheap however large the network is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkSummary {
    /// Switches that are connected.
    pub switches: u64,
    /// Ports of these switches that are up.
    pub ports_up: u64,
    /// Ports of these switches that are down.
    pub ports_down: u64,
    /// Links that are up, each once.
    pub links_up: u64,
    /// Links of these that failed again and again.
    pub links_damped: u64,
    /// Links that were up and are down now, with no other link at their ports.
    pub links_down: u64,
    /// Hosts.
    pub hosts: u64,
    /// Intents by state.
    pub intents: BTreeMap<String, u64>,
    /// Events since the start, by kind.
    pub events: BTreeMap<String, u64>,
    /// Events of these that the operator should look at.
    pub alarms: u64,
    /// Counters by name.
    pub counters: BTreeMap<String, u64>,
}

/// A switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwitchState {
    /// Datapath id.
    #[serde(with = "hex_dpid")]
    pub dpid: u64,
    /// Ports in order of their numbers.
    pub ports: Vec<NetworkPort>,
}

/// A port of a switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkPort {
    /// Number of the port.
    pub number: PortNo,
    /// Name of the port.
    pub name: String,
    /// True if it has a link and is not switched off.
    pub up: bool,
    /// Rate that it states, in kbit/s; 0 if it states none.
    pub rate_kbps: u32,
}

/// A link between two switches.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkLink {
    /// Lesser end.
    pub from: SwitchPort,
    /// Greater end.
    pub to: SwitchPort,
    /// Time that a packet takes over it, in microseconds; absent if it is not known.
    pub delay_us: Option<f64>,
    /// True if it failed again and again, so that it is used only where no other way is.
    pub damped: bool,
    /// Measured load of both directions (from the lesser end, from the greater end), in bit/s; absent if no monitor
    /// runs.
    pub load_bps: Option<[f64; 2]>,
    /// Bandwidth that intents have reserved in both directions, in bit/s; absent if there is none.
    pub reserved_bps: Option<[u64; 2]>,
    /// True if it leads through switches of others (an island).
    #[serde(default)]
    pub indirect: bool,
    /// True if it is not used, because it leads where other links lead.
    #[serde(default)]
    pub blocked: bool,
}

impl NetworkLink {
    /// Returns a direct link of which nothing more is known, by its lesser and its greater end.
    pub const fn between(from: SwitchPort, to: SwitchPort) -> NetworkLink {
        NetworkLink {
            from,
            to,
            delay_us: None,
            damped: false,
            load_bps: None,
            reserved_bps: None,
            indirect: false,
            blocked: false,
        }
    }
}

/// A host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostState {
    /// Ethernet address.
    pub mac: MacAddr,
    /// Port to which it is connected.
    pub at: SwitchPort,
    /// IP addresses that it uses.
    pub ips: Vec<IpAddr>,
    /// Name that it gave itself (DHCP).
    pub name: Option<String>,
    /// Seconds since the controller saw a packet of it.
    pub seen_s: f64,
}

/// An event of the network, with its place in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Number of the event, from 1 since the start of the controller.
    pub number: u64,
    /// Seconds since the start of the controller.
    pub time_s: f64,
    /// Kind of the event, such as `host-moved`.
    pub kind: String,
    /// Event in words.
    pub text: String,
    /// True if the operator should look at it: an attack, a refusal, a failure.
    pub alarm: bool,
}

/// Writes a datapath id as hexadecimal digits, because JSON's numbers lose digits of it.
pub mod hex_dpid {
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes 16 hexadecimal digits.
    ///
    /// # Errors
    /// Fails for the reasons of the serializer.
    pub fn serialize<S: Serializer>(dpid: &u64, into: S) -> Result<S::Ok, S::Error> {
        into.collect_str(&format_args!("{dpid:016x}"))
    }

    /// Reads hexadecimal digits.
    ///
    /// # Errors
    /// Fails for the reasons of the deserializer, and for text that is no datapath id.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        let error = || serde::de::Error::custom(format!("found `{text}`, expected a datapath id in hexadecimal"));
        crate::map::parse_dpid(&text).ok_or_else(error)
    }
}
