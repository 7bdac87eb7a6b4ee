//! Accepts peers with a certificate that is in date and signed by a trusted CA.
use std::sync::Arc;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use tokio_rustls::rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Verifies a listening peer's chain, and its name only if one is given.
#[derive(Debug)]
pub(crate) struct CertChainVerifier {
    roots: Arc<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
    name: Option<ServerName<'static>>,
}

impl CertChainVerifier {
    pub(crate) fn new(
        roots: Arc<RootCertStore>,
        provider: &CryptoProvider,
        name: Option<ServerName<'static>>,
    ) -> CertChainVerifier {
        CertChainVerifier { roots, algorithms: provider.signature_verification_algorithms, name }
    }
}

impl ServerCertVerifier for CertChainVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _connected_to: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&shown, &self.roots, intermediates, now, algorithms)?;
        self.name.as_ref().map_or(Ok(()), |name| verify_server_name(&shown, name))?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Returns a verifier for connecting peers, which must present a certificate.
pub(crate) fn client_verifier(
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
    verifier.map_err(|error| Error::General(error.to_string()))
}

/// Checks that this end's own certificate can be parsed and is in date. Its issuer is the peer's concern: verifying
/// against no trusted CA fails, and only errors found before that count.
pub(crate) fn check_dates(chain: &[CertificateDer<'_>], provider: &CryptoProvider) -> Result<(), Error> {
    let Some((own, between)) = chain.split_first() else { return Ok(()) };
    let own = ParsedCertificate::try_from(own)?;
    let algorithms = provider.signature_verification_algorithms.all;
    let nobody = RootCertStore::empty();
    let verified = verify_server_cert_signed_by_trust_anchor(&own, &nobody, between, UnixTime::now(), algorithms);
    match verified {
        Err(Error::InvalidCertificate(problem)) if is_out_of_date(&problem) => Err(problem.into()),
        _ => Ok(()),
    }
}

/// Returns true if the dates of a certificate are the problem.
pub(crate) fn is_out_of_date(problem: &CertificateError) -> bool {
    use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    matches!(problem, Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. })
}
