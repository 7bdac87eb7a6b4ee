//! Measures a lookup in rule sets of firewalls, without parsing and execution: with headers that match, with crossed
//! headers as attackers would send, and with random ones. Also measures the mean and maximum cost of adding an entry.
//!
//! `cargo bench -p weir-datapath --bench rules [name]`. The rule sets are those of ClassBench in the reference data
//! next to the project; without it only the generated masks are measured. 100,000 headers are looked up in bursts of
//! 32, in windows of 1024. For each window the best of several rounds counts, because other load on the machine only
//! adds time. The mean of the windows is shown, and the number of tuples that a lookup of a matching header probes.
#![allow(missing_docs, reason = "a program")]

#[allow(dead_code, unused_imports, unreachable_pub, reason = "this program looks at it from the side")]
#[path = "../src/shape/mod.rs"]
mod shape;

use shape::adaptive::AdaptiveClassifier;
use shape::{Classifier, EntryId, Lanes, MAX_BURST, WordMatches};
use weir_memory::{SimdInstructions, SimdOperation, run_simd};
use weir_packet::{Field, FlowKey, FlowMask, ParsedHeaders};
use weir_testing::rules::{self, HeaderSampling, RuleSetEntry, SeededRng};
use weir_units::{Clock, SystemClock};

const BURST: usize = 32;
/// Headers per window.
const WINDOW: usize = 1024;
const ROUNDS: usize = 12;

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    println!(
        "{:<24} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}",
        "ns", "entries", "hits", "crossed", "random", "probes", "add", "add, most"
    );
    for name in ["acl1", "acl2", "fw1", "fw2", "ipc1"].into_iter().filter(|name| name.contains(&filter)) {
        let Some(path) = weir_testing::shared(&format!("data/external/rules/classbench/{name}_10k.gz")) else { break };
        // Packets that match no rule match this entry, which is added first, as controllers do.
        let rest = RuleSetEntry { priority: 0, value: FlowKey::EMPTY, mask: FlowMask::EMPTY };
        let rules = rules::classbench(&rules::gunzip(&path)).into_iter();
        measure(name, &std::iter::once(rest).chain(rules).collect::<Vec<_>>());
    }
    if "32 masks".contains(&filter) {
        for entries in [32, 1_000, 100_000, 1_000_000] {
            measure("32 masks", &masks(entries));
        }
    }
}

/// Generates entries with 32 masks, none of which is a prefix.
fn masks(count: u64) -> Vec<RuleSetEntry> {
    let mut draw = SeededRng(3);
    let rule = |number: u64| {
        let mut rule = RuleSetEntry { priority: 10, value: FlowKey::EMPTY, mask: FlowMask::EMPTY };
        rule.mask.set(Field::EthType, 0xffff);
        rule.mask.set(Field::Ipv4Dst, 0xffff_ffff);
        rule.mask.set(Field::Ipv4Src, ((1 << 8) | (number % 32)).into());
        rule.value.set(Field::EthType, 0x800);
        rule.value.set(Field::Ipv4Dst, draw.number().into());
        rule
    };
    (0..count).map(rule).collect()
}

fn measure(name: &str, rules: &[RuleSetEntry]) {
    let clock = SystemClock::start();
    let mut table = AdaptiveClassifier::default();
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
    let lookups: Vec<f64> = [HeaderSampling::Hits, HeaderSampling::Crossed, HeaderSampling::Random]
        .into_iter()
        .map(|kind| look_up(&clock, &table, &rules::headers(rules, kind, 100 * WINDOW, 7)))
        .collect();
    let mean = ns.iter().sum::<f64>() / ns.len() as f64;
    println!(
        "{name:<24} {:>8} {:>8.1} {:>8.1} {:>8.1} {:>8.2} {mean:>8.0} {:>9.0}",
        rules.len(),
        lookups[0],
        lookups[1],
        lookups[2],
        probes(&table, &rules::headers(rules, HeaderSampling::Hits, WINDOW, 7)),
        ns.iter().fold(0.0_f64, |most, ns| most.max(*ns)),
    );
}

/// Returns the mean number of tuples that a lookup probes.
fn probes(table: &AdaptiveClassifier, headers: &[FlowKey]) -> f64 {
    let all: u32 = headers.iter().map(|key| table.probes(key).unwrap_or_default()).sum();
    f64::from(all) / headers.len() as f64
}

/// Returns nanoseconds per packet. The keys are placed where the parser of a switch leaves them before the lookup: in
/// the first-level cache.
fn look_up(clock: &SystemClock, table: &AdaptiveClassifier, headers: &[FlowKey]) -> f64 {
    let headers = Packed::new(headers);
    let mut keys = Box::new([ParsedHeaders::default(); MAX_BURST]);
    let mut found = [EntryId::NONE; MAX_BURST];
    let mut best = vec![f64::MAX; headers.len() / WINDOW];
    for _ in 0..ROUNDS {
        for (window, best) in best.iter_mut().enumerate() {
            let mut ns = 0.0;
            for first in (window * WINDOW..).step_by(BURST).take(WINDOW / BURST) {
                headers.unpack(first, &mut keys);
                let start = clock.now();
                run_simd(LookUp { table, keys: &keys, found: &mut found });
                ns += clock.now().since(start).as_secs_f64() * 1e9;
                std::hint::black_box(&mut found);
            }
            *best = best.min(ns / WINDOW as f64);
        }
    }
    best.iter().sum::<f64>() / best.len() as f64
}

/// Looks up a burst with the vector instructions that the switch would use.
struct LookUp<'a> {
    table: &'a AdaptiveClassifier,
    keys: &'a [ParsedHeaders; MAX_BURST],
    found: &'a mut [EntryId; MAX_BURST],
}

impl SimdOperation for LookUp<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: SimdInstructions>(self, _: W) {
        self.table.lookup_burst(self.keys, Lanes::first(BURST), self.found, |_| ());
    }
}

/// Keys in compact form, so that reading them leaves the caches to the measured code.
struct Packed {
    /// Indexes of the words that are not zero in every key.
    used: Vec<usize>,
    words: Vec<u64>,
}

impl Packed {
    fn new(headers: &[FlowKey]) -> Packed {
        let is_used = |word: &usize| headers.iter().any(|key| key.words[*word] != 0);
        let used: Vec<usize> = (0..FlowKey::EMPTY.words.len()).filter(is_used).collect();
        let words = headers.iter().flat_map(|key| used.iter().map(|word| key.words[*word])).collect();
        Packed { used, words }
    }

    fn len(&self) -> usize {
        self.words.len() / self.used.len()
    }

    fn unpack(&self, first: usize, burst: &mut [ParsedHeaders; MAX_BURST]) {
        let of_burst = self.words.chunks_exact(self.used.len()).skip(first).take(BURST);
        for (place, words) in burst.iter_mut().zip(of_burst) {
            self.used.iter().zip(words).for_each(|(word, value)| place.key.words[*word] = *value);
        }
    }
}
