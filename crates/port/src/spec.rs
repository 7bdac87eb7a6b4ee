//! Parses port specifications, `KIND:NAME[,option=value...]`, and opens the ports.
//!
//! [`PortSpec`] parses the text, [`open`] opens the port. The module of each kind describes its options. Every kind
//! also accepts the options of [`crate::wrap`], which shape, record or damage a port's frames. Values cannot contain
//! a comma.
use crate::tunnel::{TunnelKind, TunnelPort};
use crate::{Port, PortError, PortResult, af_packet, af_xdp, memory, null, pcap, tap, wrap};
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;
use weir_packet::MacAddr;

/// A kind of port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortKind {
    /// A network interface through AF_XDP sockets.
    AfXdp,
    /// A network interface through a packet socket.
    AfPacket,
    /// A network interface that the port creates, for traffic with the host's own network stack.
    Tap,
    /// Capture files, read or written.
    Pcap,
    /// Discards transmitted frames, and generates received frames if told to.
    Null,
    /// An end of a pair in memory; the other end is the port with this name in the same process.
    Memory,
    /// A tunnel: Ethernet frames in UDP.
    Vxlan,
    /// A tunnel: any packet in UDP.
    VxlanGpe,
    /// A tunnel: packets in IP.
    Gre,
}

impl PortKind {
    /// All kinds with their names in specifications.
    pub const ALL: [(PortKind, &'static str); 9] = [
        (PortKind::AfXdp, "af_xdp"),
        (PortKind::AfPacket, "af_packet"),
        (PortKind::Tap, "tap"),
        (PortKind::Pcap, "pcap"),
        (PortKind::Null, "null"),
        (PortKind::Memory, "memory"),
        (PortKind::Vxlan, "vxlan"),
        (PortKind::VxlanGpe, "vxlan-gpe"),
        (PortKind::Gre, "gre"),
    ];

    /// Returns true if reading a port's frames costs a system call, so that an idle port is better asked less often.
    pub const fn costs_a_call(self) -> bool {
        match self {
            PortKind::AfPacket | PortKind::Tap | PortKind::Vxlan | PortKind::VxlanGpe | PortKind::Gre => true,
            PortKind::AfXdp | PortKind::Pcap | PortKind::Null | PortKind::Memory => false,
        }
    }

    /// Returns true if a port is a network interface, whose changes the kernel reports.
    pub const fn is_interface(self) -> bool {
        match self {
            PortKind::AfXdp | PortKind::AfPacket | PortKind::Tap => true,
            PortKind::Pcap | PortKind::Null | PortKind::Memory => false,
            PortKind::Vxlan | PortKind::VxlanGpe | PortKind::Gre => false,
        }
    }

    /// Returns the kind of a specification without reading its name and options; `None` if there is no such kind.
    pub fn of(spec: &str) -> Option<PortKind> {
        let (kind, _) = spec.split_once(':')?;
        PortKind::ALL.into_iter().find(|(_, name)| *name == kind).map(|(kind, _)| kind)
    }
}

/// A parsed port specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSpec {
    /// Kind of the port.
    pub kind: PortKind,
    /// Name after the kind; empty if options follow immediately.
    pub name: String,
    /// Options after the name.
    pub options: PortOptions,
}

/// Options of a port, `option=value`; each at most once, except `queue`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortOptions {
    spec: String,
    values: Vec<(String, String)>,
    /// True if no other forwarding port may be open on the same interface.
    alone: bool,
}

impl FromStr for PortSpec {
    type Err = PortError;

    fn from_str(text: &str) -> Result<Self, PortError> {
        let error = |problem: String| PortError::Spec { spec: text.to_owned(), problem };
        let (kind, rest) = text.split_once(':').ok_or_else(|| error(without_kind(text)))?;
        let kind = PortKind::of(text).ok_or_else(|| error(kinds(kind)))?;
        let mut parts = rest.split(',').peekable();
        let name = parts.next_if(|first| !first.contains('=')).unwrap_or_default().to_owned();
        let mut options = PortOptions::none(text);
        for part in parts {
            options.add(part)?;
        }
        Ok(PortSpec { kind, name, options })
    }
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.options.spec)
    }
}

impl PortOptions {
    /// Returns no options, for a port opened without a written specification.
    pub fn none(spec: &str) -> PortOptions {
        PortOptions { spec: spec.to_owned(), values: Vec::new(), alone: false }
    }

    /// Returns the whole specification as the user wrote it.
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// Returns true if the port must be the only one that forwards frames of its interface; see [`open_alone`].
    pub(crate) fn is_alone(&self) -> bool {
        self.alone
    }

