//! Changes network interfaces of the kernel by netlink messages: starting a program for each change would take far
//! longer than the change. Also makes network namespaces for threads.
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use rustix::net::netdevice::name_to_index;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// Moves the calling thread into a new network namespace. Threads that it starts later are in it, too. The namespace
/// has no name, so nothing of it is left once its threads have ended and its sockets are closed, even if the process
/// is killed.
///
/// # Errors
/// `CAP_SYS_ADMIN` is missing, or the system has no namespace left.
pub fn enter_new_namespace() -> io::Result<()> {
    crate::sys::unshare_network()
}

/// Netlink connection to the kernel, in the network namespace in which it was opened.
pub struct NetlinkConnection(Socket);

impl NetlinkConnection {
    /// Opens a connection in the calling thread's namespace.
    ///
    /// # Errors
    /// The process or the system has no descriptor left.
    pub fn here() -> io::Result<NetlinkConnection> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(NetlinkConnection(socket))
    }

    /// Sets an interface administratively up.
    ///
    /// # Errors
    /// The kernel refuses, or no interface has this index.
    pub fn set_up(&mut self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.tell(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Returns the index of an interface.
    ///
    /// # Errors
    /// No interface has this name.
    pub fn index(&self, name: &str) -> io::Result<u32> {
        Ok(name_to_index(self.as_fd(), name)?)
    }

    /// Adds an address with the length of its network's prefix to an interface. An IPv6 address can be used at once,
    /// without a check that no other station has it.
    ///
    /// # Errors
    /// The kernel refuses, or the interface has the address.
    pub fn add_address(&mut self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.index = index;
        message.header.prefix_len = prefix;
        message.header.family = match address {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => {
                message.header.flags = AddressHeaderFlags::Nodad;
                AddressFamily::Inet6
            }
        };
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        self.tell(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sends a message, with `NLM_F_*` flags in addition to those of any request, and waits until the kernel has
    /// executed it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn tell(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.tell_all(vec![message], flags)
    }

    /// Sends several messages in one datagram and waits for the answer. The kernel acknowledges the last message; a
    /// message that it refuses is answered before that.
    ///
    /// # Errors
    /// The kernel refuses one of the messages.
    pub fn tell_all(&mut self, messages: Vec<RouteNetlinkMessage>, flags: u16) -> io::Result<()> {
        let last = messages.len().saturating_sub(1);
        let mut bytes = Vec::new();
        for (number, message) in messages.into_iter().enumerate() {
            let mut header = NetlinkHeader::default();
            header.flags = NLM_F_REQUEST | flags | if number == last { NLM_F_ACK } else { 0 };
            let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
            message.finalize();
            let at = bytes.len();
            // Each message begins at a multiple of four bytes.
            bytes.resize(at + message.buffer_len().next_multiple_of(4), 0);
            message.serialize(&mut bytes[at..]);
        }
        self.0.send(&bytes, 0)?;
        let (answer, _) = self.0.recv_from_full()?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer).map_err(io::Error::other)?;
        match answer.payload {
            NetlinkPayload::Error(said) if said.code.is_none() => Ok(()),
            NetlinkPayload::Error(said) => Err(said.to_io()),
            _ => Err(io::Error::other("the kernel answered something else than what it was told to do")),
        }
    }
}

impl AsFd for NetlinkConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
