//! Adds sockets, a clock and a thread to the hub.
//!
//! One thread serves all connections. Each connection is a task that moves bytes between its stream and its session
//! in the hub. A switch that floods is read one buffer at a time, in turn with the others. A switch that does not
//! read its messages is not read from, either, until it reads or its echo time-out ends the session.
mod connection;
mod listener;

use crate::hub::{ControllerHub, ControllerSnapshot, Mastership, Observer, TooManyConnections};
use crate::{ControllerApp, ListenAddress};
use connection::{ConnectionTask, stopped};
use listener::{AsyncByteStream, ControllerListener};
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
/// Pause after a failed accept, which is most likely due to a lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

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
    /// Most connections at a time; further ones are refused.
    pub max_connections: usize,
    /// Callback for events of switches, called on the controller's thread.
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

/// Running controller. Dropping it stops it.
pub struct Controller {
    shared: Arc<SharedHub>,
    /// Addresses in use, where port 0 is replaced by the actual port.
    addresses: Vec<ListenAddress>,
    streams: mpsc::UnboundedSender<DuplexStream>,
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// State that connections share.
struct SharedHub {
    hub: Mutex<ControllerHub>,
    clock: SystemClock,
    credentials: Option<Credentials>,
}

impl Controller {
    /// Starts a controller on a thread of its own.
    ///
    /// # Errors
    /// An address cannot be listened on, or the files of [`ControllerConfig::tls`] are missing or cannot be used. The
    /// error names the address or file.
    pub fn start(app: Box<dyn ControllerApp>, config: ControllerConfig) -> io::Result<Controller> {
        let credentials = config.tls.map(Credentials::load).transpose().map_err(io::Error::other)?;
        if let Some(listen) = config.listen.iter().find(|listen| matches!(listen, ListenAddress::Ssl(_)))
            && credentials.is_none()
        {
            let needed = "TLS needs a private key, a certificate and the CA of the switches";
            let flags = "--private-key, --certificate, --ca-cert";
            return Err(io::Error::other(format!("cannot listen on {listen}: {needed} ({flags})")));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listeners = runtime
            .block_on(async { config.listen.iter().map(ControllerListener::bind).collect::<Result<Vec<_>, _>>() })?;
        let addresses = listeners.iter().map(ControllerListener::address).collect::<io::Result<_>>()?;
        let observer = config.observer.unwrap_or_else(|| Box::new(|_| {}));
        let clock = SystemClock::start();
        let mut hub = ControllerHub::new(app, config.session, config.max_connections, observer);
        hub.set_mastership(clock.now(), config.mastership);
        let hub = Mutex::new(hub);
        let shared = Arc::new(SharedHub { hub, clock, credentials });
        let (streams, embedded) = mpsc::unbounded_channel();
        let (stop, stopped) = watch::channel(false);
        let server = ControllerThread { shared: Arc::clone(&shared), stopped, tasks: JoinSet::new() };
        let thread = std::thread::Builder::new()
            .name("weir-controller".into())
            .spawn(move || runtime.block_on(server.run(listeners, embedded)))?;
        Ok(Controller { shared, addresses, streams, stop, thread: Some(thread) })
    }

    /// Returns the addresses in use, in the order of the configuration, with the actual ports.
    pub fn addresses(&self) -> &[ListenAddress] {
        &self.addresses
    }

    /// Returns a stream to the controller for a switch in this process. If the controller has ended, the stream is
    /// closed.
    pub fn connect(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(DUPLEX_BYTES);
        // A failed send drops `ours`, so the other end reads the end of the stream.
        let _ = self.streams.send(ours);
        theirs
    }

    /// Sets the wanted role, for connected switches and for later ones.
    pub fn set_mastership(&self, wanted: Mastership) {
        let now = self.shared.clock.now();
        self.shared.hub().set_mastership(now, wanted);
    }

    /// Returns the connected switches and all counters.
    pub fn snapshot(&self) -> ControllerSnapshot {
        self.shared.hub().snapshot()
    }

    /// Stops the controller: closes every connection and waits for the thread. The summary has the switches that were
    /// up before the stop.
    pub fn stop(mut self) -> ControllerSnapshot {
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

impl SharedHub {
    /// Locks the hub. After a panic under the lock the thread has ended, but counters can still be read.
    fn hub(&self) -> MutexGuard<'_, ControllerHub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// State of the controller's thread, which accepts connections and owns their tasks.
struct ControllerThread {
    shared: Arc<SharedHub>,
    stopped: watch::Receiver<bool>,
    tasks: JoinSet<()>,
}

impl ControllerThread {
    async fn run(mut self, listeners: Vec<ControllerListener>, mut embedded: mpsc::UnboundedReceiver<DuplexStream>) {
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

    fn serve(&mut self, stream: Box<dyn AsyncByteStream>, peer: String, is_tls: bool) {
        let wake = Arc::new(Notify::new());
        let waker = Arc::clone(&wake);
        let now = self.shared.clock.now();
        let connected = self.shared.hub().connect(now, peer, Box::new(move || waker.notify_one()));
        match connected {
            Ok(id) => {
                let connection =
                    ConnectionTask { id, shared: Arc::clone(&self.shared), wake, stopped: self.stopped.clone() };
                self.tasks.spawn(connection.run(stream, is_tls));
            }
            Err(TooManyConnections(_)) => drop(stream),
        }
    }
}

/// Accepted stream, address of its peer, and whether it uses TLS.
type AcceptedStream = (Box<dyn AsyncByteStream>, String, bool);

async fn accept(listener: ControllerListener, to: mpsc::Sender<AcceptedStream>) {
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
