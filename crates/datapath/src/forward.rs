//! Runs frames through the pipeline, burst by burst. The engine's own thread has exclusive access to the datapath.
//! Workers on other threads share the tables.
use crate::action_set::ActionSet;
use crate::burst::{BurstState, edits_at};
use crate::counting::CountingMode;
use crate::counting::WorkerNo;
use crate::direct_output::DirectOutput;
use crate::effects::BurstEffects;
use crate::engine_effects::EngineEffects;
use crate::packet::PipelinePacket;
use crate::perf::{LapSink, NoLaps, Stopwatch, ThreadStage};
use crate::shape::{Lanes, MAX_BURST};
use crate::table::FlowTable;
use crate::verdict::LookupResult;
use crate::worker_effects::{DeferredWork, SharedTables, WorkerEffects};
use crate::{Datapath, DatapathOutput, DropReason, Drops, VerdictCacheMode, execute, in_band, pipeline};
use weir_memory::{SimdInstructions, SimdOperation, run_simd};
use weir_openflow::model::PortNo;
use weir_packet::{Field, Frame, FramePool, ParsedHeaders};
use weir_units::Instant;

/// State of one thread that forwards: memory for bursts, and counters that other threads only read.
#[derive(Debug)]
pub struct Worker {
    number: WorkerNo,
    burst: BurstState,
    drops: Drops,
    /// The burst that [`Datapath::forward`] looked up but did not execute.
    pending_burst: Option<PendingBurst>,
    /// Rest of the packets that [`Datapath::forward`] executed: steps that need exclusive access to the datapath.
    deferred: DeferredWork,
    /// Memory reused for action sets.
    set: ActionSet,
    watch: Box<Stopwatch>,
}

/// A burst whose lookup is done.
#[derive(Debug, Clone, Copy)]
struct PendingBurst {
    /// Generation of the tables at the lookup.
    generation: u64,
    frames: usize,
    sorted: BurstLanes,
}

/// Classification of a burst's frames before their lookup.
#[derive(Debug, Clone, Copy)]
struct BurstLanes {
    /// Frames that are packets: long enough for an Ethernet header.
    packets: Lanes,
    /// Packets that are looked up: not dropped as fragments.
    passed: Lanes,
}

impl Worker {
    /// Returns a worker for the engine's own thread.
    pub(crate) fn engine(cache: VerdictCacheMode) -> Box<Worker> {
        Box::new(Worker::new(WorkerNo::ENGINE, cache))
    }

    pub(crate) fn new(number: WorkerNo, cache: VerdictCacheMode) -> Worker {
        Worker {
            number,
            burst: BurstState::new(cache),
            drops: Drops::default(),
            pending_burst: None,
            deferred: DeferredWork::default(),
            set: ActionSet::default(),
            watch: Box::default(),
        }
    }

    /// Returns the packets dropped in [`Datapath::forward`] since the start. The datapath's own counters do not
    /// include them.
    pub fn drops(&self) -> Drops {
        self.drops
    }

    /// Returns the stopwatch that measures this worker's stages.
    pub fn watch(&self) -> &Stopwatch {
        &self.watch
    }

    /// Returns the stopwatch mutably, to begin and end measuring.
    pub fn watch_mut(&mut self) -> &mut Stopwatch {
        &mut self.watch
    }

    /// Runs `work` with the stopwatch. The stopwatch is moved out meanwhile, because `work` borrows the whole worker.
    #[cold]
    fn watched<R>(&mut self, work: impl FnOnce(&mut Worker, &mut Stopwatch) -> R) -> R {
        let mut watch = std::mem::take(&mut self.watch);
        let result = work(self, &mut watch);
        self.watch = watch;
        result
    }
}

/// Frames that arrived on one port, with their destinations.
pub(crate) struct IngressBatch<'a> {
    pub(crate) now: Instant,
    pub(crate) in_port: PortNo,
    pub(crate) frames: &'a mut Vec<Frame>,
    pub(crate) pool: &'a mut FramePool,
    pub(crate) out: &'a mut DatapathOutput,
}

