//! An intent in the store: what was asked for, how it is carried out, and how far that is.
use super::claims::TrafficClaim;
use super::lanes::Demand;
use super::layout::{Layout, ProbePlan};
use super::plan::Plan;
use super::spec::{IntentSpec, IntentState};
use super::wanted::Wanted;
use crate::tables::RouteId;
use std::collections::BTreeSet;
use weir_openflow::model::Match;
use weir_units::Instant;

/// Number of an intent in the store: older ones have lesser numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct IntentNo(pub(super) u64);

/// An intent in the store.
#[derive(Debug, Clone)]
pub(super) struct Intent {
    pub(super) spec: IntentSpec,
    pub(super) wanted: Wanted,
    pub(super) state: IntentState,
    pub(super) reason: String,
    /// State of which the operator was told last.
    pub(super) told: Option<IntentState>,
    /// How it is carried out; `None` if it is not.
    pub(super) laid: Option<Laid>,
    /// How it was carried out before, until switches have confirmed the new way: what is used again if they refuse it.
    pub(super) former: Option<Laid>,
    /// Numbers of its main routes, by what they match.
    pub(super) slots: Vec<IntentSlot>,
    pub(super) stage: Stage,
    /// Routes that switches have not confirmed yet.
    pub(super) waiting: BTreeSet<RouteId>,
    /// Routes of earlier ways, which are removed when the new way is confirmed.
    pub(super) retiring: Vec<(RouteId, Option<u16>)>,
    /// Routes whose removal switches have not confirmed yet.
    pub(super) leaving: usize,
    pub(super) probes: Vec<Probe>,
    /// Times that confirmation packets were sent for the present way.
    pub(super) tries: u32,
    /// Confirmation packets that arrived.
    pub(super) confirmed: u64,
    /// Bandwidth reserved for it.
    pub(super) reserved: Demand,
    /// Packets that it has claimed where they come in.
    pub(super) claimed: Vec<TrafficClaim>,
    /// Time of its timer.
    pub(super) due: Option<Instant>,
    pub(super) notes: Notes,
    /// True if the last look found a way that is shorter by enough.
    pub(super) better: bool,
    /// True if it was asked for otherwise when it was laid.
    pub(super) outdated: bool,
    /// Numbers of the batches that wait for it to be decided.
    pub(super) batches: Vec<u64>,
}

/// Number of a main route.
#[derive(Debug, Clone)]
pub(super) struct IntentSlot {
    pub(super) matching: Match,
    pub(super) priority: u16,
    pub(super) id: RouteId,
}

/// A plan and its routes.
#[derive(Debug, Clone)]
pub(super) struct Laid {
    pub(super) plan: Plan,
    pub(super) layout: Layout,
    /// VLAN id of its packets between switches.
    pub(super) label: Option<u16>,
    /// Numbers of the routes of the layout, in their order.
    pub(super) mains: Vec<RouteId>,
    pub(super) carriers: Vec<RouteId>,
    /// Numbers of the routes that catch confirmation packets; none when they are removed.
    pub(super) captures: Vec<RouteId>,
}

/// Event for which an intent waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// No event.
    Idle,
    /// Switches confirm the routes of labelled packets.
    Carriers,
    /// Switches confirm all routes.
    Mains,
    /// Switches confirm again the routes that catch confirmation packets.
    Captures,
    /// Confirmation packets arrive.
    Probes,
    /// Switches confirm that the former way is in use again.
    Back,
}

/// A confirmation packet under way.
#[derive(Debug, Clone)]
pub(super) struct Probe {
    pub(super) plan: ProbePlan,
    /// Numbers with which it was sent.
    pub(super) numbers: Vec<u64>,
    pub(super) arrived: bool,
}

/// Faults of an intent that is carried out.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Notes {
    /// A condition no longer holds.
    pub(super) condition: Option<String>,
    /// Switches refused something.
    pub(super) refused: Option<String>,
    /// Switches do not confirm.
    pub(super) silent: Option<String>,
    /// Confirmation packets did not arrive.
    pub(super) unconfirmed: Option<String>,
}

impl Intent {
    pub(super) fn new(spec: IntentSpec, wanted: Wanted) -> Intent {
        Intent {
            spec,
            wanted,
            state: IntentState::Submitted,
            reason: String::new(),
            laid: None,
            former: None,
            slots: Vec::new(),
            stage: Stage::Idle,
            waiting: BTreeSet::new(),
            retiring: Vec::new(),
            leaving: 0,
            probes: Vec::new(),
            tries: 0,
            confirmed: 0,
            reserved: Demand::new(),
            claimed: Vec::new(),
            due: None,
            notes: Notes::default(),
            told: None,
            better: false,
            outdated: false,
            batches: Vec::new(),
        }
    }

    /// Returns what the intent lacks; `None` if it is carried out as asked.
    pub(super) fn shortcoming(&self) -> Option<String> {
        let Some(laid) = &self.laid else { return Some(self.reason.clone()) };
        let notes = &self.notes;
        let all = [&laid.plan.lacks, &notes.condition, &notes.refused, &notes.silent, &notes.unconfirmed];
        all.into_iter().find_map(Clone::clone).or_else(|| laid.layout.unproven.clone())
    }
}
