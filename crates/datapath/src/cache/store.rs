//! Stores verdicts in sets of four slots. A keyed hash of the words that lookups depend on selects the set. A word of
//! four tags tells which slot of the set can match. The words themselves are compared as well, so that a packet never
//! gets another packet's verdict.
//!
//! A slot takes one or more cache lines:
//!
//! | word | content |
//! |---|---|
//! | 0 | epoch (30 bits), verdict (34 bits) |
//! | 1 | tables on the path |
//! | 2 ... | entries that the packet matched there, two in a word |
//! | then | masked words of the packet that lookups look at |
//!
//! Changes of the tables change the epoch, which makes all slots outdated without touching them.
use super::policy;
use super::table_paths::{TablePath, TablePaths};
use crate::shape::hash::{HashSecret, MergedWords, PairReader};
use crate::shape::{BurstHeaders, EntryId, Lanes, MAX_BURST};
use crate::verdict::LookupResult;
use crate::verdict::VerdictWord;
use weir_memory::{HugePageArray, OutOfMemory, prefetch};
use weir_packet::FlowKey;

/// Cache lines of a worker's slots: 1 MiB, half of a common second-level cache.
const LINES: usize = 1 << 14;
/// Cache lines of a large store, for more repeating flows than fit in a small one: 16 MiB.
const MANY_LINES: usize = LINES * policy::SAMPLED as usize;
/// Lines added per step, so that Linux can provide their memory before packets use it.
const MORE_LINES: usize = 64;
/// Bits of a hash that are zero for flows in the sample: those that select a set only in a large store.
const SAMPLE: u32 = (policy::SAMPLED - 1) << (LINES / SLOTS).trailing_zeros();
/// Number of slots in a set.
const SLOTS: usize = 4;
/// Number of words in a cache line.
const LINE: usize = 8;
/// Number of words in a slot before its entries.
const HEAD: usize = 2;
/// Number of epochs; after the last one the store is cleared and the first follows.
const EPOCHS: u64 = 1 << (u64::BITS - VerdictWord::BITS);
/// Low bits of four tags.
const LOW: u64 = 0x0001_0001_0001_0001;
/// High bits of four tags.
const HIGH: u64 = LOW << 15;

/// Stored verdicts: see the [module](self).
#[derive(Debug, Default)]
pub(super) struct VerdictStore {
    /// By set: the tags of its slots.
    tags: HugePageArray<u64>,
    lines: HugePageArray<[u64; LINE]>,
    secret: HashSecret,
    seed: u64,
    epoch: u64,
    /// Number of cache lines in a slot.
    stride: usize,
    /// Number of words in a slot before the compared ones.
    front: usize,
    /// Index of the slot that is evicted next, in any set.
    next: usize,
    /// Number of slots that are not outdated.
    kept: usize,
    /// True if the store is large.
    is_large: bool,
}

/// First line of a slot, aligned for writing it at once.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct CacheSlotHead([u64; LINE]);

/// Results of a burst's lookup.
#[derive(Debug)]
pub(super) struct CacheHits {
    hashes: [u32; MAX_BURST],
    /// By packet: the first line of the slot found.
    heads: [CacheSlotHead; MAX_BURST],
}

impl Default for CacheHits {
    fn default() -> CacheHits {
        CacheHits { hashes: [0; MAX_BURST], heads: [CacheSlotHead([0; LINE]); MAX_BURST] }
    }
}

impl CacheHits {
    /// Returns the route of a packet that was found.
    #[inline(always)]
    pub(super) const fn route(&self, lane: usize) -> TablePath {
        TablePath(self.heads[lane].0[1])
    }

    /// Returns the entry of a packet that was found at a step of its path.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "one half of the word")]
    pub(super) const fn entry(&self, lane: usize, step: usize) -> EntryId {
        EntryId((self.heads[lane].0[HEAD + step / 2] >> (32 * (step % 2))) as u32)
    }

    /// Returns the entries at two steps, the steps `2 * two` (low half) and `2 * two + 1`. The high half has no
    /// meaning if there is no second step.
    #[inline(always)]
    pub(super) const fn entries(&self, lane: usize, two: usize) -> u64 {
        self.heads[lane].0[HEAD + two]
    }

    /// Returns the verdict of a packet that was found.
    #[inline(always)]
    pub(super) const fn verdict(&self, lane: usize) -> VerdictWord {
        VerdictWord::of_bits(self.heads[lane].0[0])
    }
}

/// Words of packets that lookups depend on, with specialized code for each small number of words.
trait ComparedWords {
    fn hash(&self, secret: HashSecret, seed: u64, key: &FlowKey) -> u32;
    /// Returns true if a packet's masked words equal those at the start of `slot`.
    fn are(&self, key: &FlowKey, slot: &[u64]) -> bool;
}

