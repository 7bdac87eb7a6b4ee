//! Finds virtual switches of others that have what the service needs.
use super::{PlannedSlice, SliceSpec};
use std::collections::{BTreeMap, BTreeSet};

/// Virtual switch of others that prevents one of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanConflict {
    /// Network that is prevented.
    pub network: String,
    /// Physical switch.
    pub switch: String,
    /// Name of the virtual switch that is prevented.
    pub slice: String,
    /// Description of what was found, and of what to do.
    pub problem: String,
}

impl PlanConflict {
    pub(super) fn is_of(&self, slice: &PlannedSlice) -> bool {
        self.switch == slice.switch && self.slice == slice.spec.name()
    }
}

/// Returns the conflicts of wanted virtual switches with those that are not the service's, at most one for each.
pub(super) fn conflicts(slices: &[PlannedSlice], present: &BTreeMap<String, Vec<SliceSpec>>) -> Vec<PlanConflict> {
    let own: BTreeSet<(&str, &str, u64)> =
        slices.iter().map(|slice| (slice.switch.as_str(), slice.spec.name(), slice.spec.dpid())).collect();
    let mut foreign: BTreeMap<&str, Vec<&SliceSpec>> = BTreeMap::new();
    for (switch, found) in present {
        let is_own = |one: &&SliceSpec| own.contains(&(switch.as_str(), one.name(), one.dpid()));
        foreign.insert(switch, found.iter().filter(|one| !is_own(one)).collect());
    }
    let wanted = slices.iter().filter(|slice| slice.is_wanted);
    let conflicts = wanted.filter_map(|slice| {
        let others = foreign.get(slice.switch.as_str())?;
        let problem = others.iter().find_map(|other| problem(&slice.spec, other))?;
        Some(PlanConflict {
            network: slice.network.clone(),
            switch: slice.switch.clone(),
            slice: slice.spec.name().to_owned(),
            problem: format!(
                "switch {}: {problem}; remove it there (`weir ctl vs remove`), or ask for other ports",
                slice.switch
            ),
        })
    });
    conflicts.collect()
}

/// Returns the reason why a virtual switch of others prevents this one.
fn problem(own: &SliceSpec, other: &SliceSpec) -> Option<String> {
    let (name, dpid) = (other.name(), other.dpid());
    if own.name() == name {
        return Some(format!("found a virtual switch {name} that is not of this service (dpid {dpid:#x})"));
    }
    if own.dpid() == dpid {
        return Some(format!("found virtual switch {name} with dpid {dpid:#x}, which {} needs", own.name()));
    }
    // Packets of one port and VLAN id belong to one virtual switch.
    let overlap = |a: Option<u64>, b: Option<u64>| a.is_none() || b.is_none() || a == b;
    let twin = own.selectors().find(|(port, vlan)| {
        other.selectors().any(|(other_port, other_vlan)| overlap(*port, other_port) && overlap(*vlan, other_vlan))
    });
    twin.map(|(port, vlan)| {
        let port = port.map_or_else(String::new, |port| format!("port {port}"));
        let vlan = vlan.map_or_else(String::new, |vlan| format!(" with VLAN id {vlan}"));
        format!("virtual switch {name} has packets of {port}{vlan}, which {} needs", own.name())
    })
}
