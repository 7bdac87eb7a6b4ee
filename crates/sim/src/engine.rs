//! Simulates a [`FabricNetwork`] once: handles events in order of time until none is left.
use crate::agenda::Agenda;
use crate::model::{FabricHop, FabricNetwork, FabricNetworkError, SimulationWindow};
use crate::sources::{InFlightQueue, LineState, SourceState, TransitPacket};
use crate::tally::{PacketTally, REASONS};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use weir_fabric::{
    Crosspoint, DequeueResult, Fabric, FabricDrop, FabricPacket, OutputLine, PacketByteCount, PortIndex,
    VirtualSwitchIndex,
};
use weir_traffic::RandomStream;
use weir_units::Instant;

/// Most packets that wait for a line. Further packets are lost with reason `line_full`.
pub const MAX_ON_LINE: usize = 1 << 20;
/// Events between two checks of [`SimulationMonitor::cancel`].
const LOOK_EVERY: u64 = 1 << 16;

/// Stops runs and counts their progress. All threads that simulate share it.
#[derive(Debug, Default)]
pub struct SimulationMonitor {
    /// Set to stop the runs. Results are partial from then on.
    pub cancel: AtomicBool,
    /// Events handled so far.
    pub events: AtomicU64,
    /// Virtual time simulated so far, in ns, including warm-up. The time after the window, in which queues drain, is
    /// not counted.
    pub virtual_ns: AtomicU64,
}

/// Results of one run.
#[derive(Debug, Clone)]
pub struct FabricRunResult {
    /// Tallies by group, in the order of [`FabricNetwork::groups`].
    pub groups: Vec<PacketTally>,
    /// Packets made, inside the counting window or not.
    pub packets: u64,
    /// Number of events simulated.
    pub events: u64,
    /// Length of the window in which packets counted, in seconds. If the run was stopped, the part of the window that
    /// had passed.
    pub window_s: f64,
    /// True if the run was stopped before its end.
    pub partial: bool,
}

/// State of a run. The agenda numbers its parts in this order: sources, lines, wires from an output to the next hop,
/// outputs, lifetimes of the fabrics' virtual switches. With this order, packets arrive before outputs choose among
/// events of the same time.
struct FabricRun<'a> {
    agenda: Agenda,
    sources: Vec<SourceState>,
    lines: Vec<LineState>,
    wires: Vec<InFlightQueue>,
    outputs: Vec<SimulatedOutput>,
    fabrics: Vec<Fabric<TransitPacket>>,
    /// Index in `outputs` of the first output of each fabric.
    first_output: Vec<usize>,
    paths: Vec<IndexedPath>,
    hops: Vec<(FabricHop, Crosspoint)>,
    tallies: Vec<PacketTally>,
    dropped: Vec<FabricDrop<TransitPacket>>,
    window: [Instant; 2],
    packets: u64,
    events: u64,
    watch: &'a SimulationMonitor,
}

/// Path of packets, in the form used for lookups.
struct IndexedPath {
    group: u32,
    class: u8,
    hops: u8,
    /// Index of the path's first hop in `FabricRun::hops`.
    first_hop: u32,
}

struct SimulatedOutput {
    fabric: usize,
    port: PortIndex,
    line: OutputLine,
}

/// Simulates a model once, counting packets in `window`. `seed` and `replication` together choose the random numbers:
/// each replication of a seed is an independent run.
///
/// # Errors
/// The model uses an index that does not exist, or has a source, split, fabric or virtual switch that is not
/// possible.
pub fn run(
    model: &FabricNetwork,
    window: SimulationWindow,
    seed: u64,
    replication: u64,
    watch: &SimulationMonitor,
) -> Result<FabricRunResult, FabricNetworkError> {
    model.check()?;
    let mut run = FabricRun::new(model, window, seed, replication, watch)?;
    let stopped = run.run_events();
    let end = stopped.map_or(run.window[1], |now| now.min(run.window[1]));
    Ok(FabricRunResult {
        groups: run.tallies,
        packets: run.packets,
        events: run.events,
        window_s: end.since(run.window[0]).as_secs_f64(),
        partial: stopped.is_some(),
    })
}

