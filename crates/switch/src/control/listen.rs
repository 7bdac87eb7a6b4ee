//! Letting controllers and tools connect.
use super::channel::{self, ByteStream};
use super::{Control, MAX_CHANNELS, stopped};
use crate::config::ListenTarget;
use crate::handle::SwitchError;
use crate::socket::SocketFile;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

/// Wait after an accept that failed for want of descriptors.
const ACCEPT_WAIT: Duration = Duration::from_millis(100);

/// An open listener.
#[derive(Debug)]
pub(crate) struct Listener {
    target: ListenTarget,
    socket: Socket,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(SocketFile),
}

impl Listener {
    /// Starts listening.
    ///
    /// # Errors
    /// The address is in use or not this machine's.
    pub(crate) fn open(target: &ListenTarget) -> Result<Listener, SwitchError> {
        match target {
            ListenTarget::Tcp(address) => {
                let refused = |error: io::Error| SwitchError::System {
                    tried: format!("listening on {target}"),
                    advice: advice(&error),
                    error,
                };
                let socket = TcpListener::bind(address).map_err(refused)?;
                socket.set_nonblocking(true).map_err(refused)?;
                let target = ListenTarget::Tcp(socket.local_addr().map_err(refused)?);
                Ok(Listener { target, socket: Socket::Tcp(socket) })
            }
            ListenTarget::Unix(path) => {
                let socket = SocketFile::bind(path)?;
                Ok(Listener { target: target.clone(), socket: Socket::Unix(socket) })
            }
        }
    }

    /// Where it listens, with the TCP port it got.
    pub(crate) fn target(&self) -> &ListenTarget {
        &self.target
    }
}

fn advice(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; another program listens there: stop it or choose another port".to_owned(),
        io::ErrorKind::AddrNotAvailable => "; no interface of this machine has that address".to_owned(),
        io::ErrorKind::PermissionDenied => "; ports below 1024 need CAP_NET_BIND_SERVICE".to_owned(),
        _ => String::new(),
    }
}

/// Accepts channels until the switch stops, then waits for them to end.
pub(crate) async fn serve(control: Control, listener: Listener) {
    let target = listener.target.to_string();
    let accepting = match listener.socket {
        Socket::Tcp(socket) => tokio::net::TcpListener::from_std(socket).map(Accepting::Tcp),
        Socket::Unix(file) => file.into_tokio().map(|(socket, file)| Accepting::Unix(socket, file)),
    };
    match accepting {
        Ok(accepting) => accept(control, &target, accepting).await,
        Err(error) => tracing::error!("{target}: {error}"),
    }
}

enum Accepting {
    Tcp(tokio::net::TcpListener),
    /// The file is removed with the listener.
    Unix(tokio::net::UnixListener, #[expect(dead_code, reason = "held for its drop")] SocketFile),
}

impl Accepting {
    /// The next stream, and who is at its other end.
    async fn next(&self) -> io::Result<(Box<dyn ByteStream>, String)> {
        match self {
            Accepting::Tcp(socket) => {
                let (stream, peer) = socket.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Box::new(stream), format!(" from {peer}")))
            }
            Accepting::Unix(socket, _) => Ok((Box::new(socket.accept().await?.0), String::new())),
        }
    }
}

async fn accept(control: Control, target: &str, accepting: Accepting) {
    let mut stopping = control.stopping.clone();
    let mut channels = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            () = stopped(&mut stopping) => break,
            Some(_) = channels.join_next() => {}
            accepted = accepting.next() => match accepted {
                Ok((_, peer)) if control.registry.len() >= MAX_CHANNELS => {
                    tracing::warn!("{target}{peer}: refused: there are {MAX_CHANNELS} channels already");
                }
                Ok((stream, peer)) => {
                    channels.spawn(one(control.clone(), stream, format!("{target}{peer}")));
                }
                Err(error) => {
                    tracing::warn!("{target}: {error}");
                    tokio::time::sleep(ACCEPT_WAIT).await;
                }
            },
        }
    }
    drop(accepting);
    while channels.join_next().await.is_some() {}
}

async fn one(control: Control, stream: Box<dyn ByteStream>, name: String) {
    let registry = Arc::clone(&control.registry);
    let info = registry.add(name);
    channel::run(control, stream, info.clone(), registry.next_id(true)).await;
    registry.remove(&info);
}
