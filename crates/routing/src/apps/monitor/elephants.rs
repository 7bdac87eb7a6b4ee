//! Elephant flows: entries of the forwarding table that carry much.
use super::rates::ByteReading;
use foldhash::HashMap;
use std::collections::BTreeSet;
use weir_openflow::model::multipart::FlowStats;
use weir_openflow::text;
use weir_packet::{FlowKey, FlowMask};
use weir_units::{Bps, Instant};

/// Most entries whose bytes are followed, over all switches.
pub const MAX_FLOWS: usize = 16_384;
/// Most elephant flows at a time.
pub const MAX_ELEPHANTS: usize = 256;
/// Part of the rate of an elephant flow below which the flow is no longer one: a half, so that a flow at the rate does
/// not begin and end again and again.
const END: u64 = 2;
/// Rounds of measurements for which an entry may be missing: a busy switch is not asked each time.
const KEPT_ROUNDS: u64 = 3;

/// Identity of an entry in the network.
type FlowId = (u64, u16, FlowKey, FlowMask);
/// Identity of a flow, which its entries in all switches have.
type FlowClass = (u16, FlowKey, FlowMask);

/// An event of an elephant flow.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ElephantEvent {
    /// A flow has reached the rate at a switch.
    Begins { dpid: u64, flow: String, rate: Bps },
    /// A flow is below half of the rate everywhere.
    Ends { flow: String },
}

#[derive(Debug)]
struct FollowedFlow {
    reading: ByteReading,
    /// Last round of measurements in which the entry was there.
    round: u64,
}

#[derive(Debug)]
struct Elephant {
    /// Switches at which the flow is above half of the rate.
    switches: BTreeSet<u64>,
    name: String,
}

/// Entries and elephant flows.
#[derive(Debug, Default)]
pub(super) struct Elephants {
    flows: HashMap<FlowId, FollowedFlow>,
    elephants: HashMap<FlowClass, Elephant>,
    round: u64,
    /// Entries and elephant flows that found no room.
    pub(super) full: u64,
}

impl Elephants {
    /// Begins a round of measurements. Entries that have been missing for some rounds are forgotten; returns the events
    /// of elephant flows that ended with them.
    pub(super) fn begin_round(&mut self) -> Vec<ElephantEvent> {
        self.round += 1;
        let last = self.round.saturating_sub(KEPT_ROUNDS);
        let mut gone = Vec::new();
        self.flows.retain(|id, flow| {
            let is_kept = flow.round >= last;
            if !is_kept {
                gone.push(*id);
            }
            is_kept
        });
        gone.into_iter().filter_map(|(dpid, priority, key, mask)| self.leave(dpid, (priority, key, mask))).collect()
    }

    /// Notes statistics of an entry of a switch. Returns the event, if there is one.
    pub(super) fn note(&mut self, dpid: u64, stats: &FlowStats, from: Bps, now: Instant) -> Option<ElephantEvent> {
        let reading = ByteReading::new(stats.byte_count, (stats.duration_sec, stats.duration_nsec), now)?;
        let (key, mask) = stats.matching.key_and_mask().ok()?;
        let (class, round) = ((stats.priority, key, mask), self.round);
        let id = (dpid, stats.priority, key, mask);
        let Some(flow) = self.flows.get_mut(&id) else {
            if self.flows.len() >= MAX_FLOWS {
                self.full += 1;
            } else {
                self.flows.insert(id, FollowedFlow { reading, round });
            }
            return None;
        };
        let measured = reading.since(&flow.reading);
        *flow = FollowedFlow { reading, round };
        let (bytes, span) = measured?;
        let rate = Bps::measured(bytes, span);
        if rate >= from {
            return self.enter(dpid, class, rate, || text::format_match(&stats.matching));
        }
        if rate.0 < from.0 / END { self.leave(dpid, class) } else { None }
    }

    /// Returns the number of elephant flows.
    pub(super) fn len(&self) -> u64 {
        u64::try_from(self.elephants.len()).unwrap_or(u64::MAX)
    }

    /// Returns the number of entries that are followed.
    pub(super) fn followed(&self) -> u64 {
        u64::try_from(self.flows.len()).unwrap_or(u64::MAX)
    }

    fn enter(&mut self, dpid: u64, class: FlowClass, rate: Bps, name: impl Fn() -> String) -> Option<ElephantEvent> {
        if let Some(elephant) = self.elephants.get_mut(&class) {
            elephant.switches.insert(dpid);
            return None;
        }
        if self.elephants.len() >= MAX_ELEPHANTS {
            self.full += 1;
            return None;
        }
        let flow = name();
        self.elephants.insert(class, Elephant { switches: BTreeSet::from([dpid]), name: flow.clone() });
        Some(ElephantEvent::Begins { dpid, flow, rate })
    }

    fn leave(&mut self, dpid: u64, class: FlowClass) -> Option<ElephantEvent> {
        let elephant = self.elephants.get_mut(&class)?;
        elephant.switches.remove(&dpid);
        if !elephant.switches.is_empty() {
            return None;
        }
        self.elephants.remove(&class).map(|elephant| ElephantEvent::Ends { flow: elephant.name })
    }
}
