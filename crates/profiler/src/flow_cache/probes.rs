//! Sends packets of flows that the switch may or may not know, with flows that it surely knows and surely does not know
//! in between.
use crate::ProfilerError;
use crate::bench::{PlannedProbe, TestBench};
use crate::levels::PRIORITY;
use crate::rules::{GROUP_ENTRIES, SHORTEST, TestFlowEntry, number};
use std::time::Duration;
use weir_profile::MatchLayers;
use weir_units::Instant;

/// Group of the entries.
const GROUP: u32 = 6;
/// Shortest time between packets, and as a multiple of the switch's delay: packets do not wait for each other.
const GAP: Duration = Duration::from_millis(1);
const APART: u32 = 4;
/// Packets before those that count.
const WARM: usize = 2;
/// Packets of each flow: one that may be a first one, and two that are none.
const PACKETS: usize = 3;

/// Source of entries whose flows had no packet yet.
pub(super) struct FlowSource {
    /// Number of entries that there is room for.
    room: usize,
    /// Number of the next entry.
    next: u32,
}

/// Flows that had no packet yet, and one that gets the packets that do not count.
pub(super) struct UnusedFlows {
    pub(super) flows: Vec<TestFlowEntry>,
    pub(super) warm: TestFlowEntry,
}

impl FlowSource {
    /// Creates a source for a switch with room for that many entries.
    pub(super) fn new(room: usize) -> FlowSource {
        FlowSource { room, next: 0 }
    }

    /// Returns the number of entries that can be asked for at once.
    pub(super) fn most(&self) -> usize {
        self.room - (0..self.room).filter(|at| TestBench::is_watched(*at, self.room)).count()
    }

    /// Adds entries for up to `count` flows. All others are deleted if there is no room beside them.
    pub(super) fn take(&mut self, bench: &mut TestBench<'_>, count: usize) -> Result<UnusedFlows, ProfilerError> {
        let count = count.min(self.most());
        let mut needed = count;
        while needed - (0..needed).filter(|at| TestBench::is_watched(*at, needed)).count() < count {
            needed += 1;
        }
        if bench.entries() + needed > self.room {
            bench.clear()?;
        }
        let entry = |at: u32| TestFlowEntry {
            number: number(GROUP, at % GROUP_ENTRIES),
            priority: PRIORITY,
            kind: MatchLayers::L2L3,
        };
        let all: Vec<TestFlowEntry> = (self.next..).take(needed).map(entry).collect();
        self.next += u32::try_from(needed).unwrap_or(0);
        let taken = bench.fill(&all)?;
        if taken < needed {
            self.room = bench.entries();
        }
        // Filling sends packets to the last entry of each part that it adds.
        let is_watched = |at: usize| TestBench::is_watched(at, needed);
        let flows: Vec<TestFlowEntry> = (0..taken).filter(|at| !is_watched(*at)).map(|at| all[at]).collect();
        let warm = (0..taken).rfind(|at| is_watched(*at)).or(taken.checked_sub(1)).map_or(all[0], |at| all[at]);
        Ok(UnusedFlows { flows, warm })
    }
}

/// Times of one flow's packets.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowProbe {
    /// Time of the first of the packets.
    pub(super) at: Instant,
    /// By how much the first packet took longer than the second, in seconds. The difference leaves out what else
    /// changes the delays of packets from time to time. `None` if one was lost.
    pub(super) first_s: Option<f64>,
    /// By how much the second packet took longer than the third, in seconds: the same for a flow that is surely known.
    pub(super) known_s: Option<f64>,
}

/// Sends packets by a switch's entries.
pub(super) struct FlowProber<'e, 'a> {
    pub(super) bench: &'e mut TestBench<'a>,
    /// Time between packets.
    pub(super) gap: Duration,
}

impl<'e, 'a> FlowProber<'e, 'a> {
    pub(super) fn new(bench: &'e mut TestBench<'a>) -> FlowProber<'e, 'a> {
        let gap = GAP.max(bench.forwarding() * APART);
        FlowProber { bench, gap }
    }

    /// Sends packets in order, each `packets` times. Returns their delays in seconds, and their sending times.
    fn send(
        &mut self,
        warm: TestFlowEntry,
        flows: &[TestFlowEntry],
        packets: usize,
    ) -> Result<(Vec<Option<f64>>, Vec<Instant>), ProfilerError> {
        let flows = flows.iter().flat_map(|flow| std::iter::repeat_n(*flow, packets));
        let (bytes, gap) = (SHORTEST, self.gap);
        let all = std::iter::repeat_n(warm, WARM).chain(flows);
        let planned: Vec<PlannedProbe> = all.map(|rule| PlannedProbe { rule, bytes, gap }).collect();
        let (mut delays, mut sent) = self.bench.timed_delays(&planned)?;
        self.bench.rest(gap)?;
        let warm = WARM.min(sent.len());
        Ok((delays.split_off(warm), sent.split_off(warm)))
    }

    /// Sends one packet of each flow, so that the switch knows it. Returns their times.
    pub(super) fn once(&mut self, warm: TestFlowEntry, flows: &[TestFlowEntry]) -> Result<Vec<Instant>, ProfilerError> {
        Ok(self.send(warm, flows, 1)?.1)
    }

    /// Sends packets of each flow, and returns what they show.
    pub(super) fn probe(
        &mut self,
        warm: TestFlowEntry,
        flows: &[TestFlowEntry],
    ) -> Result<Vec<FlowProbe>, ProfilerError> {
        let (delays, sent) = self.send(warm, flows, PACKETS)?;
        let of_flow = |(delays, sent): (&[Option<f64>], &[Instant])| {
            let more = |pair: [Option<f64>; 2]| Some(pair[0]? - pair[1]?);
            let at = |at: usize| delays.get(at).copied().flatten();
            Some(FlowProbe { at: *sent.first()?, first_s: more([at(0), at(1)]), known_s: more([at(1), at(2)]) })
        };
        Ok(delays.chunks(PACKETS).zip(sent.chunks(PACKETS)).filter_map(of_flow).collect())
    }
}
