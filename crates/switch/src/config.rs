//! Configuration of a switch and of its ports, and the text form of ports.
use crate::ctl::ConfigurationSource;
use crate::in_band::InBandSettings;
use crate::socket::SocketFile;
use crate::spin::Spin;
use crate::targets::{ControllerSpec, ListenTarget};
use crate::threads::ThreadsConfig;
use serde::Deserialize;
use std::str::FromStr;
use weir_datapath::{DatapathConfig, FailMode};
use weir_device::ProfileConfig;
use weir_openflow::Version;
use weir_openflow::model::PortNo;
use weir_openflow::session::SessionConfig;
use weir_port::{Port, PortError, PortSpec};
use weir_slicing::{FabricSpec, VirtualSwitch, VirtualSwitchReader};
use weir_tls::TlsFiles;
use weir_units::SystemClock;

/// Configuration of a switch. `..SoftwareSwitchConfig::default()` fills in the fields that are not given.
pub struct SoftwareSwitchConfig {
    /// Name (`datapath.name`), datapath id and limits of the datapath.
    pub datapath: DatapathConfig,
    /// Behaviour while no controller is connected.
    pub fail_mode: FailMode,
    /// Number and arrangement of the forwarding threads.
    pub threads: ThreadsConfig,
    /// Ports at the start. More can be added while the switch runs.
    pub ports: Vec<PortConfig>,
    /// Flow entries installed at the start, in the syntax of `ovs-ofctl`.
    pub entries: Vec<String>,
    /// Groups added at the start before the flow entries, in the syntax of `ovs-ofctl`; groups that send to others may
    /// come before those.
    pub groups: Vec<String>,
    /// Meters added at the start before the groups, in the syntax of `ovs-ofctl`.
    pub meters: Vec<String>,
    /// Texts that the program took this configuration from, for `weir ctl save` and `weir ctl reload`.
    pub source: ConfigurationSource,
    /// Controllers that the switch connects to; it reconnects after a channel ends.
    pub controllers: Vec<ControllerSpec>,
    /// In-band control: the controllers are reached through the switch's own ports. None: they are not.
    pub in_band: Option<InBandSettings>,
    /// Addresses on which the switch accepts connections from controllers and tools.
    pub listeners: Vec<ListenTarget>,
    /// Private key, certificate and the CA of the peers; needed for `ssl:` and `pssl:`.
    pub tls: Option<TlsFiles>,
    /// Control socket for `weir ctl`; none if absent.
    pub control_socket: Option<SocketFile>,
    /// Capacity from which virtual switches are cut. If absent: ports that have rates, with crosspoints of 192 kB.
    pub fabric: Option<FabricSpec>,
    /// Virtual switches at the start. More can be added while the switch runs.
    pub virtual_switches: Vec<VirtualSwitch>,
    /// Reader of the virtual switches that requests on the control socket describe. Without it such requests are
    /// refused.
    pub virtual_switch_reader: Option<&'static dyn VirtualSwitchReader>,
    /// Behaviour of OpenFlow sessions.
    pub session: SessionConfig,
    /// OpenFlow versions offered to the controllers in `controllers`; if empty, those of `session`.
    pub controller_versions: Vec<Version>,
    /// Time for which the engine polls without finding work before it sleeps. A longer time costs processor time; a
    /// shorter one costs a wake-up (some microseconds) more often.
    pub spin: Spin,
    /// Device whose timing the switch imitates; none: its own timing. With a profile that takes time the switch runs
    /// on one thread and has no virtual switches.
    pub profile: Option<ProfileConfig>,
    /// True if the engine records when other threads or the machine stopped it ([`crate::SwitchHandle::stops`]).
    pub notes_stops: bool,
    /// Clock of the switch. Its times, including those told to ports, can be compared with the times of a copy.
    pub clock: SystemClock,
}

impl Default for SoftwareSwitchConfig {
    fn default() -> Self {
        SoftwareSwitchConfig {
            datapath: DatapathConfig::default(),
            fail_mode: FailMode::Secure,
            threads: ThreadsConfig::default(),
            ports: Vec::new(),
            entries: Vec::new(),
            groups: Vec::new(),
            meters: Vec::new(),
            source: ConfigurationSource::default(),
            controllers: Vec::new(),
            in_band: None,
            listeners: Vec::new(),
            tls: None,
            control_socket: None,
            fabric: None,
            virtual_switches: Vec::new(),
            virtual_switch_reader: None,
            session: SessionConfig::default(),
            controller_versions: Vec::new(),
            spin: Spin::Auto,
            profile: None,
            notes_stops: false,
            clock: SystemClock::start(),
        }
    }
}

/// Reopens a port after its device vanished.
pub type PortReopener = Box<dyn FnMut() -> Result<Box<dyn Port>, PortError> + Send>;

/// A port of a switch: its number, the open port and how to reopen it.
pub struct PortConfig {
    /// Port number; none for the lowest free one.
    pub number: Option<PortNo>,
    /// The open port.
    pub port: Box<dyn Port>,
    /// Reopens the port after its device vanished, called once a second. Without it the port is removed for good.
    pub reopen: Option<PortReopener>,
}

impl PortConfig {
    /// Returns the configuration of a port that is not reopened after its device vanished.
    pub fn new(number: PortNo, port: Box<dyn Port>) -> PortConfig {
        PortConfig { number: Some(number), port, reopen: None }
    }

    /// Opens a port from its text form. The port is reopened if its device vanishes and comes back. Only one switch
    /// may use an interface.
    ///
    /// # Errors
    /// Fails if the system refuses, or if another forwarding port has the interface.
    pub fn open(argument: PortArgument) -> Result<PortConfig, PortError> {
        let PortArgument { number, spec } = argument;
        let port = weir_port::open_alone(&spec)?;
        Ok(PortConfig { number, port, reopen: Some(Box::new(move || weir_port::open_alone(&spec))) })
    }
}

/// A port in its text form: `[N=]KIND:NAME[,option=value...]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortArgument {
    /// Port number; none for the lowest free one.
    pub number: Option<PortNo>,
    /// Kind, name and options.
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

/// Implements `Deserialize` through `FromStr` for types that configuration files hold as text.
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
