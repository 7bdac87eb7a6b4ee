//! TLS for control channels: credentials read from files, peers verified by their chain, refusals in words.
//!
//! Both ends show a certificate, and each verifies the other's against the CA it was given, as Open vSwitch does (`ssl:`, `pssl:`). There
//! is no way to leave that out: an OpenFlow channel that anybody may open hands over the network. What is verified is the
//! chain and its dates; the name in a certificate only where [`Credentials::connect`] is given one, since controllers are
//! connected to by address and the CA of a control network signs for nobody else. TLS 1.3 and 1.2.
//!
//! The files are read again when they have changed, at the next connection, so that certificates can be replaced while
//! channels are up. Files that are unusable then are reported, and those read before stay in use.
//!
//! Not there: revocation lists (take a certificate away by changing the CA), passphrases, resumption (a session that is taken up
//! again would not verify the peer again).
mod explain;
mod files;
mod verify;

pub use explain::explain;
pub use files::{FileError, Files};
pub use tokio_rustls::TlsStream;
pub use tokio_rustls::rustls::pki_types::ServerName;

use files::{Loaded, Stamp};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Time a handshake may take.
pub const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// What one end shows and trusts.
#[derive(Debug)]
pub struct Credentials {
    files: Files,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    /// What the files looked like when they were last read, usable or not.
    stamp: Stamp,
    loaded: Arc<Loaded>,
}

impl Credentials {
    /// Reads and checks the files.
    ///
    /// # Errors
    /// A file cannot be read or is not what it should be, the key is another certificate's, the certificate is out of date.
    pub fn load(files: Files) -> Result<Credentials, FileError> {
        let stamp = files.stamp();
        let loaded = Arc::new(files.load()?);
        Ok(Credentials { files, current: Mutex::new(Current { stamp, loaded }) })
    }

    /// The connecting end's handshake with the peer at `address`, whose certificate must be for `name` if one is given.
    ///
    /// # Errors
    /// The peer does not speak TLS, or is refused; a peer that refuses us may do so only when we first read: [`explain`]
    /// makes words of that, too.
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

    /// The listening end's handshake.
    ///
    /// # Errors
    /// The peer does not speak TLS, or is refused, or refuses us.
    pub async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = self.current().server_config();
        in_time(TlsAcceptor::from(config).accept(stream)).await.map(TlsStream::from)
    }

    /// What the files hold, read again if they have changed.
    fn current(&self) -> Arc<Loaded> {
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
