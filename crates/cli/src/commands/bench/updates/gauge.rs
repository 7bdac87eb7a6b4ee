//! What a port sees of the engine: how long it is between two times that it is asked for frames. A frame that comes right after the
//! first waits that long.
//!
//! Whether a long gap is the engine's own or the machine's (interrupts, other programs, a hypervisor) no single gap tells. So the engine's
//! thread does something else now and then: for as long as the engine may control it reads the clock and does nothing. How often that takes
//! longer than a gap may, per second of doing it, is what the machine does under the very same load; what gaps exceed it by is the
//! engine's.
use super::faults::Faults;
use crate::commands::bench::datapath::clock::thread_time;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use weir_packet::{Frame, FramePool};
use weir_port::null::NullPort;
use weir_port::{Counters, LinkState, Port, PortError, PortInfo, Ready};
use weir_units::{Clock as _, Instant, SystemClock};

/// What a gap is not to exceed.
pub(super) const PROMISED: Duration = Duration::from_micros(100);
/// Gaps from here on are looked at more closely: whether the thread was on its processor all the time.
const LONG: Duration = Duration::from_micros(50);
/// How long it is spun at once: about as long as the engine controls between two rounds.
const SPIN: Duration = Duration::from_micros(35);
/// What part of the time is spun.
const SPIN_SHARE: u32 = 8;
/// How often it is noted how long the thread has been on its processor, at least.
const PERIOD: Duration = Duration::from_millis(1);
/// Bits of a gap in nanoseconds that are told apart below its highest.
const FINE_BITS: u32 = 5;
const BUCKETS: usize = 64 << FINE_BITS;
/// While this is measured, the port gives no frames.
pub(super) const PAUSED: usize = 0;

/// A port that receives flows without end and measures the gaps; see the module's page.
pub(super) struct Gauge {
    port: NullPort,
    seen: Arc<Seen>,
    /// When frames were last asked for.
    last: Instant,
    /// When it is spun next.
    spin_at: Instant,
    clock: SystemClock,
    checked: Check,
    faults: Faults,
}

/// How long the thread had been on a processor at a time.
#[derive(Clone, Copy)]
struct Check {
    at: Instant,
    on: Duration,
    faults: u64,
}

/// What happened since a check.
#[derive(Clone, Copy, Default)]
struct Meanwhile {
    /// How long the thread was not on a processor.
    away: Duration,
    /// How often memory had to be put to a page first.
    faults: u64,
}

/// What was measured, one set of figures for each number that [`Seen::measure`] was given.
pub(super) struct Seen {
    /// Which set is written to.
    now: AtomicUsize,
    sets: Vec<Gaps>,
}

/// Gaps; one thread writes, another reads when all is over.
pub(super) struct Gaps {
    buckets: Box<[AtomicU64]>,
    packets: AtomicU64,
    longest_ns: AtomicU64,
    over: AtomicU64,
    /// The same without the time that the thread was not on a processor.
    own_longest_ns: AtomicU64,
    own_over: AtomicU64,
    /// Of those, gaps in which memory was put to pages.
    faulty: AtomicU64,
    /// The same of doing nothing.
    spun_ns: AtomicU64,
    spun_over: AtomicU64,
    spun_own_over: AtomicU64,
}

impl Seen {
    /// Room for so many sets beside [`PAUSED`], which is chosen.
    pub(super) fn new(sets: usize) -> Arc<Seen> {
        Arc::new(Seen { now: AtomicUsize::new(PAUSED), sets: (0..=sets).map(|_| Gaps::default()).collect() })
    }

    /// Measures into another set from now on.
    pub(super) fn measure(&self, set: usize) {
        self.now.store(set, Relaxed);
    }

    pub(super) fn gaps(&self, set: usize) -> &Gaps {
        &self.sets[set]
    }
}

impl Default for Gaps {
    fn default() -> Gaps {
        Gaps {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            packets: AtomicU64::new(0),
            longest_ns: AtomicU64::new(0),
            over: AtomicU64::new(0),
            own_longest_ns: AtomicU64::new(0),
            own_over: AtomicU64::new(0),
            faulty: AtomicU64::new(0),
            spun_ns: AtomicU64::new(0),
            spun_over: AtomicU64::new(0),
            spun_own_over: AtomicU64::new(0),
        }
    }
}

