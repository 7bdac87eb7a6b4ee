//! The verdict cache changes neither output nor counters nor the expiry of entries.
#![allow(clippy::cast_possible_truncation, reason = "the numbers drawn are small")]
use crate::bench::*;
use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use weir_datapath::{CacheCounts, CacheState, DatapathConfig, DatapathOutput, VerdictCacheMode};
use weir_openflow::model::multipart::{FlowRequest, FlowStats, ReplyBody, RequestBody};
use weir_openflow::model::{Action, FlowCommand, FlowMod, Instruction, Match, PortNo, TableId};
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;
use weir_packet::{Field, Frame, FramePool, PacketType};
use weir_testing::rules::{self, HeaderSampling, SeededRng};

/// Number of tables in a pipeline.
const TABLES: usize = 11;

/// Two benches: one always uses the cache, the other never.
struct Pair {
    cached: Bench,
    plain: Bench,
}

impl Pair {
    fn new() -> Pair {
        let bench = |verdict_cache| {
            let config = DatapathConfig { verdict_cache, n_tables: TABLES as u8, ..DatapathConfig::default() };
            let mut bench = Bench::with(config);
            bench.datapath.channel_up(bench.now, CONTROLLER, weir_openflow::Version::V13);
            bench
        };
        Pair { cached: bench(VerdictCacheMode::On), plain: bench(VerdictCacheMode::Off) }
    }

    /// Applies a flow-mod to both. Returns true if both accepted it.
    fn flow_mod(&mut self, flow: &FlowMod) -> bool {
        let taken = [&mut self.cached, &mut self.plain].map(|bench| bench.flow_mod(flow));
        assert_eq!(taken[0], taken[1], "{flow:?}");
        taken[0].is_ok()
    }

    /// Processes a burst in both, which must give the same output.
    fn receive(&mut self, in_port: u32, burst: &[Vec<u8>]) {
        self.receive_frames(in_port, &burst.iter().map(|bytes| Frame::from_bytes(bytes)).collect::<Vec<_>>());
    }

    /// Processes a burst of packets of any type in both, which must give the same output.
    fn receive_frames(&mut self, in_port: u32, burst: &[Frame]) {
        let [cached, plain] = [&mut self.cached, &mut self.plain].map(|bench| {
            let mut frames = burst.to_vec();
            bench.datapath.process(bench.now, PortNo(in_port), &mut frames, &mut bench.pool, &mut bench.out);
            (bench.sent(), bench.packet_ins(CONTROLLER))
        });
        assert_eq!(cached, plain, "{} frames from port {in_port}", burst.len());
    }

    /// Lets time pass in both: idle entries expire.
    fn wait(&mut self, time: Duration) {
        for bench in [&mut self.cached, &mut self.plain] {
            bench.wait(time);
            while bench.datapath.expire(bench.now, &mut bench.out).is_some_and(|again| again <= bench.now) {}
            bench.out.messages.clear();
        }
    }

    /// Checks that both have the same counters.
    fn check_counts(&mut self) {
        let [cached, plain] = [&mut self.cached, &mut self.plain].map(|bench| (flows(bench), tables(bench)));
        assert_eq!(cached, plain);
    }

    fn counts(&mut self, burst: &[Vec<u8>]) -> CacheCounts {
        self.cached.datapath.watch_mut().watch(true);
        self.receive(1, burst);
        let watch = self.cached.datapath.watch_mut();
        watch.watch(false);
        watch.perf().cache
    }
}

/// Returns all entries with their counters, in an order independent of their places.
fn flows(bench: &mut Bench) -> Vec<FlowStats> {
    let parts = bench.multipart(CONTROLLER, RequestBody::Flow(FlowRequest::all())).unwrap();
    let lists =
        parts.into_iter().map(|part| if let ReplyBody::Flow(flows) = part { flows } else { panic!("{part:?}") });
    let mut flows: Vec<FlowStats> = lists.flatten().collect();
    flows.sort_by_key(|flow| (flow.table.0, flow.priority, flow.cookie));
    flows
}

