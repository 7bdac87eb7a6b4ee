//! A pipeline's threads: the engine's, which receives and transmits, and its workers.
use super::batch::Rule;
use super::outlet::Outlet;
use super::policy::Steering;
use super::rx::Rx;
use super::seats::{Guest, Owner};
use super::tx::Tx;
use super::worker::Stage;
use super::{Machine, ThreadsConfig};
use crate::engine::wake::Waker;
use crate::snapshot::WorkerSnapshot;
use crate::spin::{Spin, Spinner, Wait};
use crossbeam_channel::{Receiver, Sender};
use rtrb::RingBuffer;
use rustix::thread::CpuSet;
use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_datapath::perf::Perf;
use weir_datapath::{ChannelId, Datapath, Drops, Output};
use weir_openflow::Message;
use weir_packet::{Depot, FramePool};
use weir_units::{Clock, Instant, SystemClock};

/// Packet-ins on their way from workers to the engine at most; what is beyond is dropped and counted.
const MAX_NOTES: usize = 1024;
/// A sleeping worker looks this often whether it was forgotten: it never should be.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// The engine's end.
pub(crate) struct Pipeline {
    pub(crate) rx: Rx,
    pub(crate) tx: Tx,
    /// Frames read from a port at once.
    pub(crate) read: usize,
    notes: Receiver<Note>,
    workers: Vec<WorkerThread>,
    stop: Arc<AtomicBool>,
    depot: Arc<Depot>,
}

/// What starts a pipeline.
pub(crate) struct Start<'a> {
    pub(crate) config: &'a ThreadsConfig,
    /// The switch's name.
    pub(crate) name: &'a str,
    pub(crate) clock: SystemClock,
    pub(crate) spin: Spin,
    /// Wakes the engine.
    pub(crate) engine: Arc<Waker>,
}

/// What a worker tells the engine, besides frames.
enum Note {
    Message(ChannelId, Message),
    /// Packet-ins that a channel did not get since it is at its rate limit.
    Limited(ChannelId, u64),
}

/// A worker, as the engine sees it.
struct WorkerThread {
    thread: Option<JoinHandle<()>>,
    waker: Arc<Waker>,
    counters: Arc<Counters>,
}

/// What a worker counts, for others to read.
#[derive(Debug, Default)]
struct Counters {
    frames: AtomicU64,
    bursts: AtomicU64,
    /// Frames dropped since the ring to the worker was full.
    full_in: Arc<AtomicU64>,
    /// Frames dropped since the ring from the worker was full.
    full_out: Arc<AtomicU64>,
    /// Packet-ins dropped since too many were on their way to the engine.
    full_notes: AtomicU64,
    /// Packets dropped beside others; as of a short while ago.
    drops: Mutex<Drops>,
    /// Whether somebody looks where its time goes.
    is_watched: AtomicBool,
    /// What it measured, while somebody looks.
    perf: Mutex<Perf>,
}

/// A worker, on its thread.
struct Worker {
    stage: Stage,
    tables: Guest<Datapath>,
    /// Its part of the datapath.
    own: weir_datapath::Worker,
    /// Packets in [`Counters::drops`].
    told_drops: u64,
    pool: FramePool,
    notes: Sender<Note>,
    counters: Arc<Counters>,
    waker: Arc<Waker>,
    engine: Arc<Waker>,
    stop: Arc<AtomicBool>,
    clock: SystemClock,
    spinner: Spinner,
}

