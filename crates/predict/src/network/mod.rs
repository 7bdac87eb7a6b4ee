//! A scenario as a network of queues, and its solution: rates, losses and how uneven flows are, station by station until nothing moves
//! (decomposition after Whitt, The queueing network analyzer, 1983).
mod control;
mod solve;

use crate::Settings;
use crate::graph::{Graph, Hop};
use crate::impaired;
use crate::sizes::Work;
use crate::station::{Station, Timed};
use crate::virtuals::Output;
use crate::waking::{Wakes, sleeps_through};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use weir_model::mechanism::Flows;
use weir_model::{Law, ModelError};
use weir_scenario::{Gate, Install, Returns, Scenario, SwitchTiming, native};

/// A queue's place in the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// A line, by its number.
    Line(usize),
    /// A switch's data path.
    Data(usize),
    /// What makes its packet-ins.
    PacketIn(usize),
    /// What carries out packet-outs and flow-mods.
    PacketOut(usize),
    /// Both in one.
    Agents(usize),
    /// The bottleneck of a control path as measured.
    Control(usize),
    /// The controller.
    Controller,
    /// What a virtual switch has of an output: switch, virtual switch, port.
    Output(usize, usize, u32),
    /// What lets a switch's packets out in groups: 0 in front of the data path, 1 behind.
    Gate(usize, u8),
}

/// A flow's visit to a queue.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    pub(crate) station: usize,
    /// The whole service, as the queue sees it.
    pub(crate) service: Timed,
    /// What of it does not depend on the packet's length; of a line, what jitter adds to the delay.
    pub(crate) fixed: Option<Law>,
    pub(crate) per_byte_s: f64,
    /// What comes after the service.
    pub(crate) delay_s: f64,
    pub(crate) first: bool,
    /// Threads that have to wake up for it.
    pub(crate) wakes: Wakes,
}

/// What a flow comes through.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A queue.
    Visit(Visit),
    /// A switch that asks the controller about packets that begin a flow.
    Ask {
        /// Packet-in agent, controller, packet-out agent, or what stands for all.
        way: Vec<Visit>,
        /// The data path again.
        back: Option<Visit>,
        /// Time beside that.
        delay_s: f64,
        /// The data path, which a flow-mod seizes, and for how long.
        seizes: Option<(usize, f64)>,
    },
}

/// A one-way flow of packets.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    pub(crate) steps: Rc<Vec<Step>>,
    pub(crate) rate: f64,
    pub(crate) scv: f64,
    pub(crate) lengths: Law,
    /// Share of the packets that ask the controller: those that begin a flow, or all that come before an entry is there.
    pub(crate) asks: f64,
    /// Flows that its packets are of, if it is known.
    pub(crate) flows: Option<Flows>,
}

/// Queues by place, made when a flow comes to them first.
pub(crate) struct Network<'a> {
    scenario: &'a Scenario,
    graph: &'a Graph,
    pub(crate) settings: &'a Settings,
    pub(crate) stations: Vec<Station>,
    pub(crate) places: Vec<Place>,
    known: HashMap<Place, usize>,
    /// Inputs from which packets come to outputs of virtual switches.
    inputs: HashSet<(usize, u32)>,
}

