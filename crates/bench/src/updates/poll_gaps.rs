//! Measures the gaps of the engine as a port sees them: the time between two requests for frames. A frame that
//! arrives right after the first request waits for the gap's length.
//!
//! A single gap does not tell whether it was caused by the engine or by the machine (interrupts, other programs, a
//! hypervisor). As a control, the engine's thread spins from time to time: it reads the clock for as long as the
//! engine may spend on control work. The rate at which this exceeds the limit of a gap, per second of spinning, is
//! the machine's effect under the same load; the gaps' rate beyond it is the engine's.
use super::page_faults::PageFaultCounter;
use crate::datapath::thread_cpu::thread_time;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use weir_packet::{Frame, FramePool};
use weir_port::null::NullPort;
use weir_port::{FrameCounters, LinkState, Port, PortInfo, PortResult, ReceiveReadiness};
use weir_units::{Clock as _, Instant, SystemClock};

/// Promised upper bound of a gap.
pub(super) const PROMISED: Duration = Duration::from_micros(100);
/// Gaps of this length and longer are examined: was the thread on its processor all the time?
const LONG: Duration = Duration::from_micros(50);
/// Duration of one spin: about as long as the engine spends on control work between two rounds.
const SPIN: Duration = Duration::from_micros(35);
/// Spinning takes one part in this many of the time.
const SPIN_SHARE: u32 = 8;
/// Minimum interval for recording the thread's processor time.
const PERIOD: Duration = Duration::from_millis(1);
/// Number of bits below a gap's highest bit that the histogram distinguishes.
const FINE_BITS: u32 = 5;
const BUCKETS: usize = 64 << FINE_BITS;
/// Number of the unused set: while it is selected, the port gives no frames.
pub(super) const PAUSED: usize = 0;

/// A port that always has frames to receive and measures the gaps between requests.
pub(super) struct PollGapPort {
    port: NullPort,
    seen: Arc<PollGapRecorder>,
    /// Time of the last request for frames.
    last: Instant,
    /// Time of the next spin.
    spin_at: Instant,
    clock: SystemClock,
    last_usage: ThreadUsage,
    faults: PageFaultCounter,
}

/// Processor time and faults of the thread at one moment.
#[derive(Clone, Copy)]
struct ThreadUsage {
    at: Instant,
    cpu_time: Duration,
    faults: u64,
}

/// Changes since a check.
#[derive(Clone, Copy, Default)]
struct ThreadUsageDelta {
    /// Time that the thread was not on a processor.
    off_cpu: Duration,
    /// Number of page faults.
    faults: u64,
}

/// All measurements, one set of figures for each number passed to [`PollGapRecorder::measure`].
pub(super) struct PollGapRecorder {
    /// Number of the set that is written to.
    now: AtomicUsize,
    sets: Vec<PollGapHistogram>,
}

/// Figures of gaps. One thread writes; another reads when the measurement is over.
pub(super) struct PollGapHistogram {
    buckets: Box<[AtomicU64]>,
    packets: AtomicU64,
    longest_ns: AtomicU64,
    over: AtomicU64,
    /// Longest gap without the time that the thread was not on a processor, in nanoseconds.
    own_longest_ns: AtomicU64,
    own_over: AtomicU64,
    /// Gaps of `own_over` with page faults.
    faulty: AtomicU64,
    /// Figures of spinning, the control.
    spun_ns: AtomicU64,
    spun_over: AtomicU64,
    spun_own_over: AtomicU64,
}

impl PollGapRecorder {
    /// Creates `sets` sets in addition to [`PAUSED`], which is selected.
    pub(super) fn new(sets: usize) -> Arc<PollGapRecorder> {
        Arc::new(PollGapRecorder {
            now: AtomicUsize::new(PAUSED),
            sets: (0..=sets).map(|_| PollGapHistogram::default()).collect(),
        })
    }

    /// Selects the set for further measurements.
    pub(super) fn measure(&self, set: usize) {
        self.now.store(set, Relaxed);
    }

    pub(super) fn gaps(&self, set: usize) -> &PollGapHistogram {
        &self.sets[set]
    }
}

