//! Connects the engine to its worker threads ([`crate::threads`]). In a pipeline the engine receives and transmits,
//! and workers look up packets; with several threads each one does everything for its ports.
use super::Engine;
use crate::clock::SwitchClock;
use crate::ctl::ThreadPlacement;
use crate::drop_reasons;
use crate::handle::SwitchError;
use crate::snapshot::WorkerSnapshot;
use crate::threads::pipeline::{Pipeline, WorkerThreadSetup};
use crate::threads::run_to_completion::RunToCompletion;
use crate::threads::sharded_lock::ShardWriter;
use crate::threads::{ThreadingMode, ThreadsConfig};
use crate::turns::{ThreadLauncher, pin};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use weir_datapath::perf::{Perf, Stopwatch};
use weir_datapath::{Datapath, DropReason, Drops};
use weir_openflow::model::PortNo;
use weir_packet::{FramePool, SharedBuffers};
use weir_port::Port;
use weir_units::{Clock, Instant};

/// Replaces [`super::CONTROL_TIME`] while workers wait for the tables.
const SHARED_CONTROL_TIME: Duration = Duration::from_micros(25);

/// Threads of an engine that look up packets.
#[derive(Default)]
pub(super) enum EngineThreads {
    /// The engine's own thread does everything.
    #[default]
    Single,
    /// The engine receives and transmits, and workers look up packets.
    Pipeline(Box<Pipeline>),
    /// Each of several threads, the engine's among them, does all work of its ports.
    RunToCompletion(Box<RunToCompletion>),
}

