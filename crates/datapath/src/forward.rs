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
use crate::{Datapath, DatapathOutput, DropReason, Drops, VerdictCacheMode, execute, pipeline};
use weir_memory::{SimdInstructions, SimdOperation, run_simd};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool, ParsedHeaders};
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
struct IngressBatch<'a> {
    now: Instant,
    in_port: PortNo,
    frames: &'a mut Vec<Frame>,
    pool: &'a mut FramePool,
    out: &'a mut DatapathOutput,
}

/// Returns a new worker for the engine's own thread.
fn engine(cache: VerdictCacheMode) -> Box<Worker> {
    Box::new(Worker::new(WorkerNo::ENGINE, cache))
}

impl Datapath {
    /// Runs frames that arrived on one port through the pipeline on the engine's own worker. Afterwards `frames` is
    /// empty, and the buffers of dropped frames are in `pool`.
    pub fn process(
        &mut self,
        now: Instant,
        in_port: PortNo,
        frames: &mut Vec<Frame>,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        // The worker is moved out meanwhile, because processing borrows the whole datapath.
        let mut engine = self.engine.take().unwrap_or_else(|| engine(self.config.verdict_cache));
        self.process_for(&mut engine, now, in_port, frames, pool, out);
        self.engine = Some(engine);
    }

    /// Returns the stopwatch of the engine's own worker, which measures [`Datapath::process`].
    pub fn watch_mut(&mut self) -> &mut Stopwatch {
        self.engine.get_or_insert_with(|| engine(self.config.verdict_cache)).watch_mut()
    }

    /// Adds a worker that forwards on a thread other than the engine's.
    pub fn add_worker(&mut self) -> Worker {
        self.n_workers += 1;
        self.tables.add_worker();
        self.plane.groups.add_worker();
        Worker::new(WorkerNo(self.n_workers), self.config.verdict_cache)
    }

    /// Runs a burst through the pipeline as far as that is possible with shared access to the datapath. Sending
    /// packet-ins and learning need exclusive access. Returns true if the burst is done and `frames` is empty.
    /// Otherwise the caller must call [`Datapath::process_for`] next, with `frames` as this call left them (possibly
    /// empty).
    pub fn forward(
        &self,
        worker: &mut Worker,
        now: Instant,
        in_port: PortNo,
        frames: &mut Vec<Frame>,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) -> bool {
        let batch = IngressBatch { now, in_port, frames, pool, out };
        if worker.watch.is_on() {
            return worker.watched(|worker, laps| self.forward_with(worker, laps, batch));
        }
        self.forward_with(worker, &mut NoLaps, batch)
    }

    #[inline(always)]
    fn forward_with(&self, worker: &mut Worker, laps: &mut impl LapSink, batch: IngressBatch<'_>) -> bool {
        let IngressBatch { now, in_port, frames, pool, out } = batch;
        worker.pending_burst = None;
        let is_whole = self.is_standalone() || frames.len() > MAX_BURST;
        if is_whole || self.plane.ports.may_receive(in_port).is_err() {
            return false;
        }
        let counting = CountingMode::For(worker.number, now);
        laps.burst(frames.len());
        let (burst, laps_within) = (&mut worker.burst, &mut *laps);
        let work = BurstLookup { datapath: self, burst, laps: laps_within, frames: &*frames, in_port, counting };
        let sorted = run_simd(work);
        let are_straight = self.tables.first_egress().is_none()
            && sorted.passed == Lanes::first(frames.len())
            && worker.burst.all_direct(self.tables.all(), frames, sorted.passed);
        if are_straight {
            self.send_burst_directly(worker, sorted, in_port, frames, pool, out);
        } else if worker.burst.can_execute_shared(self.tables.all(), sorted.passed) {
            self.execute_shared(worker, sorted, IngressBatch { now, in_port, frames: &mut *frames, pool, out });
        } else {
            worker.pending_burst =
                Some(PendingBurst { generation: self.tables.generation(), frames: frames.len(), sorted });
            return false;
        }
        laps.lap(ThreadStage::Execute, frames.len());
        // The frames are empty now: each frame's buffer has been moved out.
        frames.clear();
        worker.deferred.is_empty()
    }

