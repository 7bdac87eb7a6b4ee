//! Adds sockets, a clock and threads to the hub.
//!
//! Each thread has a loop of its own ([`shard`]) with a hub and an application for its switches. A switch stays with
//! its thread. New switches go to the thread with the fewest. An auxiliary connection goes to the thread of its main
//! connection as soon as the switch has said which that is. Switches are not moved later: what an application has
//! learned of them would have to move along.
//!
//! An application that panics takes its thread's switches with it, and no others. They are closed and can connect
//! again; a new application serves them.
mod embedded;
mod link;
mod listener;
mod load;
mod poller;
mod shard;

use crate::hub::registry::SwitchRegistry;
use crate::hub::{ControllerHub, ControllerSnapshot, Mastership, Observer};
use crate::status::ControllerOverview;
use crate::{AppWaker, ControllerApp, ListenAddress};
use link::SwitchStream;
use listener::ControllerListener;
pub use listener::bind_unix;
use load::ThreadLoad;
use poller::PollerWaker;
use shard::{Shard, ShardBuffers, ShardOrder};
use std::io;
use std::os::unix::net::UnixStream;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_openflow::session::SessionConfig;
use weir_tls::Credentials;
use weir_units::{Clock, Instant, SystemClock};

pub use embedded::EmbeddedStream;

/// Most threads of a controller.
pub const MAX_THREADS: usize = 256;
/// Output that a session of a controller holds by default, in bytes. A switch that reads is never this far behind.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// Configuration of a controller. `..ControllerConfig::default()` fills in defaults.
pub struct ControllerConfig {
    /// Addresses to listen on. Default: none, for a controller of switches in this process only.
    pub listen: Vec<ListenAddress>,
    /// Private key, certificate and the CA of the switches; needed for [`ListenAddress::Ssl`].
    pub tls: Option<weir_tls::TlsFiles>,
    /// Settings of its sessions: OpenFlow versions, echo interval, most output held.
    pub session: SessionConfig,
    /// Role that it wants among the controllers of a switch.
    pub mastership: Mastership,
    /// Most connections at a time; further ones are refused. Threads have equal parts of it.
    pub max_connections: usize,
    /// Threads, each with its own switches and its own application, `1..=256`. More than one need
    /// [`Controller::start_threads`]. Default: 1.
    pub threads: usize,
    /// Time for which a thread that has nothing to do asks for more instead of sleeping. It then uses its processor
    /// fully. Default: zero.
    pub spin: Duration,
    /// Callback for events of switches, called on the controller's threads, by one at a time.
    pub observer: Option<Observer>,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        ControllerConfig {
            listen: Vec::new(),
            tls: None,
            session: SessionConfig { max_output_bytes: MAX_OUTPUT_BYTES, ..SessionConfig::default() },
            mastership: Mastership::Equal,
            max_connections: 1024,
            threads: 1,
            spin: Duration::ZERO,
            observer: None,
        }
    }
}

/// Makes the application of a thread. It is given the thread's number, from 0, and what wakes the thread. It is called
/// again for a thread whose application has panicked.
pub type AppFactory = Box<dyn Fn(usize, AppWaker) -> Box<dyn ControllerApp> + Send + Sync>;

/// Running controller. Dropping it stops it.
pub struct Controller {
    /// Addresses in use, where port 0 is replaced by the actual port.
    addresses: Vec<ListenAddress>,
    handover: Arc<Handover>,
    threads: Vec<std::thread::JoinHandle<ControllerSnapshot>>,
    clock: SystemClock,
    started: Instant,
}

/// Knowledge of threads about each other.
pub(crate) struct Handover {
    shards: Vec<ShardEntrance>,
}

struct ShardEntrance {
    orders: Sender<ShardOrder>,
    waker: PollerWaker,
    /// Connections that the thread has, or was given.
    load: AtomicUsize,
}

impl Handover {
    /// Returns the thread with the fewest connections, and counts one more there.
    fn choose(&self) -> usize {
        let loads = self.shards.iter().map(|shard| shard.load.load(Ordering::Relaxed));
        let least = loads.enumerate().min_by_key(|(_, load)| *load).map_or(0, |(number, _)| number);
        self.shards[least].load.fetch_add(1, Ordering::Relaxed);
        least
    }

    fn count_end(&self, shard: usize) {
        self.shards[shard].load.fetch_sub(1, Ordering::Relaxed);
    }

    fn count_move(&self, from: usize, to: usize) {
        self.shards[to].load.fetch_add(1, Ordering::Relaxed);
        self.count_end(from);
    }

    /// Gives an order to a thread. One that has ended drops it, which closes the stream in it.
    fn order(&self, shard: usize, order: ShardOrder) {
        if self.shards[shard].orders.send(order).is_ok() {
            self.shards[shard].waker.wake();
        }
    }

    fn order_all(&self, mut order: impl FnMut() -> ShardOrder) {
        (0..self.shards.len()).for_each(|shard| self.order(shard, order()));
    }
}

