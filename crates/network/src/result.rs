//! Results of a lab: all measurements, with a description of the setup.
use crate::certificate::Certificate;
use crate::intents::IntentResult;
use crate::promises::PromiseResult;
use serde::Serialize;
use std::time::Duration;
use weir_controller::ControllerSnapshot;
use weir_port::FrameCounters;
use weir_scenario::{ProfileUse, Scenario, TrafficExpectation, unused_parameters};
use weir_traffic::TimeStatistics;
use weir_units::counted;

/// Result of a run. Times are in the unit with which their name ends.
#[derive(Debug, Clone, Serialize)]
pub struct LabResult {
    /// True if all traffic did what the scenario expects. Never true of a partial result.
    pub passed: bool,
    /// True if the run was stopped before its end: figures cover the time until then.
    pub partial: bool,
    /// Setup of the measurement.
    pub setup: LabSetup,
    /// Results of traffic, in the scenario's order.
    pub traffic: Vec<TrafficResult>,
    /// Results of streams, in the scenario's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamResult>,
    /// Results of switches, in the scenario's order.
    pub switches: Vec<SwitchResult>,
    /// Results of virtual switches, in the scenario's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub virtual_switches: Vec<VirtualSwitchResult>,
    /// Counters of the embedded controller, if there is one.
    pub controller: Option<ControllerResult>,
    /// Controller outside of virtual time; only of simulations with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_controller: Option<ExternalController>,
    /// Controllers outside of virtual time that only virtual switches have; only of simulations with such.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub virtual_external_controllers: Vec<ExternalController>,
    /// States of the scenario's intents, in its order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub intents: Vec<IntentResult>,
    /// Promises of the scenario's virtual networks to its traffic, with what was measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub promises: Vec<PromiseResult>,
    /// Packets dropped, by place and reason. Places without drops are left out.
    pub drops: Vec<DropCount>,
    /// Certificate of how far times can be trusted; only of live runs that ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Certificate>,
}

/// Setup of a measurement.
#[derive(Debug, Clone, Serialize)]
pub struct LabSetup {
    /// Name of the scenario.
    pub scenario: String,
    /// Seed of the scenario.
    pub seed: u64,
    /// Kind of hosts.
    pub mode: LabHostKind,
    /// Version of weir.
    pub version: &'static str,
    /// True if weir was built with optimisation.
    pub release_build: bool,
    /// Machine of the measurement.
    pub machine: LabMachineInfo,
    /// Time from the start of traffic to its end, in seconds.
    pub duration_s: f64,
    /// Parameters of profiles that have no effect on packets, by switch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<String>,
}

/// Kind of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LabHostKind {
    /// Network stacks in this process, on memory ports.
    Memory,
    /// Network namespaces with ping and iperf3, on veth pairs.
    Netns,
    /// Network stacks in virtual time.
    Virtual,
}

/// Description of a machine.
#[derive(Debug, Clone, Serialize)]
pub struct LabMachineInfo {
    /// Model of the processor.
    pub cpu: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Release of the kernel.
    pub kernel: String,
}

