//! What a switch is made of.
use crate::socket::SocketFile;
use serde::Deserialize;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use weir_datapath::{DatapathConfig, FailMode};
use weir_openflow::model::PortNo;
use weir_openflow::session::SessionConfig;
use weir_port::{Port, PortError, PortSpec};

/// The TCP port that IANA gave to OpenFlow.
pub const OPENFLOW_TCP_PORT: u16 = 6653;

/// What a switch is made of. `..SwitchConfig::default()` fills in what is not said.
pub struct SwitchConfig {
    /// Its name (`datapath.name`), number and limits.
    pub datapath: DatapathConfig,
    /// What it does with no controller.
    pub fail_mode: FailMode,
    /// Its ports. More can be added while it runs.
    pub ports: Vec<PortConfig>,
    /// Controllers it connects to, and reconnects to.
    pub controllers: Vec<ControllerTarget>,
    /// Where it lets controllers and tools connect.
    pub listeners: Vec<ListenTarget>,
    /// Where it listens for `weir ctl`; nowhere if absent.
    pub control_socket: Option<SocketFile>,
    /// How its OpenFlow sessions behave.
    pub session: SessionConfig,
    /// How long the engine polls without finding anything before it sleeps. More costs CPU time, less costs a wake-up
    /// (some microseconds) more often. Zero: sleeps at once.
    pub spin: Duration,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        SwitchConfig {
            datapath: DatapathConfig::default(),
            fail_mode: FailMode::Secure,
            ports: Vec::new(),
            controllers: Vec::new(),
            listeners: Vec::new(),
            control_socket: None,
            session: SessionConfig::default(),
            spin: Duration::from_micros(30),
        }
    }
}

/// Opens a port again after its device vanished.
pub type Reopen = Box<dyn FnMut() -> Result<Box<dyn Port>, PortError> + Send>;

/// A port of a switch.
pub struct PortConfig {
    /// Its number; none for the lowest free one.
    pub number: Option<PortNo>,
    /// The open port.
    pub port: Box<dyn Port>,
    /// How to open it again when its device vanished, tried once a second; without it the port is gone for good.
    pub reopen: Option<Reopen>,
}

impl PortConfig {
    /// A port that, once gone, stays gone.
    pub fn new(number: PortNo, port: Box<dyn Port>) -> PortConfig {
        PortConfig { number: Some(number), port, reopen: None }
    }

    /// Opens a port as the user wrote it; if its device goes and comes back, so does the port.
    ///
    /// # Errors
    /// The system refuses.
    pub fn open(argument: PortArgument) -> Result<PortConfig, PortError> {
        let PortArgument { number, spec } = argument;
        let port = weir_port::open(&spec)?;
        Ok(PortConfig { number, port, reopen: Some(Box::new(move || weir_port::open(&spec))) })
    }
}

/// A port as users write it: `[N=]KIND:NAME[,option=value...]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortArgument {
    /// Its number; none for the lowest free one.
    pub number: Option<PortNo>,
    /// The rest.
    pub spec: PortSpec,
}

impl FromStr for PortArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, spec) = match text.split_once('=') {
            Some((number, spec)) if !number.contains(':') => (Some(port_number(number)?), spec),
            _ => (None, text),
        };
        Ok(PortArgument { number, spec: spec.parse().map_err(|error: PortError| error.to_string())? })
    }
}

fn port_number(text: &str) -> Result<PortNo, String> {
    let number = text.parse().ok().filter(|number: &PortNo| number.is_ordinary() || *number == PortNo::LOCAL);
    let expected = "as in 1=af_packet:eth0, or LOCAL for the host's own port as in LOCAL=tap:weir0";
    number.ok_or_else(|| format!("found port number `{text}`, expected 1 to {} {expected}", PortNo::MAX.0))
}

/// Gives a type that is written as text its place in files.
macro_rules! deserialize_from_text {
    ($($type:ty),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
deserialize_from_text!(PortArgument, ControllerTarget, ListenTarget);

/// A controller to connect to: `tcp:IP[:PORT]` or `unix:PATH`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ControllerTarget {
    /// Over TCP.
    Tcp(SocketAddr),
    /// Over a Unix socket.
    Unix(PathBuf),
}

/// Where to let controllers connect: `ptcp:[PORT][:IP]` or `punix:PATH`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListenTarget {
    /// Over TCP; port 0 takes a free one.
    Tcp(SocketAddr),
    /// Over a Unix socket, made with permissions 0600.
    Unix(PathBuf),
}

