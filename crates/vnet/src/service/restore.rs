//! Holds networks again that were admitted before, after a restart: their designs stay as they were.
use super::book::{HeldNetwork, NetworkBook, virtual_links};
use super::design::DesignedLink;
use super::ledger::{Ledger, shared_port};
use super::{ServiceError, Slice, check};
use std::collections::BTreeSet;
use weir_units::ByteSize;

impl NetworkBook {
    /// Holds a network that a book of this substrate has admitted, with its places, ways, VLAN ids, datapath ids and
    /// stage. The order in which networks are restored does not matter.
    ///
    /// # Errors
    /// The design does not fit: the substrate is another one than that of the design, or a network that is held has
    /// something of it. Nothing is changed then.
    pub fn restore(&mut self, held: HeldNetwork) -> Result<(), ServiceError> {
        let name = held.design.request.name.clone();
        check::check(&held.design.request, &self.substrate, &self.settings)?;
        let wrong = |problem: String| ServiceError::Malformed { network: name.clone(), problem };
        if self.held.contains_key(&name) {
            return Err(wrong("found a network of this name, expected a name of its own".to_owned()));
        }
        let own: BTreeSet<u64> = held.dpids.iter().copied().collect();
        if own.len() != held.design.slices.len() || !own.is_disjoint(&self.dpids) {
            return Err(wrong("found datapath ids that others have, expected one for each virtual switch".to_owned()));
        }
        let mut ledger = self.ledger.clone();
        for link in &held.design.links {
            self.restore_link(&mut ledger, link).map_err(|problem| wrong(format!("link {}: {problem}", link.name)))?;
        }
        for slice in &held.design.slices {
            self.restore_slice(&mut ledger, slice).map_err(wrong)?;
        }
        let links = virtual_links(&held.design, held.stage);
        self.sharing.change(&[], links).map_err(|error| wrong(error.to_string()))?;
        self.ledger = ledger;
        self.dpids.extend(own);
        self.held.insert(name, held);
        Ok(())
    }

    /// Reserves what a designed link needs, if it would be designed like this today.
    fn restore_link(&self, ledger: &mut Ledger, link: &DesignedLink) -> Result<(), String> {
        let changed = |port: &str| {
            Err(format!("its way was designed for another line at port {port}: release the network, and ask again"))
        };
        for (switches, cable) in link.switches.windows(2).zip(&link.cables) {
            let ends = self.substrate.cables.get(*cable).map(|cable| [&cable.ends[0].switch, &cable.ends[1].switch]);
            if !ends.is_some_and(|ends| switches.iter().all(|switch| ends.contains(&switch))) {
                return changed(&switches.join(" to "));
            }
        }
        for (at, port) in link.host_ports.iter().enumerate() {
            let Some(port) = port else { continue };
            if !self.substrate.hosts.values().any(|host| host.port == *port) {
                return changed(&port.to_string());
            }
            if !ledger.has_host_port(port, link.host_vlan) {
                return Err(format!("another network has port {port}"));
            }
            let (line, minimum) = (self.substrate.line(port), link.directions[at].bandwidth.minimum());
            let short = line.and_then(|line| ledger.entry_shortage(port, line.capacity, minimum));
            short.map_or(Ok(()), |short| Err(short.to_string()))?;
        }
        for direction in &link.directions {
            let minimum = direction.bandwidth.minimum();
            let mut shared = Vec::new();
            for (at, hop) in direction.hops.iter().enumerate() {
                let is_tagged = at < link.cables.len() || link.host_vlan.is_some();
                let Some(port) = shared_port(&self.substrate, &hop.port, is_tagged) else {
                    return changed(&hop.port.to_string());
                };
                if ByteSize(self.settings.quantum(minimum, port)) != hop.quantum {
                    return changed(&hop.port.to_string());
                }
                let short = ledger.share_shortage(&self.settings, &hop.port, port, minimum);
                short.map_or(Ok(()), |short| Err(short.to_string()))?;
                shared.push(port);
            }
            let bound = self.settings.bound(minimum, direction.burst, &shared);
            let is_same = bound.backlogs.iter().eq(direction.hops.iter().map(|hop| &hop.backlog));
            if !is_same || direction.delay.is_some_and(|delay| delay != bound.delay) {
                return changed(&direction.hops.first().map_or_else(String::new, |hop| hop.port.to_string()));
            }
        }
        if let Some(vlan) = link.vlan.filter(|vlan| !ledger.is_free_vlan(&link.cables, *vlan)) {
            return Err(format!("another network has VLAN id {vlan} on its way"));
        }
        ledger.reserve_link(link);
        Ok(())
    }

    fn restore_slice(&self, ledger: &mut Ledger, slice: &Slice) -> Result<(), String> {
        if self.substrate.place(&slice.switch).is_none() {
            return Err(format!("found switch {}, which the substrate does not have", slice.switch));
        }
        if let Some(short) = ledger.slice_shortage(&self.limits, slice) {
            return Err(short.to_string());
        }
        ledger.reserve_slice(slice);
        Ok(())
    }
}
