//! Finds the other end of a veth, in any network namespace.
//!
//! A host's VLAN interface leaves its tag to the veth (`tx-vlan-offload`), as metadata outside the frame's bytes. XDP
//! on this end does not see the tag, so a tenant's frames would arrive untagged. Only a setting of the host's end
//! prevents that. Therefore this module searches the namespaces that have a name or a process.
use crate::interface::{KernelInterface, own_namespace};
use crate::netlink::LinkQuery;
use crate::sys::enter_network_namespace;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// Maximum number of namespaces to search.
const NAMESPACES_MAX: usize = 4096;

/// Result of searching for the other end of a veth.
pub(crate) enum VethPeer {
    /// The interface is no veth.
    None,
    /// Interface of the other end.
    Found(KernelInterface),
    /// Result for an end in a namespace that cannot be entered or found.
    OutOfReach,
}

/// Searches for the other end of a veth.
pub(crate) fn find(interface: &KernelInterface) -> VethPeer {
    let Ok(query) = LinkQuery::new(interface.index()) else { return VethPeer::OutOfReach };
    let Some(place) = query.veth_peer() else { return VethPeer::None };
    let found = match place.namespace {
        None => KernelInterface::at_index(place.index),
        Some(number) => namespaces()
            .find(|file| query.namespace_number(file.as_fd()) == Some(number))
            .ok_or_else(|| io::ErrorKind::NotFound.into())
            .and_then(|file| interface_within(&file, place.index)),
    };
    found.map_or(VethPeer::OutOfReach, VethPeer::Found)
}

/// Returns the interface with `index` in the network namespace whose file has the inode number `namespace`.
///
/// # Errors
/// The namespace or interface does not exist (any more), or this process may not enter the namespace.
pub(crate) fn interface_in(namespace: u64, index: i32) -> io::Result<KernelInterface> {
    if namespace == own_namespace() {
        return KernelInterface::at_index(index);
    }
    let is_it = |file: &File| file.metadata().is_ok_and(|meta| meta.ino() == namespace);
    interface_within(&namespaces().find(is_it).ok_or(io::ErrorKind::NotFound)?, index)
}

/// Iterates over the network namespaces that have a name or a process, each once.
fn namespaces() -> impl Iterator<Item = File> {
    let entries = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let of_process = |path: PathBuf| path.join("ns/net");
    let mut seen = BTreeSet::new();
    entries("/run/netns")
        .chain(entries("/proc").map(of_process))
        .filter_map(|path| File::open(path).ok())
        .filter(move |file| file.metadata().is_ok_and(|meta| seen.insert(meta.ino())))
        .take(NAMESPACES_MAX)
}

/// Returns the interface with `index` in another namespace. A temporary thread enters the namespace to open the
/// interface; the socket stays there.
fn interface_within(namespace: &File, index: i32) -> io::Result<KernelInterface> {
    let there = || {
        enter_network_namespace(namespace.as_fd())?;
        KernelInterface::at_index(index)
    };
    std::thread::scope(|scope| scope.spawn(there).join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
}
