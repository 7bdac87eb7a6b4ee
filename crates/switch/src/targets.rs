//! Addresses of controllers and listeners, and their text forms.
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use weir_tls::ServerName;
use weir_units::is_host_name;

/// TCP port assigned to OpenFlow by IANA.
pub const OPENFLOW_TCP_PORT: u16 = 6653;
/// Maximum number of auxiliary connections to a controller.
pub const MAX_AUXILIARIES: u8 = 8;

/// Address of a controller to connect to: `tcp:HOST[:PORT]`, `ssl:HOST[:PORT]` or `unix:PATH`. HOST is an IP address or
/// a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ControllerTarget {
    /// TCP without encryption.
    Tcp(ControllerHost),
    /// TLS over TCP.
    Ssl(ControllerHost),
    /// Unix socket by its path.
    Unix(PathBuf),
}

/// Host and TCP port of a controller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ControllerHost {
    /// Address and port.
    Address(SocketAddr),
    /// Name that is resolved at each attempt to connect, and port.
    Name(String, u16),
}

/// A controller to connect to and the options of the connection: `TARGET[,aux=N][,peer-name=NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerSpec {
    /// Address of the controller.
    pub target: ControllerTarget,
    /// Number of auxiliary connections opened once the main connection is up (OpenFlow 1.3.5, 6.3.7), at most
    /// [`MAX_AUXILIARIES`].
    pub auxiliaries: u8,
    /// Name (DNS name or address) that the controller's certificate must be issued for. If absent, any certificate of
    /// the CA is accepted.
    pub peer_name: Option<ServerName<'static>>,
}

/// Address on which to accept controllers: `ptcp:[PORT][:IP]`, `pssl:[PORT][:IP]` or `punix:PATH`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListenTarget {
    /// TCP without encryption; port 0 takes a free port.
    Tcp(SocketAddr),
    /// TLS over TCP; port 0 takes a free port.
    Ssl(SocketAddr),
    /// Unix socket, created with permissions 0600.
    Unix(PathBuf),
}

impl ControllerTarget {
    /// Returns true if the connection needs TLS credentials.
    pub fn is_tls(&self) -> bool {
        matches!(self, ControllerTarget::Ssl(_))
    }
}

impl From<SocketAddr> for ControllerHost {
    fn from(address: SocketAddr) -> Self {
        ControllerHost::Address(address)
    }
}

impl ListenTarget {
    /// Returns true if the listener needs TLS credentials.
    pub fn is_tls(&self) -> bool {
        matches!(self, ListenTarget::Ssl(_))
    }
}

impl From<ControllerTarget> for ControllerSpec {
    fn from(target: ControllerTarget) -> Self {
        ControllerSpec { target, auxiliaries: 0, peer_name: None }
    }
}

impl FromStr for ControllerTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = || format!("found `{text}`, expected tcp:HOST[:PORT], ssl:HOST[:PORT] or unix:PATH");
        match text.split_once(':') {
            Some(("tcp", rest)) => host_and_port(rest).map(ControllerTarget::Tcp).ok_or_else(expected),
            Some(("ssl", rest)) => host_and_port(rest).map(ControllerTarget::Ssl).ok_or_else(expected),
            Some(("unix", path)) if !path.is_empty() => Ok(ControllerTarget::Unix(path.into())),
            _ => Err(expected()),
        }
    }
}

impl FromStr for ControllerSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split(',');
        let mut spec = ControllerSpec::from(parts.next().unwrap_or_default().parse::<ControllerTarget>()?);
        for option in parts {
            spec.set(option).map_err(|problem| format!("`{text}`: {problem}"))?;
        }
        Ok(spec)
    }
}

impl ControllerSpec {
    fn set(&mut self, option: &str) -> Result<(), String> {
        match option.split_once('=') {
            Some(("aux", number)) => {
                let number = number.parse().ok().filter(|number| *number <= MAX_AUXILIARIES);
                self.auxiliaries =
                    number.ok_or_else(|| format!("found `{option}`, expected aux=0 to aux={MAX_AUXILIARIES}"))?;
                Ok(())
            }
            Some(("peer-name", name)) if self.target.is_tls() => {
                let name = ServerName::try_from(name.to_owned());
                self.peer_name =
                    Some(name.map_err(|_| format!("found `{option}`, expected a DNS name or an IP address"))?);
                Ok(())
            }
            Some(("peer-name", _)) => Err("peer-name= is for ssl: only".to_owned()),
            _ => Err(format!("found `{option}`, expected aux=N or peer-name=NAME")),
        }
    }
}

impl FromStr for ListenTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = || format!("found `{text}`, expected ptcp:[PORT][:IP], pssl:[PORT][:IP] or punix:PATH");
        match text.split_once(':').unwrap_or((text, "")) {
            ("ptcp", rest) => port_and_host(rest, Ipv4Addr::LOCALHOST).map(ListenTarget::Tcp).ok_or_else(expected),
            ("pssl", rest) => port_and_host(rest, Ipv4Addr::UNSPECIFIED).map(ListenTarget::Ssl).ok_or_else(expected),
            ("punix", path) if !path.is_empty() => Ok(ListenTarget::Unix(path.into())),
            _ => Err(expected()),
        }
    }
}