/// Runs a burst through the pipeline; see [`Datapath::forward`].
#[inline(always)]
pub(crate) fn forward(datapath: &Datapath, worker: &mut Worker, batch: IngressBatch<'_>) -> bool {
    if worker.watch.is_on() {
        return worker.watched(|worker, laps| forward_with(datapath, worker, laps, batch));
    }
    forward_with(datapath, worker, &mut NoLaps, batch)
}

#[inline(always)]
fn forward_with(datapath: &Datapath, worker: &mut Worker, laps: &mut impl LapSink, batch: IngressBatch<'_>) -> bool {
    let IngressBatch { now, in_port, frames, pool, out } = batch;
    worker.pending_burst = None;
    let is_whole = datapath.is_standalone() || frames.len() > MAX_BURST || contains_control(datapath, in_port, frames);
    if is_whole || datapath.plane.ports.may_receive(in_port).is_err() {
        return false;
    }
    let counting = CountingMode::For(worker.number, now);
    laps.burst(frames.len());
    let (burst, laps_within) = (&mut worker.burst, &mut *laps);
    let work = BurstLookup { datapath, burst, laps: laps_within, frames: &*frames, in_port, counting };
    let sorted = run_simd(work);
    let are_straight = datapath.tables.first_egress().is_none()
        && sorted.passed == Lanes::first(frames.len())
        && worker.burst.all_direct(datapath.tables.all(), frames, sorted.passed);
    if are_straight {
        send_burst_directly(datapath, worker, sorted, in_port, frames, pool, out);
    } else if worker.burst.can_execute_shared(datapath.tables.all(), sorted.passed) {
        execute_shared(datapath, worker, sorted, IngressBatch { now, in_port, frames: &mut *frames, pool, out });
    } else {
        worker.pending_burst =
            Some(PendingBurst { generation: datapath.tables.generation(), frames: frames.len(), sorted });
        return false;
    }
    laps.lap(ThreadStage::Execute, frames.len());
    // The frames are empty now: each frame's buffer has been moved out.
    frames.clear();
    worker.deferred.is_empty()
}

/// Returns true if in-band control takes one of the frames. Only the thread with exclusive access forwards those.
#[inline(always)]
fn contains_control(datapath: &Datapath, in_port: PortNo, frames: &[Frame]) -> bool {
    datapath.in_band.as_ref().is_some_and(|in_band| in_band::contains_control(in_band, in_port, frames))
}

/// Sends a burst of packets that all leave by ordinary ports, unchanged or edited.
#[inline(always)]
fn send_burst_directly(
    datapath: &Datapath,
    worker: &mut Worker,
    sorted: BurstLanes,
    in_port: PortNo,
    frames: &mut [Frame],
    pool: &mut FramePool,
    out: &mut DatapathOutput,
) {
    let mut straight = DirectOutput { ports: &datapath.plane.ports, drops: &mut worker.drops, pool, out };
    let (mut lane, mut hint) = (0, 0);
    while lane < frames.len() {
        let burst = &worker.burst;
        let (port, end) = match burst.direct_run_from(lane, sorted.passed, frames.len()) {
            Some(same) => same,
            None => match burst.edited_run_from(lane, sorted.passed, frames.len()) {
                Some((fate, port, end)) => {
                    edit(datapath.tables.all(), fate, &mut frames[lane..end], &burst.parsed[lane..end]);
                    (port, end)
                }
                // Unreachable, because the whole burst is straight.
                None => break,
            },
        };
        hint = straight.send(in_port, port, &mut frames[lane..end], hint);
        lane = end;
    }
}

/// Executes the verdicts of a burst's packets, concurrently with other workers.
#[inline(never)]
fn execute_shared(datapath: &Datapath, worker: &mut Worker, sorted: BurstLanes, batch: IngressBatch<'_>) {
    let IngressBatch { now, in_port, frames, pool, out } = batch;
    let Worker { number, burst, drops, deferred: later, set, .. } = worker;
    let common = SharedTables::new(&datapath.tables, &datapath.groups, &datapath.plane);
    let mut beside = WorkerEffects::new(now, common, (*number, drops, later), pool, out);
    let how = BurstMode { is_standalone: false, outputs_directly: datapath.tables.first_egress().is_none() };
    run_burst(datapath.tables.all(), burst, set, sorted, how, in_port, frames, &mut beside);
}

