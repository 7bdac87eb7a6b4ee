//! TLS for control channels: reads credentials from files, verifies peers by their certificate chain, explains
//! refusals.
//!
//! Both ends present a certificate, and each verifies the other's against the CA it was given, as Open vSwitch does
//! (`ssl:`, `pssl:`). Verification cannot be turned off, because an OpenFlow channel open to anyone gives away the
//! network. The chain and its dates are verified. The name in a certificate is verified only if
//! [`Credentials::connect`] is given one, because controllers are connected to by address and the CA of a control
//! network signs for no other party. TLS 1.3 and 1.2.
//!
//! Clients of interfaces over HTTP have tokens instead of certificates: [`Credentials::accept_without_certificate`]
//! takes them, and [`ServerTrust`] connects as one. There the server's name is always verified.
//!
//! Changed files are read again at the next connection, so that certificates can be replaced while channels are up.
//! Unusable files are reported, and the previous contents stay in use.
//!
//! Not supported: revocation lists (revoke a certificate by changing the CA), passphrases, session resumption (a
//! resumed session would not verify the peer again).
mod explain;
mod files;
mod nonblocking;
mod trust;
mod verify;

pub use explain::explain;
pub use files::{CredentialError, TlsFiles};
pub use nonblocking::NonBlockingTlsStream;
pub use tokio_rustls::TlsStream;
pub use tokio_rustls::rustls::pki_types::ServerName;
pub use trust::ServerTrust;

use files::{FileStamps, LoadedCredentials};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Time limit for a handshake.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Key and certificate that an end presents, and the CAs that it trusts.
#[derive(Debug)]
pub struct Credentials {
    files: TlsFiles,
    current: Mutex<CachedCredentials>,
}

#[derive(Debug)]
struct CachedCredentials {
    /// Stamp of the files when they were last read, usable or not.
    stamp: FileStamps,
    loaded: Arc<LoadedCredentials>,
}

impl Credentials {
    /// Reads and checks the files.
    ///
    /// # Errors
    /// Fails if a file cannot be read or has other contents, the key belongs to another certificate, or the
    /// certificate is out of date.
    pub fn load(files: TlsFiles) -> Result<Credentials, CredentialError> {
        let stamp = files.stamp();
        let loaded = Arc::new(files.load()?);
        Ok(Credentials { files, current: Mutex::new(CachedCredentials { stamp, loaded }) })
    }

    /// Performs the connecting end's handshake with the peer at `address`. The peer's certificate must be for `name`,
    /// if given.
    ///
    /// # Errors
    /// Fails if the peer does not speak TLS or is refused. A refusal by the peer may arrive only with the first read;
    /// [`explain()`] explains that as well.
    pub async fn connect<S>(
        &self,
        stream: S,
        address: IpAddr,
        name: Option<&ServerName<'static>>,
    ) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = self.current().client_config(name.cloned()).map_err(io::Error::other)?;
        let name = name.cloned().unwrap_or_else(|| ServerName::IpAddress(address.into()));
        let shaken = TlsConnector::from(Arc::new(config)).connect(name, stream);
        in_time(shaken).await.map(TlsStream::from)
    }

    /// Performs the listening end's handshake.
    ///
    /// # Errors
    /// Fails if the peer does not speak TLS, is refused, or refuses this end.
    pub async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = self.current().server_config();
        in_time(TlsAcceptor::from(config).accept(stream)).await.map(TlsStream::from)
    }

    /// Performs the listening end's handshake with a client that presents no certificate, because the protocol above
    /// TLS knows it by a token.
    ///
    /// # Errors
    /// Fails if the peer does not speak TLS or refuses this end.
    pub async fn accept_without_certificate<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = self.current().open_server_config();
        in_time(TlsAcceptor::from(config).accept(stream)).await.map(TlsStream::from)
    }

    /// Returns the contents of the files, read again if they have changed.
    fn current(&self) -> Arc<LoadedCredentials> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.files.stamp();
        if stamp != current.stamp {
            current.stamp = stamp;
            match self.files.load() {
                Ok(loaded) => {
                    tracing::info!("{}: read again", self.files.certificate.display());
                    current.loaded = Arc::new(loaded);
                }
                Err(error) => tracing::warn!("{error}; the certificates read before stay in use"),
            }
        }
        Arc::clone(&current.loaded)
    }
}

async fn in_time<T>(handshake: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, format!("no TLS handshake within {HANDSHAKE_TIME:?}")));
    tokio::time::timeout(HANDSHAKE_TIME, handshake).await.unwrap_or_else(late)
}
