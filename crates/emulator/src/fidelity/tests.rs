//! Tests of certificates with made measurements.
use super::evidence::{disturbances, of_latenesses};
use super::*;
use weir_network::certificate::{LinkLatenessSummary, SenderSummary};
use weir_network::result::{DropCount, SwitchResult, TrafficResult};
use weir_scenario::Scenario;
use weir_units::{Instant, StallLog};

const SECOND: Duration = Duration::from_secs(1);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn idle() -> MeasuredLoad {
    MeasuredLoad { processors: 2, looks: 100, busy: 0.2, own: 0.1, ..MeasuredLoad::default() }
}

fn late(counts: &[(u64, u64)], factor: f64) -> Option<LinkLatenessSummary> {
    late_beside(Duration::ZERO, counts, factor)
}

/// Returns the lateness of a link of this delay.
fn late_beside(delay: Duration, counts: &[(u64, u64)], factor: f64) -> Option<LinkLatenessSummary> {
    of_latenesses([(delay, counts.iter().copied())].into_iter(), Dilation::new(factor).unwrap())
}

fn certificate(links: Option<LinkLatenessSummary>, taken: &MeasuredLoad) -> Certificate {
    judge(evidence(links), taken, SECOND, Dilation::default())
}

fn evidence(links: Option<LinkLatenessSummary>) -> LabEvidence {
    LabEvidence { links, way: SlowingWay::Option, ..LabEvidence::default() }
}

#[test]
fn stops_senders_and_lost_frames_are_reasons() {
    let mut stops = StallLog::default();
    for (from_ms, until_ms) in [(100, 110), (200, 205), (300, 305)] {
        stops.note(at(from_ms), at(until_ms));
    }
    let stopped = certificate(None, &MeasuredLoad { stops, ..idle() });
    assert_eq!(stopped.verdict, FidelityVerdict::Doubtful);
    assert!(stopped.reasons[0].starts_with("the machine stopped threads 3 times, for 2.0 % of the time, 10.0 ms"));
    let judged = |evidence| judge(evidence, &idle(), SECOND, Dilation::default());
    let senders = |sent, streams_p99_us| LabEvidence {
        senders: Some(SenderSummary { asked: 10_000, sent, streams_p99_us, datagrams_p99_us: None }),
        ..LabEvidence::default()
    };
    assert_eq!(judged(senders(9_999, Some(50.0))).verdict, FidelityVerdict::Faithful);
    let behind = judged(senders(9_000, Some(500.0)));
    assert_eq!((behind.verdict, behind.reasons.len()), (FidelityVerdict::NotFaithful, 2), "{behind}");
    assert!(
        behind.reasons[0] == "senders sent 9000 of 10000 packets"
            && behind.advice[0].starts_with("use fewer or idler nodes"),
        "{behind}"
    );
    let overflows = |lost| {
        let overflows = Some(OverflowSummary { frames: 1_000, lost, worst: "s1 port 1 to a".into() });
        judged(LabEvidence { overflows, ..LabEvidence::default() })
    };
    let verdicts = [0, 5, 50].map(|lost| overflows(lost).verdict);
    assert_eq!(verdicts, [FidelityVerdict::Faithful, FidelityVerdict::Doubtful, FidelityVerdict::NotFaithful]);
}

#[test]
fn only_losses_at_links_without_a_rate_are_the_machines() {
    let host = |name: &str, more: &str| {
        format!("[[host]]\nname = \"{name}\"\nswitch = \"s1\"\nip = \"10.0.0.{}/24\"\n{more}\n", name.len())
    };
    let text = format!("[[switch]]\nname = \"s1\"\n{}{}", host("a", ""), host("bb", "rate = \"1Mbit/s\""));
    let scenario = Scenario::parse(&text, "made up").unwrap();
    let drop = |place: String, reason: &str, packets| DropCount { place, reason: reason.to_owned(), packets };
    let port = |host: usize| format!("s1 port {} to {}", scenario.hosts[host].port, scenario.hosts[host].name);
    let drops = [
        drop("a".into(), "sending: queue full", 3),
        drop(port(0), "sending: queue full", 4),
        drop(port(0), "sending: too long", 100),
        drop(port(1), "sending: queue full", 100),
    ];
    let switch = SwitchResult {
        name: "s1".into(),
        dpid: 1,
        channels_up: 0,
        entries: 0,
        packets: 0,
        rx_packets: 600,
        tx_packets: 400,
    };
    let found = of_overflows(&scenario, &[switch], &drops).unwrap();
    assert_eq!((found.frames, found.lost, found.worst), (1000, 7, port(0)));
    assert_eq!(of_overflows(&scenario, &[], &drops), None);
}

