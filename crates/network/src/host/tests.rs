//! Tests two hosts joined directly, in virtual time.
use super::*;
use std::time::Duration;
use weir_port::link::{LinkEmulator, LinkShape};
use weir_port::memory;
use weir_units::Bps;

/// Returns a scenario with hosts `a` and `b` and this traffic from a to b.
fn scenario(traffic: &str) -> Scenario {
    let text = format!(
        r#"
        [[switch]]
        name = "s"
        [[host]]
        name = "a"
        switch = "s"
        ip = ["10.0.0.1/24", "fd00::1/64"]
        [[host]]
        name = "b"
        switch = "s"
        ip = ["10.0.0.2/24", "fd00::2/64"]
        [[traffic]]
        from = "a"
        to = "b"
        {traffic}
        "#
    );
    Scenario::parse(&text, "test").unwrap()
}

/// Runs the traffic over a link of this shape in both directions until `end`. Returns the measurements of both ends
/// together, and the time at which the sender had finished.
fn run(traffic: &str, shape: LinkShape, end: Duration) -> (TrafficMeasurement, Option<Instant>) {
    let scenario = scenario(traffic);
    let (a, b) = memory::pair(4096).unwrap();
    let ports: [Box<dyn Port>; 2] = [
        Box::new(LinkEmulator::new(Box::new(a), shape, LinkShape::default())),
        Box::new(LinkEmulator::new(Box::new(b), shape, LinkShape::default())),
    ];
    let mut hosts = Vec::new();
    for (number, port) in ports.into_iter().enumerate() {
        let own = &scenario.hosts[number];
        let mut host = StackHost::new(port, own.mac, &own.ip, number as u64);
        host.start(&scenario, number, Instant::ZERO);
        hosts.push(host);
    }
    let mut now = Instant::ZERO;
    let mut through = None;
    while now < Instant::ZERO + end {
        let mut done = Vec::new();
        let mut poll = |host: &mut StackHost| {
            host.receive(now);
            host.poll(now, &mut done)
        };
        let next = hosts.iter_mut().map(&mut poll).min().unwrap();
        if !done.is_empty() {
            through = Some(now);
        }
        let frames = hosts.iter_mut().any(|host| host.arm() == ReceiveReadiness::Now);
        // The stack's times have a resolution of a microsecond.
        now = if frames { now } else { next.max(now + Duration::from_micros(1)) };
    }
    let mut whole = TrafficMeasurement::default();
    hosts.into_iter().flat_map(|host| host.finish().measured).for_each(|(_, end)| whole.merge(end));
    (whole, through)
}

fn delay(ms: u64) -> LinkShape {
    LinkShape { delay: Duration::from_millis(ms), ..LinkShape::default() }
}

#[test]
fn pings_are_answered_in_twice_the_delay() {
    for ipv6 in ["", "ipv6 = true"] {
        let traffic = format!("kind = \"ping\"\ncount = 5\ninterval = \"100ms\"\n{ipv6}");
        let (measured, through) = run(&traffic, delay(5), Duration::from_secs(3));
        assert_eq!((measured.asked, measured.sent, measured.received), (5, 5, 5), "{ipv6}");
        let rtt = measured.delays.summary().unwrap();
        // The first ping also waits for address resolution, which takes another round trip.
        assert!((rtt.p50_us - 10_000.0).abs() < 100.0, "{rtt:?}");
        assert!((rtt.max_us - 20_000.0).abs() < 200.0, "{rtt:?}");
        let through = through.unwrap();
        assert!(through < Instant::ZERO + Duration::from_millis(415), "{through:?}");
    }
}

#[test]
fn a_ping_without_answer_ends_after_its_patience() {
    let (measured, through) =
        run("kind = \"ping\"\ncount = 100\ninterval = \"1ms\"", delay(9000), Duration::from_secs(3));
    assert_eq!((measured.sent, measured.received), (100, 0));
    assert_eq!(through, Some(Instant::ZERO + Duration::from_millis(1100)));
}

#[test]
fn datagrams_keep_their_rate_and_carry_their_delay() {
    let traffic = "kind = \"udp\"\nrate = \"8.336Mbit/s\"\npayload = \"1000B\"\nduration = \"1s\"";
    let (measured, _) = run(traffic, delay(2), Duration::from_secs(2));
    // A frame has 1042 bytes, so the link carries 1000 in a second.
    assert_eq!((measured.asked, measured.sent, measured.received), (1000, 1000, 1000));
    assert_eq!(measured.payload_bytes, 1_000_000);
    assert!(measured.span > Duration::from_millis(990) && measured.span < Duration::from_millis(1000));
    assert!((measured.delays.summary().unwrap().p50_us - 2000.0).abs() < 50.0);
}

