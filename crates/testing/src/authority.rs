//! Certificates for tests, as PEM files in a folder that is removed with them.
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use time::{Duration, OffsetDateTime};

/// A CA, and the folder with its certificate and those it signed.
pub struct CertificateAuthority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// Paths of a party's files.
#[derive(Debug, Clone)]
pub struct KeyAndCertificate {
    /// Private key of the party.
    pub private_key: PathBuf,
    /// Certificate of the party.
    pub certificate: PathBuf,
}

impl CertificateAuthority {
    /// Makes a CA with a unique name.
    pub fn new() -> CertificateAuthority {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        CertificateAuthority::named(&format!("test CA {}", NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Makes a CA with the given name; several CAs may have equal names.
    pub fn named(name: &str) -> CertificateAuthority {
        let folder = tempfile::tempdir().expect("a folder for certificates");
        let key = KeyPair::generate().expect("a key");
        let mut params = params(name, 3650);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a CA certificate");
        write(&folder.path().join("ca.pem"), &certificate.pem());
        CertificateAuthority { folder, issuer: Issuer::new(params, key) }
    }

    /// Returns the path of the CA's certificate.
    pub fn ca_cert(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Returns the folder with all files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Signs a certificate for `name` (a DNS name), valid for 30 days. The files are `name-privkey.pem` and
    /// `name-cert.pem`; existing ones are replaced.
    pub fn sign(&self, name: &str) -> KeyAndCertificate {
        self.sign_for(name, 30)
    }

    /// Signs as [`CertificateAuthority::sign`], but with a certificate valid for `days` days from now. If `days` is
    /// negative, it expired that many days ago.
    pub fn sign_for(&self, name: &str, days: i64) -> KeyAndCertificate {
        let key = KeyPair::generate().expect("a key");
        let mut params = params(name, days);
        params.subject_alt_names = vec![rcgen::SanType::DnsName(name.try_into().expect("a DNS name"))];
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let [private_key, certificate_file] =
            ["privkey", "cert"].map(|what| self.folder.path().join(format!("{name}-{what}.pem")));
        write(&private_key, &key.serialize_pem());
        write(&certificate_file, &certificate.pem());
        KeyAndCertificate { private_key, certificate: certificate_file }
    }
}

impl Default for CertificateAuthority {
    fn default() -> Self {
        CertificateAuthority::new()
    }
}

fn params(name: &str, days: i64) -> CertificateParams {
    let mut params = CertificateParams::default();
    let end = OffsetDateTime::now_utc() + Duration::days(days);
    params.not_after = end;
    params.not_before = end - Duration::days(days.abs() + 100);
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("the folder is writable");
}
