//! Measures what the verdict cache saves, and what it costs where it saves nothing:
//! `cargo bench -p weir-datapath --bench verdicts`; with `-- WORD` only the loads whose name contains the word.
//!
//! Loads: five tables of 1000 exact entries on one field each, with 60-byte UDP frames of an increasing number of
//! flows, either in turn, drawn uniformly, or drawn as in the Internet, where few flows have most packets. One table
//! with as many 5-tuples as flows. The rule sets of ClassBench, if the reference data is next to the project, with
//! headers that match. Windows without the cache, with it, and with it in automatic mode alternate. Each figure is
//! the best and the median of many windows. All include writing frames and returning them to the pool.
#![allow(clippy::cast_possible_truncation, reason = "numbers of flows are small")]
use weir_datapath::{CacheCounts, Datapath, DatapathConfig, DatapathOutput, VerdictCacheMode};
use weir_openflow::model::{Action, FlowMod, Instruction, Match, PortDesc, PortNo, TableId};
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;
use weir_packet::{Field, FlowKey, Frame, FramePool, MacAddr};
use weir_testing::rules::{self, HeaderSampling, RuleSetEntry};
use weir_units::{Clock, Instant, SystemClock};

/// Frames per receive burst.
const BURST: usize = 32;
/// Packets per window.
const WINDOW: usize = 1 << 16;
/// Windows per cache mode.
const WINDOWS: usize = 60;
/// Entries per table, and number of tables.
const ENTRIES: u32 = 1000;
const TABLES: u8 = 5;
/// Number of flows drawn in advance and then used in turn.
const DRAWN: usize = 1 << 20;

const MODES: [(&str, VerdictCacheMode); 3] =
    [("off", VerdictCacheMode::Off), ("on", VerdictCacheMode::On), ("auto", VerdictCacheMode::Auto)];

/// Order of the packets' flows.
#[derive(Clone, Copy)]
enum Order {
    Cycle,
    Random,
    /// Zipf: the nth flow has a share proportional to 1/n.
    Zipf,
    /// Each packet has its own flow.
    New,
}

/// Protocol, addresses and ports.
type Header = (u8, [u8; 12]);

/// Contents of the tables.
enum Tables {
    /// Five tables of a thousand exact entries each.
    Five,
    /// A single table with this number of 5-tuples.
    Tuples(u32),
    /// A single table of rules, and headers that match them.
    Rules(Vec<RuleSetEntry>, Vec<Header>),
}

fn main() {
    // `cargo test` runs this program, too. One window then shows that it works.
    let windows = if std::env::args().any(|argument| argument == "--bench") { WINDOWS } else { 1 };
    let word = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let loads = [
        ("10 flows in turn", 10, Order::Cycle),
        ("1000 flows in turn", 1000, Order::Cycle),
        ("10000 flows drawn alike", 10_000, Order::Random),
        ("100000 flows drawn alike", 100_000, Order::Random),
        ("100000 flows as in the Internet", 100_000, Order::Zipf),
        ("1000000 flows drawn alike", 1_000_000, Order::Random),
        ("1000000 flows as in the Internet", 1_000_000, Order::Zipf),
        ("never the same flow", u32::MAX, Order::New),
    ];
    for (name, flows, order) in loads.into_iter().filter(|(name, ..)| name.contains(&word)) {
        measure(name, &Tables::Five, &numbers(flows, order), windows);
    }
    for (name, count) in
        [("a thousand 5-tuples", 1000), ("100000 5-tuples", 100_000), ("a million 5-tuples", 1_000_000)]
    {
        if name.contains(&word) {
            measure(name, &Tables::Tuples(count), &numbers(count, Order::Random), windows);
        }
    }
    for name in ["acl1", "fw1", "ipc1"].into_iter().filter(|name| name.contains(&word)) {
        let Some(path) = weir_testing::shared(&format!("data/external/rules/classbench/{name}_10k.gz")) else { break };
        let rules = rules::classbench(&rules::gunzip(&path));
        for (kind, headers) in [("matching", HeaderSampling::Hits), ("crossed", HeaderSampling::Crossed)] {
            for flows in [100_000, 1_000_000] {
                let keys = rules::headers(&rules, headers, flows as usize, 1);
                let tables = Tables::Rules(rules.clone(), keys.iter().map(header).collect());
                measure(&format!("{name}, {flows} {kind} headers"), &tables, &numbers(flows, Order::Random), windows);
            }
        }
    }
}

