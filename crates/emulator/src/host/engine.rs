//! Threads that drive hosts.
use super::{Finished, Host};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use weir_port::Ready;
use weir_port::event::{EventFd, wait_any};
use weir_scenario::Scenario;
use weir_units::{Clock, Instant, SystemClock};

/// Threads of hosts at most: more would take time from the switches.
const MAX_THREADS: usize = 4;

/// Hosts on running threads.
pub(crate) struct Engines {
    threads: Vec<Engine>,
}

struct Engine {
    commands: Sender<Command>,
    wake: Arc<EventFd>,
    thread: JoinHandle<Vec<(usize, Finished)>>,
}

enum Command {
    /// Traffic begins now.
    Start(Arc<Scenario>, Instant),
    /// Ends the thread.
    Stop,
}

impl Engines {
    /// Spreads `hosts` over threads and starts them; indices of items of traffic that were sent to their end come out of
    /// `done`.
    pub(crate) fn start(hosts: Vec<Host>, clock: SystemClock, done: &Sender<usize>) -> io::Result<Engines> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let count = hosts.len().min(cores).clamp(1, MAX_THREADS);
        let mut shares: Vec<Vec<(usize, Host)>> = (0..count).map(|_| Vec::new()).collect();
        for (index, host) in hosts.into_iter().enumerate() {
            shares[index % count].push((index, host));
        }
        // Should a thread not start, those before it are stopped by the drop.
        let mut engines = Engines { threads: Vec::new() };
        for (number, hosts) in shares.into_iter().enumerate() {
            engines.threads.push(Engine::start(number, hosts, clock, done.clone())?);
        }
        Ok(engines)
    }

    /// Begins the scenario's traffic.
    pub(crate) fn begin(&self, scenario: &Arc<Scenario>, start: Instant) {
        for engine in &self.threads {
            engine.tell(Command::Start(Arc::clone(scenario), start));
        }
    }

    /// Ends the threads; what is left of each host, by its index. A thread that panicked gives nothing and is reported.
    pub(crate) fn stop(&mut self) -> Vec<(usize, Finished)> {
        self.threads.drain(..).flat_map(Engine::stop).collect()
    }
}

impl Drop for Engines {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Engine {
    fn start(number: usize, hosts: Vec<(usize, Host)>, clock: SystemClock, done: Sender<usize>) -> io::Result<Engine> {
        let (commands, orders) = unbounded();
        let wake = Arc::new(EventFd::new()?);
        let mut hosts = Hosts { hosts, clock, orders, wake: Arc::clone(&wake), done };
        let thread = std::thread::Builder::new().name(format!("weir-hosts-{number}")).spawn(move || {
            hosts.run();
            hosts.finish()
        })?;
        Ok(Engine { commands, wake, thread })
    }

    fn tell(&self, command: Command) {
        // A thread that has ended is reported when it is joined.
        let _ = self.commands.send(command);
        self.wake.signal();
    }

    fn stop(self) -> Vec<(usize, Finished)> {
        self.tell(Command::Stop);
        self.thread.join().unwrap_or_else(|_| {
            tracing::error!("a thread of hosts panicked; what its hosts measured is lost");
            Vec::new()
        })
    }
}

/// What a thread owns.
struct Hosts {
    hosts: Vec<(usize, Host)>,
    clock: SystemClock,
    orders: Receiver<Command>,
    wake: Arc<EventFd>,
    done: Sender<usize>,
}

impl Hosts {
    fn run(&mut self) {
        let mut done = Vec::new();
        loop {
            for order in self.orders.try_iter() {
                match order {
                    Command::Start(scenario, start) => {
                        self.hosts.iter_mut().for_each(|(index, host)| host.start(&scenario, *index, start));
                    }
                    Command::Stop => return,
                }
            }
            let mut next = Instant::FAR;
            for (_, host) in &mut self.hosts {
                host.receive(self.clock.now());
                next = next.min(host.poll(self.clock.now(), &mut done));
            }
            for item in done.drain(..) {
                // Nobody listens any more: the lab is ending.
                let _ = self.done.send(item);
            }
            self.sleep(next);
        }
    }

    /// Waits for a frame, an order or `until`.
    fn sleep(&mut self, until: Instant) {
        let timeout = until.since(self.clock.now());
        let ready = self.hosts.iter_mut().any(|(_, host)| host.arm() == Ready::Now);
        if timeout == Duration::ZERO || ready {
            return;
        }
        let ports = self.hosts.iter().filter_map(|(_, host)| host.fd());
        let fds: Vec<_> = ports.chain([self.wake.as_fd()]).collect();
        wait_any(&fds, (until != Instant::FAR).then_some(timeout));
        self.wake.drain();
    }

    fn finish(self) -> Vec<(usize, Finished)> {
        self.hosts.into_iter().map(|(index, host)| (index, host.finish())).collect()
    }
}
