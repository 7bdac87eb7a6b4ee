//! Decides about a cache's tiers: whether first packets take longer, when flows are forgotten, and how many there is
//! room for.
use super::probes::{FlowProbe, FlowProber, FlowSource};
use super::{MeasuredFlowCache, UndecidedTier};
use crate::ProfilerError;
use crate::bench::TestBench;
use crate::rules::TestFlowEntry;
use std::time::Duration;
use weir_model::fit::change::{KindChange, TwoKinds};
use weir_model::fit::quantiles::{MedianAndSpread, median_interval};
use weir_units::Instant;

/// Flows whose first packets are measured at once, and how often at most until it is sure whether they take longer.
const FLOWS: usize = 200;
const FIRST_PASSES: usize = 4;
/// Quantile of the normal distribution for that decision: sure to 99 %.
const SURE: f64 = 2.576;
/// Quantile for intervals of 95 %.
const USUAL: f64 = 1.96;
/// Least additional time of first packets, as a share of the time of others.
const LEAST: f64 = 0.03;
/// Fewest flows with which anything is decided.
const FLOWS_LEAST: usize = 10;
/// Idle times that are tried: the shortest in seconds, the factor between two, and the flows of each.
const IDLE_LEAST_S: f64 = 0.25;
const IDLE_FACTOR: f64 = 1.26;
const IDLE_FLOWS: usize = 6;
/// Longest idle time tried when the limit is nearly known, as a multiple of the shortest that is surely too long, and
/// how far below the longest that is surely known it begins.
const IDLE_BEYOND: f64 = 1.06;
const IDLE_BEFORE: f64 = 0.96;
/// Precision to which the idle time is searched, as a share, and how often flows are left idle at most.
const IDLE_NEAR: f64 = 0.05;
const IDLE_PASSES: usize = 5;
/// Probability below which a limit is taken for found, and above which for none.
const SURELY_SOME: f64 = 0.01;
const SURELY_NONE: f64 = 0.95;
/// Flows that are looked for in the cache at once, and how often at most until its room is known.
const ROOM_FLOWS: usize = 240;
const ROOM_PASSES: usize = 6;
/// Flows beside the range in which the limit lies that are looked for, too.
const ROOM_BESIDE: usize = 8;
/// Precision to which the number of flows is searched: as a share, and as a number.
const ROOM_NEAR: f64 = 0.05;
const ROOM_NEAR_FLOWS: f64 = 4.0;
/// Share of the idle time within which packets of all flows are sent while their number is searched.
const IN_TIME: f64 = 0.25;
/// Share of the cache that the flows of the search for the idle time take, so that none has to leave for others.
const IDLE_ROOM: f64 = 0.5;

/// Observations of packets, each at a place on an axis: an idle time, or a number of flows.
#[derive(Debug, Default)]
struct PlacedProbes(Vec<(f64, f64)>);

/// Knowledge about a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
enum LimitKnowledge {
    /// A limit was found: the largest place before it and the smallest behind it that are possible, and those for the
    /// most likely limit.
    Between {
        surely: [f64; 2],
        likely: [f64; 2],
    },
    /// No limit exists in what was tried.
    Beyond,
    Unknown,
}

impl PlacedProbes {
    fn add(&mut self, place: f64, probe: &FlowProbe) {
        self.0.extend(probe.first_s.map(|more_s| (place, more_s)));
    }

    /// Searches the place from which on packets are first packets.
    fn limit(&mut self, kinds: Option<TwoKinds>) -> Result<LimitKnowledge, ProfilerError> {
        let Some(kinds) = kinds else { return Ok(LimitKnowledge::Unknown) };
        self.0.sort_by(|left, right| left.0.total_cmp(&right.0));
        let values: Vec<f64> = self.0.iter().map(|one| one.1).collect();
        let found = KindChange::find(&values, &kinds)?;
        if found.none >= SURELY_NONE {
            return Ok(LimitKnowledge::Beyond);
        }
        if found.none >= SURELY_SOME {
            return Ok(LimitKnowledge::Unknown);
        }
        let at = |at: usize| self.0.get(at).map_or(0.0, |one| one.0);
        let before = |place: usize| place.checked_sub(1).map_or(0.0, at);
        let [low, high] = found.range;
        let (surely, likely) = ([before(low), at(high)], [before(found.place), at(found.place)]);
        Ok(LimitKnowledge::Between { surely, likely })
    }
}

/// Search for the tiers of a cache.
pub(super) struct FlowCacheSearch<'e, 'a> {
    prober: FlowProber<'e, 'a>,
    source: FlowSource,
    /// By how much longer first packets took than the next ones of their flow, and the same for packets that surely
    /// were no first ones, in seconds.
    first_s: Vec<f64>,
    known_s: Vec<f64>,
    /// Longest time for which flows are left without packets.
    longest_idle: Duration,
}

