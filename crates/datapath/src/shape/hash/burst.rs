//! Looking up a burst: in passes, each of which asks for the memory that the next one reads, so that the packets' waits overlap.
use super::EntryHash;
use super::masks::{Masks, with_masks};
use super::tuples::TupleId;
use crate::shape::{EntryId, Lanes, MAX_BURST};
use weir_packet::Parsed;

impl EntryHash {
    /// Looks packets up in a tuple. `hit` is told of those that match an entry, with its priority.
    #[inline]
    pub(crate) fn get_burst(
        &self,
        tuple: TupleId,
        keys: &[Parsed; MAX_BURST],
        lanes: Lanes,
        hit: impl FnMut(usize, u16, EntryId),
    ) {
        with_masks!(self.tuples.get(tuple), masks => self.burst(&masks, tuple, keys, lanes, hit));
    }

    #[inline(always)]
    fn burst(
        &self,
        masks: &impl Masks,
        tuple: TupleId,
        keys: &[Parsed; MAX_BURST],
        lanes: Lanes,
        mut hit: impl FnMut(usize, u16, EntryId),
    ) {
        let (secret, of) = (self.tuples.secret(), self.tuples.get(tuple));
        // 1. Each packet's hash, and its bucket.
        let mut hashes = [0; MAX_BURST];
        lanes.each(|lane| {
            let hash = masks.hash(secret, of.seed, &keys[lane].key);
            hashes[lane] = hash;
            self.directory.fetch(hash);
        });
        // 2. The entry that it probably is, and its slot.
        let mut probable = [EntryId::NONE; MAX_BURST];
        lanes.each(|lane| {
            probable[lane] = self.probable(hashes[lane]);
        });
        // 3. What the slot has no room for.
        if masks.is_far() {
            lanes.each(|lane| self.slots.fetch_far(probable[lane].0, of.pairs().len()));
        }
        // 4. Whether it is; otherwise another of the same hash may be.
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
