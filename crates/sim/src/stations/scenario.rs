//! Makes a plan of queueing stations of a scenario.
use super::plan::{
    ControlPathPlan, DevicePlan, FlowPlan, ForwardingLevel, JobServiceTime, LinkPlan, PathStage, QueueingPlan,
    StationPlan, StationQueues, StationRole, SwitchStage, WirePlan, WireTarget,
};
use crate::scenario::SimulateError;
use std::collections::VecDeque;
use std::time::Duration;
use weir_model::Law;
use weir_scenario::{
    ControlPathTiming, ControllerTiming, InstallScope, LinkSpec, MatchLayers, ProfileUse, ReleaseGate,
    ReturnDiscipline, Scenario, ScenarioSwitch, ScenarioTables, ServiceTime, SwitchTiming, TrafficExpectation,
    TrafficItem, TrafficKind, unused_parameters,
};
use weir_traffic::{LawSampler, TrafficError};
use weir_units::Instant;

/// Returns true if any switch of the scenario gives service times.
pub fn has_timing(scenario: &Scenario) -> bool {
    scenario.switches.iter().any(|switch| switch.timing.is_some())
}

/// Returns true if any switch of the scenario gives service times, and stations can stand for all that do. They cannot
/// for a switch with virtual switches, each of which is a device of its own behind one first lookup.
pub fn has_stations(scenario: &Scenario) -> bool {
    has_timing(scenario) && scenario.switches.iter().all(|switch| divided(switch).is_none())
}

/// Returns the reason why stations cannot stand for a switch.
fn divided(switch: &ScenarioSwitch) -> Option<String> {
    (switch.timing.is_some() && !switch.virtual_switches.is_empty()).then(|| {
        format!(
            "switch {}: found virtual switches of a switch with service times, which stations do not have; simulate it \
             packet by packet (--level packets)",
            switch.name
        )
    })
}

/// Makes a plan of a scenario's devices. Switches that give no times take no time.
///
/// # Errors
/// The scenario has no UDP traffic to simulate, a switch with service times has virtual switches, a service time is
/// wrong, or no links join two hosts of the traffic.
pub fn plan(scenario: &Scenario) -> Result<QueueingPlan, SimulateError> {
    let used = scenario.used_links();
    let passed = scenario.traffic.iter().map(|item| {
        let [from, to] = [item.from, item.to].map(|host| scenario.hosts[host].switch);
        let hops = shortest(scenario, &used, from, to);
        hops.map_or_else(Vec::new, |hops| std::iter::once(from).chain(hops.into_iter().map(|hop| hop.2)).collect())
    });
    let passed: Vec<Vec<usize>> = passed.collect();
    let mut builder = QueueingPlanBuilder {
        tables: ScenarioTables::new(scenario, &passed),
        plan: QueueingPlan {
            flows: Vec::new(),
            devices: Vec::new(),
            links: Vec::new(),
            controller: None,
            control_wires: [0, 1],
            stations: Vec::new(),
            gates: Vec::new(),
            wires: Vec::new(),
            asks_once: scenario.controller.install == InstallScope::Path,
            left_out: Vec::new(),
            unused: unused_parameters(scenario, ProfileUse::Stations),
        },
        devices: vec![None; scenario.switches.len()],
        used,
    };
    builder.controller(&scenario.controller)?;
    for (number, switch) in scenario.switches.iter().enumerate() {
        if let Some(problem) = divided(switch) {
            return Err(SimulateError(problem));
        }
        if let Some(timing) = &switch.timing {
            builder.devices[number] = Some(builder.plan.devices.len());
            let device = builder.device((number, switch), timing)?;
            builder.plan.devices.push(device);
        }
    }
    // Order of links: for each host, towards its switch and back; then each link in both directions.
    for host in &scenario.hosts {
        let switch = &scenario.switches[host.switch].name;
        builder.link(&host.link, [&host.name, switch])?;
        builder.link(&host.link, [switch, &host.name])?;
    }
    for link in &scenario.links {
        let [a, b] = link.ends.map(|end| scenario.switches[end.switch].name.as_str());
        builder.link(&link.spec, [a, b])?;
        builder.link(&link.spec, [b, a])?;
    }
    for item in &scenario.traffic {
        builder.traffic(scenario, item)?;
    }
    if builder.plan.flows.is_empty() {
        let others = builder.plan.left_out.join("; ");
        let problem = "found no udp traffic to simulate with stations, expected [[traffic]] with kind = \"udp\"";
        return Err(SimulateError(if others.is_empty() { problem.to_owned() } else { format!("{problem}: {others}") }));
    }
    Ok(builder.plan)
}

