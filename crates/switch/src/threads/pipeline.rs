//! Runs the threads of a pipeline: the engine's, which receives and transmits, and the workers'.
use super::balance::{EngineOnlyPolicy, ForwardingSide, HandOverDecision};
use super::batch::FlushRule;
use super::pipeline_worker::{FlushTiming, PipelineWorker};
use super::policy::Steering;
use super::removed_ports::RemovedPortDrops;
use super::ring_writer::BurstRingWriter;
use super::rx::RxStage;
use super::sharded_lock::ShardWriter;
use super::tx::TxStage;
use super::worker::WorkerStage;
use super::worker_context::{WorkerContext, WorkerCounters};
use super::{HandOver, ThreadsConfig};
use crate::clock::SwitchClock;
use crate::engine::wake::ThreadWaker;
use crate::snapshot::WorkerSnapshot;
use crate::spin::{Spin, SpinState};
use crate::turns::{AnnouncedSleep, ThreadLauncher, ThreadWork, TurnOutcome};
use crossbeam_channel::Receiver;
use rtrb::RingBuffer;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_datapath::perf::Perf;
use weir_datapath::{ChannelId, Datapath, DatapathOutput, Drops};
use weir_openflow::Message;
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool, SharedBuffers};
use weir_units::{Clock, Instant};

/// Maximum number of messages on their way from workers to the engine; further ones are dropped and counted.
pub(super) const MAX_NOTES: usize = 1024;
/// Longest sleep of a worker, a safeguard against a lost wake-up.
const SLEEP_MAX: Duration = Duration::from_secs(1);
/// Maximum time for which the engine receives nothing while it takes the work back; ports hold that much.
const DRAIN_MAX: Duration = Duration::from_micros(200);

/// The engine's end of the pipeline.
pub(crate) struct Pipeline {
    pub(crate) rx: RxStage,
    pub(crate) tx: TxStage,
    /// Maximum number of frames read from a port at once.
    pub(crate) read: usize,
    notes: Receiver<WorkerMessage>,
    /// Counters by worker.
    counters: Vec<Arc<WorkerCounters>>,
    threads: Vec<WorkerThreadHandle>,
    balance: HandOverDecision,
    /// Deadline for taking the work back; `None` if that is not in progress.
    drains_until: Option<Instant>,
    may_be_alone: bool,
    /// True if a burst in this round was full.
    is_full: bool,
    /// Number of frames forwarded by the engine's thread.
    done_alone: u64,
    /// True if workers must not wait for bursts to fill.
    hurry: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    depot: Arc<SharedBuffers>,
}

/// Parameters for starting the threads.
pub(crate) struct WorkerThreadSetup<'a> {
    pub(crate) config: &'a ThreadsConfig,
    /// Name of the switch.
    pub(crate) name: &'a str,
    pub(crate) clock: SwitchClock,
    pub(crate) spin: Spin,
    /// Waker of the engine.
    pub(crate) engine: Arc<ThreadWaker>,
    /// Buffers that the threads exchange.
    pub(crate) depot: Arc<SharedBuffers>,
    /// Counter of frames dropped because their port was removed.
    pub(crate) gone: RemovedPortDrops,
    /// Launcher of the worker threads.
    pub(crate) threads: &'a mut dyn ThreadLauncher,
}

/// A worker's message to the engine.
pub(super) enum WorkerMessage {
    Message(ChannelId, Message),
    /// Number of packet-ins withheld from a channel by its rate limit.
    Limited(ChannelId, u64),
}

impl WorkerMessage {
    /// Moves a bounded number of the workers' messages to `out`. Returns true if there were any.
    pub(super) fn take(notes: &Receiver<WorkerMessage>, out: &mut DatapathOutput) -> bool {
        let mut any = false;
        for note in notes.try_iter().take(MAX_NOTES) {
            any = true;
            match note {
                WorkerMessage::Message(channel, message) => out.messages.push((channel, message)),
                WorkerMessage::Limited(channel, count) => out.limited.push((channel, count)),
            }
        }
        any
    }
}

/// The engine's handle of a worker thread.
struct WorkerThreadHandle {
    thread: Option<JoinHandle<()>>,
    waker: Arc<ThreadWaker>,
}

