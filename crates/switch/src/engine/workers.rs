//! Connects the engine to its worker threads ([`crate::threads`]). In a pipeline the engine receives and transmits,
//! and workers look up packets; with several threads each one does everything for its ports.
use super::Engine;
use crate::ctl::ThreadPlacement;
use crate::handle::SwitchError;
use crate::snapshot::WorkerSnapshot;
use crate::threads::pipeline::{Pipeline, WorkerThreadSetup};
use crate::threads::removed_ports::RemovedPortDrops;
use crate::threads::run_to_completion::RunToCompletion;
use crate::threads::{ThreadingMode, ThreadsConfig};
use crate::turns::{ThreadLauncher, pin};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use weir_datapath::perf::{Perf, ThreadStage};
use weir_datapath::{DropReason, Drops};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool, SharedBuffers};
use weir_port::{Port, PortError};
use weir_units::{Clock, Instant};

/// Replaces [`super::CONTROL_TIME`] while workers wait for the tables.
const SHARED_CONTROL_TIME: Duration = Duration::from_micros(25);

/// Selects the frames that the engine transmits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransmitSelection {
    /// Full bursts only; the round continues.
    Within,
    /// Full bursts and those that are due; the round ends.
    Ends,
    /// All frames: the engine takes forwarding back from the workers.
    Drains,
}

/// Threads of the engine, and where they run.
#[derive(Default)]
pub(super) struct EngineWorkers {
    /// Workers of a pipeline; `None` if there is no pipeline.
    pub(super) pipeline: Option<Pipeline>,
    /// Threads that each do all work of their ports; `None` in other modes.
    pub(super) several: Option<RunToCompletion>,
    /// Counts frames dropped because their port was removed.
    pub(super) gone: RemovedPortDrops,
    /// Frame buffers allocated at the start.
    depot: Arc<SharedBuffers>,
    /// CPUs that the threads are bound to; the engine's comes first.
    cpus: Vec<usize>,
    /// CPUs of each NUMA node.
    nodes: Vec<BTreeSet<usize>>,
    /// Time until which forwarding precedes control work, if there is something to forward. Until then workers hold
    /// the tables, or the engine's own thread handles only its ports.
    control_at: Instant,
    control_began: Instant,
}

impl EngineWorkers {
    /// Returns the state of the workers at this moment.
    pub(super) fn snapshot(&self) -> Vec<WorkerSnapshot> {
        let several = || self.several.as_ref().map(RunToCompletion::snapshot);
        self.pipeline.as_ref().map(Pipeline::snapshot).or_else(several).unwrap_or_default()
    }

    /// Returns a port as the engine uses it: assigned to a thread, if there are several.
    pub(super) fn share(&self, number: PortNo, port: Box<dyn Port>) -> Box<dyn Port> {
        match &self.several {
            Some(several) => several.share(number, port),
            None => port,
        }
    }

    /// Returns the stopwatch of the engine thread's own forwarding, if there are several threads.
    pub(super) fn own_watch(&mut self) -> Option<&mut weir_datapath::perf::Stopwatch> {
        self.several.as_mut().map(RunToCompletion::own_watch)
    }

    /// Returns the CPU and NUMA node of a thread: 0 is the engine's thread, 1 the first worker's.
    pub(super) fn place_of(&self, thread: usize) -> ThreadPlacement {
        // Workers of a pipeline may share threads.
        let thread = match (&self.pipeline, thread) {
            (Some(pipeline), 1..) => 1 + pipeline.thread_of(thread - 1),
            _ => thread,
        };
        let cpu = self.cpus.get(thread).copied();
        let node = |cpu: usize| self.nodes.iter().position(|node| node.contains(&cpu));
        // With only one node, the node is known even without a bound CPU.
        ThreadPlacement { cpu, node: if self.nodes.len() == 1 { Some(0) } else { cpu.and_then(node) } }
    }

    /// Returns the frame buffers allocated at the start, and the locations of the threads that wrote to them first.
    pub(super) fn buffers(&self) -> (Arc<SharedBuffers>, Vec<ThreadPlacement>) {
        let places = (0..self.depot.slabs().len()).map(|thread| self.place_of(thread));
        (Arc::clone(&self.depot), places.collect())
    }

