//! Measures a lookup in a table of routes, by tries and by the hash alone, without parsing and execution; and adding
//! and removing a route.
//!
//! `cargo bench -p weir-datapath --bench prefix [file]`. The file has one prefix per line (`10.0.0.0/8`,
//! `2001:db8::/32`). Without a file and without the reference data, as many prefixes of common lengths are generated.
//! Packets go to addresses in routes drawn at random, in bursts of 32. The best and the median of many short windows
//! are shown, also without lookups (*no table*), because other load on the machine only adds time. For changes the
//! median is shown, the minimum for the slowest of 100 and of 10000, and the maximum, whatever interrupted it.
#![allow(missing_docs, reason = "a program")]

#[allow(dead_code, unused_imports, unreachable_pub, reason = "this program looks at it from the side")]
#[path = "../src/shape/mod.rs"]
mod shape;

use shape::adaptive::AdaptiveClassifier;
use shape::hash::TupleSpace;
use shape::{Classifier, EntryId, Lanes, MAX_BURST, WordMatches};
use std::hint::black_box;
use std::net::IpAddr;
use std::path::PathBuf;
use weir_packet::field::eth_type;
use weir_packet::{Field, FlowKey, FlowMask, ParsedHeaders};
use weir_testing::rules::{SeededRng, gunzip, prefixes};
use weir_units::{Clock, SystemClock};

const BURST: usize = 32;
/// Bursts per window.
const BURSTS: usize = 512;
const WINDOWS: usize = 100;

fn main() {
    let argument = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).map(PathBuf::from);
    let file =
        argument.or_else(|| weir_testing::shared("data/external/rules/routes/internet-full-v4v6-prefixes.txt.gz"));
    let routes = file.map_or_else(made_up, |file| prefixes(&gunzip(&file)));
    println!("instructions: {}", weir_memory::best_simd_name());
    for (name, is_v6) in [("IPv4", false), ("IPv6", true)] {
        let mut draw = SeededRng(1);
        let mut routes: Vec<Route> = routes
            .iter()
            .filter(|(address, _)| address.is_ipv6() == is_v6)
            .map(|(address, len)| Route::new(*address, *len))
            .collect();
        (1..routes.len()).for_each(|last| routes.swap(last, draw.below(last + 1)));
        measure(&format!("{name}, tries"), &routes, AdaptiveClassifier::default(), |table| {
            table.describe().bytes.unwrap_or(0)
        });
        measure(&format!("{name}, hash"), &routes, TupleSpace::default(), |table| table.entries().held());
    }
}

/// An entry of a table of routes.
struct Route {
    words: WordMatches,
    priority: u16,
    field: Field,
    address: u128,
    host_bits: u128,
}

impl Route {
    fn new(address: IpAddr, len: u32) -> Route {
        let (field, kind, address) = match address {
            IpAddr::V4(address) => (Field::Ipv4Dst, eth_type::IPV4, u128::from(address.to_bits())),
            IpAddr::V6(address) => (Field::Ipv6Dst, eth_type::IPV6, address.to_bits()),
        };
        let host_bits = field.all_ones().checked_shr(len).unwrap_or(0);
        let (mut key, mut mask) = (FlowKey::EMPTY, FlowMask::EMPTY);
        key.set(Field::EthType, kind.into());
        key.set(field, address);
        mask.set(Field::EthType, 0xffff);
        mask.set(field, field.all_ones() & !host_bits);
        let priority = u16::try_from(len).expect("at most 128");
        Route { words: WordMatches::new(&key, &mask), priority, field, address, host_bits }
    }

    /// Returns the flow key of a packet to this route.
    fn key(&self, draw: &mut SeededRng) -> FlowKey {
        let mut key = FlowKey::EMPTY;
        key.set(Field::EthType, if self.field == Field::Ipv4Dst { eth_type::IPV4 } else { eth_type::IPV6 }.into());
        let random = u128::from(draw.number()) << 64 | u128::from(draw.number());
        key.set(self.field, self.address | random & self.host_bits);
        key
    }
}

