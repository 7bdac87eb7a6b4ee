//! Reports the state and counters of a switch's timing.
use super::Timed;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use weir_timing::LateBy;

/// State of a switch's timing at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimingSnapshot {
    /// Name of the profile.
    pub profile: String,
    /// Lateness of releases: the error of the delays.
    pub lateness: LatenessSnapshot,
    /// Levels of the tables, fastest first.
    pub levels: Vec<LevelSnapshot>,
    /// Flow entries added while all levels were full, by sources other than controllers' flow-mods.
    pub beyond: u64,
    /// Waiting commands, including the one in progress.
    pub commands_waiting: usize,
    /// Barriers without an answer yet.
    pub barriers_waiting: usize,
    /// Packets in the data path and at its gate.
    pub packets_waiting: usize,
    /// Packets on their way to controllers or back.
    pub control_waiting: usize,
    /// Commands carried out.
    pub commands: u64,
    /// Commands refused because all levels were full.
    pub refused: u64,
    /// Packets dropped for lack of room in the data path or at its gate.
    pub lost_data: u64,
    /// Packets dropped for lack of room on their way to controllers or back.
    pub lost_control: u64,
    /// Packets dropped because too many bytes were held.
    pub lost_beyond: u64,
    /// Super-frames that could not be split into packets.
    pub lost_bad_offload: u64,
    /// Command records that were overwritten before they were read.
    pub records_lost: u64,
}

/// Statistics of the lateness of releases: the time by which items were released after they were due.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LatenessSnapshot {
    /// Number of releases.
    pub count: u64,
    /// Median lateness in seconds.
    pub p50_s: f64,
    /// 99th percentile of the lateness in seconds.
    pub p99_s: f64,
    /// Maximum lateness in seconds.
    pub max_s: f64,
    /// Number of releases more than 20 us late.
    pub late: u64,
}

impl From<LateBy> for LatenessSnapshot {
    fn from(by: LateBy) -> LatenessSnapshot {
        let [p50_s, p99_s, max_s] = [by.p50, by.p99, by.most].map(|late: Duration| late.as_secs_f64());
        LatenessSnapshot { count: by.count, p50_s, p99_s, max_s, late: by.late }
    }
}

/// A level of the tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelSnapshot {
    /// Name of the level.
    pub name: String,
    /// Maximum number of flow entries; `None` without limit.
    pub size: Option<u64>,
    /// Current number of flow entries.
    pub entries: u64,
}

impl Timed {
    /// Returns the state of the timing at this moment.
    pub fn snapshot(&mut self) -> TimingSnapshot {
        let (waiting, counts) = (self.stage.waiting(), self.stage.counts());
        let lateness = self.stage.lateness().sum().into();
        let tables = self.stage.tables();
        let (occupancy, beyond) = tables.map(|tables| (tables.occupancy(), tables.beyond())).unwrap_or_default();
        let level = |((name, size), entries): (&(String, Option<u64>), u64)| LevelSnapshot {
            name: name.clone(),
            size: *size,
            entries,
        };
        TimingSnapshot {
            profile: self.profile.clone(),
            lateness,
            levels: self.levels.iter().zip(occupancy).map(level).collect(),
            beyond,
            commands_waiting: waiting.commands,
            barriers_waiting: waiting.barriers,
            packets_waiting: waiting.packets,
            control_waiting: waiting.control,
            commands: counts.commands,
            refused: counts.refused,
            lost_data: counts.lost_data,
            lost_control: counts.lost_control,
            lost_beyond: self.lost.beyond,
            lost_bad_offload: self.lost.bad_offload,
            records_lost: counts.records_lost,
        }
    }

    /// Returns the commands carried out since the last call, oldest first, as CSV lines under
    /// [`weir_timing::CSV_HEAD`].
    pub fn take_records(&mut self) -> Vec<String> {
        self.stage.take_records().iter().map(weir_timing::Record::csv).collect()
    }

    /// Returns the numbers of dropped packets, by the switch's names for the reasons.
    pub fn drops(&self) -> [(&'static str, u64); 4] {
        let counts = self.stage.counts();
        [
            ("profile_data_path_full", counts.lost_data),
            ("profile_agent_full", counts.lost_control),
            ("profile_too_many_bytes", self.lost.beyond),
            ("profile_bad_super_frame", self.lost.bad_offload),
        ]
    }
}
