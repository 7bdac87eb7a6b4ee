//! Measures how long the steps of a traced packet take. The trace runs many times on a copy of the packet, and the
//! best time of each step counts, because any disturbance only adds time.
use serde::Serialize;
use weir_memory::cycles;
use weir_packet::{Frame, FramePool};

/// Cycles of a trace's steps, the best of several runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceCycles {
    /// Cycles of parsing the packet and other work before the first step.
    parse: u64,
    /// Cycles of each step.
    steps: Vec<u64>,
    runs: u32,
}

/// Times of a trace's steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceTimes {
    /// Time of parsing the packet, in nanoseconds.
    pub parse_ns: f64,
    /// Time of each step in nanoseconds: a lookup, or an action up to the next step.
    pub steps_ns: Vec<f64>,
    /// Time of all steps and the parsing, in nanoseconds.
    pub total_ns: f64,
    /// Number of runs that were measured.
    pub runs: u32,
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
        self.parse = self.parse.min(other.parse);
        self.steps.iter_mut().zip(&other.steps).for_each(|(own, other)| *own = (*own).min(*other));
        self.runs += other.runs;
        true
    }

    /// Converts the cycles to nanoseconds.
    pub fn times(&self, cycles_per_ns: f64) -> TraceTimes {
        let ns = |cycles: u64| cycles as f64 / cycles_per_ns;
        TraceTimes {
            parse_ns: ns(self.parse),
            steps_ns: self.steps.iter().map(|cycles| ns(*cycles)).collect(),
            total_ns: ns(self.parse + self.steps.iter().sum::<u64>()),
            runs: self.runs,
        }
    }
}

/// Stopwatch of a run.
#[derive(Debug)]
pub(super) struct TraceStopwatch {
    took: TraceCycles,
    last: u64,
    /// Cycles that a measurement itself takes.
    overhead: u64,
    /// Buffers for copies of the packet.
    pool: FramePool,
}

impl TraceStopwatch {
    pub(super) fn new() -> TraceStopwatch {
        let overhead = (0..32).map(|_| between(cycles())).min().unwrap_or(0);
        TraceStopwatch { took: TraceCycles::default(), last: cycles(), overhead, pool: FramePool::default() }
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
        between(self.last).saturating_sub(self.overhead)
    }
}

fn between(earlier: u64) -> u64 {
    cycles().saturating_sub(earlier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_each_step_counts() {
        let one = TraceCycles { parse: 10, steps: vec![20, 7], runs: 3 };
        let mut best = TraceCycles::default();
        assert!(best.merge(&one) && best.merge(&TraceCycles { parse: 12, steps: vec![15, 9], runs: 2 }));
        assert_eq!(best, TraceCycles { parse: 10, steps: vec![15, 7], runs: 5 });
        assert!(!best.merge(&TraceCycles { parse: 1, steps: vec![1], runs: 1 }), "another way");
        let times = best.times(2.0);
        assert_eq!((times.parse_ns, times.steps_ns, times.total_ns), (5.0, vec![7.5, 3.5], 16.0));
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
