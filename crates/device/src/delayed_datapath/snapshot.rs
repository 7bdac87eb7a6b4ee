//! Reports the state and counters of a switch that delays packets and commands as a profiled device does.
use super::DelayedDatapath;
use crate::{CommandRecord, LatenessSummary};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// State of the delays that a switch takes from a profile, at one moment. Counters run since the switch started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimingSnapshot {
    /// Name of the profile.
    pub profile: String,
    /// Lateness of delayed packets and commands: how long after their due times they were released.
    pub lateness: LatenessSnapshot,
    /// Levels of the profiled device's flow tables, fastest first.
    pub levels: Vec<LevelSnapshot>,
    /// Number of flow entries that were added, by other means than controllers' flow-mods, while all levels were full.
    pub beyond: u64,
    /// Number of waiting commands (flow-mods and bundles), including those in progress.
    pub commands_waiting: usize,
    /// Number of barriers that are not answered yet.
    pub barriers_waiting: usize,
    /// Number of packets that wait in the data path, or at its gate: the point behind it that releases packets in
    /// groups.
    pub packets_waiting: usize,
    /// Number of packets that are delayed on their way to controllers or back.
    pub control_waiting: usize,
    /// Number of commands carried out.
    pub commands: u64,
    /// Number of commands refused because all levels were full.
    pub refused: u64,
    /// Number of packets dropped because the data path or its gate was full.
    pub lost_data: u64,
    /// Number of packets dropped because the queue to or from controllers was full.
    pub lost_control: u64,
    /// Number of packets dropped because the waiting packets had too many bytes.
    pub lost_beyond: u64,
    /// Number of super-frames (several TCP segments in one frame) dropped because they could not be split into packets.
    pub lost_bad_offload: u64,
    /// Number of records of commands that were discarded before [`DelayedDatapath::take_records`] took them.
    pub records_lost: u64,
}

/// Statistics of how late delayed packets and commands were released.
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

impl From<LatenessSummary> for LatenessSnapshot {
    fn from(by: LatenessSummary) -> LatenessSnapshot {
        let [p50_s, p99_s, max_s] = [by.p50, by.p99, by.most].map(|late: Duration| late.as_secs_f64());
        LatenessSnapshot { count: by.count, p50_s, p99_s, max_s, late: by.late }
    }
}

/// A level of a profiled device's flow tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelSnapshot {
    /// Name of the level.
    pub name: String,
    /// Maximum number of flow entries; `None` without limit.
    pub size: Option<u64>,
    /// Current number of flow entries.
    pub entries: u64,
}

impl DelayedDatapath {
    /// Returns the present state of the delays.
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

    /// Returns the commands carried out or refused since the last call, oldest first, as CSV lines with the columns of
    /// [`crate::CSV_HEAD`].
    pub fn take_records(&mut self) -> Vec<String> {
        self.stage.take_records().iter().map(CommandRecord::csv).collect()
    }

    /// Names of the reasons for drops in the switch's reports.
    pub const DROP_REASONS: [&str; 4] =
        ["profile_data_path_full", "profile_agent_full", "profile_too_many_bytes", "profile_bad_super_frame"];

    /// Returns the number of dropped packets for each reason.
    pub fn drops(&self) -> [(&'static str, u64); 4] {
        let counts = self.stage.counts();
        let [data_path, agent, bytes, super_frame] = DelayedDatapath::DROP_REASONS;
        [
            (data_path, counts.lost_data),
            (agent, counts.lost_control),
            (bytes, self.lost.beyond),
            (super_frame, self.lost.bad_offload),
        ]
    }
}