impl<const N: usize> ComparedWords for [MergedWords; N] {
    #[inline(always)]
    fn hash(&self, secret: HashSecret, seed: u64, key: &FlowKey) -> u32 {
        secret.hash(seed, self.iter().map(|word| word.of(key)))
    }

    #[inline(always)]
    fn are(&self, key: &FlowKey, slot: &[u64]) -> bool {
        let Some(slot) = slot.first_chunk::<N>() else { return false };
        self.iter().zip(slot).fold(0, |differs, (word, kept)| differs | word.of(key) ^ kept) == 0
    }
}

impl ComparedWords for &[MergedWords] {
    #[inline(always)]
    fn hash(&self, secret: HashSecret, seed: u64, key: &FlowKey) -> u32 {
        secret.hash(seed, self.iter().map(|word| word.of(key)))
    }

    #[inline(always)]
    fn are(&self, key: &FlowKey, slot: &[u64]) -> bool {
        slot.len() >= self.len()
            && self.iter().zip(slot).fold(0, |differs, (word, kept)| differs | word.of(key) ^ kept) == 0
    }
}

impl VerdictStore {
    /// Returns the number of slots.
    pub(super) fn room(&self) -> usize {
        self.tags.len() * SLOTS
    }

    /// Returns the number of slots that are not outdated.
    pub(super) const fn kept(&self) -> usize {
        self.kept
    }

    /// Returns true if the store is large.
    pub(super) const fn is_large(&self) -> bool {
        self.is_large
    }

    /// Returns true if the store has more memory than a small store, also while it is being enlarged.
    pub(super) fn has_many(&self) -> bool {
        self.lines.len() > LINES
    }

    /// Returns true if hardly any room is left: three quarters of the slots are in use.
    pub(super) fn is_full(&self) -> bool {
        self.kept >= self.room() / 4 * 3
    }

    /// Makes all slots outdated, and adapts them to `words` compared words and to paths of at most `steps` tables. A
    /// large store may become small.
    ///
    /// # Errors
    /// Out of memory.
    pub(super) fn renew(&mut self, words: usize, steps: usize) -> Result<(), OutOfMemory> {
        self.front = HEAD + steps.div_ceil(2);
        let stride = (self.front + words).div_ceil(LINE);
        if stride != self.stride || self.epoch >= EPOCHS - 1 {
            // Words from within a slot may be taken for an epoch now.
            self.is_large = false;
            self.lines.truncate(LINES);
            self.lines.fill([0; LINE]);
            self.epoch = 0;
            self.stride = stride;
        }
        self.seed = self.secret.seed(0);
        self.clear();
        let sets = self.sets();
        self.lines.lengthen(sets * SLOTS * stride)?;
        self.tags.truncate(sets);
        self.tags.lengthen(sets)
    }

    /// Makes all slots outdated, without changing their layout.
    pub(super) fn clear(&mut self) {
        self.epoch += 1;
        self.kept = 0;
    }

    fn sets(&self) -> usize {
        let lines = if self.is_large { MANY_LINES } else { LINES };
        1 << (lines / SLOTS / self.stride.max(1)).ilog2()
    }

    /// Enlarges the store by one step. Returns true if it is a large store now, which is empty.
    ///
    /// # Errors
    /// Out of memory.
    pub(super) fn grow(&mut self) -> Result<bool, OutOfMemory> {
        let len = self.lines.len() + MORE_LINES;
        self.lines.lengthen(len.min(MANY_LINES))?;
        if len < MANY_LINES {
            return Ok(false);
        }
        self.is_large = true;
        let sets = self.sets();
        self.tags.lengthen(sets).inspect_err(|_| self.is_large = false)?;
        self.clear();
        Ok(true)
    }

    /// Makes the store small and empty.
    pub(super) fn shrink(&mut self) {
        self.is_large = false;
        self.lines.truncate(LINES);
        self.tags.truncate(self.sets());
        self.clear();
    }

    /// Returns the packets among `lanes`, which were just looked up, whose flows are in the sample.
    pub(super) fn sampled(&self, lanes: Lanes, hits: &CacheHits) -> Lanes {
        let mut sampled = Lanes::default();
        lanes.each(|lane| sampled.0 |= u64::from(hits.hashes[lane] & SAMPLE == 0) << lane);
        sampled
    }

    /// Looks up packets. Returns those that were found.
    #[inline(always)]
    pub(super) fn find(&self, words: &[MergedWords], keys: &BurstHeaders, lanes: Lanes, hits: &mut CacheHits) -> Lanes {
        macro_rules! with { ($($n:literal)*) => {
            match words.len() {
                $($n => if let Some(words) = words.first_chunk::<$n>() { self.find_by(words, keys, lanes, hits) } else { Lanes::default() },)*
                _ => self.find_by(&words, keys, lanes, hits),
            }
        } }
        with!(1 2 3 4 5)
    }

