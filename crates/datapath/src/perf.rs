//! Where time goes on a packet's way: cycles by stage, packets in a burst. Measured only while somebody looks: the code with measuring is another
//! instance of the same generic functions, chosen once for a burst.
use crate::shape::describe::{Probes, TableShape};
use crate::shape::{Lanes, MAX_BURST};
use crate::{CacheCounts, Datapath};
use serde::{Deserialize, Serialize};
use weir_memory::cycles;
use weir_packet::{FlowKey, Parsed};

/// A part of what a switch's threads do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Taking frames from ports.
    Receive,
    /// Headers to a flow key.
    Parse,
    /// Finding flow entries, and counting at them.
    LookUp,
    /// Actions, up to the frames being gathered for their ports.
    Execute,
    /// Handing frames to ports.
    Transmit,
    /// Controllers' messages, requests, time-outs.
    Control,
    /// Asking ports and finding nothing.
    Idle,
    /// Sleeping.
    Sleep,
}

impl Stage {
    /// All, in a packet's order.
    pub const ALL: [Stage; 8] = [
        Stage::Receive,
        Stage::Parse,
        Stage::LookUp,
        Stage::Execute,
        Stage::Transmit,
        Stage::Control,
        Stage::Idle,
        Stage::Sleep,
    ];

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Receive => "receive",
            Stage::Parse => "parse",
            Stage::LookUp => "look up",
            Stage::Execute => "execute",
            Stage::Transmit => "transmit",
            Stage::Control => "control",
            Stage::Idle => "idle",
            Stage::Sleep => "sleep",
        }
    }
}

/// What a stage took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Took {
    /// Counts of the processor's time stamp counter.
    pub cycles: u64,
    /// How often it was done.
    pub times: u64,
    /// Packets that it was done for.
    pub packets: u64,
    /// Counts of the time stamp counter that the longest time took, since the first of those who look now began.
    pub longest: u64,
}

/// What a thread did while somebody looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Perf {
    /// By stage, in the order of [`Stage::ALL`].
    pub stages: [Took; Stage::ALL.len()],
    /// By number of packets: bursts that went through the tables. Larger ones are cut.
    pub bursts: [u64; MAX_BURST + 1],
    /// What the verdict cache did, and how it stands.
    pub cache: CacheCounts,
}

impl Default for Perf {
    fn default() -> Perf {
        Perf { stages: [Took::default(); Stage::ALL.len()], bursts: [0; MAX_BURST + 1], cache: CacheCounts::default() }
    }
}

impl Perf {
    /// Adds what another part of the thread did; the other has the cache.
    pub fn add(&mut self, other: &Perf) {
        for (own, other) in self.stages.iter_mut().zip(other.stages) {
            own.cycles += other.cycles;
            own.times += other.times;
            own.packets += other.packets;
            own.longest = own.longest.max(other.longest);
        }
        self.bursts.iter_mut().zip(other.bursts).for_each(|(own, other)| *own += other);
        self.cache = other.cache;
    }

    /// What was done since `earlier`, which is of the same thread.
    #[must_use]
    pub fn since(&self, earlier: &Perf) -> Perf {
        let mut since = self.clone();
        for (own, earlier) in since.stages.iter_mut().zip(earlier.stages) {
            own.cycles = own.cycles.saturating_sub(earlier.cycles);
            own.times = own.times.saturating_sub(earlier.times);
            own.packets = own.packets.saturating_sub(earlier.packets);
        }
        since.bursts.iter_mut().zip(earlier.bursts).for_each(|(own, earlier)| *own = own.saturating_sub(earlier));
        since.cache = self.cache.since(earlier.cache);
        since
    }

    /// What a stage took.
    pub fn stage(&self, stage: Stage) -> Took {
        self.stages[stage as usize]
    }

    /// Adds to a stage.
    pub fn count(&mut self, stage: Stage, cycles: u64, packets: usize) {
        let took = &mut self.stages[stage as usize];
        took.cycles += cycles;
        took.times += 1;
        took.packets += packets as u64;
        took.longest = took.longest.max(cycles);
    }
}

impl Datapath {
    /// The tables that hold entries or saw packets: their classifiers, and what lookups of some packets cost in them.
    pub fn table_shapes(&self, samples: &[FlowKey]) -> Vec<TableShape> {
        let costs = self.costs(samples);
        let tables = (0_u8..=254).zip(&self.tables).zip(&costs);
        let shapes = tables.map(|((number, table), costs)| {
            let described = table.describe();
            let (lookups, matches) = table.counted();
            TableShape {
                table: number,
                shape: described.shape.to_owned(),
                entries: table.len(),
                masks: described.masks,
                bytes: described.bytes.map(|bytes| bytes + table.counters_held()),
                lookups,
                matches,
                probes: Probes::of(costs),
            }
        });
        shapes.filter(|shape| shape.entries > 0 || shape.lookups > 0).collect()
    }

    /// By table: what lookups of packets cost, each on its way through the tables. What entries write into packets on that way is left
    /// out, so this is near the truth, not the truth, behind entries that do.
    fn costs(&self, samples: &[FlowKey]) -> Vec<Vec<u32>> {
        let mut costs = vec![Vec::new(); self.tables.len()];
        for key in samples {
            let mut next = Some(0);
            while let Some((table, at)) = next.and_then(|at| Some((self.tables.get(at)?, at))) {
                costs[at].extend(table.probes(key));
                // Later tables only, as compiling has checked: this ends.
                next = table.lookup(key).and_then(|(_, entry)| entry.program.goto).map(usize::from);
            }
        }
        costs
    }
}