/// Parses `IP`, `IP:PORT`, `[IPv6]`, `[IPv6]:PORT`, `NAME` or `NAME:PORT`.
fn host_and_port(text: &str) -> Option<ControllerHost> {
    if let Ok(whole) = text.parse() {
        return Some(ControllerHost::Address(whole));
    }
    let host = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(SocketAddr::from((address, OPENFLOW_TCP_PORT)).into());
    }
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, port.parse().ok()?),
        None => (text, OPENFLOW_TCP_PORT),
    };
    is_host_name(name).then(|| ControllerHost::Name(name.to_owned(), port))
}

/// Parses `[PORT][:IP]`. Callers pass the loopback address as `default` for channels that are neither encrypted nor
/// authenticated, so that only this machine can connect.
fn port_and_host(text: &str, default: Ipv4Addr) -> Option<SocketAddr> {
    let (port, host) = text.split_once(':').unwrap_or((text, ""));
    let port = if port.is_empty() { OPENFLOW_TCP_PORT } else { port.parse().ok()? };
    let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let host = if host.is_empty() { default.into() } else { host.parse::<IpAddr>().ok()? };
    Some((host, port).into())
}

impl fmt::Display for ControllerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControllerHost::Address(address) => address.fmt(f),
            ControllerHost::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

impl fmt::Display for ControllerTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControllerTarget::Tcp(host) => write!(f, "tcp:{host}"),
            ControllerTarget::Ssl(host) => write!(f, "ssl:{host}"),
            ControllerTarget::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl fmt::Display for ControllerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target.fmt(f)?;
        if self.auxiliaries > 0 {
            write!(f, ",aux={}", self.auxiliaries)?;
        }
        self.peer_name.as_ref().map_or(Ok(()), |name| write!(f, ",peer-name={}", name.to_str()))
    }
}

impl fmt::Display for ListenTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, address) = match self {
            ListenTarget::Tcp(address) => ("ptcp", address),
            ListenTarget::Ssl(address) => ("pssl", address),
            ListenTarget::Unix(path) => return write!(f, "punix:{}", path.display()),
        };
        match address {
            SocketAddr::V6(v6) => write!(f, "{kind}:{}:[{}]", v6.port(), v6.ip()),
            SocketAddr::V4(v4) => write!(f, "{kind}:{}:{}", v4.port(), v4.ip()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_printed() {
        for text in
            ["tcp:127.0.0.1:6653", "tcp:[::1]:7", "ssl:c1.example:6653", "ssl:10.0.0.1:6653", "unix:/run/c.sock"]
        {
            assert_eq!(text.parse::<ControllerTarget>().unwrap().to_string(), text);
        }
        for text in
            ["ptcp:6654:127.0.0.1", "ptcp:0:0.0.0.0", "ptcp:6653:[::1]", "pssl:6653:10.0.0.1", "punix:/run/s.sock"]
        {
            assert_eq!(text.parse::<ListenTarget>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_left_out_is_filled_in() {
        assert_eq!("tcp:10.0.0.1".parse::<ControllerTarget>().unwrap().to_string(), "tcp:10.0.0.1:6653");
        assert_eq!("tcp:localhost".parse::<ControllerTarget>().unwrap().to_string(), "tcp:localhost:6653");
        assert_eq!("ssl:[::1]".parse::<ControllerTarget>().unwrap().to_string(), "ssl:[::1]:6653");
        for text in ["ptcp", "ptcp:", "ptcp:6653"] {
            assert_eq!(text.parse::<ListenTarget>().unwrap().to_string(), "ptcp:6653:127.0.0.1", "{text}");
        }
        assert_eq!("pssl".parse::<ListenTarget>().unwrap().to_string(), "pssl:6653:0.0.0.0");
    }

    #[test]
    fn controllers_have_options() {
        for text in
            ["tcp:10.0.0.1:6653,aux=3", "ssl:10.0.0.1:6653,aux=1,peer-name=c1.example", "unix:/run/c.sock,aux=2"]
        {
            assert_eq!(text.parse::<ControllerSpec>().unwrap().to_string(), text);
        }
        assert_eq!("tcp:10.0.0.1:1,aux=0".parse::<ControllerSpec>().unwrap().to_string(), "tcp:10.0.0.1:1");
        for (wrong, problem) in [
            ("tcp:1.2.3.4:5,aux=9", "expected aux=0 to aux=8"),
            ("tcp:1.2.3.4:5,aux", "expected aux=N or peer-name=NAME"),
            ("tcp:1.2.3.4:5,peer-name=c1", "is for ssl: only"),
            ("ssl:1.2.3.4:5,peer-name=a b", "expected a DNS name"),
            ("ssl:1.2.3.4:5,", "expected aux=N"),
        ] {
            let error = wrong.parse::<ControllerSpec>().unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn wrong_targets_say_what_is_expected() {
        for wrong in [
            "",
            "127.0.0.1",
            "tcp:",
            "tcp:1.2.3:1",
            "tcp:host:",
            "tcp:a b:1",
            "ssl:c1:99999",
            "unix:",
            "udp:1.2.3.4:5",
            "dtls:1.2.3.4",
        ] {
            let error = wrong.parse::<ControllerTarget>().unwrap_err();
            assert!(error.contains("expected tcp:HOST[:PORT], ssl:"), "{error}");
        }
        assert!("ptcp:x".parse::<ListenTarget>().is_err());
        assert!("pssl:1:2:3".parse::<ListenTarget>().is_err());
        assert!("punix:".parse::<ListenTarget>().is_err());
    }
}
