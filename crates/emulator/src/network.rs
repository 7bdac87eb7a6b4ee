//! Starts switches, the links between them, and their controller.
use crate::LabError;
use crate::result::{ControllerResult, DropCount, SwitchResult};
use crate::streams::SparePorts;
use crate::threads::threads;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;
use weir_controller::apps::learning::{LearningConfig, LearningSwitch};
use weir_controller::{Controller, ControllerConfig};
use weir_datapath::{DatapathConfig, FailMode};
use weir_device::{LatenessSnapshot, ProfileConfig};
use weir_openflow::Version;
use weir_openflow::session::SessionConfig;
use weir_packet::PortNo;
use weir_port::link::{LinkControl, LinkEmulator, LinkShape};
use weir_port::queues::{self, PortQueueConfig};
use weir_port::{FrameCounters, Port, memory};
use weir_scenario::{LinkSpec, OpenFlowVersion, Scenario, ScenarioController, TomlVirtualSwitchReader};
use weir_switch::threads::MachineResources;
use weir_switch::{
    ControllerTarget, ListenTarget, PortConfig, SocketFile, SoftwareSwitch, SoftwareSwitchConfig, Spin, SwitchHandle,
    SwitchSnapshot,
};

/// Frames that a memory port holds on their way: several bursts of 64 kB of small frames.
pub const MEMORY_FRAMES: usize = 4096;
/// Time that switches poll before they sleep if there is a core for each of them.
const SPIN: Duration = Duration::from_micros(20);
/// Time that switches poll before they sleep if streams are measured, whose delays are microseconds: longer than gaps
/// between packets of bursts.
const SPIN_FOR_STREAMS: Duration = Duration::from_millis(2);

/// Switches' ends of hosts' links, one for each host.
pub(crate) type SwitchPorts = Vec<Box<dyn Port>>;

/// Running network. When it is dropped, switches stop first, then the controller.
pub(crate) struct LabNetwork {
    switches: Vec<SwitchHandle>,
    controller: Option<Controller>,
    /// Device at the other end of each switch's ports, for reports.
    peers: Vec<HashMap<PortNo, String>>,
    /// Controls of both ends of each link, in the scenario's order; empty if links cannot be changed.
    controls: Vec<[LinkControl; 2]>,
}

impl LabNetwork {
    /// Starts the scenario's switches with their links and their controller. `hosts[i]` is the switch's end of the
    /// link to host `i`; `spare` are ports without host or link. With a `folder`, links can be changed during the
    /// run, and each switch listens there: for OpenFlow on `NAME.mgmt`, for `weir ctl` on `NAME.sock`.
    pub(crate) fn start(
        scenario: &Scenario,
        hosts: SwitchPorts,
        spare: SparePorts,
        folder: Option<&Path>,
    ) -> Result<LabNetwork, LabError> {
        let mut ports: Vec<Vec<PortConfig>> = scenario.switches.iter().map(|_| Vec::new()).collect();
        let mut peers: Vec<HashMap<PortNo, String>> = scenario.switches.iter().map(|_| HashMap::new()).collect();
        for (host, port) in scenario.hosts.iter().zip(hosts) {
            ports[host.switch].push(PortConfig::new(PortNo(host.port), queued(port, &host.queues)?));
            peers[host.switch].insert(PortNo(host.port), format!("to {}", host.name));
        }
        let mut controls = Vec::new();
        for (number, link) in scenario.links.iter().enumerate() {
            let names = link.ends.map(|end| scenario.switches[end.switch].name.as_str());
            let stream_ids = [0, 1].map(|end| random_stream_id(scenario, LinkEndId::Link(number, end)));
            let ends = if folder.is_some() {
                let (ends, control) = controlled_ports(names, &link.spec, stream_ids)?;
                controls.push(control);
                ends
            } else {
                link_ports(names, &link.spec, stream_ids)?
            };
            for ((end, port), peer) in link.ends.iter().zip(ends).zip([names[1], names[0]]) {
                ports[end.switch].push(PortConfig::new(PortNo(end.port), queued(port, &link.queues)?));
                peers[end.switch].insert(PortNo(end.port), format!("to {peer}"));
            }
        }
        for (switch, number, port) in spare {
            ports[switch].push(PortConfig::new(number, port));
        }
        let controller = start_controller(scenario)?;
        let mut network = LabNetwork { switches: Vec::new(), controller, peers, controls };
        for (switch, ports) in scenario.switches.iter().zip(ports) {
            let mut config = switch_config(scenario, switch, ports)?;
            if let Some(folder) = folder {
                config.listeners.push(ListenTarget::Unix(folder.join(format!("{}.mgmt", switch.name))));
                config.control_socket = Some(SocketFile::bind(&folder.join(format!("{}.sock", switch.name)))?);
            }
            let handle = SoftwareSwitch::start(config)?;
            if let Some(controller) = &network.controller {
                handle.connect_stream(controller.connect())?;
            }
            network.switches.push(handle);
        }
        Ok(network)
    }

