//! Reads and checks keys and certificates on disk.
use crate::explain::certificate;
use crate::verify::{self, CertChainVerifier};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{NoClientAuth, NoServerSessionStorage};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};

/// Maximum size of a file in bytes: four times that of a bundle of every public CA.
const MAX_FILE: u64 = 1 << 20;
/// PEM markers of a private key protected by a passphrase.
const ENCRYPTED: [&[u8]; 2] = [b"BEGIN ENCRYPTED PRIVATE KEY", b"Proc-Type: 4,ENCRYPTED"];

/// Paths of an end's key and certificates, each a PEM file, as for Open vSwitch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Private key: PKCS#8, PKCS#1 or SEC1, without a passphrase.
    pub private_key: PathBuf,
    /// Certificate for the key; intermediate certificates up to the CA may follow.
    pub certificate: PathBuf,
    /// Certificates of the CAs that sign for peers.
    pub ca_cert: PathBuf,
}

/// Reasons why credentials cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum CredentialError {
    #[error("{what} {path}: {error}")]
    Read { what: &'static str, path: String, error: io::Error },
    #[error("{what} {path}: found {found}, expected {expected}")]
    Content { what: &'static str, path: String, found: String, expected: &'static str },
    #[error("private key {key}: it does not belong to the certificate {certificate}")]
    Mismatch { key: String, certificate: String },
    #[error("certificate {path}: {problem}; have it renewed")]
    Date { path: String, problem: String },
}

/// Length and modification time of each file, if it exists: changes when a file changes.
pub(crate) type FileStamps = [Option<(u64, SystemTime)>; 3];

/// Contents of the files.
#[derive(Debug)]
pub(crate) struct LoadedCredentials {
    provider: Arc<CryptoProvider>,
    own: Arc<CertifiedKey>,
    roots: Arc<RootCertStore>,
    server: Arc<ServerConfig>,
    /// Configuration for clients that present no certificate.
    open_server: Arc<ServerConfig>,
}

impl TlsFiles {
    pub(crate) fn stamp(&self) -> FileStamps {
        [&self.private_key, &self.certificate, &self.ca_cert].map(|path| {
            let found = std::fs::metadata(path).ok()?;
            Some((found.len(), found.modified().ok()?))
        })
    }

    pub(crate) fn load(&self) -> Result<LoadedCredentials, CredentialError> {
        let provider = Arc::new(ring::default_provider());
        let key = read_key(&self.private_key)?;
        if let Some(problem) = exposed(&self.private_key) {
            tracing::warn!("{problem}");
        }
        let chain = read_certificates("certificate", &self.certificate)?;
        let roots = Arc::new(read_roots(&self.ca_cert)?);
        verify::check_dates(&chain, &provider).map_err(|problem| self.unusable(&problem))?;
        let own = CertifiedKey::from_der(chain, key, &provider).map_err(|error| self.not_a_pair(&error))?;
        let own = Arc::new(own);
        let clients =
            verify::client_verifier(roots.clone(), provider.clone()).map_err(|error| self.unusable(&error))?;
        let server = Arc::new(self.server_config(&provider, &own, clients)?);
        let open_server = Arc::new(self.server_config(&provider, &own, Arc::new(NoClientAuth))?);
        Ok(LoadedCredentials { provider, own, roots, server, open_server })
    }

    fn server_config(
        &self,
        provider: &Arc<CryptoProvider>,
        own: &Arc<CertifiedKey>,
        clients: Arc<dyn ClientCertVerifier>,
    ) -> Result<ServerConfig, CredentialError> {
        let builder = ServerConfig::builder_with_provider(Arc::clone(provider)).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| self.unusable(&error))?.with_client_cert_verifier(clients);
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(own))));
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    fn not_a_pair(&self, error: &rustls::Error) -> CredentialError {
        match error {
            rustls::Error::InconsistentKeys(_) => {
                CredentialError::Mismatch { key: shown(&self.private_key), certificate: shown(&self.certificate) }
            }
            rustls::Error::InvalidCertificate(_) => self.unusable(error),
            other => CredentialError::Content {
                what: "private key",
                path: shown(&self.private_key),
                found: format!("one that cannot be used ({other})"),
                expected: "RSA of 2048 to 8192 bits, ECDSA (P-256, P-384) or Ed25519",
            },
        }
    }

    fn unusable(&self, error: &rustls::Error) -> CredentialError {
        let path = shown(&self.certificate);
        match error {
            rustls::Error::InvalidCertificate(problem) if verify::is_out_of_date(problem) => {
                CredentialError::Date { path, problem: certificate(problem) }
            }
            other => CredentialError::Content {
                what: "certificate",
                path,
                found: unusable(other),
                expected: "an X.509 certificate of version 3",
            },
        }
    }
}

