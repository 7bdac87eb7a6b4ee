//! Random early detection (S. Floyd and V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993), in bytes.
use crate::{DropReason, RedConfig};
use weir_units::{Bps, Instant};

/// Length of the packets that an idle queue is taken to have sent, the authors' packets.
const TYPICAL_BYTES: u64 = 1000;

/// What is the same for all queues to one output.
#[derive(Clone, Copy)]
pub(crate) struct RedLaw {
    probability: f64,
    weight: f64,
    gentle: bool,
    max_packet: f64,
    /// Nanoseconds that a typical packet takes.
    typical_ns: f64,
    config: RedConfig,
}

impl RedLaw {
    pub(crate) fn new(config: RedConfig, rate: Bps, max_packet: u32) -> RedLaw {
        RedLaw {
            probability: config.probability,
            weight: config.weight,
            gentle: config.gentle,
            max_packet: max_packet.into(),
            typical_ns: rate.time_of(TYPICAL_BYTES).as_nanos() as f64,
            config,
        }
    }
}

/// A queue's average and what goes with it.
pub(crate) struct Red {
    min: f64,
    max: f64,
    average: f64,
    /// Packets since the last drop while the average was between the thresholds; none before the first of them.
    since: Option<u32>,
    /// When it ran empty, while it is.
    empty_since: Option<Instant>,
}

impl Red {
    pub(crate) fn new(law: &RedLaw, capacity: u32) -> Red {
        let (min, max) = law.config.thresholds(capacity.into());
        Red { min: min as f64, max: max as f64, average: 0.0, since: None, empty_since: Some(Instant::ZERO) }
    }

    /// Whether a packet that arrives at a queue with `queued` bytes is dropped, and why; `random` is uniform in [0, 1).
    pub(crate) fn arrives(
        &mut self,
        law: &RedLaw,
        now: Instant,
        bytes: u32,
        queued: u32,
        random: impl FnOnce() -> f64,
    ) -> Option<DropReason> {
        self.update(law, now, queued);
        let Some(chance) = self.chance(law) else {
            self.since = Some(0);
            return Some(DropReason::RedForced);
        };
        if chance <= 0.0 {
            self.since = None;
            return None;
        }
        let since = self.since.map_or(0, |since| since.saturating_add(1));
        self.since = Some(since);
        // Long packets are dropped rather than short ones, and drops are spread evenly over time (section 4 of the paper).
        let chance = chance * f64::from(bytes) / law.max_packet;
        let spread = 1.0 - f64::from(since) * chance;
        let drop = spread <= 0.0 || random() < chance / spread;
        if drop {
            self.since = Some(0);
        }
        drop.then_some(DropReason::RedEarly)
    }

    /// The average with the present length; an idle queue counts as having sent typical packets.
    fn update(&mut self, law: &RedLaw, now: Instant, queued: u32) {
        match self.empty_since.filter(|_| queued == 0) {
            Some(since) => {
                let sent = now.since(since).as_nanos() as f64 / law.typical_ns.max(1.0);
                self.average *= (1.0 - law.weight).powf(sent);
                self.empty_since = Some(now);
            }
            None => self.average += law.weight * (f64::from(queued) - self.average),
        }
    }

    /// The probability of a drop for the average; none: certain.
    fn chance(&self, law: &RedLaw) -> Option<f64> {
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

    /// The queue holds packets.
    pub(crate) fn filled(&mut self) {
        self.empty_since = None;
    }

    /// The queue ran empty.
    pub(crate) fn emptied(&mut self, now: Instant) {
        self.empty_since = Some(now);
    }
}
