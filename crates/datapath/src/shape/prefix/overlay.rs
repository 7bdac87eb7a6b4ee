//! Builds tries over the hash that holds a table's entries: a few entries with each change of the table. The tries are
//! discarded as soon as an entry does not fit, and used only while they contain all entries.
use super::super::hash::EntryHashTable;
use super::super::{EntryId, WordMatches};
use super::{PrefixClassifier, PrefixError};

/// Minimum number of masks for which searching tries is faster than hashing for each mask.
const MIN_TUPLES: usize = 3;
/// Minimum number of entries that justify the memory of a trie.
const MIN_ENTRIES: usize = 16;
/// Number of hash places examined with each change. Inserting that many entries takes some microseconds.
const PLACES_A_STEP: usize = 16;

/// Tries over a table's hash: see the [module](self).
#[derive(Debug)]
pub(crate) enum PrefixOverlay {
    /// No tries. `refused_len` is the number of entries of the table when they last did not fit, or 0.
    None { refused_len: usize },
    /// Tries under construction. In the current pass, the entries in the hash's places before `next` have been
    /// examined. The first pass inserts the entries that fit in a trie or start one. The second pass inserts the rest:
    /// an entry with a full-length address starts no trie, and may have been examined before the one that started its
    /// trie.
    Partial { prefixes: PrefixClassifier, next: usize, is_second: bool },
    /// Tries with all entries.
    Whole(PrefixClassifier),
}

impl Default for PrefixOverlay {
    fn default() -> PrefixOverlay {
        PrefixOverlay::None { refused_len: 0 }
    }
}

impl PrefixOverlay {
    /// Returns the tries if they contain all entries.
    #[inline(always)]
    pub(crate) fn whole(&self) -> Option<&PrefixClassifier> {
        match self {
            PrefixOverlay::Whole(prefixes) => Some(prefixes),
            _ => None,
        }
    }

    /// Updates the tries after an entry was inserted into the hash.
    pub(crate) fn added(&mut self, entries: &EntryHashTable, id: EntryId, priority: u16, words: &WordMatches) {
        let result = match self {
            PrefixOverlay::None { .. } => Ok(()),
            PrefixOverlay::Partial { prefixes, is_second, .. } => put(prefixes, *is_second, (id, priority, words)),
            PrefixOverlay::Whole(prefixes) => prefixes.insert(id, priority, words),
        };
        self.go_on(entries, result);
    }

    /// Updates the tries after an entry was removed from the hash.
    pub(crate) fn removed(&mut self, entries: &EntryHashTable, id: EntryId, priority: u16, words: &WordMatches) {
        let result = match self {
            PrefixOverlay::None { .. } => Ok(()),
            PrefixOverlay::Partial { prefixes, .. } | PrefixOverlay::Whole(prefixes) => {
                prefixes.remove(id, priority, words)
            }
        };
        self.go_on(entries, result);
    }

    /// Continues the construction without a change. Returns true if there may be more to do.
    pub(crate) fn settle(&mut self, entries: &EntryHashTable) -> bool {
        let is_partial = matches!(self, PrefixOverlay::Partial { .. });
        if is_partial {
            self.go_on(entries, Ok(()));
        }
        is_partial
    }

    /// Returns the memory held, in bytes.
    pub(crate) fn held(&self) -> usize {
        match self {
            PrefixOverlay::None { .. } => 0,
            PrefixOverlay::Partial { prefixes, .. } | PrefixOverlay::Whole(prefixes) => prefixes.held(),
        }
    }

    /// Continues the construction after a change of the tries, or starts one. Discards the tries if the change was
    /// refused.
    fn go_on(&mut self, entries: &EntryHashTable, result: Result<(), PrefixError>) {
        let n_tuples = entries.tuples().in_order().len();
        if result.and_then(|()| self.step(entries)) == Err(PrefixError) {
            *self = PrefixOverlay::None { refused_len: entries.len() };
        } else if n_tuples < MIN_TUPLES - 1 {
            *self = PrefixOverlay::default();
        } else if let PrefixOverlay::None { refused_len } = *self
            && n_tuples >= MIN_TUPLES
            && entries.len() >= MIN_ENTRIES
            && (entries.len() >= 2 * refused_len || entries.len() <= refused_len / 2)
        {
            *self = PrefixOverlay::Partial { prefixes: PrefixClassifier::default(), next: 0, is_second: false };
        }
    }

    fn step(&mut self, entries: &EntryHashTable) -> Result<(), PrefixError> {
        let PrefixOverlay::Partial { prefixes, next, is_second } = self else { return Ok(()) };
        for (id, priority, words) in entries.entries(*next, PLACES_A_STEP) {
            if !prefixes.has(id, priority, &words) {
                put(prefixes, *is_second, (id, priority, &words))?;
            }
        }
        *next += PLACES_A_STEP;
        if *next >= entries.n_places() {
            match *is_second {
                true => *self = PrefixOverlay::Whole(std::mem::take(prefixes)),
                false => (*next, *is_second) = (0, true),
            }
        }
        Ok(())
    }
}

/// Inserts an entry; in the first pass only if it belongs in a trie.
fn put(
    prefixes: &mut PrefixClassifier,
    is_second: bool,
    entry: (EntryId, u16, &WordMatches),
) -> Result<(), PrefixError> {
    let (id, priority, words) = entry;
    if is_second || prefixes.has_trie_for(words) { prefixes.insert(id, priority, words) } else { Ok(()) }
}
