//! Defines the settings of a measurement: time limits, precision and sizes.
use crate::ProfilerError;
use crate::rules::{GROUP_ENTRIES, TestFlowEntry};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use weir_model::fit::control::InsertionOrder;
use weir_profile::MatchLayers;

/// Most entries in a grid: further entries are added beside them.
const MAX_ENTRIES: u32 = GROUP_ENTRIES - 4096;

/// Settings that apply to all parts of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasurementSettings {
    /// Longest time the switch may take for anything.
    pub patience: Duration,
    /// Time between the packets that watch entries, as a share of the time passed.
    pub resolution: f64,
    /// Shortest time between these packets.
    pub finest: Duration,
    /// Longest time between these packets.
    pub coarsest: Duration,
    /// Time without packets of an entry after which it counts as gone.
    pub grace: Duration,
    /// Seed of the random choices.
    pub seed: u64,
}

impl Default for MeasurementSettings {
    fn default() -> Self {
        MeasurementSettings {
            patience: Duration::from_secs(60),
            resolution: 1.0 / 200.0,
            finest: Duration::from_micros(20),
            coarsest: Duration::from_millis(20),
            grace: Duration::from_millis(20),
            seed: 1,
        }
    }
}

impl MeasurementSettings {
    /// Returns an entry for packets that no entry in the switch matches.
    pub(crate) fn any_rule() -> TestFlowEntry {
        TestFlowEntry { number: 0xff_ffff, priority: 0, kind: MatchLayers::L2L3 }
    }
}

/// Order of priorities in which entries are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PriorityOrder {
    /// All entries have equal priority.
    Same,
    /// Each priority is higher than those before.
    Ascending,
    /// Each priority is lower than those before.
    Descending,
    /// Priorities are random.
    Random,
}

impl PriorityOrder {
    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            PriorityOrder::Same => "same",
            PriorityOrder::Ascending => "ascending",
            PriorityOrder::Descending => "descending",
            PriorityOrder::Random => "random",
        }
    }

    /// Returns the order as the models' fits know it; none for random priorities.
    pub fn order(self) -> Option<InsertionOrder> {
        match self {
            PriorityOrder::Same => Some(InsertionOrder::Same),
            PriorityOrder::Ascending => Some(InsertionOrder::Ascending),
            PriorityOrder::Descending => Some(InsertionOrder::Descending),
            PriorityOrder::Random => None,
        }
    }
}

/// Returns the longest idle time of the grids: three times after which Open vSwitch forgets flows.
fn longest_idle_ms() -> u32 {
    33_000
}

/// Sizes at which a switch is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasurementGrid {
    /// Orders of priorities.
    pub priorities: Vec<PriorityOrder>,
    /// Numbers of entries present, rising.
    pub entries: Vec<u32>,
    /// Numbers of commands in a burst, rising.
    pub batches: Vec<u32>,
    /// Numbers of entries that one command deletes, rising.
    pub deletions: Vec<u32>,
    /// Repetitions of each cell.
    pub runs: u32,
    /// Most entries added to find the sizes of the levels.
    pub entries_max: u32,
    /// Most commands in a burst that looks for batches.
    pub batch_max: u32,
    /// Time between packets that look for table levels, in milliseconds.
    pub spacing_ms: u32,
    /// Number of messages of each kind.
    pub messages: u32,
    /// Number of packets for each measurement of delay.
    pub packets: u32,
    /// Packet lengths in bytes, rising.
    pub bytes: Vec<u32>,
    /// Times between packets in microseconds, rising.
    pub gaps_us: Vec<u32>,
    /// Longest time for which flows are left without packets, in milliseconds, to see whether the switch forgets them.
    /// The search takes up to five times as long.
    #[serde(default = "longest_idle_ms")]
    pub idle_ms: u32,
    /// Duration of a throughput trial, in milliseconds; 0 for no trials.
    pub trial_ms: u32,
}

impl MeasurementGrid {
    /// Returns the published grid and more sizes: about an hour on a switch that takes milliseconds.
    pub fn full() -> MeasurementGrid {
        use PriorityOrder::{Ascending, Descending, Random, Same};
        MeasurementGrid {
            priorities: vec![Same, Ascending, Descending, Random],
            entries: vec![1, 5, 10, 20, 50, 100, 500, 1000, 2000, 3000, 4000, 5000, 6000, 7000],
            batches: vec![1, 3, 5, 10, 20, 50, 80, 100],
            deletions: vec![1, 10, 50, 100, 500, 1000],
            runs: 10,
            entries_max: 10_000,
            batch_max: 1024,
            spacing_ms: 10,
            messages: 200,
            packets: 100,
            bytes: vec![64, 128, 256, 512, 1024, 1500],
            gaps_us: vec![100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000],
            idle_ms: longest_idle_ms(),
            trial_ms: 2000,
        }
    }

    /// Returns a small grid: some minutes.
    pub fn quick() -> MeasurementGrid {
        use PriorityOrder::{Ascending, Descending, Same};
        MeasurementGrid {
            priorities: vec![Same, Ascending, Descending],
            entries: vec![1, 50, 200, 500, 1000],
            batches: vec![1, 5, 20, 50],
            deletions: vec![1, 10, 100],
            runs: 5,
            entries_max: 2000,
            batch_max: 128,
            spacing_ms: 4,
            messages: 50,
            packets: 50,
            bytes: vec![64, 512, 1500],
            gaps_us: vec![100, 1000, 10_000, 50_000],
            idle_ms: longest_idle_ms(),
            trial_ms: 300,
        }
    }

    /// Checks the values of the grid.
    ///
    /// # Errors
    /// A value is out of range or a list is not rising; the error names it.
    pub fn check(&self) -> Result<(), ProfilerError> {
        let rising = |what: &str, list: &[u32], least: u32, most: u32| {
            let is_right = !list.is_empty()
                && list.windows(2).all(|pair| pair[0] < pair[1])
                && list.iter().all(|value| (least..=most).contains(value));
            let found = list.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            let expected = format!("rising numbers of {least} to {most}");
            if is_right { Ok(()) } else { Err(ProfilerError::wrong(format!("grid: {what}"), found, expected)) }
        };
        rising("entries", &self.entries, 1, MAX_ENTRIES)?;
        rising("batches", &self.batches, 1, 4096)?;
        rising("deletions", &self.deletions, 1, MAX_ENTRIES)?;
        rising("bytes", &self.bytes, crate::rules::SHORTEST, 9000)?;
        rising("gaps_us", &self.gaps_us, 10, 10_000_000)?;
        rising("runs", &[self.runs], 1, 1000)?;
        rising("entries_max", &[self.entries_max], 16, MAX_ENTRIES)?;
        rising("batch_max", &[self.batch_max], 2, 4096)?;
        rising("spacing_ms", &[self.spacing_ms], 1, 10_000)?;
        rising("messages", &[self.messages], 4, 100_000)?;
        rising("packets", &[self.packets], 4, 100_000)?;
        rising("idle_ms", &[self.idle_ms], 250, 3_600_000)?;
        rising("trial_ms", &[self.trial_ms], 0, 60_000)?;
        if self.priorities.is_empty() {
            return Err(ProfilerError::wrong("grid: priorities", "none", "one order or more, such as same"));
        }
        Ok(())
    }
}
