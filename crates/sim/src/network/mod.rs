//! Simulates whole networks packet by packet in virtual time: hosts, links, switches and controller of a scenario,
//! with a lab's code.
//!
//! Hosts are the labs' network stacks, links and queues are those of live ports, and switches are
//! [`weir_datapath::Datapath`] behind real control sessions. Events replace a lab's threads. A frame takes only the
//! time of its links, a control message takes only [`VirtualTimeSettings::control_delay`], and waking a thread takes
//! only [`VirtualTimeSettings::wake_up`]. A scenario therefore gives an identical result every time. For a controller
//! outside of virtual time this holds as far as the controller's own answers and times are the same.
mod agent;
mod control;
mod controllers;
mod external;
mod stepped;
mod streams;
mod switch;
mod thread_sleep;
mod virtual_switches;

pub use stepped::{NetworkSimulation, SimulatedLinkState, TrafficCount};

use crate::agenda::Agenda;
use crate::engine::SimulationMonitor;
use controllers::SimulatedControllers;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stepped::LinkControls;
use streams::SimulatedStreams;
use switch::SimulatedSwitch;
use thread_sleep::SimulatedThreads;
use weir_network::controller::{time_to_find_links, times_for_intents};
use weir_network::link::{LinkEndId, controlled_ports, link_ports, queued, random_stream_id, rated};
use weir_network::result::{DropCount, LabHostKind, LabResult, LabSetup, TrafficResult};
use weir_network::traffic::{length, traffic_result};
use weir_network::{
    LabProgress, NetworkError, StackHost, TrafficMeasurement, VirtualSwitchApps, check_addresses, memory_hosts,
    refuse_loops,
};
use weir_network::{intents, promises};
use weir_packet::PortNo;
use weir_scenario::{Scenario, defaults};
use weir_units::{Bps, Instant};

/// Longest time for all switches to come under control.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);
/// Time to wait for traffic after its expected end. Hosts end their items by themselves before that.
const GRACE: Duration = Duration::from_secs(10);
/// Delay before a host or switch with more work runs again. Other parts run in between, and time advances in any
/// case.
const RERUN_DELAY: Duration = Duration::from_micros(1);
/// Events between two reports of the progress.
const LOOK_EVERY: u64 = 4096;

/// Default of [`VirtualTimeSettings::settle`].
pub const SETTLE: Duration = Duration::from_millis(2);

/// Default of [`VirtualTimeSettings::answer_limit`].
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Parameters that a scenario leaves to the machine but virtual time needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VirtualTimeSettings {
    /// Rate of links for which the scenario has none.
    pub link_rate: Bps,
    /// Delay of control messages, each way.
    pub control_delay: Duration,
    /// Time by which control messages are later than that, at most: each piece by another time, all equally likely, in
    /// their order. Zero by default.
    pub control_jitter: Duration,
    /// Time that a sleeping thread of a switch or host takes to wake up. Zero by default.
    pub wake_up: Duration,
    /// Real time of silence after which a controller outside of virtual time counts as finished.
    pub settle: Duration,
    /// Real time for which virtual time waits for an answer of such a controller.
    pub answer_limit: Duration,
}

impl Default for VirtualTimeSettings {
    /// Returns 10 Gbit/s and 50 us, about the values of a lab in one process, and no wake-up time.
    fn default() -> Self {
        VirtualTimeSettings {
            link_rate: defaults::LINK_RATE,
            control_delay: defaults::CONTROL_DELAY,
            control_jitter: Duration::ZERO,
            wake_up: Duration::ZERO,
            settle: SETTLE,
            answer_limit: ANSWER_LIMIT,
        }
    }
}

/// Device at the far end of a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SimulatedNode {
    Host(usize),
    Switch(usize),
    /// Sources and sinks of streams, at the spare ports of switches.
    Streams,
}

/// Network in virtual time. The agenda numbers its parts in this order: hosts, switches, control channels, streams.
struct SimulatedNetwork<'a> {
    scenario: &'a Scenario,
    watch: &'a SimulationMonitor,
    now: Instant,
    agenda: Agenda,
    threads: SimulatedThreads,
    hosts: Vec<StackHost>,
    switches: Vec<SimulatedSwitch>,
    /// Controls of the links between switches, in the scenario's order; empty if no link changes.
    link_controls: Vec<LinkControls>,
    controllers: SimulatedControllers,
    streams: SimulatedStreams,
    /// True for each finished item. All streams together are one more item at the end.
    item_finished: Vec<bool>,
    done: Vec<usize>,
    events: u64,
}

