//! A bucket of the hash: twelve entries in one cache line. Their signatures (eight bits of each hash) are all
//! compared at once.
use weir_memory::equal_bytes;
use zerocopy::FromZeros;

/// Number of entries that fit in a bucket.
pub(super) const PLACES: usize = 12;

/// Up to [`PLACES`] entries of the hash. Entries fill the places from the first on, without gaps.
#[derive(Debug, Clone, Copy, Default, FromZeros)]
#[repr(C, align(64))]
pub(super) struct HashBucket {
    /// Bytes 0 to 11: the entries' signatures, none zero. Bytes 12 to 15: index of the chain's next bucket plus 1, or
    /// 0.
    tags: [u64; 2],
    ids: [u32; PLACES],
}

const _: () = assert!(size_of::<HashBucket>() == 64);

/// Returns eight bits of a hash as a signature, which is never zero.
#[inline(always)]
pub(super) const fn signature(hash: u32) -> u8 {
    let bits = (hash >> 24) as u8;
    if bits == 0 { 1 } else { bits }
}

/// Set of places of a bucket, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BucketPlaces(u32);

impl BucketPlaces {
    pub(super) const NONE: BucketPlaces = BucketPlaces(0);

    #[inline(always)]
    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the lowest place of the set; [`PLACES`] or more if the set is empty.
    #[inline(always)]
    pub(super) const fn first(self) -> usize {
        self.0.trailing_zeros() as usize
    }
}

impl Iterator for BucketPlaces {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let place = self.first();
        self.0 &= self.0.wrapping_sub(1);
        (place < PLACES).then_some(place)
    }
}

impl HashBucket {
    /// Returns the places of entries with this signature; for signature 0, the free places.
    #[inline(always)]
    pub(super) fn places(&self, signature: u8) -> BucketPlaces {
        BucketPlaces(equal_bytes(self.tags, signature) & ((1 << PLACES) - 1))
    }

    /// Returns the entry at a place.
    #[inline(always)]
    pub(super) fn id(&self, place: usize) -> u32 {
        self.ids[place]
    }

    /// Returns the signature and entry at a place.
    pub(super) fn get(&self, place: usize) -> (u8, u32) {
        (self.tags[place / 8].to_le_bytes()[place % 8], self.ids[place])
    }

    pub(super) fn set(&mut self, place: usize, signature: u8, id: u32) {
        let shift = place % 8 * 8;
        let tags = &mut self.tags[place / 8];
        *tags = *tags & !(0xff << shift) | u64::from(signature) << shift;
        self.ids[place] = id;
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.places(0).first().min(PLACES)
    }

    /// Returns the index of the chain's next bucket.
    #[inline(always)]
    pub(super) fn next(&self) -> Option<usize> {
        u32::try_from(self.tags[1] >> 32).ok()?.checked_sub(1).map(|next| next as usize)
    }

    pub(super) fn set_next(&mut self, next: Option<usize>) {
        let link = next.map_or(0, |next| u64::from(u32::try_from(next + 1).expect("no more buckets than entry ids")));
        self.tags[1] = self.tags[1] & 0xffff_ffff | link << 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_apart() {
        let mut bucket = HashBucket::default();
        assert_eq!((bucket.len(), bucket.next()), (0, None));
        bucket.set_next(Some(0xffff_fffd));
        for place in 0..PLACES {
            bucket.set(place, if place % 3 == 0 { 0xff } else { 1 }, u32::try_from(place).expect("few") + 100);
            assert_eq!(bucket.len(), place + 1);
        }
        assert_eq!(bucket.places(0xff).collect::<Vec<_>>(), [0, 3, 6, 9]);
        assert!(bucket.places(0xfe).is_empty(), "the link is no signature");
        assert_eq!((bucket.id(7), bucket.get(7), bucket.next()), (107, (1, 107), Some(0xffff_fffd)));
        assert!((0..256_u32).all(|bits| signature(bits << 24) != 0));
    }
}
