//! Random early detection in bytes (S. Floyd and V. Jacobson, "Random Early Detection Gateways for Congestion
//! Avoidance", 1993).
use crate::{FabricDropReason, RedConfig};
use weir_units::{Bps, Instant};

/// Length in bytes of the packets that an idle queue is assumed to have sent: that of the paper.
const TYPICAL_BYTES: u64 = 1000;

/// Parameters shared by all queues to one output.
#[derive(Clone, Copy)]
pub(crate) struct RedParams {
    probability: f64,
    weight: f64,
    gentle: bool,
    max_packet: f64,
    /// Transmission time of a typical packet in ns.
    typical_ns: f64,
    config: RedConfig,
}

impl RedParams {
    pub(crate) fn new(config: RedConfig, rate: Bps, max_packet: u32) -> RedParams {
        RedParams {
            probability: config.probability,
            weight: config.weight,
            gentle: config.gentle,
            max_packet: max_packet.into(),
            typical_ns: rate.time_of(TYPICAL_BYTES).as_nanos() as f64,
            config,
        }
    }
}

/// RED state of one queue.
pub(crate) struct RedState {
    min: f64,
    max: f64,
    average: f64,
    /// Packets since the last drop while the average was between the thresholds; `None` before the first such packet.
    since_drop: Option<u32>,
    /// Time since which the queue is empty; `None` while it holds packets.
    empty_since: Option<Instant>,
}

impl RedState {
    pub(crate) fn new(law: &RedParams, capacity: u32) -> RedState {
        let (min, max) = law.config.thresholds(capacity.into());
        RedState { min: min as f64, max: max as f64, average: 0.0, since_drop: None, empty_since: Some(Instant::ZERO) }
    }

    /// Takes over the average and the drops of the queue that this one replaces; the thresholds are this one's own.
    pub(crate) fn resume(&mut self, before: RedState) {
        *self = RedState { min: self.min, max: self.max, ..before };
    }

    /// Returns the reason to drop a packet that arrives at a queue with `queued` bytes; `None` to accept it. `random`
    /// returns a uniform number in [0, 1).
    pub(crate) fn decide_drop(
        &mut self,
        law: &RedParams,
        now: Instant,
        bytes: u32,
        queued: u32,
        random: impl FnOnce() -> f64,
    ) -> Option<FabricDropReason> {
        self.update(law, now, queued);
        let Some(chance) = self.chance(law) else {
            self.since_drop = Some(0);
            return Some(FabricDropReason::RedForced);
        };
        if chance <= 0.0 {
            self.since_drop = None;
            return None;
        }
        let since = self.since_drop.map_or(0, |since| since.saturating_add(1));
        self.since_drop = Some(since);
        // Long packets are more likely to be dropped than short ones, and drops are spread evenly over time (section
        // 4 of the paper).
        let chance = chance * f64::from(bytes) / law.max_packet;
        let spread = 1.0 - f64::from(since) * chance;
        let drop = spread <= 0.0 || random() < chance / spread;
        if drop {
            self.since_drop = Some(0);
        }
        drop.then_some(FabricDropReason::RedEarly)
    }

    /// Updates the average with the current length. An idle queue counts as having sent typical packets.
    fn update(&mut self, law: &RedParams, now: Instant, queued: u32) {
        match self.empty_since.filter(|_| queued == 0) {
            Some(since) => {
                let sent = now.since(since).as_nanos() as f64 / law.typical_ns.max(1.0);
                self.average *= (1.0 - law.weight).powf(sent);
                self.empty_since = Some(now);
            }
            None => self.average += law.weight * (f64::from(queued) - self.average),
        }
    }

    /// Returns the probability of a drop for the current average; `None`: the drop is certain.
    fn chance(&self, law: &RedParams) -> Option<f64> {
        let over = (self.average - self.min) / (self.max - self.min).max(1.0);
        match self.average {
            average if average < self.min => Some(0.0),
            average if average < self.max => Some(law.probability * over),
            average if law.gentle && average < 2.0 * self.max => {
                Some(law.probability + (1.0 - law.probability) * (average - self.max) / self.max)
            }
            _ => None,
        }
    }

    /// Marks the queue as holding packets.
    pub(crate) fn mark_filled(&mut self) {
        self.empty_since = None;
    }

    /// Marks the queue as empty.
    pub(crate) fn mark_empty(&mut self, now: Instant) {
        self.empty_since = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Returns thresholds of 5000 and 15000 bytes, for packets of at most 1000 bytes.
    fn config() -> RedConfig {
        RedConfig { min: Some(5000), max: Some(15_000), ..RedConfig::default() }
    }

    /// Returns parameters with 8 us per typical packet.
    fn law(config: RedConfig) -> RedParams {
        RedParams::new(config, Bps(1_000_000_000), 1000)
    }

    /// Returns the state of a queue that is not empty.
    fn red(law: &RedParams) -> RedState {
        let mut red = RedState::new(law, 100_000);
        red.mark_filled();
        red
    }

    fn follows(config: RedConfig) -> RedParams {
        law(RedConfig { weight: 1.0, ..config })
    }

    fn chance_at(law: &RedParams, average: u32) -> Option<f64> {
        let mut red = red(law);
        red.update(law, Instant::ZERO, average);
        red.chance(law)
    }

    fn close(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-12)
    }