impl Default for PollGapHistogram {
    fn default() -> PollGapHistogram {
        PollGapHistogram {
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

impl PollGapHistogram {
    fn note(&self, gap: Duration, meanwhile: ThreadUsageDelta) {
        let own = gap.saturating_sub(meanwhile.off_cpu);
        add(&self.buckets[bucket(nanoseconds(gap))], 1);
        self.longest_ns.store(self.longest_ns.load(Relaxed).max(nanoseconds(gap)), Relaxed);
        self.own_longest_ns.store(self.own_longest_ns.load(Relaxed).max(nanoseconds(own)), Relaxed);
        add(&self.over, u64::from(gap > PROMISED));
        add(&self.own_over, u64::from(own > PROMISED));
        add(&self.faulty, u64::from(own > PROMISED && meanwhile.faults > 0));
    }

    fn note_spun(&self, span: Duration, meanwhile: ThreadUsageDelta) {
        add(&self.spun_ns, nanoseconds(span));
        add(&self.spun_over, u64::from(span > PROMISED));
        add(&self.spun_own_over, u64::from(span.saturating_sub(meanwhile.off_cpu) > PROMISED));
    }

    /// Returns the quantile `share` of all gaps, in nanoseconds.
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

    /// Returns the longest gap without the time of other programs, in nanoseconds.
    pub(super) fn own_longest_ns(&self) -> u64 {
        self.own_longest_ns.load(Relaxed)
    }

    /// Returns the number of gaps beyond [`PROMISED`], and of those that exceed it without the time of other
    /// programs.
    pub(super) fn over(&self) -> (u64, u64) {
        (self.over.load(Relaxed), self.own_over.load(Relaxed))
    }

    /// Returns the number of gaps of the latter kind with page faults.
    pub(super) fn faulty(&self) -> u64 {
        self.faulty.load(Relaxed)
    }

    /// Returns the time spent spinning, and how often a spin exceeded [`PROMISED`]: in all, and without the time of
    /// other programs.
    pub(super) fn spun(&self) -> (Duration, u64, u64) {
        let span = Duration::from_nanos(self.spun_ns.load(Relaxed));
        (span, self.spun_over.load(Relaxed), self.spun_own_over.load(Relaxed))
    }
}

/// Returns the histogram bucket of a time. Times below 64 ns are exact, longer ones have a resolution of one part in
/// 32.
fn bucket(ns: u64) -> usize {
    let high = 63 - (ns | 1).leading_zeros();
    if high <= FINE_BITS {
        return usize::try_from(ns).unwrap_or(0);
    }
    let fine = ns >> (high - FINE_BITS);
    let bucket = (u64::from(high - FINE_BITS) << FINE_BITS) + fine;
    usize::try_from(bucket).unwrap_or(BUCKETS - 1).min(BUCKETS - 1)
}

/// Returns the longest time of a bucket.
fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket >> FINE_BITS).saturating_sub(1);
    let fine = bucket - (shift << FINE_BITS);
    ((fine + 1) << shift) - 1
}

impl PollGapPort {
    pub(super) fn new(port: NullPort, seen: Arc<PollGapRecorder>) -> PollGapPort {
        let checked = ThreadUsage { at: Instant::ZERO, cpu_time: Duration::ZERO, faults: 0 };
        let (clock, faults) = (SystemClock::start(), PageFaultCounter::default());
        PollGapPort { port, seen, last: Instant::ZERO, spin_at: Instant::ZERO, clock, last_usage: checked, faults }
    }

    /// Returns the changes since the previous check.
    fn check(&mut self, now: Instant) -> ThreadUsageDelta {
        let check = ThreadUsage { at: now, cpu_time: thread_time(), faults: self.faults.count() };
        let former = std::mem::replace(&mut self.last_usage, check);
        let away = now.since(former.at).saturating_sub(check.cpu_time.saturating_sub(former.cpu_time));
        ThreadUsageDelta { off_cpu: away, faults: check.faults.saturating_sub(former.faults) }
    }

    fn record_poll(&mut self, now: Instant) {
        let gap = now.since(std::mem::replace(&mut self.last, now));
        let is_long = gap >= LONG;
        let looks = is_long || now.since(self.last_usage.at) >= PERIOD;
        let meanwhile = if looks { self.check(now) } else { ThreadUsageDelta::default() };
        let meanwhile = if is_long { meanwhile } else { ThreadUsageDelta::default() };
        let set = self.seen.now.load(Relaxed);
        if set != PAUSED {
            self.seen.sets[set].note(gap, meanwhile);
            if now >= self.spin_at {
                self.spin(now, set);
            }
        }
    }

    /// Spins for [`SPIN`] as the control; the time is part of no gap.
    fn spin(&mut self, now: Instant, set: usize) {
        let began = self.clock.now();
        let mut span = Duration::ZERO;
        while span < SPIN {
            span = self.clock.now().since(began);
        }
        let end = now + span;
        let meanwhile = if span >= LONG { self.check(end) } else { ThreadUsageDelta::default() };
        self.seen.sets[set].note_spun(span, meanwhile);
        (self.last, self.spin_at) = (end, end + SPIN * (SPIN_SHARE - 1));
    }
}

impl Port for PollGapPort {
    fn info(&self) -> &PortInfo {
        self.port.info()
    }

    fn receive(&mut self, now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        self.record_poll(now);
        let set = self.seen.now.load(Relaxed);
        if set == PAUSED {
            return Ok(());
        }
        self.port.receive(now, pool, batch, max)?;
        add(&self.seen.sets[set].packets, batch.len() as u64);
        Ok(())
    }

    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        self.port.transmit(now, pool, frames)
    }

    fn arm(&mut self) -> ReceiveReadiness {
        // Frames are always available, but no event would wake the engine for them.
        ReceiveReadiness::Now
    }

    fn link(&mut self) -> LinkState {
        self.port.link()
    }

    fn counters(&self) -> FrameCounters {
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
        let gaps = PollGapHistogram::default();
        let micros = Duration::from_micros;
        let meanwhile = |away, faults| ThreadUsageDelta { off_cpu: micros(away), faults };
        (1..=1000).for_each(|ns| gaps.note(Duration::from_nanos(ns), ThreadUsageDelta::default()));
        gaps.note(micros(300), meanwhile(250, 1));
        gaps.note(micros(150), meanwhile(0, 3));
        gaps.note_spun(micros(35), ThreadUsageDelta::default());
        gaps.note_spun(micros(200), meanwhile(150, 0));
        assert_eq!((gaps.spun(), gaps.faulty()), ((micros(235), 1, 0), 1));
        assert!((500..=516).contains(&gaps.quantile_ns(0.5)), "{}", gaps.quantile_ns(0.5));
        assert_eq!((gaps.quantile_ns(1.0), gaps.longest_ns(), gaps.own_longest_ns()), (300_000, 300_000, 150_000));
        assert_eq!(gaps.over(), (2, 1));
        assert_eq!(PollGapHistogram::default().quantile_ns(0.5), 0);
    }
}