impl Controller {
    /// Starts a controller with one thread.
    ///
    /// # Errors
    /// An address cannot be listened on, or the files of [`ControllerConfig::tls`] are missing or cannot be used. The
    /// error names the address or file. Or more than one thread is configured.
    pub fn start(app: Box<dyn ControllerApp>, config: ControllerConfig) -> io::Result<Controller> {
        if config.threads != 1 {
            let problem = format!("found {} threads for one application", config.threads);
            return Err(io::Error::other(format!("{problem}, expected 1; Controller::start_threads has more")));
        }
        let app = Mutex::new(Some(app));
        let take = move |_, _| app.lock().unwrap_or_else(PoisonError::into_inner).take();
        Controller::start_with(Box::new(take), config)
    }

    /// Starts a controller with an application for each thread.
    ///
    /// # Errors
    /// As [`Controller::start`]; or the number of threads is not in `1..=256`.
    pub fn start_threads(make_app: AppFactory, config: ControllerConfig) -> io::Result<Controller> {
        if !(1..=MAX_THREADS).contains(&config.threads) {
            return Err(io::Error::other(format!("found {} threads, expected 1 to {MAX_THREADS}", config.threads)));
        }
        Controller::start_with(Box::new(move |shard, waker| Some(make_app(shard, waker))), config)
    }

    fn start_with(make_app: OptionalAppFactory, config: ControllerConfig) -> io::Result<Controller> {
        let credentials = config.tls.map(Credentials::load).transpose().map_err(io::Error::other)?;
        if let Some(listen) = config.listen.iter().find(|listen| matches!(listen, ListenAddress::Ssl(_)))
            && credentials.is_none()
        {
            let needed = "TLS needs a private key, a certificate and the CA of the switches";
            let flags = "--private-key, --certificate, --ca-cert";
            return Err(io::Error::other(format!("cannot listen on {listen}: {needed} ({flags})")));
        }
        let listeners = config.listen.iter().map(ControllerListener::bind).collect::<Result<Vec<_>, _>>()?;
        let addresses = listeners.iter().map(ControllerListener::address).collect::<io::Result<_>>()?;
        let (shards, receivers): (Vec<_>, Vec<_>) =
            (0..config.threads).map(|_| ShardEntrance::new()).collect::<io::Result<Vec<_>>>()?.into_iter().unzip();
        let handover = Arc::new(Handover { shards });
        let hubs = HubFactory {
            make_app,
            session: config.session,
            max_connections: config.max_connections.div_ceil(config.threads),
            mastership: config.mastership,
            observer: Arc::new(Mutex::new(config.observer.unwrap_or_else(|| Box::new(|_| {})))),
            registry: Arc::default(),
        };
        let hubs = Arc::new(hubs);
        let clock = SystemClock::start();
        let (handover_here, started) = (Arc::clone(&handover), clock.now());
        let mut controller = Controller { addresses, handover: handover_here, threads: Vec::new(), clock, started };
        let (mut listeners, mut credentials) = (listeners, credentials);
        for (number, orders) in receivers.into_iter().enumerate() {
            let hub = hubs.make(number, &handover.shards[number].waker, &clock)?;
            let shard = Shard {
                number,
                hub,
                orders,
                waker: handover.shards[number].waker.clone(),
                handover: Arc::clone(&handover),
                listeners: std::mem::take(&mut listeners),
                credentials: credentials.take(),
                clock,
                spin: config.spin,
                links: Default::default(),
                load: ThreadLoad::new(started),
                buffers: ShardBuffers::default(),
            };
            let hubs = Arc::clone(&hubs);
            // The first thread has the name that the whole controller had.
            let name = if number == 0 { "weir-controller".into() } else { format!("weir-ctrl-{number}") };
            let thread = std::thread::Builder::new().name(name).spawn(move || run_contained(shard, &hubs))?;
            controller.threads.push(thread);
        }
        Ok(controller)
    }

    /// Returns the addresses in use, in the order of the configuration, with the actual ports.
    pub fn addresses(&self) -> &[ListenAddress] {
        &self.addresses
    }

    /// Returns a stream to the controller for a switch in this process. If the controller has ended, the stream is
    /// closed.
    pub fn connect(&self) -> EmbeddedStream {
        let pair = UnixStream::pair().and_then(|(ours, theirs)| {
            ours.set_nonblocking(true)?;
            theirs.set_nonblocking(true)?;
            Ok((ours, theirs))
        });
        EmbeddedStream::new(pair.map(|(ours, theirs)| {
            let order = ShardOrder::Serve(SwitchStream::Unix(ours), "this process".into());
            self.handover.order(self.handover.choose(), order);
            theirs
        }))
    }

    /// Sets the wanted role, for connected switches and for later ones.
    pub fn set_mastership(&self, wanted: Mastership) {
        self.handover.order_all(|| ShardOrder::Mastership(wanted));
    }