    #[test]
    fn probability_rises_between_the_thresholds_and_is_certain_beyond() {
        let law = follows(config());
        for (average, expected) in
            [(0, 0.0), (4999, 0.0), (5000, 0.0), (7500, 0.005), (10_000, 0.01), (14_999, 0.019998)]
        {
            assert!(close(chance_at(&law, average), expected), "{average}: {:?}", chance_at(&law, average));
        }
        assert_eq!([15_000, 20_000, 90_000].map(|average| chance_at(&law, average)), [None; 3]);
    }

    #[test]
    fn gentle_goes_on_to_twice_the_upper_threshold() {
        let law = follows(RedConfig { gentle: true, ..config() });
        for (average, expected) in [(10_000, 0.01), (15_000, 0.02), (22_500, 0.51), (29_970, 0.99804)] {
            assert!(close(chance_at(&law, average), expected), "{average}: {:?}", chance_at(&law, average));
        }
        assert_eq!(chance_at(&law, 30_000), None);
    }

    #[test]
    fn the_average_follows_by_its_weight() {
        let law = law(config());
        let mut red = red(&law);
        for _ in 0..500 {
            red.update(&law, Instant::ZERO, 20_000);
        }
        let expected = 20_000.0 * (1.0 - 0.998_f64.powi(500));
        assert!((red.average - expected).abs() < 1e-6, "{} for {expected}", red.average);
    }

    #[test]
    fn an_idle_queue_counts_as_having_sent_typical_packets() {
        let law = law(config());
        let mut red = red(&law);
        red.average = 10_000.0;
        red.mark_empty(Instant::from_nanos(1000));
        let later = Instant::from_nanos(1000) + Duration::from_micros(800);
        red.update(&law, later, 0);
        assert!((red.average - 10_000.0 * 0.998_f64.powi(100)).abs() < 1e-6, "{}", red.average);
        // Idle time counts only once.
        let before = red.average;
        red.update(&law, later, 0);
        assert!((red.average - before).abs() < 1e-9);
    }

    /// Returns the distances between drops with the average at 10,000 bytes, which is a probability of 0.01 for the
    /// longest packets.
    fn gaps(bytes: u32, drops: usize) -> Vec<usize> {
        let law = follows(config());
        let (mut red, mut random) = (red(&law), fastrand::Rng::with_seed(7));
        let (mut gaps, mut gap) = (Vec::new(), 0);
        while gaps.len() < drops {
            gap += 1;
            if let Some(reason) = red.decide_drop(&law, Instant::ZERO, bytes, 10_000, || random.f64()) {
                assert_eq!(reason, FabricDropReason::RedEarly);
                gaps.push(std::mem::take(&mut gap));
            }
        }
        gaps
    }

    /// Section 7 of the paper: with the count of packets since the last drop, distances are uniform, not geometric.
    #[test]
    fn drops_are_evenly_spread() {
        const DROPS: usize = 99_000;
        // The first packet after a drop already counts: distances of 1 to 99.
        let gaps = gaps(1000, DROPS);
        assert!(gaps.iter().all(|gap| (1..=100).contains(gap)), "{:?}", gaps.iter().max());
        let mut seen = [0_u32; 101];
        gaps.iter().for_each(|gap| seen[*gap] += 1);
        // Each distance occurs 1000 times on average, with a standard deviation of 31.5.
        assert!(seen[1..=98].iter().all(|count| (840..1160).contains(count)), "{seen:?}");
        let mean = gaps.iter().sum::<usize>() as f64 / DROPS as f64;
        assert!((mean - 50.0).abs() < 0.5, "{mean}");
    }

    #[test]
    fn short_packets_are_dropped_seldom() {
        // A tenth of the length has a tenth of the probability: distances of 1 to 999.
        let gaps = gaps(100, 10_000);
        let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
        assert!((mean - 500.0).abs() < 15.0, "{mean}");
        assert!(*gaps.iter().max().unwrap() <= 1000);
    }

    /// Returns the reason to drop an arriving packet if the random number is `drawn`.
    fn drops(red: &mut RedState, law: &RedParams, queued: u32, drawn: f64) -> Option<FabricDropReason> {
        red.decide_drop(law, Instant::ZERO, 1000, queued, || drawn)
    }

    #[test]
    fn the_count_begins_anew_with_every_drop_and_below_the_threshold() {
        let law = follows(config());
        let mut red = red(&law);
        // Packet n after the first has a chance of 0.01 / (1 - 0.01 n); the draws are first just above it and then
        // just below it.
        for since in 0..50 {
            let chance = 0.01 / (1.0 - 0.01 * f64::from(since));
            assert_eq!(drops(&mut red, &law, 10_000, chance * 1.000_001), None, "after {since}");
        }
        assert_eq!(drops(&mut red, &law, 10_000, 0.01 / 0.5 * 0.999_999), Some(FabricDropReason::RedEarly));
        assert_eq!(drops(&mut red, &law, 10_000, 0.01 / 0.99 * 1.000_001), None, "the first after a drop");
        assert_eq!(drops(&mut red, &law, 15_000, 0.999), Some(FabricDropReason::RedForced));
        assert_eq!(
            drops(&mut red, &law, 10_000, 0.01 / 0.99 * 0.999_999),
            Some(FabricDropReason::RedEarly),
            "counted anew"
        );
        assert_eq!(drops(&mut red, &law, 4000, 0.0), None, "below the lower threshold nothing is drawn");
        assert_eq!(drops(&mut red, &law, 10_000, 0.01 * 1.000_001), None, "as at the beginning");
    }
}
