//! Represents a scenario as a network of queues, and solves it: rates, losses and irregularity of flows are passed
//! from station to station until nothing changes (decomposition after Whitt, The queueing network analyzer, 1983).
//! Lines behind lines are then solved again, because packets of one input are not independent.
mod control;
mod solve;

use crate::PredictSettings;
use crate::arrivals::RateModulation;
use crate::data_path::{LevelDemand, LevelDemands, PassKey};
use crate::graph::{RouteGraph, RouteHop};
use crate::link_impairments;
use crate::sizes::ServiceDemand;
use crate::station::{AnalyticStation, ServiceMoments};
use crate::virtuals::VirtualSwitchOutput;
use crate::wakeup::{PacketWakeUps, sleeps_through};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use weir_model::mechanism::NewFlows;
use weir_model::{Law, ModelError};
use weir_scenario::{InstallScope, ReleaseGate, ReturnDiscipline, Scenario, ScenarioSwitch, SwitchTiming, defaults};

/// Location of a queue in the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum QueueLocation {
    /// Line with this index.
    Line(usize),
    /// Level of a switch's data path: switch, level.
    Data(usize, usize),
    /// Agent of a switch that creates packet-ins.
    PacketIn(usize),
    /// Agent of a switch that carries out packet-outs and flow-mods.
    PacketOut(usize),
    /// Single processor for both agents of a switch.
    Agents(usize),
    /// Bottleneck of a measured control path.
    Control(usize),
    /// Queue of the controller.
    Controller,
    /// Share of an output that a virtual switch has: switch, virtual switch, port.
    Output(usize, usize, u32),
    /// Gate that releases a switch's packets in groups: 0 before the data path, 1 behind it.
    Gate(usize, u8),
}

/// Visit of a flow to a queue.
#[derive(Debug, Clone)]
pub(crate) struct StationVisit {
    pub(crate) station: usize,
    /// Whole service time, as the queue sees it.
    pub(crate) service: ServiceMoments,
    /// Part of the service that does not depend on the packet's length; for a line, the jitter of its delay.
    pub(crate) fixed: Option<Law>,
    pub(crate) per_byte_s: f64,
    /// Constant delay after the service, in seconds.
    pub(crate) delay_s: f64,
    pub(crate) first: bool,
    /// Threads that have to wake up for the packet.
    pub(crate) wakes: PacketWakeUps,
}

/// Step on a flow's route.
#[derive(Debug, Clone)]
pub(crate) enum RouteStep {
    /// Visit to a queue.
    Visit(StationVisit),
    /// Request to the controller by a switch, for the packets that ask.
    ControllerTrip {
        /// Visits to packet-in agent, controller and packet-out agent, or to the station that represents all of them.
        way: Vec<StationVisit>,
        /// Second visit to the data path.
        back: Option<StationVisit>,
        /// Constant delay besides the visits, in seconds.
        delay_s: f64,
        /// Data path that a flow-mod seizes, and for how long in seconds.
        seizes: Option<(usize, f64)>,
    },
}

/// Unidirectional flow of packets.
#[derive(Debug, Clone)]
pub(crate) struct UnidirectionalFlow {
    pub(crate) steps: Rc<Vec<RouteStep>>,
    pub(crate) rate: f64,
    pub(crate) scv: f64,
    /// Rates of a source that sends in bursts.
    pub(crate) modulation: Option<Arc<RateModulation>>,
    pub(crate) lengths: Law,
    /// Share of the packets that ask the controller: those that begin a flow, or all that arrive before an entry is
    /// installed.
    pub(crate) asking_share: f64,
    /// Flows to which the packets belong, if known.
    pub(crate) flows: Option<NewFlows>,
}

/// Queues by place, created when the first flow visits them.
pub(crate) struct QueueingNetwork<'a> {
    scenario: &'a Scenario,
    graph: &'a RouteGraph,
    pub(crate) settings: &'a PredictSettings,
    pub(crate) stations: Vec<AnalyticStation>,
    pub(crate) locations: Vec<QueueLocation>,
    by_location: HashMap<QueueLocation, usize>,
    /// Services of packets at switches whose profile has levels.
    levels: LevelDemands,
    /// Inputs from which packets go to a virtual switch's output, by station.
    inputs: HashSet<(usize, u32)>,
}