/// State of a worker thread, which runs one or more workers.
struct WorkerThreadState {
    shares: Vec<PipelineWorker>,
    pool: FramePool,
    waker: Arc<ThreadWaker>,
    stop: Arc<AtomicBool>,
    hurry: Arc<AtomicBool>,
    clock: SwitchClock,
    spinner: SpinState,
}

impl Pipeline {
    /// Starts the workers. They begin to work with [`ShardWriter::share`].
    ///
    /// # Errors
    /// Fails if the process has no descriptor or thread left.
    pub(crate) fn start(start: WorkerThreadSetup<'_>, tables: &mut ShardWriter<Datapath>) -> io::Result<Pipeline> {
        let WorkerThreadSetup { config, name, clock, spin, engine, depot, threads: launch, .. } = start;
        let rule = |burst, turns| FlushRule { burst, turns, time: config.flush_time };
        let io_rule = |burst| rule(burst, config.io_loop_count);
        let bursts = config.bursts;
        let (tell, notes) = crossbeam_channel::bounded(MAX_NOTES);
        let machine = launch.machine();
        let mut threads = Vec::new();
        for _ in 0..config.worker_threads(&machine) {
            threads.push(WorkerThreadHandle { thread: None, waker: Arc::new(ThreadWaker::new()?) });
        }
        let mut shares: Vec<Vec<PipelineWorker>> = threads.iter().map(|_| Vec::new()).collect();
        let (mut to_workers, mut from_workers, mut counters) = (Vec::new(), Vec::new(), Vec::new());
        // Workers without a thread never get any work.
        let guests = if threads.is_empty() { Vec::new() } else { tables.add_readers(config.workers) };
        for (worker, guest) in guests.into_iter().enumerate() {
            let thread = worker % threads.len();
            let own_counters = Arc::<WorkerCounters>::default();
            let ((to_worker, from_rx), (to_tx, from_worker)) =
                (RingBuffer::new(config.ring_size), RingBuffer::new(config.ring_size));
            let (waker, full_in) = (Arc::clone(&threads[thread].waker), Arc::clone(&own_counters.full_in));
            to_workers.push(BurstRingWriter::new(io_rule(bursts.rx_write), to_worker, waker, full_in));
            let worker_rule = rule(bursts.worker_write, config.worker_loop_count);
            let outlet =
                BurstRingWriter::new(worker_rule, to_tx, Arc::clone(&engine), Arc::clone(&own_counters.full_out));
            shares[thread].push(PipelineWorker {
                stage: WorkerStage::new(bursts.worker_read, from_rx, outlet),
                hand: WorkerContext::new(
                    guest,
                    tables.get().add_worker(),
                    tell.clone(),
                    Arc::clone(&own_counters),
                    Arc::clone(&engine),
                ),
            });
            from_workers.push(from_worker);
            counters.push(own_counters);
        }
        let steering = Steering::new(config.policy, config.classes.clone(), config.workers);
        let mut pipeline = Pipeline {
            rx: RxStage::new(steering, to_workers),
            tx: TxStage::new(io_rule(bursts.tx_write), bursts.tx_read, from_workers),
            read: bursts.rx_read,
            notes,
            counters,
            threads,
            balance: HandOverDecision::new(when_alone(config)),
            drains_until: None,
            may_be_alone: config.hand_over == HandOver::Auto,
            is_full: false,
            done_alone: 0,
            hurry: Arc::default(),
            stop: Arc::default(),
            depot,
        };
        for (number, shares) in shares.into_iter().enumerate() {
            let known = &mut pipeline.threads[number];
            let worker = Box::new(WorkerThreadState {
                shares,
                pool: FramePool::shared(&pipeline.depot, 1 + number),
                waker: Arc::clone(&known.waker),
                stop: Arc::clone(&pipeline.stop),
                hurry: Arc::clone(&pipeline.hurry),
                clock,
                spinner: SpinState::new(spin, clock.now()),
            });
            let cpu = config.cpus.0.get(1 + number).copied();
            known.thread = launch.launch(format!("{name}-worker{number}"), cpu, worker)?;
        }
        let (workers, others, nodes) = (config.workers, pipeline.threads.len(), machine.nodes.len().max(1));
        tracing::info!("pipeline: workers {workers}, threads for them {others}, NUMA nodes of the machine {nodes}");
        config.warnings(&machine).iter().for_each(|warning| tracing::warn!("{warning}"));
        Ok(pipeline)
    }

