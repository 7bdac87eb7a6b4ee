//! The hub with sockets, a clock and a thread.
//!
//! One thread serves all connections, each a task that moves bytes between its stream and its session in the hub. A switch
//! that floods is read one buffer at a time in turn with the others; one that does not read what it is sent is not read
//! either, until it does, or until its silence ends the session.
mod connection;
mod listener;

use crate::hub::{Hub, Mastership, Observer, Snapshot, TooMany};
use crate::{App, Listen};
use connection::{Connection, stopped};
use listener::{Listener, Stream};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::DuplexStream;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use weir_openflow::session::SessionConfig;
use weir_tls::Credentials;
use weir_units::{Clock, SystemClock};

/// Bytes that an in-process stream holds in each direction.
const DUPLEX_BYTES: usize = 256 << 10;
/// Pause after a failed accept: out of descriptors, most likely.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How a controller is run. `..ControllerConfig::default()` fills in what is not said.
pub struct ControllerConfig {
    /// Where switches connect; nowhere by default, for a controller that only embedded switches use.
    pub listen: Vec<Listen>,
    /// Its private key, its certificate and the CA of the switches; needed for [`Listen::Ssl`].
    pub tls: Option<weir_tls::Files>,
    /// How its sessions behave: versions spoken, echo interval, most output held.
    pub session: SessionConfig,
    /// What it is to be among the controllers of a switch.
    pub mastership: Mastership,
    /// Most connections at a time; further ones are refused.
    pub max_connections: usize,
    /// Told of switches coming and going, from the controller's thread.
    pub observer: Option<Observer>,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        ControllerConfig {
            listen: Vec::new(),
            tls: None,
            session: SessionConfig::default(),
            mastership: Mastership::Equal,
            max_connections: 1024,
            observer: None,
        }
    }
}

/// A running controller. Dropping it stops it.
pub struct Controller {
    shared: Arc<Shared>,
    /// Where it really listens: port 0 is replaced by the port taken.
    addresses: Vec<Listen>,
    streams: mpsc::UnboundedSender<DuplexStream>,
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What connections share.
struct Shared {
    hub: Mutex<Hub>,
    clock: SystemClock,
    credentials: Option<Credentials>,
}

impl Controller {
    /// Starts a controller on a thread of its own.
    ///
    /// # Errors
    /// When an address cannot be listened on, or the files of [`ControllerConfig::tls`] cannot be used; says which.
    pub fn start(app: Box<dyn App>, config: ControllerConfig) -> io::Result<Controller> {
        let credentials = config.tls.map(Credentials::load).transpose().map_err(io::Error::other)?;
        if let Some(listen) = config.listen.iter().find(|listen| matches!(listen, Listen::Ssl(_)))
            && credentials.is_none()
        {
            let needed = "TLS needs a private key, a certificate and the CA of the switches";
            let flags = "--private-key, --certificate, --ca-cert";
            return Err(io::Error::other(format!("cannot listen on {listen}: {needed} ({flags})")));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listeners =
            runtime.block_on(async { config.listen.iter().map(Listener::bind).collect::<Result<Vec<_>, _>>() })?;
        let addresses = listeners.iter().map(Listener::address).collect::<io::Result<_>>()?;
        let observer = config.observer.unwrap_or_else(|| Box::new(|_| {}));
        let clock = SystemClock::start();
        let mut hub = Hub::new(app, config.session, config.max_connections, observer);
        hub.set_mastership(clock.now(), config.mastership);
        let hub = Mutex::new(hub);
        let shared = Arc::new(Shared { hub, clock, credentials });
        let (streams, embedded) = mpsc::unbounded_channel();
        let (stop, stopped) = watch::channel(false);
        let server = Server { shared: Arc::clone(&shared), stopped, tasks: JoinSet::new() };
        let thread = std::thread::Builder::new()
            .name("weir-controller".into())
            .spawn(move || runtime.block_on(server.run(listeners, embedded)))?;
        Ok(Controller { shared, addresses, streams, stop, thread: Some(thread) })
    }

    /// Where it listens, in the order of the configuration, with the ports really taken.
    pub fn addresses(&self) -> &[Listen] {
        &self.addresses
    }

    /// A stream to the controller for a switch in the same process. On a controller that has ended, the stream is closed.
    pub fn connect(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(DUPLEX_BYTES);
        // A failed send drops `ours`: the other end reads the end of the stream.
        let _ = self.streams.send(ours);
        theirs
    }

    /// Becomes master, slave or equal, with switches that are up and those that come.
    pub fn set_mastership(&self, wanted: Mastership) {
        let now = self.shared.clock.now();
        self.shared.hub().set_mastership(now, wanted);
    }

    /// What there is and what was counted.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.hub().snapshot()
    }

    /// Stops: closes every connection and waits for the thread. The switches that were up are still in the summary.
    pub fn stop(mut self) -> Snapshot {
        let mut summary = self.snapshot();
        self.join();
        let after = self.snapshot();
        summary.counters = after.counters;
        summary.app = after.app;
        summary
    }

    fn join(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the controller's thread panicked");
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.join();
    }
}

impl Shared {
    /// The hub. A panic while it was locked has ended the thread; what was counted can still be read.
    fn hub(&self) -> MutexGuard<'_, Hub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The controller's thread: accepts, and owns the tasks of connections.
struct Server {
    shared: Arc<Shared>,
    stopped: watch::Receiver<bool>,
    tasks: JoinSet<()>,
}

impl Server {
    async fn run(mut self, listeners: Vec<Listener>, mut embedded: mpsc::UnboundedReceiver<DuplexStream>) {
        let (accepted_to, mut accepted) = mpsc::channel(1);
        let mut accepting = JoinSet::new();
        for listener in listeners {
            accepting.spawn(accept(listener, accepted_to.clone()));
        }
        let mut stop = self.stopped.clone();
        loop {
            tokio::select! {
                Some((stream, peer, is_tls)) = accepted.recv() => self.serve(stream, peer, is_tls),
                Some(stream) = embedded.recv() => self.serve(Box::new(stream), "this process".into(), false),
                Some(_) = self.tasks.join_next(), if !self.tasks.is_empty() => {}
                () = stopped(&mut stop) => break,
            }
        }
        accepting.shutdown().await;
        while self.tasks.join_next().await.is_some() {}
    }

    fn serve(&mut self, stream: Box<dyn Stream>, peer: String, is_tls: bool) {
        let wake = Arc::new(Notify::new());
        let waker = Arc::clone(&wake);
        let now = self.shared.clock.now();
        let connected = self.shared.hub().connect(now, peer, Box::new(move || waker.notify_one()));
        match connected {
            Ok(id) => {
                let connection =
                    Connection { id, shared: Arc::clone(&self.shared), wake, stopped: self.stopped.clone() };
                self.tasks.spawn(connection.run(stream, is_tls));
            }
            Err(TooMany(_)) => drop(stream),
        }
    }
}

/// A stream, who is at its other end, and whether TLS is to be spoken on it.
type Accepted = (Box<dyn Stream>, String, bool);

async fn accept(listener: Listener, to: mpsc::Sender<Accepted>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                if to.send((stream, peer, listener.is_tls())).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!("a switch could not connect: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
