//! Packets that the controller sends into islands, and that come out of them.
//!
//! Switches of an island remember behind which port the source of a frame is. So the controller sends a packet into an
//! island by the port at which packets of its source enter it: the one on the side of the source.
use super::Forwarding;
use crate::app::Network as _;
use crate::map::SwitchPort;
use crate::platform::NetworkCore;
use std::collections::BTreeMap;
use weir_openflow::model::PortNo;
use weir_packet::MacAddr;
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;
use weir_packet::parse::parse_ethernet;
use weir_units::Instant;

/// EtherType of the frames by which islands learn, the one of link probes in broadcast frames: hosts do not know it,
/// and switches of this network send it to the controller.
const ETH_TYPE: u16 = eth_type::BROADCAST_DISCOVERY;
/// Least length of a frame's content.
const PADDING: [u8; 46] = [0; 46];

/// Ports by which islands, named by the port of their hosts, are entered from each switch.
pub(super) type IslandSides = BTreeMap<(SwitchPort, u64), SwitchPort>;

impl Forwarding {
    /// Sends a packet out of the port of its destination. Into an island it goes by the port on the side of its source.
    pub(super) fn deliver(&mut self, src: MacAddr, to: SwitchPort, data: Vec<u8>, core: &mut NetworkCore) {
        let source = core.map.hosts().get(&src).map(|host| host.at).filter(|_| core.map.is_shared(to));
        match source {
            Some(source) => {
                // Hosts of one island hear each other without this network.
                if let Some(port) = self.side_of(source, to, core) {
                    self.into_islands.note(core.now, &data);
                    core.send(port, data);
                }
            }
            None => core.send(to, data),
        }
    }

    /// Returns true for a packet that was sent into an island: another port of the island has sent it back here.
    pub(crate) fn is_copy(&mut self, now: Instant, data: &[u8]) -> bool {
        parse_ethernet(data).is_some_and(|header| header.eth_type == ETH_TYPE) || self.into_islands.contains(now, data)
    }

    /// Returns the port by which packets from a place enter the island of a port; `None` if they come from the island.
    pub(super) fn side_of(&mut self, from: SwitchPort, island: SwitchPort, core: &NetworkCore) -> Option<SwitchPort> {
        let ports: Vec<_> = [island].into_iter().chain(core.map.over_island(island)).collect();
        ports.into_iter().find(|port| !self.leads_back(*port, from, core))
    }

    /// Returns true if the way from a port of an island to a place leads back into the island.
    pub(super) fn leads_back(&mut self, at: SwitchPort, to: SwitchPort, core: &NetworkCore) -> bool {
        let next = core.map.is_shared(at).then(|| self.ways_to(to.dpid, core).next.get(&at.dpid).cloned());
        next.flatten().is_some_and(|next| if next.is_empty() { at == to } else { next.contains(&at) })
    }

    /// Lets islands learn on which side hosts are, where that has changed: otherwise their switches would send packets
    /// to the former side until the host sends.
    pub(super) fn teach_islands(&mut self, core: &mut NetworkCore) {
        let sides = self.sides_of_islands(core);
        let changed = sides.iter().filter(|(place, side)| self.sides.get(*place) != Some(*side));
        let mut frames = Vec::new();
        for ((host_port, dpid), side) in changed {
            let hosts = core.map.hosts().values().filter(|host| host.at.dpid == *dpid && host.at != *host_port);
            frames.extend(hosts.map(|host| (*side, host.mac)));
        }
        for (side, mac) in frames {
            let frame = FrameBuilder::ethernet(MacAddr::BROADCAST, mac).ether_type(ETH_TYPE).payload(&PADDING).build();
            core.send(side, frame);
        }
        self.sides = sides;
    }

    fn sides_of_islands(&mut self, core: &NetworkCore) -> IslandSides {
        let mut sides = IslandSides::new();
        for island in core.map.islands() {
            let Some(host_port) = island.host_port() else { continue };
            for dpid in core.map.switches().keys().copied() {
                let is_reached = self.ways_to(host_port.dpid, core).next.contains_key(&dpid);
                // Any port but those of islands stands for the hosts of a switch.
                let hosts = SwitchPort::new(dpid, PortNo::LOCAL);
                let side = match island.joins.is_empty() {
                    true => Some(host_port),
                    false => self.side_of(hosts, host_port, core),
                };
                sides.extend(side.filter(|_| is_reached).map(|side| ((host_port, dpid), side)));
            }
        }
        sides
    }
}