    /// Returns the text of an option, if it is given.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).next()
    }

    /// Returns the texts of an option that may be given several times.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.values.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of an option, if it is given. `expected` describes a valid value in errors.
    ///
    /// # Errors
    /// [`PortError::Spec`] if the text cannot be parsed.
    pub fn get<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, PortError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(self.error(format!("option {name}: found `{text}`, expected {expected}"))),
        }
    }

    /// Returns the value of an option that is on or off; `default` if it is not given.
    ///
    /// # Errors
    /// [`PortError::Spec`] if the text is neither on nor off.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, PortError> {
        match self.text(name) {
            None => Ok(default),
            Some("on" | "1" | "yes" | "true") => Ok(true),
            Some("off" | "0" | "no" | "false") => Ok(false),
            Some(text) => Err(self.error(format!("option {name}: found `{text}`, expected on or off"))),
        }
    }

    /// Refuses options that are neither in `known` nor those of a wrapper. Every kind calls this first.
    ///
    /// # Errors
    /// [`PortError::Spec`] that names the unknown option, the nearest known one, and all of them.
    pub(crate) fn expect_only(&self, known: &[&'static str]) -> PortResult {
        let known = || known.iter().copied().chain(wrap::OPTIONS);
        let Some((wrong, _)) = self.values.iter().find(|(key, _)| !known().any(|name| name == key)) else {
            return Ok(());
        };
        let all: Vec<&str> = known().collect();
        let hint = weir_units::nearest_name(wrong, known()).map(|near| format!(", perhaps {near}")).unwrap_or_default();
        Err(self.error(format!("no option `{wrong}`{hint}; options are {}", all.join(", "))))
    }

    /// Returns an error about this specification; `problem` says what was found, what was expected, and how to fix
    /// it.
    pub fn error(&self, problem: impl Into<String>) -> PortError {
        PortError::Spec { spec: self.spec.clone(), problem: problem.into() }
    }

    fn add(&mut self, part: &str) -> PortResult {
        let Some((key, value)) = part.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            return Err(self.error(format!("found `{part}`, expected option=value")));
        };
        if key != wrap::QUEUE && self.text(key).is_some() {
            return Err(self.error(format!("option {key} is given twice")));
        }
        self.values.push((key.to_owned(), value.to_owned()));
        Ok(())
    }
}

/// Opens a port that forwards frames, as switches do. Its interface is refused to other ports opened by this
/// function, in any process of the network namespace, until the port is closed or its process ends. Ports with
/// `outgoing=on` only observe and are exempt.
///
/// # Errors
/// Fails for the reasons of [`open`], or if another port has the interface; the message names its process.
pub fn open_alone(spec: &PortSpec) -> Result<Box<dyn Port>, PortError> {
    let options = PortOptions { alone: true, ..spec.options.clone() };
    open(&PortSpec { options, ..spec.clone() })
}

/// Opens a port.
///
/// # Errors
/// The specification is not valid, or the system refuses.
pub fn open(spec: &PortSpec) -> Result<Box<dyn Port>, PortError> {
    let (name, options) = (spec.name.as_str(), &spec.options);
    let port: Box<dyn Port> = match spec.kind {
        PortKind::Pcap => Box::new(pcap::PcapPort::open(name, options)?),
        PortKind::Null => Box::new(null::NullPort::open(name, options)?),
        PortKind::Memory => Box::new(open_memory(name, options)?),
        PortKind::AfPacket => Box::new(af_packet::AfPacket::open(name, options)?),
        PortKind::AfXdp => Box::new(af_xdp::AfXdp::open(name, options)?),
        PortKind::Tap => Box::new(tap::TapPort::open(name, options)?),
        PortKind::Vxlan => Box::new(TunnelPort::open(TunnelKind::Vxlan, name, options)?),
        PortKind::VxlanGpe => Box::new(TunnelPort::open(TunnelKind::VxlanGpe, name, options)?),
        PortKind::Gre => Box::new(TunnelPort::open(TunnelKind::Gre, name, options)?),
    };
    wrap::wrap(port, options)
}

/// Opens `memory:NAME[,capacity=FRAMES]`. The other end is the next `memory:NAME` opened in this process.
fn open_memory(name: &str, options: &PortOptions) -> Result<memory::MemoryPort, PortError> {
    static HUB: LazyLock<memory::MemoryPortRegistry> = LazyLock::new(memory::MemoryPortRegistry::default);
    options.expect_only(&["capacity"])?;
    if name.is_empty() {
        return Err(options.error("expected memory:NAME, the same NAME for both ends"));
    }
    let capacity: usize = options.get("capacity", "a number of frames")?.unwrap_or(memory::DEFAULT_CAPACITY);
    if !(1..=memory::MAX_CAPACITY).contains(&capacity) {
        return Err(options.error(format!("option capacity: expected 1 to {} frames", memory::MAX_CAPACITY)));
    }
    HUB.open(name, capacity).map_err(|source| PortError::System {
        spec: options.spec.clone(),
        tried: "make a memory port".into(),
        source,
        advice: String::new(),
    })
}

