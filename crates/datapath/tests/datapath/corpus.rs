//! Runs the cases of testdata/pipeline.
use crate::bench::*;
use crate::frames::frame;
use std::path::Path;
use std::time::Duration;
use weir_datapath::{DatapathConfig, Drops, LookupMethod};
use weir_openflow::model::FlowCommand;
use weir_openflow::{Body, Version, text};

/// Effects on a frame, in the syntax of corpus lines.
type Fates = Vec<String>;

#[test]
fn every_case_holds() {
    every_case_holds_with(LookupMethod::Adaptive);
}

/// The linear reference gives the same verdicts.
#[test]
fn every_case_holds_with_linear_lookup() {
    every_case_holds_with(LookupMethod::Linear);
}

fn every_case_holds_with(lookup: LookupMethod) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/pipeline");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "txt")).collect();
    files.sort();
    let mut cases = 0;
    for path in files {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        cases += run(&file, &text, lookup);
    }
    assert!(cases >= 30, "only {cases} cases");
}

/// Runs a file's cases. Returns their number.
fn run(file: &str, text: &str, lookup: LookupMethod) -> usize {
    let mut cases = 0;
    let mut bench = controlled(lookup);
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).peekable();
    while let Some((number, line)) = lines.next() {
        let (verb, rest) = line.split_once(' ').expect(line);
        match verb {
            "case" => {
                bench = controlled(lookup);
                cases += 1;
            }
            "flow" | "flow10" => add(&mut bench, verb, rest, &format!("{file}:{number}")),
            "wait" => wait(&mut bench, rest.parse().expect(line)),
            "in" => {
                let mut expected = Vec::new();
                while let Some((_, fate)) = lines.next_if(|(_, line)| is_fate(line)) {
                    expected.push(normalised(fate, rest));
                }
                let found = receive(&mut bench, rest);
                expected.sort();
                assert_eq!(found, expected, "{file}:{number}: {line}");
            }
            _ => panic!("{file}:{number}: found `{verb}`, expected a line of README.md"),
        }
    }
    cases
}

fn controlled(lookup: LookupMethod) -> Bench {
    let mut bench = Bench::with(DatapathConfig { lookup, ..DatapathConfig::default() });
    bench.datapath.channel_up(bench.now, CONTROLLER, Version::V13);
    bench
}

fn add(bench: &mut Bench, verb: &str, flow: &str, place: &str) {
    let flow = text::parse_flow(flow, FlowCommand::Add).unwrap_or_else(|error| panic!("{place}: {error}"));
    let channel = if verb == "flow" { CONTROLLER } else { OLD_CONTROLLER };
    if channel == OLD_CONTROLLER {
        // The channel is up only while the entry is added. Otherwise it would get every miss.
        bench.datapath.channel_up(bench.now, channel, Version::V10);
    }
    assert_eq!(bench.error_of(channel, Body::FlowMod(flow)), None, "{place}");
    if channel == OLD_CONTROLLER {
        bench.datapath.channel_down(bench.now, channel);
    }
}

fn wait(bench: &mut Bench, seconds: u64) {
    bench.wait(Duration::from_secs(seconds));
    bench.datapath.expire(bench.now, &mut bench.out);
}

fn is_fate(line: &str) -> bool {
    ["out ", "drop ", "punt "].iter().any(|verb| line.starts_with(verb))
}

/// Returns an expected line with its frame in hexadecimal.
fn normalised(line: &str, input: &str) -> String {
    let mut words = line.splitn(3, ' ');
    let (verb, first) = (words.next().unwrap(), words.next().unwrap());
    match (verb, words.next()) {
        ("drop", _) => line.to_owned(),
        (_, Some(described)) => format!("{verb} {first} {}", hex(&frame(described))),
        (_, None) => format!("{verb} {first} {}", hex(&frame(input.split_once(' ').expect(input).1))),
    }
}

/// Receives a frame. Returns the effects, sorted, which the trace must show, too.
fn receive(bench: &mut Bench, line: &str) -> Fates {
    let (port, described) = line.split_once(' ').expect(line);
    let (port, bytes) = (port.parse().expect(line), frame(described));
    let trace = bench.datapath.trace(bench.now, weir_openflow::model::PortNo(port), &bytes);
    let before = bench.datapath.drops();
    let sent = bench.receive(port, &bytes);
    let drops = dropped(before, bench.datapath.drops());
    let punted = bench.packet_ins(CONTROLLER);

    let mut traced = trace.outputs;
    let mut ports: Vec<_> = sent.iter().map(|(port, _)| *port).collect();
    traced.sort();
    ports.sort();
    assert_eq!((traced, trace.to_controller), (ports, !punted.is_empty()), "{line}");
    assert_eq!(trace.drops.len(), drops.len(), "{line}");

    for (_, bytes) in &sent {
        assert_eq!(weir_packet::checksum::verify(bytes), Ok(()), "{line}");
    }
    let sent = sent.iter().map(|(port, bytes)| format!("out {port} {}", hex(bytes)));
    let punted = punted.iter().map(|packet| format!("punt {:?} {}", packet.reason, hex(&packet.data.0)));
    let drops = drops.into_iter().map(|reason| format!("drop {reason}"));
    let mut fates: Fates = sent.chain(punted).chain(drops).collect();
    fates.sort();
    fates
}

/// Returns the drop reasons counted between two states, each as often as it was counted.
fn dropped(before: Drops, after: Drops) -> Vec<String> {
    let count = |drops: Drops| serde_json::to_value(drops).unwrap();
    let (before, after) = (count(before), count(after));
    let reasons = after.as_object().unwrap().iter();
    reasons
        .flat_map(|(reason, count)| {
            let times = count.as_u64().unwrap() - before[reason].as_u64().unwrap();
            (0..times).map(|_| reason.clone())
        })
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
