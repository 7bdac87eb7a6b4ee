//! Finds a network interface of the machine, and reads and changes its settings.
use crate::spec::PortOptions;
use crate::sys::{errno, ioctl, ioctl::InterfaceRequest, socket};
use crate::{LinkState, PortError, PortInfo, ethtool};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::{fs, io};
use weir_packet::MacAddr;

/// Bytes by which a frame may exceed the MTU: an Ethernet header and one VLAN tag, as Linux counts.
pub(crate) const LINK_HEADER_MAX: usize = 18;

/// An interface in the network namespace in which it was looked up. Stays valid if the thread changes its namespace,
/// because the socket stays in the first one.
#[derive(Debug)]
pub(crate) struct KernelInterface {
    socket: OwnedFd,
    name: String,
    index: i32,
    namespace: u64,
}

impl KernelInterface {
    /// Finds an interface by name.
    ///
    /// # Errors
    /// No such interface (the message lists the existing ones), or the interface does not carry Ethernet frames.
    pub(crate) fn find(name: &str, options: &PortOptions) -> Result<Self, PortError> {
        let kind = options.spec().split(':').next().unwrap_or_default();
        if name.is_empty() {
            return Err(options.error(format!("expected {kind}:NAME with the name of a network interface")));
        }
        let socket = socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0)
            .map_err(|source| refused(options, "open a socket", source, ""))?;
        let mut interface = KernelInterface { socket, name: name.to_owned(), index: 0, namespace: own_namespace() };
        let Some(mut request) = InterfaceRequest::of(name) else {
            return Err(options.error(no_such_interface(name)));
        };
        match request.send(interface.socket.as_fd(), libc::SIOCGIFINDEX) {
            Ok(()) => interface.index = request.integer(),
            Err(source) if errno(&source) == libc::ENODEV => return Err(options.error(no_such_interface(name))),
            Err(source) => return Err(refused(options, "look up the interface", source, "")),
        }
        let answer = interface.ask(libc::SIOCGIFHWADDR);
        let answer = answer.map_err(|source| refused(options, "read the interface's address", source, ""))?;
        let (kind, _) = answer.hardware_address();
        if !matches!(kind, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK) {
            return Err(options.error(format!("{name} does not carry Ethernet frames (its link type is {kind})")));
        }
        Ok(interface)
    }

    /// Returns the interface with this index in the calling thread's network namespace.
    pub(crate) fn at_index(index: i32) -> io::Result<Self> {
        let socket = socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        let mut interface = KernelInterface { socket, name: String::new(), index, namespace: own_namespace() };
        interface.name = interface.request()?.name();
        Ok(interface)
    }

    /// Returns the interface's index in its namespace.
    pub(crate) fn index(&self) -> i32 {
        self.index
    }

    /// Returns the network namespace as the inode number of its file; 0 if not known.
    pub(crate) fn namespace(&self) -> u64 {
        self.namespace
    }

    /// Returns the interface's name at the time of the lookup.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the [`PortInfo`] of a port on this interface.
    ///
    /// # Errors
    /// The interface vanished.
    pub(crate) fn describe(&self, options: &PortOptions) -> Result<PortInfo, PortError> {
        let failed = |source| refused(options, "read the interface's settings", source, "");
        let (_, mac) = self.ask(libc::SIOCGIFHWADDR).map_err(failed)?.hardware_address();
        Ok(PortInfo {
            spec: options.spec().to_owned(),
            name: self.name.clone(),
            mac: MacAddr(mac),
            mtu: self.mtu().map_err(failed)?,
        })
    }

    /// Returns the MTU in bytes.
    ///
    /// # Errors
    /// The interface vanished.
    pub(crate) fn mtu(&self) -> io::Result<u32> {
        Ok(u32::try_from(self.ask(libc::SIOCGIFMTU)?.integer()).unwrap_or(0))
    }

    /// Returns true if the interface still exists.
    pub(crate) fn exists(&self) -> bool {
        self.request().is_ok()
    }

    /// Returns whether the interface is up with a carrier, and its rate.
    pub(crate) fn link(&self) -> LinkState {
        const RUNNING: i32 = libc::IFF_UP | libc::IFF_RUNNING;
        let up = self.ask(libc::SIOCGIFFLAGS).is_ok_and(|answer| answer.flags() & RUNNING == RUNNING);
        LinkState { up, speed: if up { ethtool::speed(self) } else { None } }
    }

    /// Returns true if the interface is administratively up, with a carrier or not.
    pub(crate) fn is_up(&self) -> bool {
        self.ask(libc::SIOCGIFFLAGS).is_ok_and(|answer| answer.flags() & libc::IFF_UP != 0)
    }

    /// Sets the interface administratively up.
    pub(crate) fn set_up(&self) -> io::Result<()> {
        self.change_flags(|flags| flags | libc::IFF_UP)
    }

    /// Sets the interface administratively down.
    pub(crate) fn set_down(&self) -> io::Result<()> {
        self.change_flags(|flags| flags & !libc::IFF_UP)
    }

    fn change_flags(&self, change: impl Fn(i32) -> i32) -> io::Result<()> {
        let mut request = self.ask(libc::SIOCGIFFLAGS)?;
        request.set_flags(change(request.flags()));
        request.send(self.socket.as_fd(), libc::SIOCSIFFLAGS)
    }

    /// Sends an ethtool command for the interface.
    pub(crate) fn ethtool<T: crate::sys::PlainData>(&self, command: &mut T) -> io::Result<()> {
        self.request()?.ethtool(self.socket.as_fd(), command)
    }

    fn ask(&self, request: u64) -> io::Result<InterfaceRequest> {
        let mut structure = self.request()?;
        structure.send(self.socket.as_fd(), request)?;
        Ok(structure)
    }

    /// Returns a request with the interface's current name: it may have been renamed, and its old name may belong to
    /// another interface.
    fn request(&self) -> io::Result<InterfaceRequest> {
        let mut request = InterfaceRequest::empty();
        request.set_index(self.index);
        request.send(self.socket.as_fd(), libc::SIOCGIFNAME)?;
        Ok(request)
    }
}