#[test]
fn a_run_in_time_is_faithful() {
    let good = certificate(late(&[(5_000, 995), (60_000, 5)], 1.0), &idle());
    assert_eq!((good.verdict, good.reasons.len()), (FidelityVerdict::Faithful, 0));
    assert!((good.links.unwrap().share_over_50us - 0.005).abs() < 1e-9);
    assert!(
        good.to_string().contains("links: 1000 frames delayed, late by 5 us (p50), 5 us (p99), 60 us at most"),
        "{good}"
    );
    let nothing = certificate(late(&[], 1.0), &idle());
    assert_eq!(nothing.verdict, FidelityVerdict::Faithful);
    assert!(nothing.to_string().contains("no frame was to be delayed"), "{nothing}");
}

#[test]
fn late_frames_and_a_full_machine_are_reasons() {
    let doubtful = certificate(late(&[(5_000, 95), (60_000, 5)], 1.0), &idle());
    assert_eq!(doubtful.verdict, FidelityVerdict::Doubtful);
    assert!(doubtful.reasons[0].starts_with("5.0 % of 100 frames left links more than 50µs (or"), "{doubtful:?}");
    assert!(!doubtful.advice.iter().any(|advice| advice.contains("sleep")), "{doubtful:?}");
    let many = LabEvidence { switches: 2, ..evidence(late(&[(60_000, 100)], 1.0)) };
    let many = judge(many, &idle(), SECOND, Dilation::default());
    assert!(many.advice[0].contains("fewer switches than the 2 processors"), "{many:?}");
    let unseen = MeasuredLoad { processors: 0, ..idle() };
    let unseen = certificate(late(&[(60_000, 100)], 1.0), &unseen);
    assert!(unseen.advice.iter().all(|advice| !advice.contains("0 processors")), "{unseen:?}");
    assert!(unseen.to_string().contains("processors: load not known, without /proc"), "{unseen}");
    assert_eq!(certificate(late(&[(60_000, 99)], 1.0), &idle()).verdict, FidelityVerdict::Doubtful, "too few to tell");
    assert_eq!(certificate(late(&[(60_000, 100)], 1.0), &idle()).verdict, FidelityVerdict::NotFaithful);
    let bad = certificate(late(&[(5_000, 95), (60_000, 5)], 1.0), &MeasuredLoad { saturated: 50, ..idle() });
    assert_eq!((bad.verdict, bad.reasons.len()), (FidelityVerdict::NotFaithful, 2));
    assert!(
        bad.reasons[0].starts_with("all processors were busy for 50.0 % of the time"),
        "the gravest first: {bad:?}"
    );
    for (taken, said) in [
        (MeasuredLoad { stolen: 0.05, ..idle() }, "5.0 % of the processors' time went to other machines"),
        (MeasuredLoad { throttled: SECOND / 50, ..idle() }, "not allowed to run for 0.02 s"),
    ] {
        let found = certificate(None, &taken);
        assert_eq!(found.verdict, FidelityVerdict::Doubtful);
        assert!(found.reasons[0].contains(said), "{found:?}");
    }
}

#[test]
fn a_slowed_run_is_judged_in_the_scenarios_time() {
    let counts = [(5_000, 50), (400_000, 50)];
    assert_eq!(certificate(late(&counts, 1.0), &idle()).verdict, FidelityVerdict::NotFaithful);
    let slowed = judge(evidence(late(&counts, 10.0)), &idle(), SECOND, Dilation::new(10.0).unwrap());
    assert_eq!(slowed.verdict, FidelityVerdict::Faithful);
    assert!(slowed.to_string().contains("10 times slower"), "{slowed}");
}

#[test]
fn lateness_counts_beside_the_links_delay() {
    // 200 us late at one frame in ten: much beside 1 ms, little beside 10 ms.
    let counts = [(5_000, 90), (200_000, 10)];
    let of = |ms| certificate(late_beside(Duration::from_millis(ms), &counts, 1.0), &idle());
    assert_eq!([1, 10].map(|ms| of(ms).verdict), [FidelityVerdict::Doubtful, FidelityVerdict::Faithful]);
    let slowed = late_beside(Duration::from_millis(10), &counts, 10.0).unwrap();
    assert!(slowed.share_late == 0.0 && slowed.p99_in_bounds < 0.5, "20 us beside 1 ms of the scenario: {slowed:?}");
}

