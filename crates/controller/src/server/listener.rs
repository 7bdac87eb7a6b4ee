//! Sockets on which the controller accepts switches.
use crate::ListenAddress;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

/// Socket on which switches connect.
pub(super) enum ControllerListener {
    Tcp(TcpListener),
    /// TCP socket for TLS; the connection's task does the handshake.
    Ssl(TcpListener),
    Unix(UnixListener, PathBuf),
}

/// Stream to a switch, of any transport.
pub(super) trait AsyncByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> AsyncByteStream for T {}

impl ControllerListener {
    pub(super) fn bind(listen: &ListenAddress) -> io::Result<ControllerListener> {
        let bound = match listen {
            ListenAddress::Tcp(address) => bind_tcp(*address).map(ControllerListener::Tcp),
            ListenAddress::Ssl(address) => bind_tcp(*address).map(ControllerListener::Ssl),
            ListenAddress::Unix(path) => {
                bind_unix(path).map(|listener| ControllerListener::Unix(listener, path.clone()))
            }
        };
        bound.map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {listen}: {error}")))
    }

    pub(super) fn is_tls(&self) -> bool {
        matches!(self, ControllerListener::Ssl(_))
    }

    pub(super) fn address(&self) -> io::Result<ListenAddress> {
        Ok(match self {
            ControllerListener::Tcp(listener) => ListenAddress::Tcp(listener.local_addr()?),
            ControllerListener::Ssl(listener) => ListenAddress::Ssl(listener.local_addr()?),
            ControllerListener::Unix(_, path) => ListenAddress::Unix(path.clone()),
        })
    }

    pub(super) async fn accept(&self) -> io::Result<(Box<dyn AsyncByteStream>, String)> {
        match self {
            ControllerListener::Tcp(listener) | ControllerListener::Ssl(listener) => {
                let (stream, address) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Box::new(stream), format!("{}:{address}", if self.is_tls() { "ssl" } else { "tcp" })))
            }
            ControllerListener::Unix(listener, path) => {
                let (stream, _) = listener.accept().await?;
                Ok((Box::new(stream), format!("unix:{}", path.display())))
            }
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

fn bind_tcp(address: std::net::SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Binds a Unix socket that only its owner may use. Replaces an existing socket on which no process listens.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}