/// Threads of the engine, where they run, and how they share their time with control work.
#[derive(Default)]
pub(super) struct EngineWorkers {
    pub(super) threads: EngineThreads,
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
        match &self.threads {
            EngineThreads::Single => Vec::new(),
            EngineThreads::Pipeline(pipeline) => pipeline.snapshot(),
            EngineThreads::RunToCompletion(several) => several.snapshot(),
        }
    }

    /// Returns a port as the engine uses it: assigned to a thread, if there are several.
    pub(super) fn share(&self, number: PortNo, port: Box<dyn Port>) -> Box<dyn Port> {
        match &self.threads {
            EngineThreads::RunToCompletion(several) => several.share(number, port),
            EngineThreads::Single | EngineThreads::Pipeline(_) => port,
        }
    }

    /// Returns the stopwatch of the engine thread's own forwarding, if there are several threads.
    pub(super) fn own_watch(&mut self) -> Option<&mut Stopwatch> {
        match &mut self.threads {
            EngineThreads::RunToCompletion(several) => Some(several.own_watch()),
            EngineThreads::Single | EngineThreads::Pipeline(_) => None,
        }
    }

    /// Returns the CPU and NUMA node of a thread: 0 is the engine's thread, 1 the first worker's.
    pub(super) fn place_of(&self, thread: usize) -> ThreadPlacement {
        // Workers of a pipeline may share threads.
        let thread = match (&self.threads, thread) {
            (EngineThreads::Pipeline(pipeline), 1..) => 1 + pipeline.thread_of(thread - 1),
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
        match self.threads {
            EngineThreads::RunToCompletion(_) => |place| (place + 1).to_string(),
            EngineThreads::Single | EngineThreads::Pipeline(_) => |place| format!("worker {place}"),
        }
    }

    /// Starts or stops measuring the workers' times.
    pub(super) fn watch(&mut self, is_watched: bool) {
        match &mut self.threads {
            EngineThreads::Single => {}
            EngineThreads::Pipeline(pipeline) => pipeline.watch(is_watched),
            EngineThreads::RunToCompletion(several) => several.watch(is_watched),
        }
    }

    /// Returns the times that the workers have measured so far.
    pub(super) fn perf(&self) -> Vec<Perf> {
        match &self.threads {
            EngineThreads::Single => Vec::new(),
            EngineThreads::Pipeline(pipeline) => pipeline.perf(),
            EngineThreads::RunToCompletion(several) => several.perf(),
        }
    }

    /// Returns the packets that workers dropped, by reason; the engine's own drops are not included.
    pub(super) fn packets_dropped(&self) -> Vec<(DropReason, u64)> {
        let drops = match &self.threads {
            EngineThreads::Single => Vec::new(),
            EngineThreads::Pipeline(pipeline) => pipeline.drops(),
            EngineThreads::RunToCompletion(several) => several.drops(),
        };
        drops.iter().flat_map(Drops::counted).collect()
    }

    /// Returns true if threads other than the engine's currently run packets through the tables.
    #[inline]
    pub(super) fn are_sharing(&self) -> bool {
        match &self.threads {
            EngineThreads::Single => false,
            EngineThreads::Pipeline(pipeline) => pipeline.is_with_workers(),
            EngineThreads::RunToCompletion(_) => true,
        }
    }

    /// Returns true while the pipeline drains, when nothing may be received.
    #[inline]
    pub(super) fn are_draining(&self) -> bool {
        matches!(&self.threads, EngineThreads::Pipeline(pipeline) if pipeline.is_draining())
    }

    /// Notes that the engine is about to sleep.
    pub(super) fn rest(&mut self, now: Instant) {
        if let EngineThreads::Pipeline(pipeline) = &mut self.threads {
            pipeline.rests(now);
        }
    }

    /// Returns true if frames wait for a burst to fill; the engine must not sleep then.
    pub(super) fn hold_frames(&self) -> bool {
        matches!(&self.threads, EngineThreads::Pipeline(pipeline) if !pipeline.is_flushed())
    }

    /// Waits briefly if a round had no work only because other threads are using the ports. Returns true if it
    /// waited.
    pub(super) fn wait_if_ports_busy(&mut self) -> bool {
        match &mut self.threads {
            EngineThreads::Single | EngineThreads::Pipeline(_) => false,
            EngineThreads::RunToCompletion(several) => several.wait_if_contended(),
        }
    }

    /// Returns true if workers have left no work for the engine.
    pub(super) fn are_done(&self) -> bool {
        match &self.threads {
            EngineThreads::Single => true,
            EngineThreads::Pipeline(pipeline) => pipeline.is_idle(),
            EngineThreads::RunToCompletion(several) => several.is_idle(),
        }
    }

    /// Returns true if control work may begin in a round that began at `now`. With frames to forward, or workers
    /// waiting for the tables, forwarding gets half of the time.
    pub(super) fn may_control(
        &mut self,
        clock: SwitchClock,
        now: Instant,
        forwards: bool,
        tables: &ShardWriter<Datapath>,
    ) -> bool {
        if !self.are_sharing() {
            return !forwards || now >= self.control_at;
        }
        self.control_began = clock.now();
        now >= self.control_at || !tables.is_waited_for()
    }

    /// Maximum time of control work in one round.
    pub(super) fn control_time(&self) -> Duration {
        if self.are_sharing() { SHARED_CONTROL_TIME } else { super::CONTROL_TIME }
    }

    /// Notes how long control work took. If only the engine forwards, forwarding then has as much time before the
    /// next.
    pub(super) fn has_controlled(&mut self, began: Instant, ended: Instant) {
        if !self.are_sharing() {
            self.control_at = ended + ended.since(began);
        }
    }

    /// Ends a round: returns the tables to the workers.
    #[inline]
    pub(super) fn share_tables(&mut self, clock: SwitchClock, tables: &mut ShardWriter<Datapath>) {
        if self.are_sharing() && tables.share() {
            let now = clock.now();
            self.control_at = now + now.since(self.control_began);
        }
    }

    /// Returns the frames and packet-ins dropped between threads.
    pub(super) fn drops(&self) -> [(&'static str, u64); 3] {
        let workers = self.snapshot();
        let sum = |count: fn(&WorkerSnapshot) -> u64| workers.iter().map(count).sum();
        let [ring, transmit_ring, packet_ins] = drop_reasons::WORKERS;
        [
            (ring, sum(|worker| worker.ring_full)),
            (transmit_ring, sum(|worker| worker.transmit_ring_full)),
            (packet_ins, sum(|worker| worker.packet_ins_dropped)),
        ]
    }

    /// Binds the engine's thread to its CPU.
    pub(super) fn pin_engine_thread(&self) {
        pin(self.cpus.first().copied());
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
        if config.mode == ThreadingMode::RunToCompletion && config.workers == 1 {
            self.io.pool = FramePool::single_threaded(&depot);
            return Ok(());
        }
        let start = WorkerThreadSetup {
            config,
            name,
            clock: self.io.clock,
            spin: self.spinner.kind(),
            engine: Arc::clone(&self.inbox.waker),
            depot,
            gone: self.io.removed.clone(),
            threads,
        };
        self.start_threads(start).map_err(|error| SwitchError::System {
            tried: "starting the workers".to_owned(),
            error,
            advice: String::new(),
        })
    }

    fn start_threads(&mut self, start: WorkerThreadSetup<'_>) -> io::Result<()> {
        match start.config.mode {
            ThreadingMode::RunToCompletion => {
                self.io.burst = start.config.bursts.rx_read;
                let several = RunToCompletion::start(start, &mut self.physical.datapath)?;
                self.io.pool = several.pool();
                for slot in self.io.ports.iter_mut() {
                    slot.port = slot.port.take().map(|port| several.share(slot.number, port));
                }
                self.workers.threads = EngineThreads::RunToCompletion(Box::new(several));
            }
            ThreadingMode::Pipeline => {
                let pipeline = Pipeline::start(start, &mut self.physical.datapath)?;
                self.io.pool = pipeline.pool();
                self.io.burst = pipeline.read;
                self.workers.threads = EngineThreads::Pipeline(Box::new(pipeline));
            }
        }
        Ok(())
    }
}
