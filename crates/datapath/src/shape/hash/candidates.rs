//! Finds the entries related to a match by their tuples, so that a non-strict flow-mod or the overlap check need not
//! visit all entries. Gives no answer if the masks alone do not settle it. Also finds the best entry of those visible
//! to a packet.
use super::{EntryHashTable, MaskTuple};
use crate::shape::{EntryId, WordMatch, WordMatches};
use weir_packet::FlowKey;

/// Maximum number of tuples examined. With more tuples, visiting the entries a few at a time is as good.
const MAX_TUPLES: usize = 128;

/// Maximum number of entries returned.
const MOST: usize = 64;

impl EntryHashTable {
    /// Returns the entries whose match lies within `words`. Returns `None` if entries with another mask than that of
    /// `words` could be among them, or if there are more than [`MAX_TUPLES`] tuples or more than [`MOST`] such
    /// entries.
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

    /// Returns the highest-priority entry that a packet matches among the entries for which `shows` returns true.
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

    /// Returns the entries of this priority that share packets with `words`. Returns `None` if some tuple with
    /// entries of this priority could have more than one of them, or if there are more than [`MAX_TUPLES`] tuples.
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

impl MaskTuple {
    /// Returns true if the tuple's mask has all bits of a match's mask.
    fn covers(&self, words: &WordMatches) -> bool {
        let looks = |bits: &WordMatch| {
            self.words().iter().any(|own| own.word == bits.word && own.mask & bits.mask == bits.mask)
        };
        words.iter().all(looks)
    }

    /// Restricts a match to this tuple's mask; `None` if the tuple's mask has bits that the match does not specify.
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
