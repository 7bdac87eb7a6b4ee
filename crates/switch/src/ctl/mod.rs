//! The control socket: one JSON request per line, one JSON reply per line, over a Unix socket that only its owner can open.
//!
//! ```text
//! > {"request":"del-port","port":"eth3"}
//! < {"error":"no port `eth3`; there are: 1=eth1, 2=eth2"}
//! ```
mod buffers;
mod client;
mod flows;
mod groups;
mod meters;
mod packet;
mod path;
mod perf;
mod profile;
pub(crate) mod server;
mod virtuals;

pub use buffers::{BuffersPerf, PreparedPerf};
pub use client::{Client, CtlError};
pub use packet::{Described, described};
pub use path::{default_path, find};
pub use perf::{MAX_PERF_SECONDS, PerfReport, StagePerf, ThreadPerf, ThreadPlace};

use serde::{Deserialize, Serialize};
pub use weir_timing::MAX_RECORDS;

/// Bytes of a request's line at most.
pub const MAX_REQUEST_BYTES: usize = 1 << 20;
/// Flow entries in one reply at most; a reply says how many it leaves out.
pub const MAX_FLOWS: usize = 100_000;

/// What can be asked of a running switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The whole [`crate::Snapshot`].
    Show,
    /// Opens and adds a port; the reply is its number.
    AddPort {
        /// `[N=]KIND:NAME[,option=value...]`; without N the lowest free number.
        port: String,
    },
    /// Removes a port.
    DelPort {
        /// Its number or name.
        port: String,
    },
    /// Adds a queue to a port, or changes one.
    SetQueue {
        /// The port's number or name.
        port: String,
        /// What it is to get: `ID[:min=RATE][:max=RATE][:buffer=SIZE][:priority=N]`.
        queue: String,
    },
    /// Removes a queue of a port; what waits in it goes to the default queue.
    DelQueue {
        /// The port's number or name.
        port: String,
        /// The queue's number.
        queue: u32,
    },
    /// Flow entries: [`Flows`].
    DumpFlows {
        /// Which, as `table=0,ip,nw_dst=10.0.0.0/8`; all if empty.
        #[serde(default)]
        filter: String,
    },
    /// Changes flow entries.
    FlowMod {
        /// How.
        command: FlowVerb,
        /// The flow, as `priority=10,ip,actions=output:2`.
        flow: String,
    },
    /// Groups as they were asked for: [`Groups`].
    DumpGroups,
    /// Groups with their counters: [`Groups`].
    DumpGroupStats {
        /// Which; all if left out.
        #[serde(default)]
        group: Option<u32>,
    },
    /// Changes a group; with a delete also the flow entries that send to it.
    GroupMod {
        /// How.
        command: GroupVerb,
        /// The group, as `group_id=1,type=all,bucket=output:2,bucket=output:3`.
        group: String,
    },
    /// Changes meters.
    MeterMod {
        /// How.
        command: MeterVerb,
        /// The meter, as `meter=1,kbps,bands=type=drop,rate=1000`; in deletes its number, or nothing for all.
        meter: String,
    },
    /// Meters as they were set: [`Meters`].
    DumpMeters {
        /// Which, as `meter=1`; all if empty.
        #[serde(default)]
        meter: String,
    },
    /// Statistics of meters: [`Meters`].
    MeterStats {
        /// Which, as `meter=1`; all if empty.
        #[serde(default)]
        meter: String,
    },
    /// What would happen to a packet: [`Traced`].
    Trace {
        /// The port it comes in on, by number or name.
        in_port: String,
        /// The frame in hexadecimal, or a description as `tcp,nw_src=10.0.0.1,tp_dst=80`.
        packet: String,
    },
    /// Where the time of the switch's threads goes, watched for a while: [`PerfReport`].
    Perf {
        /// How long, at most [`MAX_PERF_SECONDS`].
        seconds: f64,
    },
    /// How the switch keeps its profile's times: [`Profiled`].
    Profile {
        /// Whether to take what was noted of controllers' commands since that was last asked for.
        #[serde(default)]
        commands: bool,
    },
    /// Adds a virtual switch.
    AddVirtual {
        /// What it is, in the words of a scenario's `[[switch.virtual]]`.
        text: String,
        /// Where that comes from, for messages.
        #[serde(default)]
        file: String,
    },
    /// Changes a virtual switch.
    ResizeVirtual {
        /// Its name.
        name: String,
        /// What is to be different, in the same words.
        text: String,
        /// Where that comes from, for messages.
        #[serde(default)]
        file: String,
    },
    /// Removes a virtual switch.
    RemoveVirtual {
        /// Its name.
        name: String,
    },
    /// Virtual switches, as [`crate::VirtualSnapshot`].
    ShowVirtual {
        /// Which; all if left out.
        #[serde(default)]
        name: Option<String>,
    },
    /// Asks a virtual switch instead of the switch itself.
    Of {
        /// Its name.
        name: String,
        /// What is asked.
        what: Box<Request>,
    },
    /// Stops the switch; the reply comes before.
    Stop,
}

/// What a flow-mod does.
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

/// What a group-mod does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "named by the specification")]
pub enum GroupVerb {
    Add,
    Modify,
    Delete,
}

/// What a meter-mod does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "named by the specification")]
pub enum MeterVerb {
    Add,
    Modify,
    Delete,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// It is done; what was asked for.
    Ok(serde_json::Value),
    /// It is not done, and why.
    Error(String),
}

/// Flow entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flows {
    /// At most [`MAX_FLOWS`].
    pub flows: Vec<Flow>,
    /// Entries left out.
    pub left_out: usize,
}

/// A flow entry in both forms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// As people read it.
    pub text: String,
    /// As programs do.
    pub entry: serde_json::Value,
}

/// Groups, in order of their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Groups {
    /// All that were asked for.
    pub groups: Vec<Group>,
}

/// A group, or its counters, in both forms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// As people read it.
    pub text: String,
    /// As programs do.
    pub group: serde_json::Value,
}

/// Meters, or their statistics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meters {
    /// In order of their numbers.
    pub meters: Vec<Meter>,
}

/// A meter, or its statistics, in both forms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meter {
    /// As people read it: one line, and one for each band.
    pub text: String,
    /// As programs do.
    pub meter: serde_json::Value,
}

/// How a switch keeps its profile's times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profiled {
    /// As it is.
    pub timing: crate::TimingSnapshot,
    /// What controllers' commands took, if that was asked for: CSV with a heading, at most [`MAX_RECORDS`] lines, oldest first.
    pub commands: Option<Vec<String>>,
}

/// A traced packet in both forms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traced {
    /// As people read it.
    pub text: String,
    /// As programs do.
    pub trace: serde_json::Value,
}
