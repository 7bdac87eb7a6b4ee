//! Finds how many table levels a switch has, and the number of entries each one holds: Cheng (2015), section 4.2.1.
use crate::bench::PlannedProbe;
use crate::bench::TestBench;
use crate::rules::{SHORTEST, TestFlowEntry, number};
use crate::store::{RawDataRow, RawDataStore};
use crate::{MeasurementGrid, ProfilerError};
use std::time::Duration;
use weir_model::fit::groups::LatencyClusters;
use weir_model::fit::table_size::{LEVELS_MAX, TableSize};
use weir_profile::MatchLayers;

/// Levels whose delays differ by less than this factor are merged: steps of delay over the time between packets look
/// alike.
const APART: f64 = 1.5;
/// Smallest share of all entries that makes a level: single packets are late for other reasons.
const SHARE: f64 = 0.02;
/// Smallest number of entries that makes a level: one or two entries may be late each time.
const LEAST: usize = 3;
/// Most passes over the entries.
const LOOKS: usize = 5;
/// Smallest share of slow entries that are slow in every pass, if packets do not move entries.
const SAME_LEAST: f64 = 0.6;
/// Largest share of packets late by chance: if no more are slow, and others each time, packets move no entries.
const LATE_MOST: f64 = 0.15;
/// Largest difference in the number of slow entries between passes, as a share of all, if packets move entries.
const ALIKE: f64 = 0.05;
/// Most packets sent to a single entry to check the levels found.
const ALONE_MOST: usize = 500;
/// Largest share of entries whose packets may be lost.
const LOST_MOST: f64 = 0.02;
/// Priority of all entries that look for levels.
pub(crate) const PRIORITY: u16 = 1000;

/// Levels found in a switch.
#[derive(serde::Serialize, serde::Deserialize, Debug, Clone, PartialEq)]
pub struct MeasuredLevels {
    /// Number of entries that each level holds; none for the last one if its end was not found.
    pub sizes: Vec<Option<u64>>,
    /// Interval of each size with 95 % confidence.
    pub intervals: Vec<Option<[f64; 2]>>,
    /// Number of entries whose packets had each level's delay.
    pub counted: Vec<usize>,
    /// Delays that separate levels, in seconds, rising; one less than levels.
    pub boundaries_s: Vec<f64>,
    /// Delay of each level, in seconds.
    pub delays_s: Vec<f64>,
    /// Time that a packet without a matching entry occupies the switch, in seconds.
    #[serde(default)]
    pub missing_s: Option<f64>,
    /// Number of entries the switch accepted.
    pub entries: u64,
    /// True if the switch reported a full table.
    pub is_full: bool,
    /// True if further passes over the same entries gave the same sizes.
    pub confirmed: bool,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

impl MeasuredLevels {
    /// Returns one unlimited table of which nothing else is known.
    pub(crate) fn unknown() -> MeasuredLevels {
        MeasuredLevels {
            sizes: vec![None],
            intervals: vec![None],
            counted: Vec::new(),
            boundaries_s: Vec::new(),
            delays_s: Vec::new(),
            missing_s: None,
            entries: 0,
            is_full: false,
            confirmed: true,
            notes: Vec::new(),
        }
    }

