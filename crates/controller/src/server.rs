//! The hub with sockets, a clock and a thread.
//!
//! One thread serves all connections, each a task that moves bytes between its stream and its session in the hub. A switch
//! that floods is read one buffer at a time in turn with the others; one that does not read what it is sent is not read
//! either, until it does, or until its silence ends the session.
use crate::hub::{Hub, Observer, Snapshot, TooMany};
use crate::{App, ConnectionId, Listen};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use weir_openflow::session::SessionConfig;
use weir_units::{Clock, SystemClock};

/// Bytes read at once from a connection.
const READ_BYTES: usize = 32 << 10;
/// Bytes waiting for a switch beyond which nothing more is read from it.
const PAUSE_BYTES: usize = 1 << 20;
/// Bytes that an in-process stream holds in each direction.
const DUPLEX_BYTES: usize = 256 << 10;
/// Time to write what is left when a connection is closed from this end.
const LINGER: Duration = Duration::from_millis(200);
/// Pause after a failed accept: out of descriptors, most likely.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How a controller is run. `..ControllerConfig::default()` fills in what is not said.
pub struct ControllerConfig {
    /// Where switches connect; nowhere by default, for a controller that only embedded switches use.
    pub listen: Vec<Listen>,
    /// How its sessions behave: versions spoken, echo interval, most output held.
    pub session: SessionConfig,
    /// Most connections at a time; further ones are refused.
    pub max_connections: usize,
    /// Told of switches coming and going, from the controller's thread.
    pub observer: Option<Observer>,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        ControllerConfig {
            listen: Vec::new(),
            session: SessionConfig::default(),
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
}

impl Controller {
    /// Starts a controller on a thread of its own.
    ///
    /// # Errors
    /// When an address cannot be listened on; says which.
    pub fn start(app: Box<dyn App>, config: ControllerConfig) -> io::Result<Controller> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listeners =
            runtime.block_on(async { config.listen.iter().map(Listener::bind).collect::<Result<Vec<_>, _>>() })?;
        let addresses = listeners.iter().map(Listener::address).collect::<io::Result<_>>()?;
        let observer = config.observer.unwrap_or_else(|| Box::new(|_| {}));
        let hub = Mutex::new(Hub::new(app, config.session, config.max_connections, observer));
        let shared = Arc::new(Shared { hub, clock: SystemClock::start() });
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

/// A socket that switches connect to.
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, std::path::PathBuf),
}

/// A stream to a switch, whatever carries it.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Listener {
    fn bind(listen: &Listen) -> io::Result<Listener> {
        let bound = match listen {
            Listen::Tcp(address) => bind_tcp(*address).map(Listener::Tcp),
            Listen::Unix(path) => bind_unix(path).map(|listener| Listener::Unix(listener, path.clone())),
        };
        bound.map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {listen}: {error}")))
    }

    fn address(&self) -> io::Result<Listen> {
        Ok(match self {
            Listener::Tcp(listener) => Listen::Tcp(listener.local_addr()?),
            Listener::Unix(_, path) => Listen::Unix(path.clone()),
        })
    }

    async fn accept(&self) -> io::Result<(Box<dyn Stream>, String)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Box::new(stream), format!("tcp:{address}")))
            }
            Listener::Unix(listener, path) => {
                let (stream, _) = listener.accept().await?;
                Ok((Box::new(stream), format!("unix:{}", path.display())))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn bind_tcp(address: std::net::SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Binds a Unix socket that only its owner may use; takes the place of a socket that nobody listens on any more.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
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
                Some((stream, peer)) = accepted.recv() => self.serve(stream, peer),
                Some(stream) = embedded.recv() => self.serve(Box::new(stream), "this process".into()),
                Some(_) = self.tasks.join_next(), if !self.tasks.is_empty() => {}
                () = stopped(&mut stop) => break,
            }
        }
        accepting.shutdown().await;
        while self.tasks.join_next().await.is_some() {}
    }

    fn serve(&mut self, stream: Box<dyn Stream>, peer: String) {
        let wake = Arc::new(Notify::new());
        let waker = Arc::clone(&wake);
        let now = self.shared.clock.now();
        let connected = self.shared.hub().connect(now, peer, Box::new(move || waker.notify_one()));
        match connected {
            Ok(id) => {
                let connection =
                    Connection { id, shared: Arc::clone(&self.shared), wake, stopped: self.stopped.clone() };
                self.tasks.spawn(connection.run(stream));
            }
            Err(TooMany(_)) => drop(stream),
        }
    }
}

