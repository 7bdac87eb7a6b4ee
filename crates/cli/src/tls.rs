//! The options of TLS, which `weir switch` and `weir controller` share.
use anyhow::bail;
use std::path::PathBuf;
use weir_tls::Files;

/// Named as Open vSwitch names them.
#[derive(clap::Args, Default, Clone)]
pub(crate) struct TlsArgs {
    /// For ssl: and pssl:, a PEM file with the private key
    #[arg(short, long, value_name = "FILE")]
    pub(crate) private_key: Option<PathBuf>,
    /// For ssl: and pssl:, a PEM file with the certificate that is shown to peers; those between it and its CA may follow
    #[arg(short, long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,
    /// For ssl: and pssl:, a PEM file with the certificates of the CAs that sign for peers: whoever shows no certificate of
    /// theirs is refused. All three files are read again when they change
    #[arg(short = 'C', long, value_name = "FILE")]
    pub(crate) ca_cert: Option<PathBuf>,
}

impl TlsArgs {
    /// The files, all or none.
    ///
    /// # Errors
    /// Some are given and some are not.
    pub(crate) fn files(&self) -> anyhow::Result<Option<Files>> {
        match (&self.private_key, &self.certificate, &self.ca_cert) {
            (Some(private_key), Some(certificate), Some(ca_cert)) => Ok(Some(Files {
                private_key: private_key.clone(),
                certificate: certificate.clone(),
                ca_cert: ca_cert.clone(),
            })),
            (None, None, None) => Ok(None),
            (private_key, certificate, _) => {
                let missing = match (private_key, certificate) {
                    (None, _) => "--private-key",
                    (_, None) => "--certificate",
                    _ => "--ca-cert",
                };
                bail!("TLS needs --private-key, --certificate and --ca-cert together; {missing} is not given")
            }
        }
    }
}
