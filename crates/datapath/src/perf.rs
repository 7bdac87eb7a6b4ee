//! Measures where the time of a packet's way goes: cycles per stage, and packets per burst. Measuring costs nothing
//! while it is off, because the code with measuring is another instance of the same generic functions, chosen once
//! per burst.
use crate::CacheCounts;
use crate::shape::{BurstHeaders, Lanes, MAX_BURST};
use serde::{Deserialize, Serialize};
use weir_memory::cycles;
use weir_packet::FlowKey;

/// A stage of the work of a switch's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadStage {
    /// Receiving frames from ports.
    Receive,
    /// Parsing headers into a flow key.
    Parse,
    /// Finding flow entries and counting at them.
    LookUp,
    /// Running actions, until the frames are collected for their ports.
    Execute,
    /// Passing frames to ports for transmission.
    Transmit,
    /// Handling controllers' messages, requests and time-outs.
    Control,
    /// Polling ports without finding a frame.
    Idle,
    /// Sleeping because no frame arrives.
    Sleep,
}

impl ThreadStage {
    /// All stages, in the order of a packet's way.
    pub const ALL: [ThreadStage; 8] = [
        ThreadStage::Receive,
        ThreadStage::Parse,
        ThreadStage::LookUp,
        ThreadStage::Execute,
        ThreadStage::Transmit,
        ThreadStage::Control,
        ThreadStage::Idle,
        ThreadStage::Sleep,
    ];

    /// Returns the stage's name for display.
    pub const fn name(self) -> &'static str {
        match self {
            ThreadStage::Receive => "receive",
            ThreadStage::Parse => "parse",
            ThreadStage::LookUp => "look up",
            ThreadStage::Execute => "execute",
            ThreadStage::Transmit => "transmit",
            ThreadStage::Control => "control",
            ThreadStage::Idle => "idle",
            ThreadStage::Sleep => "sleep",
        }
    }
}

/// Time and work of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StageTotals {
    /// Cycles spent, counted by the processor's time stamp counter.
    pub cycles: u64,
    /// Number of laps.
    pub times: u64,
    /// Number of packets handled.
    pub packets: u64,
    /// Cycles of the longest lap since measuring was switched on.
    pub longest: u64,
}

/// Measurements of a thread while measuring was on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Perf {
    /// Time and work by stage, in the order of [`ThreadStage::ALL`].
    pub stages: [StageTotals; ThreadStage::ALL.len()],
    /// Number of bursts that passed the tables, by number of packets. Larger bursts are split before.
    pub bursts: [u64; MAX_BURST + 1],
    /// Counters and state of the verdict cache.
    pub cache: CacheCounts,
}

impl Default for Perf {
    fn default() -> Perf {
        Perf {
            stages: [StageTotals::default(); ThreadStage::ALL.len()],
            bursts: [0; MAX_BURST + 1],
            cache: CacheCounts::default(),
        }
    }
}

impl Perf {
    /// Adds the measurements of another part of the same thread. The cache's counters are taken over from `other`.
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

    /// Returns the measurements since `earlier`, an earlier copy of the same thread's measurements.
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

    /// Returns the time and work of a stage.
    pub fn stage(&self, stage: ThreadStage) -> StageTotals {
        self.stages[stage as usize]
    }

    /// Adds a lap to a stage.
    pub fn count(&mut self, stage: ThreadStage, cycles: u64, packets: usize) {
        let took = &mut self.stages[stage as usize];
        took.cycles += cycles;
        took.times += 1;
        took.packets += packets as u64;
        took.longest = took.longest.max(cycles);
    }
}

/// Measures the laps of a thread's loop while it is on. While it is off, each lap costs a test of a flag.
#[derive(Debug, Default)]
pub struct Stopwatch {
    is_on: bool,
    last: u64,
    perf: Perf,
    /// Flow keys of recent packets, one per burst.
    samples: Vec<FlowKey>,
    next_sample: usize,
}

/// Maximum number of recent packets kept to measure lookup costs.
const MAX_SAMPLES: usize = 256;

