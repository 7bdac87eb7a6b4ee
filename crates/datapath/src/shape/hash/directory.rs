//! Maps hashes to entries: a table that grows and shrinks by one bucket at a time (W. Litwin: Linear Hashing, VLDB
//! 1980), so that no flow-mod waits until all entries are moved.
//!
//! With `n` buckets, the lowest bits of an entry's hash name its bucket: as many bits as can name all buckets, or one
//! bit fewer if the result would exceed the last bucket. Adding bucket `n` moves entries from one other bucket;
//! removing it moves them back. A bucket not yet split in the current doubling therefore has twice the entries of a
//! split one. The average is chosen such that the twelve places suffice for nearly all buckets. Excess entries are in
//! further buckets, chained. A chain has no gaps: only its last bucket is not full.
//!
//! The length of chains depends on the hashes alone. Their key is random and secret ([`super::key`]), so no one can
//! choose entries that make chains longer than chance does.
use super::bucket::{BucketPlaces, HashBucket, PLACES, signature};
use weir_memory::{HugePageArray, OutOfMemory, prefetch};

/// Mean number of entries per bucket above which a bucket is added: 13 bytes an entry, and fewer than one entry in a
/// hundred beyond its first bucket.
const MOST_PER_BUCKET: usize = 5;

/// Number of entries per four buckets below which a bucket is removed. The margin to [`MOST_PER_BUCKET`] is wide
/// enough that adding and removing in turn changes no bucket.
const LEAST_PER_FOUR: usize = 15;

/// Map from hashes to entry ids: see the [module](self).
#[derive(Debug, Default)]
pub(super) struct HashDirectory {
    buckets: HugePageArray<HashBucket>,
    /// By bucket: the set of the low five bits of all signatures in its chain. A search of many tuples reads this
    /// filter before the bucket, because one cache line holds the filters of sixteen buckets.
    filters: HugePageArray<u32>,
    /// Second and later buckets of all chains.
    further: HugePageArray<HashBucket>,
    /// First empty bucket of `further`; the empty ones form a chain.
    free: Option<usize>,
    /// Mask of the hash bits that can name every bucket.
    mask: usize,
    len: usize,
    /// Memory for the entries of a bucket that is being split or merged.
    moving: Vec<(u8, u32)>,
}

/// Location of a bucket of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChainLink {
    First(usize),
    Further(usize),
}

impl HashDirectory {
    /// Returns the memory held, in bytes.
    pub(super) fn held(&self) -> usize {
        self.buckets.held() + self.filters.held() + self.further.held()
    }

    /// Returns the index of the first bucket for this hash.
    #[inline(always)]
    fn index(&self, hash: u32) -> usize {
        let index = hash as usize & self.mask;
        if index < self.buckets.len() { index } else { index & self.mask >> 1 }
    }

    /// Prefetches the first bucket for this hash.
    #[inline(always)]
    pub(super) fn fetch(&self, hash: u32) {
        prefetch(&self.buckets, self.index(hash));
    }

    /// Prefetches the first bucket for this hash and its filter, which changes of entries write.
    pub(super) fn fetch_all(&self, hash: u32) {
        self.fetch(hash);
        prefetch(&self.filters, self.index(hash));
    }

    /// Returns false if no entry has this hash, true if one may.
    #[inline(always)]
    pub(super) fn may_have(&self, hash: u32) -> bool {
        self.filters.get(self.index(hash)).is_some_and(|filter| filter & filter_bit(signature(hash)) != 0)
    }

    /// Returns the first entry of the first bucket that may have this hash.
    #[inline(always)]
    pub(super) fn first(&self, hash: u32) -> Option<u32> {
        let bucket = self.buckets.get(self.index(hash))?;
        let places = bucket.places(signature(hash));
        (!places.is_empty()).then(|| bucket.id(places.first()))
    }

    /// Returns true if the chain for this hash has more than one bucket.
    #[inline(always)]
    pub(super) fn is_chained(&self, hash: u32) -> bool {
        self.buckets.get(self.index(hash)).is_some_and(|bucket| bucket.next().is_some())
    }