#[test]
fn waits_for_a_busy_processor_are_no_stops() {
    let preempted = weir_units::StallTotals { count: 200, time: SECOND / 8, longest: SECOND / 200 };
    let found = certificate(None, &MeasuredLoad { preempted, ..idle() });
    assert_eq!(found.verdict, FidelityVerdict::Doubtful);
    assert!(found.reasons[0].ends_with("a millisecond or more, for 12.5 % of the time"), "{found}");
    assert!(found.machine.stops == 0 && !found.to_string().contains("stopped"), "{found}");
}

#[test]
fn late_threads_and_late_datagrams_are_reasons() {
    let waits = |us| {
        let waits = crate::load_monitor::ThreadWaits { time: Duration::from_micros(us) * 10, turns: 10 };
        certificate(None, &MeasuredLoad { waits, ..idle() })
    };
    let verdicts = [20, 500, 5000].map(|us| waits(us).verdict);
    assert_eq!(verdicts, [FidelityVerdict::Faithful, FidelityVerdict::Doubtful, FidelityVerdict::NotFaithful]);
    assert!(waits(20).to_string().contains("ready threads waited 20 us for one"), "{}", waits(20));
    let senders = SenderSummary { asked: 10, sent: 10, streams_p99_us: None, datagrams_p99_us: Some(2_000.0) };
    let late =
        judge(LabEvidence { senders: Some(senders), ..LabEvidence::default() }, &idle(), SECOND, Dilation::default());
    assert_eq!(late.reasons, ["of a flow's datagrams, 1 % were sent 2000 us or more late"]);
}

/// Two hosts, and two that share their line at 60 % of its rate. `more` is added to the file.
fn lines(more: &str) -> Scenario {
    let host = |number: usize, more: &str| {
        format!("[[host]]\nname = \"h{number}\"\nswitch = \"s1\"\nip = \"10.0.0.{number}/24\"\n{more}\n")
    };
    let item = |kind: &str, more: &str| format!("[[traffic]]\nkind = \"{kind}\"\nfrom = \"h1\"\nto = \"h2\"\n{more}\n");
    let text = [
        "[[switch]]\nname = \"s1\"\n".to_owned(),
        host(1, ""),
        host(2, "rate = \"10Mbit/s\""),
        item("udp", "rate = \"6Mbit/s\"\npayload = \"1000B\"\narrival = \"poisson\""),
        more.to_owned(),
    ];
    Scenario::parse(&text.concat(), "lines.toml").unwrap()
}

/// Returns the result of an item of which so many packets were sent and arrived.
fn item(kind: &'static str, asked: u64, sent: u64, received: u64) -> TrafficResult {
    let measured = weir_network::TrafficMeasurement { asked, sent, received, ..Default::default() };
    let scenario = lines("");
    let result = weir_network::traffic::traffic_result(&scenario, &scenario.traffic[0], measured, true, None);
    TrafficResult { kind, ..result }
}

#[test]
fn losses_of_a_scenario_are_known_by_formulas() {
    let known = |more: &str| super::expected::expected_losses(&lines(more))[0];
    assert!(known("").is_some_and(|loss| loss < 1e-6), "{:?}", known(""));
    // TCP fills the line's queue; bursts and their losses are not known well.
    let tcp = "[[traffic]]\nkind = \"tcp\"\nfrom = \"h1\"\nto = \"h2\"\n";
    assert_eq!(known(tcp), None);
    assert!(known(&format!("{tcp}start = \"1h\"\n")).is_some(), "TCP comes when the datagrams are through");
    let bursts = "[[traffic]]\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\nrate = \"1Mbit/s\"\n\
                  arrival = { kind = \"pareto-on-off\", on = \"10ms\", off = \"10ms\", shape = 1.5 }\n";
    assert_eq!(known(bursts), None);
}

