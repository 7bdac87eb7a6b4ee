//! Where verdicts are kept: sets of four slots, of which a keyed hash of the words that count names one. A word of four tags tells which
//! slot of a set it can be, and the words themselves are compared, so that no verdict is ever another packet's.
//!
//! A slot is one cache line, or as many as it takes:
//!
//! | word | what |
//! |---|---|
//! | 0 | the epoch 30, what becomes of the packet 34 |
//! | 1 | the tables that it came to |
//! | 2 ... | the entries that it met there, two in a word |
//! | then | the words that count |
//!
//! When tables change, the epoch does: all slots are out of date without being touched.
use super::choice;
use super::ways::{Route, Ways};
use crate::burst::Fate;
use crate::shape::hash::{Double, Known, Secret};
use crate::shape::{EntryId, Lanes, MAX_BURST};
use crate::table::VerdictWord;
use weir_memory::{Array, OutOfMemory, prefetch};
use weir_packet::{FlowKey, Parsed};

/// Memory of a worker's slots, in cache lines: 1 MiB, half of a common second-level cache.
const LINES: usize = 1 << 14;
/// The same once it was seen that more flows come again than have room there: 16 MiB.
const MANY_LINES: usize = LINES * choice::SAMPLED as usize;
/// Lines that are added at once: Linux is to put memory to them before they come.
const MORE_LINES: usize = 64;
/// The bits of a hash that are zero for flows of a sample: those that name a set only in a large store.
const SAMPLE: u32 = (choice::SAMPLED - 1) << (LINES / SLOTS).trailing_zeros();
/// Slots of a set.
const SLOTS: usize = 4;
/// Words of a cache line.
const LINE: usize = 8;
/// Words of a slot in front of its entries.
const HEAD: usize = 2;
/// Epochs; after the last one comes the first.
const EPOCHS: u64 = 1 << (u64::BITS - VerdictWord::BITS);
/// The low bits of four tags.
const LOW: u64 = 0x0001_0001_0001_0001;
/// Their high bits.
const HIGH: u64 = LOW << 15;

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Store {
    /// By set.
    tags: Array<u64>,
    lines: Array<[u64; LINE]>,
    secret: Secret,
    seed: u64,
    epoch: u64,
    /// Lines of a slot.
    stride: usize,
    /// Words of a slot in front of those that count.
    front: usize,
    /// The slot of a set that makes room next.
    next: usize,
    /// Slots that are not out of date.
    kept: usize,
    /// Whether it has room for many.
    is_large: bool,
}

/// The first line of a slot, where it is written at once.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Head([u64; LINE]);

/// What a burst found.
#[derive(Debug)]
pub(super) struct Hits {
    hashes: [u32; MAX_BURST],
    /// By packet: the slot's first line.
    heads: [Head; MAX_BURST],
}

impl Default for Hits {
    fn default() -> Hits {
        Hits { hashes: [0; MAX_BURST], heads: [Head([0; LINE]); MAX_BURST] }
    }
}

impl Hits {
    /// The tables that a packet comes to, which was found.
    #[inline(always)]
    pub(super) const fn route(&self, lane: usize) -> Route {
        Route(self.heads[lane].0[1])
    }

    /// The entry that it meets at a step of its way.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "one half of the word")]
    pub(super) const fn entry(&self, lane: usize, step: usize) -> EntryId {
        EntryId((self.heads[lane].0[HEAD + step / 2] >> (32 * (step % 2))) as u32)
    }

    /// Those that it meets at two steps from an even one on, the first in the low half: without a second step, the high half says nothing.
    #[inline(always)]
    pub(super) const fn entries(&self, lane: usize, two: usize) -> u64 {
        self.heads[lane].0[HEAD + two]
    }

    /// What becomes of it.
    #[inline(always)]
    pub(super) const fn verdict(&self, lane: usize) -> VerdictWord {
        VerdictWord::of_bits(self.heads[lane].0[0])
    }
}

/// The words of packets that count: code of its own for each small number of them.
trait Words {
    fn hash(&self, secret: Secret, seed: u64, key: &FlowKey) -> u32;
    /// Whether they are those of a slot.
    fn are(&self, key: &FlowKey, slot: &[u64]) -> bool;
}

impl<const N: usize> Words for [Double; N] {
    #[inline(always)]
    fn hash(&self, secret: Secret, seed: u64, key: &FlowKey) -> u32 {
        secret.hash(seed, self.iter().map(|word| word.of(key)))
    }

    #[inline(always)]
    fn are(&self, key: &FlowKey, slot: &[u64]) -> bool {
        let Some(slot) = slot.first_chunk::<N>() else { return false };
        self.iter().zip(slot).fold(0, |differs, (word, kept)| differs | word.of(key) ^ kept) == 0
    }
}

impl Words for &[Double] {
    #[inline(always)]
    fn hash(&self, secret: Secret, seed: u64, key: &FlowKey) -> u32 {
        secret.hash(seed, self.iter().map(|word| word.of(key)))
    }

    #[inline(always)]
    fn are(&self, key: &FlowKey, slot: &[u64]) -> bool {
        slot.len() >= self.len()
            && self.iter().zip(slot).fold(0, |differs, (word, kept)| differs | word.of(key) ^ kept) == 0
    }
}

impl Store {
    /// Slots that there is room for.
    pub(super) fn room(&self) -> usize {
        self.tags.len() * SLOTS
    }

    /// Slots that are not out of date.
    pub(super) const fn kept(&self) -> usize {
        self.kept
    }