fn measure(name: &str, tables: &Tables, numbers: &[u32], windows: usize) {
    let mut beds = MODES.map(|(_, mode)| Bed::new(mode, tables));
    let mut ns = [const { Vec::new() }; MODES.len()];
    for _ in 0..windows {
        for (bed, ns) in beds.iter_mut().zip(&mut ns) {
            ns.push(bed.window(tables, numbers));
        }
    }
    for (((mode, _), ns), bed) in MODES.iter().zip(&mut ns).zip(&mut beds) {
        ns.sort_by(f64::total_cmp);
        let CacheCounts { state, hits, misses, kept, .. } = bed.counts(tables, numbers);
        let share = hits as f64 * 100.0 / (hits + misses).max(1) as f64;
        let (best, median) = (ns[0], ns[ns.len() / 2]);
        println!(
            "{name:35} {mode:4} best {best:6.1} ns, median {median:6.1}; {}, {share:.1} % known, {kept} kept",
            state.name()
        );
    }
}

fn numbers(flows: u32, order: Order) -> Vec<u32> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut draw = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
    };
    let below = |number: u64, end: u32| ((number * u64::from(end)) >> 32) as u32;
    let count = if matches!(order, Order::Cycle) { flows as usize * (DRAWN / flows as usize) } else { DRAWN };
    let all = (0..count).map(|at| match order {
        Order::Cycle => at as u32 % flows,
        Order::Random => below(draw(), flows),
        // The share of the first n flows grows like ln n.
        Order::Zipf => (f64::from(flows).powf(draw() as f64 / 2_f64.powi(32)) as u32).min(flows) - 1,
        Order::New => draw() as u32,
    });
    all.collect()
}

struct Bed {
    clock: SystemClock,
    datapath: Datapath,
    pool: FramePool,
    out: DatapathOutput,
    burst: Vec<Frame>,
    template: Vec<u8>,
    next: usize,
}

impl Bed {
    fn new(verdict_cache: VerdictCacheMode, tables: &Tables) -> Bed {
        let mut datapath = Datapath::new(DatapathConfig { verdict_cache, ..DatapathConfig::default() });
        for number in [1, 2] {
            let desc = PortDesc::new(PortNo(number), MacAddr([2, 0, 0, 0, 0, 9]), format!("p{number}"));
            datapath.add_port(Instant::ZERO, desc, &mut DatapathOutput::default()).expect("the port is new");
        }
        let mut add = |flow| datapath.flow_mod(Instant::ZERO, &flow).expect("the entry is right");
        match tables {
            Tables::Five => (0..TABLES).for_each(|table| (0..ENTRIES).for_each(|number| add(entry(table, number)))),
            Tables::Tuples(count) => (0..*count).for_each(|number| add(tuple_entry(number))),
            Tables::Rules(rules, _) => {
                add(FlowMod::add(0, Match::any(), leave()));
                rules.iter().for_each(|rule| add(FlowMod::add(rule.priority, matching(rule), leave())));
            }
        }
        let mac = MacAddr::from_bits(0x0200_0000_0000);
        let craft = FrameBuilder::ethernet(mac, mac).ipv4([10, 0, 0, 0].into(), [10, 1, 0, 0].into());
        let template = craft.udp(0, 0).payload(&[0; 18]).build();
        let (pool, out, burst) = (FramePool::default(), DatapathOutput::default(), Vec::with_capacity(BURST));
        Bed { clock: SystemClock::start(), datapath, pool, out, burst, template, next: 0 }
    }

    /// Returns nanoseconds per packet.
    fn window(&mut self, tables: &Tables, numbers: &[u32]) -> f64 {
        let (start, mut sent) = (self.clock.now(), 0);
        for _ in 0..WINDOW / BURST {
            sent += self.run(start, tables, numbers);
        }
        assert_eq!(sent, WINDOW, "every packet leaves");
        self.clock.now().since(start).as_secs_f64() * 1e9 / WINDOW as f64
    }

    fn run(&mut self, now: Instant, tables: &Tables, numbers: &[u32]) -> usize {
        for _ in 0..BURST {
            let number = numbers[self.next];
            self.next = if self.next + 1 == numbers.len() { 0 } else { self.next + 1 };
            self.burst.push(frame(&mut self.pool, &self.template, tables, number));
        }
        self.datapath.process(now, PortNo(1), &mut self.burst, &mut self.pool, &mut self.out);
        let mut sent = 0;
        for (_, frames) in &mut self.out.frames {
            sent += frames.len();
            frames.drain(..).for_each(|frame| self.pool.give(frame));
        }
        sent
    }