impl<'a> Network<'a> {
    pub(crate) fn new(scenario: &'a Scenario, graph: &'a Graph, settings: &'a Settings) -> Network<'a> {
        Network {
            scenario,
            graph,
            settings,
            stations: Vec::new(),
            places: Vec::new(),
            known: HashMap::new(),
            inputs: HashSet::new(),
        }
    }

    /// The number of the queue at a place.
    fn station(&mut self, place: Place, name: impl FnOnce() -> String, places: Option<u32>) -> usize {
        *self.known.entry(place).or_insert_with(|| {
            self.stations.push(Station::new(name(), places.map(|places| places as usize)));
            self.places.push(place);
            self.stations.len() - 1
        })
    }

    pub(crate) fn find(&self, place: Place) -> Option<usize> {
        self.known.get(&place).copied()
    }

    /// What packets of these lengths come through on their way.
    pub(crate) fn steps(&mut self, route: &[Hop], lengths: &Law, new_flows: f64) -> Result<Vec<Step>, ModelError> {
        let mut steps = Vec::new();
        let mut asks = new_flows > 0.0;
        for (at, hop) in route.iter().enumerate() {
            match *hop {
                Hop::Line(line) => {
                    let visit = self.line(line, lengths)?;
                    self.stations[visit.station].paced |= at > 0 && matches!(route[at - 1], Hop::Output(_));
                    steps.push(Step::Visit(visit));
                }
                Hop::Output(output) => steps.extend(self.output(output, lengths)?.map(Step::Visit)),
                Hop::Switch(switch) => {
                    let timing = self.scenario.switches[switch].timing.as_ref();
                    let gate = timing.and_then(|timing| timing.gate);
                    if let Some(gate @ Gate::Batch { stages: 2.., .. }) = gate {
                        steps.push(Step::Visit(self.gate(switch, 0, gate)?));
                    }
                    steps.extend(self.data(switch, timing, lengths)?.map(Step::Visit));
                    if let Some(gate) = gate {
                        steps.push(Step::Visit(self.gate(switch, 1, gate)?));
                    }
                    if let (true, Some(ask)) = (asks, self.ask(switch, timing, lengths)?) {
                        steps.push(ask);
                        asks = self.scenario.controller.install == Install::Hop;
                    }
                }
            }
        }
        Ok(steps)
    }

    fn line(&mut self, line: usize, lengths: &Law) -> Result<Visit, ModelError> {
        let graph = self.graph;
        let spec = graph.lines[line].spec;
        let rate = spec.rate.unwrap_or(self.settings.link_rate).0 as f64;
        let buffer = spec.buffer.unwrap_or(native::BUFFER).0 as f64;
        let per_byte_s = 8.0 / rate;
        let station = self.station(Place::Line(line), || graph.lines[line].name.clone(), None);
        self.stations[station].buffer_s = Some(buffer * per_byte_s);
        self.stations[station].passes = 1.0 - spec.loss.map_or(0.0, |loss| loss.share);
        let (delay_s, jitter) = impaired::delay(&spec)?;
        Ok(Visit {
            station,
            service: Timed::new(lengths.scaled(per_byte_s)?),
            fixed: jitter,
            per_byte_s,
            delay_s,
            first: false,
            wakes: Wakes {
                switch: false,
                others: u8::from(sleeps_through(spec.delay)) + u8::from(graph.is_down(line)),
            },
        })
    }

    /// Waiting at a virtual switch's crosspoints, as if it had no more of the output than it is guaranteed. Its line then takes packets one by one.
    fn output(&mut self, at: Output, lengths: &Law) -> Result<Option<Visit>, ModelError> {
        let switch = &self.scenario.switches[at.switch];
        let own = &switch.virtual_switches[at.cut];
        let Some(share) = own.ports.iter().find(|port| port.port == at.output) else { return Ok(None) };
        let number = |physical: u32| own.ports.iter().find(|port| port.port == physical).map(|port| port.number);
        let ends = [at.input, at.output].map(number);
        let certain = own.buffers.iter().find(|one| [Some(one.from), Some(one.to)] == ends);
        let buffer = certain.map_or(own.buffer, |one| one.buffer).0 as f64;
        let per_byte_s = 8.0 / share.rate_out.0.max(1) as f64;
        let place = Place::Output(at.switch, at.cut, at.output);
        let station = self.station(place, || format!("{} {} to port {}", switch.name, own.name, at.output), None);
        // Each input has a buffer of its own.
        if self.inputs.insert((station, at.input)) {
            let known = self.stations[station].buffer_s.unwrap_or(0.0);
            self.stations[station].buffer_s = Some(known + buffer * per_byte_s);
        }
        let service = Timed::new(lengths.scaled(per_byte_s)?);
        let wakes = Wakes::default();
        Ok(Some(Visit { station, service, fixed: None, per_byte_s: 0.0, delay_s: 0.0, first: false, wakes }))
    }

    fn gate(&mut self, switch: usize, stage: u8, gate: Gate) -> Result<Visit, ModelError> {
        let name = self.scenario.switches[switch].name.as_str();
        let what = match (gate, stage) {
            (Gate::Tick { .. }, _) => "tick",
            (Gate::Batch { .. }, 0) => "first batches",
            (Gate::Batch { .. }, _) => "batches",
        };
        let station = self.station(Place::Gate(switch, stage), || format!("{name} {what}"), None);
        self.stations[station].gate = Some(gate);
        // It waits, and is not served.
        let service = Timed::new(Law::constant(f64::MIN_POSITIVE)?);
        Ok(Visit {
            station,
            service,
            fixed: None,
            per_byte_s: 0.0,
            delay_s: 0.0,
            first: false,
            wakes: Wakes::default(),
        })
    }

    fn visit(&self, station: usize, work: &Work, lengths: &Law) -> Result<Option<Visit>, ModelError> {
        let visit = |law| Visit {
            station,
            service: Timed::new(law),
            fixed: work.fixed.clone(),
            per_byte_s: work.per_byte_s,
            delay_s: 0.0,
            first: false,
            wakes: Wakes::default(),
        };
        Ok(work.with(lengths)?.map(visit))
    }

    fn data(
        &mut self,
        switch: usize,
        timing: Option<&SwitchTiming>,
        lengths: &Law,
    ) -> Result<Option<Visit>, ModelError> {
        let work = match timing {
            None => Work { fixed: Some(Law::constant(native::PACKET.as_secs_f64())?), per_byte_s: 0.0 },
            Some(timing) => Work::of(timing.data.as_ref()),
        };
        if work.fixed.is_none() && work.per_byte_s <= 0.0 {
            return Ok(None);
        }
        let name = self.scenario.switches[switch].name.as_str();
        let buffer = timing.and_then(|timing| timing.data_buffer);
        let station = self.station(Place::Data(switch), || format!("{name} data path"), buffer);
        let classes = timing.is_some_and(|timing| matches!(timing.returns, Returns::Priority { .. }));
        self.stations[station].classes = classes;
        let mut visit = self.visit(station, &work, lengths)?;
        if let (Some(visit), None) = (&mut visit, timing) {
            visit.wakes.switch = true;
        }
        Ok(visit)
    }
}
