//! Changes network interfaces of the kernel by netlink messages: starting a program for each change would take far
//! longer than the change.
use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

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
