//! A store of elements at numbered places, in pieces of memory that never move and are freed as soon as they are
//! empty. A million elements can be added and removed without copying. Low places are filled first, so that remaining
//! elements lie close together.
use std::collections::BTreeSet;
use std::ops::Range;
use weir_memory::{BlockArena, prefetch};

/// Number of places per piece.
const PIECE: usize = 256;

/// Number of pieces per span. The places of a span correspond to two megabytes of an array with 32 bytes per place.
const SPAN: usize = 256;

/// Maximum number of missing pieces at the end forgotten when a piece is emptied: more than one, so that they do not
/// accumulate.
const MAX_FORGOTTEN: usize = 16;

/// A store of elements at numbered places.
#[derive(Debug)]
pub(crate) struct ChunkedSlab<T> {
    pieces: BlockArena<SlabPiece<T>>,
    /// Numbers of the pieces with a free place, including pieces that are not allocated.
    with_room: BTreeSet<u32>,
    len: usize,
    /// Number of allocated pieces in each span.
    spans: Vec<u16>,
    /// Spans that were emptied and not yet returned by [`ChunkedSlab::vacated`].
    vacated: Vec<usize>,
}

#[derive(Debug)]
struct SlabPiece<T> {
    places: [SlabPlace<T>; PIECE],
    /// The first free place, or [`PIECE`] if there is none.
    free: u16,
    used: u16,
}

#[derive(Debug)]
enum SlabPlace<T> {
    Taken(T),
    /// The next free place of the piece, or [`PIECE`].
    Free(u16),
}

impl<T> Default for ChunkedSlab<T> {
    fn default() -> ChunkedSlab<T> {
        ChunkedSlab {
            pieces: BlockArena::default(),
            with_room: BTreeSet::new(),
            len: 0,
            spans: Vec::new(),
            vacated: Vec::new(),
        }
    }
}

