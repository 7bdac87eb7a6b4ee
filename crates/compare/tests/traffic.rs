//! Checks that each kind of traffic gets a number from each verb or a reason why not, as the table of
//! `docs/scenario.md` says.
use std::error::Error;
use std::time::Duration;
use weir_emulator::LabOptions;
use weir_network::LabResult;
use weir_network::datagrams::DatagramPlan;
use weir_predict::{PredictSettings, predict};
use weir_scenario::Scenario;
use weir_sim::SimulationMonitor;
use weir_sim::network::{VirtualTimeSettings, simulate};
use weir_testing::{CapturedFrame, pcap};
use weir_traffic::{ArrivalProcess, ArrivalSampler, RandomStream, TwoStateMmpp};
use weir_units::Instant;

/// Verbs in the order of the table's columns.
const VERBS: [&str; 4] = ["predict", "simulate", "emulate", "run"];

/// Rows of the table: the words of its first column, the traffic, and the key that a refusal names.
const ROWS: [(&str, &str, &str); 12] = [
    ("`kind = \"ping\"`", "kind = 'ping'\ncount = 3\ninterval = '10ms'", ""),
    ("`kind = \"tcp\"`", "kind = 'tcp'", ""),
    ("`kind = \"udp\"`, constant `arrival`, one size", "kind = 'udp'\nrate = 500", ""),
    ("`arrival = \"poisson\"`", "kind = 'udp'\nrate = 500\narrival = 'poisson'", "arrival"),
    (
        "`arrival` of kind `mmpp`",
        "kind = 'udp'\nrate = 500\narrival = { kind = 'mmpp', high = 2.0, low = 0.5, time = '5ms' }",
        "arrival",
    ),
    (
        "`arrival` of kind `pareto-on-off`",
        "kind = 'udp'\nrate = 500\narrival = { kind = 'pareto-on-off', on = '5ms', off = '5ms', shape = 1.5 }",
        "arrival",
    ),
    ("`arrival` of kind `trace`", "kind = 'udp'\narrival = { kind = 'trace', file = 'FILE' }", "arrival"),
    ("`arrival` of kind `capture`", "kind = 'udp'\narrival = { kind = 'capture', file = 'CAPTURE' }", "arrival"),
    ("`sizes` of a law", "kind = 'udp'\nrate = 500\nsizes = 'imix'", "sizes"),
    ("`new_flows`, `flows`", "kind = 'udp'\nrate = 500\nnew_flows = 0.1\nflows = 5", "new_flows"),
    ("`[[stream]]`", "", "[[stream]]"),
    ("`[[stream]]` beside `[[traffic]]`", "kind = 'udp'\nrate = 500", "[[stream]]"),
];

/// A switch between two hosts that both links slow down.
const HOSTS: &str = "[[host]]\nname = 'h1'\nswitch = 's1'\nport = 1\nip = '10.0.0.1/24'\nrate = '100Mbit/s'\n\
                     [[host]]\nname = 'h2'\nswitch = 's1'\nport = 2\nip = '10.0.0.2/24'\nrate = '100Mbit/s'\n";

/// A virtual switch on spare ports of that switch, and a stream through it.
const STREAM: &str = "[switch.fabric]\nports = 4\nrate = '100Mbit/s'\n[[switch.virtual]]\nname = 'gold'\ndpid = 0x101\n\
                      buffer = '96kB'\nentries = ['actions=output:4']\n\
                      ports = [{ port = 3, rate_in = '10Mbit/s' }, { port = 4, rate_out = '10Mbit/s' }]\n\
                      [[stream]]\nswitch = 's1'\nvirtual = 'gold'\ninputs = '3'\noutput = 4\nload = 0.25\n";

/// A virtual switch for the hosts of the same fabric.
const HOSTS_VIRTUAL: &str = "[[switch.virtual]]\nname = 'tin'\ndpid = 0x102\nbuffer = '64kB'\n\
                             entries = ['in_port=1,actions=output:2', 'in_port=2,actions=output:1']\n\
                             ports = [{ port = 1, rate = '50Mbit/s' }, { port = 2, rate = '50Mbit/s' }]\n";

/// Packets of the capture: milliseconds from its start, bytes.
const CAPTURED: [(u64, u32); 6] = [(0, 100), (1, 1514), (2, 1514), (20, 60), (21, 700), (90, 100)];