    /// Number of NUMA nodes of the machine, at least 1.
    pub(super) fn node_count(&self) -> usize {
        self.nodes.len().max(1)
    }

    /// Returns a function from a worker's index to the name of its thread.
    pub(super) fn thread_names(&self) -> fn(usize) -> String {
        match self.several {
            Some(_) => |place| (place + 1).to_string(),
            None => |place| format!("worker {place}"),
        }
    }

    /// Starts or stops measuring the workers' times.
    pub(super) fn watch(&mut self, is_watched: bool) {
        if let Some(pipeline) = &self.pipeline {
            pipeline.watch(is_watched);
        }
        if let Some(several) = &mut self.several {
            several.watch(is_watched);
        }
    }

    /// Returns the times that the workers have measured so far.
    pub(super) fn perf(&self) -> Vec<Perf> {
        let several = || self.several.as_ref().map(RunToCompletion::perf);
        self.pipeline.as_ref().map(Pipeline::perf).or_else(several).unwrap_or_default()
    }

    /// Returns the packets that workers dropped, by reason; the engine's own drops are not included.
    pub(super) fn packets_dropped(&self) -> Vec<(DropReason, u64)> {
        let several = || self.several.as_ref().map(RunToCompletion::drops);
        let drops = self.pipeline.as_ref().map(Pipeline::drops).or_else(several).unwrap_or_default();
        drops.iter().flat_map(Drops::counted).collect()
    }

    /// Returns true if threads other than the engine's currently run packets through the tables.
    #[inline]
    pub(super) fn are_sharing(&self) -> bool {
        self.several.is_some() || self.pipeline.as_ref().is_some_and(Pipeline::is_with_workers)
    }

    /// Returns true while the pipeline drains, when nothing may be received.
    #[inline]
    pub(super) fn are_draining(&self) -> bool {
        self.pipeline.as_ref().is_some_and(Pipeline::is_draining)
    }

    /// Notes that the engine is about to sleep.
    pub(super) fn rest(&mut self, now: Instant) {
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.rests(now);
        }
    }

    /// Notes how long control work took. If only the engine forwards, forwarding then has as much time before the
    /// next.
    pub(super) fn has_controlled(&mut self, began: Instant, ended: Instant) {
        if !self.are_sharing() {
            self.control_at = ended + ended.since(began);
        }
    }

    /// Returns the frames and packet-ins dropped between threads, or because their port was removed.
    pub(super) fn drops(&self) -> [(&'static str, u64); 4] {
        let workers = self.snapshot();
        let sum = |count: fn(&WorkerSnapshot) -> u64| workers.iter().map(count).sum();
        [
            ("worker_ring_full", sum(|worker| worker.ring_full)),
            ("transmit_ring_full", sum(|worker| worker.transmit_ring_full)),
            ("packet_in_queue_full", sum(|worker| worker.packet_ins_dropped)),
            ("port_gone", self.gone.count()),
        ]
    }
}

impl Engine {
    /// Starts the threads that `config` asks for: a pipeline, or several threads that share the ports.
    ///
    /// # Errors
    /// Fails if the system has no thread or descriptor left.
    pub(crate) fn start_workers(
        &mut self,
        config: &ThreadsConfig,
        name: &str,
        depot: SharedBuffers,
        threads: &mut dyn ThreadLauncher,
    ) -> Result<(), SwitchError> {
        let depot = Arc::new(depot);
        self.workers.depot = Arc::clone(&depot);
        self.workers.cpus.clone_from(&config.cpus.0);
        self.workers.nodes = threads.machine().nodes;
        let (engine, gone) = (Arc::clone(&self.inbox.waker), self.workers.gone.clone());
        let start = WorkerThreadSetup {
            config,
            name,
            clock: self.clock,
            spin: self.spinner.kind(),
            engine,
            depot,
            gone,
            threads,
        };
        match config.mode {
            ThreadingMode::RunToCompletion if config.workers == 1 => {
                self.pool = FramePool::single_threaded(&start.depot);
                Ok(())
            }
            ThreadingMode::RunToCompletion => self.start_several(start).map_err(no_thread),
            ThreadingMode::Pipeline => self.start_pipeline(start).map_err(no_thread),
        }
    }