impl Stopwatch {
    /// Switches measuring on or off.
    pub fn watch(&mut self, on: bool) {
        (self.is_on, self.last) = (on, cycles());
        self.perf.stages.iter_mut().for_each(|took| took.longest = 0);
        if on && self.samples.is_empty() {
            self.samples.reserve_exact(MAX_SAMPLES);
        } else if !on {
            self.samples = Vec::new();
        }
    }

    /// Returns flow keys of recent packets, to measure lookup costs ([`crate::Datapath::table_shapes`]).
    pub fn samples(&self) -> &[FlowKey] {
        &self.samples
    }

    /// Returns true if measuring is on.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Begins a lap. The time since the previous lap is not counted.
    #[inline]
    pub fn start(&mut self) {
        if self.is_on {
            self.last = cycles();
        }
    }

    /// Ends a lap, adds it to a stage, and begins the next lap.
    #[inline]
    pub fn lap(&mut self, stage: ThreadStage, packets: usize) {
        if self.is_on {
            self.count(stage, packets);
        }
    }

    #[cold]
    fn count(&mut self, stage: ThreadStage, packets: usize) {
        let now = cycles();
        self.perf.count(stage, now.saturating_sub(self.last), packets);
        self.last = now;
    }

    /// Returns the measurements so far.
    pub fn perf(&self) -> &Perf {
        &self.perf
    }
}

/// Receiver of the laps within a burst.
pub(crate) trait LapSink {
    /// Called after parsing `packets` frames, of which the packets `looked_up` are looked up next.
    fn parsed(&mut self, parsed: &BurstHeaders, looked_up: Lanes, packets: usize);
    /// Called at the beginning of a burst.
    fn burst(&mut self, packets: usize);
    /// Called after the lookup; `counts` returns the verdict cache's counters.
    fn cached(&mut self, counts: impl FnOnce() -> CacheCounts);
    /// Called at the end of a lap.
    fn lap(&mut self, stage: ThreadStage, packets: usize);
}

/// Measuring is off: all calls are empty.
pub(crate) struct NoLaps;

impl LapSink for NoLaps {
    #[inline(always)]
    fn parsed(&mut self, _parsed: &BurstHeaders, _looked_up: Lanes, _packets: usize) {}

    #[inline(always)]
    fn burst(&mut self, _packets: usize) {}

    #[inline(always)]
    fn cached(&mut self, _counts: impl FnOnce() -> CacheCounts) {}

    #[inline(always)]
    fn lap(&mut self, _stage: ThreadStage, _packets: usize) {}
}

impl LapSink for Stopwatch {
    fn parsed(&mut self, parsed: &BurstHeaders, looked_up: Lanes, packets: usize) {
        self.count(ThreadStage::Parse, packets);
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

    fn lap(&mut self, stage: ThreadStage, packets: usize) {
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
        watch.lap(ThreadStage::Receive, 3);
        assert_eq!(*watch.perf(), Perf::default());
        watch.watch(true);
        watch.lap(ThreadStage::Receive, 3);
        watch.lap(ThreadStage::Receive, 4);
        assert!(watch.perf().stage(ThreadStage::Receive).longest > 0);
        watch.watch(false);
        watch.lap(ThreadStage::Receive, 5);
        let took = watch.perf().stage(ThreadStage::Receive);
        assert_eq!((took.times, took.packets, took.longest), (2, 7, 0));
    }

    #[test]
    fn stages_lie_in_their_order() {
        for (at, stage) in ThreadStage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, at, "{}", stage.name());
        }
    }

    #[test]
    fn what_was_between_two_looks_is_their_difference() {
        let mut perf = Perf::default();
        perf.count(ThreadStage::Parse, 100, 32);
        perf.bursts[32] += 1;
        let earlier = perf.clone();
        perf.count(ThreadStage::Parse, 50, 10);
        perf.bursts[10] += 1;
        let between = perf.since(&earlier);
        assert_eq!(between.stage(ThreadStage::Parse), StageTotals { cycles: 50, times: 1, packets: 10, longest: 100 });
        assert_eq!((between.bursts[10], between.bursts[32]), (1, 0));
        let mut whole = earlier;
        whole.add(&between);
        assert_eq!(whole, perf);
    }
}
