//! Measures the pipeline's cost per packet in memory, on one thread: `cargo bench -p weir-datapath`; with `-- WORD`
//! only the cases whose name contains the word.
//!
//! The load is that of the "one flow" rows in the literature: 60-byte UDP frames are written within the receive burst
//! of 32, run through entries read from data, counted, and returned to the pool where a port would transmit them.
//! Each figure is the best and the median of many windows; the spread shows how quiet the machine was. Other traffic
//! (random flows, misses) is not measured here.
use std::net::Ipv4Addr;
use weir_datapath::{Datapath, DatapathConfig, DatapathOutput};
use weir_openflow::model::group::{Bucket, BucketId, GroupCommand, GroupKind, GroupMod};
use weir_openflow::model::{Action, FlowCommand, FlowMod, GroupId, Instruction, Match, PortDesc, PortNo, TableId};
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;
use weir_packet::{Field, Frame, FramePool, MacAddr};
use weir_units::{Clock, Instant, SystemClock};

/// Frames per receive burst.
const BURST: usize = 32;
/// Bursts per window: 65536 packets.
const BURSTS: usize = 2048;
/// Number of windows, of which the first warms up.
const WINDOWS: usize = 61;

fn main() {
    // `cargo test` runs this program, too. One window then shows that it works.
    let is_measuring = std::env::args().any(|argument| argument == "--bench");
    let windows = if is_measuring { WINDOWS } else { 2 };
    let ghz = tsc_ghz();
    println!("{BURST} frames a burst, {} packets a window, {} windows", BURST * BURSTS, windows - 1);
    let word = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    for case in cases().into_iter().filter(|case| case.name.contains(&word)) {
        let mut ns = measure(&case, windows);
        ns.sort_by(f64::total_cmp);
        let (best, median) = (ns[0], ns[ns.len() / 2]);
        let cycles = ghz.map_or(String::new(), |ghz| format!(", {:.0} cycles at {ghz:.2} GHz", best * ghz));
        println!("{:34} best {best:6.1} ns{cycles}, {:.1} Mpps; median {median:6.1} ns", case.name, 1e3 / best);
    }
    if word.is_empty() {
        let sizes: &[u64] = if is_measuring { &[1_000, 100_000, 1_000_000] } else { &[1_000] };
        sizes.iter().for_each(|entries| measure_flow_mods(*entries));
    }
}

/// Measures the cost of adding and deleting entries when there are many.
fn measure_flow_mods(entries: u64) {
    let clock = SystemClock::start();
    let mut datapath = Datapath::new(DatapathConfig::default());
    let flow = |number| {
        let matching = Match::any().with(Field::EthDst, address(number).to_bits());
        entry(0, 1, matching, vec![Action::output(PortNo(2))])
    };
    for command in [FlowCommand::Add, FlowCommand::DeleteStrict] {
        let flows: Vec<FlowMod> = (0..entries).map(|number| FlowMod { command, ..flow(number) }).collect();
        let start = clock.now();
        for flow in &flows {
            datapath.flow_mod(start, flow).expect("the entry is right");
        }
        let ns = clock.now().since(start).as_secs_f64() * 1e9 / entries as f64;
        println!("{command:?}, {entries} entries: {ns:.0} ns each");
    }
}

/// A set of entries to measure.
struct Case {
    name: &'static str,
    entries: Vec<FlowMod>,
    /// Number of destination addresses that the frames use in turn.
    addresses: u64,
    /// Shape of the frames.
    shape: Shape,
}

/// Headers after the Ethernet header.
#[derive(Clone, Copy)]
enum Shape {
    Ipv4,
    Tagged,
    Ipv6,
    Mpls,
    Icmp,
    Arp,
}