    #[inline(always)]
    fn find_by(&self, words: &impl ComparedWords, keys: &BurstHeaders, lanes: Lanes, hits: &mut CacheHits) -> Lanes {
        // Pass 1: compute each packet's hash, and prefetch the tags of its set.
        for lane in lanes {
            let hash = words.hash(self.secret, self.seed, &keys[lane].key);
            hits.hashes[lane] = hash;
            prefetch(&self.tags, self.set(hash));
        }
        // Pass 2: find the candidate slots, and prefetch the first one.
        let (mut candidates, mut probable) = ([0; MAX_BURST], Lanes::default());
        for lane in lanes {
            let hash = hits.hashes[lane];
            candidates[lane] = self.candidates(hash);
            if candidates[lane] != 0 {
                probable.add(lane);
                let at = self.line(hash, candidates[lane]);
                (at..at + self.stride).for_each(|line| prefetch(&self.lines, line));
            }
        }
        // Pass 3: compare the candidates.
        let mut found = Lanes::default();
        for lane in probable {
            let mut left = candidates[lane];
            while left != 0 {
                let slot = self.slot(self.line(hits.hashes[lane], left));
                if let Some(head) = slot.first_chunk::<LINE>()
                    && head[0] >> VerdictWord::BITS == self.epoch
                    && words.are(&keys[lane].key, slot.get(self.front..).unwrap_or_default())
                {
                    hits.heads[lane] = CacheSlotHead(*head);
                    found.add(lane);
                    break;
                }
                left &= left - 1;
            }
        }
        found
    }

    /// Stores the paths of packets that were just looked up and not found.
    #[inline(never)]
    pub(super) fn keep(
        &mut self,
        words: &[MergedWords],
        keys: &BurstHeaders,
        lanes: Lanes,
        hits: &CacheHits,
        ways: &TablePaths,
        fates: &[LookupResult; MAX_BURST],
    ) {
        for lane in lanes {
            if let Some(way) = ways.get(lane, (self.front - HEAD) * 2) {
                self.keep_one(words, &keys[lane].key, hits.hashes[lane], way, fates[lane].verdict);
            }
        }
    }

    fn keep_one(
        &mut self,
        words: &[MergedWords],
        key: &FlowKey,
        hash: u32,
        way: (TablePath, &[EntryId]),
        verdict: VerdictWord,
    ) {
        let (set, candidates) = (self.set(hash), self.candidates(hash));
        // A slot with this tag most likely has the same flow, from before the tables changed.
        let place = match candidates {
            0 => {
                self.next = (self.next + 1) % SLOTS;
                self.next
            }
            candidates => place_of(candidates),
        };
        let shift = 16 * place;
        self.tags[set] = self.tags[set] & !(0xffff << shift) | tag(hash) << shift;
        let (at, front, epoch) = ((set * SLOTS + place) * self.stride, self.front, self.epoch);
        let slot = self.lines[at..at + self.stride].as_flattened_mut();
        self.kept += usize::from(slot[0] >> VerdictWord::BITS != epoch);
        slot[0] = epoch << VerdictWord::BITS | verdict.bits();
        slot[1] = way.0.0;
        slot[HEAD..front].fill(0);
        for (step, entry) in way.1.iter().enumerate() {
            slot[HEAD + step / 2] |= u64::from(entry.0) << (32 * (step % 2));
        }
        slot[front..].iter_mut().zip(words).for_each(|(kept, word)| *kept = word.of(key));
    }

    #[inline(always)]
    fn set(&self, hash: u32) -> usize {
        hash as usize & (self.tags.len().wrapping_sub(1))
    }

    /// Returns the slots of a hash's set that may have its tag: the highest bit of each one's 16. The slot above a
    /// matching one is also included if its tag differs in the lowest bit only.
    #[inline(always)]
    fn candidates(&self, hash: u32) -> u64 {
        let differs = self.tags.get(self.set(hash)).copied().unwrap_or_default() ^ (tag(hash) * LOW);
        differs.wrapping_sub(LOW) & !differs & HIGH
    }

    /// Returns the first line of the first candidate slot.
    #[inline(always)]
    fn line(&self, hash: u32, candidates: u64) -> usize {
        (self.set(hash) * SLOTS + place_of(candidates)) * self.stride
    }

    #[inline(always)]
    fn slot(&self, line: usize) -> &[u64] {
        self.lines.get(line..line + self.stride).unwrap_or_default().as_flattened()
    }
}

/// Returns the tag of a hash: the bits that do not select the set.
#[inline(always)]
const fn tag(hash: u32) -> u64 {
    (hash >> 16) as u64
}

/// Returns the index of the first candidate slot; there must be one.
#[inline(always)]
const fn place_of(candidates: u64) -> usize {
    candidates.trailing_zeros() as usize / 16
}
