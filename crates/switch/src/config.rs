//! What a switch is made of.
use crate::socket::SocketFile;
use crate::spin::Spin;
use crate::targets::{ControllerSpec, ListenTarget};
use crate::threads::ThreadsConfig;
use serde::Deserialize;
use std::str::FromStr;
use weir_datapath::{DatapathConfig, FailMode};
use weir_openflow::Version;
use weir_openflow::model::PortNo;
use weir_openflow::session::SessionConfig;
use weir_port::{Port, PortError, PortSpec};
use weir_profile::Profile;
use weir_scenario::{Fabric, VirtualSwitch};
use weir_tls::Files;
use weir_units::SystemClock;

/// What a switch is made of. `..SwitchConfig::default()` fills in what is not said.
pub struct SwitchConfig {
    /// Its name (`datapath.name`), number and limits.
    pub datapath: DatapathConfig,
    /// What it does with no controller.
    pub fail_mode: FailMode,
    /// How it spreads over threads.
    pub threads: ThreadsConfig,
    /// Its ports. More can be added while it runs.
    pub ports: Vec<PortConfig>,
    /// Flow entries that it starts with, as `ovs-ofctl` writes them.
    pub entries: Vec<String>,
    /// Controllers it connects to, and reconnects to.
    pub controllers: Vec<ControllerSpec>,
    /// Where it lets controllers and tools connect.
    pub listeners: Vec<ListenTarget>,
    /// Its private key, its certificate and the CA of its peers; needed for `ssl:` and `pssl:`.
    pub tls: Option<Files>,
    /// Where it listens for `weir ctl`; nowhere if absent.
    pub control_socket: Option<SocketFile>,
    /// What virtual switches are cut from; none: the ports that have rates, each with crosspoints of 192 kB.
    pub fabric: Option<Fabric>,
    /// Its virtual switches. More can be added while it runs.
    pub virtual_switches: Vec<VirtualSwitch>,
    /// How its OpenFlow sessions behave.
    pub session: SessionConfig,
    /// Versions offered to the controllers it connects to; those of `session` if none is said.
    pub controller_versions: Vec<Version>,
    /// How long the engine polls without finding anything before it sleeps. More costs CPU time, less costs a wake-up
    /// (some microseconds) more often.
    pub spin: Spin,
    /// The device whose time it takes; none: its own. It runs on one thread then, and has no virtual switches.
    pub profile: Option<ProfileConfig>,
    /// Whether its engine notes when it was stopped by others ([`crate::SwitchHandle::stops`]).
    pub notes_stops: bool,
    /// What its times count from; whoever hands in a copy can compare its own times with those that ports are told.
    pub clock: SystemClock,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        SwitchConfig {
            datapath: DatapathConfig::default(),
            fail_mode: FailMode::Secure,
            threads: ThreadsConfig::default(),
            ports: Vec::new(),
            entries: Vec::new(),
            controllers: Vec::new(),
            listeners: Vec::new(),
            tls: None,
            control_socket: None,
            fabric: None,
            virtual_switches: Vec::new(),
            session: SessionConfig::default(),
            controller_versions: Vec::new(),
            spin: Spin::Auto,
            profile: None,
            notes_stops: false,
            clock: SystemClock::start(),
        }
    }
}

/// A device to be like in time.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileConfig {
    /// What is known of it.
    pub profile: Box<Profile>,
    /// What its random times are drawn by: the same gives the same.
    pub seed: u64,
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

    /// Opens a port as the user wrote it; if its device goes and comes back, so does the port. No other switch may
    /// have its interface.
    ///
    /// # Errors
    /// The system refuses, or another port that forwards has the interface.
    pub fn open(argument: PortArgument) -> Result<PortConfig, PortError> {
        let PortArgument { number, spec } = argument;
        let port = weir_port::open_alone(&spec)?;
        Ok(PortConfig { number, port, reopen: Some(Box::new(move || weir_port::open_alone(&spec))) })
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
deserialize_from_text!(PortArgument, ControllerSpec, ListenTarget);

#[cfg(test)]
mod tests {
    use super::*;

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
}
