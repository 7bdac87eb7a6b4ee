//! Accepts connections, at most a number of them at a time.
use super::ApiError;
use super::connection::serve_connection;
use crate::ApiAddress;
use crate::access::ApiPeer;
use axum::Router;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use weir_controller::bind_unix;
use weir_tls::Credentials;

/// Most connections of an address at a time; further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 64;
/// Pause after a failed accept, which is most likely due to a lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Socket of an address.
enum ApiSocket {
    Unix(std::os::unix::net::UnixListener, PathBuf),
    Tcp(std::net::TcpListener, Option<Arc<Credentials>>),
}

/// Socket on which clients connect. Dropping it removes the file of a Unix socket.
pub(super) struct ApiListener {
    socket: ApiSocket,
}

impl ApiListener {
    /// Listens on an address. With `credentials`, HTTPS clients are accepted by them.
    pub(super) fn bind(address: &ApiAddress, credentials: Option<&Arc<Credentials>>) -> Result<ApiListener, ApiError> {
        let tcp = |socket: &std::net::SocketAddr| {
            let listener = std::net::TcpListener::bind(socket)?;
            listener.set_nonblocking(true)?;
            io::Result::Ok(listener)
        };
        let bound = match address {
            ApiAddress::Unix(path) => bind_unix(path).map(|listener| ApiSocket::Unix(listener, path.clone())),
            ApiAddress::Http(socket) => tcp(socket).map(|listener| ApiSocket::Tcp(listener, None)),
            ApiAddress::Https(socket) => tcp(socket).map(|listener| ApiSocket::Tcp(listener, credentials.cloned())),
        };
        let socket = bound.map_err(|error| {
            let advice = match error.kind() {
                io::ErrorKind::AddrInUse => "; another program listens there: stop it or choose another address",
                io::ErrorKind::AddrNotAvailable => "; no interface of this machine has that address",
                io::ErrorKind::NotFound => "; its folder does not exist",
                _ => "",
            };
            ApiError::Listen { address: address.clone(), error, advice }
        })?;
        Ok(ApiListener { socket })
    }

    pub(super) fn address(&self) -> io::Result<ApiAddress> {
        Ok(match &self.socket {
            ApiSocket::Unix(_, path) => ApiAddress::Unix(path.clone()),
            ApiSocket::Tcp(listener, None) => ApiAddress::Http(listener.local_addr()?),
            ApiSocket::Tcp(listener, Some(_)) => ApiAddress::Https(listener.local_addr()?),
        })
    }

    /// Serves clients until `stopped`.
    pub(super) async fn serve(self, routes: Router, mut stopped: watch::Receiver<bool>) -> io::Result<()> {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let accepting = async {
            match &self.socket {
                ApiSocket::Unix(listener, _) => accept_unix(listener, &routes, &places).await,
                ApiSocket::Tcp(listener, credentials) => {
                    accept_tcp(listener, credentials.as_ref(), &routes, &places).await
                }
            }
        };
        tokio::select! {
            failed = accepting => failed,
            _ = stopped.wait_for(|stop| *stop) => Ok(()),
        }
    }
}

impl Drop for ApiListener {
    fn drop(&mut self) {
        if let ApiSocket::Unix(_, path) = &self.socket {
            let _ = std::fs::remove_file(path);
        }
    }
}

async fn accept_unix(
    listener: &std::os::unix::net::UnixListener,
    routes: &Router,
    places: &Arc<Semaphore>,
) -> io::Result<()> {
    let listener = tokio::net::UnixListener::from_std(listener.try_clone()?)?;
    loop {
        let place = place(places).await;
        match listener.accept().await {
            Ok((stream, _)) if is_owner(&stream) => {
                tokio::spawn(serve_connection(stream, ApiPeer::Owner, routes.clone(), place));
            }
            Ok(_) => tracing::warn!("another user connected to the interface's socket: refused"),
            Err(error) => pause(&error).await,
        }
    }
}

/// Returns true if the other end runs as this process's user or as root. The permissions of the socket's file say it,
/// too, but only a moment after the file is made.
fn is_owner(stream: &tokio::net::UnixStream) -> bool {
    let own = own_user();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == 0 || Some(peer.uid()) == own)
}

/// Returns the user of this process, which owns its folder in /proc.
fn own_user() -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").ok().map(|found| found.uid())
}

async fn accept_tcp(
    listener: &std::net::TcpListener,
    credentials: Option<&Arc<Credentials>>,
    routes: &Router,
    places: &Arc<Semaphore>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener.try_clone()?)?;
    loop {
        let place = place(places).await;
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                pause(&error).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let (peer, routes) = (ApiPeer::Address(address.ip()), routes.clone());
        match credentials.cloned() {
            None => {
                tokio::spawn(serve_connection(stream, peer, routes, place));
            }
            Some(credentials) => {
                tokio::spawn(async move {
                    match credentials.accept_without_certificate(stream).await {
                        Ok(stream) => serve_connection(stream, peer, routes, place).await,
                        Err(error) => tracing::debug!("{address}: {}", weir_tls::explain(&error)),
                    }
                });
            }
        }
    }
}

/// Waits for a place among the connections. The semaphore is never closed.
async fn place(places: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(places).acquire_owned().await.ok()
}

async fn pause(error: &io::Error) {
    tracing::warn!("a connection to the interface failed: {error}");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}