/// Files of packets, removed when dropped.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Files {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("trace.csv"), "0.01 100\n0.03 1000\n0.04 500\n0.1 100\n").unwrap();
        let frame = |(ms, bytes)| CapturedFrame::new(1_700_000_000_000_000_000 + ms * 1_000_000, bytes);
        std::fs::write(folder.path().join("capture.pcap"), pcap(&CAPTURED.map(frame))).unwrap();
        Files(folder)
    }

    fn scenario(&self, feature: &str, traffic: &str) -> Scenario {
        let path = |name: &str| self.0.path().join(name).display().to_string();
        scenario(feature, &traffic.replace("FILE", &path("trace.csv")).replace("CAPTURE", &path("capture.pcap")))
    }
}

fn scenario(feature: &str, traffic: &str) -> Scenario {
    let streams = feature.starts_with("`[[stream]]`");
    let item =
        if traffic.is_empty() { String::new() } else { format!("[[traffic]]\nfrom = 'h1'\nto = 'h2'\n{traffic}\n") };
    let entries = "entries = ['in_port=1,actions=output:2', 'in_port=2,actions=output:1']\n";
    let (entries, fabric) = match (streams, traffic.is_empty()) {
        (false, _) => (entries, String::new()),
        (true, true) => ("", STREAM.to_owned()),
        (true, false) => ("", STREAM.replace("[[stream]]", &format!("{HOSTS_VIRTUAL}[[stream]]"))),
    };
    let hosts = if traffic.is_empty() { "" } else { HOSTS };
    let text = format!(
        "duration = '200ms'\n[controller]\nconnect = 'none'\n[[switch]]\nname = 's1'\n{entries}{fabric}{hosts}{item}\
         [simulate]\nduration = '200ms'\nreplications = 2\n"
    );
    Scenario::parse(&text, "traffic.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn measured(result: &LabResult) {
    assert!(result.traffic.iter().all(|item| item.received > 0), "{:?}", result.traffic);
    assert!(result.streams.iter().all(|stream| stream.received > 0), "{:?}", result.streams);
}

/// Returns true if hosts can be namespaces with programs here. Otherwise says that they are left out.
fn can_emulate() -> bool {
    weir_testing::root() && weir_testing::programs(&["ip", "ping", "iperf3", "setpriv"])
}

/// Asks a verb for numbers.
fn ask(verb: &str, scenario: &Scenario) -> Result<(), Box<dyn Error>> {
    match verb {
        "predict" => {
            let flows = predict(scenario, &PredictSettings::default())?.flows;
            assert!(flows.len() >= scenario.traffic.len() + usize::from(!scenario.streams.is_empty()), "{flows:?}");
        }
        "simulate" if scenario.streams.is_empty() || !scenario.traffic.is_empty() => {
            measured(&simulate(scenario, &VirtualTimeSettings::default(), &SimulationMonitor::default(), &mut |_| {})?)
        }
        "simulate" => drop(weir_sim::scenario::model(scenario)?),
        "emulate" if !can_emulate() => (),
        "emulate" => {
            let options = LabOptions { emulate: true, ..LabOptions::default() };
            measured(&weir_emulator::run(scenario, &options, &mut |_| {})?)
        }
        _ => measured(&weir_emulator::run(scenario, &LabOptions::default(), &mut |_| {})?),
    }
    Ok(())
}

#[test]
fn each_verb_gives_a_number_or_says_why_not() {
    let document = include_str!("../../../docs/scenario.md");
    let section = document.split_once("## What each verb does with traffic").expect("the section").1;
    let rows: Vec<Vec<&str>> = section
        .lines()
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), ROWS.len(), "a row for each kind of traffic: {rows:?}");
    let files = Files::new();
    let mut wrong = Vec::new();
    for (cells, (feature, traffic, key)) in rows.iter().zip(ROWS) {
        assert_eq!(cells[0], feature);
        let scenario = files.scenario(feature, traffic);
        for (verb, cell) in VERBS.iter().zip(&cells[1..]) {
            match ask(verb, &scenario).map_err(|error| error.to_string()) {
                Ok(()) if *cell == "yes" => (),
                Err(why) if *cell == "refused" && why.contains(key) && why.contains(&format!("`weir {verb}`")) => (),
                found => wrong.push(format!("{verb}, {feature}: the table says {cell}, found {found:?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn simulated(scenario: &Scenario) -> LabResult {
    simulate(scenario, &VirtualTimeSettings::default(), &SimulationMonitor::default(), &mut |_| {}).unwrap()
}

#[test]
fn a_replayed_capture_is_the_same_traffic_for_all_verbs() {
    let files = Files::new();
    let keys = "kind = 'udp'\narrival = { kind = 'capture', file = 'CAPTURE', repeat = 2 }";
    let scenario = files.scenario("`arrival` of kind `capture`", keys);
    // What live hosts and those in virtual time send: all frames at their times, twice. A round takes 90 ms and a mean
    // gap of 18.
    let mut schedule = DatagramPlan::of(&scenario, 0, Instant::ZERO, 5001).unwrap().schedule;
    let mut planned = Vec::new();
    while let Some((due, payload)) = schedule.next {
        planned.push((due.as_nanos() / 1_000_000, u32::try_from(payload).unwrap() + 42));
        schedule.advance();
    }
    let again = CAPTURED.map(|(ms, bytes)| (ms + 108, bytes));
    assert_eq!(planned, [CAPTURED, again].concat());

    let all = CAPTURED.len() as u64 * 2;
    let item = &simulated(&scenario).traffic[0];
    assert_eq!((item.asked, item.sent, item.received, item.loss), (Some(all), Some(all), all, Some(0.0)));
    // Frames do not meet: each takes its own time on the two links of 100 Mbit/s.
    let delay = item.delay.unwrap();
    let on_links = |bytes: u32| f64::from(bytes) * 8.0 / 100.0 * 2.0;
    for (found, expected) in [(delay.min_us, on_links(60)), (delay.max_us, on_links(1514))] {
        assert!((found - expected).abs() < 3.0, "{delay:?}: expected {expected}");
    }
    let mean = CAPTURED.iter().map(|(_, bytes)| on_links(*bytes)).sum::<f64>() / CAPTURED.len() as f64;
    assert!((delay.mean_us - mean).abs() < 3.0, "{delay:?}: expected {mean}");
    let predicted = predict(&scenario, &PredictSettings::default()).unwrap();
    let found = predicted.flows[0].delay.as_ref().unwrap().mean_s * 1e6;
    assert!(
        (found - mean).abs() < 0.1 * mean && predicted.flows[0].notes.join(" ").contains("a trace"),
        "{found} {mean}"
    );

    let mut labs = vec![weir_emulator::run(&scenario, &LabOptions::default(), &mut |_| {}).unwrap()];
    if can_emulate() {
        for options in
            [LabOptions { emulate: true, ..LabOptions::default() }, LabOptions { netns: true, ..LabOptions::default() }]
        {
            labs.push(weir_emulator::run(&scenario, &options, &mut |_| {}).unwrap());
        }
    }
    for lab in labs {
        let item = &lab.traffic[0];
        assert_eq!((item.asked, item.sent, item.received), (Some(all), Some(all), all), "{item:?}");
        assert!(item.delay.unwrap().min_us > on_links(60) - 3.0, "links have their rate: {item:?}");
    }
}

#[test]
fn a_cut_capture_is_cut_for_all_verbs() {
    let files = Files::new();
    let keys = "kind = 'udp'\nduration = '20500us'\narrival = { kind = 'capture', file = 'CAPTURE' }";
    let scenario = files.scenario("`arrival` of kind `capture`", keys);
    assert_eq!(simulated(&scenario).traffic[0].sent, Some(4));
    let rate = |text: &str| {
        let mut scenario = files.scenario("`arrival` of kind `capture`", text);
        scenario.traffic[0].kind.set_duration(Duration::from_micros(20_500));
        predict(&scenario, &PredictSettings::default())
            .unwrap()
            .devices
            .iter()
            .map(|device| device.utilisation)
            .sum::<f64>()
    };
    let whole = "kind = 'udp'\narrival = { kind = 'capture', file = 'CAPTURE' }";
    assert!((rate(keys) - rate(whole)).abs() < 1e-9, "a duration is that of the file or that of a command");
}

#[test]
fn streams_and_traffic_share_a_network_in_virtual_time() {
    let both = scenario("`[[stream]]` beside `[[traffic]]`", "kind = 'udp'\nrate = 500");
    let (first, again) = (simulated(&both), simulated(&both));
    let counted = |result: &LabResult| {
        (result.streams[0].sent, result.streams[0].received, result.streams[0].delay, result.traffic[0].received)
    };
    assert_eq!(counted(&first), counted(&again), "a seed gives the same result again");
    let (stream, item) = (&first.streams[0], &first.traffic[0]);
    assert_eq!((stream.received, item.received), (stream.sent, 100), "{stream:?} {item:?}");
    // A quarter of 100 Mbit/s for 200 ms.
    assert!((stream.rate_bps / 25e6 - 1.0).abs() < 0.2 && stream.delay.unwrap().samples == stream.sent, "{stream:?}");
    // Alone, the stream is simulated by lengths: the same packets, which meet no others.
    let mut alone = both.clone();
    alone.traffic.clear();
    let model = weir_sim::scenario::model(&alone).unwrap();
    let window = weir_sim::scenario::window(&alone);
    let runs = weir_sim::run(&model, window, alone.seed, 0, &SimulationMonitor::default()).unwrap();
    let report = weir_sim::report::report(&model.groups, &[runs], weir_sim::stats::Confidence::default());
    let (by_lengths, packets) = (report.total.delay_s.unwrap().mean * 1e6, stream.delay.unwrap().mean_us);
    assert!((packets / by_lengths - 1.0).abs() < 0.25, "{packets} us packet by packet, {by_lengths} by lengths");
}

/// Returns a list of packets of 1000 bytes drawn by a rule, 875 a second for a minute.
fn drawn(arrival: &ArrivalProcess) -> String {
    let mut random = RandomStream::new(11, 0, 0);
    let mut arrivals = ArrivalSampler::new(arrival, 875.0, &mut random).unwrap();
    let (mut at_ns, mut text) = (0, String::new());
    while at_ns < 60_000_000_000 {
        text += &format!("{:.9} 1000\n", at_ns as f64 / 1e9);
        at_ns += arrivals.next(&mut random);
    }
    text
}

#[test]
fn predictions_know_the_bursts_of_a_trace() {
    let bursts = |high, low, high_s| ArrivalProcess::TwoState(TwoStateMmpp { high, low, high_s });
    for (arrival, within) in [
        (ArrivalProcess::Poisson, 0.1),
        (bursts(1.5, 0.5, 0.02), 0.15),
        (bursts(1.3, 0.7, 0.2), 0.1),
        (bursts(4.0, 0.5, 0.005), 0.15),
    ] {
        let files = Files::new();
        std::fs::write(files.0.path().join("trace.csv"), drawn(&arrival)).unwrap();
        let item = "kind = 'udp'\nduration = '60s'\narrival = { kind = 'trace', file = 'FILE' }";
        let mut scenario = files.scenario("`arrival` of kind `trace`", item);
        // Packets take 0.8 ms on the line of the receiver, which is used to 70 %.
        scenario.hosts[1].link.rate = Some(weir_units::Bps(10_000_000));
        scenario.hosts[1].link.buffer = Some(weir_units::ByteSize(16_000_000));
        let simulated = simulated(&scenario).traffic[0].delay.unwrap().mean_us / 1e6;
        let flows = predict(&scenario, &PredictSettings::default()).unwrap().flows;
        let predicted = flows[0].delay.as_ref().unwrap().mean_s;
        assert!((predicted / simulated - 1.0).abs() < within, "{arrival:?}: {predicted} s, simulated {simulated} s");
    }
}

#[test]
fn the_example_of_a_replay_is_one() {
    let scenario = Scenario::read(&weir_testing::workspace().join("examples/replay.toml")).unwrap();
    let result = simulated(&scenario);
    assert!(result.passed && result.drops.is_empty(), "{:?}", result.drops);
    let [_, answers, requests] = &result.traffic[..] else { panic!("expected three items, in order of start") };
    assert_eq!((answers.received, requests.received), (148, 78), "all frames of the capture");
    // The longest burst is 90 kB long, and its acknowledgements go the other way.
    let longest = |result: &weir_network::result::TrafficResult| result.delay.unwrap().max_us / 1e3;
    assert!((30.0..45.0).contains(&longest(answers)) && longest(requests) < 4.0, "{answers:?} {requests:?}");
    let predicted = predict(&scenario, &PredictSettings::default()).unwrap();
    let mean = predicted.flows[1].delay.as_ref().unwrap().mean_s / (answers.delay.unwrap().mean_us / 1e6);
    assert!((mean - 1.0).abs() < 0.25, "{mean} of the simulated mean: {answers:?}");
    let live = weir_emulator::run(&scenario, &LabOptions::default(), &mut |_| {}).unwrap();
    let sent = |result: &LabResult| result.traffic.iter().map(|item| item.sent).collect::<Vec<_>>();
    assert_eq!(sent(&live), sent(&result));
}
