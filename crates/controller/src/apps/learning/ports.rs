//! Keeps the ports of one switch: their states, VLANs, and how frames are tagged on each.
//!
//! An access port belongs to one VLAN; its frames are untagged. On any other port, a trunk, the tag gives the VLAN of
//! a frame. A frame without a tag belongs to the untagged VLAN, which contains no access port.
use std::collections::{BTreeMap, HashMap, HashSet};
use weir_openflow::Version;
use weir_openflow::model::port::bits;
use weir_openflow::model::{Action, PortDesc, PortNo};
use weir_packet::Field;
use weir_packet::field::{VLAN_PRESENT, eth_type};

/// Most ports of a switch that are kept; further ones are not flooded to.
pub(super) const MAX_PORTS: usize = 8192;

/// VLAN id; 0 is the untagged VLAN.
pub(super) type VlanId = u16;
/// VLAN tag of a frame: its id, which is 0 in a tag that has only a priority (IEEE 802.1Q-2022, 9.6).
pub(super) type VlanTag = Option<u16>;

/// Ports of one switch.
#[derive(Debug)]
pub(super) struct VlanPorts {
    version: Version,
    access: HashMap<PortNo, VlanId>,
    /// True if any switch has access ports. Floods then use listed ports instead of the switch's own flooding.
    has_access_ports: bool,
    /// Ports of blocked links.
    blocked: HashSet<PortNo>,
    /// Known ports, and whether flooded frames may leave by each.
    floodable: BTreeMap<PortNo, bool>,
}

/// State of a port after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortUpdateOutcome {
    /// Frames can pass.
    Up,
    /// Frames can no longer pass.
    Down,
    /// The port is not kept because there are too many.
    TooMany,
}

impl VlanPorts {
    pub(super) fn new(version: Version, access: HashMap<PortNo, VlanId>, tenants: bool) -> VlanPorts {
        VlanPorts { version, access, has_access_ports: tenants, blocked: HashSet::new(), floodable: BTreeMap::new() }
    }

    /// Sets the blocked ports, replacing the previous ones.
    pub(super) fn block(&mut self, ports: HashSet<PortNo>) {
        self.blocked = ports;
    }

    /// Updates a port from its description.
    pub(super) fn set(&mut self, desc: &PortDesc) -> PortUpdateOutcome {
        let up = desc.config & bits::PORT_DOWN == 0 && desc.state & bits::LINK_DOWN == 0;
        let flood = up && desc.config & (bits::NO_FLOOD | bits::NO_FWD) == 0;
        if self.floodable.len() >= MAX_PORTS && !self.floodable.contains_key(&desc.port_no) {
            return PortUpdateOutcome::TooMany;
        }
        self.floodable.insert(desc.port_no, flood);
        if up { PortUpdateOutcome::Up } else { PortUpdateOutcome::Down }
    }

    /// Removes a port.
    pub(super) fn remove(&mut self, port: PortNo) {
        self.floodable.remove(&port);
    }

    /// Returns the VLAN of a frame received on `port`; `None` for a tagged frame on an access port, because a station
    /// must not choose its VLAN.
    pub(super) fn vlan_of(&self, port: PortNo, tag: VlanTag) -> Option<VlanId> {
        match (self.access.get(&port), tag) {
            (Some(vlan), None | Some(0)) => Some(*vlan),
            (Some(_), Some(_)) => None,
            (None, tag) => Some(tag.unwrap_or(0)),
        }
    }

    /// Returns actions that send a frame of `vlan`, which now carries `tag`, out of one port.
    pub(super) fn send(&self, vlan: VlanId, tag: VlanTag, port: PortNo) -> Vec<Action> {
        self.send_all(vlan, tag, vec![port])
    }

    /// Returns actions that send a frame to every port of its VLAN but its input port.
    pub(super) fn flood(&self, vlan: VlanId, tag: VlanTag, in_port: PortNo) -> Vec<Action> {
        if self.floods_by_itself() {
            return vec![Action::output(PortNo::FLOOD)];
        }
        let others = self.floodable.iter().filter(|(port, flood)| **flood && **port != in_port);
        let members = others.map(|(port, _)| *port).filter(|port| self.carries(*port, vlan));
        self.send_all(vlan, tag, members.collect())
    }

    /// Returns true if [`VlanPorts::flood`] reaches a port.
    pub(super) fn has_flood_port(&self, vlan: VlanId, in_port: PortNo) -> bool {
        let mut others = self.floodable.iter().filter(|(port, flood)| **flood && **port != in_port);
        self.floods_by_itself() || others.any(|(port, _)| self.carries(*port, vlan))
    }

    /// Returns true if the switch's own flooding reaches the right ports.
    pub(super) fn floods_by_itself(&self) -> bool {
        !self.has_access_ports && self.blocked.is_empty()
    }

    /// Returns true if frames of `vlan` may leave by `port`. Reserved ports, such as the switch's own network stack,
    /// carry a VLAN only if configured as access ports.
    fn carries(&self, port: PortNo, vlan: VlanId) -> bool {
        if self.blocked.contains(&port) {
            return false;
        }
        match self.access.get(&port) {
            Some(access) => *access == vlan,
            None => port.is_ordinary(),
        }
    }