#[test]
fn losses_beyond_the_scenarios_are_the_machines_by_flow() {
    let of = |items: &[TrafficResult], expected: &[Option<f64>], drops: &[DropCount]| {
        disturbances(items, expected, drops, Dilation::default())
    };
    let full = DropCount { place: "s1 port 2 to s2".into(), reason: "sending: queue full".into(), packets: 300 };
    let items = [item("udp", 5000, 5000, 4700), item("udp", 5000, 4900, 4899), item("udp", 9, 9, 9)];
    let expected = [Some(0.0), Some(0.0), Some(0.0)];
    let flows = of(&items, &expected, std::slice::from_ref(&full));
    let found: Vec<(u64, u64)> = flows.iter().map(|flow| (flow.lost, flow.not_sent)).collect();
    assert_eq!(found, [(300, 0), (0, 100)], "one packet lost proves nothing: {flows:?}");
    assert_eq!(flows[0].to_string(), "udp h1 > h2: the machine lost 300 of 5000 packets");
    // Losses by design, losses of which nothing is known, and losses by a table or a link are not the machine's.
    assert!(of(&items[..1], &[Some(0.05)], &[]).is_empty() && of(&items[..1], &[None], &[]).is_empty());
    let by_table = DropCount { reason: "meter".into(), ..full };
    assert!(of(&items[..1], &expected[..1], &[by_table]).is_empty());
}

#[test]
fn a_tree_that_the_machine_cannot_carry_is_not_faithful() {
    // As measured with ten switches at 60 % on two processors: up to 6 % lost.
    let flows = disturbances(&[item("udp", 50_000, 50_000, 47_000)], &[Some(0.0)], &[], Dilation::default());
    let senders = SenderSummary { asked: 50_000, sent: 50_000, streams_p99_us: None, datagrams_p99_us: Some(300.0) };
    let evidence = LabEvidence {
        senders: Some(senders),
        flows,
        switches: 10,
        way: SlowingWay::Emulation,
        ..LabEvidence::default()
    };
    let load = MeasuredLoad { processors: 2, looks: 50, busy: 0.95, own: 0.94, ..MeasuredLoad::default() };
    let found = judge(evidence.clone(), &load, 10 * SECOND, Dilation::default());
    assert_eq!(found.verdict, FidelityVerdict::NotFaithful);
    assert_eq!(
        found.reasons[0],
        "3000 packets were lost that the scenario does not lose, of 1 flow, most of udp h1 > h2 (3000 of 50000)"
    );
    // All packets would take the whole of both processors; half of that is 50 % of the rates, and twice slower.
    let advice = [
        "lower the rates of traffic to 50 % of the file's (2500 packets a second in all): processors are then half busy",
        "use weir emulate --dilate 2, as root",
        "use fewer or idler nodes, or more processors",
    ];
    assert_eq!(found.advice, advice);
    assert!(
        found.to_string().contains("  disturbed: udp h1 > h2: the machine lost 3000 of 50000 packets\n"),
        "{found}"
    );
    // Streams cannot be slowed down, and an idle machine gains nothing from lower rates.
    let streams = judge(LabEvidence { way: SlowingWay::None, ..evidence.clone() }, &load, SECOND, Dilation::default());
    assert!(streams.advice.iter().all(|advice| !advice.contains("--dilate")), "{streams}");
    let idle = judge(evidence, &idle(), SECOND, Dilation::default());
    assert_eq!(idle.advice, ["use fewer or idler nodes, or more processors"]);
}

#[test]
fn other_programs_are_told_from_the_lab() {
    let load =
        MeasuredLoad { processors: 2, looks: 10, saturated: 10, busy: 1.0, own: 0.07, ..MeasuredLoad::default() };
    // How much slower the lab alone would have to be is not known.
    let found = judge(evidence(late(&[(1_000, 99), (900_000, 1)], 1.0)), &load, SECOND, Dilation::default());
    let advice = [
        "end other programs, also in hosts, which had 93 % of the processors' time",
        "use fewer or idler nodes, or more processors",
    ];
    assert_eq!((found.verdict, &found.advice[..]), (FidelityVerdict::NotFaithful, &advice.map(str::to_owned)[..]));
}

#[test]
fn the_advised_dilation_makes_releases_faithful() {
    let counts = [(5_000, 50), (400_000, 50)];
    let late_by = |factor| judge(evidence(late(&counts, factor)), &idle(), SECOND, Dilation::new(factor).unwrap());
    let bad = late_by(1.0);
    assert_eq!(bad.advice[0], "use --dilate 8", "400 us by 50");
    assert_eq!(late_by(8.0).verdict, FidelityVerdict::Faithful);
    assert_eq!(late_by(4.0).advice[0], "use --dilate 8", "in all, not on top");
    let stopped = judge(evidence(late(&[(5_000, 50), (40_000_000, 50)], 1.0)), &idle(), SECOND, Dilation::default());
    assert_eq!(stopped.verdict, FidelityVerdict::NotFaithful);
    assert!(stopped.advice.iter().all(|advice| !advice.contains("--dilate")), "{:?}", stopped.advice);
}
