//! Runs every thread of the packet path: turns while there is work, sleep while there is none.
//!
//! A thread's work is split into steps that return. [`ThreadWork::run`] repeats them on a thread of its own. A
//! scheduler driven by a seed (`crate::schedules`) instead takes the steps of all threads one by one, in any order.
use crate::threads::MachineResources;
use rustix::thread::CpuSet;
use std::io;
use std::num::NonZeroU64;
use std::thread::JoinHandle;
use std::time::Duration;
use weir_units::Instant;

/// Step that follows a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnOutcome {
    /// Another turn at once.
    Turn,
    /// Sleep: there was no work for long enough.
    Sleep,
}

/// A sleep that was announced to all sources of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnnouncedSleep {
    /// Start of the sleep.
    pub(crate) from: Instant,
    /// Length of the sleep if no work arrives.
    pub(crate) timeout: Duration,
    /// Release time of the next deferred frame or message; [`Instant::FAR`] if there is none.
    pub(crate) release: Instant,
}

/// Work of one thread, split into steps that return.
pub(crate) trait ThreadWork: Send {
    /// Returns true if the thread is to end.
    fn is_over(&self) -> bool;

    /// Performs one turn, a bounded amount of work.
    fn turn(&mut self) -> TurnOutcome;

    /// Announces that the thread sleeps, so that work arriving from now on wakes it. Returns `None` if work has
    /// arrived already.
    fn fall_asleep(&mut self) -> Option<AnnouncedSleep>;

    /// Waits until work arrives, at most `timeout`. Returns true if work arrived.
    fn wait(&mut self, timeout: Duration) -> bool;

    /// Withdraws the announcement of [`ThreadWork::fall_asleep`], which returned `slept`.
    fn wake_up(&mut self, slept: Option<AnnouncedSleep>);

    /// Takes turns on the calling thread until they are over.
    fn run(&mut self) {
        // By default Linux may wake a thread 50 us late to save power, which is too late for shaped ports. A refusal
        // only costs that accuracy.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        while !self.is_over() {
            if self.turn() == TurnOutcome::Turn {
                continue;
            }
            let sleep = self.fall_asleep();
            if let Some(sleep) = sleep.filter(|sleep| !sleep.timeout.is_zero()) {
                self.wait(sleep.timeout);
            }
            self.wake_up(sleep);
        }
    }
}

/// Starts threads: as threads of the system, or as turns kept by a scheduler.
pub(crate) trait ThreadLauncher {
    /// Returns the machine on which the threads run.
    fn machine(&self) -> MachineResources;

    /// Starts a thread that takes `turns`, with its name and the CPU to bind it to. Returns the thread, or `None` if
    /// a scheduler takes the turns instead.
    ///
    /// # Errors
    /// Fails if the process has no thread left.
    fn launch(
        &mut self,
        name: String,
        cpu: Option<usize>,
        turns: Box<dyn ThreadWork>,
    ) -> io::Result<Option<JoinHandle<()>>>;
}

/// Starts threads of the system.
pub(crate) struct SystemThreadLauncher;

impl ThreadLauncher for SystemThreadLauncher {
    fn machine(&self) -> MachineResources {
        MachineResources::here()
    }

    fn launch(
        &mut self,
        name: String,
        cpu: Option<usize>,
        mut turns: Box<dyn ThreadWork>,
    ) -> io::Result<Option<JoinHandle<()>>> {
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            pin(cpu);
            turns.run();
        });
        thread.map(Some)
    }
}

/// Binds the calling thread to `cpu`, if one is given. A refusal is logged as a warning.
pub(crate) fn pin(cpu: Option<usize>) {
    let Some(cpu) = cpu else { return };
    let mut set = CpuSet::new();
    set.set(cpu);
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        tracing::warn!("cannot bind a thread to CPU {cpu} ({error}); it runs where the system puts it");
    }
}