fn add(to: &AtomicU64, count: u64) {
    to.store(to.load(Relaxed) + count, Relaxed);
}

fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Gaps {
    fn note(&self, gap: Duration, meanwhile: Meanwhile) {
        let own = gap.saturating_sub(meanwhile.away);
        add(&self.buckets[bucket(nanoseconds(gap))], 1);
        self.longest_ns.store(self.longest_ns.load(Relaxed).max(nanoseconds(gap)), Relaxed);
        self.own_longest_ns.store(self.own_longest_ns.load(Relaxed).max(nanoseconds(own)), Relaxed);
        add(&self.over, u64::from(gap > PROMISED));
        add(&self.own_over, u64::from(own > PROMISED));
        add(&self.faulty, u64::from(own > PROMISED && meanwhile.faults > 0));
    }

    fn note_spun(&self, span: Duration, meanwhile: Meanwhile) {
        add(&self.spun_ns, nanoseconds(span));
        add(&self.spun_over, u64::from(span > PROMISED));
        add(&self.spun_own_over, u64::from(span.saturating_sub(meanwhile.away) > PROMISED));
    }

    /// The gap, in nanoseconds, that a share of all gaps is no longer than.
    pub(super) fn quantile_ns(&self, share: f64) -> u64 {
        let counts: Vec<u64> = self.buckets.iter().map(|count| count.load(Relaxed)).collect();
        let all: u64 = counts.iter().sum();
        let mut below = 0;
        let found = counts.iter().position(|count| {
            below += count;
            below as f64 >= share * all as f64
        });
        found.map_or(0, |bucket| upper_end(bucket).min(self.longest_ns()))
    }

    pub(super) fn packets(&self) -> u64 {
        self.packets.load(Relaxed)
    }

    pub(super) fn longest_ns(&self) -> u64 {
        self.longest_ns.load(Relaxed)
    }

    /// The longest without what other programs took of the processor meanwhile.
    pub(super) fn own_longest_ns(&self) -> u64 {
        self.own_longest_ns.load(Relaxed)
    }

    /// Gaps beyond [`PROMISED`], and how many of them are without what other programs took.
    pub(super) fn over(&self) -> (u64, u64) {
        (self.over.load(Relaxed), self.own_over.load(Relaxed))
    }

    /// How many of the latter had memory put to pages meanwhile.
    pub(super) fn faulty(&self) -> u64 {
        self.faulty.load(Relaxed)
    }

    /// How long it was spun, and how often that took longer than [`PROMISED`]: in all, and without what other programs took.
    pub(super) fn spun(&self) -> (Duration, u64, u64) {
        let span = Duration::from_nanos(self.spun_ns.load(Relaxed));
        (span, self.spun_over.load(Relaxed), self.spun_own_over.load(Relaxed))
    }
}

/// Where a time is counted: all below 64 ns are told apart, beyond that it is one part in 32.
fn bucket(ns: u64) -> usize {
    let high = 63 - (ns | 1).leading_zeros();
    if high <= FINE_BITS {
        return usize::try_from(ns).unwrap_or(0);
    }
    let fine = ns >> (high - FINE_BITS);
    let bucket = (u64::from(high - FINE_BITS) << FINE_BITS) + fine;
    usize::try_from(bucket).unwrap_or(BUCKETS - 1).min(BUCKETS - 1)
}

/// The longest time that is counted there.
fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket >> FINE_BITS).saturating_sub(1);
    let fine = bucket - (shift << FINE_BITS);
    ((fine + 1) << shift) - 1
}

impl Gauge {
    pub(super) fn new(port: NullPort, seen: Arc<Seen>) -> Gauge {
        let checked = Check { at: Instant::ZERO, on: Duration::ZERO, faults: 0 };
        let (clock, faults) = (SystemClock::start(), Faults::default());
        Gauge { port, seen, last: Instant::ZERO, spin_at: Instant::ZERO, clock, checked, faults }
    }

