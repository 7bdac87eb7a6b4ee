//! Creates a temporary pair of joined interfaces (veth): each receives what the other sends.
use crate::kernel::NetlinkConnection;
use crate::netlink::LinkQuery;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoData, InfoKind, InfoVeth, LinkAttribute, LinkInfo, LinkMessage};
use rustix::net::netdevice::name_to_index;
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

/// A veth pair in the network namespace of the thread that created it; dropping it deletes the pair.
pub struct VethPair {
    kernel: NetlinkConnection,
    names: [String; 2],
    index: u32,
}

impl VethPair {
    /// Creates a pair with these names: one queue each, both ends up, no addresses.
    ///
    /// # Errors
    /// The kernel refuses: no privilege (`CAP_NET_ADMIN`), or a name exists already. Interfaces created before the
    /// error are deleted.
    pub fn make(names: [String; 2]) -> io::Result<VethPair> {
        let mut kernel = NetlinkConnection::here()?;
        let mut link = end(&names[0]);
        let peer = InfoData::Veth(InfoVeth::Peer(end(&names[1])));
        link.attributes.push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Veth), LinkInfo::Data(peer)]));
        kernel.tell(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)?;
        let index = name_to_index(kernel.as_fd(), &names[0])?;
        let mut made = VethPair { kernel, names, index };
        for at in 0..2 {
            let name = &made.names[at];
            // The kernel must not send frames of its own on the pair. Without IPv6 it sends none.
            let quiet = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
            if Path::new(&quiet).exists() {
                fs::write(&quiet, "1")?;
            }
            let index = name_to_index(made.kernel.as_fd(), name)?;
            made.kernel.set_up(index)?;
        }
        Ok(made)
    }

    /// Returns the names of the two ends.
    pub fn names(&self) -> &[String; 2] {
        &self.names
    }
}

impl Drop for VethPair {
    fn drop(&mut self) {
        let mut link = LinkMessage::default();
        link.header.index = self.index;
        // Deleting one end deletes the other.
        if let Err(error) = self.kernel.tell(RouteNetlinkMessage::DelLink(link), 0) {
            tracing::warn!("left behind: interface {}: {error}", self.names[0]);
        }
    }
}

fn end(name: &str) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.attributes =
        vec![LinkAttribute::IfName(name.to_owned()), LinkAttribute::NumTxQueues(1), LinkAttribute::NumRxQueues(1)];
    link
}

/// Returns true if the interface `name`, in the calling thread's network namespace, is an end of a veth pair.
pub fn is_veth(name: &str) -> bool {
    let index = NetlinkConnection::here().ok().and_then(|kernel| name_to_index(kernel.as_fd(), name).ok());
    let index = index.and_then(|index| i32::try_from(index).ok());
    index.is_some_and(|index| LinkQuery::new(index).is_ok_and(|query| query.veth_peer().is_some()))
}