    /// Iterates over the entries that may have this hash.
    #[inline]
    pub(super) fn candidates(&self, hash: u32) -> BucketCandidates<'_> {
        let (bucket, signature) = (self.buckets.get(self.index(hash)), signature(hash));
        let places = bucket.map_or(BucketPlaces::NONE, |bucket| bucket.places(signature));
        BucketCandidates { bucket, places, signature, further: &self.further }
    }

    /// Reserves memory for the next [`HashDirectory::insert`].
    pub(super) fn make_room(&mut self) -> Result<(), OutOfMemory> {
        self.buckets.reserve(2)?;
        self.filters.reserve(2)?;
        // Splitting a chain in two needs at most one bucket more.
        self.further.reserve(2)
    }

    /// Inserts an entry; [`HashDirectory::make_room`] must have been called. `hash_of` returns the hash of a present
    /// entry, `fetch` prefetches what `hash_of` reads.
    pub(super) fn insert(&mut self, hash: u32, id: u32, hash_of: impl Fn(u32) -> u32, fetch: impl Fn(u32)) {
        if self.buckets.is_empty() {
            self.add_first();
        }
        self.push(self.index(hash), signature(hash), id);
        self.len += 1;
        if self.len > self.buckets.len() * MOST_PER_BUCKET {
            self.split(hash_of, fetch);
        }
    }

    /// Removes an entry. Returns true if it was present.
    pub(super) fn remove(&mut self, hash: u32, id: u32) -> bool {
        let Some((link, place)) = self.find(hash, id) else { return false };
        self.take(self.index(hash), link, place);
        self.len -= 1;
        if self.len == 0 {
            *self = HashDirectory::default();
        } else if self.buckets.len() > 1 && self.len * 4 < self.buckets.len() * LEAST_PER_FOUR {
            self.merge();
        }
        true
    }

    /// Replaces an entry by another one with the same hash.
    pub(super) fn replace(&mut self, hash: u32, id: u32, by: u32) {
        if let Some((link, place)) = self.find(hash, id) {
            self.at_mut(link).set(place, signature(hash), by);
        }
    }

    /// Adds a bucket, and moves to it the entries of another bucket that belong there.
    fn split(&mut self, hash_of: impl Fn(u32) -> u32, fetch: impl Fn(u32)) {
        let new = self.buckets.len();
        let mask = (new + 1).next_power_of_two() - 1;
        let old = new & mask >> 1;
        let mut moving = std::mem::take(&mut self.moving);
        self.empty(old, &mut moving);
        moving.iter().for_each(|(_, id)| fetch(*id));
        self.mask = mask;
        self.add_first();
        for (signature, id) in moving.drain(..) {
            self.push(hash_of(id) as usize & mask, signature, id);
        }
        self.moving = moving;
    }

    /// Removes the last bucket, and moves its entries back to the bucket it was split from.
    fn merge(&mut self) {
        let last = self.buckets.len() - 1;
        let mut moving = std::mem::take(&mut self.moving);
        self.empty(last, &mut moving);
        self.buckets.truncate(last);
        self.filters.truncate(last);
        self.mask = last.next_power_of_two() - 1;
        let to = last & ((last + 1).next_power_of_two() - 1) >> 1;
        moving.drain(..).for_each(|(signature, id)| self.push(to, signature, id));
        self.moving = moving;
    }

    /// Appends an entry to a chain.
    fn push(&mut self, index: usize, signature: u8, id: u32) {
        self.filters[index] |= filter_bit(signature);
        let mut link = ChainLink::First(index);
        while let Some(next) = self.at(link).next() {
            link = ChainLink::Further(next);
        }
        let len = self.at(link).len();
        if len < PLACES {
            return self.at_mut(link).set(len, signature, id);
        }
        let further = self.add_further();
        self.further[further].set(0, signature, id);
        self.at_mut(link).set_next(Some(further));
    }

    /// Removes an entry from a chain. The chain's last entry moves to its place.
    fn take(&mut self, index: usize, from: ChainLink, place: usize) {
        let (mut before, mut link) = (None, ChainLink::First(index));
        while let Some(next) = self.at(link).next() {
            (before, link) = (Some(link), ChainLink::Further(next));
        }
        let last = self.at(link).len() - 1;
        let (signature, id) = self.at(link).get(last);
        self.at_mut(from).set(place, signature, id);
        self.at_mut(link).set(last, 0, 0);
        if let (0, Some(before), ChainLink::Further(further)) = (last, before, link) {
            self.at_mut(before).set_next(None);
            self.give_further(further);
        }
        self.filters[index] = self.filter_of(index);
    }

    /// Computes the filter of a chain from its entries.
    fn filter_of(&self, index: usize) -> u32 {
        let (mut link, mut filter) = (Some(ChainLink::First(index)), 0);
        while let Some(one) = link {
            let bucket = self.at(one);
            filter = (0..bucket.len()).fold(filter, |filter, place| filter | filter_bit(bucket.get(place).0));
            link = bucket.next().map(ChainLink::Further);
        }
        filter
    }

    /// Moves all entries of a chain to `into`.
    fn empty(&mut self, index: usize, into: &mut Vec<(u8, u32)>) {
        self.filters[index] = 0;
        let mut bucket = std::mem::take(&mut self.buckets[index]);
        loop {
            into.extend((0..bucket.len()).map(|place| bucket.get(place)));
            let Some(further) = bucket.next() else { return };
            bucket = self.further[further];
            self.give_further(further);
        }
    }

    /// Returns the bucket and the place of an entry.
    fn find(&self, hash: u32, id: u32) -> Option<(ChainLink, usize)> {
        let mut link = ChainLink::First(self.index(hash));
        if self.buckets.is_empty() {
            return None;
        }
        loop {
            let bucket = self.at(link);
            if let Some(place) = bucket.places(signature(hash)).find(|place| bucket.id(*place) == id) {
                return Some((link, place));
            }
            link = ChainLink::Further(bucket.next()?);
        }
    }

    /// Appends an empty first bucket, with an empty filter.
    fn add_first(&mut self) {
        add_to(&mut self.buckets);
        self.filters.push(0).expect("make_room has seen to it");
    }

    /// Takes an empty bucket of `further`, or appends one. Returns its index.
    fn add_further(&mut self) -> usize {
        let Some(free) = self.free else { return add_to(&mut self.further) };
        self.free = self.further[free].next();
        self.further[free] = HashBucket::default();
        free
    }

    fn give_further(&mut self, index: usize) {
        self.further[index] = HashBucket::default();
        self.further[index].set_next(self.free);
        self.free = Some(index);
    }

    fn at(&self, link: ChainLink) -> &HashBucket {
        match link {
            ChainLink::First(index) => &self.buckets[index],
            ChainLink::Further(index) => &self.further[index],
        }
    }

    fn at_mut(&mut self, link: ChainLink) -> &mut HashBucket {
        match link {
            ChainLink::First(index) => &mut self.buckets[index],
            ChainLink::Further(index) => &mut self.further[index],
        }
    }
}

