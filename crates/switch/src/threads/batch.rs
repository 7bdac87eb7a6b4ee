//! Collects frames until a burst is full or has waited long enough.
//!
//! A full burst is due. Another burst is due after some turns of its stage's loop (Rahimi et al., HPSR 2016, III-D:
//! `IO_FLUSH`, `Worker_FLUSH`), or after a time, whichever comes first. The turns keep bursts large under load. The
//! time is a bound that the turns do not give, because the duration of a turn depends on the load.
use std::time::Duration;
use weir_units::Instant;

/// Conditions under which a burst is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlushRule {
    /// Number of items in a full burst, at least one.
    pub(crate) burst: usize,
    /// Maximum number of turns of the loop that a burst waits.
    pub(crate) turns: u32,
    /// Maximum time that a burst waits, counted from its first item.
    pub(crate) time: Duration,
}

/// A burst that is being filled.
#[derive(Debug)]
pub(crate) struct BurstBuffer<T> {
    items: Vec<T>,
    due: Instant,
    turns_left: u32,
}

impl<T> BurstBuffer<T> {
    pub(crate) fn new(rule: &FlushRule) -> BurstBuffer<T> {
        BurstBuffer { items: Vec::with_capacity(2 * rule.burst), due: Instant::ZERO, turns_left: 0 }
    }

    /// Adds an item. Returns true if the burst is full.
    #[inline]
    pub(crate) fn push(&mut self, now: Instant, rule: &FlushRule, item: T) -> bool {
        if self.items.is_empty() {
            (self.due, self.turns_left) = (now + rule.time, rule.turns);
        }
        self.items.push(item);
        self.items.len() >= rule.burst
    }

    /// Ends a turn of the loop. Returns true if the burst is due.
    #[inline]
    pub(crate) fn turn(&mut self, now: Instant) -> bool {
        if self.items.is_empty() {
            return false;
        }
        self.turns_left = self.turns_left.saturating_sub(1);
        self.turns_left == 0 || now >= self.due
    }

    /// Waiting items, in the order of their arrival.
    #[inline]
    pub(crate) fn items(&mut self) -> &mut Vec<T> {
        &mut self.items
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: FlushRule = FlushRule { burst: 4, turns: 10, time: Duration::from_micros(5) };

    #[test]
    fn a_full_burst_is_due() {
        let mut batch = BurstBuffer::new(&RULE);
        let full: Vec<bool> = (0..5).map(|item| batch.push(Instant::ZERO, &RULE, item)).collect();
        assert_eq!(full, [false, false, false, true, true]);
        assert_eq!(batch.items(), &[0, 1, 2, 3, 4]);
    }

    #[test]
    fn turns_and_time_count_from_the_first_item() {
        let mut batch = BurstBuffer::new(&RULE);
        assert!((0..100).all(|_| !batch.turn(Instant::FAR)), "nothing waits");
        let start = Instant::from_nanos(1_000_000);
        batch.push(start, &RULE, 'a');
        assert!((0..9).all(|_| !batch.turn(start)));
        batch.push(start, &RULE, 'b');
        assert!(batch.turn(start), "ten turns since the first");
        batch.items().clear();
        batch.push(start, &RULE, 'c');
        assert!(!batch.turn(start + Duration::from_nanos(4999)));
        batch.push(start + Duration::from_micros(4), &RULE, 'd');
        assert!(batch.turn(start + Duration::from_micros(5)), "5 us since the first");
    }
}
