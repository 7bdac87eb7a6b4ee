//! Measures a lookup in the classifiers alone, without parsing and execution; and adding and removing an entry.
//!
//! `cargo bench -p weir-datapath --bench shapes -- [name [entries]]`. Packets are flow keys generated in the loop,
//! for entries in random order, in bursts of 32. The cost of generating them is measured and subtracted. The best and
//! the median of many short windows are shown, because other load on the machine only adds time. `insert` and
//! `remove` are medians over all entries: each is added to a table of the earlier ones, and they are removed in
//! random order. `bytes` is memory per entry.
#![allow(missing_docs, reason = "a program")]

#[allow(dead_code, unused_imports, unreachable_pub, reason = "this program looks at it from the side")]
#[path = "../src/shape/mod.rs"]
mod shape;

use shape::adaptive::AdaptiveClassifier;
use shape::{Classifier, EntryId, Lanes, MAX_BURST, WordMatches};
use std::hint::black_box;
use weir_packet::{Field, FlowKey, FlowMask, ParsedHeaders};
use weir_units::{Clock, SystemClock};

const BURST: usize = 32;
/// Bursts per window.
const BURSTS: usize = 256;
const WINDOWS: usize = 400;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let name_has = arguments.next().unwrap_or_default();
    let only = arguments.next().map(|count| count.parse::<u64>().expect("a number of entries"));
    println!(
        "{:<22} {:>9} {:>8} {:>8} {:>8} {:>8} {:>7}",
        "ns", "entries", "lookup", "median", "insert", "remove", "bytes"
    );
    for (name, make) in KINDS {
        for count in [1_000, 100_000, 1_000_000] {
            if name.contains(&name_has) && only.is_none_or(|only| only == count) {
                measure(name, *make, count);
            }
        }
    }
}

/// Function that writes the matched fields of a packet of one entry.
type Make = fn(u64, &mut FlowKey);

const KINDS: &[(&str, Make)] = &[
    ("mac", |n, key| set(key, &[(Field::EthDst, mix(n) >> 16)])),
    ("mac, consecutive", |n, key| set(key, &[(Field::EthDst, 0x0200_0000_0000 | n)])),
    ("5-tuple", |n, key| {
        let (addresses, ports) = (mix(n), mix(n + (1 << 40)));
        key.words[2] = addresses;
        key.words[3] = ports & 0xffff_ffff_0000_0000;
        set(key, &[(Field::EthType, 0x800), (Field::IpProto, 17)]);
    }),
    ("5-tuple and port", |n, key| {
        KINDS[2].1(n, key);
        set(key, &[(Field::InPort, n % 8)]);
    }),
    ("ipv6 5-tuple", |n, key| {
        key.words[3] = mix(n) & 0xffff_ffff_0000_0000;
        set(key, &[(Field::EthType, 0x86dd), (Field::IpProto, 17)]);
        key.words[8..12].copy_from_slice(&[0x2001_0db8 << 32, mix(n + (1 << 40)), 0x2001_0db8 << 32, n]);
    }),
    ("32 masks", |n, key| {
        key.words[2] = n | mix(n) << 32;
        set(key, &[(Field::EthType, 0x800)]);
    }),
];

/// Returns the mask of entry `n` of a kind.
fn mask_of(name: &str, n: u64) -> FlowMask {
    let mut mask = FlowMask::EMPTY;
    match name {
        "mac" | "mac, consecutive" => exact(&mut mask, &[Field::EthDst]),
        "ipv6 5-tuple" => {
            mask.words[8..12].fill(u64::MAX);
            exact(&mut mask, &[Field::EthType, Field::IpProto, Field::UdpSrc, Field::UdpDst]);
        }
        "32 masks" => {
            mask.words[2] = 0xffff_ffff | (n % 32) << 32 | 1 << 40;
            exact(&mut mask, &[Field::EthType]);
        }
        _ => {
            mask.words[2] = u64::MAX;
            exact(&mut mask, &[Field::EthType, Field::IpProto, Field::UdpSrc, Field::UdpDst]);
            if name.ends_with("port") {
                exact(&mut mask, &[Field::InPort]);
            }
        }
    }
    mask
}

