//! The entries of one layout: their trie, and those that have the match of another.
use super::super::EntryId;
use super::layout::Layout;
use super::order::Order;
use super::trie::{Leaf, Prefix, Trie};
use super::walk::Address;
use std::collections::BTreeMap;
use weir_memory::OutOfMemory;

/// See the module's page.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) layout: Layout,
    pub(super) trie: Trie,
    /// Entries whose prefix has an entry of higher priority: that one alone is in the trie.
    beaten: BTreeMap<(Prefix, u16), EntryId>,
    pub(super) order: Order,
    len: usize,
}

impl Group {
    pub(super) fn new(layout: Layout) -> Result<Group, OutOfMemory> {
        Ok(Group { layout, trie: Trie::new()?, beaten: BTreeMap::new(), order: Order::new(), len: 0 })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an entry; none of the same prefix and priority is there.
    pub(super) fn insert(&mut self, prefix: Prefix, leaf: Leaf) -> Result<(), OutOfMemory> {
        match self.trie.get(prefix) {
            Some(there) if there.priority >= leaf.priority => {
                self.beaten.insert((prefix, leaf.priority), leaf.id);
            }
            there => {
                self.trie.set(prefix, leaf)?;
                self.beaten.extend(there.map(|lower| ((prefix, lower.priority), lower.id)));
            }
        }
        self.order.add(prefix.len, leaf.priority);
        self.len += 1;
        Ok(())
    }

    /// Removes an entry; whether it was there.
    pub(super) fn remove(&mut self, prefix: Prefix, leaf: Leaf) -> Result<bool, OutOfMemory> {
        if self.trie.get(prefix) == Some(leaf) {
            match self.beaten.range((prefix, 0)..=(prefix, u16::MAX)).next_back() {
                Some((&(_, priority), &id)) => {
                    self.trie.set(prefix, Leaf { id, priority })?;
                    self.beaten.remove(&(prefix, priority));
                }
                None => self.trie.clear(prefix)?,
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

    /// The entry of exactly this prefix and priority.
    pub(super) fn find(&self, prefix: Prefix, priority: u16) -> Option<EntryId> {
        let best = self.trie.get(prefix)?;
        if best.priority == priority {
            return Some(best.id);
        }
        self.beaten.get(&(prefix, priority)).copied()
    }

    /// What an address finds, or [`Leaf::NONE`].
    #[inline(always)]
    pub(super) fn lookup<A: Address>(&self, address: A) -> Leaf {
        if self.order.is_by_length() { self.trie.longest(address) } else { self.trie.highest(address) }
    }

    /// The bytes that it occupies.
    pub(super) fn held(&self) -> usize {
        // A node of the tree of beaten entries is at least half full.
        self.trie.held() + 2 * self.beaten.len() * size_of::<((Prefix, u16), EntryId)>()
    }
}
