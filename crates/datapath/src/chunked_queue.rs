//! A long double-ended queue in separately allocated pieces that never move. Growing or emptying it never takes time
//! proportional to its length, for which packets would have to wait.
use std::collections::VecDeque;

/// Number of elements per piece.
const PIECE: usize = 256;

/// A queue of elements in pieces of [`PIECE`] elements.
#[derive(Debug)]
pub(crate) struct ChunkedQueue<T> {
    /// The pieces in order; none is empty.
    pieces: VecDeque<VecDeque<T>>,
    len: usize,
}

impl<T> Default for ChunkedQueue<T> {
    fn default() -> ChunkedQueue<T> {
        ChunkedQueue { pieces: VecDeque::new(), len: 0 }
    }
}

impl<T> ChunkedQueue<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Appends an element.
    pub(crate) fn push(&mut self, element: T) {
        self.len += 1;
        match self.pieces.back_mut().filter(|piece| piece.len() < PIECE) {
            Some(piece) => piece.push_back(element),
            None => {
                let mut piece = VecDeque::with_capacity(PIECE);
                piece.push_back(element);
                self.pieces.push_back(piece);
            }
        }
    }

    /// Returns all elements in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten()
    }

    /// Removes the first element and returns it.
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let piece = self.pieces.front_mut()?;
        let element = piece.pop_front();
        if piece.is_empty() {
            self.pieces.pop_front();
        }
        self.len -= 1;
        element
    }

    /// Removes the last element and returns it.
    pub(crate) fn pop_back(&mut self) -> Option<T> {
        let piece = self.pieces.back_mut()?;
        let element = piece.pop_back();
        if piece.is_empty() {
            self.pieces.pop_back();
        }
        self.len -= 1;
        element
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_give_what_was_put_in() {
        let mut chunks = ChunkedQueue::default();
        (0..1000).for_each(|number| chunks.push(number));
        assert_eq!(chunks.iter().copied().collect::<Vec<_>>(), (0..1000).collect::<Vec<_>>());
        assert_eq!((chunks.len(), chunks.pop_front(), chunks.pop_back()), (1000, Some(0), Some(999)));
        let front: Vec<i32> = std::iter::from_fn(|| chunks.pop_front()).take(600).collect();
        assert_eq!(front, (1..601).collect::<Vec<_>>());
        chunks.push(-1);
        let back: Vec<i32> = std::iter::from_fn(|| chunks.pop_back()).collect();
        assert_eq!(back, std::iter::once(-1).chain((601..999).rev()).collect::<Vec<_>>());
        assert_eq!((chunks.len(), chunks.pop_front()), (0, None));
    }
}