/// Returns a locally administered Ethernet address for what has no address of its own. Equal texts give equal addresses
/// in every run (FNV-1a).
pub fn synthetic_mac(text: &str) -> MacAddr {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let [_, _, _, b, c, d, e, f] = (hash ^ (hash >> 24)).to_be_bytes();
    MacAddr([0x02, b, c, d, e, f])
}

/// Returns the error text for a specification without a colon: a kind of which the colon was forgotten, or a name
/// without its kind.
fn without_kind(found: &str) -> String {
    let rest = match PortKind::ALL.iter().find(|(_, name)| *name == found) {
        None => return format!("expected KIND:NAME; {}", kinds(found)),
        Some((PortKind::AfXdp | PortKind::AfPacket, _)) => "INTERFACE",
        Some((PortKind::Tap | PortKind::Memory, _)) => "NAME",
        Some((PortKind::Pcap, _)) => "in=FILE,out=FILE",
        Some((PortKind::Null, _)) => "",
        Some((PortKind::Vxlan | PortKind::VxlanGpe | PortKind::Gre, _)) => "NAME,remote=ADDRESS",
    };
    format!("found a kind without a colon, expected `{found}:{rest}`")
}

/// Returns the error text for an unknown kind.
fn kinds(found: &str) -> String {
    let names = PortKind::ALL.map(|(_, name)| name);
    let hint = weir_units::nearest_name(found, names).map(|near| format!(", perhaps {near}")).unwrap_or_default();
    format!("no kind `{found}`{hint}; kinds are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        match text.parse::<PortSpec>().and_then(|spec| open(&spec)) {
            Ok(_) => panic!("{text} was accepted"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn parts_are_told_apart() {
        let spec: PortSpec = "af_packet:eth0,csum=finish".parse().unwrap();
        assert_eq!((spec.kind, spec.name.as_str()), (PortKind::AfPacket, "eth0"));
        assert_eq!(spec.options.text("csum"), Some("finish"));
        assert_eq!(spec.to_string(), "af_packet:eth0,csum=finish");
        let spec: PortSpec = "pcap:in=a.pcap,out=/tmp/b=c.pcap".parse().unwrap();
        assert_eq!((spec.name.as_str(), spec.options.text("out")), ("", Some("/tmp/b=c.pcap")));
    }

    #[test]
    fn errors_say_what_to_write() {
        let all = "kinds are af_xdp, af_packet, tap, pcap, null, memory, vxlan, vxlan-gpe, gre";
        assert_eq!(problem("afxdp:eth0"), format!("port afxdp:eth0: no kind `afxdp`, perhaps af_xdp; {all}"));
        assert_eq!(problem("dpdk:0"), format!("port dpdk:0: no kind `dpdk`; {all}"));
        assert_eq!(problem("eth0"), format!("port eth0: expected KIND:NAME; no kind `eth0`; {all}"));
        assert_eq!(problem("null"), "port null: found a kind without a colon, expected `null:`");
        assert!(problem("af_packet").ends_with("expected `af_packet:INTERFACE`"));
        assert_eq!(problem("null:,rx"), "port null:,rx: found `rx`, expected option=value");
        assert_eq!(problem("null:,rx=on,rx=on"), "port null:,rx=on,rx=on: option rx is given twice");
        assert_eq!(problem("null:,rx=maybe"), "port null:,rx=maybe: option rx: found `maybe`, expected on or off");
        let wrong = problem("null:,sice=60");
        assert!(
            wrong.starts_with("port null:,sice=60: no option `sice`, perhaps size; options are rx, size"),
            "{wrong}"
        );
        assert!(problem("memory:").contains("the same NAME for both ends"));
        assert!(problem("memory:x,capacity=0").contains("1 to 1048576 frames"));
    }

    #[test]
    fn memory_ports_meet_by_name() {
        let spec: PortSpec = "memory:spec-test,capacity=4".parse().unwrap();
        let mut first = open(&spec).unwrap();
        assert!(first.link().up);
        drop(open(&spec).unwrap());
        assert!(!first.link().up);
    }

    #[test]
    fn synthetic_addresses_are_local_and_differ() {
        let (a, b) = (synthetic_mac("memory:a"), synthetic_mac("memory:b"));
        assert_ne!(a, b);
        assert_eq!(a.0[0], 2);
    }
}
