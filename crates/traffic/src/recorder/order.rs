//! Classifies packets by arrival order: new, duplicate, or after a later packet (RFC 4737, RFC 5560).
use super::Reordering;
use crate::TimeHistogram;
use std::collections::VecDeque;

/// Range of numbers below the highest one in which duplicates are detected; older packets count as too late.
pub(super) const WINDOW: u64 = 1 << 20;
/// Number of in-order packets that are remembered, to measure how far behind a reordered packet arrives.
const REMEMBERED: usize = 4096;

/// Classification of an arriving packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArrivalClass {
    Fresh,
    Duplicate,
}

/// State of the packet numbers seen so far.
#[derive(Debug, Clone, Default)]
pub(super) struct SequenceTracker {
    /// A bit for each of the last [`WINDOW`] numbers; allocated with the first packet.
    seen: Vec<u64>,
    lowest: Option<u64>,
    highest: Option<u64>,
    last: Option<u64>,
    pub(super) received: u64,
    pub(super) duplicates: u64,
    pub(super) too_late: u64,
    reordered: u64,
    /// Recent packets that arrived in order: number, position in the order of arrival, time in ns.
    in_order: VecDeque<(u64, u64, u64)>,
    extents: TimeHistogram,
    late: TimeHistogram,
    /// True if the last recorded packet directly follows the one before it.
    follows: bool,
}

impl SequenceTracker {
    /// Returns the full number of a packet that carries the low 32 bits: the one nearest to the highest number so
    /// far.
    pub(super) fn extend(&self, sequence: u32) -> u64 {
        const ROUND: u64 = 1 << 32;
        let Some(highest) = self.highest else { return u64::from(sequence) };
        let near = highest & !(ROUND - 1) | u64::from(sequence);
        if near + ROUND / 2 < highest {
            near + ROUND
        } else if near > highest + ROUND / 2 && near >= ROUND {
            near - ROUND
        } else {
            near
        }
    }

    /// Records the arrival of a packet.
    pub(super) fn arrive(&mut self, number: u64, now_ns: u64) -> ArrivalClass {
        let highest = self.highest.unwrap_or(number);
        if number + WINDOW <= highest {
            self.too_late += 1;
        } else if self.is_marked(number, highest) {
            self.duplicates += 1;
            return ArrivalClass::Duplicate;
        }
        self.mark(number, highest);
        self.received += 1;
        self.follows = self.last.is_some_and(|last| last + 1 == number);
        self.last = Some(number);
        self.lowest = Some(self.lowest.map_or(number, |lowest| lowest.min(number)));
        if self.highest.is_some_and(|highest| number < highest) {
            self.out_of_order(number, now_ns);
        } else {
            self.highest = Some(number);
            if self.in_order.len() == REMEMBERED {
                self.in_order.pop_front();
            }
            self.in_order.push_back((number, self.received, now_ns));
        }
        ArrivalClass::Fresh
    }

    /// Records how far a packet arrived behind the first packet that it should have preceded: in packets and in time
    /// (RFC 4737, 4.2 and 4.3).
    fn out_of_order(&mut self, number: u64, now_ns: u64) {
        self.reordered += 1;
        let at = self.in_order.partition_point(|(other, ..)| *other < number);
        if let Some((_, place, came_ns)) = self.in_order.get(at) {
            self.extents.record_ns(self.received - place);
            self.late.record_ns(now_ns.saturating_sub(*came_ns));
        }
    }

    fn is_marked(&self, number: u64, highest: u64) -> bool {
        let (word, bit) = place(number);
        number <= highest && self.seen.get(word).is_some_and(|word| word & bit != 0)
    }

    fn mark(&mut self, number: u64, highest: u64) {
        if self.seen.is_empty() {
            self.seen = vec![0; place(WINDOW - 1).0 + 1];
        }
        // Numbers that enter the window reuse the bits of those that leave it.
        if number >= highest + WINDOW {
            self.seen.fill(0);
        } else {
            for entering in highest + 1..=number {
                let (word, bit) = place(entering);
                self.seen[word] &= !bit;
            }
        }
        if number + WINDOW > highest {
            let (word, bit) = place(number);
            self.seen[word] |= bit;
        }
    }

    /// Returns true if the last recorded packet has this number and directly followed the one before.
    pub(super) fn is_next_of_last(&self, number: u64) -> bool {
        self.follows && self.last == Some(number)
    }

    /// Returns the size of the range from the lowest to the highest number.
    pub(super) fn span(&self) -> u64 {
        self.highest.zip(self.lowest).map_or(0, |(highest, lowest)| highest - lowest + 1)
    }

    pub(super) fn report(&self) -> Reordering {
        let extents = self.extents.summary();
        Reordering {
            reordered: self.reordered,
            ratio: (self.received > 0).then(|| self.reordered as f64 / self.received as f64),
            extent_mean: extents.map(|extents| extents.mean_us * 1e3),
            extent_max: extents.map(|extents| (extents.max_us * 1e3).round()),
            late: self.late.summary(),
        }
    }
}

/// Returns the word and the bit of a number in the window.
fn place(number: u64) -> (usize, u64) {
    let at = number % WINDOW;
    (usize::try_from(at / 64).unwrap_or(0), 1 << (at % 64))
}
