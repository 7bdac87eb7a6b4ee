//! Simulates a plan once: moves packets from station to station until the last one has arrived.
use super::installed_entries::InstalledEntries;
use super::plan::{ControlPathPlan, DevicePlan, FlowPlan, PathStage, QueueingPlan, StationRole, WireTarget};
use super::station::{ArrivalOutcome, SimulatedStation, StationPacket};
use super::tally::{CountingWindow, FlowTally, QueueingRunResult, SwitchTally};
use crate::agenda::Agenda;
use crate::engine::SimulationMonitor;
use crate::model;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use weir_device::{FlowCache, GateQueue};
use weir_scenario::MatchLayers;
use weir_traffic::impair::ImpairmentRng;
use weir_traffic::{ConcurrentFlows, PacketSampler, RandomStream, TrafficError};
use weir_units::Instant;

/// Events between two checks of [`SimulationMonitor::cancel`].
const LOOK_EVERY: u64 = 1 << 16;
/// Most packets under way on a wire. Further packets are lost, and counted as lost by their flow.
const MAX_UNDER_WAY: usize = 1 << 20;
/// First numbers of the streams of random numbers of stations, gates and wires. Sources start at 0.
const STATION_STREAMS: u64 = 1 << 32;
const GATE_STREAMS: u64 = 2 << 32;
const WIRE_STREAMS: u64 = 3 << 32;

/// Next step of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueueingStep {
    /// Arrives at the current stage of its path.
    Stage,
    /// Moves on from the current stage to the next.
    Onwards,
    /// Has been sent by the line of its link.
    Sent,
    /// Arrives at its switch's data path.
    Data,
    /// Has been served by the data path.
    Served,
    /// Asks the controller or leaves the switch.
    Decide,
    /// Leaves the switch for the controller.
    ToController,
    Controller,
    FromController,
    /// Answer of the controller arrives at the switch.
    Out,
    /// Has been served by the bottleneck of a measured control path.
    Rest,
    /// Has returned from the controller.
    Returned,
    /// Leaves the switch.
    Leave,
    /// Waits, has arrived at its host, or is lost.
    Over,
}

/// State of a run. The agenda numbers its parts in this order: sources, stations, gates, wires.
struct QueueingRun<'a> {
    plan: &'a QueueingPlan,
    agenda: Agenda,
    sources: Vec<PacketSampler>,
    /// Assignment of packets to flows, by source.
    of_flows: Vec<ConcurrentFlows>,
    /// Entries of flows at switches, by source; `None` if packets are not told apart by flow.
    entries: Vec<Option<InstalledEntries>>,
    stations: Vec<SimulatedStation>,
    gates: Vec<GateQueue<StationPacket>>,
    wires: Vec<VecDeque<(Instant, StationPacket)>>,
    /// Random numbers for jitter and loss, by wire.
    dice: Vec<ImpairmentRng>,
    flows: Vec<FlowTally>,
    switches: Vec<SwitchTally>,
    /// Caches of decisions about flows, by switch.
    caches: Vec<Option<FlowCache>>,
    /// Buffer for packets released by a gate, kept to reuse its memory.
    released: Vec<StationPacket>,
    window: CountingWindow,
    packets: u64,
    events: u64,
    watch: &'a SimulationMonitor,
}

/// Simulates a plan once, counting packets in `window`. `seed` and `replication` together choose the random numbers:
/// each replication of a seed is an independent run.
///
/// # Errors
/// The described traffic is not possible.
pub fn run(
    plan: &QueueingPlan,
    window: model::SimulationWindow,
    seed: u64,
    replication: u64,
    watch: &SimulationMonitor,
) -> Result<QueueingRunResult, TrafficError> {
    let mut run = QueueingRun::new(plan, window, seed, replication, watch)?;
    let partial = run.run_stations();
    let end = run.window.end;
    run.stations.iter_mut().for_each(|station| station.account(end));
    Ok(QueueingRunResult {
        flows: run.flows,
        switches: run.switches,
        stations: run.stations.iter().map(|station| station.tally).collect(),
        packets: run.packets,
        events: run.events,
        window_s: window.length.as_secs_f64(),
        partial,
    })
}