    /// Passes a command to the applications of all threads. Returns their answers, in the order of the threads; none
    /// from an application that does not know the command.
    pub fn command(&self, command: &str) -> Vec<String> {
        self.ask(|to| ShardOrder::Command(command.to_owned(), to)).into_iter().flatten().collect()
    }

    /// Returns the connected switches and all counters.
    pub fn snapshot(&self) -> ControllerSnapshot {
        sum(self.ask(ShardOrder::Snapshot))
    }

    /// Returns what the controller is doing, for its operator.
    pub fn status(&self) -> ControllerOverview {
        let mut status = ControllerOverview {
            uptime_s: self.clock.now().since(self.started).as_secs_f64(),
            listen: self.addresses.iter().map(ListenAddress::to_string).collect(),
            ..ControllerOverview::default()
        };
        self.ask(ShardOrder::Status).into_iter().for_each(|part| status.add(part));
        status.sort();
        status
    }

    /// Returns what each thread answers; nothing for a thread that has ended.
    fn ask<T>(&self, order: impl Fn(Sender<T>) -> ShardOrder) -> Vec<T> {
        let asked = (0..self.handover.shards.len()).map(|shard| {
            let (to, answer) = mpsc::channel();
            self.handover.order(shard, order(to));
            answer
        });
        // All are asked before one is waited for.
        let asked: Vec<Receiver<T>> = asked.collect();
        asked.into_iter().filter_map(|answer| answer.recv().ok()).collect()
    }

    /// Stops the controller: closes every connection and waits for the threads. The summary has the switches that were
    /// up before the stop.
    pub fn stop(mut self) -> ControllerSnapshot {
        let before = self.snapshot();
        let after = self.join();
        ControllerSnapshot { switches: before.switches, loads: before.loads, ..after }
    }

    fn join(&mut self) -> ControllerSnapshot {
        self.handover.order_all(|| ShardOrder::Stop);
        // A thread contains its panics, so that each ends with its counters.
        sum(self.threads.drain(..).filter_map(|thread| thread.join().ok()))
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.join();
    }
}

impl ShardEntrance {
    fn new() -> io::Result<(ShardEntrance, Receiver<ShardOrder>)> {
        let (orders, receiver) = mpsc::channel();
        Ok((ShardEntrance { orders, waker: PollerWaker::new()?, load: AtomicUsize::new(0) }, receiver))
    }
}

fn sum(snapshots: impl IntoIterator<Item = ControllerSnapshot>) -> ControllerSnapshot {
    snapshots.into_iter().fold(ControllerSnapshot::default(), |mut sum, snapshot| {
        sum.add(snapshot);
        sum
    })
}

/// Function like [`AppFactory`]; returns `None` if there is only one application and it is gone.
type OptionalAppFactory = Box<dyn Fn(usize, AppWaker) -> Option<Box<dyn ControllerApp>> + Send + Sync>;

/// Makes the hubs of all threads.
struct HubFactory {
    make_app: OptionalAppFactory,
    session: SessionConfig,
    max_connections: usize,
    mastership: Mastership,
    observer: Arc<Mutex<Observer>>,
    registry: Arc<SwitchRegistry>,
}

impl HubFactory {
    fn make(&self, shard: usize, waker: &PollerWaker, clock: &SystemClock) -> io::Result<ControllerHub> {
        let waker = waker.clone();
        let app = (self.make_app)(shard, AppWaker::new(move || waker.wake()))
            .ok_or_else(|| io::Error::other("the one application is gone"))?;
        let observer = Arc::clone(&self.observer);
        let observe: Observer = Box::new(move |event| observer.lock().unwrap_or_else(PoisonError::into_inner)(event));
        let mut hub = ControllerHub::new(app, self.session.clone(), self.max_connections, observe);
        hub.share(Arc::clone(&self.registry), shard);
        hub.set_mastership(clock.now(), self.mastership);
        Ok(hub)
    }
}

/// Runs a thread's loop. After a panic its switches are closed, and it goes on with a new application if there is one.
fn run_contained(mut shard: Shard, hubs: &HubFactory) -> ControllerSnapshot {
    let mut past = ControllerSnapshot::default();
    loop {
        let reason = match std::panic::catch_unwind(AssertUnwindSafe(|| shard.run())) {
            Ok(Ok(_)) => break,
            Ok(Err(error)) => format!("the system cannot wait for switches: {error}"),
            Err(panic) => format!("the application panicked: {}", panic_text(&*panic)),
        };
        tracing::error!("{reason}; {} connections are closed", shard.links.len());
        // What the application counted may be what it panicked about.
        past.counters.add(shard.hub.counters());
        shard.abandon(&reason);
        match hubs.make(shard.number, &shard.waker, &shard.clock) {
            Ok(hub) => shard.hub = hub,
            Err(_) => return past,
        }
    }
    let mut end = shard.hub.snapshot();
    end.counters.add(&past.counters);
    end
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text")
}