    fn start_several(&mut self, start: WorkerThreadSetup<'_>) -> io::Result<()> {
        self.burst = start.config.bursts.rx_read;
        let several = RunToCompletion::start(start, &mut self.logical.datapath)?;
        self.pool = several.pool();
        self.workers.several = Some(several);
        for slot in self.ports.iter_mut() {
            if let Some(port) = slot.port.take() {
                slot.port = Some(self.workers.share(slot.number, port));
            }
        }
        Ok(())
    }

    fn start_pipeline(&mut self, start: WorkerThreadSetup<'_>) -> io::Result<()> {
        let pipeline = Pipeline::start(start, &mut self.logical.datapath)?;
        self.pool = pipeline.pool();
        self.burst = pipeline.read;
        self.workers.pipeline = Some(pipeline);
        Ok(())
    }

    /// Binds the engine's thread to its CPU.
    pub(super) fn pin_engine_thread(&self) {
        pin(self.workers.cpus.first().copied());
    }

    /// Passes the received batch of a port on: to virtual switches, to the switch's own tables, or to the workers.
    #[inline]
    pub(super) fn dispatch_batch(&mut self, now: Instant, port: PortNo) {
        if self.virtuals.is_some() {
            return self.pass_to_virtuals(now, port);
        }
        self.pass_to_own(now, port);
    }

    /// Passes the received batch of a port to the switch's own tables, or to the workers.
    #[inline]
    pub(super) fn pass_to_own(&mut self, now: Instant, port: PortNo) {
        if self.logical.timed.is_some() {
            return self.pass_to_stage(now, port);
        }
        let packets = self.batch.len();
        if let Some(pipeline) = &mut self.workers.pipeline {
            pipeline.came(packets);
        }
        if let Some(several) = &mut self.workers.several {
            let (batch, to) = (&mut self.batch, (&mut self.pool, &mut self.logical.out));
            several.forward(now, port, batch, to, &mut self.logical.datapath);
            self.watch.start();
            self.deliver(now);
            return self.watch.lap(ThreadStage::Transmit, packets);
        }
        match self.workers.pipeline.as_mut().filter(|pipeline| pipeline.is_with_workers()) {
            None => {
                self.logical.datapath.get().process(now, port, &mut self.batch, &mut self.pool, &mut self.logical.out);
                // The datapath measures its own time.
                self.watch.start();
                self.deliver(now);
                self.watch.lap(ThreadStage::Transmit, packets);
            }
            Some(pipeline) => {
                pipeline.rx.receive(now, port, &mut self.batch, &mut self.pool);
                self.watch.lap(ThreadStage::Receive, 0);
                // Transmitting comes before the next port is read, so that forwarded frames do not pile up behind
                // many ports.
                self.transmit(now, TransmitSelection::Within);
                self.watch.lap(ThreadStage::Transmit, packets);
            }
        }
    }

    /// Does the workers' part of a round: moves due bursts, and passes the workers' messages to the controllers.
    /// Returns true if there was any work.
    pub(super) fn poll_workers(&mut self, now: Instant) -> bool {
        if let Some(several) = &mut self.workers.several {
            assert!(!several.has_failed(), "a thread of the switch panicked; its message is above");
            let told = several.take_notes(&mut self.logical.out);
            if told {
                self.deliver(now);
            }
            return told;
        }
        let Some(pipeline) = &mut self.workers.pipeline else { return false };
        assert!(!pipeline.has_failed(), "a worker panicked; its message is above");
        pipeline.end_round(now, &mut self.pool);
        let is_draining = pipeline.is_draining();
        if !is_draining {
            pipeline.rx.turn(now, &mut self.pool);
        }
        let told = pipeline.take_notes(&mut self.logical.out);
        let sent = self.transmit(now, if is_draining { TransmitSelection::Drains } else { TransmitSelection::Ends });
        if told {
            self.deliver(now);
        }
        told || sent
    }