fn unusable(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(problem) => format!("one that cannot be used ({})", certificate(problem)),
        other => format!("one that cannot be used ({other})"),
    }
}

impl LoadedCredentials {
    pub(crate) fn server_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }

    pub(crate) fn open_server_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.open_server)
    }

    pub(crate) fn client_config(&self, name: Option<ServerName<'static>>) -> Result<ClientConfig, rustls::Error> {
        let verifier = CertChainVerifier::new(Arc::clone(&self.roots), &self.provider, name);
        let own = Arc::new(SingleCertAndKey::from(Arc::clone(&self.own)));
        let builder = ClientConfig::builder_with_provider(Arc::clone(&self.provider));
        let builder = builder.with_safe_default_protocol_versions()?.dangerous();
        let mut config = builder.with_custom_certificate_verifier(Arc::new(verifier)).with_client_cert_resolver(own);
        config.resumption = Resumption::disabled();
        Ok(config)
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, CredentialError> {
    let what = "private key";
    let text = read(what, path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        let is_encrypted = ENCRYPTED.iter().any(|mark| text.windows(mark.len()).any(|found| found == *mark));
        CredentialError::Content {
            what,
            path: shown(path),
            found: if is_encrypted { "one with a passphrase".to_owned() } else { found(&text, &error) },
            expected: "a PEM file with a private key that needs no passphrase (openssl pkey removes one)",
        }
    })
}

/// Returns a warning if all users may read the private key's file. Returns `None` if only its owner and group may, or
/// if it is gone.
fn exposed(path: &Path) -> Option<String> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o7777;
    let shown = shown(path);
    let advice = format!("everybody on this machine can read the private key (chmod 600 {shown})");
    (mode & 0o004 != 0).then(|| format!("{shown}: found mode {mode:04o}: {advice}"))
}

/// Reads the certificates of the CAs that are trusted.
pub(crate) fn read_roots(ca_cert: &Path) -> Result<RootCertStore, CredentialError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates("CA certificate", ca_cert)? {
        roots.add(certificate).map_err(|error| CredentialError::Content {
            what: "CA certificate",
            path: shown(ca_cert),
            found: unusable(&error),
            expected: "X.509 certificates of version 3",
        })?;
    }
    Ok(roots)
}

fn read_certificates(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, CredentialError> {
    let text = read(what, path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates
        .and_then(|list| if list.is_empty() { Err(rustls::pki_types::pem::Error::NoItemsFound) } else { Ok(list) });
    certificates.map_err(|error| CredentialError::Content {
        what,
        path: shown(path),
        found: found(&text, &error),
        expected: "a PEM file (-----BEGIN CERTIFICATE-----)",
    })
}

/// Describes what a file contains instead of the expected section.
fn found(text: &[u8], error: &rustls::pki_types::pem::Error) -> String {
    use rustls::pki_types::pem::Error::NoItemsFound;
    let sections = String::from_utf8_lossy(text);
    let other = sections.lines().find_map(|line| line.strip_prefix("-----BEGIN ")?.strip_suffix("-----"));
    match (error, other) {
        (_, None) => "no PEM section".to_owned(),
        (NoItemsFound, Some(other)) => format!("`{}`", other.chars().take(40).collect::<String>()),
        (error, Some(_)) => format!("damaged PEM ({error})"),
    }
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, CredentialError> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut text));
    read.map_err(|error| CredentialError::Read { what, path: shown(path), error })?;
    if text.len() as u64 > MAX_FILE {
        let found = format!("more than {MAX_FILE} bytes");
        return Err(CredentialError::Content { what, path: shown(path), found, expected: "a PEM file" });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_everybody_can_read_is_told() {
        let file = std::env::temp_dir().join(format!("weir-key-{}.pem", std::process::id()));
        std::fs::write(&file, "").unwrap();
        let found = |mode: u32| {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            exposed(&file)
        };
        assert_eq!([found(0o600), found(0o640)], [None, None]);
        let told = found(0o644).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(told.contains("found mode 0644") && told.contains(&format!("chmod 600 {}", file.display())), "{told}");
        assert_eq!(exposed(&file), None);
    }
}