fn measure<C: Classifier>(name: &str, routes: &[Route], mut table: C, held: impl Fn(&C) -> usize) {
    let clock = SystemClock::start();
    let adds = changes(&clock, routes.len(), |at| {
        let (id, route) = (EntryId(u32::try_from(at).expect("few")), &routes[at]);
        table.make_room(id, &route.words).expect("there is memory");
        table.insert(id, route.priority, &route.words);
    });
    println!("{name}: {} routes, {} bytes each; add {adds}", routes.len(), held(&table) / routes.len());
    let mut draw = SeededRng(2);
    for flows in [1_000, 100_000, 1_000_000] {
        let keys: Vec<FlowKey> = (0..flows).map(|_| routes[draw.below(routes.len())].key(&mut draw)).collect();
        let with = windows(&clock, &keys, |keys, found| table.lookup_burst(keys, Lanes::first(BURST), found, |_| ()));
        let without = windows(&clock, &keys, |keys, found| {
            black_box((keys, found));
        });
        let (best, median) = (with[0] - without[0], with[with.len() / 2] - without[without.len() / 2]);
        println!("  {flows:>7} flows: {best:6.1} ns, median {median:6.1}; making keys took {:.1}", without[0]);
    }
    let removes = changes(&clock, routes.len(), |at| {
        let at = (at * 48_271 + 7) % routes.len();
        table.remove(EntryId(u32::try_from(at).expect("few")), routes[at].priority, &routes[at].words);
    });
    println!("  remove {removes}");
}

/// Returns nanoseconds per packet by window, ascending.
fn windows(
    clock: &SystemClock,
    flows: &[FlowKey],
    mut look_up: impl FnMut(&[ParsedHeaders; MAX_BURST], &mut [EntryId; MAX_BURST]),
) -> Vec<f64> {
    let mut keys = Box::new([ParsedHeaders::default(); MAX_BURST]);
    let (mut found, mut draw, mut ns) = ([EntryId(0); MAX_BURST], SeededRng(3), Vec::new());
    // The words in which packets differ. Copying whole keys would take longer than looking them up.
    let words = [0, 2, 10, 11];
    for _ in 0..WINDOWS {
        let picked: Vec<[u64; 4]> =
            (0..BURST * BURSTS).map(|_| words.map(|word| flows[draw.below(flows.len())].words[word])).collect();
        let start = clock.now();
        for burst in picked.chunks(BURST) {
            for (place, picked) in keys.iter_mut().zip(burst) {
                words.iter().zip(picked).for_each(|(word, value)| place.key.words[*word] = *value);
            }
            look_up(&keys, &mut found);
            assert!(found[..BURST].iter().all(|id| *id != EntryId::NONE), "every packet has a route");
        }
        ns.push(clock.now().since(start).as_secs_f64() * 1e9 / (BURST * BURSTS) as f64);
    }
    ns.sort_by(f64::total_cmp);
    ns
}

/// Formats the durations of changes: the median, the minimum for the slowest of 100 and of 10000, and the maximum.
fn changes(clock: &SystemClock, count: usize, mut change: impl FnMut(usize)) -> String {
    let mut ns: Vec<u64> = Vec::with_capacity(count);
    let mut before = clock.now();
    for at in 0..count {
        change(at);
        let now = clock.now();
        ns.push(u64::try_from(now.since(before).as_nanos()).unwrap_or(u64::MAX));
        before = now;
    }
    ns.sort_unstable();
    let rare = ns[count - 1 - count / 10_000] as f64 / 1e3;
    let within = |parts: usize| ns[(count - 1) * parts / 100];
    format!(
        "{} ns, one in 100 {} ns, one in 10000 {rare:.1} us, worst {:.0} us",
        within(50),
        within(99),
        ns[count - 1] as f64 / 1e3
    )
}

/// Generates routes with the most frequent lengths of real routes.
fn made_up() -> Vec<(IpAddr, u32)> {
    let mut draw = SeededRng(4);
    let v4 = (0..900_000).map(|n| {
        let len = [24, 24, 24, 24, 24, 22, 23, 20, 19, 16][n % 10];
        let bits = u32::try_from(draw.number() >> 32).expect("32 bits") & u32::MAX << (32 - len);
        (IpAddr::V4(bits.into()), len)
    });
    let mut routes: Vec<_> = v4.collect();
    routes.extend((0..150_000).map(|n| {
        let len = [48, 48, 48, 32, 44, 40][n % 6];
        let bits = 0x2000 << 112 | u128::from(draw.number()) << 61;
        (IpAddr::V6((bits & u128::MAX << (128 - len)).into()), len)
    }));
    routes.sort_unstable();
    routes.dedup();
    routes
}