    /// Returns the cache's counters. Runs one more burst to measure them.
    fn counts(&mut self, tables: &Tables, numbers: &[u32]) -> CacheCounts {
        self.datapath.watch_mut().watch(true);
        self.run(Instant::ZERO, tables, numbers);
        self.datapath.watch_mut().perf().cache
    }
}

/// Returns an entry for one of [`ENTRIES`] values of a table's field. Entries of the last table output.
fn entry(table: u8, number: u32) -> FlowMod {
    let ipv4 = Match::any().with(Field::EthType, eth_type::IPV4);
    let udp = ipv4.clone().with(Field::IpProto, 17_u8);
    let matching = match table {
        0 => Match::any().with(Field::EthDst, 0x0200_0000_0000 | u64::from(number)),
        1 => ipv4.with(Field::Ipv4Src, 10 << 24 | number),
        2 => ipv4.with(Field::Ipv4Dst, 10 << 24 | 1 << 16 | number),
        3 => udp.with(Field::UdpSrc, number as u16),
        _ => udp.with(Field::UdpDst, number as u16),
    };
    let instruction = match table + 1 {
        TABLES => leave(),
        next => vec![Instruction::GotoTable(TableId(next))],
    };
    FlowMod { table: TableId(table), ..FlowMod::add(1, matching, instruction) }
}

fn leave() -> Vec<Instruction> {
    vec![Instruction::ApplyActions(vec![Action::output(PortNo(2))])]
}

/// Returns the addresses and ports of a flow of its own.
fn tuple(number: u32) -> [u8; 12] {
    let mut bytes = [10; 12];
    let mixed =
        u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bytes[..8].copy_from_slice(&mixed.to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn header(key: &FlowKey) -> Header {
    let mut bytes = [0; 12];
    let fields = [(Field::Ipv4Src, 4, 0), (Field::Ipv4Dst, 4, 4), (Field::UdpSrc, 2, 8), (Field::UdpDst, 2, 10)];
    for (field, len, at) in fields {
        bytes[at..at + len].copy_from_slice(&key.get(field).to_be_bytes()[16 - len..]);
    }
    (key.get(Field::IpProto) as u8, bytes)
}

fn tuple_entry(number: u32) -> FlowMod {
    let bytes = tuple(number);
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let udp = Match::any().with(Field::EthType, eth_type::IPV4).with(Field::IpProto, 17_u8);
    let addresses = udp.with(Field::Ipv4Src, word(0)).with(Field::Ipv4Dst, word(4));
    let ports = addresses.with(Field::UdpSrc, (word(8) >> 16) as u16).with(Field::UdpDst, word(8) as u16);
    FlowMod::add(1, ports, leave())
}

/// Converts a rule to a flow entry's match, with ports only for TCP and UDP.
fn matching(rule: &RuleSetEntry) -> Match {
    let fields = [Field::EthType, Field::Ipv4Src, Field::Ipv4Dst, Field::IpProto];
    let ports: &[(Field, Field)] = match rule.value.get(Field::IpProto) {
        6 => &[(Field::UdpSrc, Field::TcpSrc), (Field::UdpDst, Field::TcpDst)],
        17 => &[(Field::UdpSrc, Field::UdpSrc), (Field::UdpDst, Field::UdpDst)],
        _ => &[],
    };
    let all = fields.into_iter().map(|field| (field, field)).chain(ports.iter().copied());
    all.fold(Match::any(), |matching, (from, field)| match rule.mask.get(from) {
        0 => matching,
        mask if mask == field.all_ones() => matching.with(field, rule.value.get(from)),
        mask => matching.with_masked(field, rule.value.get(from), mask),
    })
}

/// Returns a frame of a flow, in which every field has a value that some entry matches.
fn frame(pool: &mut FramePool, template: &[u8], tables: &Tables, number: u32) -> Frame {
    let mut frame = pool.take(template.len());
    let bytes = &mut frame.begin_receive()[..template.len()];
    bytes.copy_from_slice(template);
    match tables {
        Tables::Five => {
            let mut mixed = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            for at in [4, 28, 32, 34, 36] {
                let value = ((mixed >> 32) * u64::from(ENTRIES)) >> 32;
                bytes[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
                mixed = mixed.rotate_left(13).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            }
        }
        Tables::Tuples(_) => bytes[26..38].copy_from_slice(&tuple(number)),
        Tables::Rules(_, headers) => {
            let (protocol, rest) = headers[number as usize];
            bytes[23] = protocol;
            bytes[26..38].copy_from_slice(&rest);
        }
    }
    frame.finish_receive(template.len());
    frame
}
