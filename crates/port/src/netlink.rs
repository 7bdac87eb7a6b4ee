//! Reports changes of network interfaces as they happen, and reads their counters and the ways to other machines from
//! the kernel.
//!
//! One [`LinkMonitor`] serves all ports of an engine: a port reads its own link state only now and then, and not every
//! kind of port is woken when its device goes down or vanishes.
use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, Stats64};
use netlink_packet_route::nsid::{NsidAttribute, NsidMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

/// Multicast group of link changes (`RTMGRP_LINK`).
const LINK_GROUP: u32 = 1;

/// Reports changes of links in the network namespace in which it was created.
pub struct LinkMonitor {
    socket: Socket,
    events: VecDeque<LinkEvent>,
}

/// Change of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    /// An interface was created or changed. Names, addresses and MTUs change too, not only the link.
    Changed {
        /// Index of the interface.
        index: u32,
        /// Current name of the interface.
        name: String,
        /// True if the interface is up with a carrier.
        up: bool,
    },
    /// An interface was deleted or moved to another namespace.
    Removed {
        /// Index of the interface.
        index: u32,
        /// Last name of the interface.
        name: String,
    },
    /// Events were lost because the kernel's buffer was full: read the link state of every port.
    Missed,
}

impl LinkMonitor {
    /// Starts listening for changes.
    ///
    /// # Errors
    /// The process or the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, LINK_GROUP))?;
        socket.set_non_blocking(true)?;
        Ok(LinkMonitor { socket, events: VecDeque::new() })
    }

    /// Returns the oldest pending change; `None` if there is none now.
    ///
    /// # Errors
    /// Receiving from the kernel fails.
    pub fn next_event(&mut self) -> io::Result<Option<LinkEvent>> {
        while self.events.is_empty() {
            match self.socket.recv_from_full() {
                // Any process may write to a netlink socket; only the kernel has port number 0.
                Ok((bytes, sender)) if sender.port_number() == 0 => {
                    self.events.extend(messages(&bytes).filter_map(event))
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => return Ok(Some(LinkEvent::Missed)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.events.pop_front())
    }
}

impl AsFd for LinkMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Netlink queries about one interface, in the network namespace in which the query was created.
pub(crate) struct LinkQuery {
    socket: Socket,
    index: u32,
}

/// Location of the other end of a veth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VethPeerLocation {
    /// Interface index of the other end, in its namespace.
    pub(crate) index: i32,
    /// Identifier by which this namespace refers to the peer's namespace; `None` if both ends are in this namespace.
    pub(crate) namespace: Option<i32>,
}

impl LinkQuery {
    pub(crate) fn new(index: i32) -> io::Result<Self> {
        Ok(LinkQuery { socket: query_socket()?, index: index.cast_unsigned() })
    }

    /// Returns the interface's counters; `None` if it is gone.
    pub(crate) fn statistics(&self) -> Option<Stats64> {
        self.link()?.attributes.into_iter().find_map(|attribute| match attribute {
            LinkAttribute::Stats64(stats) => Some(stats),
            _ => None,
        })
    }

    /// Returns the location of the interface's other end, if it is a veth.
    pub(crate) fn veth_peer(&self) -> Option<VethPeerLocation> {
        let (mut veth, mut index, mut namespace) = (false, None, None);
        for attribute in self.link()?.attributes {
            match attribute {
                LinkAttribute::LinkInfo(infos) => veth = infos.contains(&LinkInfo::Kind(InfoKind::Veth)),
                LinkAttribute::Link(number) => index = i32::try_from(number).ok(),
                LinkAttribute::LinkNetNsId(number) => namespace = Some(number),
                _ => {}
            }
        }
        index.filter(|_| veth).map(|index| VethPeerLocation { index, namespace })
    }

    /// Returns the identifier by which this namespace refers to the namespace that `file` is open on.
    pub(crate) fn namespace_number(&self, file: BorrowedFd<'_>) -> Option<i32> {
        let mut request = NsidMessage::default();
        request.attributes.push(NsidAttribute::Fd(file.as_raw_fd().cast_unsigned()));
        let answer = self.ask(RouteNetlinkMessage::GetNsId(request), |message| match message {
            RouteNetlinkMessage::NewNsId(answer) => Some(answer),
            _ => None,
        })?;
        answer.attributes.into_iter().find_map(|attribute| match attribute {
            NsidAttribute::Id(number) => Some(number),
            _ => None,
        })
    }

    fn link(&self) -> Option<LinkMessage> {
        let mut request = LinkMessage::default();
        request.header.index = self.index;
        self.ask(RouteNetlinkMessage::GetLink(request), |message| match message {
            RouteNetlinkMessage::NewLink(link) if link.header.index == self.index => Some(link),
            _ => None,
        })
    }

    /// Sends a request and returns the first answer that `wanted` accepts.
    fn ask<T>(&self, request: RouteNetlinkMessage, wanted: impl Fn(RouteNetlinkMessage) -> Option<T>) -> Option<T> {
        ask(&self.socket, request, wanted)
    }
}

/// Returns the router through which the machine reaches an address; `None` if the address is on a network of the
/// machine, or if there is no route.
///
/// # Errors
/// The process or the system has no descriptor left.
pub fn next_hop(address: IpAddr) -> io::Result<Option<IpAddr>> {
    let mut request = RouteMessage::default();
    let (family, bits, destination) = match address {
        IpAddr::V4(address) => (AddressFamily::Inet, 32, RouteAddress::Inet(address)),
        IpAddr::V6(address) => (AddressFamily::Inet6, 128, RouteAddress::Inet6(address)),
    };
    request.header.address_family = family;
    request.header.destination_prefix_length = bits;
    request.attributes.push(RouteAttribute::Destination(destination));
    let route = ask(&query_socket()?, RouteNetlinkMessage::GetRoute(request), |message| match message {
        RouteNetlinkMessage::NewRoute(route) => Some(route),
        _ => None,
    });
    let attributes = route.into_iter().flat_map(|route| route.attributes);
    Ok(attributes.into_iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(RouteAddress::Inet(router)) => Some(router.into()),
        RouteAttribute::Gateway(RouteAddress::Inet6(router)) => Some(router.into()),
        _ => None,
    }))
}

