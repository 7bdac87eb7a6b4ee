//! The control socket: one JSON request per line, one JSON reply per line, over a Unix socket that only its owner can
//! open.
//!
//! ```text
//! > {"request":"del-port","port":"eth3"}
//! < {"error":"no port `eth3`; there are: 1=eth1, 2=eth2"}
//! ```
mod buffers;
mod client;
mod clients;
mod configuration;
mod flows;
mod groups;
mod meters;
mod packet;
mod path;
mod perf;
mod profile;
pub(crate) mod server;
mod virtuals;
mod watch;

pub use buffers::{BuffersPerf, PreparedBuffers};
pub use client::{CtlClient, CtlError};
pub use clients::serve_requests;
pub use configuration::{ConfigurationSource, RunningConfiguration, TableContents};
pub use packet::{DescribedPacket, described};
pub use path::{CtlProgram, default_path, find};
pub use perf::{MAX_PERF_SECONDS, PerfReport, StagePerf, ThreadPerf, ThreadPlacement};

use serde::{Deserialize, Serialize};
use weir_datapath::FailMode;
pub use weir_device::MAX_RECORDS;

/// Maximum length of a request's line in bytes: the text of a configuration file with [`MAX_FLOWS`] entries fits.
pub const MAX_REQUEST_BYTES: usize = 1 << 25;
/// Maximum number of flow entries in a reply; the reply counts the entries that it leaves out.
pub const MAX_FLOWS: usize = 100_000;

/// Request to a running switch or, the one that says so, to a running controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum CtlRequest {
    /// Reads the whole [`crate::SwitchSnapshot`].
    Show,
    /// Opens and adds a port; the reply is its number.
    AddPort {
        /// `[N=]KIND:NAME[,option=value...]`; without N the lowest free number.
        port: String,
    },
    /// Removes a port.
    DelPort {
        /// Number or name of the port.
        port: String,
    },
    /// Adds a queue to a port, or changes one.
    SetQueue {
        /// Number or name of the port.
        port: String,
        /// Queue and its parameters: `ID[:min=RATE][:max=RATE][:buffer=SIZE][:priority=N]`.
        queue: String,
    },
    /// Removes a queue of a port; its packets move to the default queue.
    DelQueue {
        /// Number or name of the port.
        port: String,
        /// Number of the queue.
        queue: u32,
    },
    /// Reads flow entries; the reply is [`FlowDump`].
    DumpFlows {
        /// Selection, as `table=0,ip,nw_dst=10.0.0.0/8`; all entries if empty.
        #[serde(default)]
        filter: String,
    },
    /// Changes flow entries.
    FlowMod {
        /// Kind of change.
        command: FlowVerb,
        /// Flow entry, as `priority=10,ip,actions=output:2`.
        flow: String,
    },
    /// Reads the configuration of all groups; the reply is [`GroupDump`].
    DumpGroups,
    /// Reads groups with their counters; the reply is [`GroupDump`].
    DumpGroupStats {
        /// Number of the group; all groups if left out.
        #[serde(default)]
        group: Option<u32>,
    },
    /// Changes a group. A delete also deletes the flow entries that send to it.
    GroupMod {
        /// Kind of change.
        command: GroupVerb,
        /// Group, as `group_id=1,type=all,bucket=output:2,bucket=output:3`.
        group: String,
    },
    /// Adds, modifies or deletes meters.
    MeterMod {
        /// Kind of change.
        command: MeterVerb,
        /// Meter, as `meter=1,kbps,bands=type=drop,rate=1000`; in deletes its number, or empty for all.
        meter: String,
    },
    /// Reads the configuration of meters; the reply is [`MeterDump`].
    DumpMeters {
        /// Selection, as `meter=1`; all meters if empty.
        #[serde(default)]
        meter: String,
    },
    /// Reads the statistics of meters; the reply is [`MeterDump`].
    MeterStats {
        /// Selection, as `meter=1`; all meters if empty.
        #[serde(default)]
        meter: String,
    },
    /// Traces a packet through the tables without sending it; the reply is [`TraceReply`].
    Trace {
        /// Input port, by number or name.
        in_port: String,
        /// Frame in hexadecimal, or a description as `tcp,nw_src=10.0.0.1,tp_dst=80`.
        packet: String,
    },
    /// Measures for a while where the switch's threads spend their time; the reply is [`PerfReport`].
    Perf {
        /// Duration in seconds, at most [`MAX_PERF_SECONDS`].
        seconds: f64,
    },
    /// Reads how exactly the switch keeps its profile's times; the reply is [`ProfileReply`].
    Profile {
        /// True to also take the records of controllers' commands made since the last such request.
        #[serde(default)]
        commands: bool,
    },
    /// Adds a virtual switch.
    AddVirtual {
        /// Specification, in the syntax of a scenario's `[[switch.virtual]]`.
        text: String,
        /// Name of the file with the specification, for error messages.
        #[serde(default)]
        file: String,
    },
    /// Changes a virtual switch.
    ResizeVirtual {
        /// Name of the virtual switch.
        name: String,
        /// Keys to change, in the syntax of a scenario's `[[switch.virtual]]`.
        text: String,
        /// Name of the file with the text, for error messages.
        #[serde(default)]
        file: String,
    },
    /// Removes a virtual switch.
    RemoveVirtual {
        /// Name of the virtual switch.
        name: String,
    },
    /// Reads virtual switches, as [`crate::VirtualSwitchSnapshot`].
    ShowVirtual {
        /// Name of the virtual switch; all if left out.
        #[serde(default)]
        name: Option<String>,
    },
    /// Sends a request to a virtual switch instead of the switch itself.
    Of {
        /// Name of the virtual switch.
        name: String,
        /// Request to the virtual switch.
        what: Box<CtlRequest>,
    },
    /// Connects to a further controller.
    AddController {
        /// Controller, as `tcp:HOST[:PORT]` with options.
        controller: String,
    },
    /// Ends the connection to a controller.
    DelController {
        /// Controller, as it was given.
        controller: String,
    },
    /// Listens on a further address.
    AddListener {
        /// Address, as `ptcp:[PORT][:HOST]`, `pssl:[PORT][:HOST]` or `punix:PATH`.
        listener: String,
    },
    /// Listens on an address no longer; channels that came by it end.
    DelListener {
        /// Address, as it was given.
        listener: String,
    },
    /// Changes the behaviour of the switch without a controller.
    SetFailMode {
        /// Behaviour from now on.
        mode: FailMode,
    },
    /// Reads what a configuration file has to say for a switch that starts as this one is now; the reply is
    /// [`RunningConfiguration`].
    Configuration,
    /// Tells the switch that its configuration file now has this text, and that the switch is as it says: what
    /// [`ConfigurationSource::text`] has from now on.
    SetConfigurationText {
        /// Text of the configuration file.
        text: String,
    },
    /// Begins to send a [`SnoopRecord`] a line for each message that passes the channels, until the client leaves.
    Snoop,
    /// Makes an OpenFlow channel of the connection; what follows the reply's line are messages.
    Monitor,
    /// Stops the switch; the reply is sent before.
    Stop,
    /// Reads the state of a controller; a switch refuses it.
    ShowController,
}

