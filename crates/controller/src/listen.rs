//! Addresses on which the controller listens for switches.
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// TCP port that IANA has assigned to OpenFlow.
const OPENFLOW_TCP_PORT: u16 = 6653;

/// Address to listen on: `tcp:IP[:PORT]`, `ssl:IP[:PORT]` or `unix:PATH`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// TCP address; port 0 takes a free port.
    Tcp(SocketAddr),
    /// TCP address for TLS; port 0 takes a free port.
    Ssl(SocketAddr),
    /// Path of a Unix socket, made with permissions 0600.
    Unix(PathBuf),
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "expected tcp:IP[:PORT], ssl:IP[:PORT] or unix:PATH, such as tcp:127.0.0.1:6653";
        let error = || format!("found `{text}`, {expected}");
        match text.split_once(':') {
            Some(("tcp", rest)) => address(rest).map(ListenAddress::Tcp).ok_or_else(error),
            Some(("ssl", rest)) => address(rest).map(ListenAddress::Ssl).ok_or_else(error),
            Some(("unix", path)) if !path.is_empty() => Ok(ListenAddress::Unix(path.into())),
            _ => Err(error()),
        }
    }
}

/// Parses `IP`, `IP:PORT`, `[IPv6]` or `[IPv6]:PORT`.
fn address(text: &str) -> Option<SocketAddr> {
    if let Ok(whole) = text.parse() {
        return Some(whole);
    }
    let host = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    Some((host.parse::<IpAddr>().ok()?, OPENFLOW_TCP_PORT).into())
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) => write!(f, "tcp:{address}"),
            ListenAddress::Ssl(address) => write!(f, "ssl:{address}"),
            ListenAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed() {
        for (text, whole) in [
            ("tcp:127.0.0.1:6653", "tcp:127.0.0.1:6653"),
            ("tcp:0.0.0.0", "tcp:0.0.0.0:6653"),
            ("tcp:[::1]:7", "tcp:[::1]:7"),
            ("tcp:::1", "tcp:[::1]:6653"),
            ("ssl:10.0.0.1", "ssl:10.0.0.1:6653"),
            ("unix:/run/weir/controller.sock", "unix:/run/weir/controller.sock"),
        ] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), whole);
        }
        for wrong in ["", "6653", "tcp:", "tcp:localhost:6653", "unix:", "pssl:127.0.0.1:6653", "ssl:c1:6653"] {
            assert!(wrong.parse::<ListenAddress>().unwrap_err().contains("expected tcp:IP[:PORT]"), "{wrong}");
        }
    }
}