/// Runs frames through the pipeline; see [`Datapath::process_for`].
#[inline(always)]
pub(crate) fn process(datapath: &mut Datapath, worker: &mut Worker, batch: IngressBatch<'_>) {
    if worker.watch.is_on() {
        return worker.watched(|worker, laps| process_with(datapath, worker, laps, batch));
    }
    process_with(datapath, worker, &mut NoLaps, batch);
}

#[inline(always)]
fn process_with(datapath: &mut Datapath, worker: &mut Worker, laps: &mut impl LapSink, batch: IngressBatch<'_>) {
    let IngressBatch { now, in_port, frames, pool, out } = batch;
    if let Some(in_band) = &mut datapath.in_band {
        in_band::take(in_band, &mut datapath.plane, now, in_port, frames, pool, out);
    }
    let begun = worker.pending_burst.take().filter(|begun| begun.frames == frames.len());
    if let Err(reason) = datapath.plane.ports.may_receive(in_port) {
        let mut live = EngineEffects::new(now, &datapath.tables, &datapath.groups, &mut datapath.plane, pool, out);
        return frames.drain(..).for_each(|mut frame| live.refuse(&mut frame, reason));
    }
    let is_standalone = datapath.is_standalone();
    for burst in frames.chunks_mut(MAX_BURST) {
        let count = burst.len();
        let sorted = match begun {
            // The lookup is done and counted, and the tables have not changed since.
            Some(begun) if begun.generation == datapath.tables.generation() => begun.sorted,
            begun => {
                let counting = if begun.is_some() { CountingMode::Done } else { CountingMode::For(worker.number, now) };
                laps.burst(count);
                let (datapath, frames, laps) = (&*datapath, &*burst, &mut *laps);
                run_simd(BurstLookup { datapath, burst: &mut worker.burst, laps, frames, in_port, counting })
            }
        };
        let how =
            BurstMode { is_standalone, outputs_directly: !is_standalone && datapath.tables.first_egress().is_none() };
        let mut live = EngineEffects::new(now, &datapath.tables, &datapath.groups, &mut datapath.plane, pool, out);
        run_burst(datapath.tables.all(), &mut worker.burst, &mut datapath.set, sorted, how, in_port, burst, &mut live);
        laps.lap(ThreadStage::Execute, count);
    }
    // The frames are empty now: each frame's buffer has been moved out.
    frames.clear();
    if !worker.deferred.is_empty() {
        let mut live = EngineEffects::new(now, &datapath.tables, &datapath.groups, &mut datapath.plane, pool, out);
        worker.deferred.run_deferred(&mut live);
    }
    if !datapath.plane.to_learn.is_empty() && !datapath.is_busy() {
        datapath.learn(now, out);
    }
}

/// Runs one frame through the pipeline; see [`Datapath::process_one`].
pub(crate) fn process_one(
    datapath: &mut Datapath,
    now: Instant,
    in_port: PortNo,
    mut frame: Frame,
    pool: &mut FramePool,
    out: &mut DatapathOutput,
    met: &mut Vec<u64>,
) {
    if let Some(in_band) = &mut datapath.in_band {
        let rest = in_band::take_one(in_band, &mut datapath.plane, now, in_port, frame, pool, out);
        let Some(other) = rest else { return };
        frame = other;
    }
    let (is_standalone, drops_fragments) = (datapath.is_standalone(), datapath.drops_fragments);
    let may_receive = datapath.plane.ports.may_receive(in_port);
    let mut live =
        EngineEffects::new(now, &datapath.tables, &datapath.groups, &mut datapath.plane, pool, out).noting(met);
    let parsed = may_receive.and_then(|()| ParsedHeaders::of(&frame, in_port).map_err(|_| DropReason::TooShort));
    let passed = parsed.and_then(|parsed| {
        let is_dropped = drops_fragments && parsed.key.get(Field::IpFrag) != 0;
        if is_dropped { Err(DropReason::Fragment) } else { Ok(parsed) }
    });
    match passed {
        Err(reason) => return live.refuse(&mut frame, reason),
        Ok(mut parsed) => {
            let mut packet = PipelinePacket::new(&mut frame, &mut parsed, in_port);
            if is_standalone {
                execute::normal(&mut packet, &mut live);
            } else {
                pipeline::run(datapath.tables.all(), &mut packet, &mut datapath.set, &mut live);
            }
            packet.finish(&mut live);
        }
    }
    if !datapath.plane.to_learn.is_empty() && !datapath.is_busy() {
        datapath.learn(now, out);
    }
}