impl<'a> QueueingNetwork<'a> {
    pub(crate) fn new(
        scenario: &'a Scenario,
        graph: &'a RouteGraph,
        settings: &'a PredictSettings,
        levels: LevelDemands,
    ) -> QueueingNetwork<'a> {
        QueueingNetwork {
            scenario,
            graph,
            settings,
            stations: Vec::new(),
            locations: Vec::new(),
            by_location: HashMap::new(),
            levels,
            inputs: HashSet::new(),
        }
    }

    /// Returns the index of the queue at a place, and creates it if needed.
    fn station(&mut self, place: QueueLocation, name: impl FnOnce() -> String, places: Option<u32>) -> usize {
        *self.by_location.entry(place).or_insert_with(|| {
            self.stations.push(AnalyticStation::new(name(), places.map(|places| places as usize)));
            self.locations.push(place);
            self.stations.len() - 1
        })
    }

    pub(crate) fn find(&self, place: QueueLocation) -> Option<usize> {
        self.by_location.get(&place).copied()
    }

    /// Returns the steps of packets with these lengths on a route: those of an item in one direction.
    pub(crate) fn steps(
        &mut self,
        route: &[RouteHop],
        (item, back): (usize, bool),
        lengths: &Law,
        new_flows: f64,
    ) -> Result<Vec<RouteStep>, ModelError> {
        let mut steps = Vec::new();
        let mut asks = new_flows > 0.0;
        for (at, hop) in route.iter().enumerate() {
            match *hop {
                RouteHop::Line(line) => {
                    let visit = self.line(line, lengths)?;
                    self.stations[visit.station].paced |= at > 0 && matches!(route[at - 1], RouteHop::Output(_));
                    steps.push(RouteStep::Visit(visit));
                }
                RouteHop::Output(output) => steps.extend(self.output(output, lengths)?.map(RouteStep::Visit)),
                RouteHop::Switch(switch) => {
                    let timing = self.scenario.switches[switch].timing.as_ref();
                    let gate = timing.and_then(|timing| timing.gate);
                    if let Some(gate @ ReleaseGate::Batch { stages: 2.., .. }) = gate {
                        steps.push(RouteStep::Visit(self.gate(switch, 0, gate)?));
                    }
                    let level = self.levels.get(PassKey { item, back, switch }).cloned();
                    steps.extend(self.data(switch, timing, level.as_ref(), lengths)?.map(RouteStep::Visit));
                    if let Some(gate) = gate {
                        steps.push(RouteStep::Visit(self.gate(switch, 1, gate)?));
                    }
                    if let (true, Some(ask)) = (asks, self.controller_trip(switch, timing, level.as_ref(), lengths)?) {
                        steps.push(ask);
                        asks = self.scenario.controller.install == InstallScope::Hop;
                    }
                }
            }
        }
        Ok(steps)
    }

    fn line(&mut self, line: usize, lengths: &Law) -> Result<StationVisit, ModelError> {
        let graph = self.graph;
        let spec = graph.lines[line].spec;
        let rate = spec.rate.unwrap_or(self.settings.link_rate).0 as f64;
        let buffer = spec.buffer.unwrap_or(defaults::LINK_BUFFER).0 as f64;
        let per_byte_s = 8.0 / rate;
        let station = self.station(QueueLocation::Line(line), || graph.lines[line].name.clone(), None);
        self.stations[station].buffer_s = Some(buffer * per_byte_s);
        self.stations[station].link_delivery = 1.0 - spec.loss.map_or(0.0, |loss| loss.share);
        let (delay_s, jitter) = link_impairments::delay(&spec)?;
        Ok(StationVisit {
            station,
            service: ServiceMoments::new(lengths.scaled(per_byte_s)?),
            fixed: jitter,
            per_byte_s,
            delay_s,
            first: false,
            wakes: PacketWakeUps {
                switch: false,
                others: u8::from(sleeps_through(spec.delay)) + u8::from(graph.is_down(line)),
            },
        })
    }

    /// Returns the visit to a virtual switch's crosspoints, as if it had only the guaranteed rate of the output. The
    /// line behind then receives packets one by one.
    fn output(&mut self, at: VirtualSwitchOutput, lengths: &Law) -> Result<Option<StationVisit>, ModelError> {
        let switch = &self.scenario.switches[at.switch];
        let own = &switch.virtual_switches[at.cut];
        let Some(share) = own.ports.iter().find(|port| port.port == at.output) else { return Ok(None) };
        let number = |physical: u32| own.ports.iter().find(|port| port.port == physical).map(|port| port.number);
        let ends = [at.input, at.output].map(number);
        let certain = own.buffers.iter().find(|one| [Some(one.from), Some(one.to)] == ends);
        let buffer = certain.map_or(own.buffer, |one| one.buffer).0 as f64;
        let per_byte_s = 8.0 / share.rate_out.0.max(1) as f64;
        let place = QueueLocation::Output(at.switch, at.cut, at.output);
        let station = self.station(place, || format!("{} {} to port {}", switch.name, own.name, at.output), None);
        // Each input has a buffer of its own.
        if self.inputs.insert((station, at.input)) {
            let known = self.stations[station].buffer_s.unwrap_or(0.0);
            self.stations[station].buffer_s = Some(known + buffer * per_byte_s);
        }
        let service = ServiceMoments::new(lengths.scaled(per_byte_s)?);
        let wakes = PacketWakeUps::default();
        Ok(Some(StationVisit { station, service, fixed: None, per_byte_s: 0.0, delay_s: 0.0, first: false, wakes }))
    }

    fn gate(&mut self, switch: usize, stage: u8, gate: ReleaseGate) -> Result<StationVisit, ModelError> {
        let name = self.scenario.switches[switch].name.as_str();
        let what = match (gate, stage) {
            (ReleaseGate::Tick { .. }, _) => "tick",
            (ReleaseGate::Batch { .. }, 0) => "first batches",
            (ReleaseGate::Batch { .. }, _) => "batches",
        };
        let station = self.station(QueueLocation::Gate(switch, stage), || format!("{name} {what}"), None);
        self.stations[station].gate = Some(gate);
        // Packets wait at the gate but are not served.
        let service = ServiceMoments::new(Law::constant(f64::MIN_POSITIVE)?);
        Ok(StationVisit {
            station,
            service,
            fixed: None,
            per_byte_s: 0.0,
            delay_s: 0.0,
            first: false,
            wakes: PacketWakeUps::default(),
        })
    }

    fn visit(&self, station: usize, work: &ServiceDemand, lengths: &Law) -> Result<Option<StationVisit>, ModelError> {
        let visit = |law| StationVisit {
            station,
            service: ServiceMoments::new(law),
            fixed: work.fixed.clone(),
            per_byte_s: work.per_byte_s,
            delay_s: 0.0,
            first: false,
            wakes: PacketWakeUps::default(),
        };
        Ok(work.with(lengths)?.map(visit))
    }

    fn data(
        &mut self,
        switch: usize,
        timing: Option<&SwitchTiming>,
        level: Option<&LevelDemand>,
        lengths: &Law,
    ) -> Result<Option<StationVisit>, ModelError> {
        let work = match timing {
            _ if level.is_some() => level.map(|level| level.work.clone()).unwrap_or_default(),
            None => ServiceDemand { fixed: Some(Law::constant(defaults::PACKET_TIME.as_secs_f64())?), per_byte_s: 0.0 },
            Some(timing) => ServiceDemand::of(timing.data.as_ref()),
        };
        if work.fixed.is_none() && work.per_byte_s <= 0.0 {
            return Ok(None);
        }
        let ScenarioSwitch { name, profile, .. } = &self.scenario.switches[switch];
        let at = level.map_or(0, |level| level.level);
        let name = || match profile.as_ref().and_then(|profile| profile.levels.get(at)).filter(|_| at > 0) {
            None => format!("{name} data path"),
            Some(level) => format!("{name} data path, {level}"),
        };
        let buffer = timing.and_then(|timing| timing.data_buffer);
        let station = self.station(QueueLocation::Data(switch, at), name, buffer);
        let classes = timing.is_some_and(|timing| matches!(timing.returns, ReturnDiscipline::Priority { .. }));
        self.stations[station].classes = classes;
        let mut visit = self.visit(station, &work, lengths)?;
        if let (Some(visit), None, None) = (&mut visit, timing, level) {
            visit.wakes.switch = true;
        }
        Ok(visit)
    }
}
