//! Entries that a match has to do with, found by their tuples: what a non-strict flow-mod, or the check for overlaps, would go through all
//! entries for otherwise. Where the entries' masks do not say it, there is no answer. And the best entry of those that packets see.
use super::{EntryHash, Tuple};
use crate::shape::{EntryId, WordMatch, WordMatches};
use weir_packet::FlowKey;

/// Tuples that are looked at; with more of them going through the entries, a few at a time, is as good.
const MAX_TUPLES: usize = 128;

/// Entries found at most.
const MOST: usize = 64;

impl EntryHash {
    /// The entries that match nothing but what `words` does too; none of an answer if more masks than that of `words` itself can have
    /// some.
    pub(crate) fn few_within(&self, words: &WordMatches) -> Option<Vec<EntryId>> {
        if self.tuples.in_order().len() > MAX_TUPLES {
            return None;
        }
        let own = self.tuples.find(words);
        let mut others = self.tuples.in_order().filter(|(_, id)| Some(*id) != own);
        if others.any(|(_, id)| self.tuples.get(id).covers(words)) {
            return None;
        }
        let Some(own) = own else { return Some(Vec::new()) };
        let packed = self.tuples.get(own).pack(words);
        let Some((_, best)) = self.best_of_match(own, packed.values()).1 else { return Some(Vec::new()) };
        let hidden = self.hidden.get(&best).into_iter().flat_map(|hidden| hidden.values().copied());
        let found: Vec<EntryId> = std::iter::once(best).chain(hidden).take(MOST + 1).collect();
        (found.len() <= MOST).then_some(found)
    }

    /// The entry that a packet matches, of those that `shows` lets through.
    pub(crate) fn lookup_among(&self, key: &FlowKey, shows: &dyn Fn(EntryId) -> bool) -> Option<EntryId> {
        let mut best: Option<(u16, EntryId)> = None;
        for (highest, tuple) in self.tuples.in_order() {
            if best.is_some_and(|(priority, _)| priority >= highest) {
                break;
            }
            let Some(first) = self.get(tuple, key) else { continue };
            let hidden = self.hidden.get(&first.1).into_iter().flatten().rev().map(|(priority, id)| (*priority, *id));
            let shown = std::iter::once(first).chain(hidden).find(|(_, id)| shows(*id));
            if shown.is_some_and(|(priority, _)| best.is_none_or(|(found, _)| found < priority)) {
                best = shown;
            }
        }
        best.map(|(_, id)| id)
    }

    /// Entries of this priority with which `words` shares packets; no answer if there is a tuple of entries with this priority of which
    /// more than one could do so.
    pub(crate) fn few_overlapping(&self, priority: u16, words: &WordMatches) -> Option<Vec<EntryId>> {
        if self.tuples.in_order().len() > MAX_TUPLES {
            return None;
        }
        let mut found = Vec::new();
        for (_, id) in self.tuples.in_order() {
            let tuple = self.tuples.get(id);
            if tuple.has_priority(priority) {
                found.extend(self.find(priority, &tuple.widened(words)?));
            }
        }
        Some(found)
    }
}

impl Tuple {
    /// Whether it looks at all the bits that a match looks at.
    fn covers(&self, words: &WordMatches) -> bool {
        let looks = |bits: &WordMatch| {
            self.words().iter().any(|own| own.word == bits.word && own.mask & bits.mask == bits.mask)
        };
        words.iter().all(looks)
    }

    /// What remains of a match with this tuple's mask; none if the tuple looks at more than the match says.
    fn widened(&self, words: &WordMatches) -> Option<WordMatches> {
        let said = |word: u8, mask: u64| {
            words.iter().find(|one| one.word == word && one.mask & mask == mask).map(|one| one.value & mask)
        };
        let wide = self.words().iter().map(|own| {
            let value = said(own.word, own.mask)?;
            Some(WordMatch { word: own.word, mask: own.mask, value })
        });
        wide.collect::<Option<Vec<_>>>().map(|words| WordMatches::of(words.into_iter()))
    }
}
