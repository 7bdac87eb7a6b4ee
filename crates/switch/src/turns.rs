//! The loop of every thread of the packet path: turns while there is something to do, sleep when there is nothing.
//!
//! What a thread does is in steps that return: [`Turns::run`] repeats them on a thread of its own, and a scheduler that
//! a seed drives (`crate::schedules`) takes them one by one, of all threads in any order.
use crate::threads::Machine;
use rustix::thread::CpuSet;
use std::io;
use std::num::NonZeroU64;
use std::thread::JoinHandle;
use std::time::Duration;
use weir_units::Instant;

/// What follows a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Another turn at once.
    Turn,
    /// Sleep: there was nothing to do for long enough.
    Sleep,
}

/// A sleep that was announced to all that could end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sleep {
    /// Its beginning.
    pub(crate) from: Instant,
    /// Its length, if nothing comes.
    pub(crate) timeout: Duration,
    /// When a frame or message that is held back is to be released; [`Instant::FAR`] if none is.
    pub(crate) release: Instant,
}

/// What one thread does, in steps that return.
pub(crate) trait Turns: Send {
    /// Whether the thread is to end.
    fn is_over(&self) -> bool;

    /// One turn, a bounded amount of work.
    fn turn(&mut self) -> Next;

    /// Announces that the thread sleeps, so that whatever comes from now on wakes it; none if something has come
    /// already.
    fn fall_asleep(&mut self) -> Option<Sleep>;

    /// Waits until something comes, `timeout` at most. Whether something came.
    fn wait(&mut self, timeout: Duration) -> bool;

    /// Ends what [`Turns::fall_asleep`] announced; with the sleep, if there was one.
    fn wake_up(&mut self, slept: Option<Sleep>);

    /// Takes turns on the calling thread until they are over.
    fn run(&mut self) {
        // Linux may wake a thread 50 us late to save power; shaped ports promise more. A refusal costs only that.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        while !self.is_over() {
            if self.turn() == Next::Turn {
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

/// What starts threads: the system, or a scheduler that keeps what they would do.
pub(crate) trait Launch {
    /// The machine that has the threads.
    fn machine(&self) -> Machine;

    /// Takes what a thread is to do, with its name and the CPU that it is bound to. Gives the thread, if there is one.
    ///
    /// # Errors
    /// The process has no thread left.
    fn launch(&mut self, name: String, cpu: Option<usize>, turns: Box<dyn Turns>)
    -> io::Result<Option<JoinHandle<()>>>;
}

/// Threads of the system.
pub(crate) struct SystemThreads;

impl Launch for SystemThreads {
    fn machine(&self) -> Machine {
        Machine::here()
    }

    fn launch(
        &mut self,
        name: String,
        cpu: Option<usize>,
        mut turns: Box<dyn Turns>,
    ) -> io::Result<Option<JoinHandle<()>>> {
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            pin(cpu);
            turns.run();
        });
        thread.map(Some)
    }
}

/// Binds the calling thread to a CPU, if one is named.
pub(crate) fn pin(cpu: Option<usize>) {
    let Some(cpu) = cpu else { return };
    let mut set = CpuSet::new();
    set.set(cpu);
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        tracing::warn!("cannot bind a thread to CPU {cpu} ({error}); it runs where the system puts it");
    }
}
