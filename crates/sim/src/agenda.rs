//! Keeps the time of the next event of each part of a simulation and returns the earliest.
use weir_units::Instant;

/// Children per node of the tree: as many times as fit in a cache line.
const FAN: usize = 8;

/// Agenda of the next event of each of a fixed number of parts. Returns the earliest event; among equal times, the
/// part with the smallest number.
///
/// Each part of a network has one next event: a source its next packet, a line its next bit. No list of events has to
/// grow and nothing is allocated during a run. A tree of minima holds all times, so an event costs one walk over its
/// few levels. Runs are repeatable because events with equal times are ordered by the part's number.
#[derive(Debug, Clone)]
pub struct Agenda {
    /// Levels of minima, from the parts' own times (first) to the root. The length of each level is a multiple of
    /// [`FAN`].
    levels: Vec<Vec<u64>>,
}

const NEVER: u64 = u64::MAX;

impl Agenda {
    /// Returns an empty agenda for parts `0..parts`.
    pub fn new(parts: usize) -> Agenda {
        let mut levels = Vec::new();
        let mut length = parts.max(1);
        loop {
            levels.push(vec![NEVER; length.next_multiple_of(FAN)]);
            length = length.div_ceil(FAN);
            if length == 1 {
                return Agenda { levels };
            }
        }
    }

    /// Returns the time of the part's next event; [`Instant::FAR`] if the part has none.
    #[inline]
    pub fn at(&self, part: usize) -> Instant {
        Instant::from_nanos(self.levels[0][part])
    }

    /// Sets the time of the part's next event, replacing the previous one; [`Instant::FAR`] removes the event.
    #[inline]
    pub fn set(&mut self, part: usize, at: Instant) {
        let mut value = at.as_nanos();
        let mut place = part;
        for level in &mut self.levels {
            level[place] = value;
            let group = place / FAN * FAN;
            let lowest = level[group..group + FAN].iter().copied().min().unwrap_or(NEVER);
            value = lowest;
            place /= FAN;
        }
    }

    /// Returns the part with the earliest event and the event's time; `None` if the agenda is empty.
    #[inline]
    pub fn next(&self) -> Option<(usize, Instant)> {
        let top = self.levels.last()?;
        let earliest = top.iter().copied().min().unwrap_or(NEVER);
        if earliest == NEVER {
            return None;
        }
        let mut place = 0;
        for level in self.levels.iter().rev() {
            let group = place * FAN;
            let at = level[group..group + FAN].iter().position(|time| *time == earliest).unwrap_or(0);
            place = group + at;
        }
        Some((place, Instant::from_nanos(earliest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_is_next_at_first() {
        for parts in [0, 1, 7, 8, 9, 64, 65, 1000] {
            assert_eq!(Agenda::new(parts).next(), None);
        }
    }

    proptest! {
        #[test]
        fn the_earliest_comes_first(parts in 1usize..200, changes in prop::collection::vec((0usize..200, 0u64..50), 1..300)) {
            let mut agenda = Agenda::new(parts);
            let mut times = vec![NEVER; parts];
            for (part, time) in changes {
                // Time 49 removes the event, so removals are tested as often as any one time.
                let time = if time == 49 { NEVER } else { time };
                agenda.set(part % parts, Instant::from_nanos(time));
                times[part % parts] = time;
                let first = times.iter().enumerate().filter(|(_, time)| **time != NEVER).min_by_key(|(part, time)| (**time, *part));
                let expected = first.map(|(part, time)| (part, Instant::from_nanos(*time)));
                prop_assert_eq!(agenda.next(), expected);
            }
        }
    }
}
