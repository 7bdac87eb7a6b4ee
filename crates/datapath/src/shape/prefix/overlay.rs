//! Tries over the hash that a table's entries are in: made a few entries with each change, given up at once when an entry does not
//! fit, and used only while all entries are in them.
use super::super::hash::EntryHash;
use super::super::{EntryId, WordMatches};
use super::{Prefixes, Refused};

/// Masks from which on searching tries is faster than hashing for each.
const MIN_TUPLES: usize = 3;
/// Entries that are worth the memory of a trie.
const MIN_ENTRIES: usize = 16;
/// Places of the hash that are looked at with each change: so many entries take some microseconds.
const PLACES_A_STEP: usize = 16;

/// See the module's page.
#[derive(Debug)]
pub(crate) enum Overlay {
    /// There are none; `refused_len` is how many entries the table had when it was last found that they do not fit, or 0.
    None { refused_len: usize },
    /// The entries in the places before `next` have been looked at: at first to put in those that belong into a trie, and once more, since
    /// it shows only then into which trie addresses that are looked at as a whole belong.
    Partial { prefixes: Prefixes, next: usize, is_second: bool },
    /// All entries are in.
    Whole(Prefixes),
}

impl Default for Overlay {
    fn default() -> Overlay {
        Overlay::None { refused_len: 0 }
    }
}

impl Overlay {
    /// The tries, if all entries are in.
    #[inline(always)]
    pub(crate) fn whole(&self) -> Option<&Prefixes> {
        match self {
            Overlay::Whole(prefixes) => Some(prefixes),
            _ => None,
        }
    }

    /// An entry has come to the hash.
    pub(crate) fn added(&mut self, entries: &EntryHash, id: EntryId, priority: u16, words: &WordMatches) {
        let result = match self {
            Overlay::None { .. } => Ok(()),
            Overlay::Partial { prefixes, is_second, .. } => put(prefixes, *is_second, (id, priority, words)),
            Overlay::Whole(prefixes) => prefixes.insert(id, priority, words),
        };
        self.go_on(entries, result);
    }

    /// An entry has gone from the hash.
    pub(crate) fn removed(&mut self, entries: &EntryHash, id: EntryId, priority: u16, words: &WordMatches) {
        let result = match self {
            Overlay::None { .. } => Ok(()),
            Overlay::Partial { prefixes, .. } | Overlay::Whole(prefixes) => prefixes.remove(id, priority, words),
        };
        self.go_on(entries, result);
    }

    /// Does some of what is left to do without a change; whether there may be more.
    pub(crate) fn settle(&mut self, entries: &EntryHash) -> bool {
        let is_partial = matches!(self, Overlay::Partial { .. });
        if is_partial {
            self.go_on(entries, Ok(()));
        }
        is_partial
    }

    /// Bytes of memory that it has.
    pub(crate) fn held(&self) -> usize {
        match self {
            Overlay::None { .. } => 0,
            Overlay::Partial { prefixes, .. } | Overlay::Whole(prefixes) => prefixes.held(),
        }
    }

    /// Does what the last change makes necessary, and some of what is left to do.
    fn go_on(&mut self, entries: &EntryHash, result: Result<(), Refused>) {
        let n_tuples = entries.tuples().in_order().len();
        if result.and_then(|()| self.step(entries)) == Err(Refused) {
            *self = Overlay::None { refused_len: entries.len() };
        } else if n_tuples < MIN_TUPLES - 1 {
            *self = Overlay::default();
        } else if let Overlay::None { refused_len } = *self
            && n_tuples >= MIN_TUPLES
            && entries.len() >= MIN_ENTRIES
            && (entries.len() >= 2 * refused_len || entries.len() <= refused_len / 2)
        {
            *self = Overlay::Partial { prefixes: Prefixes::default(), next: 0, is_second: false };
        }
    }

    fn step(&mut self, entries: &EntryHash) -> Result<(), Refused> {
        let Overlay::Partial { prefixes, next, is_second } = self else { return Ok(()) };
        for (id, priority, words) in entries.entries(*next, PLACES_A_STEP) {
            if !prefixes.has(id, priority, &words) {
                put(prefixes, *is_second, (id, priority, &words))?;
            }
        }
        *next += PLACES_A_STEP;
        if *next >= entries.n_places() {
            match *is_second {
                true => *self = Overlay::Whole(std::mem::take(prefixes)),
                false => (*next, *is_second) = (0, true),
            }
        }
        Ok(())
    }
}

/// Puts an entry in; the first time only if it belongs into a trie.
fn put(prefixes: &mut Prefixes, is_second: bool, entry: (EntryId, u16, &WordMatches)) -> Result<(), Refused> {
    let (id, priority, words) = entry;
    if is_second || prefixes.has_trie_for(words) { prefixes.insert(id, priority, words) } else { Ok(()) }
}
