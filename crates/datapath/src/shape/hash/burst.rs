//! Looks up a burst in passes. Each pass prefetches the memory that the next one reads, so that the packets' memory
//! waits overlap.
use super::EntryHashTable;
use super::masks::{TupleMasks, with_masks};
use super::tuples::TupleId;
use crate::shape::{BurstHeaders, EntryId, Lanes, MAX_BURST};

impl EntryHashTable {
    /// Looks up packets in a tuple. Calls `hit` with the lane, the priority and the entry for each packet that
    /// matches an entry.
    #[inline]
    pub(crate) fn get_burst(
        &self,
        tuple: TupleId,
        keys: &BurstHeaders,
        lanes: Lanes,
        hit: impl FnMut(usize, u16, EntryId),
    ) {
        with_masks!(self.tuples.get(tuple), masks => self.burst(&masks, tuple, keys, lanes, hit));
    }

    #[inline(always)]
    fn burst(
        &self,
        masks: &impl TupleMasks,
        tuple: TupleId,
        keys: &BurstHeaders,
        lanes: Lanes,
        mut hit: impl FnMut(usize, u16, EntryId),
    ) {
        let (secret, of) = (self.tuples.secret(), self.tuples.get(tuple));
        // Pass 1: compute each packet's hash, and prefetch its bucket.
        let mut hashes = [0; MAX_BURST];
        lanes.each(|lane| {
            let hash = masks.hash(secret, of.seed, &keys[lane].key);
            hashes[lane] = hash;
            self.directory.fetch(hash);
        });
        // Pass 2: find the probable entry, and prefetch its slot.
        let mut probable = [EntryId::NONE; MAX_BURST];
        lanes.each(|lane| {
            probable[lane] = self.probable(hashes[lane]);
        });
        // Pass 3: prefetch the words that do not fit in the slot.
        if masks.is_far() {
            lanes.each(|lane| self.slots.fetch_far(probable[lane].0, of.pairs().len()));
        }
        // Pass 4: compare. If the probable entry differs, another entry with the same hash may match.
        lanes.each(|lane| {
            let (id, key) = (probable[lane], &keys[lane].key);
            if let Some(slot) = self.slots.get(id.0)
                && slot.tuple == tuple.0
                && masks.is_match(key, slot, &self.slots)
            {
                hit(lane, slot.priority, id);
            } else if let Some((priority, id)) = self.candidate(masks, tuple, key, hashes[lane]) {
                hit(lane, priority, id);
            }
        });
    }
}