/// Waits until the controller is told to stop, or is gone.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn accept(listener: Listener, to: mpsc::Sender<(Box<dyn Stream>, String)>) {
    loop {
        match listener.accept().await {
            Ok(accepted) => {
                if to.send(accepted).await.is_err() {
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

/// The task of one connection.
struct Connection {
    id: ConnectionId,
    shared: Arc<Shared>,
    wake: Arc<Notify>,
    stopped: watch::Receiver<bool>,
}

/// Bytes on their way to a switch: taken from its session as a whole, written in pieces.
#[derive(Default)]
struct Writing {
    bytes: Vec<u8>,
    written: usize,
}

impl Writing {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.written..]
    }
}

impl Connection {
    async fn run(mut self, mut stream: Box<dyn Stream>) {
        let mut writing = Writing::default();
        let reason = self.exchange(&mut stream, &mut writing).await;
        let _ = tokio::time::timeout(LINGER, self.flush(&mut stream, &mut writing)).await;
        let now = self.shared.clock.now();
        self.shared.hub().disconnect(now, self.id, &reason);
    }

    /// Moves bytes both ways until the connection ends; returns why.
    async fn exchange(&mut self, stream: &mut Box<dyn Stream>, writing: &mut Writing) -> String {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut input = vec![0; READ_BYTES];
        loop {
            let waiting = self.take_output(writing);
            if self.shared.hub().is_ended(self.id) {
                return "ended".into();
            }
            let deadline = self.until_deadline();
            tokio::select! {
                read = reader.read(&mut input), if waiting < PAUSE_BYTES => match read {
                    Ok(0) => return "the switch closed the connection".into(),
                    Ok(length) => {
                        let now = self.shared.clock.now();
                        self.shared.hub().receive(now, self.id, &input[..length]);
                        // Others come next, however much this one sends.
                        tokio::task::yield_now().await;
                    }
                    Err(error) => return format!("reading failed: {error}"),
                },
                wrote = writer.write(writing.rest()), if !writing.rest().is_empty() => match wrote {
                    Ok(length) => writing.written += length,
                    Err(error) => return format!("writing failed: {error}"),
                },
                () = self.wake.notified() => {}
                () = tokio::time::sleep(deadline) => {
                    let now = self.shared.clock.now();
                    self.shared.hub().poll(now, self.id);
                }
                () = stopped(&mut self.stopped) => return "the controller stops".into(),
            }
        }
    }

    /// Takes output from the session when all taken before is written; returns how many bytes wait in all.
    fn take_output(&self, writing: &mut Writing) -> usize {
        let mut hub = self.shared.hub();
        let Some(output) = hub.output(self.id) else {
            return writing.rest().len();
        };
        if writing.rest().is_empty() {
            writing.bytes.clear();
            writing.written = 0;
            std::mem::swap(output, &mut writing.bytes);
        }
        writing.rest().len() + output.len()
    }

    fn until_deadline(&self) -> Duration {
        let deadline = self.shared.hub().deadline(self.id);
        deadline.map_or(Duration::MAX, |deadline| deadline.since(self.shared.clock.now()))
    }

    /// Writes what is left before closing: the error that says why, most likely.
    async fn flush(&self, stream: &mut Box<dyn Stream>, writing: &mut Writing) -> io::Result<()> {
        while self.take_output(writing) > 0 {
            writing.written += stream.write(writing.rest()).await?;
        }
        stream.shutdown().await
    }
}
