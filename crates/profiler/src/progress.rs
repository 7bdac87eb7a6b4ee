//! Reports the progress of a measurement.

/// Receiver of progress reports, with the current phase and step.
pub struct ProgressReporter<'a> {
    tell: &'a mut dyn FnMut(&MeasurementProgress<'_>),
    phase: &'static str,
    done: usize,
    of: usize,
}

/// Progress of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasurementProgress<'a> {
    /// Name of the phase.
    pub phase: &'a str,
    /// Activity within the phase.
    pub doing: &'a str,
    /// Number of finished steps of the phase.
    pub done: usize,
    /// Number of all steps of the phase; 0 if unknown.
    pub of: usize,
}

impl<'a> ProgressReporter<'a> {
    /// Creates a progress that passes each report to `tell`.
    pub fn new(tell: &'a mut dyn FnMut(&MeasurementProgress<'_>)) -> ProgressReporter<'a> {
        ProgressReporter { tell, phase: "", done: 0, of: 0 }
    }

    /// Begins a phase.
    pub(crate) fn begin(&mut self, phase: &'static str) {
        (self.phase, self.done, self.of) = (phase, 0, 0);
        (self.tell)(&MeasurementProgress { phase, doing: phase, done: 0, of: 0 });
    }

    /// Sets the number of steps of the phase.
    pub(crate) fn expect(&mut self, steps: usize) {
        self.of = steps;
    }

    /// Begins a step.
    pub(crate) fn step(&mut self, doing: &str) {
        (self.tell)(&MeasurementProgress { phase: self.phase, doing, done: self.done.min(self.of), of: self.of });
        self.done += 1;
    }
}
