//! Addresses of servers of the interface.
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Address of a server: `unix:PATH`, `http://HOST[:PORT]` or `https://HOST[:PORT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "hosts and ports are what they say")]
pub enum ClientAddress {
    /// Path of a Unix socket.
    Unix(PathBuf),
    /// HTTP without encryption.
    Http { host: String, port: u16 },
    /// HTTP over TLS.
    Https { host: String, port: u16 },
}

impl ClientAddress {
    /// Returns what the header `Host` has.
    pub(super) fn host(&self) -> String {
        match self {
            ClientAddress::Unix(_) => "localhost".to_owned(),
            ClientAddress::Http { host, port } | ClientAddress::Https { host, port } => authority(host, *port),
        }
    }
}

/// Returns `HOST:PORT`, with an IPv6 address in brackets.
fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Parses `HOST[:PORT][/]`, where an IPv6 address is in brackets.
fn host_and_port(text: &str, default: u16) -> Option<(String, u16)> {
    let text = text.strip_suffix('/').unwrap_or(text);
    let (host, rest) = match text.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => text.find(':').map_or((text, ""), |at| text.split_at(at)),
    };
    let port = if rest.is_empty() { default } else { rest.strip_prefix(':')?.parse().ok()? };
    let is_host = !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ']);
    is_host.then(|| (host.to_owned(), port))
}

impl FromStr for ClientAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<ClientAddress, String> {
        let found = if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            Some(ClientAddress::Unix(path.into()))
        } else if let Some(rest) = text.strip_prefix("http://") {
            host_and_port(rest, 80).map(|(host, port)| ClientAddress::Http { host, port })
        } else {
            let rest = text.strip_prefix("https://").and_then(|rest| host_and_port(rest, 443));
            rest.map(|(host, port)| ClientAddress::Https { host, port })
        };
        found.ok_or_else(|| {
            format!(
                "found `{text}`, expected unix:PATH, http://HOST[:PORT] or https://HOST[:PORT], such as \
                 http://127.0.0.1:8080"
            )
        })
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientAddress::Unix(path) => write!(f, "unix:{}", path.display()),
            ClientAddress::Http { host, port } => write!(f, "http://{}", authority(host, *port)),
            ClientAddress::Https { host, port } => write!(f, "https://{}", authority(host, *port)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed() {
        let shown = |text: &str| text.parse::<ClientAddress>().map(|address| address.to_string());
        for (text, whole) in [
            ("unix:/run/weir/weir.api", "unix:/run/weir/weir.api"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
            ("http://controller", "http://controller:80"),
            ("https://c.example.net", "https://c.example.net:443"),
            ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
        ] {
            assert_eq!(shown(text), Ok(whole.to_owned()));
        }
        for wrong in ["", "unix:", "http://", "http://a:x", "http://[::1", "http://u@h", "http://h/api", "8080"] {
            assert!(shown(wrong).unwrap_err().contains("such as http://127.0.0.1:8080"), "{wrong}");
        }
    }
}
