//! Chooses the bucket of a select group that a flow takes.
//!
//! **Purpose.** Packets of one flow take one bucket, so they stay in order. Flows are distributed in proportion to
//! the buckets' weights, and no more flows move than necessary. When a bucket dies, only its flows move, to the
//! others by weight, and they return when it is live again. When a group-mod adds or removes a bucket or changes a
//! weight, only flows to or from that bucket move.
//!
//! **Method.** Weighted rendezvous hashing: a flow draws a number for each live bucket and takes the bucket with the
//! best one.
//! 1. `h`: a hash of the packet's fields ([`FIELDS`]).
//! 2. For each bucket `u` in (0, 1]: `h` mixed with the bucket's seed, which is derived from its actions and watches.
//! 3. The bucket with the least `-ln(u) / weight`: of several exponential clocks whose rates are the weights, each
//!    goes off first with probability `weight / sum of weights`. With equal weights that is the bucket with the
//!    largest `u`, and no logarithm is needed.
//!
//! **Cost.** Proportional to the number of buckets: about one nanosecond each, about five with unequal weights. A
//! table of choices (Maglev, NSDI'16) would have the same cost for any number of buckets, but it distributes no finer
//! than its slots, and it moves flows unnecessarily.
//!
//! **Source.** D. G. Thaler and C. V. Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", IEEE/ACM
//! Transactions on Networking 6(1), 1998; with weights: C. Schindelhauer and G. Schomaker, "Weighted Distributed Hash
//! Tables", SPAA'05.
//!
//! **Example.** With weights 1 and 2 a third of the flows take the first bucket.
use super::{CompiledBucket, GroupEntry};
use std::hash::{BuildHasher as _, Hasher as _};
use weir_openflow::model::{GroupId, group};
use weir_packet::key::WORDS;
use weir_packet::{Field, FlowKey, FlowMask};

/// Fields that distinguish flows, as the packet has them when it reaches the group; absent fields count as zero. ICMP
/// types and codes, ARP operations and addresses are stored in the same places and count, too. The input port does
/// not count, so a flow that arrives by another port keeps its bucket.
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
/// Further fields, except for IP fragments: only the first fragment has them, and a datagram's fragments must stay
/// together.
pub(super) const PORTS: [Field; 2] = [Field::TcpSrc, Field::TcpDst];

/// Hash of packets: the words of the flow key that are hashed, and the initial value.
#[derive(Debug, Clone)]
pub(super) struct SelectHash {
    words: Vec<(usize, u64)>,
    /// The words hashed for IP fragments.
    fragment_words: Vec<(usize, u64)>,
    /// Initial value. It differs between datapaths, so that successive switches distribute flows independently.
    start: u64,
}

impl SelectHash {
    pub(super) fn new(datapath_id: u64) -> SelectHash {
        let all = |field: Field| (field, field.all_ones());
        SelectHash::of(FIELDS.into_iter().chain(PORTS).map(all), mix(datapath_id ^ 0x243f_6a88_85a3_08d3))
    }

    /// Returns a hash of the given bits of other fields, or of the same fields if `fields` is empty. Each value of
    /// `param` distributes flows differently.
    pub(super) fn with(&self, fields: &[(Field, u128)], param: u64) -> SelectHash {
        let start = if param == 0 { self.start } else { mix(self.start ^ mix(param)) };
        if fields.is_empty() {
            SelectHash { start, ..self.clone() }
        } else {
            SelectHash::of(fields.iter().copied(), start)
        }
    }

    fn of(fields: impl IntoIterator<Item = (Field, u128)>, start: u64) -> SelectHash {
        let mut mask = FlowMask::EMPTY;
        fields.into_iter().for_each(|(field, bits)| mask.set(field, mask.get(field) | bits));
        let words = words_of(&mask);
        PORTS.into_iter().for_each(|field| mask.set(field, 0));
        SelectHash { words, fragment_words: words_of(&mask), start }
    }

    /// Returns the index of the bucket that a packet takes, or `None` if no bucket is live.
    pub(super) fn choose(&self, group: &GroupEntry, key: &FlowKey) -> Option<usize> {
        // Step 1.
        let hash = self.hash(key);
        // Step 2.
        let live = group.buckets.iter().enumerate().filter(|(_, bucket)| bucket.is_live);
        let drawn = live.map(|(number, bucket)| (number, bucket, mix(hash ^ bucket.seed)));
        // Step 3.
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

impl CompiledBucket {
    /// Returns the time at which the bucket's exponential clock goes off, for a number drawn for it.
    fn time(&self, draw: u64) -> f64 {
        // 53 bits, the precision of a double: (0, 1].
        let uniform = ((draw >> 11) + 1) as f64 * (1.0 / (1_u64 << 53) as f64);
        -uniform.ln() * self.inverse_weight
    }
}

/// Returns the seeds of a group's buckets. A seed depends only on the bucket's own actions and watches; equal buckets
/// are numbered.
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

/// Does one step of a hash: combines both halves of the product with an odd constant (the golden ratio's fraction).
#[expect(clippy::cast_possible_truncation, reason = "both halves count")]
fn fold(value: u64) -> u64 {
    let product = u128::from(value) * 0x9e37_79b9_7f4a_7c15;
    (product >> 64) as u64 ^ product as u64
}

/// Mixes every bit of a number into all bits (the finalizer of S. Vigna's splitmix64).
pub(super) fn mix(mut value: u64) -> u64 {
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}