    /// Sends a burst of packets that all leave by ordinary ports, unchanged or edited.
    #[inline(always)]
    fn send_burst_directly(
        &self,
        worker: &mut Worker,
        sorted: BurstLanes,
        in_port: PortNo,
        frames: &mut [Frame],
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        let mut straight = DirectOutput { ports: &self.plane.ports, drops: &mut worker.drops, pool, out };
        let (mut lane, mut hint) = (0, 0);
        while lane < frames.len() {
            let burst = &worker.burst;
            let (port, end) = match burst.direct_run_from(lane, sorted.passed, frames.len()) {
                Some(same) => same,
                None => match burst.edited_run_from(lane, sorted.passed, frames.len()) {
                    Some((fate, port, end)) => {
                        edit(self.tables.all(), fate, &mut frames[lane..end], &burst.parsed[lane..end]);
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
    fn execute_shared(&self, worker: &mut Worker, sorted: BurstLanes, batch: IngressBatch<'_>) {
        let IngressBatch { now, in_port, frames, pool, out } = batch;
        let Worker { number, burst, drops, deferred: later, set, .. } = worker;
        let common = SharedTables::new(&self.tables, &self.groups, &self.plane);
        let mut beside = WorkerEffects::new(now, common, (*number, drops, later), pool, out);
        let how = BurstMode { is_standalone: false, outputs_directly: self.tables.first_egress().is_none() };
        run_burst(self.tables.all(), burst, set, sorted, how, in_port, frames, &mut beside);
    }

    /// Runs frames that arrived on one port through the pipeline for a worker: the frames that [`Datapath::forward`]
    /// left, or any others. Afterwards `frames` is empty.
    pub fn process_for(
        &mut self,
        worker: &mut Worker,
        now: Instant,
        in_port: PortNo,
        frames: &mut Vec<Frame>,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        let batch = IngressBatch { now, in_port, frames, pool, out };
        if worker.watch.is_on() {
            return worker.watched(|worker, laps| self.process_with(worker, laps, batch));
        }
        self.process_with(worker, &mut NoLaps, batch);
    }

    #[inline(always)]
    fn process_with(&mut self, worker: &mut Worker, laps: &mut impl LapSink, batch: IngressBatch<'_>) {
        let IngressBatch { now, in_port, frames, pool, out } = batch;
        let begun = worker.pending_burst.take().filter(|begun| begun.frames == frames.len());
        if let Err(reason) = self.plane.ports.may_receive(in_port) {
            let mut live = EngineEffects::new(now, &self.tables, &self.groups, &mut self.plane, pool, out);
            return frames.drain(..).for_each(|mut frame| live.refuse(&mut frame, reason));
        }
        let is_standalone = self.is_standalone();
        for burst in frames.chunks_mut(MAX_BURST) {
            let count = burst.len();
            let sorted = match begun {
                // The lookup is done and counted, and the tables have not changed since.
                Some(begun) if begun.generation == self.tables.generation() => begun.sorted,
                begun => {
                    let counting =
                        if begun.is_some() { CountingMode::Done } else { CountingMode::For(worker.number, now) };
                    laps.burst(count);
                    let (datapath, frames, laps) = (&*self, &*burst, &mut *laps);
                    run_simd(BurstLookup { datapath, burst: &mut worker.burst, laps, frames, in_port, counting })
                }
            };
            let how =
                BurstMode { is_standalone, outputs_directly: !is_standalone && self.tables.first_egress().is_none() };
            let mut live = EngineEffects::new(now, &self.tables, &self.groups, &mut self.plane, pool, out);
            run_burst(self.tables.all(), &mut worker.burst, &mut self.set, sorted, how, in_port, burst, &mut live);
            laps.lap(ThreadStage::Execute, count);
        }
        // The frames are empty now: each frame's buffer has been moved out.
        frames.clear();
        if !worker.deferred.is_empty() {
            let mut live = EngineEffects::new(now, &self.tables, &self.groups, &mut self.plane, pool, out);
            worker.deferred.run_deferred(&mut live);
        }
        if !self.plane.to_learn.is_empty() && !self.is_busy() {
            self.learn(now, out);
        }
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
