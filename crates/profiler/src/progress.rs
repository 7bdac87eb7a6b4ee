//! How far a measurement is.

/// Where someone is told how far a measurement is.
pub struct Progress<'a> {
    tell: &'a mut dyn FnMut(&At<'_>),
    phase: &'static str,
    done: usize,
    of: usize,
}

/// How far a measurement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At<'a> {
    /// The part of it.
    pub phase: &'a str,
    /// What is being done.
    pub doing: &'a str,
    /// Steps of the part that are done.
    pub done: usize,
    /// Of so many; 0 if that is not known.
    pub of: usize,
}

impl<'a> Progress<'a> {
    /// Tells it so.
    pub fn new(tell: &'a mut dyn FnMut(&At<'_>)) -> Progress<'a> {
        Progress { tell, phase: "", done: 0, of: 0 }
    }

    /// A part begins.
    pub(crate) fn begin(&mut self, phase: &'static str) {
        (self.phase, self.done, self.of) = (phase, 0, 0);
        (self.tell)(&At { phase, doing: phase, done: 0, of: 0 });
    }

    /// It has so many steps.
    pub(crate) fn expect(&mut self, steps: usize) {
        self.of = steps;
    }

    /// Another step begins.
    pub(crate) fn step(&mut self, doing: &str) {
        (self.tell)(&At { phase: self.phase, doing, done: self.done.min(self.of), of: self.of });
        self.done += 1;
    }
}