    /// Whether it has room for many flows.
    pub(super) const fn is_large(&self) -> bool {
        self.is_large
    }

    /// Whether it has memory for many, or for more than few.
    pub(super) fn has_many(&self) -> bool {
        self.lines.len() > LINES
    }

    /// Whether there is hardly any room left.
    pub(super) fn is_full(&self) -> bool {
        self.kept >= self.room() / 4 * 3
    }

    /// Makes everything kept out of date. What comes has this many words that count, and comes to so many tables at most. A large store
    /// may become a small one.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(super) fn renew(&mut self, words: usize, steps: usize) -> Result<(), OutOfMemory> {
        self.front = HEAD + steps.div_ceil(2);
        let stride = (self.front + words).div_ceil(LINE);
        if stride != self.stride || self.epoch >= EPOCHS - 1 {
            // What was in the middle of a slot may look like an epoch now.
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

    /// Makes everything kept out of date; the same words count.
    pub(super) fn clear(&mut self) {
        self.epoch += 1;
        self.kept = 0;
    }

    fn sets(&self) -> usize {
        let lines = if self.is_large { MANY_LINES } else { LINES };
        1 << (lines / SLOTS / self.stride.max(1)).ilog2()
    }

    /// Makes some more room, for what comes to be a large store; whether it is one now, with nothing in it.
    ///
    /// # Errors
    /// There is no memory for it.
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

    /// Becomes a small store, with nothing in it.
    pub(super) fn shrink(&mut self) {
        self.is_large = false;
        self.lines.truncate(LINES);
        self.tags.truncate(self.sets());
        self.clear();
    }

    /// Those of some packets, just looked up, whose flows are in the sample.
    pub(super) fn sampled(&self, lanes: Lanes, hits: &Hits) -> Lanes {
        let mut sampled = Lanes::default();
        lanes.each(|lane| sampled.0 |= u64::from(hits.hashes[lane] & SAMPLE == 0) << lane);
        sampled
    }

    /// Looks packets up; gives those that were found.
    #[inline(always)]
    pub(super) fn find(&self, words: &[Double], keys: &[Parsed; MAX_BURST], lanes: Lanes, hits: &mut Hits) -> Lanes {
        macro_rules! with { ($($n:literal)*) => {
            match words.len() {
                $($n => if let Some(words) = words.first_chunk::<$n>() { self.find_by(words, keys, lanes, hits) } else { Lanes::default() },)*
                _ => self.find_by(&words, keys, lanes, hits),
            }
        } }
        with!(1 2 3 4 5)
    }

    #[inline(always)]
    fn find_by(&self, words: &impl Words, keys: &[Parsed; MAX_BURST], lanes: Lanes, hits: &mut Hits) -> Lanes {
        // 1. Each packet's hash, and its set's tags.
        for lane in lanes {
            let hash = words.hash(self.secret, self.seed, &keys[lane].key);
            hits.hashes[lane] = hash;
            prefetch(&self.tags, self.set(hash));
        }
        // 2. The slots that it can be.
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
        // 3. Whether it is one.
        let mut found = Lanes::default();
        for lane in probable {
            let mut left = candidates[lane];
            while left != 0 {
                let slot = self.slot(self.line(hits.hashes[lane], left));
                if let Some(head) = slot.first_chunk::<LINE>()
                    && head[0] >> VerdictWord::BITS == self.epoch
                    && words.are(&keys[lane].key, slot.get(self.front..).unwrap_or_default())
                {
                    hits.heads[lane] = Head(*head);
                    found.add(lane);
                    break;
                }
                left &= left - 1;
            }
        }
        found
    }

    /// Keeps the ways of packets that were not found just now.
    #[inline(never)]
    pub(super) fn keep(
        &mut self,
        words: &[Double],
        keys: &[Parsed; MAX_BURST],
        lanes: Lanes,
        hits: &Hits,
        ways: &Ways,
        fates: &[Fate; MAX_BURST],
    ) {
        for lane in lanes {
            if let Some(way) = ways.get(lane, (self.front - HEAD) * 2) {
                self.keep_one(words, &keys[lane].key, hits.hashes[lane], way, fates[lane].verdict);
            }
        }
    }

    fn keep_one(&mut self, words: &[Double], key: &FlowKey, hash: u32, way: (Route, &[EntryId]), verdict: VerdictWord) {
        let (set, candidates) = (self.set(hash), self.candidates(hash));
        // One with this tag is most likely the same packets', from before the tables changed.
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

    /// The slots of a hash's set that have its tag: the high bit of each one's 16, and of one behind such a one that differs by one.
    #[inline(always)]
    fn candidates(&self, hash: u32) -> u64 {
        let differs = self.tags.get(self.set(hash)).copied().unwrap_or_default() ^ (tag(hash) * LOW);
        differs.wrapping_sub(LOW) & !differs & HIGH
    }

    /// The first line of the first of some slots.
    #[inline(always)]
    fn line(&self, hash: u32, candidates: u64) -> usize {
        (self.set(hash) * SLOTS + place_of(candidates)) * self.stride
    }

    #[inline(always)]
    fn slot(&self, line: usize) -> &[u64] {
        self.lines.get(line..line + self.stride).unwrap_or_default().as_flattened()
    }
}

/// The bits of a hash that a set does not stand for.
#[inline(always)]
const fn tag(hash: u32) -> u64 {
    (hash >> 16) as u64
}

/// The first of the slots that bits stand for, of which there are some.
#[inline(always)]
const fn place_of(candidates: u64) -> usize {
    candidates.trailing_zeros() as usize / 16
}