impl<T> ChunkedSlab<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of places, including free ones.
    pub(crate) fn n_places(&self) -> usize {
        self.pieces.len() * PIECE
    }

    /// Returns the element at a place.
    #[inline]
    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        match &self.pieces.get(place as usize / PIECE)?.places[place as usize % PIECE] {
            SlabPlace::Taken(thing) => Some(thing),
            SlabPlace::Free(_) => None,
        }
    }

    /// Prefetches the element at a place.
    pub(crate) fn fetch(&self, place: u32) {
        if let Some(piece) = self.pieces.get(place as usize / PIECE) {
            prefetch(&piece.places, place as usize % PIECE);
        }
    }

    /// Returns the element at a place, mutably.
    #[inline]
    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        match &mut self.pieces.get_mut(place as usize / PIECE)?.places[place as usize % PIECE] {
            SlabPlace::Taken(thing) => Some(thing),
            SlabPlace::Free(_) => None,
        }
    }

    /// Returns the place where [`ChunkedSlab::insert`] puts the next element.
    pub(crate) fn next_place(&self) -> u32 {
        let number = self.with_room.first().map_or(self.pieces.len(), |number| *number as usize);
        let free = self.pieces.get(number).map_or(0, |piece| piece.free);
        u32::try_from(number * PIECE).unwrap_or(u32::MAX) + u32::from(free)
    }

    /// Inserts an element at a free place and returns the place.
    ///
    /// # Panics
    /// There are more elements than a 32-bit number can count; callers limit them.
    pub(crate) fn insert(&mut self, thing: T) -> u32 {
        let number = self.with_room.first().copied().unwrap_or_else(|| {
            let number = u32::try_from(self.pieces.len()).expect("fewer things than numbers");
            self.with_room.insert(number);
            number
        });
        let piece = self.piece(number as usize);
        let at = piece.free;
        if let SlabPlace::Free(next) = std::mem::replace(&mut piece.places[usize::from(at)], SlabPlace::Taken(thing)) {
            piece.free = next;
        }
        piece.used += 1;
        if usize::from(piece.used) == PIECE {
            self.with_room.remove(&number);
        }
        self.len += 1;
        u32::try_from(number as usize * PIECE).expect("fewer things than numbers") + u32::from(at)
    }

    /// Inserts an element at the free place that it was removed from.
    pub(crate) fn put_back(&mut self, place: u32, thing: T) {
        let number = place as usize / PIECE;
        self.with_room.extend((self.pieces.len()..=number).filter_map(|number| u32::try_from(number).ok()));
        let piece = self.piece(number);
        let at = u16::try_from(place as usize % PIECE).unwrap_or(0);
        piece.take_free(at);
        piece.places[usize::from(at)] = SlabPlace::Taken(thing);
        piece.used += 1;
        if usize::from(piece.used) == PIECE {
            self.with_room.remove(&(place / u32::try_from(PIECE).unwrap_or(1)));
        }
        self.len += 1;
    }

    /// Removes the element at a place and returns it.
    pub(crate) fn remove(&mut self, place: u32) -> Option<T> {
        let number = place as usize / PIECE;
        let piece = self.pieces.get_mut(number)?;
        let slot = &mut piece.places[place as usize % PIECE];
        if matches!(slot, SlabPlace::Free(_)) {
            return None;
        }
        let SlabPlace::Taken(thing) = std::mem::replace(slot, SlabPlace::Free(piece.free)) else { return None };
        piece.free = u16::try_from(place as usize % PIECE).unwrap_or(0);
        piece.used -= 1;
        if usize::from(piece.used) == PIECE - 1 {
            self.with_room.insert(place / u32::try_from(PIECE).unwrap_or(1));
        }
        self.len -= 1;
        if piece.used == 0 {
            self.drop_piece(number);
        }
        Some(thing)
    }

    /// Returns the elements at the places `from..from + most`, with their places. Free places are left out.
    pub(crate) fn places(&self, from: usize, most: usize) -> impl Iterator<Item = (u32, &T)> {
        let end = from.saturating_add(most).min(self.n_places());
        let mut at = from;
        std::iter::from_fn(move || {
            while at < end {
                let Some(piece) = self.pieces.get(at / PIECE) else {
                    at = (at / PIECE + 1) * PIECE;
                    continue;
                };
                let place = at;
                at += 1;
                if let SlabPlace::Taken(thing) = &piece.places[place % PIECE] {
                    return Some((u32::try_from(place).ok()?, thing));
                }
            }
            None
        })
    }

    /// Finds the last element below the place `end` and sets `end` to its place, or to 0 if there is none. Decrements
    /// `most` for each place and each missing piece examined, and stops at zero.
    pub(crate) fn last_below(&self, end: &mut u32, most: &mut usize) -> Option<&T> {
        *end = (*end).min(u32::try_from(self.n_places()).unwrap_or(u32::MAX));
        while *end > 0 && *most > 0 {
            *most -= 1;
            let place = *end - 1;
            if let Some(piece) = self.pieces.get(place as usize / PIECE) {
                *end = place;
                if let SlabPlace::Taken(thing) = &piece.places[place as usize % PIECE] {
                    return Some(thing);
                }
            } else {
                *end = place - place % u32::try_from(PIECE).unwrap_or(1);
            }
        }
        None
    }

    /// Frees the memory of removed elements, a few pieces per call, because freeing thousands at once would take
    /// long. Returns true if no more is left to free.
    pub(crate) fn give_back(&mut self) -> bool {
        self.shorten() & self.pieces.give_back()
    }

    /// Returns a range of places that was emptied since the last call and still is empty, extended by adjacent empty
    /// spans.
    pub(crate) fn vacated(&mut self) -> Option<Range<usize>> {
        let is_empty = |span: usize| self.spans.get(span).is_none_or(|count| *count == 0);
        let span = loop {
            let span = self.vacated.pop()?;
            if is_empty(span) && span < self.spans.len() {
                break span;
            }
        };
        let first = (0..span).rev().take_while(|span| is_empty(*span)).last().unwrap_or(span);
        let end = (span..self.spans.len()).find(|span| !is_empty(*span)).unwrap_or(self.spans.len());
        Some(first * SPAN * PIECE..end * SPAN * PIECE)
    }

    /// States that a range returned by [`ChunkedSlab::vacated`] has not been handled completely. It will be returned
    /// again.
    pub(crate) fn is_still_vacated(&mut self, places: &Range<usize>) {
        self.vacated.push(places.start / (SPAN * PIECE));
    }

    /// Returns a piece, allocated if it is missing.
    fn piece(&mut self, number: usize) -> &mut SlabPiece<T> {
        if self.pieces.get(number).is_none() {
            if self.spans.len() <= number / SPAN {
                self.spans.resize(number / SPAN + 1, 0);
            }
            self.spans[number / SPAN] += 1;
            self.pieces.put(number, SlabPiece::new());
        }
        self.pieces.get_mut(number).expect("it was put there")
    }

    fn drop_piece(&mut self, number: usize) {
        self.pieces.remove(number);
        let span = &mut self.spans[number / SPAN];
        *span -= 1;
        if *span == 0 {
            self.vacated.push(number / SPAN);
        }
        self.shorten();
        if self.len == 0 {
            self.with_room.clear();
            while self.pieces.forget_last() {}
            (self.spans, self.vacated) = Default::default();
        }
    }

    /// Forgets missing pieces at the end, a few per call. Returns true if no more is left to forget.
    fn shorten(&mut self) -> bool {
        for _ in 0..MAX_FORGOTTEN {
            if !self.pieces.forget_last() {
                return true;
            }
            self.with_room.remove(&u32::try_from(self.pieces.len()).unwrap_or(u32::MAX));
        }
        false
    }
}

