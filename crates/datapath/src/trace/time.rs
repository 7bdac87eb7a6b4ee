//! Measures how long the steps of a traced packet take. The trace runs many times on a copy of the packet, and the
//! best time of each step counts, because any disturbance only adds time.
use serde::Serialize;
use weir_memory::cycles;
use weir_packet::{Frame, FramePool};

/// Number of measurements of nothing from which the cost of reading the counter is taken.
const EMPTY_MEASUREMENTS: usize = 64;

/// Cycles of a trace's steps, the best of several runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceCycles {
    /// Cost of reading the counter, and the shortest time that can be told from nothing.
    counter: CounterCost,
    /// Cycles of parsing the packet and other work before the first step.
    parse: u64,
    /// Cycles of each step.
    steps: Vec<u64>,
    runs: u32,
}

/// Times of a trace's steps. A step that took less than the resolution has no time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceTimes {
    /// Time of parsing the packet, in nanoseconds.
    pub parse_ns: Option<f64>,
    /// Time of each step in nanoseconds: a lookup, or an action up to the next step.
    pub steps_ns: Vec<Option<f64>>,
    /// Time of all steps and the parsing, in nanoseconds.
    pub total_ns: f64,
    /// Shortest time that can be told from nothing, in nanoseconds.
    pub resolution_ns: f64,
    /// Time of reading the clock once, in nanoseconds, which is subtracted from each measurement.
    pub clock_ns: f64,
    /// Number of runs that were measured.
    pub runs: u32,
}

impl TraceTimes {
    /// Formats a time; none is less than the resolution.
    pub(super) fn text(&self, ns: Option<f64>) -> String {
        ns.map_or_else(|| format!("< {:.1} ns", self.resolution_ns), |ns| format!("{ns:.1} ns"))
    }
}

/// Times that a profile gives for a trace's steps, for a packet that waits for no other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExpectedTimes {
    /// Name of the profile.
    pub profile: String,
    /// Time of each step in nanoseconds; none for steps that take no time of their own.
    pub steps_ns: Vec<Option<f64>>,
    /// Time of all steps, in nanoseconds.
    pub total_ns: f64,
}

/// Cost of reading the time stamp counter, in cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct CounterCost {
    /// Cycles of a measurement of nothing.
    read: u64,
    /// Fewest cycles that can be told from nothing.
    resolution: u64,
}

impl CounterCost {
    /// Measures nothing several times. The shortest measurement is the cost. The resolution is how much longer the
    /// middle one is, or the next one that is longer at all.
    fn measure() -> CounterCost {
        let mut empty = [0; EMPTY_MEASUREMENTS].map(|_: u64| between(cycles()));
        empty.sort_unstable();
        CounterCost::of(&empty)
    }

    /// Returns the cost that measurements of nothing show, which are in ascending order.
    fn of(empty: &[u64]) -> CounterCost {
        let read = empty.first().copied().unwrap_or(0);
        let longer = empty[empty.len() / 2..].iter().find(|cycles| **cycles > read);
        CounterCost { read, resolution: longer.map_or(1, |cycles| cycles - read) }
    }
}

impl TraceCycles {
    /// Takes over the better times of other runs of the same packet. Returns false, and changes nothing, if those had
    /// another number of steps.
    pub fn merge(&mut self, other: &TraceCycles) -> bool {
        if self.runs == 0 {
            *self = other.clone();
            return true;
        }
        if self.steps.len() != other.steps.len() {
            return false;
        }
        self.counter.read = self.counter.read.min(other.counter.read);
        self.counter.resolution = self.counter.resolution.min(other.counter.resolution);
        self.parse = self.parse.min(other.parse);
        self.steps.iter_mut().zip(&other.steps).for_each(|(own, other)| *own = (*own).min(*other));
        self.runs += other.runs;
        true
    }

    /// Converts the cycles to nanoseconds.
    pub fn times(&self, cycles_per_ns: f64) -> TraceTimes {
        let ns = |cycles: u64| cycles as f64 / cycles_per_ns;
        let told = |cycles: u64| (cycles >= self.counter.resolution.max(1)).then(|| ns(cycles));
        TraceTimes {
            parse_ns: told(self.parse),
            steps_ns: self.steps.iter().map(|cycles| told(*cycles)).collect(),
            total_ns: ns(self.parse + self.steps.iter().sum::<u64>()),
            resolution_ns: ns(self.counter.resolution),
            clock_ns: ns(self.counter.read),
            runs: self.runs,
        }
    }
}

