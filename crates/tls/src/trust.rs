//! Connects to servers as a client without a certificate of its own, which has a token instead.
use crate::files::{CredentialError, read_roots};
use crate::verify::CertChainVerifier;
use crate::{TlsStream, in_time};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The CAs whose servers a client trusts.
#[derive(Debug)]
pub struct ServerTrust {
    roots: Arc<RootCertStore>,
}

impl ServerTrust {
    /// Reads the certificates of the CAs from a PEM file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or has other contents.
    pub fn load(ca_cert: &Path) -> Result<ServerTrust, CredentialError> {
        Ok(ServerTrust { roots: Arc::new(read_roots(ca_cert)?) })
    }

    /// Performs the connecting end's handshake with a server, whose certificate must be for `name` and signed by one
    /// of the CAs.
    ///
    /// # Errors
    /// Fails if the server does not speak TLS or is refused; [`explain()`](crate::explain()) says why.
    pub async fn connect<S>(&self, stream: S, name: ServerName<'static>) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let provider = Arc::new(ring::default_provider());
        let verifier = CertChainVerifier::new(Arc::clone(&self.roots), &provider, Some(name.clone()));
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(io::Error::other)?.dangerous();
        let mut config = builder.with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
        config.resumption = Resumption::disabled();
        in_time(TlsConnector::from(Arc::new(config)).connect(name, stream)).await.map(TlsStream::from)
    }
}
