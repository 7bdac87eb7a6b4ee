//! What there is to see of it.
use super::Timed;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use weir_timing::LateBy;

/// A switch's timing at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimingSnapshot {
    /// The profile's name.
    pub profile: String,
    /// How late things were released: the error of the delays.
    pub lateness: LatenessSnapshot,
    /// Levels of the tables, the fastest first.
    pub levels: Vec<LevelSnapshot>,
    /// Entries that were added though all levels were full, by others than controllers' flow-mods.
    pub beyond: u64,
    /// Commands that wait, with the one that is carried out.
    pub commands_waiting: usize,
    /// Barriers that wait to be answered.
    pub barriers_waiting: usize,
    /// Packets in the data path and at its gate.
    pub packets_waiting: usize,
    /// Packets on their way to controllers, or back.
    pub control_waiting: usize,
    /// Commands that were carried out.
    pub commands: u64,
    /// Commands that were refused since all levels were full.
    pub refused: u64,
    /// Packets that found no room in the data path or at its gate.
    pub lost_data: u64,
    /// Packets that found no room on their way to controllers, or back.
    pub lost_control: u64,
    /// Packets that were lost since too many bytes were held.
    pub lost_beyond: u64,
    /// Super-frames that could not be cut into packets.
    pub lost_bad_offload: u64,
    /// Records of commands that nobody took in time.
    pub records_lost: u64,
}

/// How late things were.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LatenessSnapshot {
    /// Things that were released.
    pub count: u64,
    /// Half of them were at most so late, in seconds.
    pub p50_s: f64,
    /// 99 of 100 were.
    pub p99_s: f64,
    /// The latest.
    pub max_s: f64,
    /// Those that were more than 20 us late.
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
    /// Its name.
    pub name: String,
    /// Entries that it has room for; none: no limit.
    pub size: Option<u64>,
    /// Entries in it.
    pub entries: u64,
}

impl Timed {
    /// What it looks like at the moment.
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

    /// Commands that were carried out since this was last called, oldest first, as lines under [`weir_timing::CSV_HEAD`].
    pub fn take_records(&mut self) -> Vec<String> {
        self.stage.take_records().iter().map(weir_timing::Record::csv).collect()
    }

    /// What was lost, by reason, as the switch names it.
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
