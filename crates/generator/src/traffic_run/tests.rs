use super::*;
use weir_port::{memory, null::NullPort, spec::PortOptions};
use weir_traffic::{ArrivalProcess, FlowMix, OfferedPackets, PacketSizeLaw, TrafficTrace};

fn offer(arrival: ArrivalProcess, per_second: f64, bytes: u32) -> OfferedTraffic {
    let flows = FlowMix { known: 10, zipf: 1.0, new: 0.1 };
    OfferedTraffic::Packets {
        offered: OfferedPackets::Rule { arrival, per_second, size: PacketSizeLaw::Fixed(bytes) },
        flows,
    }
}

fn source(offer: OfferedTraffic) -> TrafficSenderConfig {
    TrafficSenderConfig { offer, replay: None, frames: FrameSpec::default(), seed: 1 }
}

fn loop_back(capacity: usize) -> (Box<dyn Port>, Box<dyn Port>) {
    let (near, far) = memory::pair(capacity).unwrap();
    (Box::new(near), Box::new(far))
}

fn short() -> TrafficRunConfig {
    TrafficRunConfig { duration: Some(Duration::from_millis(200)), ..TrafficRunConfig::default() }
}

fn run(rig: TrafficRun) -> TrafficRunReport {
    rig.run(&mut || false, &mut |_| ()).unwrap()
}

#[test]
fn what_is_sent_comes_and_is_known_again() {
    let (near, far) = loop_back(4096);
    let config = TrafficRunConfig { warm_up: Duration::from_millis(50), threshold: Some(Duration::ZERO), ..short() };
    let report = run(TrafficRun::new(
        config,
        Some((source(offer(ArrivalProcess::Poisson, 20_000.0, 100)), near)),
        Some(far),
        vec![],
    )
    .unwrap());
    let (sent, received) = (report.sent.unwrap(), report.received.unwrap());
    assert!(!report.partial && report.others == 0);
    assert!(sent.sent > 1000 && sent.sent <= sent.offered, "{sent:?}");
    assert_eq!((received.received, received.lost, received.duplicates), (sent.sent, 0, 0));
    assert_eq!(received.bytes, sent.bytes);
    assert!(received.warm_up > 100, "{received:?}");
    assert_eq!((received.reordering.reordered, received.before_sent), (0, 0));
    assert_eq!(received.new_flows.unwrap().samples, sent.new_flows);
    assert!(received.effective_new.unwrap() > 0.9);
    // Whatever the machine does meanwhile, packets are never early.
    let gaps = sent.gaps.unwrap();
    assert_eq!(gaps.gaps, sent.sent - 1);
    assert!(gaps.fit.is_some() && sent.late.unwrap().samples == sent.sent);
}

#[test]
fn a_full_port_is_told_from_loss_behind_it() {
    let (near, far) = loop_back(8);
    let report =
        run(TrafficRun::new(short(), Some((source(offer(ArrivalProcess::Constant, 5000.0, 60)), near)), None, vec![])
            .unwrap());
    let sent = report.sent.unwrap();
    assert_eq!(sent.refused, sent.sent - 8, "nobody takes them out");
    drop(far);
}

#[test]
fn a_list_is_sent_once() {
    let (near, far) = loop_back(64);
    let offered = OfferedPackets::Trace(TrafficTrace::parse("0 60\n0.001 1500\n0.005 60\n").unwrap());
    let offer = OfferedTraffic::Packets { offered, flows: FlowMix::default() };
    let config = TrafficRunConfig { duration: None, ..short() };
    let report = run(TrafficRun::new(config, Some((source(offer), near)), Some(far), vec![]).unwrap());
    let (sent, received) = (report.sent.unwrap(), report.received.unwrap());
    assert_eq!((sent.offered, sent.sent, sent.bytes, received.received), (3, 3, 1620, 3));
}