fn cases() -> Vec<Case> {
    let of_shape = |name, shape, matching, actions| Case {
        name,
        entries: vec![entry(0, 1, matching, actions)],
        addresses: 1,
        shape,
    };
    let one = |name, matching, actions| of_shape(name, Shape::Ipv4, matching, actions);
    let output = || vec![Action::output(PortNo(2))];
    let to = |number| Match::any().with(Field::EthDst, address(number).to_bits());
    let destinations = |name, count| Case {
        name,
        entries: (0..count).map(|number| entry(0, 1, to(number), output())).collect(),
        addresses: count,
        shape: Shape::Ipv4,
    };
    // The packets' destination lies in all of these prefixes; the longest wins.
    let prefix = |length: u16| {
        let mask = u32::MAX << (32 - length);
        let ipv4 = Match::any().with(Field::EthType, eth_type::IPV4);
        ipv4.with_masked(Field::Ipv4Dst, 0x0a00_0002 & mask, mask)
    };
    let ipv4 = Match::any().with(Field::EthType, eth_type::IPV4);
    let tagged = || Match::any().with_masked(Field::VlanVid, 0x1000_u16, 0x1000_u16);
    vec![
        one("one entry, matching anything", Match::any(), output()),
        one("in_port -> output", Match::any().with(Field::InPort, 1_u32), output()),
        one("push_vlan, output", Match::any(), vec![Action::PushVlan(0x8100), Action::output(PortNo(2))]),
        one(
            "set both addresses, dec_ttl, output",
            ipv4,
            vec![
                Action::set_mac(Field::EthSrc, address(90)),
                Action::set_mac(Field::EthDst, address(91)),
                Action::DecNwTtl,
                Action::output(PortNo(2)),
            ],
        ),
        of_shape("pop_vlan, output", Shape::Tagged, tagged(), vec![Action::PopVlan, Action::output(PortNo(2))]),
        one(
            "push_vlan, set_vid, output",
            Match::any(),
            vec![
                Action::PushVlan(0x8100),
                Action::SetField { field: Field::VlanVid, value: 0x1005 },
                Action::output(PortNo(2)),
            ],
        ),
        one(
            "set address and port, output",
            Match::any().with(Field::EthType, eth_type::IPV4).with(Field::IpProto, 17_u8),
            vec![
                Action::SetField { field: Field::Ipv4Dst, value: 0x0a00_0063 },
                Action::SetField { field: Field::UdpDst, value: 4000 },
                Action::output(PortNo(2)),
            ],
        ),
        of_shape("tagged, output", Shape::Tagged, Match::any(), output()),
        of_shape("IPv6, output", Shape::Ipv6, Match::any(), output()),
        of_shape("MPLS, output", Shape::Mpls, Match::any(), output()),
        of_shape("ICMP, output", Shape::Icmp, Match::any(), output()),
        of_shape("ARP, output", Shape::Arp, Match::any(), output()),
        one("NORMAL, flooded to one port", Match::any(), vec![Action::output(PortNo::NORMAL)]),
        one("group indirect", Match::any(), vec![Action::Group(INDIRECT)]),
        one("group select, 4 alike", Match::any(), vec![Action::Group(SELECT)]),
        one("group select, weights 1 to 4", Match::any(), vec![Action::Group(WEIGHTED)]),
        one("group of one that sets an address", Match::any(), vec![Action::Group(EDITING)]),
        destinations("4 destinations", 4),
        destinations("8 destinations", 8),
        destinations("16 destinations", 16),
        destinations("1000 destinations", 1000),
        destinations("100000 destinations", 100_000),
        Case {
            name: "32 prefix lengths",
            entries: (1..=32).map(|length| entry(0, length, prefix(length), output())).collect(),
            addresses: 1,
            shape: Shape::Ipv4,
        },
        Case {
            name: "five tables",
            entries: (0..5).map(|table| entry(table, 1, Match::any(), output())).collect(),
            addresses: 1,
            shape: Shape::Ipv4,
        },
    ]
}

const INDIRECT: GroupId = GroupId(1);
const SELECT: GroupId = GroupId(2);
const WEIGHTED: GroupId = GroupId(3);
const EDITING: GroupId = GroupId(4);

/// Returns groups that send every packet to one port.
fn groups() -> impl Iterator<Item = GroupMod> {
    let set = Action::set_mac(Field::EthDst, address(91));
    let bucket = |id, weight| Bucket { weight, ..Bucket::new(BucketId(id), vec![Action::output(PortNo(2))]) };
    let editing = Bucket::new(BucketId(0), vec![set, Action::output(PortNo(2))]);
    let groups = [
        (INDIRECT, GroupKind::Indirect, vec![bucket(0, 0)]),
        (SELECT, GroupKind::Select, (0..4).map(|id| bucket(id, 1)).collect()),
        (WEIGHTED, GroupKind::Select, (0..4).zip(1..).map(|(id, weight)| bucket(id, weight)).collect()),
        (EDITING, GroupKind::Indirect, vec![editing]),
    ];
    groups.into_iter().map(|(group, kind, buckets)| GroupMod {
        command: GroupCommand::Add,
        kind,
        group,
        command_bucket: BucketId::ALL,
        buckets,
        properties: Vec::new(),
    })
}