/// Returns for each table: entries, packets looked up, packets matched.
fn tables(bench: &mut Bench) -> Vec<(u32, u64, u64)> {
    let parts = bench.multipart(CONTROLLER, RequestBody::Table).unwrap();
    let [ReplyBody::Table(tables)] = &parts[..] else { panic!("{parts:?}") };
    tables.iter().map(|table| (table.active_count, table.lookup_count, table.matched_count)).collect()
}

/// Returns a match on packets that begin with an IPv4 header.
fn bare_ipv4() -> Match {
    Match::any().with(Field::PacketType, PacketType::of_eth_type(eth_type::IPV4).to_bits())
}

fn any_match(draw: &mut SeededRng) -> Match {
    let ipv4 = || Match::any().with(Field::EthType, eth_type::IPV4);
    let prefix = |length: usize| u32::MAX.checked_shl(32 - length as u32).unwrap_or(0);
    let value = draw.below(4) as u32;
    match draw.below(11) {
        9 => bare_ipv4(),
        10 => bare_ipv4().with(Field::IpProto, 17_u8).with(Field::UdpDst, value as u16),
        0 => Match::any(),
        1 => from_port(1 + value),
        2 => Match::any().with(Field::EthDst, mac(value.into()).to_bits()),
        3 => Match::any().with_masked(Field::EthSrc, u64::from(value & 1), 1_u64),
        4 => ipv4().with_masked(Field::Ipv4Dst, value << 30, prefix(1 + draw.below(2)) & value << 30),
        5 => ipv4().with_masked(Field::Ipv4Src, value, 3_u32),
        6 => ipv4().with(Field::IpProto, 17_u8).with(Field::UdpDst, value as u16),
        7 => Match::any().with(Field::VlanVid, 0x1000 | value as u16),
        _ => Match::any().with(Field::EthType, [eth_type::IPV4, eth_type::ARP, eth_type::IPV6][draw.below(3)]),
    }
}

fn any_instructions(draw: &mut SeededRng, table: usize) -> Vec<Instruction> {
    let out = |draw: &mut SeededRng| Action::output(PortNo(1 + draw.below(4) as u32));
    let left = TABLES - 1 - table;
    let goto = (left > 0).then(|| Instruction::GotoTable(TableId((table + 1 + draw.below(left.min(2))) as u8)));
    let with_goto = |first: Instruction| std::iter::once(first).chain(goto.clone()).collect();
    match draw.below(16) {
        0..=7 => goto.clone().into_iter().collect(),
        8..=10 => apply(vec![out(draw)]),
        11 => vec![Instruction::WriteActions(vec![out(draw)])],
        12 => with_goto(Instruction::WriteMetadata { metadata: 1, mask: 3 }),
        13 => with_goto(Instruction::ApplyActions(vec![Action::SetField { field: Field::EthDst, value: 3 }])),
        14 => apply(vec![Action::output(PortNo::CONTROLLER)]),
        _ => vec![],
    }
}

/// Generates a packet from few values, so that most flows repeat and match entries.
fn any_frame(draw: &mut SeededRng) -> Vec<u8> {
    let mut value = |end: usize| draw.below(end) as u16;
    let frame = FrameBuilder::ethernet(mac(value(4).into()), mac(value(2).into()));
    let frame = if value(4) == 0 { frame.vlan(0x8100, value(3), 0) } else { frame };
    let address = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 30 | u32::from(low));
    let frame = match value(5) {
        0 => frame.arp(1, (mac(1), address(0, 1)), (mac(2), address(0, 2))),
        1 => frame.ipv6(Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED).udp(1, value(4)),
        _ => frame.ipv4(address(1, value(4)), address(value(4), 9)).udp(7, value(4)),
    };
    frame.payload(&vec![1; usize::from(value(60))]).build()
}

