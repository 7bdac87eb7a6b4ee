//! Addresses on which the interface is served.
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// Address of the interface: `unix:PATH`, `http:IP:PORT` or `https:IP:PORT`; a port alone is one of 127.0.0.1. Port 0
/// is any free port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiAddress {
    /// Path of a Unix socket, for its owner and root.
    Unix(PathBuf),
    /// HTTP without encryption, on an address of this machine alone.
    Http(SocketAddr),
    /// HTTP over TLS.
    Https(SocketAddr),
}

impl FromStr for ApiAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<ApiAddress, String> {
        let socket = |rest: &str| {
            let rest = rest.trim_start_matches("//").trim_end_matches('/');
            let port = rest.parse().ok().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
            port.or_else(|| rest.parse().ok())
        };
        let found = match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Some(ApiAddress::Unix(path.into())),
            Some(("http", rest)) => socket(rest).map(ApiAddress::Http),
            Some(("https", rest)) => socket(rest).map(ApiAddress::Https),
            _ => socket(text).map(ApiAddress::Http),
        };
        found.ok_or_else(|| {
            format!(
                "found `{text}`, expected unix:PATH, http:IP:PORT, https:IP:PORT or a port of 127.0.0.1, such as 8080 \
                 or https:192.0.2.1:8443"
            )
        })
    }
}

impl fmt::Display for ApiAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApiAddress::Unix(path) => write!(f, "unix:{}", path.display()),
            ApiAddress::Http(address) => write!(f, "http://{address}"),
            ApiAddress::Https(address) => write!(f, "https://{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed() {
        let shown = |text: &str| text.parse::<ApiAddress>().map(|address| address.to_string());
        for (text, whole) in [
            ("8080", "http://127.0.0.1:8080"),
            ("127.0.0.1:0", "http://127.0.0.1:0"),
            ("http:[::1]:80", "http://[::1]:80"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
            ("https:8443", "https://127.0.0.1:8443"),
            ("https:0.0.0.0:8443", "https://0.0.0.0:8443"),
            ("unix:/run/weir/c.api", "unix:/run/weir/c.api"),
        ] {
            assert_eq!(shown(text), Ok(whole.to_owned()));
        }
        for wrong in ["", "70000", "unix:", "localhost:80", "http:localhost:80", "tcp:127.0.0.1:80", "127.0.0.1"] {
            assert!(shown(wrong).unwrap_err().contains("such as 8080"), "{wrong}");
        }
    }
}
