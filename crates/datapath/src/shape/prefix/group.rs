//! Entries of one layout: a trie with the highest-priority entry of each prefix, and a list of the entries below it
//! that have the same prefix and a lower priority.
use super::super::EntryId;
use super::layout::PrefixLayout;
use super::order::PrefixLengthOrder;
use super::trie::{Prefix, TreeBitmap, TrieLeaf};
use super::trie_rebuild::TrieRebuild;
use super::walk::PrefixAddress;
use std::collections::BTreeMap;
use weir_memory::OutOfMemory;
use weir_packet::FlowKey;

/// Entries of one layout: see the [module](self).
#[derive(Debug)]
pub(super) struct PrefixTrie {
    pub(super) layout: PrefixLayout,
    pub(super) trie: TreeBitmap,
    /// Entries outside the trie, because another entry with the same prefix has a higher priority; by prefix and
    /// priority.
    beaten: BTreeMap<(Prefix, u16), EntryId>,
    pub(super) order: PrefixLengthOrder,
    len: usize,
    /// Smaller copy of the trie, while it is under construction.
    renewal: Option<Box<TrieRebuild>>,
}

impl PrefixTrie {
    pub(super) fn new(layout: PrefixLayout) -> Result<PrefixTrie, OutOfMemory> {
        Ok(PrefixTrie {
            layout,
            trie: TreeBitmap::new()?,
            beaten: BTreeMap::new(),
            order: PrefixLengthOrder::new(),
            len: 0,
            renewal: None,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if an entry is present.
    pub(super) fn has(&self, prefix: Prefix, leaf: TrieLeaf) -> bool {
        self.trie.get(prefix) == Some(leaf) || self.beaten.get(&(prefix, leaf.priority)) == Some(&leaf.id)
    }

    /// Inserts an entry; none with the same prefix and priority may be present.
    pub(super) fn insert(&mut self, prefix: Prefix, leaf: TrieLeaf) -> Result<(), OutOfMemory> {
        match self.trie.get(prefix) {
            Some(there) if there.priority >= leaf.priority => {
                self.beaten.insert((prefix, leaf.priority), leaf.id);
            }
            there => {
                self.change(prefix, Some(leaf))?;
                self.beaten.extend(there.map(|lower| ((prefix, lower.priority), lower.id)));
            }
        }
        self.order.add(prefix.len, leaf.priority);
        self.len += 1;
        Ok(())
    }

    /// Removes an entry. Returns true if it was present.
    pub(super) fn remove(&mut self, prefix: Prefix, leaf: TrieLeaf) -> Result<bool, OutOfMemory> {
        if self.trie.get(prefix) == Some(leaf) {
            match self.beaten.range((prefix, 0)..=(prefix, u16::MAX)).next_back() {
                Some((&(_, priority), &id)) => {
                    self.change(prefix, Some(TrieLeaf { id, priority }))?;
                    self.beaten.remove(&(prefix, priority));
                }
                None => self.change(prefix, None)?,
            }
        } else if self.beaten.get(&(prefix, leaf.priority)) == Some(&leaf.id) {
            self.beaten.remove(&(prefix, leaf.priority));
        } else {
            return Ok(false);
        }
        self.order.remove(prefix.len);
        self.len -= 1;
        Ok(true)
    }

    /// Returns the entry found for a packet that the layout admits, or [`TrieLeaf::NONE`].
    #[inline(always)]
    pub(super) fn lookup(&self, key: &FlowKey) -> TrieLeaf {
        if self.layout.is_wide() { self.search(self.layout.wide(key)) } else { self.search(self.layout.narrow(key)) }
    }

    #[inline(always)]
    fn search<A: PrefixAddress>(&self, address: A) -> TrieLeaf {
        if self.order.is_by_length() { self.trie.longest(address) } else { self.trie.highest(address) }
    }

    /// Sets or clears the leaf of a prefix, and continues the renewal that releases memory.
    fn change(&mut self, prefix: Prefix, leaf: Option<TrieLeaf>) -> Result<(), OutOfMemory> {
        match leaf {
            Some(leaf) => self.trie.set(prefix, leaf)?,
            None => self.trie.clear(prefix)?,
        }
        let Some(renewal) = &mut self.renewal else {
            self.renewal = TrieRebuild::worthwhile(&self.trie);
            return Ok(());
        };
        renewal.change(prefix, leaf)?;
        if renewal.step(&self.trie)?
            && let Some(renewal) = self.renewal.take()
        {
            self.trie = renewal.finish();
        }
        Ok(())
    }

    /// Returns the memory held, in bytes.
    pub(super) fn held(&self) -> usize {
        // Nodes of the tree of beaten entries are at least half full.
        let renewal = self.renewal.as_ref().map_or(0, |renewal| renewal.held());
        self.trie.held() + renewal + 2 * self.beaten.len() * size_of::<((Prefix, u16), EntryId)>()
    }
}