#[test]
fn stopped_it_tells_what_was_done() {
    let (near, far) = loop_back(4096);
    let config = TrafficRunConfig { duration: Some(Duration::from_secs(3600)), ..short() };
    let rig =
        TrafficRun::new(config, Some((source(offer(ArrivalProcess::Constant, 10_000.0, 60)), near)), Some(far), vec![])
            .unwrap();
    let mut asked = 0;
    let mut stop = || {
        asked += 1;
        asked > 20
    };
    let report = rig.run(&mut stop, &mut |_| ()).unwrap();
    let sent = report.sent.unwrap();
    assert!(report.partial && sent.sent > 10 && sent.duration_s < 600.0, "{sent:?}");
    assert!(sent.offered - sent.sent < 10_000, "what is due later was not offered: {sent:?}");
}

#[test]
fn rows_add_up_to_the_whole() {
    let (near, far) = loop_back(4096);
    let config = TrafficRunConfig { every: Some(Duration::from_millis(20)), ..short() };
    let rig =
        TrafficRun::new(config, Some((source(offer(ArrivalProcess::Poisson, 5000.0, 60)), near)), Some(far), vec![])
            .unwrap();
    let mut rows = Vec::new();
    let report = rig.run(&mut || false, &mut |row| rows.push(row)).unwrap();
    let sum = |of: fn(&IntervalStatistics) -> u64| rows.iter().map(of).sum::<u64>();
    assert_eq!(sum(|row| row.sent), report.sent.unwrap().sent);
    assert_eq!(sum(|row| row.received), report.received.unwrap().received);
    assert!(rows.len() >= 10 && rows.is_sorted_by(|a, b| a.time_s < b.time_s), "{}", rows.len());
}

#[test]
fn packets_are_seen_on_their_way() {
    // The tap receives a copy, wrapped, of each packet before the packet arrives.
    let (near, far) = loop_back(4096);
    let (copies, tap) = loop_back(4096);
    let wire = Copying { inner: near, copies };
    let source = source(offer(ArrivalProcess::Constant, 2000.0, 100));
    let taps = vec![("control".to_owned(), tap)];
    let report = run(TrafficRun::new(short(), Some((source, Box::new(wire))), Some(far), taps).unwrap());
    let path = report.path.unwrap();
    let received = report.received.unwrap().received;
    assert_eq!(path.ended, received);
    let samples = |from: &str, to: &str| {
        path.parts.iter().filter(|part| part.from == from && part.to == to).map(|part| part.delay.samples).sum::<u64>()
    };
    // Some copies may be missed, so the number of tapped packets is at most that of received packets.
    assert!(path.tapped <= received && samples("sent", "control 1") == path.tapped, "{path:?}");
}

/// Port that passes a copy of each transmitted frame to another port, embedded like a packet-in in a TCP segment.
struct Copying {
    inner: Box<dyn Port>,
    copies: Box<dyn Port>,
}

impl Port for Copying {
    fn info(&self) -> &weir_port::PortInfo {
        self.inner.info()
    }

    fn receive(&mut self, _: Instant, _: &mut FramePool, _: &mut Vec<Frame>, _: usize) -> weir_port::PortResult {
        Ok(())
    }

    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> weir_port::PortResult {
        let wrapped = |frame: &Frame| Frame::from_bytes(&[&[0_u8; 91][..], frame.bytes()].concat());
        self.copies.transmit(now, pool, &mut frames.iter().map(wrapped).collect())?;
        self.inner.transmit(now, pool, frames)
    }

    fn link(&mut self) -> weir_port::LinkState {
        self.inner.link()
    }

    fn counters(&self) -> weir_port::FrameCounters {
        self.inner.counters()
    }
}