    /// Returns true if every port has link, and every switch that has a controller is under its control.
    pub(crate) fn is_ready(&self, scenario: &Scenario) -> Result<bool, LabError> {
        // The embedded controller adds a table-miss entry to each OpenFlow 1.3 switch. Packets reach the controller
        // only once that entry is there.
        let entry = matches!(scenario.control, ScenarioController::Embedded { openflow: OpenFlowVersion::V13, .. });
        let controlled = scenario.control != ScenarioController::None;
        for switch in &self.switches {
            let snapshot = switch.snapshot()?;
            // Floods leave out ports without link, so the first address request would be lost.
            let linked = snapshot.ports.iter().all(|port| port.link_up);
            if !linked || controlled && snapshot.channels_up() == 0 || entry && snapshot.entries() == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns a switch by its index in the scenario.
    pub(crate) fn switch(&self, index: usize) -> &SwitchHandle {
        &self.switches[index]
    }

    /// Returns the controls of both ends of each link, by the link's index in the scenario; empty if links cannot be
    /// changed.
    pub(crate) fn controls(&self) -> &[[LinkControl; 2]] {
        &self.controls
    }

    /// Returns the lateness of the switches that have a profile.
    pub(crate) fn lateness(&self) -> Result<Vec<LatenessSnapshot>, LabError> {
        let timings = self.switches.iter().map(|switch| Ok(switch.snapshot()?.timing));
        let timings: Vec<_> = timings.collect::<Result<_, LabError>>()?;
        Ok(timings.into_iter().flatten().map(|timing| timing.lateness).collect())
    }

    /// Returns the current state of all switches, and their drops.
    pub(crate) fn snapshot(&self) -> Result<(Vec<SwitchResult>, Vec<DropCount>), LabError> {
        let mut switches = Vec::new();
        let mut drops = Vec::new();
        for (handle, peers) in self.switches.iter().zip(&self.peers) {
            let snapshot = handle.snapshot()?;
            switch_drops(&snapshot, peers, &mut drops);
            switches.push(switch_result(&snapshot));
        }
        Ok((switches, drops))
    }

    /// Returns the number of frames that the switches have received, sent and dropped at their ports.
    ///
    /// # Errors
    /// A switch has ended.
    pub(crate) fn frames(&self) -> Result<u64, LabError> {
        let of_port = |counters: &FrameCounters| {
            counters.rx_packets + counters.tx_packets + counters.tx_full + counters.tx_errors + counters.tx_lost
        };
        let mut frames = 0;
        for switch in &self.switches {
            frames += switch.snapshot()?.ports.iter().map(|port| of_port(&port.counters)).sum::<u64>();
        }
        Ok(frames)
    }

    /// Returns the embedded controller's counters so far; `None` without such a controller.
    pub(crate) fn controller(&self) -> Option<ControllerResult> {
        self.controller.as_ref().map(|controller| controller_result(&controller.snapshot()))
    }

    /// Stops switches and controller. Returns the controller's final counters.
    pub(crate) fn stop(&mut self) -> Option<ControllerResult> {
        self.switches.drain(..).for_each(SwitchHandle::stop);
        Some(controller_result(&self.controller.take()?.stop()))
    }
}

fn controller_result(snapshot: &weir_controller::ControllerSnapshot) -> ControllerResult {
    let counters = &snapshot.counters;
    ControllerResult {
        packet_ins: counters.packet_ins,
        flow_mods: counters.flow_mods,
        packet_outs: counters.packet_outs,
        errors: counters.errors,
    }
}

/// Returns the shape of a link, for an end that shapes the frames it sends.
pub(crate) fn shape(spec: &LinkSpec) -> LinkShape {
    LinkShape { rate: spec.rate, delay: spec.delay, buffer: spec.buffer, jitter: spec.jitter, loss: spec.loss }
}

/// Wraps `port` so that sent frames are shaped, if the link has a rate, delay, jitter or loss. The last argument
/// seeds the random numbers.
pub fn shaped(port: impl Port + 'static, spec: &LinkSpec, (seed, number): RandomStreamId) -> Box<dyn Port> {
    let shape = shape(spec);
    if shape.is_none() {
        return Box::new(port);
    }
    Box::new(LinkEmulator::new(Box::new(port), shape, LinkShape::default()).seeded(seed, number))
}

/// Seed, and number of the stream of random numbers.
pub type RandomStreamId = (u64, u64);

/// End of a link.
#[derive(Debug, Clone, Copy)]
pub enum LinkEndId {
    /// Switch's end of a host's link, by the host's index.
    ToHost(usize),
    /// Host's end of its link, by the host's index.
    OfHost(usize),
    /// End (0 or 1) of a link between switches, by the link's index.
    Link(usize, usize),
}

/// Returns the seed and number for the random numbers of a link's end, which are equal in every engine.
pub fn random_stream_id(scenario: &Scenario, at: LinkEndId) -> RandomStreamId {
    let hosts = scenario.hosts.len();
    let number = match at {
        LinkEndId::ToHost(host) => 2 * host,
        LinkEndId::OfHost(host) => 2 * host + 1,
        LinkEndId::Link(link, end) => 2 * (hosts + link) + end,
    };
    (scenario.seed, number as u64)
}

/// Puts a scenario's queues in front of a switch's port.
///
/// # Errors
/// The port cannot provide the queues.
pub fn queued(port: Box<dyn Port>, queues: &[weir_scenario::PortQueueSpec]) -> Result<Box<dyn Port>, LabError> {
    let config = |queue: &weir_scenario::PortQueueSpec| PortQueueConfig {
        id: queue.queue,
        min: queue.min,
        max: queue.max,
        buffer: queue.buffer,
        priority: queue.priority,
    };
    let name = port.info().name.clone();
    let queued = queues::queued(port, queues.iter().map(config).collect());
    queued.map_err(|problem| LabError::Scenario(format!("port {name}: {problem}")))
}

/// Returns the two ends of a link between switches, shaped; each port is named after both switches, its own first.
fn link_ports(
    names: [&str; 2],
    spec: &LinkSpec,
    stream_ids: [RandomStreamId; 2],
) -> Result<[Box<dyn Port>; 2], LabError> {
    let (a, b) = memory::pair(MEMORY_FRAMES).map_err(LabError::system("join two switches"))?;
    let [one, two] = names;
    let [first, second] = stream_ids;
    let (a, b) = (a.named(&format!("{one}-{two}")), b.named(&format!("{two}-{one}")));
    Ok([shaped(a, spec, first), shaped(b, spec, second)])
}

/// Returns what [`link_ports`] returns, with a control for each end.
fn controlled_ports(
    names: [&str; 2],
    spec: &LinkSpec,
    stream_ids: [RandomStreamId; 2],
) -> Result<ControlledEnds, LabError> {
    let (a, b) = memory::pair(MEMORY_FRAMES).map_err(LabError::system("join two switches"))?;
    let [one, two] = names;
    let controls = [(); 2].map(|()| LinkControl::new(shape(spec), LinkShape::default()));
    let controlled = |port, control: &LinkControl, (seed, number): RandomStreamId| -> Box<dyn Port> {
        Box::new(LinkEmulator::controlled(Box::new(port), control.clone()).seeded(seed, number))
    };
    let [first, second] = stream_ids;
    let (a, b) = (a.named(&format!("{one}-{two}")), b.named(&format!("{two}-{one}")));
    let ends = [controlled(a, &controls[0], first), controlled(b, &controls[1], second)];
    Ok((ends, controls))
}

/// Ends of a link, and the control of each.
type ControlledEnds = ([Box<dyn Port>; 2], [LinkControl; 2]);

fn start_controller(scenario: &Scenario) -> Result<Option<Controller>, LabError> {
    let Some((app, session)) = embedded(scenario) else { return Ok(None) };
    let config = ControllerConfig { session, ..ControllerConfig::default() };
    let controller = Controller::start(Box::new(app), config);
    controller.map(Some).map_err(LabError::system("start the controller"))
}

/// Returns the application of a scenario's embedded controller and the settings of its sessions; `None` if the
/// controller is external or there is none.
pub fn embedded(scenario: &Scenario) -> Option<(LearningSwitch, SessionConfig)> {
    let ScenarioController::Embedded { app: weir_scenario::EmbeddedApp::Learning, openflow } = scenario.control else {
        return None;
    };
    let vlan = |host: &weir_scenario::ScenarioHost| {
        let vlan = scenario.tenants[host.tenant?].vlan;
        Some(((scenario.switches[host.switch].dpid, PortNo(host.port)), vlan))
    };
    let end = |end: weir_scenario::LinkEnd| (scenario.switches[end.switch].dpid, PortNo(end.port));
    let learning = LearningConfig {
        access: scenario.hosts.iter().filter_map(vlan).collect(),
        links: scenario.links.iter().map(|link| link.ends.map(end)).collect(),
        ..Default::default()
    };
    let versions = match openflow {
        OpenFlowVersion::V10 => vec![Version::V10],
        OpenFlowVersion::V13 => vec![Version::V13, Version::V10],
    };
    Some((LearningSwitch::new(learning), SessionConfig { versions, ..SessionConfig::default() }))
}

/// Returns the datapath's configuration of a scenario's switch, and its behaviour without a controller.
pub fn datapath(switch: &weir_scenario::ScenarioSwitch) -> (DatapathConfig, FailMode) {
    let config = DatapathConfig {
        datapath_id: switch.dpid,
        name: switch.name.clone(),
        n_tables: switch.tables,
        max_entries: switch.max_entries,
        ..DatapathConfig::default()
    };
    (config, switch.fail_mode)
}

/// Returns the profile whose times a scenario's switch keeps; `None` without one that takes time. The scenario's seed
/// determines random times.
pub fn profile(scenario: &Scenario, switch: &weir_scenario::ScenarioSwitch) -> Option<ProfileConfig> {
    let profile = switch.profile.clone().filter(|profile| profile.takes_time())?;
    Some(ProfileConfig { profile, seed: scenario.seed.wrapping_add(switch.dpid) })
}

fn switch_config(
    scenario: &Scenario,
    switch: &weir_scenario::ScenarioSwitch,
    ports: Vec<PortConfig>,
) -> Result<SoftwareSwitchConfig, LabError> {
    let controllers = match &scenario.control {
        ScenarioController::Connect(address) => {
            let target = address.parse::<ControllerTarget>();
            vec![target.map_err(|problem| LabError::Scenario(format!("controller: connect: {problem}")))?.into()]
        }
        _ => Vec::new(),
    };
    let (datapath, fail_mode) = datapath(switch);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let spin = match cores > scenario.switches.len() {
        true if scenario.streams.is_empty() => SPIN,
        true => SPIN_FOR_STREAMS,
        false => Duration::ZERO,
    };
    let threads = threads(switch, &MachineResources::here())?;
    Ok(SoftwareSwitchConfig {
        datapath,
        fail_mode,
        threads,
        ports,
        entries: switch.entries.clone(),
        controllers,
        spin: Spin::For(spin),
        profile: profile(scenario, switch),
        fabric: switch.fabric.clone(),
        virtual_switches: switch.virtual_switches.clone(),
        virtual_switch_reader: Some(&TomlVirtualSwitchReader),
        ..SoftwareSwitchConfig::default()
    })
}

fn switch_result(snapshot: &SwitchSnapshot) -> SwitchResult {
    let sum = |what: fn(&FrameCounters) -> u64| snapshot.ports.iter().map(|port| what(&port.counters)).sum();
    SwitchResult {
        name: snapshot.name.clone(),
        dpid: snapshot.datapath_id,
        channels_up: snapshot.channels_up(),
        entries: snapshot.entries(),
        packets: snapshot.tables.iter().find(|table| table.table == 0).map_or(0, |table| table.lookups),
        rx_packets: sum(|counters| counters.rx_packets),
        tx_packets: sum(|counters| counters.tx_packets),
    }
}

fn switch_drops(snapshot: &SwitchSnapshot, peers: &HashMap<PortNo, String>, drops: &mut Vec<DropCount>) {
    for port in &snapshot.ports {
        let peer = peers.get(&port.number).map_or("", String::as_str);
        port_drops(format!("{} port {} {peer}", snapshot.name, port.number).trim_end(), &port.counters, drops);
    }
    let datapath = snapshot.drops.iter().map(|(reason, packets)| (reason.replace('_', " "), *packets));
    let unread = ("packet-in: the controller does not read".to_owned(), snapshot.packet_ins_dropped);
    for (reason, packets) in datapath.chain([unread]).filter(|(_, packets)| *packets > 0) {
        drops.push(DropCount { place: snapshot.name.clone(), reason, packets });
    }
    for cut in &snapshot.virtual_switches {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        let counts = cut.crosspoints.iter().flat_map(|at| &at.dropped);
        counts.for_each(|(reason, packets)| *sums.entry(reason.as_str()).or_default() += packets);
        for (reason, packets) in sums.into_iter().filter(|(_, packets)| *packets > 0) {
            let place = format!("{} {}", snapshot.name, cut.name);
            drops.push(DropCount { place, reason: reason.replace('_', " "), packets });
        }
    }
}

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