    /// Returns outputs: first to ports on which the frame leaves unchanged, then a change of tag, then the other
    /// ports.
    fn send_all(&self, vlan: VlanId, tag: VlanTag, ports: Vec<PortNo>) -> Vec<Action> {
        let (unchanged, changed): (Vec<_>, Vec<_>) = ports.into_iter().partition(|port| self.fits(*port, vlan, tag));
        let mut actions: Vec<_> = unchanged.into_iter().map(Action::output).collect();
        if let Some(first) = changed.first() {
            actions.extend(self.retag(vlan, tag, self.access.contains_key(first)));
            actions.extend(changed.into_iter().map(Action::output));
        }
        actions
    }

    /// Returns true if a frame that carries `tag` is correctly tagged for `port`.
    pub(super) fn fits(&self, port: PortNo, vlan: VlanId, tag: VlanTag) -> bool {
        let id = tag.unwrap_or(0);
        if self.access.contains_key(&port) { id == 0 } else { id == vlan }
    }

    /// Returns actions that remove the tag for access ports, or set the VLAN's tag for trunks.
    fn retag(&self, vlan: VlanId, tag: VlanTag, to_access: bool) -> Vec<Action> {
        let set = Action::SetField { field: Field::VlanVid, value: u128::from(VLAN_PRESENT | vlan) };
        match (to_access, self.version, tag) {
            (true, ..) => vec![Action::PopVlan],
            (false, Version::V10, _) => vec![Action::SetVlanVid(vlan)],
            (false, _, Some(_)) => vec![set],
            (false, _, None) => vec![Action::PushVlan(eth_type::VLAN), set],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::MacAddr;

    fn desc(port: u32, config: u32, state: u32) -> PortDesc {
        PortDesc { config, state, ..PortDesc::new(PortNo(port), MacAddr::default(), format!("p{port}")) }
    }

    /// Returns ports 1 and 2 in VLAN 10, port 3 in VLAN 20, and trunks 4 and 5.
    fn tenants(version: Version) -> VlanPorts {
        let access = [(1, 10), (2, 10), (3, 20)].map(|(port, vlan)| (PortNo(port), vlan)).into();
        let mut ports = VlanPorts::new(version, access, true);
        for port in 1..=5 {
            assert_eq!(ports.set(&desc(port, 0, 0)), PortUpdateOutcome::Up);
        }
        ports
    }

    #[test]
    fn floods_stay_in_the_vlan_and_are_tagged_on_trunks_only() {
        let ports = tenants(Version::V13);
        let out = |port| Action::output(PortNo(port));
        let push = Action::PushVlan(0x8100);
        let set = Action::SetField { field: Field::VlanVid, value: 0x100a };
        assert_eq!(ports.flood(10, None, PortNo(1)), [out(2), push, set.clone(), out(4), out(5)]);
        assert_eq!(ports.flood(10, Some(0), PortNo(1)), [out(2), set, out(4), out(5)]);
        assert_eq!(ports.flood(10, Some(10), PortNo(4)), [out(5), Action::PopVlan, out(1), out(2)]);
        assert_eq!(ports.flood(30, Some(30), PortNo(4)), [out(5)]);
        assert_eq!(ports.flood(0, None, PortNo(4)), [out(5)]);
        let ports = tenants(Version::V10);
        assert_eq!(ports.flood(20, None, PortNo(3)), [Action::SetVlanVid(20), out(4), out(5)]);
    }

    #[test]
    fn nothing_is_flooded_to_blocked_ports() {
        let mut ports = VlanPorts::new(Version::V13, HashMap::new(), false);
        (1..=4).for_each(|port| assert_eq!(ports.set(&desc(port, 0, 0)), PortUpdateOutcome::Up));
        assert_eq!(ports.flood(0, None, PortNo(1)), [Action::output(PortNo::FLOOD)]);
        ports.block([PortNo(3)].into());
        assert_eq!(ports.flood(0, None, PortNo(1)), [PortNo(2), PortNo(4)].map(Action::output));
        assert_eq!(ports.flood(7, Some(7), PortNo(4)), [PortNo(1), PortNo(2)].map(Action::output));
        ports.block(HashSet::new());
        assert_eq!(ports.flood(0, None, PortNo(1)), [Action::output(PortNo::FLOOD)]);
    }

    #[test]
    fn ports_that_are_down_or_not_to_be_flooded_are_left_out() {
        let mut ports = tenants(Version::V13);
        assert_eq!(ports.set(&desc(4, 0, bits::LINK_DOWN)), PortUpdateOutcome::Down);
        assert_eq!(ports.set(&desc(2, bits::NO_FLOOD, 0)), PortUpdateOutcome::Up);
        ports.remove(PortNo(1));
        assert_eq!(ports.flood(10, Some(10), PortNo(5)), []);
    }

    #[test]
    fn a_station_cannot_choose_its_vlan() {
        let ports = tenants(Version::V13);
        assert_eq!(ports.vlan_of(PortNo(1), None), Some(10));
        assert_eq!(ports.vlan_of(PortNo(1), Some(0)), Some(10));
        assert_eq!(ports.vlan_of(PortNo(1), Some(20)), None);
        assert_eq!(ports.vlan_of(PortNo(4), Some(20)), Some(20));
        assert_eq!(ports.vlan_of(PortNo(4), None), Some(0));
    }

    #[test]
    fn a_switch_that_invents_ports_is_bounded() {
        let mut ports = VlanPorts::new(Version::V13, HashMap::new(), true);
        for port in 1..=u32::try_from(MAX_PORTS).unwrap() {
            ports.set(&desc(port, 0, 0));
        }
        assert_eq!(ports.set(&desc(99_999, 0, 0)), PortUpdateOutcome::TooMany);
        assert_eq!(ports.set(&desc(1, 0, bits::LINK_DOWN)), PortUpdateOutcome::Down);
    }
}
