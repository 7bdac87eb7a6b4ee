//! Measures packet delays by match kind, length, number of entries and time between packets, one factor at a time.
use crate::bench::{PlannedProbe, TestBench};
use crate::fit::cases::{ForwardingCase, cases};
use crate::fit::stairs::stairs;
use crate::levels::PRIORITY;
use crate::rig::RigDelayTable;
use crate::rules::{TestFlowEntry, number};
use crate::store::{PacketDelayRow, RawDataRow, RawDataStore};
use crate::{MeasurementGrid, ProfilerError, ProgressReporter};
use std::time::Duration;
use weir_model::fit::quantiles::MedianAndSpread;
use weir_profile::MatchLayers;

/// Group of the entries.
const GROUP: u32 = 5;
/// Entries of a level whose packets are measured.
pub(crate) const TESTED: usize = 10;
/// Parts in which each case's packets are sent, alternating with the other cases: a temporary disturbance affects
/// only a part of each.
const ROUNDS: u32 = 3;
/// Numbers of entries measured beside the base case's, in eighths of the level's size (at most of four times
/// [`ENTRIES`]).
const EIGHTHS: [u64; 5] = [1, 2, 3, 4, 5];
/// Number of entries and packet length (bytes) of the base case, from which other cases differ in one factor.
const ENTRIES: u64 = 500;
const BYTES: u32 = 128;
/// Shortest time between packets in the base case, in microseconds.
const GAP_US: u32 = 100;
/// Precision to which the time between packets is searched at which delays change, as a share of it.
const NEAR: f64 = 0.03;
/// A case was disturbed if its delays spread this many times as widely as usual, and by more than this share of their
/// median. It then gets this many times the packets.
const BLURRED: f64 = 4.0;
const BLURRED_SHARE: f64 = 0.02;
const AGAIN: u32 = 3;
/// Least time between packets that are closer than those of the base case, as a multiple of their delay: they do not
/// find others before them.
const CLOSER: f64 = 1.5;
/// Packets at random times after each other, as a multiple of those of a case, and the longest and shortest of these
/// times, in seconds: their logarithms are equally likely.
const MIXED: u32 = 16;
const MIXED_GAPS_S: [f64; 2] = [50e-6, 50e-3];

/// Packets that are sent at once, repetitions, and the pause behind each.
const TOGETHER: usize = 100;
const TOGETHER_RUNS: usize = 9;
const PAUSE: Duration = Duration::from_millis(20);

/// Delays of a level's packets.
#[derive(Debug, Clone)]
pub(crate) struct LevelDelays {
    pub(crate) base: ForwardingCase,
    pub(crate) rows: Vec<PacketDelayRow>,
    /// Time of a packet behind another, in seconds.
    pub(crate) busy_s: Option<f64>,
    /// Times after the packet before, and delays, of packets at random times that found no other one before them, in
    /// seconds.
    pub(crate) mixed_s: Vec<(f64, f64)>,
}

/// Measures the cases of all levels that the store does not have. Appends to `made` level by level, also those
/// measured before an error.
pub(crate) fn measure(
    bench: &mut TestBench<'_>,
    grid: &MeasurementGrid,
    sizes: &[Option<u64>],
    delays_s: &[f64],
    store: &mut RawDataStore,
    progress: &mut ProgressReporter<'_>,
    made: &mut Vec<LevelDelays>,
) -> Result<(), ProfilerError> {
    let mut rows = store.delays()?;
    progress.expect(sizes.len() * (grid.bytes.len() + grid.gaps_us.len() + 6));
    for (level, size) in sizes.iter().enumerate() {
        let room = size.unwrap_or(u64::MAX);
        let above: u64 = sizes[..level].iter().flatten().sum();
        let delay_us = delays_s.get(level).copied().unwrap_or(0.0) * 1e6;
        let kind = if bench.has_channel() { MatchLayers::L2L3 } else { MatchLayers::L2 };
        let mut measuring = LevelDelayRun {
            bench,
            grid,
            store,
            progress,
            rows: &mut rows,
            level,
            above,
            room,
            base: ForwardingCase { kind, ..base(level, room, delay_us) },
        };
        let ended = measuring.all();
        let base = measuring.base;
        made.push(LevelDelays { base, rows: measuring.rows.clone(), busy_s: None, mixed_s: Vec::new() });
        ended?;
        let (busy_s, mixed_s) = (measuring.busy()?, measuring.mixed()?);
        if let Some(level) = made.last_mut() {
            (level.busy_s, level.mixed_s) = (busy_s, mixed_s);
        }
    }
    Ok(())
}