    /// Returns the level of an entry whose packet took `delay_s` seconds, from 0.
    pub fn level(&self, delay_s: f64) -> usize {
        self.boundaries_s.iter().filter(|boundary| delay_s > **boundary).count()
    }
}

/// Returns the entry with number `at` of those that differ in nothing else.
pub(crate) fn alike(at: u32) -> TestFlowEntry {
    TestFlowEntry { number: number(0, at), priority: PRIORITY, kind: MatchLayers::L2L3 }
}

/// Fills the switch, and sends each entry one packet per pass, in random order so that probing does not move entries
/// systematically. Passes are repeated until they agree, [`LOOKS`] times at most.
pub(crate) fn measure(
    bench: &mut TestBench<'_>,
    grid: &MeasurementGrid,
    store: &mut RawDataStore,
) -> Result<MeasuredLevels, ProfilerError> {
    bench.during = "filling the tables".to_owned();
    bench.clear()?;
    let rules: Vec<TestFlowEntry> = (0..grid.entries_max).map(alike).collect();
    let taken = bench.fill(&rules)?;
    if taken == 0 {
        return Err(ProfilerError::wrong("the switch's tables", "no room for a single entry", "room for some"));
    }
    let is_full = taken < rules.len();
    bench.during = "probing each entry".to_owned();
    let spacing = Duration::from_millis(grid.spacing_ms.into());
    let mut looks = vec![once(bench, &rules[..taken], spacing)?, once(bench, &rules[..taken], spacing)?];
    let (mut found, mut asked) = agreed(&looks, taken, is_full)?;
    // Equal numbers of slow entries, but other entries each time, may be chance twice.
    while looks.len() < LOOKS && (!found.confirmed || asked < looks.len()) {
        looks.push(once(bench, &rules[..taken], spacing)?);
        let (again, times) = agreed(&looks, taken, is_full)?;
        asked = times;
        found = MeasuredLevels { confirmed: again.counted == found.counted, ..again };
    }
    for (run, delays) in (0..).zip(&looks) {
        for (at, delay) in delays.iter().enumerate() {
            store.write(&RawDataRow::Probe { run, entry: at as u64, delay_s: *delay })?;
        }
    }
    // Levels may be searched in parallel: packets without an entry then delay those of the slowest level.
    let slowest =
        looks[0].iter().position(|delay| delay.is_some_and(|delay| found.level(delay) + 1 == found.sizes.len()));
    bench.knows_forwarding(&found.delays_s, None);
    let missing_s = bench.missing(alike(u32::try_from(slowest.unwrap_or(0)).unwrap_or(0)))?;
    if found.sizes.len() > 1 {
        let delays = alone(bench, taken.min(ALONE_MOST), asked, spacing)?;
        without_noise(&mut found, &delays);
    }
    found.missing_s = missing_s;
    bench.knows_forwarding(&found.delays_s, missing_s);
    Ok(found)
}

/// Measures delays of a single entry, as many packets as there were entries and passes: slowness in them has other
/// causes than levels.
fn alone(
    bench: &mut TestBench<'_>,
    entries: usize,
    times: usize,
    spacing: Duration,
) -> Result<Vec<f64>, ProfilerError> {
    bench.during = "probing a single entry".to_owned();
    bench.clear()?;
    bench.fill(&[alike(0)])?;
    let planned = vec![PlannedProbe { rule: alike(0), bytes: SHORTEST, gap: spacing }; entries * times];
    let delays = bench.one_by_one(&planned)?;
    Ok(fastest(&delays.chunks(entries.max(1)).map(<[_]>::to_vec).collect::<Vec<_>>()).into_iter().flatten().collect())
}

/// Merges two levels if packets of a single entry are slow at least half as often as packets of all entries.
fn without_noise(found: &mut MeasuredLevels, alone: &[f64]) {
    let all: usize = found.counted.iter().sum();
    let share = |part: usize, of: usize| part as f64 / of.max(1) as f64;
    for at in (0..found.boundaries_s.len()).rev() {
        let slower = share(found.counted[at + 1..].iter().sum(), all);
        let slower_alone = share(alone.iter().filter(|delay| **delay > found.boundaries_s[at]).count(), alone.len());
        if slower_alone < slower / 2.0 {
            continue;
        }
        found.boundaries_s.remove(at);
        found.delays_s.remove(at + 1);
        found.counted[at] += found.counted.remove(at + 1);
        let (size, interval) = (found.sizes.remove(at + 1), found.intervals.remove(at + 1));
        found.sizes[at] = found.sizes[at].zip(size).map(|(one, other)| one + other);
        found.intervals[at] =
            found.intervals[at].zip(interval).map(|(one, other)| [one[0] + other[0], one[1] + other[1]]);
        found.notes.push(format!("{:.0} % of a single entry's packets are slow, too: no level", slower_alone * 100.0));
    }
}

/// Returns the levels that the passes together show, and the number of passes used. Normally the fastest packet of
/// each entry counts, because chance delays differ between passes. If packets move entries between levels, the
/// fastest packet would hide slow entries: only the last pass counts then.
fn agreed(looks: &[Vec<Option<f64>>], taken: usize, is_full: bool) -> Result<(MeasuredLevels, usize), ProfilerError> {
    let sizes = looks.iter().map(|look| infer(look, taken, is_full)).collect::<Result<Vec<MeasuredLevels>, _>>()?;
    let slow = SlowEntryCounts::of(looks, |look, delay| sizes[look].level(delay) > 0);
    let confirmed = sizes.windows(2).all(|pair| pair[0].counted == pair[1].counted);
    let counted = if slow.are_moved() { &looks[looks.len() - 1..] } else { looks };
    Ok((MeasuredLevels { confirmed, ..infer(&fastest(counted), taken, is_full)? }, counted.len()))
}

/// Counts of entries with slow packets in several passes over the same entries.
pub(crate) struct SlowEntryCounts {
    entries: usize,
    /// Number of slow entries in the pass with the fewest, and in the pass with the most.
    least: usize,
    most: usize,
    /// Number of entries slow in every pass.
    always: usize,
}

impl SlowEntryCounts {
    /// Counts slow entries in passes; `is_slow` decides by pass and delay.
    pub(crate) fn of(looks: &[Vec<Option<f64>>], is_slow: impl Fn(usize, f64) -> bool) -> SlowEntryCounts {
        let slow = |look: usize, at: usize| looks[look][at].is_some_and(|delay| is_slow(look, delay));
        let entries = looks.first().map_or(0, Vec::len);
        let of_look = |look: usize| (0..entries).filter(|at| slow(look, *at)).count();
        let counts = || (0..looks.len()).map(of_look);
        let always = (0..entries).filter(|at| (0..looks.len()).all(|look| slow(look, *at))).count();
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        SlowEntryCounts { entries, least, most, always }
    }