/// Measures laps of a thread's way while somebody looks; otherwise each lap is a test of a flag.
#[derive(Debug, Default)]
pub struct Stopwatch {
    is_on: bool,
    last: u64,
    perf: Perf,
    /// Some of the packets that came last: one of a burst.
    samples: Vec<FlowKey>,
    next_sample: usize,
}

/// Packets that are kept to find out with what lookups cost.
const MAX_SAMPLES: usize = 256;

impl Stopwatch {
    /// Begins or ends measuring.
    pub fn watch(&mut self, on: bool) {
        (self.is_on, self.last) = (on, cycles());
        self.perf.stages.iter_mut().for_each(|took| took.longest = 0);
        if on && self.samples.is_empty() {
            self.samples.reserve_exact(MAX_SAMPLES);
        } else if !on {
            self.samples = Vec::new();
        }
    }

    /// Some of the packets that came last, to find out with what lookups cost ([`crate::Datapath::table_shapes`]).
    pub fn samples(&self) -> &[FlowKey] {
        &self.samples
    }

    /// Whether somebody looks.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Begins a lap: what was since the last is not counted.
    #[inline]
    pub fn start(&mut self) {
        if self.is_on {
            self.last = cycles();
        }
    }

    /// Ends a lap, which counts to a stage, and begins the next.
    #[inline]
    pub fn lap(&mut self, stage: Stage, packets: usize) {
        if self.is_on {
            self.count(stage, packets);
        }
    }

    #[cold]
    fn count(&mut self, stage: Stage, packets: usize) {
        let now = cycles();
        self.perf.count(stage, now.saturating_sub(self.last), packets);
        self.last = now;
    }

    /// What was measured so far.
    pub fn perf(&self) -> &Perf {
        &self.perf
    }
}

/// Laps within a burst.
pub(crate) trait Laps {
    /// Packets were parsed, of which some are looked up.
    fn parsed(&mut self, parsed: &[Parsed; MAX_BURST], looked_up: Lanes, packets: usize);
    /// A burst of packets begins.
    fn burst(&mut self, packets: usize);
    /// Packets were looked up; `counts` says what the verdict cache has done so far.
    fn cached(&mut self, counts: impl FnOnce() -> CacheCounts);
    /// A lap ends.
    fn lap(&mut self, stage: Stage, packets: usize);
}

/// Nobody looks.
pub(crate) struct NoLaps;

impl Laps for NoLaps {
    #[inline(always)]
    fn parsed(&mut self, _parsed: &[Parsed; MAX_BURST], _looked_up: Lanes, _packets: usize) {}

    #[inline(always)]
    fn burst(&mut self, _packets: usize) {}

    #[inline(always)]
    fn cached(&mut self, _counts: impl FnOnce() -> CacheCounts) {}

    #[inline(always)]
    fn lap(&mut self, _stage: Stage, _packets: usize) {}
}

impl Laps for Stopwatch {
    fn parsed(&mut self, parsed: &[Parsed; MAX_BURST], looked_up: Lanes, packets: usize) {
        self.count(Stage::Parse, packets);
        if looked_up.is_empty() {
            return;
        }
        let sample = parsed[looked_up.0.trailing_zeros() as usize].key;
        match self.samples.get_mut(self.next_sample) {
            Some(oldest) => *oldest = sample,
            None => self.samples.push(sample),
        }
        self.next_sample = (self.next_sample + 1) % MAX_SAMPLES;
        self.last = cycles();
    }

    fn burst(&mut self, packets: usize) {
        self.perf.bursts[packets.min(MAX_BURST)] += 1;
        self.last = cycles();
    }

    fn cached(&mut self, counts: impl FnOnce() -> CacheCounts) {
        self.perf.cache = counts();
    }

    fn lap(&mut self, stage: Stage, packets: usize) {
        self.count(stage, packets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_measured_unless_somebody_looks() {
        let mut watch = Stopwatch::default();
        watch.start();
        watch.lap(Stage::Receive, 3);
        assert_eq!(*watch.perf(), Perf::default());
        watch.watch(true);
        watch.lap(Stage::Receive, 3);
        watch.lap(Stage::Receive, 4);
        assert!(watch.perf().stage(Stage::Receive).longest > 0);
        watch.watch(false);
        watch.lap(Stage::Receive, 5);
        let took = watch.perf().stage(Stage::Receive);
        assert_eq!((took.times, took.packets, took.longest), (2, 7, 0));
    }

    #[test]
    fn stages_lie_in_their_order() {
        for (at, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, at, "{}", stage.name());
        }
    }

    #[test]
    fn what_was_between_two_looks_is_their_difference() {
        let mut perf = Perf::default();
        perf.count(Stage::Parse, 100, 32);
        perf.bursts[32] += 1;
        let earlier = perf.clone();
        perf.count(Stage::Parse, 50, 10);
        perf.bursts[10] += 1;
        let between = perf.since(&earlier);
        assert_eq!(between.stage(Stage::Parse), Took { cycles: 50, times: 1, packets: 10, longest: 100 });
        assert_eq!((between.bursts[10], between.bursts[32]), (1, 0));
        let mut whole = earlier;
        whole.add(&between);
        assert_eq!(whole, perf);
    }
}