impl Pipeline {
    /// Starts the workers; they work from [`Owner::share`] on.
    ///
    /// # Errors
    /// The process has no descriptor or thread left.
    pub(crate) fn start(start: Start<'_>, tables: &mut Owner<Datapath>) -> io::Result<Pipeline> {
        let Start { config, name, clock, spin, engine } = start;
        let rule = |burst, turns| Rule { burst, turns, time: config.flush_time };
        let io_rule = |burst| rule(burst, config.io_loop_count);
        let bursts = config.bursts;
        let (tell, notes) = crossbeam_channel::bounded(MAX_NOTES);
        let (mut to_workers, mut from_workers, mut stages) = (Vec::new(), Vec::new(), Vec::new());
        let mut workers = Vec::new();
        for _ in 0..config.workers {
            let waker = Arc::new(Waker::new()?);
            let counters = Arc::<Counters>::default();
            let ((to_worker, from_rx), (to_tx, from_worker)) =
                (RingBuffer::new(config.ring_size), RingBuffer::new(config.ring_size));
            let full_in = Arc::clone(&counters.full_in);
            to_workers.push(Outlet::new(io_rule(bursts.rx_write), to_worker, Arc::clone(&waker), full_in));
            let worker_rule = rule(bursts.worker_write, config.worker_loop_count);
            let outlet = Outlet::new(worker_rule, to_tx, Arc::clone(&engine), Arc::clone(&counters.full_out));
            stages.push(Stage::new(bursts.worker_read, from_rx, outlet));
            from_workers.push(from_worker);
            workers.push(WorkerThread { thread: None, waker, counters });
        }
        let steering = Steering::new(config.policy, config.classes.clone(), config.workers);
        let mut pipeline = Pipeline {
            rx: Rx::new(steering, to_workers),
            tx: Tx::new(io_rule(bursts.tx_write), bursts.tx_read, from_workers),
            read: bursts.rx_read,
            notes,
            workers,
            stop: Arc::default(),
            depot: Arc::default(),
        };
        let guests = tables.invite(config.workers);
        for (number, (stage, guest)) in stages.into_iter().zip(guests).enumerate() {
            let known = &mut pipeline.workers[number];
            let worker = Worker {
                stage,
                tables: guest,
                own: tables.get().add_worker(),
                told_drops: 0,
                pool: FramePool::shared(&pipeline.depot),
                notes: tell.clone(),
                counters: Arc::clone(&known.counters),
                waker: Arc::clone(&known.waker),
                engine: Arc::clone(&engine),
                stop: Arc::clone(&pipeline.stop),
                clock,
                spinner: Spinner::new(spin, clock.now()),
            };
            let cpu = config.cpus.0.get(1 + number).copied();
            let thread = std::thread::Builder::new().name(format!("{name}-worker{number}"));
            known.thread = Some(thread.spawn(move || {
                pin(cpu);
                worker.run();
            })?);
        }
        config.warnings(&Machine::here()).iter().for_each(|warning| tracing::warn!("{warning}"));
        Ok(pipeline)
    }

    /// A pool that exchanges buffers with the workers'.
    pub(crate) fn pool(&self) -> FramePool {
        FramePool::shared(&self.depot)
    }

    /// Moves what workers tell controllers to `out`, a bounded number. Whether there was anything.
    pub(crate) fn take_notes(&mut self, out: &mut Output) -> bool {
        let mut any = false;
        for note in self.notes.try_iter().take(MAX_NOTES) {
            any = true;
            match note {
                Note::Message(channel, message) => out.messages.push((channel, message)),
                Note::Limited(channel, count) => out.limited.push((channel, count)),
            }
        }
        any
    }

    /// Whether no frame waits for a burst to fill.
    pub(crate) fn is_flushed(&self) -> bool {
        self.rx.is_empty() && self.tx.is_flushed()
    }

    /// Whether there is nothing for the engine to do.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_flushed() && self.tx.is_empty() && self.notes.is_empty()
    }

    /// Whether a worker ended by itself, which it does only by panicking.
    pub(crate) fn has_failed(&self) -> bool {
        self.workers.iter().any(|worker| worker.thread.as_ref().is_some_and(JoinHandle::is_finished))
    }

    /// Packets that workers dropped beside each other; the datapath knows of the others.
    pub(crate) fn drops(&self) -> Vec<Drops> {
        let read = |worker: &WorkerThread| *worker.counters.drops.lock().unwrap_or_else(PoisonError::into_inner);
        self.workers.iter().map(read).collect()
    }

    /// Begins or ends to measure where the workers' time goes, from each one's next burst on.
    pub(crate) fn watch(&self, is_watched: bool) {
        self.workers.iter().for_each(|worker| worker.counters.is_watched.store(is_watched, Ordering::Relaxed));
    }

    /// What the workers measured so far.
    pub(crate) fn perf(&self) -> Vec<Perf> {
        let read = |worker: &WorkerThread| worker.counters.perf.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.workers.iter().map(read).collect()
    }

    /// The workers at this moment.
    pub(crate) fn snapshot(&self) -> Vec<WorkerSnapshot> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let snapshot = |(worker, thread): (usize, &WorkerThread)| WorkerSnapshot {
            worker,
            frames: read(&thread.counters.frames),
            bursts: read(&thread.counters.bursts),
            waiting: self.rx.waiting(worker),
            waiting_to_leave: self.tx.waiting(worker),
            ring_full: read(&thread.counters.full_in),
            transmit_ring_full: read(&thread.counters.full_out),
            packet_ins_dropped: read(&thread.counters.full_notes),
        };
        self.workers.iter().enumerate().map(snapshot).collect()
    }
}