struct QueueingPlanBuilder<'a> {
    plan: QueueingPlan,
    tables: ScenarioTables<'a>,
    /// Index of the device, by switch of the scenario; `None` if the switch takes no time.
    devices: Vec<Option<usize>>,
    /// True if packets take the link, by link of the scenario.
    used: Vec<bool>,
}

impl QueueingPlanBuilder<'_> {
    fn station(
        &mut self,
        name: String,
        role: StationRole,
        jobs: [&ServiceTime; 2],
        room: StationQueues,
    ) -> Result<usize, SimulateError> {
        let wrong = |error: TrafficError| SimulateError(format!("{name}: {error}"));
        let job = |time: &ServiceTime| {
            let services = LawSampler::new(time.law.as_ref())?;
            Ok(JobServiceTime { services, per_byte_ns: time.per_byte_s * 1e9, level: None })
        };
        let jobs = [job(jobs[0]).map_err(wrong)?, job(jobs[1]).map_err(wrong)?];
        self.plan.stations.push(StationPlan { name, role, jobs, room });
        Ok(self.plan.stations.len() - 1)
    }

    fn wire(&mut self, delay: Duration, leads: WireTarget) -> usize {
        self.plan.wires.push(WirePlan { delay, jitter: None, loss: None, leads });
        self.plan.wires.len() - 1
    }

    fn gate(&mut self, gate: ReleaseGate) -> usize {
        self.plan.gates.push(gate);
        self.plan.gates.len() - 1
    }

    fn controller(&mut self, timing: &ControllerTiming) -> Result<(), SimulateError> {
        if let Some(service) = &timing.service {
            let room = StationQueues::Fifo(timing.buffer);
            self.plan.controller =
                Some(self.station("controller".to_owned(), StationRole::Controller, [service; 2], room)?);
        }
        self.plan.control_wires =
            [self.wire(timing.delay, WireTarget::ToController), self.wire(timing.delay, WireTarget::FromController)];
        Ok(())
    }

    fn device(
        &mut self,
        (number, switch): (usize, &ScenarioSwitch),
        timing: &SwitchTiming,
    ) -> Result<DevicePlan, SimulateError> {
        let gates = match timing.gate {
            None => 0,
            Some(ReleaseGate::Tick { .. }) => 1,
            Some(ReleaseGate::Batch { stages, .. }) => stages,
        };
        let gate = timing.gate.filter(|_| gates > 0);
        let front = gate.filter(|_| gates > 1).map(|gate| self.gate(gate));
        let levels = switch.profile.as_ref().map_or(1, |profile| profile.forwarding.len().max(1));
        let data = (0..levels).map(|level| self.data((number, switch), level, timing)).collect::<Result<_, _>>()?;
        Ok(DevicePlan {
            name: switch.name.clone(),
            front,
            data,
            missed: self.tables.missed(number),
            back: gate.map(|gate| self.gate(gate)),
            control: self.control(switch, &timing.control)?,
            cache: switch.profile.as_ref().and_then(|profile| profile.cache),
            passes_again: timing.returns != ReturnDiscipline::Direct,
            write: timing.write,
            slow: timing.slow,
        })
    }

    /// Makes the data path's station for a level of the tables; `None` if it takes no time.
    fn data(
        &mut self,
        (number, switch): (usize, &ScenarioSwitch),
        level: usize,
        timing: &SwitchTiming,
    ) -> Result<Option<usize>, SimulateError> {
        let profile = switch.profile.as_ref();
        let forwarding = profile.and_then(|profile| profile.forwarding.get(level)).and_then(Option::as_ref);
        if timing.data.is_none() && timing.write.is_zero() && forwarding.is_none() {
            return Ok(None);
        }
        let nothing = ServiceTime::default();
        let own = timing.data.as_ref().unwrap_or(&nothing);
        let (again, room) = match &timing.returns {
            ReturnDiscipline::Direct | ReturnDiscipline::Fifo => (None, StationQueues::Fifo(timing.data_buffer)),
            ReturnDiscipline::Priority { service, buffer } => {
                (service.as_ref(), StationQueues::Priority([timing.data_buffer, *buffer]))
            }
        };
        let name = match profile.and_then(|profile| profile.levels.get(level)).filter(|_| level > 0) {
            None => format!("{} data", switch.name),
            Some(level) => format!("{} data, {level}", switch.name),
        };
        let station = self.station(name, StationRole::Data, [own, again.unwrap_or(own)], room)?;
        if let Some(forwarding) = forwarding {
            let entries = self.tables.entries(number, level) as f64;
            let busy_ns = forwarding.busy_s.map(|s| s * 1e9);
            let level = ForwardingLevel { laws: MatchLayers::ALL.map(|kind| forwarding.of(kind)), entries, busy_ns };
            let jobs = &mut self.plan.stations[station].jobs;
            jobs[0].level = Some(level.clone());
            jobs[1].level = again.is_none().then_some(level);
        }
        Ok(Some(station))
    }

    fn control(
        &mut self,
        switch: &ScenarioSwitch,
        control: &ControlPathTiming,
    ) -> Result<ControlPathPlan, SimulateError> {
        let name = |what: &str| format!("{} {what}", switch.name);
        match control {
            ControlPathTiming::Measured { delay_s, capacity, scv, buffer } => {
                let mean_s = 1.0 / capacity;
                let law =
                    Law::gamma(mean_s, *scv).map_err(|error| SimulateError(format!("{}: {error}", name("control"))))?;
                let time = ServiceTime { law: Some(law), per_byte_s: 0.0 };
                let bottleneck =
                    self.station(name("control"), StationRole::Bottleneck, [&time; 2], StationQueues::Fifo(*buffer))?;
                let rest = Duration::from_secs_f64((delay_s - mean_s).max(0.0));
                Ok(ControlPathPlan::Measured { bottleneck, rest: self.wire(rest, WireTarget::Back) })
            }
            ControlPathTiming::Agents { packet_in: None, packet_out: None, .. } => {
                Ok(ControlPathPlan::Agents { packet_in: None, packet_out: None })
            }
            ControlPathTiming::Agents { packet_in, packet_out, shared: true, buffer } => {
                let nothing = ServiceTime::default();
                let jobs = [packet_in, packet_out].map(|time| time.as_ref().unwrap_or(&nothing));
                let both = Some(self.station(name("agent"), StationRole::Agent, jobs, StationQueues::Fifo(*buffer))?);
                Ok(ControlPathPlan::Agents { packet_in: both, packet_out: both })
            }
            ControlPathTiming::Agents { packet_in, packet_out, shared: false, buffer } => {
                let mut agent = |what: &str, time: &Option<ServiceTime>| {
                    let time = time.as_ref();
                    time.map(|time| {
                        self.station(name(what), StationRole::Agent, [time; 2], StationQueues::Fifo(*buffer))
                    })
                    .transpose()
                };
                Ok(ControlPathPlan::Agents {
                    packet_in: agent("packet-in", packet_in)?,
                    packet_out: agent("packet-out", packet_out)?,
                })
            }
        }
    }

    fn link(&mut self, spec: &LinkSpec, [from, to]: [&str; 2]) -> Result<(), SimulateError> {
        let line = match spec.rate {
            None => None,
            Some(rate) => {
                let time = ServiceTime { law: None, per_byte_s: 8.0 / rate.0 as f64 };
                let room = spec.buffer.map_or(StationQueues::Fifo(None), |buffer| StationQueues::Bytes(buffer.0));
                Some(self.station(format!("link {from} > {to}"), StationRole::Line, [&time; 2], room)?)
            }
        };
        let wire = WirePlan { delay: spec.delay, jitter: spec.jitter, loss: spec.loss, leads: WireTarget::Onwards };
        let wire = (!wire.is_none()).then(|| {
            self.plan.wires.push(wire);
            self.plan.wires.len() - 1
        });
        self.plan.links.push(LinkPlan { line, wire });
        Ok(())
    }

    fn traffic(&mut self, scenario: &Scenario, item: &TrafficItem) -> Result<(), SimulateError> {
        let [from, to] = [item.from, item.to].map(|host| scenario.hosts[host].name.as_str());
        let mut leave_out = |what: &str| {
            self.plan.left_out.push(format!("{what} from {from} to {to}"));
            Ok(())
        };
        let (duration, offered, new_flows, flows) = match &item.kind {
            TrafficKind::Ping { .. } => return leave_out("ping"),
            TrafficKind::Tcp { .. } => return leave_out("tcp"),
            TrafficKind::Udp { .. } if item.expect == TrafficExpectation::Isolated => return leave_out("isolated udp"),
            TrafficKind::Udp { duration, offered, new_flows, flows } => (*duration, offered, *new_flows, *flows),
        };
        let way = self.way(scenario, item)?;
        let is_switch = |stage: &PathStage| matches!(stage, PathStage::Switch(_));
        let start = Instant::ZERO + item.start;
        // Traffic that lasts for the whole scenario lasts for the whole simulation, whose time begins with a warm-up.
        let whole = scenario.duration.min(scenario.simulate.duration);
        self.plan.flows.push(FlowPlan {
            from: from.to_owned(),
            to: to.to_owned(),
            pair: (item.from as u64) << 32 | item.to as u64,
            offered: offered.clone(),
            new_flows,
            flows,
            start,
            stop: if item.start + duration >= whole { Instant::FAR } else { start + duration },
            first_switch: way.iter().position(is_switch).unwrap_or(usize::MAX),
            stages: way,
        });
        Ok(())
    }

    /// Returns the shortest path from host to host.
    fn way(&self, scenario: &Scenario, item: &TrafficItem) -> Result<Vec<PathStage>, SimulateError> {
        let [from, to] = [item.from, item.to].map(|host| &scenario.hosts[host]);
        let Some(hops) = shortest(scenario, &self.used, from.switch, to.switch) else {
            let problem =
                format!("udp from {} to {}: found no way of links between their switches", from.name, to.name);
            return Err(SimulateError(problem));
        };
        let access = scenario.hosts.len() * 2;
        let at = |switch: usize| {
            let met = self.tables.met(switch, item, false);
            self.devices[switch].map(|device| PathStage::Switch(SwitchStage { device, met }))
        };
        let mut way = vec![PathStage::Link(item.from * 2)];
        way.extend(at(from.switch));
        for (link, reversed, switch) in hops {
            way.push(PathStage::Link(access + link * 2 + usize::from(reversed)));
            way.extend(at(switch));
        }
        way.push(PathStage::Link(item.to * 2 + 1));
        Ok(way)
    }
}

/// Returns the shortest path between two switches; among equal ones, the path over the links that come first in the
/// file. Each hop has the link, true if it is taken from its second end to its first, and the switch it leads to.
fn shortest(scenario: &Scenario, used: &[bool], from: usize, to: usize) -> Option<Vec<(usize, bool, usize)>> {
    let mut came: Vec<Option<(usize, bool, usize)>> = vec![None; scenario.switches.len()];
    let mut open = VecDeque::from([from]);
    while let Some(at) = open.pop_front().filter(|at| *at != to) {
        for (number, link) in scenario.links.iter().enumerate() {
            let [a, b] = link.ends.map(|end| end.switch);
            let next = if a == at { b } else { a };
            if used[number] && (a == at || b == at) && next != from && came[next].is_none() {
                came[next] = Some((number, b == at, at));
                open.push_back(next);
            }
        }
    }
    let (mut hops, mut at) = (Vec::new(), to);
    while at != from {
        let (link, reversed, before) = came[at]?;
        hops.push((link, reversed, at));
        at = before;
    }
    hops.reverse();
    Some(hops)
}