/// Takes the Ethernet header off some packets of IPv4, so that they have another packet type.
fn with_packet_type(draw: &mut SeededRng, bytes: &[u8]) -> Frame {
    let is_bare = bytes[12..14] == eth_type::IPV4.to_be_bytes() && draw.below(3) == 0;
    let mut frame = Frame::from_bytes(if is_bare { &bytes[14..] } else { bytes });
    if is_bare {
        frame.set_packet_type(PacketType::of_eth_type(eth_type::IPV4));
    }
    frame
}

/// Generates an entry with a priority that no other entry has, so that the winner of several matching entries is
/// defined.
fn any_entry(draw: &mut SeededRng, cookie: u64) -> FlowMod {
    let table = draw.below(TABLES);
    // Table 0 has an entry for all packets of each type, so that most packets reach later tables.
    let (table, priority, matching) = match cookie {
        0 => (0, 0, Match::any()),
        1 => (0, 1, bare_ipv4()),
        _ => (table, cookie as u16, any_match(draw)),
    };
    FlowMod {
        table: TableId(table as u8),
        cookie,
        idle_timeout: [0, 0, 2, 3][draw.below(4)],
        ..FlowMod::add(priority, matching, any_instructions(draw, table))
    }
}

#[test]
fn pipelines_that_change_between_bursts_do_the_same() {
    for seed in 1..=40 {
        let (mut draw, mut pair) = (SeededRng(seed), Pair::new());
        let mut there: Vec<FlowMod> = (0..40).map(|cookie| any_entry(&mut draw, cookie)).collect();
        there.retain(|flow| pair.flow_mod(flow));
        let pool: Vec<Vec<u8>> = (0..60).map(|_| any_frame(&mut draw)).collect();
        for round in 0..60 {
            let count = 1 + draw.below(80);
            let burst: Vec<Frame> = (0..count)
                .map(|_| {
                    let at = draw.below(pool.len());
                    with_packet_type(&mut draw, &pool[at])
                })
                .collect();
            pair.receive_frames(1 + draw.below(3) as u32, &burst);
            if draw.below(4) == 0 {
                change(&mut pair, &mut draw, &mut there, 1000 * seed + round);
            }
            if draw.below(3) == 0 {
                pair.wait(Duration::from_millis(700));
            }
            pair.check_counts();
        }
        let counts = pair.counts(&pool[..4]);
        assert!(counts.hits > 300 && counts.misses > 10, "seed {seed}: {counts:?}");
    }
}

/// Adds an entry, or changes or deletes another.
fn change(pair: &mut Pair, draw: &mut SeededRng, there: &mut Vec<FlowMod>, cookie: u64) {
    let at = draw.below(there.len());
    match draw.below(3) {
        0 => {
            let flow = any_entry(draw, cookie);
            if pair.flow_mod(&flow) {
                there.push(flow);
            }
        }
        1 => {
            let table = usize::from(there[at].table.0);
            let instructions = any_instructions(draw, table);
            let flow = FlowMod { command: FlowCommand::ModifyStrict, instructions, ..there[at].clone() };
            pair.flow_mod(&flow);
        }
        _ => {
            let flow = there.swap_remove(at);
            pair.flow_mod(&FlowMod { command: FlowCommand::DeleteStrict, ..flow });
            if there.is_empty() {
                there.push(any_entry(draw, 0));
            }
        }
    }
}