    /// Returns true if packets move entries: each pass has about as many slow entries, but mostly others. Late
    /// packets also change between passes, but are few.
    pub(crate) fn are_moved(&self) -> bool {
        let are_others = (self.always as f64) < SAME_LEAST * self.least as f64;
        let are_many = self.least as f64 > LATE_MOST * self.entries as f64;
        are_others && are_many && (self.most - self.least) as f64 <= ALIKE * self.entries as f64
    }
}

/// Returns the shortest delay of each entry over all passes.
pub(crate) fn fastest(looks: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
    let entries = looks.first().map_or(0, Vec::len);
    (0..entries).map(|at| looks.iter().filter_map(|look| look[at]).reduce(f64::min)).collect()
}

/// Sends each entry one packet, in random order. Returns delays in seconds, in the order of the entries.
pub(crate) fn once(
    bench: &mut TestBench<'_>,
    rules: &[TestFlowEntry],
    spacing: Duration,
) -> Result<Vec<Option<f64>>, ProfilerError> {
    let mut order: Vec<usize> = (0..rules.len()).collect();
    bench.random.shuffle(&mut order);
    let planned: Vec<PlannedProbe> =
        order.iter().map(|at| PlannedProbe { rule: rules[*at], bytes: SHORTEST, gap: spacing }).collect();
    let delays = bench.one_by_one(&planned)?;
    let mut found = vec![None; rules.len()];
    order.into_iter().zip(delays).for_each(|(at, delay)| found[at] = delay);
    Ok(found)
}

/// Derives levels from the delays of one packet for each entry.
fn infer(delays: &[Option<f64>], taken: usize, is_full: bool) -> Result<MeasuredLevels, ProfilerError> {
    let known: Vec<f64> = delays.iter().flatten().copied().filter(|delay| *delay > 0.0).collect();
    let lost = taken - known.len();
    if lost as f64 > LOST_MOST * taken as f64 || known.is_empty() {
        let found = format!("{lost} of {taken} entries whose packets do not come out");
        return Err(ProfilerError::wrong("the switch's entries", found, "all of them to forward; is a port down?"));
    }
    let groups = LatencyClusters::find(&known, LEVELS_MAX)?;
    let doubtful = TableSize::infer(&known)?.map_or(0, |size| size.interval.1 - size.entries);
    let mut merged = merge(&groups, known.len());
    // A fastest level that is empty at the lower end of its size's interval is only a packet or two that were fast by
    // chance.
    while merged.len() > 1 && merged[0].0 as u64 <= doubtful {
        let fastest = merged.remove(0);
        merged[0] = together(fastest, merged[0]);
    }
    let mut sizes: Vec<Option<u64>> = merged.iter().map(|(size, _)| Some(*size as u64)).collect();
    let mut notes = Vec::new();
    if lost > 0 {
        notes.push(format!("{lost} of {taken} entries' packets were lost; sizes are uncertain by as many"));
    }
    let interval =
        |size: &Option<u64>| size.map(|size| [size.saturating_sub(doubtful) as f64, (size + doubtful) as f64]);
    let mut intervals: Vec<Option<[f64; 2]>> = sizes.iter().map(interval).collect();
    if let (Some(size), Some(interval)) = (sizes.last_mut(), intervals.last_mut()) {
        if is_full {
            // The last level holds all remaining entries, whatever the delays say.
            *size = Some(taken as u64 - merged[..merged.len() - 1].iter().map(|(size, _)| *size as u64).sum::<u64>());
        } else {
            (*size, *interval) = (None, None);
            notes.push(format!("no end of the tables was found with {taken} entries"));
        }
    }
    let centres: Vec<f64> = merged.iter().map(|(_, centre)| *centre).collect();
    let boundaries_s = centres.windows(2).map(|pair| (pair[0] * pair[1]).sqrt()).collect();
    Ok(MeasuredLevels {
        sizes,
        intervals,
        counted: merged.iter().map(|(size, _)| *size).collect(),
        boundaries_s,
        delays_s: centres,
        missing_s: None,
        entries: taken as u64,
        is_full,
        confirmed: false,
        notes,
    })
}

/// Merges groups of delays that are too close or too small. Returns size and centre of each.
fn merge(groups: &LatencyClusters, all: usize) -> Vec<(usize, f64)> {
    let mut far: Vec<(usize, f64)> = Vec::new();
    for (size, centre) in groups.sizes.iter().copied().zip(groups.centres.iter().copied()) {
        match far.last_mut() {
            Some(last) if centre < last.1 * APART => *last = together(*last, (size, centre)),
            _ => far.push((size, centre)),
        }
    }
    let mut large: Vec<(usize, f64)> = Vec::new();
    for (size, centre) in far {
        match large.last_mut() {
            // Few slow packets do not make a level slower.
            Some(last) if size < LEAST || (size as f64) < SHARE * all as f64 => last.0 += size,
            _ => large.push((size, centre)),
        }
    }
    large
}

/// Merges two groups, each a size and a centre; the new centre is the geometric mean over all packets of both.
fn together(one: (usize, f64), other: (usize, f64)) -> (usize, f64) {
    let size = one.0 + other.0;
    let logarithms = one.1.ln() * one.0 as f64 + other.1.ln() * other.0 as f64;
    (size, (logarithms / size as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_delay_are_no_levels() {
        let delays: Vec<Option<f64>> = (0..300)
            .map(|at| {
                Some(if at < 100 {
                    4e-6
                } else if at < 200 {
                    5e-6
                } else {
                    60e-6
                })
            })
            .collect();
        let sizes = infer(&delays, 300, true).unwrap();
        assert_eq!(sizes.sizes, [Some(200), Some(100)]);
        assert_eq!((sizes.level(5e-6), sizes.level(50e-6)), (0, 1));
        assert_eq!(infer(&delays, 300, false).unwrap().sizes, [Some(200), None]);
    }

    #[test]
    fn a_few_packets_of_a_level_that_are_a_little_faster_are_its_own() {
        let delay = |at: usize| match at {
            0..63 => 5.991e-6 + 1e-9 * (at % 2) as f64,
            63..70 => 22.945e-6,
            _ => 22.946e-6,
        };
        let sizes = infer(&(0..700).map(|at| Some(delay(at))).collect::<Vec<_>>(), 700, true).unwrap();
        assert_eq!(sizes.sizes, [Some(63), Some(637)]);
    }

    #[test]
    fn single_packets_that_are_fast_are_no_level() {
        let sizes = |fast: usize| {
            let delay = |at: usize| if at < fast { 1e-5 } else { 4e-5 + 1e-8 * (at % 7) as f64 };
            infer(&(0..300).map(|at| Some(delay(at))).collect::<Vec<_>>(), 300, true).unwrap().sizes
        };
        assert_eq!([sizes(1), sizes(3)], [vec![Some(300)], vec![Some(300)]], "0 entries are in the interval, too");
        assert_eq!(sizes(10), [Some(10), Some(290)]);
    }

    #[test]
    fn single_packets_that_are_late_are_no_level() {
        let look = |late: &dyn Fn(usize) -> bool| -> Vec<Option<f64>> {
            (0..300).map(|at| Some(if late(at) { 3e-3 } else { 4e-5 + 1e-8 * (at % 7) as f64 })).collect()
        };
        let (few, many, none) = (look(&|at| at % 75 == 0), look(&|at| at % 10 == 0), look(&|_| false));
        assert_eq!(agreed(&[few.clone(), none.clone()], 300, false).unwrap().0.sizes, [None], "one in seventy-five");
        let (sizes, _) = agreed(&[many.clone(), none.clone(), many], 300, false).unwrap();
        assert_eq!((sizes.sizes, sizes.confirmed), (vec![None], false), "not every time");
        let slow = look(&|at| at >= 270);
        let (sizes, _) = agreed(&[slow.clone(), slow.clone()], 300, false).unwrap();
        assert_eq!((sizes.sizes, sizes.confirmed), (vec![Some(270), None], true), "the same both times");
        let late = look(&|at| at >= 270 || at % 20 == 0);
        let (sizes, _) = agreed(&[late, slow], 300, false).unwrap();
        assert_eq!((sizes.sizes, sizes.confirmed), (vec![Some(270), None], false), "and some late ones");
    }

    #[test]
    fn entries_that_packets_move_are_as_many_in_every_look() {
        let look = |from: usize| -> Vec<Option<f64>> {
            (0..300).map(|at| Some(if (from..from + 120).contains(&at) { 4e-5 } else { 3e-3 })).collect()
        };
        let (sizes, counted) = agreed(&[look(0), look(150)], 300, false).unwrap();
        assert_eq!((sizes.sizes, sizes.confirmed, counted), (vec![Some(120), None], true, 1));
    }

    #[test]
    fn few_slow_entries_that_are_others_each_time_were_late() {
        let look = |slow: std::ops::Range<usize>| -> Vec<Option<f64>> {
            (0..300).map(|at| Some(if slow.contains(&at) { 3e-3 } else { 4e-5 })).collect()
        };
        let of = |looks: &[Vec<Option<f64>>]| agreed(looks, 300, false).unwrap().0.sizes;
        assert_eq!(of(&[look(0..30), look(100..130)]), [None]);
        assert_eq!(of(&[look(0..30), look(100..130), look(50..80)]), [None], "as many by chance");
        assert_eq!(of(&[look(0..60), look(100..160)]), [Some(240), None], "too many for that");
    }

    #[test]
    fn what_is_slow_with_a_single_entry_is_no_level() {
        let delays: Vec<Option<f64>> = (0..300).map(|at| Some([20e-6, 90e-6, 900e-6][at % 3])).collect();
        let of = |shares: [usize; 3]| -> Vec<f64> {
            let times = [20e-6, 90e-6, 900e-6].into_iter().zip(shares);
            times.flat_map(|(time, count)| std::iter::repeat_n(time, count)).collect()
        };
        let levels = |shares, is_full| {
            let mut found = infer(&delays, 300, is_full).unwrap();
            without_noise(&mut found, &of(shares));
            assert_eq!(found.boundaries_s.len() + 1, found.sizes.len());
            assert_eq!((found.delays_s.len(), found.intervals.len()), (found.sizes.len(), found.sizes.len()));
            found.sizes
        };
        assert_eq!(levels([100, 0, 0], true), [Some(100), Some(100), Some(100)]);
        assert_eq!(levels([97, 3, 0], true), [Some(100), Some(100), Some(100)]);
        assert_eq!(levels([60, 40, 0], true), [Some(200), Some(100)]);
        assert_eq!(levels([80, 0, 20], false), [Some(100), None]);
        assert_eq!(levels([30, 30, 40], true), [Some(300)]);
    }

    #[test]
    fn entries_that_do_not_forward_are_told() {
        let error = infer(&[Some(1e-6), None, None], 3, false).unwrap_err().to_string();
        assert!(error.contains("2 of 3 entries"), "{error}");
    }
}
