//! What a lookup costs in rule sets of firewalls, without parsing and executing, on headers that match, on crossed ones as
//! attackers would send, and on random ones; and what adding an entry costs, at most and on average.
//!
//! `cargo bench -p weir-datapath --bench rules [name]`. The rule sets are those of ClassBench in the reference data beside the project; without
//! it only the generated masks are measured. 100,000 headers are looked up in bursts of 32, in windows of 1024; of each window the best of
//! some rounds counts, since what others do on the machine only adds; shown is the mean of the windows.
#![allow(missing_docs, reason = "a program")]

#[allow(dead_code, unused_imports, unreachable_pub, reason = "this program looks at it from the side")]
#[path = "../src/shape/mod.rs"]
mod shape;

use shape::adaptive::Adaptive;
use shape::{Classifier, EntryId, Lanes, MAX_BURST, WordMatches};
use weir_packet::{Field, FlowKey, FlowMask, Parsed};
use weir_testing::rules::{self, Draw, Headers, Rule};
use weir_units::{Clock, SystemClock};

const BURST: usize = 32;
/// Headers of a window.
const WINDOW: usize = 1024;
const ROUNDS: usize = 12;

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    println!(
        "{:<24} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}",
        "ns", "entries", "hits", "crossed", "random", "add", "add, most"
    );
    for name in ["acl1", "acl2", "fw1", "fw2", "ipc1"].into_iter().filter(|name| name.contains(&filter)) {
        let Some(path) = weir_testing::shared(&format!("data/external/rules/classbench/{name}_10k.gz")) else { break };
        measure(name, &rules::classbench(&rules::gunzip(&path)));
    }
    if "32 masks".contains(&filter) {
        for entries in [32, 1_000, 100_000, 1_000_000] {
            measure("32 masks", &masks(entries));
        }
    }
}

/// Entries of 32 masks, none of them a prefix.
fn masks(count: u64) -> Vec<Rule> {
    let mut draw = Draw(3);
    let rule = |number: u64| {
        let mut rule = Rule { priority: 10, value: FlowKey::EMPTY, mask: FlowMask::EMPTY };
        rule.mask.set(Field::EthType, 0xffff);
        rule.mask.set(Field::Ipv4Dst, 0xffff_ffff);
        rule.mask.set(Field::Ipv4Src, ((1 << 8) | (number % 32)).into());
        rule.value.set(Field::EthType, 0x800);
        rule.value.set(Field::Ipv4Dst, draw.number().into());
        rule
    };
    (0..count).map(rule).collect()
}

fn measure(name: &str, rules: &[Rule]) {
    let clock = SystemClock::start();
    let mut table = Adaptive::default();
    let mut ns = Vec::new();
    for (number, rule) in (0..).zip(rules) {
        let words = WordMatches::new(&rule.value, &rule.mask);
        let start = clock.now();
        if table.find(rule.priority, &words).is_none() {
            table.make_room(EntryId(number), &words).expect("there is memory");
            table.insert(EntryId(number), rule.priority, &words);
        }
        ns.push(clock.now().since(start).as_secs_f64() * 1e9);
    }
    let lookups: Vec<f64> = [Headers::Hits, Headers::Crossed, Headers::Random]
        .into_iter()
        .map(|kind| look_up(&clock, &table, &rules::headers(rules, kind, 100 * WINDOW, 7)))
        .collect();
    let mean = ns.iter().sum::<f64>() / ns.len() as f64;
    println!(
        "{name:<24} {:>8} {:>8.1} {:>8.1} {:>8.1} {mean:>8.0} {:>9.0}",
        rules.len(),
        lookups[0],
        lookups[1],
        lookups[2],
        ns.iter().fold(0.0_f64, |most, ns| most.max(*ns)),
    );
}

/// Nanoseconds per packet.
fn look_up(clock: &SystemClock, table: &Adaptive, headers: &[FlowKey]) -> f64 {
    let bursts: Vec<Box<[Parsed; MAX_BURST]>> = headers
        .chunks_exact(BURST)
        .map(|keys| {
            let mut burst = Box::new([Parsed::default(); MAX_BURST]);
            burst.iter_mut().zip(keys).for_each(|(place, key)| place.key = *key);
            burst
        })
        .collect();
    let mut found = [EntryId::NONE; MAX_BURST];
    let mut best = vec![f64::MAX; headers.len() / WINDOW];
    for _ in 0..ROUNDS {
        for (window, best) in bursts.chunks_exact(WINDOW / BURST).zip(&mut best) {
            let start = clock.now();
            for keys in window {
                table.lookup_burst(keys, Lanes::first(BURST), &mut found, |_| ());
                std::hint::black_box(&mut found);
            }
            *best = best.min(clock.now().since(start).as_secs_f64() * 1e9 / WINDOW as f64);
        }
    }
    best.iter().sum::<f64>() / best.len() as f64
}