impl FromStr for ControllerTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = |found: &str| format!("found `{found}`, expected tcp:IP[:PORT] or unix:PATH");
        match text.split_once(':') {
            Some(("tcp", rest)) => host_and_port(rest).map(ControllerTarget::Tcp).ok_or_else(|| expected(text)),
            Some(("unix", path)) if !path.is_empty() => Ok(ControllerTarget::Unix(path.into())),
            Some(("ssl", _)) => Err(format!("`{text}`: TLS is not there yet; use tcp:IP:PORT")),
            _ => Err(expected(text)),
        }
    }
}

impl FromStr for ListenTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = || format!("found `{text}`, expected ptcp:[PORT][:IP] or punix:PATH");
        match text.split_once(':') {
            Some(("ptcp", rest)) => port_and_host(rest).map(ListenTarget::Tcp).ok_or_else(expected),
            Some(("punix", path)) if !path.is_empty() => Ok(ListenTarget::Unix(path.into())),
            Some(("pssl", _)) => Err(format!("`{text}`: TLS is not there yet; use ptcp:PORT")),
            None if text == "ptcp" => Ok(ListenTarget::Tcp((Ipv4Addr::LOCALHOST, OPENFLOW_TCP_PORT).into())),
            _ => Err(expected()),
        }
    }
}

/// `IP`, `IP:PORT`, `[IPv6]` or `[IPv6]:PORT`.
fn host_and_port(text: &str) -> Option<SocketAddr> {
    if let Ok(whole) = text.parse() {
        return Some(whole);
    }
    let host = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    Some((host.parse::<IpAddr>().ok()?, OPENFLOW_TCP_PORT).into())
}

/// `[PORT][:IP]`; without an address the loopback one, since the channel is neither encrypted nor authenticated.
fn port_and_host(text: &str) -> Option<SocketAddr> {
    let (port, host) = text.split_once(':').unwrap_or((text, ""));
    let port = if port.is_empty() { OPENFLOW_TCP_PORT } else { port.parse().ok()? };
    let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let host = if host.is_empty() { Ipv4Addr::LOCALHOST.into() } else { host.parse::<IpAddr>().ok()? };
    Some((host, port).into())
}

impl fmt::Display for ControllerTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControllerTarget::Tcp(address) => write!(f, "tcp:{address}"),
            ControllerTarget::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl fmt::Display for ListenTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenTarget::Tcp(SocketAddr::V6(v6)) => {
                write!(f, "ptcp:{}:[{}]", v6.port(), v6.ip())
            }
            ListenTarget::Tcp(address) => write!(f, "ptcp:{}:{}", address.port(), address.ip()),
            ListenTarget::Unix(path) => write!(f, "punix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_and_printed() {
        for text in ["tcp:127.0.0.1:6653", "tcp:[::1]:7", "unix:/run/c.sock"] {
            assert_eq!(text.parse::<ControllerTarget>().unwrap().to_string(), text);
        }
        for text in ["ptcp:6654:127.0.0.1", "ptcp:0:0.0.0.0", "ptcp:6653:[::1]", "punix:/run/s.sock"] {
            assert_eq!(text.parse::<ListenTarget>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn ports_have_numbers_or_not() {
        let numbered: PortArgument = "3=null:x".parse().unwrap();
        assert_eq!((numbered.number, numbered.spec.to_string().as_str()), (Some(PortNo(3)), "null:x"));
        let free: PortArgument = "pcap:in=a.pcap".parse().unwrap();
        assert_eq!((free.number, free.spec.to_string().as_str()), (None, "pcap:in=a.pcap"));
        for (wrong, reason) in [("0=null:x", "1 to"), ("x=null:x", "`x`"), ("1=", "KIND:NAME"), ("1=nul:x", "null")] {
            let error = wrong.parse::<PortArgument>().unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn what_is_left_out_is_filled_in() {
        assert_eq!("tcp:10.0.0.1".parse::<ControllerTarget>().unwrap().to_string(), "tcp:10.0.0.1:6653");
        assert_eq!("tcp:[::1]".parse::<ControllerTarget>().unwrap().to_string(), "tcp:[::1]:6653");
        for text in ["ptcp", "ptcp:", "ptcp:6653"] {
            assert_eq!(text.parse::<ListenTarget>().unwrap().to_string(), "ptcp:6653:127.0.0.1", "{text}");
        }
    }

    #[test]
    fn wrong_targets_say_what_is_expected() {
        for wrong in ["", "127.0.0.1", "tcp:", "tcp:host:1", "tcp:1.2.3.4:99999", "unix:", "udp:1.2.3.4:5"] {
            let error = wrong.parse::<ControllerTarget>().unwrap_err();
            assert!(error.contains("expected tcp:IP[:PORT]"), "{error}");
        }
        assert!("ssl:1.2.3.4:6653".parse::<ControllerTarget>().unwrap_err().contains("use tcp:IP:PORT"));
        assert!("ptcp:x".parse::<ListenTarget>().is_err());
        assert!("punix:".parse::<ListenTarget>().is_err());
    }
}
