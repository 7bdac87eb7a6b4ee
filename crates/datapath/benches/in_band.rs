//! Measures what in-band control costs packets that are no control traffic: `cargo bench -p weir-datapath --bench
//! in_band`; with `-- WORD` only the cases whose name contains the word.
//!
//! Bursts of 32 packets pass one entry to another port, as an engine's thread gives them to the datapath, without
//! in-band control, with one controller, and with many. For counting instructions run the program that `--no-run` names
//! with the name of one case under `valgrind --tool=callgrind --toggle-collect='in_band::turn'`, and divide by the
//! number of packets in the output.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use weir_datapath::{Datapath, DatapathConfig, DatapathOutput, InBandConfig, MAX_IN_BAND_CONTROLLERS, Worker};
use weir_openflow::model::{Action, FlowMod, Instruction, Match, PortDesc, PortNo};
use weir_packet::craft::{FrameBuilder, TcpHeader};
use weir_packet::{Frame, FramePool, MacAddr};
use weir_units::{Clock, Instant, SystemClock};

/// Frames per burst.
const BURST: usize = 32;
/// Bursts per window.
const BURSTS: usize = 512;
/// Number of windows, of which the first warms up.
const WINDOWS: usize = 61;
/// Windows when one case is named, for counting instructions.
const FEW_WINDOWS: usize = 3;

fn main() {
    let word = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    // `cargo test` runs this program, too. Few windows then show that it works.
    let is_measuring = word.is_empty() && std::env::args().any(|argument| argument == "--bench");
    let windows = if is_measuring { WINDOWS } else { FEW_WINDOWS };
    let v4 = |last| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), 6653);
    let v6 = |last| SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last)), 6653);
    let many: Vec<SocketAddr> = (0..8).flat_map(|last| [v4(last), v6(last.into())]).collect();
    assert_eq!(many.len(), MAX_IN_BAND_CONTROLLERS);
    for (controllers, name) in [(None, "off"), (Some(vec![v4(100)]), "one controller"), (Some(many), "16 controllers")]
    {
        for (kind, frame) in frames() {
            let name = format!("{name}, {kind}");
            if name.contains(&word) {
                measure(&name, controllers.clone(), &frame, windows);
            }
        }
    }
}

/// Returns packets of 60 bytes or little more by what they are.
fn frames() -> [(&'static str, Vec<u8>); 4] {
    let ethernet = || FrameBuilder::ethernet(MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]));
    let (from, to) = (Ipv4Addr::new(10, 0, 1, 1), Ipv4Addr::new(10, 0, 1, 2));
    let tcp = TcpHeader { source: 40000, destination: 80, ..TcpHeader::default() };
    [
        ("UDP", ethernet().ipv4(from, to).udp(1000, 2000)),
        ("TCP", ethernet().ipv4(from, to).tcp(tcp)),
        ("UDP over IPv6", ethernet().ipv6(from.to_ipv6_mapped(), to.to_ipv6_mapped()).udp(1000, 2000)),
        ("MPLS", ethernet().mpls(100, 0, 64).ipv4(from, to).udp(1000, 2000)),
    ]
    .map(|(kind, frame)| {
        let mut frame = frame.build();
        frame.resize(frame.len().max(60), 0);
        (kind, frame)
    })
}

fn measure(name: &str, controllers: Option<Vec<SocketAddr>>, template: &[u8], windows: usize) {
    // Counting instructions needs no clock, and some versions of valgrind end programs that ask the kernel for it.
    let clock = (windows > FEW_WINDOWS).then(SystemClock::start);
    let time = || clock.map_or(Instant::ZERO, |clock| clock.now());
    let (mut pool, mut out, mut burst) = (FramePool::default(), DatapathOutput::default(), Vec::with_capacity(BURST));
    let mut datapath = Datapath::new(DatapathConfig::default());
    for number in [1, 2] {
        let port = PortDesc::new(PortNo(number), MacAddr::from_bits(number.into()), format!("p{number}"));
        datapath.add_port(Instant::ZERO, port, &mut out).expect("the port is new");
    }
    let output = vec![Instruction::ApplyActions(vec![Action::output(PortNo(2))])];
    datapath.flow_mod(Instant::ZERO, &FlowMod::add(1, Match::any(), output)).expect("the entry is right");
    if let Some(controllers) = controllers {
        let silence = Duration::from_secs(1);
        datapath.start_in_band(InBandConfig { controllers, silence, queue: None, vlan: None });
    }
    let mut worker = datapath.add_worker();
    let (mut sent, mut ns) = (0_usize, Vec::new());
    for _ in 0..windows {
        let mut spent = Duration::ZERO;
        for _ in 0..BURSTS {
            burst.extend((0..BURST).map(|_| receive(&mut pool, template)));
            let start = time();
            turn(&mut datapath, &mut worker, start, &mut burst, &mut pool, &mut out);
            spent += time().since(start);
            for (_, frames) in &mut out.frames {
                sent += frames.len();
                frames.drain(..).for_each(|frame| pool.give(frame));
            }
        }
        ns.push(spent.as_secs_f64() * 1e9 / (BURST * BURSTS) as f64);
    }
    assert_eq!(sent, windows * BURST * BURSTS, "every packet leaves once");
    let mut ns = ns.split_off(1);
    ns.sort_by(f64::total_cmp);
    let [best, median] = [ns[0], ns[ns.len() / 2]];
    let times = clock.map_or(String::new(), |_| format!("best {best:5.1} ns, median {median:5.1} "));
    println!("{name:32} {times}({sent} packets)");
}

/// Forwards a burst as an engine's thread does.
#[inline(never)]
fn turn(
    datapath: &mut Datapath,
    worker: &mut Worker,
    now: Instant,
    burst: &mut Vec<Frame>,
    pool: &mut FramePool,
    out: &mut DatapathOutput,
) {
    if !datapath.forward(worker, now, PortNo(1), burst, pool, out) {
        datapath.process_for(worker, now, PortNo(1), burst, pool, out);
    }
}

fn receive(pool: &mut FramePool, template: &[u8]) -> Frame {
    let mut frame = pool.take(template.len());
    frame.begin_receive()[..template.len()].copy_from_slice(template);
    frame.finish_receive(template.len());
    frame
}