fn exact(mask: &mut FlowMask, fields: &[Field]) {
    fields.iter().for_each(|field| mask.set(*field, u128::MAX));
}

fn set(key: &mut FlowKey, fields: &[(Field, u64)]) {
    fields.iter().for_each(|(field, value)| key.set(*field, (*value).into()));
}

/// Returns a pseudo-random number, different for each `n`.
fn mix(n: u64) -> u64 {
    let mixed = (n ^ n >> 32).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ mixed >> 32
}

fn measure(name: &str, make: Make, count: u64) {
    let clock = SystemClock::start();
    let mut table = AdaptiveClassifier::default();
    let entry = |n: u64| {
        let mut key = FlowKey::EMPTY;
        make(n, &mut key);
        (EntryId(u32::try_from(n).expect("few")), WordMatches::new(&key, &mask_of(name, n)))
    };
    let entries: Vec<(EntryId, WordMatches)> = (0..count).map(entry).collect();
    let insert = timed(&clock, &entries, 0..count, |(id, words)| {
        table.make_room(*id, words).expect("there is memory");
        table.insert(*id, 1, words);
    });
    let (mut lookups, made) = (look_up(&clock, &table, make, count, true), look_up(&clock, &table, make, count, false));
    lookups.sort_by(f64::total_cmp);
    let least = made.into_iter().fold(f64::MAX, f64::min);
    let bytes = table.describe().bytes.unwrap_or(0) as f64 / count as f64;
    let scattered = (0..count).map(|n| (n * 48_271 + 7) % count);
    let remove = timed(&clock, &entries, scattered, |(id, words)| table.remove(*id, 1, words));
    println!(
        "{name:<22} {count:>9} {:>8.1} {:>8.1} {insert:>8.0} {remove:>8.0} {bytes:>7.1}",
        lookups[0] - least,
        lookups[lookups.len() / 2] - least,
    );
}

/// Returns the nanoseconds per change: the median of windows of 100 changes.
fn timed(
    clock: &SystemClock,
    entries: &[(EntryId, WordMatches)],
    order: impl Iterator<Item = u64>,
    mut change: impl FnMut(&(EntryId, WordMatches)),
) -> f64 {
    let (mut start, mut ns) = (clock.now(), Vec::new());
    for (number, n) in (1..).zip(order) {
        change(&entries[usize::try_from(n).expect("few")]);
        if number % 100 == 0 {
            let now = clock.now();
            ns.push(now.since(start).as_secs_f64() * 1e9 / 100.0);
            start = now;
        }
    }
    ns.sort_by(f64::total_cmp);
    ns[ns.len() / 2]
}

/// Returns nanoseconds per packet, by window.
fn look_up(clock: &SystemClock, table: &AdaptiveClassifier, make: Make, count: u64, looks_up: bool) -> Vec<f64> {
    let mut keys = Box::new([ParsedHeaders::default(); MAX_BURST]);
    let (mut found, mut random, mut ns) = ([EntryId::NONE; MAX_BURST], 1_u64, Vec::new());
    for window in 0..WINDOWS {
        let (start, mut hits) = (clock.now(), 0);
        for _ in 0..BURSTS {
            for place in keys.iter_mut().take(BURST) {
                random = random.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
                make(((random >> 32) * count) >> 32, &mut place.key);
            }
            if looks_up {
                table.lookup_burst(&keys, Lanes::first(BURST), &mut found, |_| ());
                hits += found.iter().take(BURST).filter(|id| **id != EntryId::NONE).count();
            } else {
                black_box(&mut keys);
            }
        }
        assert!(!looks_up || hits == BURST * BURSTS, "every packet has an entry");
        if window != 0 {
            ns.push(clock.now().since(start).as_secs_f64() * 1e9 / (BURST * BURSTS) as f64);
        }
    }
    ns
}
