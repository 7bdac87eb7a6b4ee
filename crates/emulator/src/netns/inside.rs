//! Setting up a host's interface from within its namespace, by messages to the kernel: a program for each host would take far longer than what it does,
//! on a busy machine above all.
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use rustix::net::netdevice::name_to_index;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use weir_scenario::{Host, IpNet};

/// The loopback interface is the first of a namespace.
const LOOPBACK: u32 = 1;
/// Has the kernel make up no address of version 6 by itself.
const ADDRESS_MODE: &str = "/proc/sys/net/ipv6/conf/eth0/addr_gen_mode";
/// `IN6_ADDR_GEN_MODE_NONE`
const NO_ADDRESS: &str = "1";

/// Sets each host's interfaces up in its namespace, with its addresses. A thread of its own goes there and ends in the last.
///
/// # Errors
/// The system refuses: at which host.
pub(super) fn set_up(hosts: &[Host], namespaces: &[String]) -> Result<(), (String, io::Error)> {
    let all = || {
        let mut hosts = hosts.iter().zip(namespaces);
        hosts.try_for_each(|(host, name)| one(host, name).map_err(|error| (host.name.clone(), error)))
    };
    let panicked = || (String::new(), io::Error::other("the thread that sets up hosts panicked"));
    std::thread::scope(|scope| scope.spawn(all).join()).unwrap_or_else(|_| Err(panicked()))
}

fn one(host: &Host, namespace: &str) -> io::Result<()> {
    let file = File::open(format!("/run/netns/{namespace}"))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
    let mut kernel = Kernel::here()?;
    kernel.set_up(LOOPBACK)?;
    let eth0 = name_to_index(kernel.0.as_fd(), "eth0")?;
    match fs::write(ADDRESS_MODE, NO_ADDRESS) {
        // A kernel without version 6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        written => written?,
    }
    kernel.set_up(eth0)?;
    host.ip.iter().try_for_each(|net| kernel.add_address(eth0, net))
}

/// The kernel, as it is talked to in a namespace.
struct Kernel(Socket);

impl Kernel {
    fn here() -> io::Result<Kernel> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Kernel(socket))
    }

    fn set_up(&mut self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.tell(RouteNetlinkMessage::SetLink(link), 0)
    }

    fn add_address(&mut self, index: u32, net: &IpNet) -> io::Result<()> {
        let mut address = AddressMessage::default();
        address.header.index = index;
        address.header.prefix_len = net.prefix;
        address.header.family = match net.addr {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => {
                // Nobody else has it: it can be used at once.
                address.header.flags = AddressHeaderFlags::Nodad;
                AddressFamily::Inet6
            }
        };
        address.attributes = vec![AddressAttribute::Local(net.addr), AddressAttribute::Address(net.addr)];
        self.tell(RouteNetlinkMessage::NewAddress(address), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sends a message and waits until the kernel has carried it out.
    fn tell(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
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