/// Kind of change that a flow-mod makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "named by the specification")]
pub enum FlowVerb {
    Add,
    Modify,
    ModifyStrict,
    Delete,
    DeleteStrict,
}

/// Kind of change that a group-mod makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "named by the specification")]
pub enum GroupVerb {
    Add,
    Modify,
    Delete,
}

/// Kind of change that a meter-mod makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "named by the specification")]
pub enum MeterVerb {
    Add,
    Modify,
    Delete,
}

/// Reply to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CtlReply {
    /// Success, with the result.
    Ok(serde_json::Value),
    /// Failure, with the reason.
    Error(String),
}

/// Line that follows the reply to [`CtlRequest::Snoop`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnoopRecord {
    /// Message that passed a channel.
    Message(SnoopedMessage),
    /// Number of messages that are left out here, because the client does not read fast enough.
    Lost(u64),
}

/// Message that passed a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnoopedMessage {
    /// Time in nanoseconds since 1970.
    pub time_ns: u64,
    /// Peer of the channel, as in [`crate::ChannelSnapshot`].
    pub channel: String,
    /// True if the peer sent the message, false if the switch did.
    pub to_switch: bool,
    /// Bytes of the message, in hexadecimal.
    pub bytes: String,
}

impl SnoopedMessage {
    /// Makes the record of a message that passes now.
    pub(crate) fn now(channel: &str, to_switch: bool, bytes: &[u8]) -> SnoopedMessage {
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        SnoopedMessage {
            time_ns: u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX),
            channel: channel.to_owned(),
            to_switch,
            bytes: hexadecimal(bytes),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Flow entries of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowDump {
    /// Flow entries, at most [`MAX_FLOWS`].
    pub flows: Vec<DumpedFlow>,
    /// Number of entries left out.
    pub left_out: usize,
}

/// A flow entry as text and as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpedFlow {
    /// Text for people.
    pub text: String,
    /// JSON for programs.
    pub entry: serde_json::Value,
}

/// Groups of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupDump {
    /// All requested groups, in order of their numbers.
    pub groups: Vec<DumpedGroup>,
}

/// A group or its counters, as text and as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpedGroup {
    /// Text for people.
    pub text: String,
    /// JSON for programs.
    pub group: serde_json::Value,
}

/// Meters of a reply, or their statistics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeterDump {
    /// All requested meters, in order of their numbers.
    pub meters: Vec<DumpedMeter>,
}

/// A meter or its statistics, as text and as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpedMeter {
    /// Text for people: one line, and one for each band.
    pub text: String,
    /// JSON for programs.
    pub meter: serde_json::Value,
}

/// Accuracy of a switch in keeping its profile's times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileReply {
    /// Present state of the timing.
    pub timing: weir_device::TimingSnapshot,
    /// Records of controllers' commands, if requested: CSV with a heading, at most [`MAX_RECORDS`] lines, oldest
    /// first.
    pub commands: Option<Vec<String>>,
}

/// A traced packet as text and as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceReply {
    /// Text for people.
    pub text: String,
    /// JSON for programs.
    pub trace: serde_json::Value,
}