    /// Returns true if frames go to the workers, and false if the engine's thread does everything itself.
    #[inline]
    pub(crate) fn is_with_workers(&self) -> bool {
        self.balance.side() == ForwardingSide::Workers
    }

    /// Returns true while the engine must receive nothing, because it takes the work back after the workers have
    /// finished.
    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.drains_until.is_some()
    }

    /// Notes a received burst of `frames` frames.
    #[inline]
    pub(crate) fn came(&mut self, frames: usize) {
        self.is_full |= 2 * frames >= self.read;
        if !self.is_with_workers() {
            self.done_alone += frames as u64;
        }
    }

    /// Ends a round that began at `now`: decides which side runs packets through the flow tables from now on.
    #[inline]
    pub(crate) fn end_round(&mut self, now: Instant, pool: &mut FramePool) {
        let is_full = std::mem::take(&mut self.is_full);
        if self.threads.is_empty() || self.is_draining() {
            return;
        }
        let (alone, counters) = (self.done_alone, &self.counters);
        let done = || counters.iter().map(|counters| counters.done()).sum::<u64>() + alone;
        match (self.balance.side(), self.balance.round(now, is_full, done)) {
            (ForwardingSide::Alone, ForwardingSide::Workers) => self.balance.take(ForwardingSide::Workers, now),
            (ForwardingSide::Workers, ForwardingSide::Alone) => self.begin_draining(now, pool),
            _ => {}
        }
    }

    /// Begins to take the work back. The workers' frames are finished first, to keep the order.
    #[cold]
    fn begin_draining(&mut self, now: Instant, pool: &mut FramePool) {
        self.drains_until = Some(now + DRAIN_MAX);
        self.hurry.store(true, Ordering::Relaxed);
        self.rx.hand_on(pool);
    }

    /// Continues to take the work back: completes it if the workers have finished, and gives up after the deadline.
    /// `send` transmits frames.
    #[cold]
    pub(crate) fn drain(&mut self, now: Instant, send: &mut impl FnMut(PortNo, &mut Vec<Frame>)) {
        // The check precedes the reading of the rings: if it succeeds, all forwarded frames are in the rings.
        let are_done = self.are_workers_done();
        self.tx.send_all(now, send);
        if !are_done && self.drains_until.is_some_and(|until| now < until) {
            return;
        }
        self.drains_until = None;
        self.hurry.store(false, Ordering::Relaxed);
        match are_done {
            true => self.balance.take(ForwardingSide::Alone, now),
            false => self.balance.refuse(now),
        }
    }

    /// Returns true if the workers have passed on all frames given to them.
    fn are_workers_done(&self) -> bool {
        let mut counters = self.counters.iter().enumerate();
        self.rx.is_empty() && counters.all(|(worker, counters)| counters.handed_on() == self.rx.given(worker))
    }

    /// Takes the work back before the engine sleeps, if the workers have no frames.
    pub(crate) fn rests(&mut self, now: Instant) {
        if self.may_be_alone && self.is_with_workers() && self.are_workers_done() && self.is_idle() {
            self.drains_until = None;
            self.hurry.store(false, Ordering::Relaxed);
            self.balance.take(ForwardingSide::Alone, now);
        }
    }

    /// Returns the engine's frame pool, which exchanges buffers with the workers' pools.
    pub(crate) fn pool(&self) -> FramePool {
        FramePool::shared(&self.depot, 0)
    }

    /// Moves a bounded number of the workers' messages for controllers to `out`. Returns true if there were any.
    pub(crate) fn take_notes(&mut self, out: &mut DatapathOutput) -> bool {
        WorkerMessage::take(&self.notes, out)
    }

    /// Returns true if no frame waits for a burst to fill.
    pub(crate) fn is_flushed(&self) -> bool {
        self.rx.is_empty() && self.tx.is_flushed()
    }

    /// Returns true if there is no work for the engine.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_flushed() && self.tx.is_empty() && self.notes.is_empty()
    }

    /// Returns the index of a worker's thread among the workers' threads.
    pub(crate) fn thread_of(&self, worker: usize) -> usize {
        worker % self.threads.len().max(1)
    }

    /// Returns true if a worker thread has ended, which happens only by a panic.
    pub(crate) fn has_failed(&self) -> bool {
        self.threads.iter().any(|worker| worker.thread.as_ref().is_some_and(JoinHandle::is_finished))
    }

    /// Returns the packets that each worker dropped while sharing the tables. The datapath counts the others.
    pub(crate) fn drops(&self) -> Vec<Drops> {
        let read = |counters: &Arc<WorkerCounters>| *counters.drops.lock().unwrap_or_else(PoisonError::into_inner);
        self.counters.iter().map(read).collect()
    }

    /// Starts or stops measuring the workers' times, from each worker's next burst.
    pub(crate) fn watch(&self, is_watched: bool) {
        self.counters.iter().for_each(|counters| counters.is_watched.store(is_watched, Ordering::Relaxed));
    }

    /// Returns the times that the workers have measured so far.
    pub(crate) fn perf(&self) -> Vec<Perf> {
        let read =
            |counters: &Arc<WorkerCounters>| counters.perf.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.counters.iter().map(read).collect()
    }

    /// Returns the state of the workers at this moment.
    pub(crate) fn snapshot(&self) -> Vec<WorkerSnapshot> {
        let snapshot = |(worker, counters): (usize, &Arc<WorkerCounters>)| WorkerSnapshot {
            waiting: self.rx.waiting(worker),
            waiting_to_leave: self.tx.waiting(worker),
            ..counters.snapshot(worker)
        };
        self.counters.iter().enumerate().map(snapshot).collect()
    }
}

