//! What the kernel tells about network interfaces: changes as they happen, and counters.
//!
//! One [`Monitor`] serves all ports of an engine: a port asks about its own link only now and then, and not every kind of
//! port is woken when its device goes down or away.
use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, Stats64};
use netlink_packet_route::nsid::{NsidAttribute, NsidMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

/// The multicast group of link changes (`RTMGRP_LINK`).
const LINK_GROUP: u32 = 1;

/// Tells of changes of the links in the network namespace in which it was made.
pub struct Monitor {
    socket: Socket,
    events: VecDeque<Event>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An interface was made or changed, not necessarily in whether it is up: names, addresses and MTUs change too.
    Changed {
        /// Its index.
        index: u32,
        /// Its name by now.
        name: String,
        /// Whether it is up with a carrier.
        up: bool,
    },
    /// An interface was deleted, or moved to another namespace.
    Removed {
        /// Its index.
        index: u32,
        /// Its last name.
        name: String,
    },
    /// More happened than the kernel kept: ask every port for its link.
    Missed,
}

impl Monitor {
    /// Begins to listen.
    ///
    /// # Errors
    /// The process or the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, LINK_GROUP))?;
        socket.set_non_blocking(true)?;
        Ok(Monitor { socket, events: VecDeque::new() })
    }

    /// The next change, oldest first; `None` when there is none now.
    ///
    /// # Errors
    /// The kernel refuses to tell more.
    pub fn next_event(&mut self) -> io::Result<Option<Event>> {
        while self.events.is_empty() {
            match self.socket.recv_from_full() {
                // Anybody may write to a netlink socket; only the kernel has port number 0.
                Ok((bytes, sender)) if sender.port_number() == 0 => {
                    self.events.extend(messages(&bytes).filter_map(event))
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => return Ok(Some(Event::Missed)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.events.pop_front())
    }
}

impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Asks the kernel about an interface, in the network namespace in which this was made.
pub(crate) struct Query {
    socket: Socket,
    index: u32,
}

/// Where the other end of a veth is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PeerPlace {
    /// Its index in its namespace.
    pub(crate) index: i32,
    /// The number by which this namespace knows the other's; `None`: they are the same.
    pub(crate) namespace: Option<i32>,
}

impl Query {
    pub(crate) fn new(index: i32) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.set_non_blocking(true)?;
        Ok(Query { socket, index: index.cast_unsigned() })
    }

    /// The interface's counters; `None` if it is gone.
    pub(crate) fn statistics(&self) -> Option<Stats64> {
        self.link()?.attributes.into_iter().find_map(|attribute| match attribute {
            LinkAttribute::Stats64(stats) => Some(stats),
            _ => None,
        })
    }

    /// Where the interface's other end is, if it is a veth's.
    pub(crate) fn veth_peer(&self) -> Option<PeerPlace> {
        let (mut veth, mut index, mut namespace) = (false, None, None);
        for attribute in self.link()?.attributes {
            match attribute {
                LinkAttribute::LinkInfo(infos) => veth = infos.contains(&LinkInfo::Kind(InfoKind::Veth)),
                LinkAttribute::Link(number) => index = i32::try_from(number).ok(),
                LinkAttribute::LinkNetNsId(number) => namespace = Some(number),
                _ => {}
            }
        }
        index.filter(|_| veth).map(|index| PeerPlace { index, namespace })
    }

    /// The number by which this namespace knows the one that `file` is open on.
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

    /// Asks, and gives the answer that `wanted` picks.
    fn ask<T>(&self, request: RouteNetlinkMessage, wanted: impl Fn(RouteNetlinkMessage) -> Option<T>) -> Option<T> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0).ok()?;
        // The kernel has answered by the time `send` returns.
        let (answer, _) = self.socket.recv_from_full().ok()?;
        messages(&answer).find_map(wanted)
    }
}

/// The messages in a datagram; what cannot be read is passed over.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = RouteNetlinkMessage> {
    std::iter::from_fn(move || {
        loop {
            // Each message begins with its length, and the next with the next multiple of four.
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

fn event(message: RouteNetlinkMessage) -> Option<Event> {
    match message {
        RouteNetlinkMessage::NewLink(link) => {
            let up = link.header.flags.contains(LinkFlags::Up | LinkFlags::Running);
            Some(Event::Changed { index: link.header.index, name: name(link)?, up })
        }
        // Leaving a bridge, too, is told as a deletion, of the family of bridges.
        RouteNetlinkMessage::DelLink(link) if link.header.interface_family == AddressFamily::Unspec => {
            Some(Event::Removed { index: link.header.index, name: name(link)? })
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
