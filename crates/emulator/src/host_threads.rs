//! Runs threads that drive hosts.
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use weir_network::{HostResult, StackHost};
use weir_port::ReceiveReadiness;
use weir_port::event::{EventFd, wait_any};
use weir_scenario::Scenario;
use weir_units::{Clock, Instant, SystemClock};

/// Most threads of hosts: more would take processor time from the switches.
const MAX_THREADS: usize = 4;

/// Longest time for which a thread waits for the others before traffic begins.
const PATIENCE: Duration = Duration::from_secs(1);

/// Hosts on running threads.
pub(crate) struct HostThreads {
    threads: Vec<HostThread>,
}

struct HostThread {
    commands: Sender<HostThreadCommand>,
    wake: Arc<EventFd>,
    thread: JoinHandle<Vec<(usize, HostResult)>>,
}

enum HostThreadCommand {
    /// Tells the hosts' addresses to the network.
    Announce,
    /// Begins the traffic at this time, once all threads are ready.
    Start(Arc<Scenario>, Instant, ThreadsReady),
    /// Ends the thread.
    Stop,
}

/// Makes threads wait for each other: a connection request must not come before its server listens on another thread.
struct ThreadsReady {
    /// Dropped when the thread is ready.
    ready: Sender<()>,
    /// Closed when all threads are ready.
    all_ready: Receiver<()>,
}

impl ThreadsReady {
    fn wait(self) {
        drop(self.ready);
        // Nothing is sent: the other end is dropped, also by a thread that has ended.
        let _ = self.all_ready.recv_timeout(PATIENCE);
    }
}

impl HostThreads {
    /// Spreads `hosts` over threads and starts them. The threads send to `done` the index of each item of traffic
    /// that has been sent completely.
    ///
    /// # Errors
    /// The system refuses a thread or a descriptor.
    pub(crate) fn start(hosts: Vec<StackHost>, clock: SystemClock, done: &Sender<usize>) -> io::Result<HostThreads> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let count = hosts.len().min(cores).clamp(1, MAX_THREADS);
        let mut shares: Vec<Vec<(usize, StackHost)>> = (0..count).map(|_| Vec::new()).collect();
        for (index, mut host) in hosts.into_iter().enumerate() {
            host.keep_times();
            shares[index % count].push((index, host));
        }
        // If a thread does not start, dropping `engines` stops those before it.
        let mut engines = HostThreads { threads: Vec::new() };
        for (number, hosts) in shares.into_iter().enumerate() {
            engines.threads.push(HostThread::start(number, hosts, clock, done.clone())?);
        }
        Ok(engines)
    }

    /// Makes all hosts tell their addresses to the network.
    pub(crate) fn announce(&self) {
        self.threads.iter().for_each(|thread| thread.tell(HostThreadCommand::Announce));
    }

    /// Begins the scenario's traffic at time `start`.
    pub(crate) fn begin(&self, scenario: &Arc<Scenario>, start: Instant) {
        let ((ready, each_ready), (closed_when_ready, all_ready)) = (unbounded(), unbounded());
        for engine in &self.threads {
            let ready = ThreadsReady { ready: ready.clone(), all_ready: all_ready.clone() };
            engine.tell(HostThreadCommand::Start(Arc::clone(scenario), start, ready));
        }
        drop(ready);
        let _ = each_ready.recv_timeout(PATIENCE);
        drop(closed_when_ready);
    }

    /// Ends the threads. Returns the results of each host with its index. Results of a thread that panicked are lost,
    /// which is logged.
    pub(crate) fn stop(&mut self) -> Vec<(usize, HostResult)> {
        self.threads.drain(..).flat_map(HostThread::stop).collect()
    }
}

impl Drop for HostThreads {
    fn drop(&mut self) {
        self.stop();
    }
}

impl HostThread {
    fn start(
        number: usize,
        hosts: Vec<(usize, StackHost)>,
        clock: SystemClock,
        done: Sender<usize>,
    ) -> io::Result<HostThread> {
        let (commands, orders) = unbounded();
        let wake = Arc::new(EventFd::new()?);
        let mut hosts = HostThreadState { hosts, clock, orders, wake: Arc::clone(&wake), done };
        let thread = std::thread::Builder::new().name(format!("weir-hosts-{number}")).spawn(move || {
            hosts.run();
            hosts.finish()
        })?;
        Ok(HostThread { commands, wake, thread })
    }

    fn tell(&self, command: HostThreadCommand) {
        // Fails if the thread has ended, which is reported when it is joined.
        let _ = self.commands.send(command);
        self.wake.signal();
    }

    fn stop(self) -> Vec<(usize, HostResult)> {
        self.tell(HostThreadCommand::Stop);
        self.thread.join().unwrap_or_else(|_| {
            tracing::error!("a thread of hosts panicked; what its hosts measured is lost");
            Vec::new()
        })
    }
}

/// State of one thread.
struct HostThreadState {
    hosts: Vec<(usize, StackHost)>,
    clock: SystemClock,
    orders: Receiver<HostThreadCommand>,
    wake: Arc<EventFd>,
    done: Sender<usize>,
}

impl HostThreadState {
    fn run(&mut self) {
        // By default Linux may wake a thread 50 us late to save power: too late for packets that are due.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut done = Vec::new();
        loop {
            for order in self.orders.try_iter() {
                match order {
                    HostThreadCommand::Announce => self.hosts.iter_mut().for_each(|(_, host)| host.announce()),
                    HostThreadCommand::Start(scenario, start, ready) => {
                        self.hosts.iter_mut().for_each(|(index, host)| host.start(&scenario, *index, start));
                        ready.wait();
                    }
                    HostThreadCommand::Stop => return,
                }
            }
            let mut next = Instant::FAR;
            for (_, host) in &mut self.hosts {
                host.receive(self.clock.now());
                next = next.min(host.poll(self.clock.now(), &mut done));
            }
            for item in done.drain(..) {
                // Fails if the receiver is gone because the lab is ending.
                let _ = self.done.send(item);
            }
            self.sleep(next);
        }
    }

    /// Waits for a frame, a command or time `until`.
    fn sleep(&mut self, until: Instant) {
        let timeout = until.since(self.clock.now());
        let ready = self.hosts.iter_mut().any(|(_, host)| host.arm() == ReceiveReadiness::Now);
        if timeout == Duration::ZERO || ready {
            return;
        }
        let ports = self.hosts.iter().filter_map(|(_, host)| host.fd());
        let fds: Vec<_> = ports.chain([self.wake.as_fd()]).collect();
        wait_any(&fds, (until != Instant::FAR).then_some(timeout));
        self.wake.drain();
    }

    fn finish(self) -> Vec<(usize, HostResult)> {
        self.hosts.into_iter().map(|(index, host)| (index, host.finish())).collect()
    }
}