/// Properties shared by all packets of a burst.
#[derive(Debug, Clone, Copy)]
struct BurstMode {
    /// True if every packet is output to NORMAL (standalone mode).
    is_standalone: bool,
    /// True if outputs leave at once, because there are no egress tables.
    outputs_directly: bool,
}

/// Executes the verdicts of a burst's packets, in the order of their arrival.
#[expect(clippy::too_many_arguments, reason = "what is known of the burst, and who does it")]
#[inline(always)]
fn run_burst<F: BurstEffects>(
    tables: &[FlowTable],
    burst: &mut BurstState,
    set: &mut ActionSet,
    sorted: BurstLanes,
    how: BurstMode,
    in_port: PortNo,
    frames: &mut [Frame],
    fx: &mut F,
) {
    let mut lane = 0;
    while lane < frames.len() {
        let same = if how.outputs_directly { burst.direct_run_from(lane, sorted.passed, frames.len()) } else { None };
        if let Some((port, end)) = same {
            fx.send_directly(in_port, port, &mut frames[lane..end]);
            lane = end;
            continue;
        }
        if how.outputs_directly
            && let Some((fate, port, end)) = burst.edited_run_from(lane, sorted.passed, frames.len())
        {
            let end = lane + edit(tables, fate, &mut frames[lane..end], &burst.parsed[lane..end]);
            // The first packet that the edits do not fit takes the general path.
            if end > lane {
                fx.send_directly(in_port, port, &mut frames[lane..end]);
                lane = end;
                continue;
            }
        }
        if sorted.passed.has(lane) {
            let mut packet = PipelinePacket::new(&mut frames[lane], &mut burst.parsed[lane], in_port);
            if how.is_standalone {
                execute::normal(&mut packet, fx);
            } else {
                pipeline::run_from(tables, burst.results[lane], &mut packet, set, fx);
            }
            packet.finish(fx);
            burst.mark_stale(lane);
        } else {
            let reason = if sorted.packets.has(lane) { DropReason::Fragment } else { DropReason::TooShort };
            fx.refuse(&mut frames[lane], reason);
        }
        lane += 1;
    }
}

/// Edits the frames of one lookup result up to the first that does not fit. Returns the number of edited frames.
#[inline]
fn edit(tables: &[FlowTable], fate: LookupResult, frames: &mut [Frame], parsed: &[ParsedHeaders]) -> usize {
    let Some(edits) = edits_at(tables, fate) else { return 0 };
    let mut done = 0;
    for (frame, parsed) in frames.iter_mut().zip(parsed) {
        if !edits.fit(frame, &parsed.layers) {
            break;
        }
        edits.apply(frame, &parsed.layers);
        done += 1;
    }
    done
}

/// Parses and looks up a burst, compiled for the widest vector instructions of the processor.
struct BurstLookup<'a, L> {
    datapath: &'a Datapath,
    burst: &'a mut BurstState,
    laps: &'a mut L,
    frames: &'a [Frame],
    in_port: PortNo,
    counting: CountingMode,
}

impl<L: LapSink> SimdOperation for BurstLookup<'_, L> {
    type Output = BurstLanes;

    #[inline(always)]
    fn run<W: SimdInstructions>(self, wide: W) -> BurstLanes {
        let packets = self.burst.parse(wide, self.frames, self.in_port);
        let drops = self.datapath.drops_fragments;
        let passed = if drops { packets.without(self.burst.fragments(packets)) } else { packets };
        let count = self.frames.len();
        self.laps.parsed(&self.burst.parsed, passed, count);
        if !self.datapath.is_standalone() {
            self.burst.look_up(self.datapath.tables.all(), self.datapath.tables.generation(), passed, self.counting);
        }
        self.laps.lap(ThreadStage::LookUp, count);
        self.laps.cached(|| self.burst.cache_counts());
        BurstLanes { packets, passed }
    }
}