/// Result of an item of traffic.
#[derive(Debug, Clone, Serialize)]
pub struct TrafficResult {
    /// Kind of traffic: `ping`, `tcp` or `udp`.
    pub kind: &'static str,
    /// Name of the sending host.
    pub from: String,
    /// Name of the receiving host.
    pub to: String,
    /// Address to which packets were sent.
    pub address: std::net::IpAddr,
    /// Outcome that the scenario expects.
    pub expect: TrafficExpectation,
    /// True if any packet arrived.
    pub reached: bool,
    /// True if the outcome is the expected one.
    pub ok: bool,
    /// True if the item had not finished when the run ended.
    pub partial: bool,
    /// Packets (ping, udp) that the sender had to send.
    pub asked: Option<u64>,
    /// Packets (ping, udp) sent.
    pub sent: Option<u64>,
    /// Answers (ping), datagrams (udp) or bytes (tcp) that arrived.
    pub received: u64,
    /// Share of `sent` that did not arrive, `0.0..=1.0`.
    pub loss: Option<f64>,
    /// Round-trip times (ping).
    pub rtt: Option<TimeStatistics>,
    /// Round-trip times of all pings but the first, which also waits for address resolution and the controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_after_first: Option<TimeStatistics>,
    /// Delays in one direction (udp); all hosts share the machine's clock.
    pub delay: Option<TimeStatistics>,
    /// Number of these times (of pings, without the first) whose packets were sent or received in a stop of the
    /// machine.
    #[serde(skip_serializing_if = "is_zero")]
    pub in_stops: u64,
    /// Times without those in stops of the machine; `None` if there are none in stops, or too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undisturbed: Option<TimeStatistics>,
    /// Lateness of sending against the schedule (udp).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<TimeStatistics>,
    /// Distribution of the times, without the first ping and those set aside: shares of the times, and the time in
    /// microseconds that each share does not exceed.
    #[serde(skip)]
    pub quantiles_us: Vec<(f64, f64)>,
    /// Payload received per second (tcp, udp), in bit/s.
    pub goodput_bps: Option<f64>,
    /// Description of a failure.
    pub problem: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Result of a stream: packets sent in the counting window.
#[derive(Debug, Clone, Serialize)]
pub struct StreamResult {
    /// Name of the stream.
    pub name: String,
    /// Name of the switch.
    pub switch: String,
    /// Name of the virtual switch, if the stream is for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_switch: Option<String>,
    /// Number of the port that the packets leave by.
    pub output: u32,
    /// Class of the packets.
    pub class: u8,
    /// Packets sent in the window.
    pub sent: u64,
    /// Packets of these that arrived at an output.
    pub received: u64,
    /// Share of packets that arrived, `0.0..=1.0`.
    pub throughput: Option<f64>,
    /// Share of bytes that arrived, `0.0..=1.0`.
    pub throughput_bytes: Option<f64>,
    /// Share of packets that did not arrive.
    pub loss: Option<f64>,
    /// Rate of the bytes that arrived, in bit/s.
    pub rate_bps: f64,
    /// Share of these bytes among the arrived bytes of all streams.
    pub share: Option<f64>,
    /// Delay from sending, with the last bit, to arriving, with the first.
    pub delay: Option<TimeStatistics>,
    /// Lateness of sending against the plan.
    pub late: Option<TimeStatistics>,
}

/// State of a switch at the end of traffic.
#[derive(Debug, Clone, Serialize)]
pub struct SwitchResult {
    /// Name of the switch.
    pub name: String,
    /// Datapath id of the switch.
    pub dpid: u64,
    /// Control channels that are up.
    pub channels_up: usize,
    /// Flow entries installed.
    pub entries: u64,
    /// Packets looked up in the first table.
    pub packets: u64,
    /// Frames received by all its ports.
    pub rx_packets: u64,
    /// Frames sent by all its ports.
    pub tx_packets: u64,
}

/// State of a virtual switch at the end of traffic.
#[derive(Debug, Clone, Serialize)]
pub struct VirtualSwitchResult {
    /// Name of the switch that it is part of.
    pub switch: String,
    /// Name of the virtual switch.
    pub name: String,
    /// Datapath id of the virtual switch.
    pub dpid: u64,
    /// Control channels that are up.
    pub channels_up: usize,
    /// Flow entries installed.
    pub entries: u64,
    /// Counters of its application's controller, if it has one in this program.
    pub controller: Option<ControllerResult>,
}

/// Counters of the embedded controller at the end of traffic.
#[derive(Debug, Clone, Serialize)]
pub struct ControllerResult {
    /// Packet-ins received from all switches.
    pub packet_ins: u64,
    /// Flow-mods sent to all switches.
    pub flow_mods: u64,
    /// Packet-outs sent to all switches.
    pub packet_outs: u64,
    /// Error messages received.
    pub errors: u64,
}

/// Controller outside of virtual time, for which virtual time stood still.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExternalController {
    /// Address of the controller.
    pub address: String,
    /// Times at which it was given messages.
    pub turns: u64,
    /// Messages that it was given.
    pub messages: u64,
    /// Real time in seconds that it took for them.
    pub took_s: f64,
    /// True if this time was charged in virtual time; false if times by the law of the scenario were.
    pub measured: bool,
    /// Messages that it sent without being given any: they depend on real time.
    pub late: u64,
}

impl std::fmt::Display for ExternalController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let each = self.took_s * 1e3 / self.turns.max(1) as f64;
        let messages = counted(self.messages, "message", "messages");
        let turns = counted(self.turns, "turn", "turns");
        write!(f, "Controller {}: {messages} in {turns}, {each:.2} ms a turn", self.address)?;
        if self.measured {
            write!(
                f,
                "\n  its work counts with the real time that it took, which differs from run to run; `service` sets a time instead"
            )?;
        }
        match self.late {
            0 => Ok(()),
            late => write!(
                f,
                "\n  {late} of its messages came on their own, at times that differ in another run; if they are answers, raise --settle"
            ),
        }
    }
}

/// Packets dropped at one place for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DropCount {
    /// Place: a switch, one of its ports with the device at its other end, or a host.
    pub place: String,
    /// Reason of the drops, in words.
    pub reason: String,
    /// Number of packets.
    pub packets: u64,
}

impl LabSetup {
    /// Returns the description of a run of length `duration` with this program on this machine.
    pub fn new(scenario: &Scenario, mode: LabHostKind, duration: Duration) -> LabSetup {
        LabSetup {
            scenario: scenario.name.clone(),
            seed: scenario.seed,
            mode,
            version: env!("CARGO_PKG_VERSION"),
            release_build: weir_units::IS_RELEASE_BUILD,
            machine: LabMachineInfo::this(),
            duration_s: duration.as_secs_f64(),
            unused: unused_parameters(scenario, ProfileUse::Packets),
        }
    }
}

impl From<&ControllerSnapshot> for ControllerResult {
    fn from(snapshot: &ControllerSnapshot) -> ControllerResult {
        let counters = &snapshot.counters;
        ControllerResult {
            packet_ins: counters.packet_ins,
            flow_mods: counters.flow_mods,
            packet_outs: counters.packet_outs,
            errors: counters.errors,
        }
    }
}

impl LabMachineInfo {
    /// Returns a description of this machine from /proc.
    pub fn this() -> LabMachineInfo {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let model = cpuinfo.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
        LabMachineInfo {
            cpu: model.map_or_else(|| "unknown".to_owned(), |(_, model)| model.trim().to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

/// End of the reason of drops at a full queue.
pub const QUEUE_FULL: &str = "queue full";

/// Appends a port's drops to `drops`, by reason.
pub fn port_drops(place: &str, counters: &FrameCounters, drops: &mut Vec<DropCount>) {
    let reasons = [
        ("sending: queue full", counters.tx_full),
        ("sending: too long", counters.tx_too_long),
        ("sending: refused or no link", counters.tx_errors),
        ("receiving: queue full", counters.rx_missed),
        ("receiving: damaged", counters.rx_errors),
        ("sending: lost by the link", counters.tx_lost),
        ("receiving: lost by the link", counters.rx_lost),
    ];
    for (reason, packets) in reasons.into_iter().filter(|(_, packets)| *packets > 0) {
        drops.push(DropCount { place: place.to_owned(), reason: reason.to_owned(), packets });
    }
}
