//! Sets up a host's interfaces inside its namespace by messages to the kernel. Starting a program for each host would
//! take far longer, above all on a busy machine.
use super::neighbours;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use weir_packet::MacAddr;
use weir_port::kernel::NetlinkConnection;
use weir_scenario::ScenarioHost;

/// Index of the loopback interface, which is the first of a namespace.
const LOOPBACK: u32 = 1;
/// Setting by which the kernel generates IPv6 addresses by itself.
const ADDRESS_MODE: &str = "/proc/sys/net/ipv6/conf/eth0/addr_gen_mode";
/// Value `IN6_ADDR_GEN_MODE_NONE`: the kernel generates no address.
const NO_ADDRESS: &str = "1";
/// Neighbours sent to the kernel at once.
const AT_ONCE: usize = 256;

/// Sets up each host's interfaces in its namespace with its addresses. If `known`, also adds the addresses of the
/// other hosts of its tenant. A thread enters the namespaces and ends in the last.
///
/// # Errors
/// The system refuses; the error comes with the name of the host.
pub(super) fn set_up(hosts: &[ScenarioHost], namespaces: &[String], known: bool) -> Result<(), (String, io::Error)> {
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

fn one(host: &ScenarioHost, namespace: &str, others: &[(IpAddr, MacAddr)]) -> io::Result<()> {
    let file = File::open(format!("/run/netns/{namespace}"))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
    let mut kernel = NetlinkConnection::here()?;
    kernel.set_up(LOOPBACK)?;
    let eth0 = kernel.index("eth0")?;
    match fs::write(ADDRESS_MODE, NO_ADDRESS) {
        // The kernel does not have IPv6.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        written => written?,
    }
    kernel.set_up(eth0)?;
    // IPv6 addresses can be used at once: no other host has them.
    host.ip.iter().try_for_each(|net| kernel.add_address(eth0, net.addr, net.prefix))?;
    others.chunks(AT_ONCE).try_for_each(|others| add_neighbours(&mut kernel, eth0, others))
}

/// Adds permanent neighbour entries.
fn add_neighbours(kernel: &mut NetlinkConnection, index: u32, others: &[(IpAddr, MacAddr)]) -> io::Result<()> {
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
