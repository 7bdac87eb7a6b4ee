//! What a lab reports: every figure, with what it was measured with.
pub use crate::certificate::{Certificate, Late, LateDevices, Spent, Verdict};
use serde::Serialize;

pub use weir_traffic::Delay;

/// The result of a run. Times are in the unit their name ends with.
#[derive(Debug, Clone, Serialize)]
pub struct LabResult {
    /// Whether all traffic did what the scenario expects. Never true of a partial result.
    pub passed: bool,
    /// Whether the run was stopped before its end: figures cover what was done until then.
    pub partial: bool,
    /// What the figures were measured with.
    pub setup: Setup,
    /// Traffic, in the scenario's order.
    pub traffic: Vec<TrafficResult>,
    /// Packets by rule, in the scenario's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamResult>,
    /// Switches, in the scenario's order.
    pub switches: Vec<SwitchResult>,
    /// The embedded controller.
    pub controller: Option<ControllerResult>,
    /// Packets that were dropped, where and why; places without drops are left out.
    pub drops: Vec<Drop>,
    /// How far times can be trusted, of an emulation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
}

/// What the figures of a run were measured with.
#[derive(Debug, Clone, Serialize)]
pub struct Setup {
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's seed.
    pub seed: u64,
    /// What the hosts are.
    pub mode: Mode,
    /// Version of weir.
    pub version: &'static str,
    /// Whether it was built with optimisation.
    pub release_build: bool,
    /// The machine.
    pub machine: Machine,
    /// Time from the start of traffic to its end.
    pub duration_s: f64,
}

/// What hosts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Network stacks in this process, on memory ports.
    Memory,
    /// Network namespaces with ping and iperf3, on veth pairs.
    Netns,
    /// Network stacks in virtual time.
    Virtual,
}

/// A machine.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Its processor.
    pub cpu: String,
    /// Processors this process may use.
    pub cores: usize,
    /// Its kernel.
    pub kernel: String,
}

/// What became of an item of traffic.
#[derive(Debug, Clone, Serialize)]
pub struct TrafficResult {
    /// `ping`, `tcp` or `udp`.
    pub kind: &'static str,
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// The address that was used.
    pub address: std::net::IpAddr,
    /// What the scenario expects.
    pub expect: weir_scenario::Expect,
    /// Whether anything arrived.
    pub reached: bool,
    /// Whether what happened is what was expected.
    pub ok: bool,
    /// Whether it was not through when the run was stopped.
    pub partial: bool,
    /// Packets (ping, udp) the sender was to send.
    pub asked: Option<u64>,
    /// Packets (ping, udp) it sent.
    pub sent: Option<u64>,
    /// Answers (ping), datagrams (udp) or bytes (tcp) that arrived.
    pub received: u64,
    /// Share of `sent` that did not arrive, `0.0..=1.0`.
    pub loss: Option<f64>,
    /// Round-trip times (ping).
    pub rtt: Option<Delay>,
    /// The same of all but the first ping, which waits for addresses and for the controller as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_after_first: Option<Delay>,
    /// One-way times (udp, hosts in this process: they share a clock).
    pub delay: Option<Delay>,
    /// The distribution of either, of pings after the first if there are any: shares of the times and what they do not exceed, in microseconds.
    #[serde(skip)]
    pub quantiles_us: Vec<(f64, f64)>,
    /// Payload received in a second (tcp, udp), in bits per second.
    pub goodput_bps: Option<f64>,
    /// What went wrong.
    pub problem: Option<String>,
}

/// What became of a stream's packets that were sent while they counted.
#[derive(Debug, Clone, Serialize)]
pub struct StreamResult {
    /// Its name.
    pub name: String,
    /// The switch.
    pub switch: String,
    /// The virtual switch there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_switch: Option<String>,
    /// The port that they leave by.
    pub output: u32,
    /// Their class.
    pub class: u8,
    /// Packets sent.
    pub sent: u64,
    /// Packets that came out.
    pub received: u64,
    /// Share of packets that came out, `0.0..=1.0`.
    pub throughput: Option<f64>,
    /// The same of bytes.
    pub throughput_bytes: Option<f64>,
    /// Share of packets that did not.
    pub loss: Option<f64>,
    /// Rate of the bytes that came out, in bits per second.
    pub rate_bps: f64,
    /// Their share of all streams' bytes that came out.
    pub share: Option<f64>,
    /// From sending, with the last bit, to coming out, with the first.
    pub delay: Option<Delay>,
    /// How much later than planned packets were sent.
    pub late: Option<Delay>,
}

/// A switch at the end of traffic.
#[derive(Debug, Clone, Serialize)]
pub struct SwitchResult {
    /// Its name.
    pub name: String,
    /// Its datapath id.
    pub dpid: u64,
    /// Control channels that are up.
    pub channels_up: usize,
    /// Flow entries installed.
    pub entries: u64,
    /// Packets that its first table looked up.
    pub packets: u64,
    /// Frames received and sent by all its ports.
    pub rx_packets: u64,
    /// See `rx_packets`.
    pub tx_packets: u64,
}

/// The embedded controller at the end of traffic.
#[derive(Debug, Clone, Serialize)]
pub struct ControllerResult {
    /// Packet-ins received from all switches.
    pub packet_ins: u64,
    /// Flow-mods sent.
    pub flow_mods: u64,
    /// Packet-outs sent.
    pub packet_outs: u64,
    /// Errors received.
    pub errors: u64,
}

/// Packets dropped at one place for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drop {
    /// Where: a switch, one of its ports with what is at its other end, or a host.
    pub place: String,
    /// Why.
    pub reason: String,
    /// How many.
    pub packets: u64,
}

impl Machine {
    /// This machine, as far as /proc says.
    pub fn this() -> Machine {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let model = cpuinfo.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
        Machine {
            cpu: model.map_or_else(|| "unknown".to_owned(), |(_, model)| model.trim().to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}
