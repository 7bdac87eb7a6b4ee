//! Which bucket of a select group a flow takes.
//!
//! **Purpose.** Packets of one flow take one bucket, so they stay in order; flows are shared out in proportion to the buckets'
//! weights; and no more flows move than must. When a bucket dies, only its flows move, to the others by weight, and they come back
//! with it. When a group-mod adds, removes or weighs a bucket anew, only flows to or from that bucket move.
//!
//! **How.** Weighted rendezvous hashing: a flow gives each bucket that is alive a number, and takes the one with the best.
//! 1. `h`: a hash of the packet's fields ([`FIELDS`]).
//! 2. For each bucket `u` in (0, 1]: `h` mixed with the bucket's seed, which comes from its actions and watches.
//! 3. The bucket with the least `-ln(u) / weight`: the first of several exponential clocks whose rates are the weights goes off
//!    first with probability `weight / sum of weights`. With equal weights that is the largest `u`: no logarithm is needed.
//!
//! **Cost.** In proportion to the buckets of the group: about a nanosecond each, some five with unequal weights. A table of
//! choices (Maglev, NSDI'16) would cost the same for any number of buckets, but shares out no finer than its slots, and moves flows
//! that need not move.
//!
//! **Source.** D. G. Thaler and C. V. Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", IEEE/ACM Transactions on Networking
//! 6(1), 1998; with weights: C. Schindelhauer and G. Schomaker, "Weighted Distributed Hash Tables", SPAA'05.
//!
//! **Example.** Weights 1 and 2: a third of the flows take the first bucket.
use super::{Bucket, Group};
use std::hash::{BuildHasher as _, Hasher as _};
use weir_openflow::model::{GroupId, group};
use weir_packet::key::WORDS;
use weir_packet::{Field, FlowKey, FlowMask};

/// What tells flows apart, as the packet is when it meets the group; absent ones count as zero. ICMP types and codes, ARP operations and
/// addresses lie in the same places and count as well. Not the input port: a flow that comes another way stays with its bucket.
pub(super) const FIELDS: [Field; 11] = [
    Field::EthDst,
    Field::EthSrc,
    Field::EthType,
    Field::VlanVid,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::Ipv6Src,
    Field::Ipv6Dst,
    Field::IpProto,
    Field::MplsLabel,
    Field::PbbIsid,
];
/// These also, but not of IP fragments, of which only the first has them: a datagram's fragments stay together.
pub(super) const PORTS: [Field; 2] = [Field::TcpSrc, Field::TcpDst];

/// The words of a flow key that are hashed, and how the hash starts.
#[derive(Debug, Clone)]
pub(super) struct Hashed {
    words: Vec<(usize, u64)>,
    /// Those of IP fragments.
    fragment_words: Vec<(usize, u64)>,
    /// Differs from datapath to datapath: the choice of one must not be that of the next.
    start: u64,
}

impl Hashed {
    pub(super) fn new(datapath_id: u64) -> Hashed {
        let all = |field: Field| (field, field.all_ones());
        Hashed::of(FIELDS.into_iter().chain(PORTS).map(all), mix(datapath_id ^ 0x243f_6a88_85a3_08d3))
    }

    /// Chooses by other fields, of which some bits count, or by the same if there are none; another `param` is another choice.
    pub(super) fn with(&self, fields: &[(Field, u128)], param: u64) -> Hashed {
        let start = if param == 0 { self.start } else { mix(self.start ^ mix(param)) };
        if fields.is_empty() { Hashed { start, ..self.clone() } } else { Hashed::of(fields.iter().copied(), start) }
    }

    fn of(fields: impl IntoIterator<Item = (Field, u128)>, start: u64) -> Hashed {
        let mut mask = FlowMask::EMPTY;
        fields.into_iter().for_each(|(field, bits)| mask.set(field, mask.get(field) | bits));
        let words = words_of(&mask);
        PORTS.into_iter().for_each(|field| mask.set(field, 0));
        Hashed { words, fragment_words: words_of(&mask), start }
    }

    /// The number of the bucket that a packet takes; none if none is alive.
    pub(super) fn choose(&self, group: &Group, key: &FlowKey) -> Option<usize> {
        // 1.
        let hash = self.hash(key);
        // 2.
        let live = group.buckets.iter().enumerate().filter(|(_, bucket)| bucket.is_live);
        let drawn = live.map(|(number, bucket)| (number, bucket, mix(hash ^ bucket.seed)));
        // 3.
        let best = if group.is_even {
            drawn.max_by_key(|(_, _, draw)| *draw)
        } else {
            drawn.min_by(|(_, a, a_draw), (_, b, b_draw)| a.time(*a_draw).total_cmp(&b.time(*b_draw)))
        };
        best.map(|(number, _, _)| number)
    }

    fn hash(&self, key: &FlowKey) -> u64 {
        let words = if key.get(Field::IpFrag) == 0 { &self.words } else { &self.fragment_words };
        words.iter().fold(self.start, |hash, (word, mask)| fold(hash ^ key.words[*word] & mask))
    }
}

impl Bucket {
    /// When the bucket's clock goes off, of a number drawn for it.
    fn time(&self, draw: u64) -> f64 {
        // 53 bits, what a double holds: (0, 1].
        let uniform = ((draw >> 11) + 1) as f64 * (1.0 / (1_u64 << 53) as f64);
        -uniform.ln() * self.inverse_weight
    }
}

/// Gives the buckets of a group their seeds: from what they do, so that those of other buckets do not count; equal ones are numbered.
pub(super) fn seeds(group: GroupId, buckets: &[group::Bucket]) -> Vec<u64> {
    let state = foldhash::fast::FixedState::with_seed(group.0.into());
    let mut seen = foldhash::HashMap::default();
    let seeds = buckets.iter().map(|bucket| {
        let mut hasher = state.build_hasher();
        let content = (bucket.watch_port, bucket.watch_group, &bucket.actions);
        std::hash::Hash::hash(&content, &mut hasher);
        let content = hasher.finish();
        let before: &mut u64 = seen.entry(content).or_default();
        *before += 1;
        mix(content ^ mix(*before))
    });
    seeds.collect()
}

fn words_of(mask: &FlowMask) -> Vec<(usize, u64)> {
    (0..WORDS).zip(mask.words).filter(|(_, mask)| *mask != 0).collect()
}

/// One step of a hash: both halves of a product with an odd constant (the golden ratio's fraction).
#[expect(clippy::cast_possible_truncation, reason = "both halves count")]
fn fold(value: u64) -> u64 {
    let product = u128::from(value) * 0x9e37_79b9_7f4a_7c15;
    (product >> 64) as u64 ^ product as u64
}

/// Spreads every bit of a number over all of them (the finalizer of S. Vigna's splitmix64).
pub(super) fn mix(mut value: u64) -> u64 {
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}
