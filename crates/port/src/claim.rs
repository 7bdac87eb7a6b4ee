//! Claims a network interface for one forwarding port: a second one would receive each frame as well and forward it
//! again.
//!
//! A claim is a listening Unix socket with an abstract address. Such addresses belong to a network namespace, as
//! interface indices do, so one address stands for one interface, whatever its name. The kernel frees the address
//! when the process ends, however it ends.
//!
//! Only forwarding ports make claims ([`crate::open_alone`]). Taps, recorders, traffic generators and the profiler
//! observe an interface or send on it while a switch uses it, and need no claim.
use crate::PortError;
use crate::interface::{KernelInterface, refused};
use crate::spec::PortOptions;
use crate::sys::{errno, while_busy};
use rustix::net::sockopt::socket_peercred;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::{fs, io};

/// Exclusive right to forward frames of one interface; dropping it releases the claim.
#[derive(Debug)]
pub(crate) struct InterfaceClaim {
    _listener: UnixListener,
}

impl InterfaceClaim {
    /// Claims an interface of the calling thread's network namespace, if the port's options require a claim. Returns
    /// `None` if they do not, or if a process of another user, neither root nor this process's user, holds the
    /// address.
    ///
    /// # Errors
    /// Another port holds the claim: the message names its process.
    pub(crate) fn make(
        interface: &KernelInterface,
        options: &PortOptions,
    ) -> Result<Option<InterfaceClaim>, PortError> {
        if !options.is_alone() {
            return Ok(None);
        }
        let failed = |source| refused(options, "claim the interface", source, "");
        let name = format!("weir-interface-{}", interface.index());
        let address = SocketAddr::from_abstract_name(name).map_err(failed)?;
        let bind = || UnixListener::bind_addr(&address).map_err(as_busy);
        match while_busy(bind) {
            Ok(listener) => Ok(Some(InterfaceClaim { _listener: listener })),
            Err(error) if errno(&error) == libc::EBUSY => match ClaimHolder::of(&address) {
                ClaimHolder::OtherUser => {
                    // Any process may bind the address. Only processes of root or this user could have opened a port.
                    tracing::warn!(interface = interface.name(), "another user's program has the claim's address");
                    Ok(None)
                }
                holder => Err(options.error(format!(
                    "{} is taken by {holder}; expected an interface that no other port forwards",
                    interface.name()
                ))),
            },
            Err(source) => Err(failed(source)),
        }
    }
}

/// Maps "address in use" to an error that is retried: after a port is closed, a program that is being started holds a
/// copy of its socket until its exec.
fn as_busy(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::AddrInUse { io::Error::from_raw_os_error(libc::EBUSY) } else { error }
}

/// Process that holds the claim of an interface.
enum ClaimHolder {
    /// Another port of this process.
    ThisProcess,
    /// Another process, with its command line as far as it can be read.
    Process(i32, String),
    /// A process of a user who is neither root nor this process's user.
    OtherUser,
    /// Unknown to the kernel: the process just ended, or is in another process namespace.
    Unknown,
}

impl ClaimHolder {
    /// Asks the kernel for the process that listens on a claim's address.
    fn of(address: &SocketAddr) -> ClaimHolder {
        let asked = UnixStream::connect_addr(address).and_then(|stream| Ok(socket_peercred(stream)?));
        let Ok(credentials) = asked else { return ClaimHolder::Unknown };
        if !credentials.uid.is_root() && credentials.uid != rustix::process::geteuid() {
            return ClaimHolder::OtherUser;
        }
        match credentials.pid.as_raw_nonzero().get() {
            pid if u32::try_from(pid) == Ok(std::process::id()) => ClaimHolder::ThisProcess,
            pid => ClaimHolder::Process(pid, command_line(pid)),
        }
    }
}

impl std::fmt::Display for ClaimHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ClaimHolder::ThisProcess => f.write_str("another port of this process"),
            ClaimHolder::Process(pid, command) if command.is_empty() => write!(f, "a port of process {pid}"),
            ClaimHolder::Process(pid, command) => write!(f, "a port of process {pid} ({command})"),
            ClaimHolder::OtherUser | ClaimHolder::Unknown => f.write_str("another port"),
        }
    }
}

/// Returns a process's command line, at most 80 characters; empty if it cannot be read.
fn command_line(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    let printable = text.trim_end().chars().map(|letter| if letter.is_control() { '?' } else { letter });
    let line: String = printable.clone().take(80).collect();
    if printable.count() > 80 { format!("{line}...") } else { line }
}