/// Simulates a scenario. Calls `progress` with the progress in virtual time. Returns a partial result if `watch` is
/// cancelled.
///
/// # Errors
/// The scenario needs something that virtual time does not have, or its switches do not come under control.
pub fn simulate(
    scenario: &Scenario,
    settings: &VirtualTimeSettings,
    watch: &SimulationMonitor,
    progress: &mut dyn FnMut(LabProgress),
) -> Result<LabResult, NetworkError> {
    simulate_with_apps(scenario, &VirtualSwitchApps::default(), settings, watch, progress)
}

/// Simulates a scenario as [`simulate`] does, with virtual switches that the given applications control.
///
/// # Errors
/// As [`simulate`], or there is no application for a virtual switch that needs one.
pub fn simulate_with_apps(
    scenario: &Scenario,
    apps: &VirtualSwitchApps,
    settings: &VirtualTimeSettings,
    watch: &SimulationMonitor,
    progress: &mut dyn FnMut(LabProgress),
) -> Result<LabResult, NetworkError> {
    check(scenario)?;
    let mut network = SimulatedNetwork::new(scenario, apps, settings, watch, false)?;
    let begin = network.begin()?;
    let items = scenario.traffic.iter().map(|item| item.start + length(item));
    let streams = scenario.streams.first().map(|_| scenario.simulate.warm_up + scenario.simulate.duration);
    let expected = items.chain(streams).max().unwrap_or_default();
    let partial = network.traffic(begin, expected, progress)?;
    Ok(network.finish(begin, partial))
}

/// Refuses what the scenario schema allows but virtual time does not support.
fn check(scenario: &Scenario) -> Result<(), NetworkError> {
    check_addresses(scenario)?;
    streams::check(scenario)?;
    refuse_loops(scenario)
}

