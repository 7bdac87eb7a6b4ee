//! Sockets on which the controller accepts switches.
use super::link::SwitchStream;
use crate::ListenAddress;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use weir_tls::Credentials;

/// Bytes that wait in the socket of a switch that is not read from. Without a limit, the system lets 6 MB wait.
const RECEIVE_BYTES: usize = 256 << 10;

/// Socket on which switches connect.
pub(super) enum ControllerListener {
    Tcp(TcpListener),
    /// TCP socket for TLS; the handshake takes place when the connection is served.
    Ssl(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl ControllerListener {
    pub(super) fn bind(listen: &ListenAddress) -> io::Result<ControllerListener> {
        let bound = match listen {
            ListenAddress::Tcp(address) => bind_tcp(*address).map(ControllerListener::Tcp),
            ListenAddress::Ssl(address) => bind_tcp(*address).map(ControllerListener::Ssl),
            ListenAddress::Unix(path) => {
                bind_unix(path).map(|listener| ControllerListener::Unix(listener, path.clone()))
            }
        };
        bound.map_err(|error| {
            let advice = match error.kind() {
                io::ErrorKind::AddrInUse => "; another program listens there: stop it or choose another address",
                io::ErrorKind::AddrNotAvailable => "; no interface of this machine has that address",
                _ => "",
            };
            io::Error::new(error.kind(), format!("cannot listen on {listen}: {error}{advice}"))
        })
    }

    pub(super) fn address(&self) -> io::Result<ListenAddress> {
        Ok(match self {
            ControllerListener::Tcp(listener) => ListenAddress::Tcp(listener.local_addr()?),
            ControllerListener::Ssl(listener) => ListenAddress::Ssl(listener.local_addr()?),
            ControllerListener::Unix(_, path) => ListenAddress::Unix(path.clone()),
        })
    }

    /// Accepts a switch. Returns its stream and the address of its end.
    ///
    /// # Errors
    /// None waits (`WouldBlock`), or it cannot be accepted.
    pub(super) fn accept(&self, credentials: Option<&Credentials>) -> io::Result<(SwitchStream, String)> {
        match self {
            ControllerListener::Tcp(listener) => {
                let (stream, address) = accept_tcp(listener)?;
                Ok((SwitchStream::Tcp(stream), format!("tcp:{address}")))
            }
            ControllerListener::Ssl(listener) => {
                let (stream, address) = accept_tcp(listener)?;
                let credentials = credentials.ok_or_else(|| io::Error::other("no certificate was given"))?;
                Ok((SwitchStream::Tls(Box::new(credentials.begin_accept(stream)?)), format!("ssl:{address}")))
            }
            ControllerListener::Unix(listener, path) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok((SwitchStream::Unix(stream), format!("unix:{}", path.display())))
            }
        }
    }
}

impl AsFd for ControllerListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            ControllerListener::Tcp(listener) | ControllerListener::Ssl(listener) => listener.as_fd(),
            ControllerListener::Unix(listener, _) => listener.as_fd(),
        }
    }
}

impl Drop for ControllerListener {
    fn drop(&mut self) {
        if let ControllerListener::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn accept_tcp(listener: &TcpListener) -> io::Result<(TcpStream, std::net::SocketAddr)> {
    let (stream, address) = listener.accept()?;
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    Ok((stream, address))
}

fn bind_tcp(address: std::net::SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    // Accepted sockets inherit it.
    set_socket_recv_buffer_size(&listener, RECEIVE_BYTES)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Binds a Unix socket that only its owner may use, without blocking. Replaces an existing socket on which no process
/// listens.
///
/// # Errors
/// A process listens there, a file that is no socket is in the way, or the folder is missing or not writable.
pub fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
