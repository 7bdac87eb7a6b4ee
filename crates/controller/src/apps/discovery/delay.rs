//! Keeps the shortest of the latest delays: whatever else a probe waits for only adds to the delay that is sought.
use std::time::Duration;

/// Number of delays kept.
const KEPT: usize = 8;

/// Shortest of the latest delays.
#[derive(Debug, Clone, Default)]
pub(super) struct ShortestDelay {
    latest: [Duration; KEPT],
    /// Number of delays so far.
    count: usize,
}

impl ShortestDelay {
    /// Adds a delay, in place of the oldest.
    pub(super) fn add(&mut self, delay: Duration) {
        self.latest[self.count % KEPT] = delay;
        self.count += 1;
    }

    /// Returns the shortest delay; `None` if there was none.
    pub(super) fn get(&self) -> Option<Duration> {
        self.latest[..self.count.min(KEPT)].iter().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_of_the_latest_counts() {
        let mut delays = ShortestDelay::default();
        assert_eq!(delays.get(), None);
        for us in [50, 10, 40, 30, 60, 70, 80, 90] {
            delays.add(Duration::from_micros(us));
        }
        assert_eq!(delays.get(), Some(Duration::from_micros(10)));
        delays.add(Duration::from_micros(100));
        delays.add(Duration::from_micros(100));
        assert_eq!(delays.get(), Some(Duration::from_micros(30)), "10 us is too long ago");
    }
}
