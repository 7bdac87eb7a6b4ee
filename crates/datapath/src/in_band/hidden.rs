//! Hidden entries: which frames are control traffic. They come before all entries of controllers, no flow-mod changes
//! them and no flow dump has them, so that no controller can cut a switch off.
//!
//! The entries follow those of Open vSwitch ("Design Decisions In Open vSwitch", In-Band Control, rules a to i), with
//! two differences. Open vSwitch takes ARP for controllers only in one direction (rules f and g) and needs the
//! controller for the rest. Here both directions are taken, so that a switch lets another one through before it has a
//! controller itself. And controllers may have IPv6 addresses: neighbour discovery then takes the place of ARP.
use super::control_frame::{ControlFrame, ControlHeaders, dhcp_port};
use super::lost;
use super::paths::ControlPaths;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use weir_openflow::model::PortNo;
use weir_packet::MacAddr;

/// Condition of a hidden entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HiddenMatch {
    /// DHCP requests of the local port (rule a).
    DhcpFromLocal { is_v6: bool },
    /// DHCP replies to the local port, which Open vSwitch recognises without a rule.
    DhcpToLocal { is_v6: bool },
    /// ARP or neighbour discovery to the local port's Ethernet address (rule b).
    NeighbourToLocal { is_v6: bool },
    /// ARP or neighbour discovery from the local port (rule c).
    NeighbourFromLocal { is_v6: bool },
    /// ARP or neighbour discovery for the address of a controller or next hop (rules d and f).
    NeighbourTo(IpAddr),
    /// ARP or neighbour discovery from the address of a controller or next hop (rules e and g).
    NeighbourFrom(IpAddr),
    /// Neighbour discovery between a controller or next hop and another station of control traffic. Unlike ARP, a
    /// station that asks whether a neighbour is still there sends from its link-local address (RFC 4861, 7.3.3), which
    /// tells nothing about controllers; their Ethernet addresses do. Discovery between other stations is left to the
    /// flow tables, although they may have asked for a controller before.
    NeighboursOfControl,
    /// TCP to a controller (rule h).
    TcpTo(SocketAddr),
    /// TCP from a controller (rule i).
    TcpFrom(SocketAddr),
    /// Notices of neighbours about lost paths, which Open vSwitch does not have.
    LostPaths,
}

/// A hidden entry with its counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HiddenEntry {
    kind: HiddenMatch,
    /// Ethernet address of the local port, which some conditions contain.
    local: MacAddr,
    /// VLAN of the control traffic, if it is tagged.
    vlan: Option<u16>,
    /// Number of frames that matched.
    pub packets: u64,
    /// Bytes of these frames.
    pub bytes: u64,
}