/// Guard of an interface that was up and is held down; dropping it sets the interface up again.
#[derive(Debug)]
pub(crate) struct AdminDownGuard(Arc<KernelInterface>);

impl AdminDownGuard {
    /// Sets an interface up or down, as [`crate::Port::set_admin`] requires.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn set(held: &mut Option<AdminDownGuard>, interface: &Arc<KernelInterface>, up: bool) -> io::Result<()> {
        if up {
            interface.set_up()?;
            *held = None;
        } else if interface.is_up() {
            interface.set_down()?;
            *held = Some(AdminDownGuard(Arc::clone(interface)));
        }
        Ok(())
    }
}

impl Drop for AdminDownGuard {
    fn drop(&mut self) {
        if let Err(error) = self.0.set_up()
            && self.0.exists()
        {
            tracing::warn!(interface = self.0.name(), %error, "cannot set the interface up again");
        }
    }
}

/// Returns the names of the interfaces in the calling thread's network namespace, as the kernel reports them: `/sys`
/// may show another namespace.
pub fn names() -> Vec<String> {
    ioctl::interface_names()
}

/// Returns the index of the interface `name` in the calling thread's network namespace, if it exists.
pub fn index_of(name: &str) -> Option<u32> {
    let socket = socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0).ok()?;
    let mut request = InterfaceRequest::of(name)?;
    request.send(socket.as_fd(), libc::SIOCGIFINDEX).ok()?;
    u32::try_from(request.integer()).ok()
}

/// Returns the current name of the interface with `index` in the calling thread's network namespace, if it exists.
pub fn name_of(index: u32) -> Option<String> {
    Some(KernelInterface::at_index(i32::try_from(index).ok()?).ok()?.name)
}

/// Returns the inode number of the calling thread's network namespace; 0 if the system does not report it.
pub(crate) fn own_namespace() -> u64 {
    fs::metadata("/proc/thread-self/ns/net").map_or(0, |file| file.ino())
}

/// Returns the error text for a missing interface, with the existing ones (at most 32).
fn no_such_interface(name: &str) -> String {
    let mut names = names();
    let near = weir_units::nearest_name(name, names.iter().map(String::as_str));
    let hint = near.map(|near| format!(", perhaps {near}")).unwrap_or_default();
    names.truncate(32);
    format!("no interface `{name}` in this network namespace{hint}; there are {}", names.join(", "))
}

/// Returns the error for an operation that the system refused, with advice. `capabilities` lists all that this kind
/// of port needs (`CAP_NET_RAW`), because setcap(8) replaces a program's earlier capabilities; empty if none is
/// needed.
pub(crate) fn refused(options: &PortOptions, tried: &str, source: io::Error, capabilities: &str) -> PortError {
    let advice = match errno(&source) {
        libc::EPERM | libc::EACCES if !capabilities.is_empty() => needs(capabilities),
        libc::EMFILE => "; raise the limit of open files (ulimit -n)".to_owned(),
        _ => String::new(),
    };
    PortError::System { spec: options.spec().to_owned(), tried: tried.to_owned(), source, advice }
}

/// Returns advice on how to grant capabilities to the program.
fn needs(capabilities: &str) -> String {
    let program = std::env::current_exe().map_or_else(|_| "weir".to_owned(), |path| path.display().to_string());
    let lower = capabilities.to_lowercase().replace(" and ", ",").replace(", ", ",");
    format!("; it needs {capabilities}: run as root (sudo), or once: sudo setcap {lower}+ep {program}")
}
