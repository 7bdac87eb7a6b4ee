//! Parts of a switch that would each have a thread: engine, workers, and the control thread with its tasks.
use crate::clock::virtual_time::ThreadVirtualTime;
use crate::control::{ByteStream, ControlContext};
use crate::engine::Engine;
use crate::handle::AssembledSwitch;
use crate::threads::MachineResources;
use crate::turns::{AnnouncedSleep, ThreadLauncher, ThreadWork, TurnOutcome};
use std::io;
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use weir_units::Instant;

/// Keeps the turns of threads instead of starting threads.
pub(super) struct TurnCollector {
    turns: Vec<Box<dyn ThreadWork>>,
    /// Number of cores that the switch is told of.
    cores: usize,
}

impl TurnCollector {
    /// Returns an empty collection on a machine with `cores` cores.
    pub(super) fn on(cores: usize) -> TurnCollector {
        TurnCollector { turns: Vec::new(), cores }
    }
}

impl ThreadLauncher for TurnCollector {
    fn machine(&self) -> MachineResources {
        MachineResources { cpus: (0..self.cores).collect(), memory: None, nodes: Vec::new() }
    }

    fn launch(
        &mut self,
        _name: String,
        _cpu: Option<usize>,
        turns: Box<dyn ThreadWork>,
    ) -> io::Result<Option<JoinHandle<()>>> {
        self.turns.push(turns);
        Ok(None)
    }
}

/// Result of a part's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartStepOutcome {
    /// The part took a turn.
    Turned,
    /// The part sleeps.
    Asleep,
}

/// State of a part's sleep.
#[derive(Debug, Default)]
pub(super) struct SleepState {
    asleep: Option<AnnouncedSleep>,
}

impl SleepState {
    /// Performs one step of a part: wakes it if work arrived or its timeout is over, and takes a turn if it is awake.
    pub(super) fn step(&mut self, part: &mut dyn ThreadWork) -> PartStepOutcome {
        if let Some(sleep) = self.asleep {
            let is_over = ThreadVirtualTime::now() >= sleep.from + sleep.timeout;
            if !part.wait(std::time::Duration::ZERO) && !is_over {
                return PartStepOutcome::Asleep;
            }
            self.asleep = None;
            part.wake_up(Some(sleep));
        }
        if part.turn() == TurnOutcome::Sleep {
            match part.fall_asleep() {
                Some(sleep) => self.asleep = Some(sleep),
                None => part.wake_up(None),
            }
        }
        PartStepOutcome::Turned
    }

    /// Returns true if the part sleeps.
    pub(super) fn is_asleep(&self) -> bool {
        self.asleep.is_some()
    }
}

/// All parts of a switch.
pub(super) struct ScheduledSwitch {
    pub(super) engine: Box<Engine>,
    engine_bed: SleepState,
    pub(super) workers: Vec<(Box<dyn ThreadWork>, SleepState)>,
    runtime: Runtime,
    /// Time up to which the control thread's runtime has been advanced.
    told: Instant,
    stopping: watch::Sender<bool>,
    pub(super) control: ControlContext,
}

impl ScheduledSwitch {
    /// Makes the parts of a switch.
    pub(super) fn new(assembled: AssembledSwitch, kept: TurnCollector) -> ScheduledSwitch {
        let AssembledSwitch { engine, control, start, stopping, .. } = assembled;
        // The runtime polls one task per step, and its time passes only when it is advanced.
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).event_interval(1).build();
        let runtime = runtime.expect("a runtime without I/O needs nothing");
        runtime.spawn(crate::control::run(control.clone(), start));
        ScheduledSwitch {
            engine: Box::new(engine),
            engine_bed: SleepState::default(),
            workers: kept.turns.into_iter().map(|turns| (turns, SleepState::default())).collect(),
            runtime,
            told: ThreadVirtualTime::now(),
            stopping,
            control,
        }
    }

    /// Performs a step of the engine.
    pub(super) fn step_engine(&mut self) -> PartStepOutcome {
        self.engine_bed.step(&mut *self.engine)
    }

    /// Performs a step of a worker.
    pub(super) fn step_worker(&mut self, worker: usize) -> PartStepOutcome {
        let (turns, bed) = &mut self.workers[worker];
        bed.step(&mut **turns)
    }

    /// Advances the control thread's time to the present and polls about `tasks` of its tasks.
    pub(super) fn step_control(&mut self, tasks: usize) {
        let now = ThreadVirtualTime::now();
        let passed = now.since(self.told);
        self.told = now;
        self.runtime.block_on(async {
            if !passed.is_zero() {
                tokio::time::advance(passed).await;
            }
            for _ in 0..tasks {
                tokio::task::yield_now().await;
            }
        });
    }

    /// Makes the control thread serve a controller of the switch or of a virtual one.
    pub(super) fn serve(&self, control: ControlContext, stream: ByteStream) {
        self.runtime.spawn(crate::control::serve_stream(control, stream));
    }

    /// Returns true if the engine and all workers sleep.
    pub(super) fn are_asleep(&self) -> bool {
        self.engine_bed.is_asleep() && self.workers.iter().all(|(_, bed)| bed.is_asleep())
    }

    /// Ends all parts in the order of a stopping switch: the control thread, then the workers, then the engine.
    pub(super) fn end(self) {
        let ScheduledSwitch { engine, workers, runtime, stopping, .. } = self;
        let _ = stopping.send(true);
        drop(runtime);
        drop(workers);
        drop(engine);
    }
}