#[test]
fn recording_alone_goes_by_the_first_packet_of_a_run() {
    let (mut near, far) = loop_back(4096);
    let clock = StampClock::start(Epoch::Boot);
    let template = ProbeFrameTemplate::new(&FrameSpec::default()).unwrap();
    let mut pool = FramePool::new(16, 1);
    let mut frame = |run, sequence| {
        let sent_ns = clock.stamp(clock.now());
        let probe = ProbeHeader { run, sequence, sent_ns, is_new_flow: false, counts: true, is_wall: false };
        let planned = ScheduledPacket { at: Instant::ZERO, bytes: 60, flow: 0, is_new_flow: false };
        template.frame(&planned, &probe, &mut pool)
    };
    let mut frames = vec![frame(7, 0), frame(8, 0), Frame::from_bytes(&[0; 60]), frame(7, 2)];
    near.transmit(Instant::ZERO, &mut FramePool::default(), &mut frames).unwrap();
    let report = run(TrafficRun::new(
        TrafficRunConfig { duration: Some(Duration::from_millis(50)), ..short() },
        None,
        Some(far),
        vec![],
    )
    .unwrap());
    let received = report.received.unwrap();
    assert_eq!((received.received, received.lost, report.others), (2, 1, 2));
    assert!(!report.partial && report.sent.is_none());
    assert_eq!(received.before_sent, 0, "two clocks of one machine agree");
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let null = || -> Box<dyn Port> { Box::new(NullPort::open("", &PortOptions::none("null:")).unwrap()) };
    let error = |offer| match TrafficRun::new(short(), Some((source(offer), null())), None, vec![]) {
        Ok(_) => panic!("it is not refused"),
        Err(error) => error.to_string(),
    };
    assert!(
        error(offer(ArrivalProcess::Poisson, 100.0, 59)).contains("found packets of 59 bytes, expected at least 60")
    );
    assert!(error(offer(ArrivalProcess::Poisson, -1.0, 60)).contains("packets per second"));
    let exponential = OfferedPackets::Rule {
        arrival: ArrivalProcess::Poisson,
        per_second: 100.0,
        size: PacketSizeLaw::Exponential(500.0),
    };
    let offer = OfferedTraffic::Packets { offered: exponential, flows: FlowMix::default() };
    assert!(TrafficRun::new(short(), Some((source(offer), null())), None, vec![]).is_ok());
}

#[test]
fn what_was_captured_is_known_again_if_it_has_room() {
    use weir_packet::MacAddr;
    use weir_packet::craft::FrameBuilder;
    let (from, to) = (std::net::Ipv4Addr::new(10, 0, 0, 1), std::net::Ipv4Addr::new(10, 0, 0, 2));
    let udp = |bytes: usize| {
        let craft = FrameBuilder::ethernet(MacAddr([2; 6]), MacAddr([4; 6])).ipv4(from, to).udp(5, 6);
        craft.payload(&vec![7; bytes]).build()
    };
    let lengths = [1400, 4, 40].into_iter().cycle();
    let frames: Vec<(u64, Vec<u8>)> = (0..50).zip(lengths).map(|(at, bytes)| (at * 100_000, udp(bytes))).collect();
    let file = std::env::temp_dir().join(format!("weir-replay-{}", std::process::id()));
    std::fs::write(&file, capture(&frames)).unwrap();
    let replay = CaptureReplay::read(&file).unwrap().with_headers();
    std::fs::remove_file(&file).unwrap();
    let replay = replay.unwrap();
    let (near, far) = loop_back(64);
    let offer = OfferedTraffic::Packets {
        offered: weir_traffic::OfferedPackets::Trace(replay.trace().clone()),
        flows: FlowMix::default(),
    };
    let source = TrafficSenderConfig { replay: Some(replay), ..source(offer) };
    let config = TrafficRunConfig { duration: None, ..short() };
    let report = run(TrafficRun::new(config, Some((source, near)), Some(far), vec![]).unwrap());
    let (sent, received) = (report.sent.unwrap(), report.received.unwrap());
    assert_eq!((sent.sent, sent.without_header, report.others), (50, 17, 17));
    assert_eq!((received.sent, received.received, received.lost, received.duplicates), (33, 33, 0, 0));
    assert!(received.delay.is_some_and(|delay| delay.samples == 33 && delay.max_us < 1e6));
}

/// Returns a capture with these times in nanoseconds (pcap with the magic number for nanoseconds).
fn capture(frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for (at_ns, frame) in frames {
        let [s, ns] = [at_ns / 1_000_000_000, at_ns % 1_000_000_000].map(|part| u32::try_from(part).unwrap());
        let length = u32::try_from(frame.len()).unwrap();
        for word in [s, ns, length, length] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    bytes
}
