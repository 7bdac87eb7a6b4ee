//! Tells the service manager what the switch does, as `sd_notify(3)` describes it: a datagram to the socket that
//! `NOTIFY_SOCKET` names. Without that variable nothing is sent.
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A way to the service manager.
pub(super) struct ServiceManager(Option<(UnixDatagram, SocketAddr)>);

impl ServiceManager {
    /// Finds the service manager's socket. A socket that cannot be used is a warning: the switch runs without it.
    pub(super) fn find() -> ServiceManager {
        let found = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty());
        ServiceManager(found.and_then(|name| {
            let opened = address(&name).and_then(|address| Ok((UnixDatagram::unbound()?, address)));
            opened.inspect_err(|error| tracing::warn!("NOTIFY_SOCKET: {}: {error}", name.display())).ok()
        }))
    }

    /// Reports that the switch forwards and that its sockets accept connections.
    pub(super) fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}\n"));
    }

    /// Reports that the switch stops.
    pub(super) fn stopping(&self, reason: &str) {
        self.send(&format!("STOPPING=1\nSTATUS=stopping: {reason}\n"));
    }

    fn send(&self, text: &str) {
        let Some((socket, address)) = &self.0 else { return };
        if let Err(error) = socket.send_to_addr(text.as_bytes(), address) {
            tracing::warn!("the service manager is not told: {error}");
        }
    }
}

/// Returns the address that a name means: a path, or an abstract one after `@`.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
        [b'/', ..] => SocketAddr::from_pathname(name),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "expected a path, or a name after `@`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_name_lead_to_a_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("weir-notify-test-{}", std::process::id());
        for (bound, name) in [
            (SocketAddr::from_pathname(&path).unwrap(), path.clone().into_os_string()),
            (SocketAddr::from_abstract_name(&name).unwrap(), format!("@{name}").into()),
        ] {
            let manager = UnixDatagram::bind_addr(&bound).unwrap();
            let told = ServiceManager(Some((UnixDatagram::unbound().unwrap(), address(&name).unwrap())));
            told.ready("forwards");
            let mut buffer = [0; 64];
            let length = manager.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1\nSTATUS=forwards\n");
        }
        assert!(address(OsStr::new("relative")).is_err());
    }
}