/// Stopwatch of a run.
#[derive(Debug)]
pub(super) struct TraceStopwatch {
    took: TraceCycles,
    last: u64,
    /// Buffers for copies of the packet.
    pool: FramePool,
}

impl TraceStopwatch {
    pub(super) fn new() -> TraceStopwatch {
        let took = TraceCycles { counter: CounterCost::measure(), ..TraceCycles::default() };
        TraceStopwatch { took, last: cycles(), pool: FramePool::default() }
    }

    /// Begins a run and returns a frame with `bytes`.
    pub(super) fn begin(&mut self, bytes: &[u8]) -> Frame {
        let mut frame = self.pool.take(bytes.len());
        frame.assign(bytes);
        (self.took.parse, self.took.runs) = (0, 1);
        self.took.steps.clear();
        self.last = cycles();
        frame
    }

    /// Ends a run, recycles its frame, and returns the cycles of its steps.
    pub(super) fn end(&mut self, frame: Frame) -> TraceCycles {
        self.lap();
        self.pool.give(frame);
        self.took.clone()
    }

    /// Adds the cycles since the last mark to the step before.
    pub(super) fn lap(&mut self) {
        let took = self.took_since_last();
        *self.took.steps.last_mut().unwrap_or(&mut self.took.parse) += took;
        self.last = cycles();
    }

    /// Begins a step at this point.
    pub(super) fn step(&mut self) {
        self.lap();
        self.took.steps.push(0);
        self.last = cycles();
    }

    /// Ends a step here that began at the last mark.
    pub(super) fn step_done(&mut self) {
        let took = self.took_since_last();
        self.took.steps.push(took);
        self.last = cycles();
    }

    pub(super) fn copy(&mut self, frame: &Frame) -> Frame {
        self.pool.copy(frame)
    }

    pub(super) fn recycle(&mut self, frame: Frame) {
        self.pool.give(frame);
    }

    fn took_since_last(&self) -> u64 {
        between(self.last).saturating_sub(self.took.counter.read)
    }
}

fn between(earlier: u64) -> u64 {
    cycles().saturating_sub(earlier)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(read: u64, resolution: u64, parse: u64, steps: &[u64], runs: u32) -> TraceCycles {
        TraceCycles { counter: CounterCost { read, resolution }, parse, steps: steps.to_vec(), runs }
    }

    #[test]
    fn the_best_of_each_step_counts() {
        let mut best = TraceCycles::default();
        assert!(best.merge(&took(20, 4, 10, &[20, 7], 3)) && best.merge(&took(18, 6, 12, &[15, 9], 2)));
        assert_eq!(best, took(18, 4, 10, &[15, 7], 5));
        assert!(!best.merge(&took(18, 4, 1, &[1], 1)), "another way");
        let times = best.times(2.0);
        assert_eq!((times.parse_ns, times.steps_ns, times.total_ns), (Some(5.0), vec![Some(7.5), Some(3.5)], 16.0));
        assert_eq!((times.clock_ns, times.resolution_ns), (9.0, 2.0));
    }

    #[test]
    fn what_cannot_be_told_from_nothing_has_no_time() {
        let times = took(18, 4, 40, &[0, 3, 4], 1).times(2.0);
        assert_eq!((times.steps_ns, times.total_ns), (vec![None, None, Some(2.0)], 23.5));
        // A counter that shows no difference between measurements of nothing may still go on by one.
        let times = took(18, 1, 40, &[0, 1], 1).times(1.0);
        assert_eq!(times.steps_ns, [None, Some(1.0)]);
    }

    #[test]
    fn the_resolution_is_what_measurements_of_nothing_differ_by() {
        let of = |empty: &[u64]| CounterCost::of(empty);
        assert_eq!(of(&[18, 18, 20, 22, 900]), CounterCost { read: 18, resolution: 2 });
        assert_eq!(of(&[18, 18, 18, 18, 900]), CounterCost { read: 18, resolution: 882 });
        assert_eq!(of(&[0, 0, 0, 0, 36, 36]), CounterCost { read: 0, resolution: 36 });
        assert_eq!(of(&[18; 4]), CounterCost { read: 18, resolution: 1 });
        assert!(CounterCost::measure().resolution > 0);
    }

    #[test]
    fn marks_make_as_many_times_as_steps() {
        let mut marks = TraceStopwatch::new();
        for _ in 0..2 {
            let frame = marks.begin(&[7; 60]);
            assert_eq!(frame.bytes(), [7; 60]);
            marks.lap();
            marks.step_done();
            marks.step();
            marks.step();
            assert_eq!(marks.end(frame).steps.len(), 3);
        }
    }
}