#[test]
fn tcp_fills_a_link() {
    let shape = LinkShape { rate: Some(Bps(20_000_000)), ..delay(1) };
    let (measured, through) = run("kind = \"tcp\"\nduration = \"2s\"", shape, Duration::from_secs(5));
    let goodput = measured.payload_bytes as f64 * 8.0 / measured.span.as_secs_f64();
    // Of 1514 bytes 1460 are payload, and slow start costs some time.
    assert!(goodput > 17e6 && goodput < 19.3e6, "{goodput}");
    assert_eq!(measured.problem, None);
    assert!(through.is_some());
}

#[test]
fn tcp_without_answer_says_so() {
    let (measured, through) = run("kind = \"tcp\"\nduration = \"1s\"", delay(9000), Duration::from_secs(4));
    assert_eq!(measured.received, 0);
    assert_eq!(measured.problem.as_deref(), Some("no answer to the connection request"));
    assert!(through.is_some());
}

#[test]
fn datagrams_by_rule_come_as_they_are_drawn() {
    let traffic =
        "kind = \"udp\"\nrate = 1000\narrival = \"poisson\"\nsizes = \"imix\"\nduration = \"4s\"\nnew_flows = 0.5";
    let (measured, through) = run(traffic, delay(2), Duration::from_secs(5));
    assert_eq!((measured.sent, measured.received), (measured.asked, measured.asked));
    // Within four standard deviations of a Poisson count; frames of imix have 361.8 bytes on average, 42 of them
    // headers.
    assert!((3747..=4253).contains(&measured.sent), "{}", measured.sent);
    let mean = measured.payload_bytes as f64 / measured.received as f64;
    assert!((mean - 319.8).abs() < 30.0, "{mean}");
    assert_eq!(through, Some(Instant::ZERO + Duration::from_secs(4)));
    let again = run(traffic, delay(2), Duration::from_secs(5)).0;
    assert_eq!((measured.sent, measured.payload_bytes), (again.sent, again.payload_bytes));
}

/// Returns the source ports of the datagrams that a host sends, in order.
fn source_ports(traffic: &str, end: Duration) -> Vec<u16> {
    use std::net::Ipv4Addr;
    let scenario = scenario(traffic);
    let [own, peer] = [0, 1].map(|host| &scenario.hosts[host]);
    let (near, mut far) = memory::pair(4096).unwrap();
    let mut host = StackHost::new(Box::new(near), own.mac, &own.ip, 1);
    host.start(&scenario, 0, Instant::ZERO);
    let (mut pool, mut frames, mut ports) = (weir_packet::FramePool::new(64, 8), Vec::new(), Vec::new());
    let mut now = Instant::ZERO;
    while now < Instant::ZERO + end {
        host.receive(now);
        let next = host.poll(now, &mut Vec::new());
        far.receive(now, &mut pool, &mut frames, 64).unwrap();
        for frame in frames.drain(..) {
            match frame.bytes().get(12..14) {
                Some([0x08, 0x00]) => ports.push(u16::from_be_bytes([frame.bytes()[34], frame.bytes()[35]])),
                Some([0x08, 0x06]) => {
                    let [sender, target] =
                        [(peer, 2), (own, 1)].map(|(host, last)| (host.mac, Ipv4Addr::new(10, 0, 0, last)));
                    let answer =
                        weir_packet::craft::FrameBuilder::ethernet(own.mac, peer.mac).arp(2, sender, target).frame();
                    far.transmit(now, &mut pool, &mut vec![answer]).unwrap();
                }
                _ => {}
            }
        }
        now = if host.arm() == ReceiveReadiness::Now { now } else { next.max(now + Duration::from_micros(1)) };
    }
    ports
}

#[test]
fn flows_that_begin_have_ports_of_their_own() {
    let traffic = |share: f64| format!("kind = \"udp\"\nrate = 1000\nduration = \"1s\"\nnew_flows = {share}");
    let end = Duration::from_millis(1100);
    assert_eq!(source_ports(&traffic(0.0), end), [40_001; 1000]);
    let all = source_ports(&traffic(1.0), end);
    assert_eq!(all, (42_000..43_000).collect::<Vec<u16>>());
    let mut some = source_ports(&traffic(0.25), end);
    assert_eq!(some.len(), 1000);
    some.dedup();
    // Within four standard deviations.
    assert!((195..=305).contains(&some.len()), "{}", some.len());
    assert!(some[1..].is_sorted());
    // Three concurrent flows of ten packets each.
    let several = source_ports(&traffic(0.1).replace("new_flows = 0.1", "flow_packets = 10\nflows = 3"), end);
    assert_eq!(several.len(), 1000);
    let mut flows = several.clone();
    flows.sort_unstable();
    flows.dedup();
    assert!((65..=140).contains(&flows.len()), "{}", flows.len());
    assert!(several.windows(2).any(|pair| pair[0] > pair[1]), "flows take turns");
}