impl<'a> QueueingRun<'a> {
    fn new(
        plan: &'a QueueingPlan,
        window: model::SimulationWindow,
        seed: u64,
        replication: u64,
        watch: &'a SimulationMonitor,
    ) -> Result<QueueingRun<'a>, TrafficError> {
        let begin = Instant::ZERO + window.warm_up;
        let window = CountingWindow { begin, end: begin + window.length };
        let station = |(number, station)| {
            SimulatedStation::new(station, window, RandomStream::new(seed, replication, STATION_STREAMS + number))
        };
        let gate = |(number, kind): (u64, &weir_scenario::ReleaseGate)| {
            // A random first tick makes the ticks of replications independent.
            let first = RandomStream::new(seed, replication, GATE_STREAMS + number)
                .below(GateQueue::<StationPacket>::every_ns(*kind));
            GateQueue::new(*kind, Instant::from_nanos(first))
        };
        let parts = plan.flows.len() + plan.stations.len() + plan.gates.len() + plan.wires.len();
        let mut run = QueueingRun {
            plan,
            agenda: Agenda::new(parts),
            sources: Vec::new(),
            of_flows: plan.flows.iter().map(|flow| ConcurrentFlows::new(flow.new_flows, flow.flows)).collect(),
            entries: plan.flows.iter().map(InstalledEntries::of).collect(),
            stations: (0..).zip(&plan.stations).map(station).collect(),
            gates: (0..).zip(&plan.gates).map(gate).collect(),
            wires: plan.wires.iter().map(|_| VecDeque::new()).collect(),
            dice: (0..plan.wires.len() as u64)
                .map(|number| ImpairmentRng::of(RandomStream::new(seed, replication, WIRE_STREAMS + number)))
                .collect(),
            flows: plan.flows.iter().map(|_| FlowTally::default()).collect(),
            switches: plan.devices.iter().map(|_| SwitchTally::default()).collect(),
            caches: plan.devices.iter().map(|device| device.cache.as_ref().map(FlowCache::new)).collect(),
            released: Vec::new(),
            window,
            packets: 0,
            events: 0,
            watch,
        };
        for (number, flow) in plan.flows.iter().enumerate() {
            let mut source =
                PacketSampler::new(&flow.offered, flow.start, RandomStream::new(seed, replication, number as u64))?;
            let first = source.next_after(flow.start);
            run.sources.push(source);
            run.agenda.set(number, run.in_time(flow, first));
        }
        Ok(run)
    }

    /// Returns the time of a flow's packet that is planned for `at`: `at`, or [`Instant::FAR`] if the flow or the
    /// measurement has ended by then.
    fn in_time(&self, flow: &FlowPlan, at: Instant) -> Instant {
        if at < flow.stop.min(self.window.end) { at } else { Instant::FAR }
    }

    /// Handles events until none is left. Returns true if the run was cancelled before.
    fn run_stations(&mut self) -> bool {
        let stations = self.sources.len();
        let gates = stations + self.stations.len();
        let wires = gates + self.gates.len();
        let mut told = 0;
        while let Some((part, now)) = self.agenda.next() {
            self.events += 1;
            if self.events.is_multiple_of(LOOK_EVERY) && self.is_to_stop(now, &mut told) {
                return true;
            }
            if part < stations {
                self.make(part, now);
            } else if part < gates {
                let (done, next) = self.stations[part - stations].finish(now);
                self.agenda.set(part, next);
                if let Some(item) = done {
                    self.advance_packet(item, after(self.stations[part - stations].role, item.returned), now);
                }
            } else if part < wires {
                self.release(part, part - gates, now);
            } else {
                self.land(part, part - wires, now);
            }
        }
        self.is_to_stop(self.window.end, &mut told);
        false
    }

    #[cold]
    fn is_to_stop(&self, now: Instant, told: &mut u64) -> bool {
        let reached = now.min(self.window.end).as_nanos();
        self.watch.virtual_ns.fetch_add(reached.saturating_sub(*told), Ordering::Relaxed);
        *told = reached.max(*told);
        let events = if self.events.is_multiple_of(LOOK_EVERY) { LOOK_EVERY } else { self.events % LOOK_EVERY };
        self.watch.events.fetch_add(events, Ordering::Relaxed);
        self.watch.cancel.load(Ordering::Relaxed)
    }

    /// Sends a packet of a host's flow and schedules the next one.
    #[inline]
    fn make(&mut self, number: usize, now: Instant) {
        let flow = &self.plan.flows[number];
        let source = &mut self.sources[number];
        let bytes = source.bytes();
        let of_flow = self.of_flows[number].draw(source.random());
        let next = source.next_after(now);
        self.agenda.set(number, self.in_time(flow, next));
        self.packets += 1;
        let counts = now >= self.window.begin;
        self.flows[number].sent += u64::from(counts);
        let item = StationPacket {
            sent: now,
            at_switch: now,
            since: now,
            flow: u32::try_from(number).unwrap_or(u32::MAX),
            bytes,
            stage: 0,
            kind: MatchLayers::L2,
            gap_s: 0.0,
            more_ns: 0.0,
            waited: false,
            place: u16::try_from(of_flow.place).unwrap_or(u16::MAX),
            number: of_flow.number,
            begins: of_flow.begins,
            asks: false,
            returned: false,
            asked: false,
            counts,
        };
        self.advance_packet(item, QueueingStep::Stage, now);
    }

    /// Releases packets from a gate in front of a data path or behind it.
    fn release(&mut self, part: usize, gate: usize, now: Instant) {
        let mut released = std::mem::take(&mut self.released);
        released.extend(std::iter::from_fn(|| self.gates[gate].take(now)).map(|(_, item)| item));
        self.agenda.set(part, self.gates[gate].due());
        for item in released.drain(..) {
            let is_front = self.switch_of(&item).is_some_and(|switch| self.plan.devices[switch].front == Some(gate));
            self.advance_packet(item, if is_front { QueueingStep::Data } else { QueueingStep::Decide }, now);
        }
        self.released = released;
    }

    /// Removes the packet that reaches the end of a wire and continues with it.
    fn land(&mut self, part: usize, wire: usize, now: Instant) {
        let landed = self.wires[wire].pop_front();
        self.agenda.set(part, self.wires[wire].front().map_or(Instant::FAR, |(at, _)| *at));
        let step = end_of(self.plan.wires[wire].leads);
        if let Some((_, item)) = landed {
            self.advance_packet(item, step, now);
        }
    }

    /// Moves a packet on until it has to wait.
    #[inline]
    fn advance_packet(&mut self, mut item: StationPacket, mut step: QueueingStep, now: Instant) {
        while step != QueueingStep::Over {
            step = self.take_step(&mut item, step, now);
        }
    }

    /// Takes one step of a packet and returns the next one.
    #[inline]
    fn take_step(&mut self, item: &mut StationPacket, step: QueueingStep, now: Instant) -> QueueingStep {
        let plan = self.plan;
        match step {
            QueueingStep::Stage => return self.stage(item, now),
            QueueingStep::Onwards => {
                item.stage += 1;
                return QueueingStep::Stage;
            }
            QueueingStep::Sent => {
                let wire = self.link_of(item).and_then(|link| plan.links[link].wire);
                return wire.map_or(QueueingStep::Onwards, |wire| self.send(wire, item, now));
            }
            QueueingStep::Controller => {
                return plan
                    .controller
                    .map_or(QueueingStep::FromController, |station| self.enter_station(station, item, now));
            }
            QueueingStep::ToController => return self.send(plan.control_wires[0], item, now),
            QueueingStep::FromController => {
                item.returned = true;
                return self.send(plan.control_wires[1], item, now);
            }
            _ => {}
        }
        // Steps from here on happen at a switch.
        let Some(switch) = self.switch_of(item) else { return QueueingStep::Over };
        let device = &plan.devices[switch];
        match step {
            QueueingStep::Data => {
                let station = self.data_station(device, item);
                let flow = plan.flows[item.flow as usize].pair;
                item.more_ns = self.caches[switch].as_mut().map_or(0.0, |cache| cache.packet_ns(now, flow));
                station.map_or(QueueingStep::Served, |station| self.enter_station(station, item, now))
            }
            QueueingStep::Served => device.back.map_or(QueueingStep::Decide, |gate| self.wait(gate, item, now)),
            QueueingStep::Decide if !item.returned && self.is_to_ask(item) => self.ask(switch, item, now),
            QueueingStep::Out => match device.control {
                ControlPathPlan::Agents { packet_out: Some(agent), .. } => self.enter_station(agent, item, now),
                _ => QueueingStep::Returned,
            },
            QueueingStep::Rest => match device.control {
                ControlPathPlan::Measured { rest, .. } => self.send(rest, item, now),
                ControlPathPlan::Agents { .. } => QueueingStep::Returned,
            },
            QueueingStep::Returned => self.returned(switch, item, now),
            _ => self.leave(switch, item, now),
        }
    }

    /// Brings a packet to the current stage of its path: a link, a switch, or its host at the end.
    fn stage(&mut self, item: &mut StationPacket, now: Instant) -> QueueingStep {
        let flow = &self.plan.flows[item.flow as usize];
        match flow.stages.get(usize::from(item.stage)) {
            None => self.deliver(item, now),
            Some(PathStage::Link(link)) => match self.plan.links[*link].line {
                Some(line) => self.enter_station(line, item, now),
                None => QueueingStep::Sent,
            },
            Some(PathStage::Switch(at)) => {
                item.at_switch = now;
                item.returned = false;
                item.asks = false;
                self.plan.devices[at.device].front.map_or(QueueingStep::Data, |gate| self.wait(gate, item, now))
            }
        }
    }

    /// Returns the station of the data path that serves a packet: that of the level with its entries, of the last level
    /// if it has none, or of the first if it is back from the controller.
    fn data_station(&self, device: &DevicePlan, item: &mut StationPacket) -> Option<usize> {
        let stage = self.plan.flows[item.flow as usize].stages.get(usize::from(item.stage));
        let (level, kind) = match stage {
            Some(PathStage::Switch(_)) if item.returned => (0, MatchLayers::L2),
            Some(PathStage::Switch(_)) if self.is_to_ask(item) => (device.missed.level, device.missed.kind),
            Some(PathStage::Switch(at)) => (at.met.level, at.met.kind),
            _ => return None,
        };
        item.kind = kind;
        device.data.get(level).copied().flatten()
    }

    fn deliver(&mut self, item: &StationPacket, now: Instant) -> QueueingStep {
        if item.counts {
            let delay = u64::try_from((now - item.sent).as_nanos()).unwrap_or(u64::MAX);
            self.flows[item.flow as usize].delays[usize::from(item.asked)].record(delay);
        }
        QueueingStep::Over
    }

    /// Returns true if the packet asks the controller: its flow has no entry at this switch, and this switch may ask.
    #[inline]
    fn is_to_ask(&self, item: &StationPacket) -> bool {
        let lacks_entry = match &self.entries[item.flow as usize] {
            Some(entries) => entries.lacks(item),
            None => item.begins,
        };
        lacks_entry
            && (!self.plan.asks_once || usize::from(item.stage) == self.plan.flows[item.flow as usize].first_switch)
    }

    fn ask(&mut self, switch: usize, item: &mut StationPacket, now: Instant) -> QueueingStep {
        item.asks = true;
        item.asked = true;
        match self.plan.devices[switch].control {
            ControlPathPlan::Agents { packet_in: Some(agent), .. } => self.enter_station(agent, item, now),
            ControlPathPlan::Agents { packet_in: None, .. } => QueueingStep::ToController,
            ControlPathPlan::Measured { bottleneck, .. } => self.enter_station(bottleneck, item, now),
        }
    }

    /// Carries out the controller's answer: writes the entry, which seizes the data path, and lets the packet
    /// continue.
    fn returned(&mut self, switch: usize, item: &mut StationPacket, now: Instant) -> QueueingStep {
        item.returned = true;
        if let Some(entries) = &mut self.entries[item.flow as usize] {
            entries.write(item);
        }
        let device = &self.plan.devices[switch];
        for data in device.data.iter().flatten().copied().filter(|_| !device.write.is_zero()) {
            let ends = self.stations[data].seize(now, device.write);
            self.agenda.set(self.sources.len() + data, ends);
        }
        if device.passes_again { QueueingStep::Data } else { QueueingStep::Leave }
    }

    fn leave(&mut self, switch: usize, item: &StationPacket, now: Instant) -> QueueingStep {
        if item.counts {
            let tally = &mut self.switches[switch];
            let delay = now - item.at_switch;
            tally.passed += 1;
            tally.asked += u64::from(item.asks);
            tally.held_up += u64::from(item.asks || delay > self.plan.devices[switch].slow);
            tally.delays.record(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX));
        }
        QueueingStep::Onwards
    }

    /// Brings a packet to a station.
    #[inline]
    fn enter_station(&mut self, station: usize, item: &StationPacket, now: Instant) -> QueueingStep {
        match self.stations[station].accept_packet(*item, now) {
            ArrivalOutcome::Served(ends) => self.agenda.set(self.sources.len() + station, ends),
            ArrivalOutcome::Waits => {}
            ArrivalOutcome::Lost => self.lose(item),
        }
        QueueingStep::Over
    }

    fn wait(&mut self, gate: usize, item: &StationPacket, now: Instant) -> QueueingStep {
        match self.gates[gate].offer(now, *item) {
            Ok(()) => {
                self.agenda.set(self.sources.len() + self.stations.len() + gate, self.gates[gate].due());
            }
            Err(item) => self.lose(&item),
        }
        QueueingStep::Over
    }

    /// Puts a packet on a wire. Returns the next step at once if the wire has no delay and no loss.
    fn send(&mut self, wire: usize, item: &StationPacket, now: Instant) -> QueueingStep {
        let plan = self.plan.wires[wire];
        if plan.is_none() {
            return end_of(plan.leads);
        }
        let (under_way, dice) = (&mut self.wires[wire], &mut self.dice[wire]);
        if under_way.len() >= MAX_UNDER_WAY || plan.loss.is_some_and(|loss| dice.loses(loss)) {
            self.lose(item);
            return QueueingStep::Over;
        }
        let place = match plan.jitter {
            None => {
                under_way.push_back((now + plan.delay, *item));
                under_way.len() - 1
            }
            Some(jitter) => {
                let drawn = now + dice.delay(plan.delay, jitter);
                let last = under_way.back().map_or(drawn, |(at, _)| *at);
                let arrives = if jitter.reorder { drawn } else { drawn.max(last) };
                let place = under_way.partition_point(|(at, _)| *at <= arrives);
                under_way.insert(place, (arrives, *item));
                place
            }
        };
        if place == 0 {
            let next = under_way.front().map_or(Instant::FAR, |(at, _)| *at);
            self.agenda.set(self.sources.len() + self.stations.len() + self.gates.len() + wire, next);
        }
        QueueingStep::Over
    }

    fn lose(&mut self, item: &StationPacket) {
        self.flows[item.flow as usize].lost += u64::from(item.counts);
    }

    fn switch_of(&self, item: &StationPacket) -> Option<usize> {
        match self.plan.flows[item.flow as usize].stages.get(usize::from(item.stage)) {
            Some(PathStage::Switch(at)) => Some(at.device),
            _ => None,
        }
    }

    fn link_of(&self, item: &StationPacket) -> Option<usize> {
        match self.plan.flows[item.flow as usize].stages.get(usize::from(item.stage)) {
            Some(PathStage::Link(link)) => Some(*link),
            _ => None,
        }
    }
}

/// Returns the step at the end of a wire.
fn end_of(leads: WireTarget) -> QueueingStep {
    match leads {
        WireTarget::Onwards => QueueingStep::Onwards,
        WireTarget::ToController => QueueingStep::Controller,
        WireTarget::FromController => QueueingStep::Out,
        WireTarget::Back => QueueingStep::Returned,
    }
}

/// Returns the step after a station of this role has served a packet. `returned`: the packet is back from the
/// controller.
fn after(role: StationRole, returned: bool) -> QueueingStep {
    match role {
        StationRole::Line => QueueingStep::Sent,
        StationRole::Data => QueueingStep::Served,
        StationRole::Agent if returned => QueueingStep::Returned,
        StationRole::Agent => QueueingStep::ToController,
        StationRole::Controller => QueueingStep::FromController,
        StationRole::Bottleneck => QueueingStep::Rest,
    }
}