impl<'a> SimulatedNetwork<'a> {
    /// Returns a network whose switches are not connected yet. With `changes_links`, links can be changed.
    fn new(
        scenario: &'a Scenario,
        apps: &VirtualSwitchApps,
        settings: &VirtualTimeSettings,
        watch: &'a SimulationMonitor,
        changes_links: bool,
    ) -> Result<SimulatedNetwork<'a>, NetworkError> {
        let mut switches: Vec<SimulatedSwitch> =
            scenario.switches.iter().map(|spec| SimulatedSwitch::new(scenario, spec)).collect::<Result<_, _>>()?;
        let unsaid = Some(settings.link_rate);
        let (hosts, ports) = memory_hosts(scenario, unsaid)?;
        for (number, (host, port)) in scenario.hosts.iter().zip(ports).enumerate() {
            let port = queued(port, &host.queues)?;
            switches[host.switch].add_port(PortNo(host.port), port, SimulatedNode::Host(number), &host.name)?;
        }
        let mut link_controls = Vec::new();
        for ((number, link), port_names) in scenario.links.iter().enumerate().zip(scenario.link_port_names()) {
            let names = link.ends.map(|end| scenario.switches[end.switch].name.as_str());
            let stream_ids = [0, 1].map(|end| random_stream_id(scenario, LinkEndId::Link(number, end)));
            let spec = rated(&link.spec, unsaid);
            let ports = if changes_links {
                let (ports, controls) =
                    controlled_ports(&port_names, &spec, stream_ids).map_err(NetworkError::MemoryPort)?;
                link_controls.push(controls);
                ports
            } else {
                link_ports(&port_names, &spec, stream_ids).map_err(NetworkError::MemoryPort)?
            };
            let [a, b] = link.ends;
            for ((end, port), (peer, name)) in [a, b].into_iter().zip(ports).zip([(b, names[1]), (a, names[0])]) {
                let port = queued(port, &link.queues)?;
                switches[end.switch].add_port(PortNo(end.port), port, SimulatedNode::Switch(peer.switch), name)?;
            }
        }
        let streams = SimulatedStreams::new(scenario, &mut switches)?;
        for (switch, spec) in switches.iter_mut().zip(&scenario.switches) {
            switch.add_entries(&spec.entries)?;
        }
        let controllers = SimulatedControllers::new(scenario, apps, settings, &mut switches)?;
        let mut agenda = Agenda::new(hosts.len() + switches.len() + controllers.count() + 1);
        (0..switches.len()).for_each(|number| agenda.set(hosts.len() + number, Instant::ZERO));
        Ok(SimulatedNetwork {
            scenario,
            watch,
            now: Instant::ZERO,
            agenda,
            threads: SimulatedThreads::new(hosts.len(), switches.len(), settings.wake_up),
            hosts,
            switches,
            link_controls,
            controllers,
            streams,
            item_finished: vec![false; scenario.traffic.len() + usize::from(!scenario.streams.is_empty())],
            done: Vec::new(),
            events: 0,
        })
    }

    /// Connects the switches, lets the controller get to know the network, and begins the traffic. Returns its time.
    fn begin(&mut self) -> Result<Instant, NetworkError> {
        self.connect_switches()?;
        self.settle_controller()?;
        let begin = self.now;
        self.begin_streams()?;
        for (number, host) in self.hosts.iter_mut().enumerate() {
            host.start(self.scenario, number, begin);
            self.agenda.set(number, begin);
        }
        Ok(begin)
    }

    /// Runs events until every switch is under control, or the simulation is cancelled.
    fn connect_switches(&mut self) -> Result<(), NetworkError> {
        self.exchange_control();
        while self.controllers.count() > 0 && !self.watch.cancel.load(Ordering::Relaxed) {
            if self.controllers.are_ready(self.now, &mut self.switches) {
                if !self.controllers.listen(self.now)? {
                    return Ok(());
                }
                self.exchange_control();
            }
            if !self.step(Instant::ZERO + CONTROL_TIMEOUT)? {
                return Err(NetworkError::NotReady(CONTROL_TIMEOUT));
            }
        }
        Ok(())
    }

    /// Runs events until the embedded controller had time to know the network, and to carry out intents.
    fn settle_controller(&mut self) -> Result<(), NetworkError> {
        self.let_pass(time_to_find_links(self.scenario))?;
        let Some([find_hosts, carry_out]) = times_for_intents(self.scenario) else { return Ok(()) };
        for (number, host) in self.hosts.iter_mut().enumerate() {
            host.announce();
            self.agenda.set(number, self.now);
        }
        self.let_pass(find_hosts)?;
        let now = self.now;
        intents::submit(self.scenario, |request| self.controllers.command(now, request))?;
        self.exchange_control();
        self.let_pass(carry_out)
    }

    /// Runs all events of a time.
    fn let_pass(&mut self, time: Duration) -> Result<(), NetworkError> {
        let until = self.now + time;
        while self.now < until && !self.watch.cancel.load(Ordering::Relaxed) {
            if !self.step(until)? {
                break;
            }
        }
        self.now = until;
        Ok(())
    }

    /// Runs the traffic and then the packets still under way. Returns true if it was cancelled before the end.
    fn traffic(
        &mut self,
        begin: Instant,
        expected: Duration,
        progress: &mut dyn FnMut(LabProgress),
    ) -> Result<bool, NetworkError> {
        let mut until = begin + expected + GRACE;
        let mut all_through = false;
        loop {
            if !all_through && !self.item_finished.contains(&false) {
                all_through = true;
                until = self.now + self.scenario.max_drain_time();
            }
            self.events += 1;
            if self.events.is_multiple_of(LOOK_EVERY) {
                let done = self.item_finished.iter().filter(|done| **done).count();
                let (items, elapsed) = (self.item_finished.len(), self.now - begin);
                progress(LabProgress::Traffic { done, items, elapsed, expected });
            }
            if self.watch.cancel.load(Ordering::Relaxed) {
                return Ok(true);
            }
            if !self.step(until)? {
                self.now = until;
                return Ok(false);
            }
        }
    }

    /// Runs the next event. Returns false if there is none before `until`.
    fn step(&mut self, until: Instant) -> Result<bool, NetworkError> {
        let Some((part, now)) = self.agenda.next().filter(|(_, at)| *at < until) else { return Ok(false) };
        self.now = now;
        let (hosts, switches) = (self.hosts.len(), self.switches.len());
        if let Some(awake) = self.threads.wake(part, now) {
            self.agenda.set(part, awake);
            return Ok(true);
        }
        if part < hosts {
            self.run_host(part);
        } else if part < hosts + switches {
            self.run_switch(part - hosts);
        } else if part == self.streams_part() {
            self.run_streams();
        } else {
            let channel = part - hosts - switches;
            self.controllers.receive(now, channel, &self.watch.cancel)?;
            self.controllers.of_same_controller(channel).for_each(|channel| self.exchange_channel(channel));
        }
        Ok(true)
    }

    fn run_host(&mut self, number: usize) {
        let host = &mut self.hosts[number];
        let sent = host.counters().tx_packets;
        host.receive(self.now);
        let next = host.poll(self.now, &mut self.done);
        let has_sent = host.counters().tx_packets != sent;
        self.agenda.set(number, next.max(self.now + RERUN_DELAY));
        for item in self.done.drain(..) {
            self.item_finished[item] = true;
        }
        if has_sent {
            self.wake(SimulatedNode::Switch(self.scenario.hosts[number].switch));
        }
    }

    fn run_switch(&mut self, number: usize) {
        let switch = &mut self.switches[number];
        let reached = switch.run(self.now);
        let next =
            if switch.has_more() { self.now + RERUN_DELAY } else { switch.next_wake().max(self.now + RERUN_DELAY) };
        self.agenda.set(self.hosts.len() + number, next);
        reached.into_iter().for_each(|peer| self.wake(peer));
        // Controllers have not run, so they have nothing for other switches.
        for at in 0..self.controllers.of_switch(number).len() {
            self.exchange_channel(self.controllers.of_switch(number)[at]);
        }
    }

    /// Returns the number of the streams in the agenda.
    fn streams_part(&self) -> usize {
        self.hosts.len() + self.switches.len() + self.controllers.count()
    }

    fn begin_streams(&mut self) -> Result<(), NetworkError> {
        let next = self.streams.begin(self.scenario, self.now)?;
        self.agenda.set(self.streams_part(), next);
        Ok(())
    }

    fn run_streams(&mut self) {
        let next = self.streams.run(self.now);
        self.agenda.set(self.streams_part(), next);
        if next == Instant::FAR
            && let Some(finished) = self.item_finished.get_mut(self.scenario.traffic.len())
        {
            *finished = true;
        }
        for stream in &self.scenario.streams {
            self.wake(SimulatedNode::Switch(stream.switch));
        }
    }

    /// Schedules `node` for now because it has received something.
    fn wake(&mut self, node: SimulatedNode) {
        let part = match node {
            SimulatedNode::Host(number) => number,
            SimulatedNode::Switch(number) => self.hosts.len() + number,
            SimulatedNode::Streams => self.streams_part(),
        };
        if self.agenda.at(part) > self.now {
            self.agenda.set(part, self.now);
        }
    }

    /// Sends pending control messages of switches and controllers, and schedules the parts that receive them.
    fn exchange_control(&mut self) {
        (0..self.controllers.count()).for_each(|channel| self.exchange_channel(channel));
    }

    /// Does what [`SimulatedNetwork::exchange_control`] does, for one control channel.
    fn exchange_channel(&mut self, channel: usize) {
        let (hosts, switches) = (self.hosts.len(), self.switches.len());
        let (wake, heard) = self.controllers.exchange(self.now, channel, &mut self.switches);
        self.agenda.set(hosts + switches + channel, wake);
        let part = hosts + self.controllers.switch(channel);
        if self.agenda.at(part) > heard {
            self.agenda.set(part, heard);
        }
    }

    fn finish(mut self, begin: Instant, partial: bool) -> LabResult {
        let scenario = self.scenario;
        let mut drops: Vec<DropCount> = Vec::new();
        let switches = self.switches.iter_mut().map(|switch| switch.result(self.now, &mut drops)).collect();
        let mut measured: Vec<TrafficMeasurement> =
            scenario.traffic.iter().map(|_| TrafficMeasurement::default()).collect();
        for (host, spec) in self.hosts.into_iter().zip(&scenario.hosts) {
            host.finish().add_to(&spec.name, &mut measured, &mut drops);
        }
        let items = scenario.traffic.iter().zip(measured).zip(&self.item_finished);
        let result = items.map(|((item, measured), through)| traffic_result(scenario, item, measured, *through, None));
        let traffic: Vec<TrafficResult> = result.collect();
        let now = self.now;
        let intents = intents::results(scenario, &traffic, |request| self.controllers.command(now, request));
        let (controller, external_controller) = self.controllers.own_result();
        let mut virtual_switches = Vec::new();
        for (number, switch) in self.switches.iter_mut().enumerate() {
            let controllers = |cut| self.controllers.virtual_result(number, cut);
            virtual_switches.extend(switch.virtual_results(now, controllers));
        }
        let promises = promises::results(scenario, &traffic, &drops);
        LabResult {
            passed: !partial && traffic.iter().all(|item| item.ok),
            partial,
            setup: LabSetup::new(scenario, LabHostKind::Virtual, self.now - begin),
            traffic,
            streams: self.streams.results(scenario),
            switches,
            virtual_switches,
            controller,
            external_controller,
            virtual_external_controllers: self.controllers.virtual_externals(),
            intents,
            promises,
            drops,
            certificate: None,
        }
    }
}

/// Device at the other end of each port, for reports.
type Peers = HashMap<PortNo, String>;
