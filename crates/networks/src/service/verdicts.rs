//! Judges from what switches have how far each network is.
use super::rounds::RoundFindings;
use crate::plan::{PlannedSlice, SliceSpec, by_name};
use std::collections::BTreeMap;

/// Result of a round for a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NetworkVerdict {
    /// All switches have what they should have.
    Complete,
    /// No switch has anything of a network that is being released.
    Gone,
    /// Something is missing; later rounds try again.
    Troubled(String),
    /// A new network cannot be carried out.
    Impossible(String),
}

/// Returns the verdict on each network.
pub(super) fn verdicts(slices: &[PlannedSlice], findings: &RoundFindings) -> BTreeMap<String, NetworkVerdict> {
    let mut networks: BTreeMap<&str, Vec<&PlannedSlice>> = BTreeMap::new();
    for slice in slices {
        networks.entry(&slice.network).or_default().push(slice);
    }
    let present = by_name(&findings.present);
    let verdict = |(name, slices): (&str, Vec<&PlannedSlice>)| {
        let problem = || slices.iter().find_map(|slice| difference(slice, &present));
        (name.to_owned(), verdict(name, &slices, findings, problem))
    };
    networks.into_iter().map(verdict).collect()
}

fn verdict(
    name: &str,
    slices: &[&PlannedSlice],
    findings: &RoundFindings,
    difference: impl FnOnce() -> Option<String>,
) -> NetworkVerdict {
    if let Some(problem) = findings.refused.get(name) {
        return if slices.iter().any(|slice| slice.is_new) {
            NetworkVerdict::Impossible(problem.clone())
        } else {
            NetworkVerdict::Troubled(problem.clone())
        };
    }
    if let Some(problem) = slices.iter().find_map(|slice| findings.silent.get(&slice.switch)) {
        return NetworkVerdict::Troubled(problem.clone());
    }
    if let Some(problem) = difference() {
        return NetworkVerdict::Troubled(problem);
    }
    let is_wanted = slices.iter().any(|slice| slice.is_wanted);
    if is_wanted { NetworkVerdict::Complete } else { NetworkVerdict::Gone }
}

/// Returns how a virtual switch differs from what it should be.
fn difference(slice: &PlannedSlice, present: &BTreeMap<(&str, &str), &SliceSpec>) -> Option<String> {
    let (name, switch) = (slice.spec.name(), &slice.switch);
    let own = present.get(&(switch.as_str(), name)).filter(|found| found.dpid() == slice.spec.dpid());
    match (own, slice.is_wanted) {
        (None, true) => Some(format!("switch {switch} does not have virtual switch {name}")),
        (Some(found), true) if **found != slice.spec => {
            Some(format!("switch {switch} has virtual switch {name} with other settings than those asked for"))
        }
        (Some(_), false) => Some(format!("switch {switch} still has virtual switch {name}")),
        (Some(_), true) | (None, false) => None,
    }
}