/// Returns the filter bit for a signature.
#[inline(always)]
const fn filter_bit(signature: u8) -> u32 {
    1 << (signature & 31)
}

fn add_to(buckets: &mut HugePageArray<HashBucket>) -> usize {
    buckets.push(HashBucket::default()).expect("make_room has seen to it");
    buckets.len() - 1
}

/// Iterator of [`HashDirectory::candidates`].
#[derive(Debug)]
pub(super) struct BucketCandidates<'a> {
    bucket: Option<&'a HashBucket>,
    places: BucketPlaces,
    signature: u8,
    further: &'a [HashBucket],
}

impl Iterator for BucketCandidates<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        loop {
            let bucket = self.bucket?;
            if let Some(place) = self.places.next() {
                return Some(bucket.id(place));
            }
            self.bucket = bucket.next().and_then(|next| self.further.get(next));
            self.places = self.bucket.map_or(BucketPlaces::NONE, |bucket| bucket.places(self.signature));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the hash of a test entry: some hashes differ only in bits that are not looked at, some are equal.
    fn hash(id: u32) -> u32 {
        (id / 3).wrapping_mul(0x9e37_79b9) >> (id % 3 * 4)
    }

    impl HashDirectory {
        fn add(&mut self, id: u32) {
            self.make_room().expect("there is memory");
            self.insert(hash(id), id, hash, |_| ());
        }

        fn has(&self, id: u32) -> bool {
            let has = self.candidates(hash(id)).any(|one| one == id);
            assert!(!has || self.may_have(hash(id)), "a filter keeps nothing back");
            has
        }

        /// Returns true if all filters contain exactly the bits they need.
        fn filters_are_exact(&self) -> bool {
            (0..self.buckets.len()).all(|index| self.filters[index] == self.filter_of(index))
                && self.filters.len() == self.buckets.len()
        }
    }

    #[test]
    fn it_grows_and_shrinks_with_its_entries() {
        let mut directory = HashDirectory::default();
        let count = 50_000;
        (0..count).for_each(|id| directory.add(id));
        assert_eq!(directory.len, 50_000);
        assert!(directory.buckets.len() == 10_000, "{} buckets", directory.buckets.len());
        assert!((0..count).all(|id| directory.has(id)) && !directory.has(count));
        for id in 1000..count {
            assert!(directory.remove(hash(id), id) && !directory.remove(hash(id), id));
        }
        assert!(directory.buckets.len() <= 270, "{} buckets", directory.buckets.len());
        assert!((0..1000).all(|id| directory.has(id)) && !directory.has(1000));
        (0..1000).for_each(|id| assert!(directory.remove(hash(id), id)));
        assert_eq!(directory.held(), 0);
    }

    #[test]
    fn equal_hashes_are_chained() {
        let mut directory = HashDirectory::default();
        for id in 0..100 {
            directory.make_room().expect("there is memory");
            directory.insert(7, id, |_| 7, |_| ());
        }
        assert_eq!(directory.candidates(7).count(), 100);
        directory.replace(7, 55, 1055);
        for id in (0..100).filter(|id| *id != 55) {
            assert!(directory.remove(7, id));
        }
        assert_eq!(directory.candidates(7).collect::<Vec<_>>(), [1055]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        /// The directory holds the same entries as a set.
        #[test]
        fn it_holds_what_was_added(changes in proptest::collection::vec((0..3_u8, 0..400_u32), 1..600)) {
            let (mut directory, mut model) = (HashDirectory::default(), std::collections::BTreeSet::new());
            for (kind, id) in changes {
                if kind == 0 {
                    prop_assert_eq!(directory.remove(hash(id), id), model.remove(&id));
                } else if model.insert(id) {
                    directory.add(id);
                }
                prop_assert_eq!(directory.len, model.len());
                prop_assert!(directory.filters_are_exact());
                prop_assert!((0..400).all(|id| directory.has(id) == model.contains(&id)));
            }
        }
    }
}
