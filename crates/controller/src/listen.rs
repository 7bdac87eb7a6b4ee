//! Addresses on which the controller listens for switches.
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// TCP port that IANA has assigned to OpenFlow.
const OPENFLOW_TCP_PORT: u16 = 6653;

/// Address to listen on: `tcp:IP[:PORT]`, `ssl:IP[:PORT]` or `unix:PATH`; as Open vSwitch writes it, too:
/// `ptcp:[PORT][:IP]`, `pssl:[PORT][:IP]` or `punix:PATH`.
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
        let expected = "expected tcp:IP[:PORT], ssl:IP[:PORT] or unix:PATH, such as tcp:127.0.0.1:6653, or Open vSwitch's \
                        ptcp:[PORT][:IP], pssl:[PORT][:IP] or punix:PATH";
        let error = || format!("found `{text}`, {expected}");
        match text.split_once(':').unwrap_or((text, "")) {
            ("tcp", rest) => address(rest).map(ListenAddress::Tcp).ok_or_else(error),
            ("ssl", rest) => address(rest).map(ListenAddress::Ssl).ok_or_else(error),
            ("ptcp", rest) => passive_address(rest, Ipv4Addr::LOCALHOST).map(ListenAddress::Tcp).ok_or_else(error),
            ("pssl", rest) => passive_address(rest, Ipv4Addr::UNSPECIFIED).map(ListenAddress::Ssl).ok_or_else(error),
            ("unix" | "punix", path) if !path.is_empty() => Ok(ListenAddress::Unix(path.into())),
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

/// Parses `[PORT][:IP]`, Open vSwitch's form. As on the switch's side, `default` is the loopback address for channels
/// that are neither encrypted nor authenticated.
fn passive_address(text: &str, default: Ipv4Addr) -> Option<SocketAddr> {
    let (port, host) = text.split_once(':').unwrap_or((text, ""));
    let port = if port.is_empty() { OPENFLOW_TCP_PORT } else { port.parse().ok()? };
    let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let host = if host.is_empty() { default.into() } else { host.parse::<IpAddr>().ok()? };
    Some((host, port).into())
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
            ("ptcp:", "tcp:127.0.0.1:6653"),
            ("ptcp:6654", "tcp:127.0.0.1:6654"),
            ("ptcp:6654:0.0.0.0", "tcp:0.0.0.0:6654"),
            ("ptcp:7:[::1]", "tcp:[::1]:7"),
            ("pssl:6654", "ssl:0.0.0.0:6654"),
            ("punix:/run/weir/controller.sock", "unix:/run/weir/controller.sock"),
        ] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), whole);
        }
        for wrong in ["", "6653", "tcp:", "tcp:localhost:6653", "unix:", "punix:", "ptcp:127.0.0.1:6653", "ssl:c1:6653"]
        {
            assert!(wrong.parse::<ListenAddress>().unwrap_err().contains("expected tcp:IP[:PORT]"), "{wrong}");
        }
    }
}