/// The entries of a ClassBench set in two tables, with packets drawn from few flows and from many.
#[test]
fn rule_sets_do_the_same() {
    for name in ["acl1", "fw1", "ipc1"] {
        let Some(file) = weir_testing::shared(&format!("data/external/rules/classbench/{name}_10k.gz")) else { return };
        let rules = rules::classbench(&rules::gunzip(&file));
        let (mut pair, mut priorities) = (Pair::new(), HashSet::new());
        pair.flow_mod(&FlowMod::add(1, Match::any(), vec![Instruction::GotoTable(TableId(1))]));
        let kept = rules.iter().filter(|rule| priorities.insert(rule.priority)).step_by(3);
        for (number, rule) in kept.enumerate() {
            let matching = matching(rule);
            let flow = FlowMod::add(rule.priority, matching, apply(output(2 + number as u32 % 3)));
            pair.flow_mod(&FlowMod { table: TableId(1), cookie: number as u64, ..flow });
        }
        let headers = rules::headers(&rules, HeaderSampling::Hits, 6000, 5);
        let frames: Vec<Vec<u8>> = headers.iter().filter_map(frame_of).collect();
        let mut draw = SeededRng(9);
        for count in [40, frames.len()] {
            for _ in 0..60 {
                let burst: Vec<Vec<u8>> = (0..64).map(|_| frames[draw.below(count)].clone()).collect();
                pair.receive(1, &burst);
            }
        }
        pair.check_counts();
        let counts = pair.counts(&frames[..4]);
        assert!(counts.hits > 3000 && counts.misses > 200, "{name}: {counts:?}");
    }
}

fn matching(rule: &rules::RuleSetEntry) -> Match {
    let fields = [Field::EthType, Field::Ipv4Src, Field::Ipv4Dst, Field::IpProto];
    let ports: &[Field] = match rule.value.get(Field::IpProto) {
        6 => &[Field::TcpSrc, Field::TcpDst],
        17 => &[Field::UdpSrc, Field::UdpDst],
        _ => &[],
    };
    fields.iter().chain(ports).fold(Match::any(), |matching, field| match rule.mask.get(*field) {
        0 => matching,
        mask if mask == field.all_ones() => matching.with(*field, rule.value.get(*field)),
        mask => matching.with_masked(*field, rule.value.get(*field), mask),
    })
}

fn frame_of(key: &weir_packet::FlowKey) -> Option<Vec<u8>> {
    let address = |field| Ipv4Addr::from_bits(key.get(field) as u32);
    let frame = FrameBuilder::ethernet(mac(2), mac(1)).ipv4(address(Field::Ipv4Src), address(Field::Ipv4Dst));
    let ports = (key.get(Field::UdpSrc) as u16, key.get(Field::UdpDst) as u16);
    (key.get(Field::IpProto) == 17).then(|| frame.udp(ports.0, ports.1).payload(&[0; 18]).build())
}

#[test]
fn workers_have_caches_of_their_own() {
    let mut bench = Bench::with(DatapathConfig { verdict_cache: VerdictCacheMode::On, ..DatapathConfig::default() });
    bench.flow_mod(&FlowMod::add(1, Match::any(), vec![Instruction::GotoTable(TableId(1))])).unwrap();
    bench.flow_mod(&FlowMod { table: TableId(1), ..FlowMod::add(1, from_port(1), apply(output(2))) }).unwrap();
    let (mut one, mut other) = (bench.datapath.add_worker(), bench.datapath.add_worker());
    for (worker, bursts) in [(&mut one, 3), (&mut other, 1)] {
        worker.watch_mut().watch(true);
        for _ in 0..bursts {
            let mut frames = vec![Frame::from_bytes(&frame())];
            let (pool, mut out) = (&mut FramePool::default(), DatapathOutput::default());
            assert!(bench.datapath.forward(worker, bench.now, PortNo(1), &mut frames, pool, &mut out));
            assert_eq!(out.frames.len(), 1);
        }
        let counts = worker.watch().perf().cache;
        assert_eq!((counts.hits, counts.misses, counts.state), (bursts - 1, 1, CacheState::Using));
    }
    bench.datapath.channel_up(bench.now, CONTROLLER, weir_openflow::Version::V13);
    assert!(flows(&mut bench).iter().all(|flow| flow.packet_count == 4 && flow.byte_count == 4 * 214));
    assert_eq!(tables(&mut bench)[..2], [(1, 4, 4), (1, 4, 4)]);
}