impl Drop for Pipeline {
    /// Ends the workers. Frames under way are dropped.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for worker in &mut self.workers {
            worker.waker.wake();
            if worker.thread.take().is_some_and(|thread| thread.join().is_err()) {
                tracing::error!("a worker of the switch panicked; its message is above");
            }
        }
    }
}

impl Worker {
    fn run(mut self) {
        // As the engine: a wake-up is not to be late to save power.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        while !self.is_over() {
            let now = self.clock.now();
            if self.turn(now) {
                self.spinner.found(now);
            } else if self.stage.is_idle() {
                self.wait(now);
            } else {
                std::hint::spin_loop();
            }
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether there were any frames.
    #[inline]
    fn turn(&mut self, now: Instant) -> bool {
        let frames = self.stage.read();
        if frames > 0 {
            self.forward(now);
            count(&self.counters.frames, frames as u64);
            count(&self.counters.bursts, 1);
            self.tell_drops();
            self.tell_perf();
        }
        self.stage.write(now, &mut self.pool);
        frames > 0
    }

    fn forward(&mut self, now: Instant) {
        let Worker { stage, tables, own, pool, stop, .. } = self;
        let is_over = || stop.load(Ordering::Relaxed);
        stage.process(pool, |port, frames, pool, out| {
            // Most packets leave as they are, beside those of other workers; for the rest it takes the tables alone.
            let beside = |datapath: &Datapath| datapath.forward(own, now, port, frames, pool, out);
            if tables.beside(is_over, beside) == Some(false) {
                // Without it this is the end: what is left of the frames is dropped with them.
                tables.alone(is_over, |datapath| datapath.process_for(own, now, port, frames, pool, out));
            }
        });
        if !self.stage.out.messages.is_empty() || !self.stage.out.limited.is_empty() {
            self.tell();
        }
    }

    /// Tells the engine of packets that were dropped.
    #[inline]
    fn tell_drops(&mut self) {
        let drops = self.own.drops();
        if drops.total() != self.told_drops {
            self.told_drops = drops.total();
            *self.counters.drops.lock().unwrap_or_else(PoisonError::into_inner) = drops;
        }
    }

    /// Begins or ends measuring as was asked, and tells what was measured.
    #[inline]
    fn tell_perf(&mut self) {
        let is_watched = self.counters.is_watched.load(Ordering::Relaxed);
        if is_watched || self.own.watch().is_on() {
            self.measured(is_watched);
        }
    }

    #[cold]
    fn measured(&mut self, is_watched: bool) {
        if self.own.watch().is_on() != is_watched {
            self.own.watch_mut().watch(is_watched);
        }
        self.counters.perf.lock().unwrap_or_else(PoisonError::into_inner).clone_from(self.own.watch().perf());
    }

    /// Hands packet-ins to the engine.
    #[cold]
    fn tell(&mut self) {
        let out = &mut self.stage.out;
        let messages = out.messages.drain(..).map(|(channel, message)| Note::Message(channel, message));
        let limited = out.limited.drain(..).map(|(channel, count)| Note::Limited(channel, count));
        for note in messages.chain(limited) {
            if self.notes.try_send(note).is_err() {
                count(&self.counters.full_notes, 1);
            }
        }
        self.engine.wake();
    }

    fn wait(&mut self, now: Instant) {
        match self.spinner.wait(now) {
            Wait::Look => std::hint::spin_loop(),
            Wait::GiveWay => {
                let from = self.clock.now();
                std::thread::yield_now();
                self.spinner.gave_way(from, self.clock.now());
            }
            Wait::Sleep => {
                self.waker.about_to_sleep();
                // What came before others knew that it sleeps is found here.
                if self.stage.is_idle() && !self.is_over() {
                    self.waker.sleep(std::iter::empty(), None, SLEEP_MAX);
                }
                self.waker.awake();
            }
        }
    }
}

/// Adds to a counter that only this thread writes.
#[inline]
fn count(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
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