impl Drop for Pipeline {
    /// Ends the workers and drops the frames on their way.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for worker in &mut self.threads {
            worker.waker.wake();
            if worker.thread.take().is_some_and(|thread| thread.join().is_err()) {
                tracing::error!("a worker of the switch panicked; its message is above");
            }
        }
    }
}

impl WorkerThreadState {
    fn is_idle(&self) -> bool {
        self.shares.iter().all(|share| share.stage.is_idle())
    }

    /// Runs a burst of each share. Returns true if there were any frames.
    #[inline]
    fn run_shares(&mut self, now: Instant) -> bool {
        let WorkerThreadState { shares, pool, stop, hurry, .. } = self;
        let hand_on = if hurry.load(Ordering::Relaxed) { FlushTiming::AtOnce } else { FlushTiming::WhenDue };
        let is_over = || stop.load(Ordering::Relaxed);
        let any = shares.iter_mut().fold(false, |any, share| any | (share.run(now, pool, hand_on, is_over) > 0));
        pool.report_count();
        any
    }

    /// Decides what follows a turn without work that began at `now`.
    fn look_or_sleep(&mut self, now: Instant) -> TurnOutcome {
        if self.is_idle() {
            return self.spinner.look_or_sleep(now, self.clock);
        }
        std::hint::spin_loop();
        TurnOutcome::Turn
    }
}

impl ThreadWork for WorkerThreadState {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    #[inline]
    fn turn(&mut self) -> TurnOutcome {
        let now = self.clock.now();
        if !self.run_shares(now) {
            return self.look_or_sleep(now);
        }
        self.spinner.found(now);
        TurnOutcome::Turn
    }

    fn fall_asleep(&mut self) -> Option<AnnouncedSleep> {
        self.waker.about_to_sleep();
        // Frames written before the writers knew of the sleep are found here.
        let is_quiet = self.is_idle() && !self.is_over();
        is_quiet.then(|| AnnouncedSleep { from: self.clock.now(), timeout: SLEEP_MAX, release: Instant::FAR })
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        self.waker.sleep(std::iter::empty(), None, timeout).is_called
    }

    fn wake_up(&mut self, _slept: Option<AnnouncedSleep>) {
        self.waker.awake();
    }
}

/// Returns when the engine may do everything itself.
fn when_alone(config: &ThreadsConfig) -> EngineOnlyPolicy {
    match config.hand_over {
        HandOver::Always => EngineOnlyPolicy::Never,
        // Classes keep flows apart, which needs workers under load.
        HandOver::Auto if config.classes.is_empty() => EngineOnlyPolicy::Better,
        HandOver::Auto => EngineOnlyPolicy::KeepsUp,
    }
}