    /// Transmits frames that workers have forwarded. Returns true if there were any, or while the pipeline drains.
    fn transmit(&mut self, now: Instant, how: TransmitSelection) -> bool {
        let Some(pipeline) = &mut self.workers.pipeline else { return false };
        let mut gone: Option<(PortNo, PortError)> = None;
        let (ports, pool, virtuals) = (&mut self.ports, &mut self.pool, &mut self.virtuals);
        let lost = &self.workers.gone;
        let mut send = |number: PortNo, frames: &mut Vec<Frame>| {
            if let Some(virtuals) = virtuals
                && virtuals.take_own(now, number, frames, pool)
            {
                return;
            }
            match ports.place(number).and_then(|place| ports.at(place).port.as_mut()) {
                Some(port) => {
                    if let Err(error) = port.transmit(now, pool, frames) {
                        gone = Some((number, error));
                    }
                }
                // The port was removed while the frames were on their way.
                None => lost.drop_frames(frames, pool),
            }
        };
        let tx = &mut pipeline.tx;
        let any = match how {
            TransmitSelection::Within => tx.gather(now, &mut send),
            TransmitSelection::Ends => tx.turn(now, &mut send),
            TransmitSelection::Drains => {
                pipeline.drain(now, &mut send);
                true
            }
        };
        if let Some((number, error)) = gone {
            self.lose_port(now, number, &error);
        }
        any
    }

    /// Drops the frames that wait for a removed port.
    pub(super) fn forget_frames(&mut self, number: PortNo) {
        for (_, mut frames) in self.logical.out.frames.extract_if(.., |(port, _)| *port == number) {
            self.workers.gone.drop_frames(&mut frames, &mut self.pool);
        }
        self.workers.gone.drop_frames(&mut self.arrivals.forget(number), &mut self.pool);
        if let Some(pipeline) = &mut self.workers.pipeline {
            self.workers.gone.drop_frames(&mut pipeline.tx.forget(number), &mut self.pool);
        }
    }

    /// Returns true if frames wait for a burst to fill, or for their turn; the engine must not sleep then.
    pub(super) fn holds_frames(&self) -> bool {
        !self.arrivals.is_empty() || self.workers.pipeline.as_ref().is_some_and(|pipeline| !pipeline.is_flushed())
    }

    /// Waits briefly if a round had no work only because other threads are using the ports. Returns true if it
    /// waited.
    pub(super) fn wait_if_ports_busy(&mut self) -> bool {
        self.workers.several.as_mut().is_some_and(RunToCompletion::wait_if_contended)
    }

    /// Returns true if workers have left no work for the engine.
    pub(super) fn are_workers_done(&self) -> bool {
        let are_others_done = self.workers.several.as_ref().is_none_or(RunToCompletion::is_idle);
        are_others_done && self.workers.pipeline.as_ref().is_none_or(Pipeline::is_idle)
    }

    /// Returns true if control work may run now. With frames to forward, or workers waiting for the tables,
    /// forwarding gets half of the time.
    pub(super) fn may_control(&mut self, now: Instant, forwards: bool) -> bool {
        if !self.workers.are_sharing() {
            return !forwards || now >= self.workers.control_at;
        }
        self.workers.control_began = self.clock.now();
        now >= self.workers.control_at || !self.logical.datapath.is_waited_for()
    }

    /// Maximum time of control work in one round.
    pub(super) fn control_time(&self) -> Duration {
        if self.serving.is_some() {
            return self.virtual_control_limit;
        }
        if self.workers.are_sharing() { SHARED_CONTROL_TIME } else { super::CONTROL_TIME }
    }

    /// Ends a round: returns the tables to the workers.
    #[inline]
    pub(super) fn share_tables(&mut self) {
        if self.workers.are_sharing() && self.logical.datapath.share() {
            let now = self.clock.now();
            self.workers.control_at = now + now.since(self.workers.control_began);
        }
    }
}

fn no_thread(error: io::Error) -> SwitchError {
    SwitchError::System { tried: "starting the workers".to_owned(), error, advice: String::new() }
}