/// Writes the condition in the syntax of flow dumps, as far as it can be said there. `nd` is neighbour discovery.
impl fmt::Display for HiddenEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let local = self.local;
        if let Some(vlan) = self.vlan.filter(|_| self.kind != HiddenMatch::LostPaths) {
            write!(f, "dl_vlan={vlan},")?;
        }
        match self.kind {
            HiddenMatch::DhcpFromLocal { is_v6: false } => {
                write!(f, "udp,in_port=LOCAL,tp_src={},tp_dst={}", dhcp_port::CLIENT, dhcp_port::SERVER)
            }
            HiddenMatch::DhcpFromLocal { is_v6: true } => {
                write!(f, "udp6,in_port=LOCAL,tp_src={},tp_dst={}", dhcp_port::CLIENT_V6, dhcp_port::SERVER_V6)
            }
            HiddenMatch::DhcpToLocal { is_v6: false } => {
                write!(f, "udp,tp_src={},tp_dst={},dhcp_client={local}", dhcp_port::SERVER, dhcp_port::CLIENT)
            }
            HiddenMatch::DhcpToLocal { is_v6: true } => {
                write!(f, "udp6,tp_src={},tp_dst={},dl_dst={local}", dhcp_port::SERVER_V6, dhcp_port::CLIENT_V6)
            }
            HiddenMatch::NeighbourToLocal { is_v6 } => write!(f, "{},dl_dst={local}", neighbour_protocol(is_v6)),
            HiddenMatch::NeighbourFromLocal { is_v6 } => write!(f, "{},in_port=LOCAL", neighbour_protocol(is_v6)),
            HiddenMatch::NeighbourTo(IpAddr::V4(address)) => write!(f, "arp,arp_tpa={address}"),
            HiddenMatch::NeighbourTo(IpAddr::V6(address)) => write!(f, "nd,to={address}"),
            HiddenMatch::NeighbourFrom(IpAddr::V4(address)) => write!(f, "arp,arp_spa={address}"),
            HiddenMatch::NeighbourFrom(IpAddr::V6(address)) => write!(f, "nd,from={address}"),
            HiddenMatch::NeighboursOfControl => f.write_str("nd,between controllers and stations of control traffic"),
            HiddenMatch::TcpTo(SocketAddr::V4(to)) => write!(f, "tcp,nw_dst={},tp_dst={}", to.ip(), to.port()),
            HiddenMatch::TcpTo(SocketAddr::V6(to)) => write!(f, "tcp6,ipv6_dst={},tp_dst={}", to.ip(), to.port()),
            HiddenMatch::TcpFrom(SocketAddr::V4(from)) => {
                write!(f, "tcp,nw_src={},tp_src={}", from.ip(), from.port())
            }
            HiddenMatch::TcpFrom(SocketAddr::V6(from)) => {
                write!(f, "tcp6,ipv6_src={},tp_src={}", from.ip(), from.port())
            }
            HiddenMatch::LostPaths => write!(f, "dl_type={:#06x},notices of lost paths", lost::ETHER_TYPE),
        }
    }
}

fn neighbour_protocol(is_v6: bool) -> &'static str {
    if is_v6 { "nd" } else { "arp" }
}

/// All hidden entries of a switch.
#[derive(Debug, Default)]
pub(super) struct HiddenEntries {
    entries: Vec<HiddenEntry>,
}

/// Addresses that the hidden entries are made of.
pub(super) struct HiddenAddresses<'a> {
    pub(super) controllers: &'a [SocketAddr],
    pub(super) next_hops: &'a [IpAddr],
    pub(super) local: MacAddr,
    pub(super) vlan: Option<u16>,
}

impl HiddenAddresses<'_> {
    /// Returns the conditions. Those of an IP version are left out if no controller has an address of it.
    fn conditions(&self) -> Vec<HiddenMatch> {
        let mut kinds = Vec::new();
        let has_v6 = self.controllers.iter().any(SocketAddr::is_ipv6);
        let has_v4 = !has_v6 || self.controllers.iter().any(SocketAddr::is_ipv4);
        for is_v6 in [has_v4.then_some(false), has_v6.then_some(true)].into_iter().flatten() {
            kinds.extend([
                HiddenMatch::DhcpFromLocal { is_v6 },
                HiddenMatch::DhcpToLocal { is_v6 },
                HiddenMatch::NeighbourFromLocal { is_v6 },
                HiddenMatch::NeighbourToLocal { is_v6 },
            ]);
        }
        let mut neighbours: Vec<IpAddr> = Vec::new();
        for address in self.controllers.iter().map(SocketAddr::ip).chain(self.next_hops.iter().copied()) {
            if !neighbours.contains(&address) {
                neighbours.push(address);
            }
        }
        kinds.extend(neighbours.iter().flat_map(|at| [HiddenMatch::NeighbourTo(*at), HiddenMatch::NeighbourFrom(*at)]));
        kinds.extend(has_v6.then_some(HiddenMatch::NeighboursOfControl));
        kinds.extend(self.controllers.iter().flat_map(|at| [HiddenMatch::TcpTo(*at), HiddenMatch::TcpFrom(*at)]));
        kinds.push(HiddenMatch::LostPaths);
        kinds
    }
}