impl<'a> FabricRun<'a> {
    fn new(
        model: &FabricNetwork,
        window: SimulationWindow,
        seed: u64,
        replication: u64,
        watch: &'a SimulationMonitor,
    ) -> Result<FabricRun<'a>, FabricNetworkError> {
        let (mut fabrics, mut switches, mut outputs, mut first_output) = (vec![], vec![], vec![], vec![]);
        for (number, fabric) in model.fabrics.iter().enumerate() {
            let mut config = fabric.config.clone();
            config.seed ^= seed.rotate_left(32) ^ replication;
            let cannot = |error| FabricNetworkError::Fabric { fabric: number, error };
            let mut made = Fabric::new(config).map_err(cannot)?;
            let add = |switch: &weir_fabric::VirtualSwitchConfig| made.add(Instant::ZERO, switch.clone());
            switches.push(
                fabric.switches.iter().map(add).collect::<Result<Vec<_>, _>>().map_err(FabricNetworkError::Refused)?,
            );
            fabrics.push(made);
            first_output.push(outputs.len());
            for (port, output) in (0..).zip(&fabric.config.outputs) {
                let line = OutputLine::new(output.rate, std::time::Duration::ZERO);
                outputs.push(SimulatedOutput { fabric: number, port: PortIndex(port), line });
            }
        }
        let mut run = FabricRun {
            agenda: Agenda::new(model.sources.len() + model.lines.len() + 2 * outputs.len() + fabrics.len()),
            sources: Vec::new(),
            lines: model.lines.iter().map(|line| LineState::new(*line)).collect(),
            wires: outputs.iter().map(|_| InFlightQueue::default()).collect(),
            outputs,
            fabrics,
            first_output,
            paths: Vec::new(),
            hops: Vec::new(),
            tallies: vec![PacketTally::default(); model.groups.len()],
            dropped: Vec::new(),
            window: window.bounds(),
            packets: 0,
            events: 0,
            watch,
        };
        for (number, source) in model.sources.iter().enumerate() {
            let first_path = place(run.paths.len());
            run.add_paths(source, &switches);
            let random = RandomStream::new(seed, replication, number as u64);
            let (state, first) = SourceState::new(source, number, first_path, run.window[1], random)?;
            run.sources.push(state);
            run.agenda.set(number, first);
        }
        let first = run.sources.len() + run.lines.len() + run.wires.len() + run.outputs.len();
        for (number, fabric) in run.fabrics.iter().enumerate() {
            run.agenda.set(first + number, fabric.next_expiry().unwrap_or(Instant::FAR));
        }
        Ok(run)
    }

    fn add_paths(&mut self, source: &crate::model::FabricSource, switches: &[Vec<VirtualSwitchIndex>]) {
        for path in &source.paths {
            let first_hop = place(self.hops.len());
            for hop in &path.hops {
                let (input, output) = (PortIndex(hop.input), PortIndex(hop.output));
                self.hops.push((*hop, Crosspoint { switch: switches[hop.fabric][hop.switch], input, output }));
            }
            let hops = u8::try_from(path.hops.len()).unwrap_or(u8::MAX);
            self.paths.push(IndexedPath { group: place(path.group), class: path.class, hops, first_hop });
        }
    }

    /// Handles events until none is left. Returns the time of the stop if the run was cancelled.
    fn run_events(&mut self) -> Option<Instant> {
        let lines = self.sources.len();
        let wires = lines + self.lines.len();
        let outputs = wires + self.wires.len();
        let lifetimes = outputs + self.outputs.len();
        let mut told = 0;
        while let Some((part, now)) = self.agenda.next() {
            self.events += 1;
            if self.events.is_multiple_of(LOOK_EVERY) && self.is_to_stop(now, &mut told) {
                return Some(now);
            }
            if part < lines {
                self.generate_packet(part, now, lines, outputs);
            } else if part < wires {
                let arrived = self.lines[part - lines].under_way.pop();
                self.finish_transit(part, arrived, now, outputs);
            } else if part < outputs {
                let arrived = self.wires[part - wires].pop();
                self.finish_transit(part, arrived, now, outputs);
            } else if part < lifetimes {
                self.transmit_next(part, part - outputs, now, wires);
            } else {
                self.expire(part, part - lifetimes, now);
            }
        }
        self.is_to_stop(self.window[1], &mut told);
        self.watch.events.fetch_add(self.events % LOOK_EVERY, Ordering::Relaxed);
        None
    }

    #[cold]
    fn is_to_stop(&self, now: Instant, told: &mut u64) -> bool {
        let reached = now.min(self.window[1]).as_nanos();
        self.watch.virtual_ns.fetch_add(reached.saturating_sub(*told), Ordering::Relaxed);
        *told = reached.max(*told);
        self.watch
            .events
            .fetch_add(if self.events.is_multiple_of(LOOK_EVERY) { LOOK_EVERY } else { 0 }, Ordering::Relaxed);
        self.watch.cancel.load(Ordering::Relaxed)
    }

    /// Makes a packet of a source and puts it on the source's line, or into the first fabric if the line takes no
    /// time.
    #[inline]
    fn generate_packet(&mut self, number: usize, now: Instant, lines: usize, outputs: usize) {
        let source = &mut self.sources[number];
        let item = source.make();
        let line = source.line as usize;
        self.agenda.set(number, source.next_time(now));
        self.packets += 1;
        let LineState { line: serial, under_way } = &mut self.lines[line];
        let Some(serial) = serial else { return self.arrive(item, now, outputs) };
        if under_way.len() >= MAX_ON_LINE {
            return self.lose_on_line(item, now);
        }
        let starts = now.max(serial.free_at());
        let arrives = serial.send(starts, item.bytes);
        if under_way.push(arrives, item) {
            self.agenda.set(lines + line, arrives);
        }
    }

    #[cold]
    fn lose_on_line(&mut self, item: TransitPacket, now: Instant) {
        let tally = &mut self.tallies[self.paths[item.path as usize].group as usize];
        if now >= self.window[0] {
            tally.arrived += PacketByteCount { packets: 1, bytes: u64::from(item.bytes) };
            tally.lose(0, item.bytes, REASONS - 1);
        }
    }

    /// Handles the arrival of a packet's last bit at the next fabric, and schedules the following arrival of the same
    /// line or wire.
    #[inline]
    fn finish_transit(&mut self, part: usize, arrived: Option<(TransitPacket, Instant)>, now: Instant, outputs: usize) {
        let Some((item, next)) = arrived else { return self.agenda.set(part, Instant::FAR) };
        self.agenda.set(part, next);
        self.arrive(item, now, outputs);
    }

    /// Enqueues a packet at the fabric of its current hop and schedules the output.
    #[inline]
    fn arrive(&mut self, mut item: TransitPacket, now: Instant, outputs: usize) {
        let way = &self.paths[item.path as usize];
        let (hop, at) = &self.hops[way.first_hop as usize + usize::from(item.hop)];
        if item.hop == 0 {
            item.entered = now;
            item.counts = now >= self.window[0] && now < self.window[1];
            if item.counts {
                self.tallies[way.group as usize].arrived +=
                    PacketByteCount { packets: 1, bytes: u64::from(item.bytes) };
            }
        }
        let packet = FabricPacket { bytes: item.bytes, class: way.class, number: item.number, item };
        let taken = self.fabrics[hop.fabric].enqueue(now, *at, packet, &mut self.dropped);
        if taken {
            let output = self.first_output[hop.fabric] + usize::from(hop.output);
            let free = self.outputs[output].line.free_at().max(now);
            let part = outputs + output;
            // A busy line chooses its next packet when it becomes free. An idle line that waits for a later time may
            // send this one now.
            if self.agenda.at(part) > free {
                self.agenda.set(part, free);
            }
        }
        if !self.dropped.is_empty() {
            self.count_dropped();
        }
    }

    /// Removes virtual switches of a fabric whose lifetime has ended, with their packets.
    #[cold]
    fn expire(&mut self, part: usize, fabric: usize, now: Instant) {
        self.fabrics[fabric].expire(now, &mut self.dropped);
        self.agenda.set(part, self.fabrics[fabric].next_expiry().unwrap_or(Instant::FAR));
        self.count_dropped();
    }

    fn count_dropped(&mut self) {
        for lost in self.dropped.drain(..) {
            let item = lost.packet.item;
            if item.counts {
                let tally = &mut self.tallies[self.paths[item.path as usize].group as usize];
                tally.lose(usize::from(item.hop), item.bytes, lost.reason as usize);
            }
        }
    }

    /// Sends the next packet of an output whose line is free, or schedules the next attempt.
    #[inline]
    fn transmit_next(&mut self, part: usize, output: usize, now: Instant, wires: usize) {
        let SimulatedOutput { fabric, port, line } = &mut self.outputs[output];
        let item = match self.fabrics[*fabric].dequeue(now, *port) {
            DequeueResult::Packet(departure) => departure.item,
            DequeueResult::Wait(until) => {
                return self.agenda.set(part, until.max(Instant::from_nanos(now.as_nanos() + 1)));
            }
            DequeueResult::Empty => return self.agenda.set(part, Instant::FAR),
        };
        let through = line.send(now, item.bytes);
        self.agenda.set(part, through);
        let way = &self.paths[item.path as usize];
        if item.hop + 1 < way.hops {
            let (hop, _) = &self.hops[way.first_hop as usize + usize::from(item.hop)];
            let arrives = through + hop.delay;
            if self.wires[output].push(arrives, TransitPacket { hop: item.hop + 1, ..item }) {
                self.agenda.set(wires + output, arrives);
            }
        } else if item.counts {
            self.tallies[way.group as usize].delays.record(now.as_nanos() - item.entered.as_nanos());
        }
    }
}

/// Converts an index to the `u32` that packets store. [`FabricNetwork::check`] limits indices to
/// [`MAX_PARTS`](crate::model::MAX_PARTS).
fn place(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