/// Returns an entry. In the first four of five tables it goes to the next table instead of running the actions.
fn entry(table: u8, priority: u16, matching: Match, actions: Vec<Action>) -> FlowMod {
    FlowMod { table: TableId(table), ..FlowMod::add(priority, matching, vec![Instruction::ApplyActions(actions)]) }
}

fn measure(case: &Case, windows: usize) -> Vec<f64> {
    let clock = SystemClock::start();
    let mut datapath = datapath(case);
    let (mut pool, mut out, mut burst) = (FramePool::default(), DatapathOutput::default(), Vec::with_capacity(BURST));
    let templates: Vec<Vec<u8>> = (0..case.addresses).map(|number| frame_to(number, case.shape)).collect();
    let mut turn = templates.iter().cycle();
    let (mut sent, mut ns) = (0_usize, Vec::new());
    for _ in 0..windows {
        let start = clock.now();
        for _ in 0..BURSTS {
            burst.extend(turn.by_ref().take(BURST).map(|template| receive(&mut pool, template)));
            datapath.process(start, PortNo(1), &mut burst, &mut pool, &mut out);
            for (_, frames) in &mut out.frames {
                sent += frames.len();
                frames.drain(..).for_each(|frame| pool.give(frame));
            }
        }
        let elapsed = clock.now().since(start);
        ns.push(elapsed.as_secs_f64() * 1e9 / (BURST * BURSTS) as f64);
    }
    assert_eq!(sent, windows * BURST * BURSTS, "every packet leaves once");
    ns.split_off(1)
}

fn receive(pool: &mut FramePool, template: &[u8]) -> Frame {
    let mut frame = pool.take(template.len());
    frame.begin_receive()[..template.len()].copy_from_slice(template);
    frame.finish_receive(template.len());
    frame
}

fn datapath(case: &Case) -> Datapath {
    let mut datapath = Datapath::new(DatapathConfig::default());
    for number in [1, 2] {
        datapath.add_port(Instant::ZERO, port(number), &mut DatapathOutput::default()).expect("the port is new");
    }
    for group in groups() {
        datapath.group_mod(Instant::ZERO, &group, &mut DatapathOutput::default()).expect("the group is right");
    }
    let last = case.entries.iter().map(|flow| flow.table.0).max().unwrap_or(0);
    for flow in &case.entries {
        let mut flow = flow.clone();
        if flow.table.0 < last {
            flow.instructions = vec![Instruction::GotoTable(TableId(flow.table.0 + 1))];
        }
        datapath.flow_mod(Instant::ZERO, &flow).expect("the entry is right");
    }
    datapath
}

fn port(number: u32) -> PortDesc {
    PortDesc::new(PortNo(number), address(number.into()), format!("p{number}"))
}

fn address(number: u64) -> MacAddr {
    MacAddr::from_bits(0x0200_0000_0000 | number)
}

fn frame_to(number: u64, shape: Shape) -> Vec<u8> {
    let ethernet = FrameBuilder::ethernet(address(number), address(100));
    let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let mut frame = match shape {
        Shape::Ipv4 => ethernet.ipv4(from, to).udp(1000, 2000),
        Shape::Tagged => ethernet.vlan(0x8100, 5, 0).ipv4(from, to).udp(1000, 2000),
        Shape::Ipv6 => ethernet.ipv6(from.to_ipv6_mapped(), to.to_ipv6_mapped()).udp(1000, 2000),
        Shape::Mpls => ethernet.mpls(100, 0, 64).ipv4(from, to).udp(1000, 2000),
        Shape::Icmp => ethernet.ipv4(from, to).icmp(8, 0, [0; 4]),
        Shape::Arp => ethernet.arp(1, (address(1), from), (address(2), to)),
    }
    .build();
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Returns the frequency of the processor's cycle counter in GHz as Linux measured it, or `None` if Linux does not
/// tell.
fn tsc_ghz() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("cpu MHz"))?;
    Some(line.split(':').nth(1)?.trim().parse::<f64>().ok()? / 1e3)
}