#[test]
fn many_flows_get_room() {
    const FLOWS: usize = 40_000;
    let mut pair = Pair::new();
    pair.flow_mod(&FlowMod::add(1, Match::any(), vec![Instruction::GotoTable(TableId(1))]));
    for port in 0..16_u16 {
        let flow = Match::any().with(Field::EthType, eth_type::IPV4).with(Field::IpProto, 17_u8).with_masked(
            Field::UdpSrc,
            port,
            15_u16,
        );
        pair.flow_mod(&FlowMod { table: TableId(1), ..FlowMod::add(2, flow, apply(output(2 + u32::from(port) % 2))) });
    }
    let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let frame = |flow: usize| {
        FrameBuilder::ethernet(mac(2), mac(1)).ipv4(from, to).udp(flow as u16, 7).payload(&[0; 18]).build()
    };
    let frames: Vec<Vec<u8>> = (0..FLOWS).map(frame).collect();
    pair.flow_mod(&FlowMod {
        table: TableId(1),
        ..FlowMod::add(
            1,
            Match::any()
                .with(Field::EthType, eth_type::IPV4)
                .with(Field::IpProto, 17_u8)
                .with(Field::UdpSrc, 65_535_u16),
            vec![],
        )
    });
    let few = pair.counts(&frames[..1]);
    for burst in frames.iter().cycle().take(FLOWS * 6).cloned().collect::<Vec<_>>().chunks(32) {
        pair.receive(1, burst);
    }
    pair.check_counts();
    let many = pair.counts(&frames[..1]);
    assert_eq!(many.slots, few.slots * 16, "{many:?}");
    assert!(many.kept > FLOWS * 9 / 10, "{many:?}");
    for burst in frames.chunks(32) {
        pair.receive(1, burst);
    }
    pair.check_counts();
    let again = pair.counts(&frames[..1]).since(many);
    assert!(again.hits as usize > FLOWS * 9 / 10, "{again:?}");
    // The fields used occupy other places in a verdict, so the cache starts over.
    let (tagged, from_address) =
        (Match::any().with(Field::VlanVid, 0x1001_u16), Match::any().with(Field::EthSrc, 5_u64));
    let both = [
        tagged,
        from_address.with(Field::EthType, eth_type::IPV6).with(Field::Ipv6Src, 1_u128).with(Field::Ipv6Dst, 2_u128),
    ];
    for flow in both {
        pair.flow_mod(&FlowMod::add(9, flow, vec![]));
    }
    for burst in frames[..3200].chunks(32) {
        pair.receive(1, burst);
    }
    pair.check_counts();
    let other = pair.counts(&frames[..1]);
    assert!(other.slots < few.slots && other.kept <= 3200, "{other:?}");
}

#[test]
fn messages_that_change_nothing_leave_it_as_it_is() {
    let mut pair = Pair::new();
    pair.flow_mod(&FlowMod::add(1, Match::any(), apply(output(2))));
    for _ in 0..5 {
        pair.receive(1, &[frame()]);
        pair.check_counts();
        pair.wait(Duration::from_millis(10));
    }
    let counts = pair.counts(&[frame()]);
    assert_eq!((counts.hits, counts.misses, counts.renewals, counts.kept), (5, 1, 1, 1));
    pair.flow_mod(&FlowMod::add(2, from_port(1), apply(output(3))));
    let counts = pair.counts(&[frame()]);
    assert_eq!((counts.hits, counts.misses, counts.renewals, counts.kept), (5, 2, 2, 1));
}

#[test]
fn one_cheap_table_is_never_asked_about() {
    let mut bench = Bench::new();
    bench.add(1, Match::any(), output(2));
    bench.datapath.watch_mut().watch(true);
    for _ in 0..3000 {
        bench.receive(1, &frame());
    }
    let counts = bench.datapath.watch_mut().perf().cache;
    assert_eq!((counts.hits, counts.misses, counts.trials, counts.state), (0, 0, 0, CacheState::Resting));
}
