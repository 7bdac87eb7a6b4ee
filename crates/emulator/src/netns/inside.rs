//! Setting up a host's interface from within its namespace, by messages to the kernel: a program for each host would take far longer than what it does,
//! on a busy machine above all.
use super::neighbours;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::netdevice::name_to_index;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use weir_packet::MacAddr;
use weir_port::kernel::Kernel;
use weir_scenario::{Host, IpNet};

/// The loopback interface is the first of a namespace.
const LOOPBACK: u32 = 1;
/// Has the kernel make up no address of version 6 by itself.
const ADDRESS_MODE: &str = "/proc/sys/net/ipv6/conf/eth0/addr_gen_mode";
/// `IN6_ADDR_GEN_MODE_NONE`
const NO_ADDRESS: &str = "1";
/// Neighbours that the kernel is told of at once.
const AT_ONCE: usize = 256;

/// Sets each host's interfaces up in its namespace, with its addresses, and those of the others if they are to be `known`. A thread of its own goes there and ends in the last.
///
/// # Errors
/// The system refuses: at which host.
pub(super) fn set_up(hosts: &[Host], namespaces: &[String], known: bool) -> Result<(), (String, io::Error)> {
    let all = || {
        for (number, (host, name)) in hosts.iter().zip(namespaces).enumerate() {
            let others: Vec<_> = if known { neighbours::of(hosts, number).collect() } else { Vec::new() };
            one(host, name, &others).map_err(|error| (host.name.clone(), error))?;
        }
        Ok(())
    };
    let panicked = || (String::new(), io::Error::other("the thread that sets up hosts panicked"));
    std::thread::scope(|scope| scope.spawn(all).join()).unwrap_or_else(|_| Err(panicked()))
}

fn one(host: &Host, namespace: &str, others: &[(IpAddr, MacAddr)]) -> io::Result<()> {
    let file = File::open(format!("/run/netns/{namespace}"))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
    let mut kernel = Kernel::here()?;
    kernel.set_up(LOOPBACK)?;
    let eth0 = name_to_index(kernel.as_fd(), "eth0")?;
    match fs::write(ADDRESS_MODE, NO_ADDRESS) {
        // A kernel without version 6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        written => written?,
    }
    kernel.set_up(eth0)?;
    host.ip.iter().try_for_each(|net| add_address(&mut kernel, eth0, net))?;
    others.chunks(AT_ONCE).try_for_each(|others| add_neighbours(&mut kernel, eth0, others))
}

fn add_address(kernel: &mut Kernel, index: u32, net: &IpNet) -> io::Result<()> {
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
    kernel.tell(RouteNetlinkMessage::NewAddress(address), NLM_F_CREATE | NLM_F_EXCL)
}

/// Has these addresses known for good.
fn add_neighbours(kernel: &mut Kernel, index: u32, others: &[(IpAddr, MacAddr)]) -> io::Result<()> {
    let neighbour = |(address, mac): &(IpAddr, MacAddr)| {
        let mut neighbour = NeighbourMessage::default();
        neighbour.header.ifindex = index;
        neighbour.header.state = NeighbourState::Permanent;
        let address = match address {
            IpAddr::V4(v4) => (AddressFamily::Inet, NeighbourAddress::Inet(*v4)),
            IpAddr::V6(v6) => (AddressFamily::Inet6, NeighbourAddress::Inet6(*v6)),
        };
        neighbour.header.family = address.0;
        neighbour.attributes =
            vec![NeighbourAttribute::Destination(address.1), NeighbourAttribute::LinkLayerAddress(mac.0.into())];
        RouteNetlinkMessage::NewNeighbour(neighbour)
    };
    kernel.tell_all(others.iter().map(neighbour).collect(), NLM_F_CREATE | NLM_F_REPLACE)
}
