//! The classifier of a table: few entries are compared one after the other, more are hashed.
use super::linear::Linear;
use super::tuples::Tuples;
use super::{Classifier, EntryId, WordMatches};
use weir_packet::FlowKey;

/// With as many entries as this comparing costs as much as hashing (measured: `cargo bench -p weir-datapath`).
const MAX_LINEAR: usize = 4;

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Adaptive {
    shape: Shape,
    len: usize,
}

#[derive(Debug)]
enum Shape {
    Linear(Linear),
    Tuples(Box<Tuples>),
}

impl Default for Shape {
    fn default() -> Shape {
        Shape::Linear(Linear::default())
    }
}

impl Classifier for Adaptive {
    fn insert(&mut self, id: EntryId, priority: u16, words: WordMatches) {
        self.len += 1;
        if let Shape::Linear(linear) = &mut self.shape
            && self.len > MAX_LINEAR
        {
            let mut tuples = Box::<Tuples>::default();
            std::mem::take(linear).into_entries().for_each(|(id, priority, words)| tuples.insert(id, priority, words));
            self.shape = Shape::Tuples(tuples);
        }
        match &mut self.shape {
            Shape::Linear(linear) => linear.insert(id, priority, words),
            Shape::Tuples(tuples) => tuples.insert(id, priority, words),
        }
    }

    fn remove(&mut self, id: EntryId, priority: u16, words: &WordMatches) {
        self.len -= 1;
        match &mut self.shape {
            // A table that was large once may be again: it goes back only when it is empty, with its memory.
            Shape::Tuples(_) if self.len == 0 => self.shape = Shape::default(),
            Shape::Tuples(tuples) => tuples.remove(id, priority, words),
            Shape::Linear(linear) => linear.remove(id, priority, words),
        }
    }

    #[inline]
    fn lookup(&self, key: &FlowKey) -> Option<EntryId> {
        match &self.shape {
            Shape::Linear(linear) => linear.lookup(key),
            Shape::Tuples(tuples) => tuples.lookup(key),
        }
    }
}