impl HiddenEntries {
    /// Replaces the entries by those for these addresses. Entries that stay keep their counters.
    pub(super) fn set(&mut self, addresses: &HiddenAddresses<'_>) {
        let HiddenAddresses { local, vlan, .. } = *addresses;
        let former = std::mem::take(&mut self.entries);
        let counted = |kind| {
            let same = former.iter().find(|entry| entry.kind == kind);
            let (packets, bytes) = same.map_or((0, 0), |entry| (entry.packets, entry.bytes));
            HiddenEntry { kind, local, vlan, packets, bytes }
        };
        self.entries = addresses.conditions().into_iter().map(counted).collect();
    }

    /// Returns the index of the entry that takes a frame, and the entry's condition; `None` if none does. `paths` has
    /// the stations of control traffic.
    pub(super) fn find(
        &self,
        in_port: PortNo,
        frame: &ControlFrame,
        paths: &ControlPaths,
    ) -> Option<(usize, HiddenMatch)> {
        let found = self.entries.iter().position(|entry| entry.takes(in_port, frame, paths))?;
        Some((found, self.entries[found].kind))
    }

    /// Returns true if a controller or next hop sent a frame that an entry of this condition takes.
    pub(super) fn is_from_controller(&self, kind: HiddenMatch, frame: &ControlFrame) -> bool {
        match (kind, &frame.headers) {
            (HiddenMatch::TcpFrom(_) | HiddenMatch::NeighbourFrom(_), _) => true,
            (
                HiddenMatch::NeighbourTo(_) | HiddenMatch::NeighbourToLocal { .. },
                ControlHeaders::Neighbour { sender, .. },
            ) => self.entries.iter().any(|entry| entry.kind == HiddenMatch::NeighbourFrom(*sender)),
            _ => false,
        }
    }

    /// Counts a frame of `bytes` at an entry that [`HiddenEntries::find`] returned.
    pub(super) fn count(&mut self, entry: usize, bytes: usize) {
        if let Some(entry) = self.entries.get_mut(entry) {
            entry.packets += 1;
            entry.bytes += bytes as u64;
        }
    }

    /// Returns the entries with their counters.
    pub(super) fn all(&self) -> &[HiddenEntry] {
        &self.entries
    }
}

impl HiddenEntry {
    fn takes(&self, in_port: PortNo, frame: &ControlFrame, paths: &ControlPaths) -> bool {
        match (self.kind, &frame.headers) {
            (HiddenMatch::DhcpFromLocal { is_v6 }, ControlHeaders::DhcpRequest { is_v6: is }) => {
                in_port == PortNo::LOCAL && *is == is_v6
            }
            (HiddenMatch::DhcpToLocal { is_v6 }, ControlHeaders::DhcpReply { client, is_v6: is }) => {
                *client == self.local && *is == is_v6
            }
            (HiddenMatch::NeighbourToLocal { is_v6 }, ControlHeaders::Neighbour { target, .. }) => {
                frame.destination == self.local && target.is_ipv6() == is_v6
            }
            (HiddenMatch::NeighbourFromLocal { is_v6 }, ControlHeaders::Neighbour { target, .. }) => {
                in_port == PortNo::LOCAL && target.is_ipv6() == is_v6
            }
            (HiddenMatch::NeighbourTo(address), ControlHeaders::Neighbour { target, .. }) => *target == address,
            (HiddenMatch::NeighbourFrom(address), ControlHeaders::Neighbour { sender, .. }) => *sender == address,
            (HiddenMatch::NeighboursOfControl, ControlHeaders::Neighbour { target, .. }) => {
                let (source, destination) = (frame.source, frame.destination);
                let is_between = |one, other| paths.is_controller(one) && paths.contains(other);
                target.is_ipv6() && (is_between(source, destination) || is_between(destination, source))
            }
            (HiddenMatch::TcpTo(address), ControlHeaders::Tcp { destination, .. }) => *destination == address,
            (HiddenMatch::TcpFrom(address), ControlHeaders::Tcp { source, .. }) => *source == address,
            (HiddenMatch::LostPaths, ControlHeaders::LostPaths) => in_port != PortNo::LOCAL,
            _ => false,
        }
    }
}
