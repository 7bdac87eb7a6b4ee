//! What a seed stands for: how the switch is made, who drives it, and which faults there are.
use super::dice::Dice;
use crate::spin::Spin;
use crate::threads::{Bursts, HandOver, Mode, ThreadsConfig};
use std::time::Duration;
use weir_datapath::{DatapathConfig, Lookup, VerdictCache};
use weir_openflow::Version;

/// Frame buffers that a switch has: few, so that running out of them is met.
const BUFFERS: usize = 256;

/// See the module's page.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) mode: Mode,
    pub(super) workers: usize,
    /// Cores of the machine: workers that have none of their own share a thread, or have none.
    pub(super) cores: usize,
    pub(super) hand_over: HandOver,
    pub(super) bursts: usize,
    pub(super) ring_size: usize,
    pub(super) spin: Spin,
    pub(super) lookup: Lookup,
    pub(super) cache: VerdictCache,
    pub(super) ports: u32,
    /// Frames that a cable holds in each direction.
    pub(super) cable: usize,
    /// The versions that controllers speak; each has a connection at a time.
    pub(super) versions: Vec<Version>,
    /// Bytes that a connection holds in each direction, and moves at once.
    pub(super) wire: usize,
    pub(super) piece: usize,
    /// Whether entries may send a packet to several ports.
    pub(super) may_copy: bool,
    /// Whether a virtual switch comes and goes.
    pub(super) has_virtual: bool,
    /// Nanoseconds by which reading the clock moves it.
    pub(super) reading: Duration,
    /// How often, in thousandths of the steps, a fault comes.
    pub(super) faults: usize,
    pub(super) steps: usize,
}

impl Plan {
    /// The plan of a seed.
    pub(super) fn draw(dice: &mut Dice) -> Plan {
        let mode = dice.pick(&[Mode::RunToCompletion, Mode::RunToCompletion, Mode::Pipeline]);
        let workers = match mode {
            Mode::RunToCompletion => dice.pick(&[1, 1, 2, 3]),
            Mode::Pipeline => 1 + dice.below(3),
        };
        let versions = [Version::V10, Version::V13, Version::V13, Version::V14, Version::V15];
        let bursts = dice.pick(&[1, 4, 8, 32]);
        Plan {
            mode,
            workers,
            cores: workers + dice.below(2),
            hand_over: dice.pick(&[HandOver::Always, HandOver::Auto]),
            bursts,
            ring_size: bursts * dice.pick(&[1, 2, 64]),
            spin: dice.pick(&[Spin::For(Duration::ZERO), Spin::For(Duration::from_micros(5)), Spin::Auto]),
            lookup: dice.pick(&[Lookup::Adaptive, Lookup::Linear]),
            cache: dice.pick(&[VerdictCache::On, VerdictCache::Off]),
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

    /// How the switch spreads over threads.
    pub(super) fn threads(&self) -> ThreadsConfig {
        ThreadsConfig {
            mode: self.mode,
            hand_over: self.hand_over,
            workers: self.workers,
            bursts: Bursts::all(self.bursts),
            ring_size: self.ring_size,
            buffers: BUFFERS,
            ..ThreadsConfig::default()
        }
    }

    /// How the datapath is.
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

    /// Whether each frame has one end, so that all frames can be counted to the last.
    pub(super) fn counts_exactly(&self) -> bool {
        !self.may_copy && !self.has_virtual && self.versions.len() == 1
    }
}
