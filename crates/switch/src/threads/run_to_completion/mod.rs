//! Runs to completion on several threads. Each thread does everything for its ports, including the engine's thread,
//! which also serves controllers.
//!
//! Ports are assigned to threads by number as configured ([`PortAssignment`]); other ports go to the thread with the
//! fewest. A flow arrives on one port, so one thread handles it, and its order is kept. The threads share the tables
//! like a pipeline's workers ([`super::sharded_lock`]). They transmit to each other's ports under the port's lock
//! ([`port`]), and do other work while the lock is taken.
mod forwarder;
mod port;
mod port_assignment;
mod port_contention;
mod port_registry;
mod sender;
#[cfg(test)]
mod tests;

pub use port_assignment::PortAssignment;

use super::pipeline::{MAX_NOTES, WorkerMessage, WorkerThreadSetup};
use super::removed_ports::RemovedPortDrops;
use super::sharded_lock::ShardWriter;
use super::worker_context::{WorkerContext, WorkerCounters};
use crate::engine::wake::ThreadWaker;
use crate::snapshot::WorkerSnapshot;
use crate::spin::SpinState;
use crossbeam_channel::Receiver;
use forwarder::{ForwarderThread, ThreadPortView};
use port::{PortRegistration, SharedPort, SharedPortHandle};
use port_contention::PortContention;
use port_registry::PortRegistry;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use weir_datapath::perf::Perf;
use weir_datapath::{Datapath, DatapathOutput, Drops};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool, SharedBuffers};
use weir_port::Port;
use weir_units::{Clock, Instant};

/// Number of the engine's thread.
const ENGINE: usize = 0;

/// The engine's end of the threads.
pub(crate) struct RunToCompletion {
    /// The engine's own part of forwarding.
    hand: WorkerContext,
    board: Arc<PortRegistry>,
    deal: PortAssignment,
    notes: Receiver<WorkerMessage>,
    /// Counters by thread.
    counters: Vec<Arc<WorkerCounters>>,
    /// Threads other than the engine's.
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    depot: Arc<SharedBuffers>,
    gone: RemovedPortDrops,
    engine: Arc<ThreadWaker>,
    /// Flag of the engine's thread for ports in use.
    hindered: Arc<PortContention>,
    hindered_rounds: u32,
}

impl RunToCompletion {
    /// Starts the threads next to the engine's. They begin to forward with [`ShardWriter::share`].
    ///
    /// # Errors
    /// Fails if the process has no descriptor or thread left.
    pub(crate) fn start(
        start: WorkerThreadSetup<'_>,
        tables: &mut ShardWriter<Datapath>,
    ) -> io::Result<RunToCompletion> {
        let WorkerThreadSetup { config, name, clock, spin, engine, depot, gone, threads: launch } = start;
        let (tell, notes) = crossbeam_channel::bounded(MAX_NOTES);
        let mut wakers = vec![Arc::clone(&engine)];
        for _ in 1..config.workers {
            wakers.push(Arc::new(ThreadWaker::new()?));
        }
        let board = Arc::new(PortRegistry::new(wakers));
        let stop = Arc::<AtomicBool>::default();
        let counters: Vec<_> = (0..config.workers).map(|_| Arc::<WorkerCounters>::default()).collect();
        let guests = tables.add_readers(config.workers);
        let hands = guests.into_iter().zip(&counters).map(|(guest, counters)| {
            let own = tables.get().add_worker();
            WorkerContext::new(guest, own, tell.clone(), Arc::clone(counters), Arc::clone(&engine))
        });
        let mut hands: Vec<WorkerContext> = hands.collect();
        let others = hands.split_off(1);
        let hand = hands.pop().ok_or_else(|| io::Error::other("no thread is to forward"))?;
        let deal = config.deal.clone();
        let (threads, hindered, hindered_rounds) = (Vec::new(), Arc::default(), 0);
        let mut several = RunToCompletion {
            hand,
            board,
            deal,
            notes,
            counters,
            threads,
            stop,
            depot,
            gone,
            engine,
            hindered,
            hindered_rounds,
        };
        for (number, hand) in (1..).zip(others) {
            let forwarder = Box::new(ForwarderThread {
                thread: number,
                hand,
                board: Arc::clone(&several.board),
                waker: several.board.waker(number),
                stop: Arc::clone(&several.stop),
                clock,
                spinner: SpinState::new(spin, clock.now()),
                pool: FramePool::shared(&several.depot, number),
                burst: config.bursts.rx_read,
                seen: ThreadPortView::new(several.gone.clone()),
            });
            let cpu = config.cpus.0.get(number).copied();
            several.threads.extend(launch.launch(format!("{name}-thread{number}"), cpu, forwarder)?);
        }
        Ok(several)
    }