/// Opens a socket for queries, in the calling thread's network namespace.
fn query_socket() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.set_non_blocking(true)?;
    Ok(socket)
}

/// Sends a request and returns the first answer that `wanted` accepts.
fn ask<T>(
    socket: &Socket,
    request: RouteNetlinkMessage,
    wanted: impl Fn(RouteNetlinkMessage) -> Option<T>,
) -> Option<T> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0).ok()?;
    // The kernel has answered by the time `send` returns.
    let (answer, _) = socket.recv_from_full().ok()?;
    messages(&answer).find_map(wanted)
}

/// Iterates over the messages in a datagram; skips messages that cannot be parsed.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = RouteNetlinkMessage> {
    std::iter::from_fn(move || {
        loop {
            // Each message begins with its length. Messages begin at multiples of four bytes.
            let length = u32::from_ne_bytes(*bytes.first_chunk()?);
            let length = usize::try_from(length).ok().filter(|&length| (16..=bytes.len()).contains(&length))?;
            let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes[..length]);
            bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
            if let Ok(NetlinkPayload::InnerMessage(inner)) = message.map(|message| message.payload) {
                return Some(inner);
            }
        }
    })
}

fn event(message: RouteNetlinkMessage) -> Option<LinkEvent> {
    match message {
        RouteNetlinkMessage::NewLink(link) => {
            let up = link.header.flags.contains(LinkFlags::Up | LinkFlags::Running);
            Some(LinkEvent::Changed { index: link.header.index, name: name(link)?, up })
        }
        // Leaving a bridge is reported as a deletion too, with the address family of bridges.
        RouteNetlinkMessage::DelLink(link) if link.header.interface_family == AddressFamily::Unspec => {
            Some(LinkEvent::Removed { index: link.header.index, name: name(link)? })
        }
        _ => None,
    }
}

fn name(link: LinkMessage) -> Option<String> {
    link.attributes.into_iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name),
        _ => None,
    })
}
