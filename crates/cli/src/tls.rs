//! TLS options shared by `weir switch` and `weir controller`.
use anyhow::bail;
use std::path::PathBuf;
use weir_tls::TlsFiles;

/// TLS options, named as in Open vSwitch.
#[derive(clap::Args, Default, Clone)]
pub(crate) struct TlsArgs {
    /// For ssl: and pssl:, PEM file with the private key
    #[arg(short, long, value_name = "FILE")]
    pub(crate) private_key: Option<PathBuf>,
    /// For ssl: and pssl:, PEM file with the certificate shown to peers; the intermediate certificates up to its CA
    /// may follow
    #[arg(short, long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,
    /// For ssl: and pssl:, PEM file with the certificates of the CAs that sign for peers: a peer without a
    /// certificate signed by one of them is refused. All three files are read again when they change
    #[arg(short = 'C', long, value_name = "FILE")]
    pub(crate) ca_cert: Option<PathBuf>,
}

impl TlsArgs {
    /// Returns the three files, or `None` if none is given.
    ///
    /// # Errors
    /// Only some of the three files are given.
    pub(crate) fn files(&self) -> anyhow::Result<Option<TlsFiles>> {
        match (&self.private_key, &self.certificate, &self.ca_cert) {
            (Some(private_key), Some(certificate), Some(ca_cert)) => Ok(Some(TlsFiles {
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