    /// Returns the engine's frame pool, which exchanges buffers with the other threads' pools.
    pub(crate) fn pool(&self) -> FramePool {
        FramePool::shared(&self.depot, ENGINE)
    }

    /// Assigns a port to a thread and returns the port that the engine uses instead.
    pub(crate) fn share(&self, number: PortNo, port: Box<dyn Port>) -> Box<dyn Port> {
        let thread = self.deal.thread_of(number).unwrap_or_else(|| self.board.least());
        let owner = self.board.waker(thread);
        let common =
            Arc::new(SharedPort::new(number, port, thread, (owner, Arc::clone(&self.engine)), self.gone.clone()));
        let listed = PortRegistration::new(&common, &self.board);
        Box::new(SharedPortHandle::of_engine(common, Arc::clone(&self.hindered), thread == ENGINE, listed))
    }

    /// Waits briefly if the engine had no work only because ports were in use. Returns true if it waited.
    pub(crate) fn wait_if_contended(&mut self) -> bool {
        self.hindered.wait(&mut self.hindered_rounds)
    }

    /// Runs the frames received on one of the engine's own ports through the flow tables.
    #[inline]
    pub(crate) fn forward(
        &mut self,
        now: Instant,
        port: PortNo,
        frames: &mut Vec<Frame>,
        (pool, out): (&mut FramePool, &mut DatapathOutput),
        tables: &mut ShardWriter<Datapath>,
    ) {
        let WorkerContext { tables: seat, own, .. } = &mut self.hand;
        let count = frames.len();
        // The engine may already have exclusive access to the tables in this round.
        let beside = |datapath: &Datapath| datapath.forward(own, now, port, frames, pool, out);
        if tables.has_exclusive() || seat.read_shared(|| false, beside) == Some(false) {
            tables.get().process_for(own, now, port, frames, pool, out);
        }
        self.hand.count_burst(count);
    }

    /// Returns true if a thread has ended, which happens only by a panic.
    pub(crate) fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Moves a bounded number of the other threads' messages for controllers to `out`. Returns true if there were
    /// any.
    pub(crate) fn take_notes(&mut self, out: &mut DatapathOutput) -> bool {
        WorkerMessage::take(&self.notes, out)
    }

    /// Returns true if other threads have left no work for the engine.
    pub(crate) fn is_idle(&self) -> bool {
        self.notes.is_empty()
    }

    /// Returns the packets that each thread dropped while sharing the tables. The datapath counts the others.
    pub(crate) fn drops(&self) -> Vec<Drops> {
        let read = |counters: &Arc<WorkerCounters>| *counters.drops.lock().unwrap_or_else(PoisonError::into_inner);
        self.counters.iter().map(read).collect()
    }

    /// Starts or stops measuring the threads' times, from each thread's next burst.
    pub(crate) fn watch(&mut self, is_watched: bool) {
        self.hand.own.watch_mut().watch(is_watched);
        self.counters[1..].iter().for_each(|counters| counters.is_watched.store(is_watched, Ordering::Relaxed));
    }

    /// Returns the stopwatch of the engine's own part.
    pub(crate) fn own_watch(&mut self) -> &mut weir_datapath::perf::Stopwatch {
        self.hand.own.watch_mut()
    }

    /// Returns the times that the other threads have measured so far.
    pub(crate) fn perf(&self) -> Vec<Perf> {
        let read =
            |counters: &Arc<WorkerCounters>| counters.perf.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.counters[1..].iter().map(read).collect()
    }

    /// Returns the state of all threads at this moment.
    pub(crate) fn snapshot(&self) -> Vec<WorkerSnapshot> {
        let snapshot = |(thread, counters): (usize, &Arc<WorkerCounters>)| WorkerSnapshot {
            ports: self.board.ports_of(thread),
            ..counters.snapshot(thread)
        };
        self.counters.iter().enumerate().map(snapshot).collect()
    }
}

impl Drop for RunToCompletion {
    /// Ends the threads.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for (number, thread) in (1..).zip(self.threads.drain(..)) {
            self.board.waker(number).wake();
            if thread.join().is_err() {
                tracing::error!("a thread of the switch panicked; its message is above");
            }
        }
    }
}