/// Returns the base case of a level. The time between packets exceeds the level's delay, so that packets do not wait
/// for each other.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within bounds, above 0")]
fn base(level: usize, room: u64, delay_us: f64) -> ForwardingCase {
    let gap_us = f64::from(GAP_US).max(delay_us * 4.0).min(1e6) as u32;
    // Entries are of three kinds, a third each.
    ForwardingCase {
        level,
        kind: MatchLayers::L2L3,
        entries: ENTRIES.min(room - room / 4).max(1),
        bytes: BYTES,
        gap_us,
    }
}

struct LevelDelayRun<'e, 'a, 'p> {
    bench: &'e mut TestBench<'a>,
    grid: &'e MeasurementGrid,
    store: &'e mut RawDataStore,
    progress: &'e mut ProgressReporter<'p>,
    rows: &'e mut Vec<PacketDelayRow>,
    level: usize,
    /// Number of entries in the levels above, which are full.
    above: u64,
    room: u64,
    base: ForwardingCase,
}

impl LevelDelayRun<'_, '_, '_> {
    fn all(&mut self) -> Result<(), ProfilerError> {
        let base = self.base;
        let mut wanted: Vec<ForwardingCase> = MatchLayers::ALL.map(|kind| ForwardingCase { kind, ..base }).to_vec();
        wanted.extend(self.grid.bytes.iter().map(|bytes| ForwardingCase { bytes: *bytes, ..base }));
        wanted.extend(
            self.grid
                .gaps_us
                .iter()
                .filter(|gap| **gap >= base.gap_us)
                .map(|gap| ForwardingCase { gap_us: *gap, ..base }),
        );
        self.cases(&wanted)?;
        self.closer()?;
        self.refine()?;
        let entries = EIGHTHS.map(|eighths| self.room.min(4 * ENTRIES) * eighths / 8);
        self.cases(&entries.map(|entries| ForwardingCase { entries: entries.max(3), ..base }))
    }

    /// Measures times between packets below that of the base case, each half of the one before, as far as packets do
    /// not find others before them: a switch whose threads sleep is much faster where packets are close.
    fn closer(&mut self) -> Result<(), ProfilerError> {
        let mut case = self.base;
        while case.gap_us / 2 >= GAP_US {
            let delays: Vec<f64> = cases(self.rows, self.level).remove(&case).unwrap_or_default();
            let Ok(middle) = MedianAndSpread::of(&delays) else { return Ok(()) };
            case.gap_us /= 2;
            if f64::from(case.gap_us) * 1e-6 < CLOSER * middle.median {
                return Ok(());
            }
            self.cases(&[case])?;
        }
        Ok(())
    }

    /// Measures the time for which a packet occupies the level behind others: many are sent at once.
    fn busy(&mut self) -> Result<Option<f64>, ProfilerError> {
        let name = format!("busy-{}", self.level);
        if let Some(found) = self.store.kept(&name)? {
            return Ok(found);
        }
        self.there(self.base.entries)?;
        let Some(rules) = self.tested(self.base.kind) else { return Ok(None) };
        self.bench.during = "sending packets at once".to_owned();
        let (bytes, gap) = (self.base.bytes, Duration::ZERO);
        let rule = |at: usize| PlannedProbe { rule: rules[at % rules.len()], bytes, gap };
        let planned: Vec<PlannedProbe> = (0..TOGETHER).map(rule).collect();
        let mut found = Vec::new();
        for _ in 0..TOGETHER_RUNS {
            found.extend(self.bench.together(&planned)?);
            self.bench.rest(PAUSE)?;
        }
        let busy_s = MedianAndSpread::of(&found).ok().map(|middle| middle.median);
        self.store.keep(&name, &busy_s)?;
        Ok(busy_s)
    }

    /// Measures packets at random times after each other: what a packet takes may depend on more than the time since
    /// the one before, and traffic is seldom regular.
    fn mixed(&mut self) -> Result<Vec<(f64, f64)>, ProfilerError> {
        let name = format!("mixed-{}", self.level);
        if let Some(found) = self.store.kept(&name)? {
            return Ok(found);
        }
        self.there(self.base.entries)?;
        let Some(rules) = self.tested(self.base.kind) else { return Ok(Vec::new()) };
        self.bench.during = "measuring packets at random times".to_owned();
        let [least_s, most_s] = MIXED_GAPS_S.map(|gap_s| gap_s.max(f64::from(self.base.gap_us) * 1e-6 / 16.0));
        let bytes = self.base.bytes;
        let random = &mut self.bench.random;
        let mut packet = |at: u32| {
            let gap = Duration::from_secs_f64(least_s * (most_s / least_s).powf(random.f64()));
            PlannedProbe { rule: rules[at as usize % rules.len()], bytes, gap }
        };
        let planned: Vec<PlannedProbe> = (0..self.grid.packets * MIXED).map(&mut packet).collect();
        let (delays, sent) = self.bench.timed_delays(&planned)?;
        let mut found = Vec::new();
        let mut over = None;
        for at in 1..sent.len() {
            let left = delays[at - 1].map(|delay_s| sent[at - 1] + Duration::from_secs_f64(delay_s.max(0.0)));
            over = over.max(left);
            let (Some(delay_s), Some(over)) = (delays[at], over) else { continue };
            let came = sent[at] + Duration::from_secs_f64(delay_s.max(0.0));
            if sent[at] > over && !self.bench.device.was_stopped(sent[at], came) {
                found.push((sent[at].since(sent[at - 1]).as_secs_f64(), delay_s));
            }
        }
        self.store.keep(&name, &found)?;
        Ok(found)
    }

    /// Measures cases alternately, each in [`ROUNDS`] parts.
    fn cases(&mut self, wanted: &[ForwardingCase]) -> Result<(), ProfilerError> {
        for round in 1..=ROUNDS {
            for case in wanted {
                if round == 1 {
                    self.progress.step("measuring delays");
                }
                self.case(*case, self.grid.packets * round / ROUNDS)?;
            }
        }
        self.blurred(wanted)
    }

    /// Repeats cases whose delays spread much more widely than usual: a short disturbance may affect most packets of
    /// a case, and so hide a step or feign one.
    fn blurred(&mut self, wanted: &[ForwardingCase]) -> Result<(), ProfilerError> {
        let found = cases(self.rows, self.level);
        let middles = found.iter().map(|(case, delays)| Ok((*case, MedianAndSpread::of(delays)?)));
        let middles = middles.collect::<Result<Vec<_>, ProfilerError>>()?;
        let Ok(usual) = MedianAndSpread::of(&middles.iter().map(|(_, middle)| middle.iqr).collect::<Vec<_>>()) else {
            return Ok(());
        };
        for (case, middle) in middles.iter().filter(|(case, _)| wanted.contains(case)) {
            if middle.iqr > (BLURRED * usual.median).max(BLURRED_SHARE * middle.median) {
                self.case(*case, self.grid.packets * AGAIN)?;
            }
        }
        Ok(())
    }

    /// Measures a case until the store has delays of `packets` packets.
    fn case(&mut self, case: ForwardingCase, packets: u32) -> Result<(), ProfilerError> {
        let before = u32::try_from(self.rows.iter().filter(|row| ForwardingCase::of(row) == Some(case)).count())
            .unwrap_or(u32::MAX);
        if before >= packets {
            return Ok(());
        }
        self.there(case.entries)?;
        let Some(rules) = self.tested(case.kind) else { return Ok(()) };
        let ForwardingCase { entries, bytes, gap_us, .. } = case;
        self.bench.during = format!("measuring packets of {bytes} bytes, {gap_us} us apart, beside {entries} entries");
        let gap = Duration::from_micros(gap_us.into());
        // The first packets do not count because the time before them differs.
        let warm = 2;
        let rule = |at: u32| rules[at as usize % rules.len()];
        let planned: Vec<PlannedProbe> =
            (0..warm + packets - before).map(|at| PlannedProbe { rule: rule(at), bytes, gap }).collect();
        let delays = self.bench.delays(&planned)?;
        for (packet, delay_s) in (before..).zip(delays.into_iter().skip(warm as usize)) {
            let kind = case.kind.name().to_owned();
            let row = PacketDelayRow { level: case.level, kind, entries, bytes, gap_us, packet, delay_s };
            self.store.write(&RawDataRow::Delay(&row))?;
            self.rows.push(row);
        }
        self.bench.rest(gap)
    }

    /// Adjusts the entries so that the level holds `entries` of them, of all kinds.
    fn there(&mut self, entries: u64) -> Result<(), ProfilerError> {
        let wanted = usize::try_from(self.above + entries).unwrap_or(usize::MAX);
        if self.bench.entries() > wanted {
            self.bench.clear()?;
        }
        let are = self.bench.entries();
        if are < wanted {
            self.bench.during = format!("adding {} entries", wanted - are);
            let rules: Vec<TestFlowEntry> = (are..wanted).map(|at| rule(self.bench, at)).collect();
            self.bench.fill(&rules)?;
        }
        self.bench.refresh()
    }

    /// Returns some entries of the level with the given kind; none if it has none.
    fn tested(&self, kind: MatchLayers) -> Option<Vec<TestFlowEntry>> {
        let is_here = |rule: &TestFlowEntry| {
            let level = self.bench.tables().and_then(|tables| tables.level_of(rule.number.into()));
            rule.kind == kind && level.is_none_or(|level| level == self.level)
        };
        let rules: Vec<TestFlowEntry> = self.bench.rules().map(|(rule, _)| rule).filter(is_here).take(TESTED).collect();
        Some(rules).filter(|rules| !rules.is_empty())
    }

    /// Halves the intervals between packet spacings in which delays change.
    fn refine(&mut self) -> Result<(), ProfilerError> {
        let mut before = Vec::new();
        loop {
            let found = cases(self.rows, self.level);
            if !found.contains_key(&self.base) {
                return Ok(());
            }
            let thresholds = stairs(&found, self.base, &RigDelayTable::default())?.thresholds_s;
            let gaps: Vec<u32> = found
                .keys()
                .filter(|case| **case == ForwardingCase { gap_us: case.gap_us, ..self.base })
                .map(|case| case.gap_us)
                .collect();
            let middle = thresholds.iter().find_map(|threshold| {
                let above = gaps.iter().copied().find(|gap| f64::from(*gap) * 1e-6 >= *threshold - 1e-9)?;
                let below = gaps.iter().copied().rfind(|gap| *gap < above)?;
                let is_wide = f64::from(above - below) > NEAR * f64::from(above) && above - below > 1;
                is_wide.then_some(below + (above - below) / 2)
            });
            match middle.filter(|middle| !before.contains(middle)) {
                Some(middle) => {
                    before.push(middle);
                    self.cases(&[ForwardingCase { gap_us: middle, ..self.base }])?;
                }
                None => return Ok(()),
            }
        }
    }
}

/// Returns the entry with index `at`: of each kind in turn, but only Ethernet addresses for a device that learns.
pub(crate) fn rule(bench: &TestBench<'_>, at: usize) -> TestFlowEntry {
    let kind = if bench.has_channel() { MatchLayers::ALL[at % 3] } else { MatchLayers::L2 };
    TestFlowEntry { number: number(GROUP, u32::try_from(at).unwrap_or(u32::MAX)), priority: PRIORITY, kind }
}