impl<T> SlabPiece<T> {
    fn new() -> SlabPiece<T> {
        let places = std::array::from_fn(|at| SlabPlace::Free(u16::try_from(at + 1).unwrap_or(u16::MAX)));
        SlabPiece { places, free: 0, used: 0 }
    }

    /// Removes a place from the list of free ones.
    fn take_free(&mut self, at: u16) {
        let SlabPlace::Free(next) = self.places[usize::from(at)] else { return };
        if self.free == at {
            self.free = next;
            return;
        }
        let before = self.places.iter_mut().find(|place| matches!(place, SlabPlace::Free(next) if *next == at));
        if let Some(before) = before {
            *before = SlabPlace::Free(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_that_are_empty_are_told_once() {
        let mut slab = ChunkedSlab::default();
        let span = SPAN * PIECE;
        (0..5 * span).for_each(|_| _ = slab.insert(()));
        let empty = |slab: &mut ChunkedSlab<()>, spans: Range<usize>| {
            (spans.start * span..spans.end * span).for_each(|place| _ = slab.remove(u32::try_from(place).unwrap()));
        };
        empty(&mut slab, 1..3);
        slab.remove(0);
        assert_eq!(slab.vacated(), Some(span..3 * span));
        slab.is_still_vacated(&(span..3 * span));
        empty(&mut slab, 3..4);
        let told: Vec<_> = std::iter::from_fn(|| slab.vacated()).collect();
        assert!(!told.is_empty() && told.iter().all(|places| *places == (span..4 * span)), "{told:?}");
        (0..=span).for_each(|_| _ = slab.insert(()));
        empty(&mut slab, 4..5);
        assert_eq!((slab.vacated(), slab.vacated()), (Some(2 * span..5 * span), None));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_does_what_a_map_does(changes in proptest::collection::vec((0..5_u8, 0..2000_u32), 0..4000)) {
            let (mut slab, mut map) = (ChunkedSlab::default(), std::collections::BTreeMap::new());
            for (kind, number) in changes {
                if kind < 3 {
                    let expected = slab.next_place();
                    let place = slab.insert(number);
                    prop_assert_eq!(place, expected);
                    prop_assert!(map.insert(place, number).is_none(), "the place was taken");
                } else {
                    prop_assert_eq!(slab.remove(number), map.remove(&number));
                }
                prop_assert_eq!((slab.len(), slab.get(number)), (map.len(), map.get(&number)));
            }
            let there: Vec<_> = slab.places(0, usize::MAX).map(|(place, number)| (place, *number)).collect();
            prop_assert_eq!(&there, &map.iter().map(|(place, number)| (*place, *number)).collect::<Vec<_>>());
            let (mut end, mut backwards) = (u32::MAX, Vec::new());
            while end > 0 {
                let mut most = 7;
                while let Some(number) = slab.last_below(&mut end, &mut most) {
                    backwards.push((end, *number));
                }
            }
            prop_assert!(there.iter().rev().eq(&backwards));
            let gone: Vec<_> = map.keys().map(|place| (*place, slab.remove(*place).unwrap())).collect();
            prop_assert_eq!((slab.len(), slab.n_places(), slab.with_room.len()), (0, 0, 0));
            gone.iter().for_each(|(place, number)| slab.put_back(*place, *number));
            prop_assert!(gone.iter().all(|(place, number)| slab.get(*place) == Some(number)));
            let taken = slab.insert(0);
            prop_assert!(!map.contains_key(&taken));
            slab.remove(taken);
            gone.iter().for_each(|(place, _)| assert!(slab.remove(*place).is_some()));
            prop_assert_eq!((slab.len(), slab.n_places(), slab.with_room.len()), (0, 0, 0));
        }
    }
}
