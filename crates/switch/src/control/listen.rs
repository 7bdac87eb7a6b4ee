//! Accepts connections from controllers and tools.
use super::channel::{self, ByteStream, ChannelConnectionKind, Disconnection};
use super::registry::ChannelInfo;
use super::{ControlContext, stopped};
use crate::handle::SwitchError;
use crate::socket::SocketFile;
use crate::targets::ListenTarget;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_units::{Clock, LogThrottle};

/// Wait after a failed accept, for example for want of descriptors.
const ACCEPT_WAIT: Duration = Duration::from_millis(100);

/// Minimum interval between warnings of a listener about failed connections.
const LOG_EVERY: Duration = Duration::from_secs(1);

/// An open listener.
#[derive(Debug)]
pub(crate) struct ChannelListener {
    target: ListenTarget,
    socket: ListenerSocket,
}

#[derive(Debug)]
enum ListenerSocket {
    /// Socket for [`ListenTarget::Tcp`] and [`ListenTarget::Ssl`].
    Tcp(TcpListener),
    Unix(SocketFile),
}

impl ChannelListener {
    /// Starts listening on `target`.
    ///
    /// # Errors
    /// Fails if the address is in use or does not belong to this machine.
    pub(crate) fn open(target: &ListenTarget) -> Result<ChannelListener, SwitchError> {
        match target {
            ListenTarget::Tcp(address) | ListenTarget::Ssl(address) => {
                let refused = |error: io::Error| SwitchError::System {
                    tried: format!("listening on {target}"),
                    advice: advice(&error),
                    error,
                };
                let socket = TcpListener::bind(address).map_err(refused)?;
                socket.set_nonblocking(true).map_err(refused)?;
                let address = socket.local_addr().map_err(refused)?;
                let target = if target.is_tls() { ListenTarget::Ssl(address) } else { ListenTarget::Tcp(address) };
                Ok(ChannelListener { target, socket: ListenerSocket::Tcp(socket) })
            }
            ListenTarget::Unix(path) => {
                let socket = SocketFile::bind(path)?;
                Ok(ChannelListener { target: target.clone(), socket: ListenerSocket::Unix(socket) })
            }
        }
    }

    /// Returns the address of the listener, with the TCP port that the system assigned.
    pub(crate) fn target(&self) -> &ListenTarget {
        &self.target
    }
}

fn advice(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; another program listens there: stop it or choose another port".to_owned(),
        io::ErrorKind::AddrNotAvailable => "; no interface of this machine has that address".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "; ports below 1024 need CAP_NET_BIND_SERVICE: run as root (sudo), or choose a higher port".to_owned()
        }
        _ => String::new(),
    }
}

/// Accepts channels until the switch stops, then waits for them to end.
pub(crate) async fn serve(control: ControlContext, listener: ChannelListener) {
    let door = Arc::new(ListenerContext {
        name: listener.target.to_string(),
        is_tls: listener.target.is_tls(),
        refusals: Mutex::new(LogThrottle::new(LOG_EVERY)),
    });
    let accepting = match listener.socket {
        ListenerSocket::Tcp(socket) => tokio::net::TcpListener::from_std(socket).map(AsyncListener::Tcp),
        ListenerSocket::Unix(file) => file.into_tokio().map(|(socket, file)| AsyncListener::Unix(socket, file)),
    };
    match accepting {
        Ok(accepting) => accept(control, door, accepting).await,
        Err(error) => tracing::error!("{}: {error}", door.name),
    }
}

enum AsyncListener {
    Tcp(tokio::net::TcpListener),
    /// The file is removed with the listener.
    Unix(tokio::net::UnixListener, #[expect(dead_code, reason = "held for its drop")] SocketFile),
}

impl AsyncListener {
    /// Returns the next stream, and the peer's address as text for logs.
    async fn next(&self, control: &ControlContext) -> io::Result<(ByteStream, String)> {
        match self {
            AsyncListener::Tcp(socket) => {
                let (stream, peer) = socket.accept().await?;
                Ok((control.tcp(stream)?, format!(" from {peer}")))
            }
            AsyncListener::Unix(socket, _) => Ok((ByteStream::new(socket.accept().await?.0), String::new())),
        }
    }
}

/// State shared by the connections of one listener.
struct ListenerContext {
    name: String,
    is_tls: bool,
    /// Limits log messages, because any peer can cause any number of refusals.
    refusals: Mutex<LogThrottle>,
}

impl ListenerContext {
    /// Logs that a connection failed.
    fn refused(&self, control: &ControlContext, name: &str, reason: &str) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        match refusals.pass(control.clock.now()) {
            Some(0) => tracing::warn!("{name}: {reason}"),
            Some(more) => tracing::warn!("{name}: {reason}; {more} more came to nothing at {} before", self.name),
            None => tracing::debug!("{name}: {reason}"),
        }
    }
}

async fn accept(control: ControlContext, door: Arc<ListenerContext>, accepting: AsyncListener) {
    let mut stopping = control.stopping.clone();
    let mut channels = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            () = stopped(&mut stopping) => break,
            Some(_) = channels.join_next() => {}
            accepted = accepting.next(&control) => match accepted {
                Ok((_, peer)) if !control.registry.make_room() => {
                    let reason = format!("refused: there are {} channels already", control.registry.room());
                    door.refused(&control, &format!("{}{peer}", door.name), &reason);
                }
                Ok((stream, peer)) => {
                    let info = control.registry.add_passive(format!("{}{peer}", door.name));
                    channels.spawn(one(control.clone(), Arc::clone(&door), stream, info));
                }
                Err(error) => {
                    tracing::warn!("{}: {error}", door.name);
                    tokio::time::sleep(ACCEPT_WAIT).await;
                }
            },
        }
    }
    drop(accepting);
    while channels.join_next().await.is_some() {}
}

async fn one(control: ControlContext, door: Arc<ListenerContext>, stream: ByteStream, info: Arc<ChannelInfo>) {
    let ended = tokio::select! {
        // Polled first: a channel chosen for closing during its handshake must not come up.
        biased;
        () = info.chosen_to_go() => {
            Disconnection { was_up: false, reason: "closed to make room: no handshake was done yet".to_owned() }
        }
        ended = shake_hands_and_run(&control, &door, stream, &info) => ended,
    };
    if ended.was_up {
        tracing::info!("{}: down: {}", info.target(), ended.reason);
    } else {
        door.refused(&control, info.target(), &ended.reason);
    }
    control.registry.remove(&info);
}

async fn shake_hands_and_run(
    control: &ControlContext,
    door: &ListenerContext,
    stream: ByteStream,
    info: &Arc<ChannelInfo>,
) -> Disconnection {
    let mut stopping = control.stopping.clone();
    let stream = if door.is_tls {
        let shaken = tokio::select! {
            () = stopped(&mut stopping) => Err(io::Error::other(control.why_stopped)),
            shaken = tls(control, stream) => shaken,
        };
        match shaken {
            Ok(stream) => stream,
            Err(error) => return Disconnection { was_up: false, reason: weir_tls::explain(&error) },
        }
    } else {
        stream
    };
    channel::run(
        control.clone(),
        stream,
        Arc::clone(info),
        control.registry.next_id(true),
        ChannelConnectionKind::main_only(),
    )
    .await
}

async fn tls(control: &ControlContext, stream: ByteStream) -> io::Result<ByteStream> {
    let ByteStream { bytes, arrivals } = stream;
    Ok(ByteStream { bytes: Box::new(control.credentials()?.accept(bytes).await?), arrivals })
}
