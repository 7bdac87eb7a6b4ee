//! Plans the steps from what switches have to what they should have.
//!
//! [`plan`] is a pure function: of equal input it makes equal plans, after a restart too. Each step can be repeated,
//! and undone by [`PlanStep::undo`].
//!
//! # Order
//! 1. Virtual switches that are not wanted any more are removed: first those where packets of hosts enter, then those
//!    in between, so that no packet is lost on a way that is half gone.
//! 2. Rates that fall are lowered.
//! 3. New virtual switches are added: those in between first, those where packets of hosts enter last.
//! 4. Rates that rise are raised, once those of others were lowered.
//!
//! Guaranteed rates are below each ceiling before, between and after the steps, so that packets in profile pass all the
//! time.
//!
//! # Conflicts
//! Virtual switches that are not the service's are never touched. A name, a datapath id or packets of a port that one
//! of them has are a conflict: no step of the network on this switch is planned, or of the whole network if it is new.
mod conflict;
mod spec;
mod step;

pub use conflict::PlanConflict;
pub use spec::SliceSpec;
pub use step::PlanStep;

use std::collections::{BTreeMap, BTreeSet};

/// Virtual switch of the service.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedSlice {
    /// Network that it belongs to.
    pub network: String,
    /// Physical switch.
    pub switch: String,
    /// Virtual switch as it should be, or was.
    pub spec: SliceSpec,
    /// True if packets of hosts enter here.
    pub is_end: bool,
    /// True if the switch should have it, false if it should be removed.
    pub is_wanted: bool,
    /// True if the network was never active: nothing of it is added while one of its switches does not answer.
    pub is_new: bool,
}

/// Ordered steps, and what prevents others.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SlicePlan {
    /// Steps in their order.
    pub steps: Vec<PlanStep>,
    /// Conflicts with virtual switches of others.
    pub conflicts: Vec<PlanConflict>,
}

/// Position in the order of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    RemoveEnd,
    RemoveInner,
    Lower,
    AddInner,
    AddEnd,
    Raise,
}

/// Returns the steps after which switches have all `slices` that are wanted, and none of the others. `present` has the
/// virtual switches of each switch that answers; others get no steps.
pub fn plan(slices: &[PlannedSlice], present: &BTreeMap<String, Vec<SliceSpec>>) -> SlicePlan {
    let conflicts = conflict::conflicts(slices, present);
    let by_name = by_name(present);
    let waiting = waiting(slices, present, &conflicts);
    let mut steps: Vec<(Phase, PlanStep)> = Vec::new();
    for slice in slices {
        if !present.contains_key(&slice.switch) {
            continue;
        }
        let found = by_name.get(&(slice.switch.as_str(), slice.spec.name()));
        let found = found.copied().filter(|found| slice.spec.is_same_switch(found));
        let has_conflict = conflicts.iter().any(|conflict| conflict.is_of(slice));
        if slice.is_wanted && (has_conflict || waiting.contains(slice.network.as_str())) {
            continue;
        }
        steps.extend(steps_of(slice, found));
    }
    // Within a phase, the order of admission stays.
    steps.sort_by_key(|(phase, _)| *phase);
    SlicePlan { steps: steps.into_iter().map(|(_, step)| step).collect(), conflicts }
}

/// Returns virtual switches by their switches and names.
pub(crate) fn by_name(present: &BTreeMap<String, Vec<SliceSpec>>) -> BTreeMap<(&str, &str), &SliceSpec> {
    let all = present.iter().flat_map(|(switch, found)| found.iter().map(move |one| (switch.as_str(), one)));
    all.map(|(switch, one)| ((switch, one.name()), one)).collect()
}

/// Returns the new networks that wait: one of their switches does not answer, or has a conflict.
fn waiting<'a>(
    slices: &'a [PlannedSlice],
    present: &BTreeMap<String, Vec<SliceSpec>>,
    conflicts: &[PlanConflict],
) -> BTreeSet<&'a str> {
    let is_held_up = |slice: &&PlannedSlice| {
        let has_conflict = conflicts.iter().any(|conflict| conflict.network == slice.network);
        slice.is_new && (has_conflict || !present.contains_key(&slice.switch))
    };
    slices.iter().filter(is_held_up).map(|slice| slice.network.as_str()).collect()
}

fn steps_of(slice: &PlannedSlice, found: Option<&SliceSpec>) -> Vec<(Phase, PlanStep)> {
    let (network, switch, wanted) = (&slice.network, &slice.switch, &slice.spec);
    let resize = |phase, from: &SliceSpec, to: &SliceSpec| (phase, PlanStep::resize(network, switch, from, to));
    match (found, slice.is_wanted) {
        (None, false) => Vec::new(),
        (None, true) => {
            let phase = if slice.is_end { Phase::AddEnd } else { Phase::AddInner };
            vec![(phase, PlanStep::add(network, switch, wanted))]
        }
        (Some(found), false) => {
            let phase = if slice.is_end { Phase::RemoveEnd } else { Phase::RemoveInner };
            vec![(phase, PlanStep::remove(network, switch, found))]
        }
        (Some(found), true) if found == wanted => Vec::new(),
        (Some(found), true) => {
            let lowered = wanted.with_rates_at_most(found);
            let mut steps = Vec::new();
            if lowered != *found {
                steps.push(resize(Phase::Lower, found, &lowered));
            }
            if lowered != *wanted {
                steps.push(resize(Phase::Raise, &lowered, wanted));
            }
            steps
        }
    }
}
