//! Plan drawn from a seed: configuration of the switch, its controllers and the rate of faults.
use super::schedule_rng::ScheduleRng;
use crate::spin::Spin;
use crate::threads::{BurstSizes, HandOver, ThreadingMode, ThreadsConfig};
use std::time::Duration;
use weir_datapath::{DatapathConfig, LookupMethod, VerdictCacheMode};
use weir_openflow::Version;

/// Number of frame buffers of a switch. Few, so that runs also exhaust them.
const BUFFERS: usize = 256;

/// Plan of one run.
#[derive(Debug)]
pub(super) struct SchedulePlan {
    pub(super) mode: ThreadingMode,
    pub(super) workers: usize,
    /// Cores of the machine. Workers without a core of their own share a thread or have none.
    pub(super) cores: usize,
    pub(super) hand_over: HandOver,
    pub(super) bursts: usize,
    pub(super) ring_size: usize,
    pub(super) spin: Spin,
    pub(super) lookup: LookupMethod,
    pub(super) cache: VerdictCacheMode,
    pub(super) ports: u32,
    /// Capacity of a cable in each direction, in frames.
    pub(super) cable: usize,
    /// OpenFlow versions of the controllers, one connection each at a time.
    pub(super) versions: Vec<Version>,
    /// Capacity of a connection in each direction, in bytes; `piece` is the most that it moves at once.
    pub(super) wire: usize,
    pub(super) piece: usize,
    /// True if entries may send a packet to several ports.
    pub(super) may_copy: bool,
    /// True if a virtual switch is added and removed.
    pub(super) has_virtual: bool,
    /// Time by which each reading of the clock advances it.
    pub(super) reading: Duration,
    /// Rate of faults in thousandths of the steps.
    pub(super) faults: usize,
    pub(super) steps: usize,
}

impl SchedulePlan {
    /// Draws a plan.
    pub(super) fn draw(dice: &mut ScheduleRng) -> SchedulePlan {
        let mode =
            dice.pick(&[ThreadingMode::RunToCompletion, ThreadingMode::RunToCompletion, ThreadingMode::Pipeline]);
        let workers = match mode {
            ThreadingMode::RunToCompletion => dice.pick(&[1, 1, 2, 3]),
            ThreadingMode::Pipeline => 1 + dice.below(3),
        };
        let versions = [Version::V10, Version::V13, Version::V13, Version::V14, Version::V15];
        let bursts = dice.pick(&[1, 4, 8, 32]);
        SchedulePlan {
            mode,
            workers,
            cores: workers + dice.below(2),
            hand_over: dice.pick(&[HandOver::Always, HandOver::Auto]),
            bursts,
            ring_size: bursts * dice.pick(&[1, 2, 64]),
            spin: dice.pick(&[Spin::For(Duration::ZERO), Spin::For(Duration::from_micros(5)), Spin::Auto]),
            lookup: dice.pick(&[LookupMethod::Adaptive, LookupMethod::Linear]),
            cache: dice.pick(&[VerdictCacheMode::On, VerdictCacheMode::Off]),
            ports: 1 + u32::try_from(dice.below(4)).unwrap_or(0),
            cable: dice.pick(&[2, 16, 256]),
            versions: (0..1 + dice.below(3)).map(|_| dice.pick(&versions)).collect(),
            wire: dice.pick(&[64, 1024, 65536]),
            piece: dice.pick(&[3, 64, 4096]),
            may_copy: dice.hits(300),
            has_virtual: dice.hits(250),
            reading: Duration::from_nanos(dice.pick(&[50, 200, 5_000, 40_000])),
            faults: dice.pick(&[0, 5, 30]),
            steps: 200 + dice.below(400),
        }
    }

    /// Returns the configuration of the switch's threads.
    pub(super) fn threads(&self) -> ThreadsConfig {
        ThreadsConfig {
            mode: self.mode,
            hand_over: self.hand_over,
            workers: self.workers,
            bursts: BurstSizes::all(self.bursts),
            ring_size: self.ring_size,
            buffers: BUFFERS,
            ..ThreadsConfig::default()
        }
    }

    /// Returns the configuration of the datapath.
    pub(super) fn datapath(&self) -> DatapathConfig {
        DatapathConfig {
            name: "schedules".to_owned(),
            n_tables: 4,
            n_buffers: 0,
            lookup: self.lookup,
            verdict_cache: self.cache,
            ..DatapathConfig::default()
        }
    }

    /// Returns true if each frame has exactly one end, so that frame counts must match exactly.
    pub(super) fn counts_exactly(&self) -> bool {
        !self.may_copy && !self.has_virtual && self.versions.len() == 1
    }
}
