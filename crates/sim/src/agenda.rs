//! What happens next: for each part of a simulation the time of its next event.
use weir_units::Instant;

/// Children of a node of the tree: a cache line of times.
const FAN: usize = 8;

/// The next event of each of a fixed number of parts, found earliest first; of equal times that of the smallest number.
///
/// Parts of a network have one next event each: a source its next packet, a line its next bit. So there is no list of events that
/// grows and nothing to allocate: a tree of minima holds them all, and an event costs a walk over its few levels. That equal times come in
/// the order of the parts' numbers makes runs repeatable.
#[derive(Debug, Clone)]
pub struct Agenda {
    /// Levels of minima, the times themselves first, each a multiple of [`FAN`] long.
    levels: Vec<Vec<u64>>,
}

const NEVER: u64 = u64::MAX;

impl Agenda {
    /// An agenda for parts `0..parts`, on which nothing is.
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

    /// When the part's next event is; [`Instant::FAR`]: there is none.
    #[inline]
    pub fn at(&self, part: usize) -> Instant {
        Instant::from_nanos(self.levels[0][part])
    }

    /// Puts the part's next event at this time, instead of the one before; [`Instant::FAR`]: there is none.
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

    /// The part whose event is next, and when; none if there is none.
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
                // The rarest of all: taking off.
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