impl<'e, 'a> FlowCacheSearch<'e, 'a> {
    pub(super) fn new(
        bench: &'e mut TestBench<'a>,
        source: FlowSource,
        longest_idle: Duration,
    ) -> FlowCacheSearch<'e, 'a> {
        let prober = FlowProber::new(bench);
        FlowCacheSearch { prober, source, first_s: Vec::new(), known_s: Vec::new(), longest_idle }
    }

    /// Decides about all tiers.
    pub(super) fn all(mut self) -> Result<MeasuredFlowCache, ProfilerError> {
        let mut found = MeasuredFlowCache::default();
        if self.source.most() < FLOWS_LEAST {
            return Ok(found);
        }
        match self.has_first()? {
            Some(true) => {}
            Some(false) => return Ok(found),
            None => {
                found.unknown.push(UndecidedTier::First);
                return Ok(found);
            }
        }
        // The flows of the search for the idle time must not have to leave for others.
        let mut room = self.room(usize::MAX)?;
        let idle = self.idle(room)?;
        match idle {
            LimitKnowledge::Between { surely, .. } => found.idle_s = Some(surely),
            LimitKnowledge::Beyond => {}
            LimitKnowledge::Unknown => found.unknown.push(UndecidedTier::Idle),
        }
        if let (Some([idle_s, _]), LimitKnowledge::Between { likely: [_, flows], .. }) = (found.idle_s, room) {
            let in_time = IN_TIME * idle_s / self.prober.gap.as_secs_f64();
            // Otherwise flows may have been forgotten while packets of others were sent.
            if flows > in_time {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "saturates; never negative"
                )]
                let in_time = in_time as usize;
                room = self.room(in_time)?;
            }
        }
        match room {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of flows")]
            LimitKnowledge::Between { likely: [flows, _], .. } => found.flows = Some(flows as u64 + 1),
            LimitKnowledge::Beyond => {}
            LimitKnowledge::Unknown => found.unknown.push(UndecidedTier::Flows),
        }
        let middle = MedianAndSpread::of(&self.first_s)?.median;
        found.first_s = Some((middle, median_interval(&self.first_s, USUAL)?, self.first_s.len()));
        Ok(found)
    }

    /// Keeps what packets of unused flows show.
    fn learn_first(&mut self, probes: &[FlowProbe]) {
        self.first_s.extend(probes.iter().filter_map(|probe| probe.first_s));
        self.learn_known(probes);
    }

    fn learn_known(&mut self, probes: &[FlowProbe]) {
        self.known_s.extend(probes.iter().filter_map(|probe| probe.known_s));
    }

    fn kinds(&self) -> Result<Option<TwoKinds>, ProfilerError> {
        if self.known_s.is_empty() || self.first_s.is_empty() {
            return Ok(None);
        }
        Ok(TwoKinds::of(&self.known_s, &self.first_s)?)
    }

    /// Decides whether first packets take longer; `None` if chance does not let it.
    fn has_first(&mut self) -> Result<Option<bool>, ProfilerError> {
        for _ in 0..FIRST_PASSES {
            let unused = self.source.take(self.prober.bench, FLOWS)?;
            let probes = self.prober.probe(unused.warm, &unused.flows)?;
            self.learn_first(&probes);
            if self.first_s.len() < FLOWS_LEAST {
                continue;
            }
            let least_s = LEAST * self.prober.bench.forwarding().as_secs_f64();
            let [low, high] = median_interval(&self.first_s, SURE)?;
            if low > least_s {
                return Ok(Some(true));
            }
            if high <= least_s {
                return Ok(Some(false));
            }
        }
        Ok(None)
    }

    /// Searches the idle time after which flows are forgotten.
    fn idle(&mut self, room: LimitKnowledge) -> Result<LimitKnowledge, ProfilerError> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of flows")]
        let flows = match room {
            LimitKnowledge::Between { surely: [least, _], .. } => (least * IDLE_ROOM) as usize,
            LimitKnowledge::Beyond => usize::MAX,
            LimitKnowledge::Unknown => 0,
        };
        if flows < FLOWS_LEAST {
            return Ok(LimitKnowledge::Unknown);
        }
        let longest_s = self.longest_idle.as_secs_f64();
        let rising = std::iter::successors(Some(IDLE_LEAST_S), |before| Some(before * IDLE_FACTOR));
        let coarse: Vec<f64> = rising.take_while(|s| *s <= longest_s).collect();
        let flows = flows.min(2 * IDLE_FLOWS * coarse.len());
        let (mut seen, mut times_s) = (PlacedProbes::default(), coarse.clone());
        let mut found = LimitKnowledge::Unknown;
        for _ in 0..IDLE_PASSES {
            self.leave_idle(flows, &times_s, &mut seen)?;
            found = seen.limit(self.kinds()?)?;
            match found {
                LimitKnowledge::Between { surely: [low, high], .. } if high - low > IDLE_NEAR * high => {
                    let (from, to) = (low * IDLE_BEFORE, high * IDLE_BEYOND);
                    let step = (to - from) / (coarse.len() - 1).max(1) as f64;
                    times_s = (0..coarse.len()).map(|at| from + step * at as f64).collect();
                }
                LimitKnowledge::Between { .. } | LimitKnowledge::Beyond => return Ok(found),
                LimitKnowledge::Unknown => times_s.clone_from(&coarse),
            }
        }
        Ok(found)
    }

    /// Leaves flows idle for these times, which rise, and adds what their next packets show. At most `most` flows are
    /// used.
    fn leave_idle(&mut self, most: usize, times_s: &[f64], seen: &mut PlacedProbes) -> Result<(), ProfilerError> {
        // For each flow that was idle there is one that had no packet yet.
        let unused = self.source.take(self.prober.bench, most)?;
        let (idle, fresh) = unused.flows.split_at(unused.flows.len() / 2);
        let longest_s = times_s.last().copied().unwrap_or(0.0);
        let started = self.prober.bench.device.now();
        let mut left: Vec<(TestFlowEntry, Instant)> = Vec::new();
        // With fewer flows than times, each flow has the time of several.
        let of_flow = |at: usize| times_s[at * times_s.len() / idle.len()];
        let flows: Vec<(f64, TestFlowEntry)> = idle.iter().enumerate().map(|(at, flow)| (of_flow(at), *flow)).collect();
        for set in flows.chunk_by(|one, other| one.0.to_bits() == other.0.to_bits()).rev() {
            self.rest_until(started + Duration::from_secs_f64(longest_s - set[0].0))?;
            let rules: Vec<TestFlowEntry> = set.iter().map(|one| one.1).collect();
            left.extend(rules.iter().copied().zip(self.prober.once(unused.warm, &rules)?));
        }
        self.rest_until(started + Duration::from_secs_f64(longest_s))?;
        // In random order, so that a disturbance does not affect the flows of one time.
        self.prober.bench.random.shuffle(&mut left);
        let order: Vec<TestFlowEntry> = left.iter().zip(fresh).flat_map(|((idle, _), fresh)| [*idle, *fresh]).collect();
        let probes = self.prober.probe(unused.warm, &order)?;
        for (pair, (_, left)) in probes.chunks(2).zip(&left) {
            let [idle, fresh] = pair else { continue };
            seen.add(idle.at.since(*left).as_secs_f64(), idle);
            self.learn_known(pair);
            self.first_s.extend(fresh.first_s);
        }
        Ok(())
    }

    fn rest_until(&mut self, due: Instant) -> Result<(), ProfilerError> {
        let now = self.prober.bench.device.now();
        self.prober.bench.rest(due.since(now))
    }

    /// Searches the number of flows that the cache has room for, of at most `most`: sends packets of all flows, then
    /// again from the latest to the earliest. A flow that had to leave takes the place of one that is looked for later,
    /// and had to leave, too.
    fn room(&mut self, most: usize) -> Result<LimitKnowledge, ProfilerError> {
        let all = self.source.most().min(most);
        if all < FLOWS_LEAST {
            return Ok(LimitKnowledge::Beyond);
        }
        let (mut seen, mut from, mut to) = (PlacedProbes::default(), 1, all);
        let mut found = LimitKnowledge::Unknown;
        for _ in 0..ROOM_PASSES {
            let step = (to - from + 1).div_ceil(ROOM_FLOWS);
            let unused = self.source.take(self.prober.bench, all)?;
            self.prober.once(unused.warm, &unused.flows)?;
            // The latest flow is the first.
            let places: Vec<usize> = (from..=to.min(unused.flows.len())).step_by(step).collect();
            let flows: Vec<TestFlowEntry> = places.iter().map(|at| unused.flows[unused.flows.len() - at]).collect();
            let probes = self.prober.probe(unused.warm, &flows)?;
            places.iter().zip(&probes).for_each(|(at, probe)| seen.add(*at as f64, probe));
            self.learn_known(&probes);
            found = seen.limit(self.kinds()?)?;
            match found {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of flows")]
                LimitKnowledge::Between { surely: [low, high], .. }
                    if step > 1 || high - low > ROOM_NEAR_FLOWS.max(ROOM_NEAR * high) =>
                {
                    from = (low as usize).saturating_sub(ROOM_BESIDE).max(1);
                    to = (high as usize + ROOM_BESIDE).min(all);
                }
                LimitKnowledge::Between { .. } | LimitKnowledge::Beyond => return Ok(found),
                LimitKnowledge::Unknown => (from, to) = (1, all),
            }
        }
        Ok(found)
    }
}