    /// What happened since this was last asked.
    fn check(&mut self, now: Instant) -> Meanwhile {
        let check = Check { at: now, on: thread_time(), faults: self.faults.count() };
        let former = std::mem::replace(&mut self.checked, check);
        let away = now.since(former.at).saturating_sub(check.on.saturating_sub(former.on));
        Meanwhile { away, faults: check.faults.saturating_sub(former.faults) }
    }

    fn look(&mut self, now: Instant) {
        let gap = now.since(std::mem::replace(&mut self.last, now));
        let is_long = gap >= LONG;
        let looks = is_long || now.since(self.checked.at) >= PERIOD;
        let meanwhile = if looks { self.check(now) } else { Meanwhile::default() };
        let meanwhile = if is_long { meanwhile } else { Meanwhile::default() };
        let set = self.seen.now.load(Relaxed);
        if set != PAUSED {
            self.seen.sets[set].note(gap, meanwhile);
            if now >= self.spin_at {
                self.spin(now, set);
            }
        }
    }

    /// Does nothing for a while, which is in no gap.
    fn spin(&mut self, now: Instant, set: usize) {
        let began = self.clock.now();
        let mut span = Duration::ZERO;
        while span < SPIN {
            span = self.clock.now().since(began);
        }
        let end = now + span;
        let meanwhile = if span >= LONG { self.check(end) } else { Meanwhile::default() };
        self.seen.sets[set].note_spun(span, meanwhile);
        (self.last, self.spin_at) = (end, end + SPIN * (SPIN_SHARE - 1));
    }
}

impl Port for Gauge {
    fn info(&self) -> &PortInfo {
        self.port.info()
    }

    fn receive(
        &mut self,
        now: Instant,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
        max: usize,
    ) -> Result<(), PortError> {
        self.look(now);
        let set = self.seen.now.load(Relaxed);
        if set == PAUSED {
            return Ok(());
        }
        self.port.receive(now, pool, batch, max)?;
        add(&self.seen.sets[set].packets, batch.len() as u64);
        Ok(())
    }

    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> Result<(), PortError> {
        self.port.transmit(now, pool, frames)
    }

    fn arm(&mut self) -> Ready {
        // Frames may come at any moment, when nobody would wake the engine.
        Ready::Now
    }

    fn link(&mut self) -> LinkState {
        self.port.link()
    }

    fn counters(&self) -> Counters {
        self.port.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_lies_in_its_bucket() {
        let mut last = 0;
        for ns in (0..1 << 16).chain((16..40).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 12_345])) {
            let at = bucket(ns);
            assert!(upper_end(at) >= ns && (at == 0 || upper_end(at - 1) < ns), "{ns} in {at}");
            assert!(upper_end(at) - ns <= ns >> FINE_BITS, "{ns} in {at}");
            assert!(ns > 1 << 16 || at >= last);
            last = at;
        }
    }

    #[test]
    fn figures_are_those_of_the_gaps() {
        let gaps = Gaps::default();
        let micros = Duration::from_micros;
        let meanwhile = |away, faults| Meanwhile { away: micros(away), faults };
        (1..=1000).for_each(|ns| gaps.note(Duration::from_nanos(ns), Meanwhile::default()));
        gaps.note(micros(300), meanwhile(250, 1));
        gaps.note(micros(150), meanwhile(0, 3));
        gaps.note_spun(micros(35), Meanwhile::default());
        gaps.note_spun(micros(200), meanwhile(150, 0));
        assert_eq!((gaps.spun(), gaps.faulty()), ((micros(235), 1, 0), 1));
        assert!((500..=516).contains(&gaps.quantile_ns(0.5)), "{}", gaps.quantile_ns(0.5));
        assert_eq!((gaps.quantile_ns(1.0), gaps.longest_ns(), gaps.own_longest_ns()), (300_000, 300_000, 150_000));
        assert_eq!(gaps.over(), (2, 1));
        assert_eq!(Gaps::default().quantile_ns(0.5), 0);
    }
}
