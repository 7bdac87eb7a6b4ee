//! Starts switches, the links between them, and their controller.
use crate::LabError;
use crate::threads::threads;
use crate::virtual_controllers::{VirtualControllers, present};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;
use weir_controller::{Controller, ControllerConfig};
use weir_device::{LatenessSnapshot, ProfileConfig};
use weir_network::link::{self, LinkEndId, SwitchPorts};
use weir_network::result::{ControllerResult, DropCount, SwitchResult, VirtualSwitchResult, port_drops};
use weir_network::streams::SparePorts;
use weir_network::{VirtualSwitchApps, controller, datapath};
use weir_packet::PortNo;
use weir_port::FrameCounters;
use weir_port::link::LinkControl;
use weir_scenario::{OpenFlowVersion, Scenario, ScenarioController, TomlVirtualSwitchReader};
use weir_switch::threads::MachineResources;
use weir_switch::{
    ControllerTarget, ListenTarget, PortConfig, SocketFile, SoftwareSwitch, SoftwareSwitchConfig, Spin, SwitchHandle,
    SwitchSnapshot,
};

/// Time that switches poll before they sleep if there is a core for each of them.
const SPIN: Duration = Duration::from_micros(20);
/// Time that switches poll before they sleep if streams are measured, whose delays are microseconds: longer than gaps
/// between packets of bursts.
const SPIN_FOR_STREAMS: Duration = Duration::from_millis(2);

/// Running network. When it is dropped, switches stop first, then the controllers.
pub(crate) struct LabNetwork {
    switches: Vec<SwitchHandle>,
    controller: Option<Controller>,
    /// Controllers of the virtual switches that have an application.
    virtual_controllers: VirtualControllers,
    /// Device at the other end of each switch's ports, for reports.
    peers: Vec<HashMap<PortNo, String>>,
    /// Controls of both ends of each link, in the scenario's order; empty if links cannot be changed.
    controls: Vec<[LinkControl; 2]>,
    /// Controls of links that cannot be changed, but whose frames' lateness is measured.
    measured_links: Vec<LinkControl>,
}

impl LabNetwork {
    /// Starts the scenario's switches with their links and their controller. `hosts[i]` is the switch's end of the
    /// link to host `i`; `spare` are ports without host or link. With a `folder`, links can be changed during the
    /// run, and each switch listens there: for OpenFlow on `NAME.mgmt`, for `weir ctl` on `NAME.sock`. With
    /// `certify`, links that hold frames measure how late these are. `apps` are the applications of virtual switches.
    pub(crate) fn start(
        scenario: &Scenario,
        apps: &VirtualSwitchApps,
        hosts: SwitchPorts,
        spare: SparePorts,
        folder: Option<&Path>,
        certify: bool,
    ) -> Result<LabNetwork, LabError> {
        let mut ports: Vec<Vec<PortConfig>> = scenario.switches.iter().map(|_| Vec::new()).collect();
        let mut peers: Vec<HashMap<PortNo, String>> = scenario.switches.iter().map(|_| HashMap::new()).collect();
        for (host, port) in scenario.hosts.iter().zip(hosts) {
            ports[host.switch].push(PortConfig::new(PortNo(host.port), link::queued(port, &host.queues)?));
            peers[host.switch].insert(PortNo(host.port), format!("to {}", host.name));
        }
        let joined = || LabError::system("join two switches");
        let mut controls = Vec::new();
        let mut measured_links = Vec::new();
        for ((number, link), port_names) in scenario.links.iter().enumerate().zip(scenario.link_port_names()) {
            let names = link.ends.map(|end| scenario.switches[end.switch].name.as_str());
            let stream_ids = [0, 1].map(|end| link::random_stream_id(scenario, LinkEndId::Link(number, end)));
            let ends = if folder.is_some() {
                let (ends, control) = link::controlled_ports(&port_names, &link.spec, stream_ids).map_err(joined())?;
                controls.push(control);
                ends
            } else if certify && !link::shape(&link.spec).is_none() {
                let (ends, control) = link::controlled_ports(&port_names, &link.spec, stream_ids).map_err(joined())?;
                measured_links.extend(control);
                ends
            } else {
                link::link_ports(&port_names, &link.spec, stream_ids).map_err(joined())?
            };
            for ((end, port), peer) in link.ends.iter().zip(ends).zip([names[1], names[0]]) {
                ports[end.switch].push(PortConfig::new(PortNo(end.port), link::queued(port, &link.queues)?));
                peers[end.switch].insert(PortNo(end.port), format!("to {peer}"));
            }
        }
        for (switch, number, port) in spare {
            ports[switch].push(PortConfig::new(number, port));
        }
        let controller = start_controller(scenario)?;
        let mut network = LabNetwork {
            switches: Vec::new(),
            controller,
            virtual_controllers: VirtualControllers::default(),
            peers,
            controls,
            measured_links,
        };
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
            network.virtual_controllers.start(network.switches.len(), switch, &handle, apps)?;
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
        self.virtual_controllers.are_ready(&self.switches)
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

    /// Returns the controls of links that are only measured.
    pub(crate) fn measured_links(&self) -> &[LinkControl] {
        &self.measured_links
    }

    /// Returns the lateness of the switches and virtual switches that have a profile.
    pub(crate) fn lateness(&self) -> Result<Vec<LatenessSnapshot>, LabError> {
        let mut timings = Vec::new();
        for switch in &self.switches {
            let SwitchSnapshot { timing, virtual_switches, .. } = switch.snapshot()?;
            let is_timed = timing.is_some();
            timings.extend(timing);
            for cut in virtual_switches.iter().filter(|_| is_timed) {
                timings.extend(present(switch.virtual_snapshot(&cut.name))?.and_then(|state| state.timing));
            }
        }
        Ok(timings.into_iter().map(|timing| timing.lateness).collect())
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
        self.controller.as_ref().map(|controller| ControllerResult::from(&controller.snapshot()))
    }

    /// Passes a request to the application of the embedded controller. Returns its answer; `None` if there is none.
    pub(crate) fn command(&self, request: &str) -> Option<String> {
        self.controller.as_ref()?.command(request).into_iter().next()
    }

    /// Returns the state of the virtual switches, in the scenario's order.
    ///
    /// # Errors
    /// A switch has ended.
    pub(crate) fn virtual_switches(&self) -> Result<Vec<VirtualSwitchResult>, LabError> {
        let mut results = Vec::new();
        for (number, switch) in self.switches.iter().enumerate() {
            results.extend(self.virtual_controllers.results(number, switch)?);
        }
        Ok(results)
    }

    /// Stops switches and controller. Returns the controller's final counters.
    pub(crate) fn stop(&mut self) -> Option<ControllerResult> {
        self.switches.drain(..).for_each(SwitchHandle::stop);
        self.virtual_controllers.stop();
        Some(ControllerResult::from(&self.controller.take()?.stop()))
    }
}

fn start_controller(scenario: &Scenario) -> Result<Option<Controller>, LabError> {
    let Some((app, session)) = controller::embedded(scenario)? else { return Ok(None) };
    let config = ControllerConfig { session, ..ControllerConfig::default() };
    let controller = Controller::start(app, config);
    controller.map(Some).map_err(LabError::system("start the controller"))
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
    let (datapath, fail_mode) = datapath::config(switch);
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
        profile: datapath::profile(scenario, switch).map(|(profile, seed)| ProfileConfig { profile, seed }),
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
