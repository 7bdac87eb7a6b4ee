//! Tests captures that scenarios replay.
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use weir_packet::craft::FrameBuilder;
use weir_packet::field::ip_proto;
use weir_scenario::{Scenario, TrafficKind};
use weir_testing::{CapturedFrame, pcap};
use weir_traffic::{OfferedPackets, TrafficTrace};

/// Time of a capture's first frame: some day in 2023.
const BEGIN_NS: u64 = 1_700_000_000_123_456_789;

const HOSTS: &str = "[[switch]]\nname = 's1'\n[[host]]\nname = 'h1'\nswitch = 's1'\nip = '10.0.0.1/24'\n\
                     [[host]]\nname = 'h2'\nswitch = 's1'\nip = '10.0.0.2/24'\n";

/// Frames at 0, 1, 1.5 and 3 ms.
fn frames() -> Vec<CapturedFrame> {
    let frame = |(us, bytes): (u64, u32)| CapturedFrame::new(BEGIN_NS + us * 1000, bytes);
    [(0, 60), (1000, 1514), (1500, 200), (3000, 60)].map(frame).to_vec()
}

/// Folder with the scenario and its capture.
struct Folder(TempDir);

impl Folder {
    fn with(capture: &[u8]) -> Folder {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("c.pcap"), capture).unwrap();
        Folder(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Parses a scenario in this folder with a traffic item whose arrivals have these keys.
    fn item(&self, arrival: &str, more: &str) -> Result<Scenario, String> {
        let text = format!(
            "{HOSTS}[[traffic]]\nkind = 'udp'\nfrom = 'h1'\nto = 'h2'\narrival = {{ kind = 'capture', {arrival} }}\n{more}"
        );
        let file = self.path("scenario.toml");
        Scenario::parse(&text, file.to_str().unwrap()).map_err(|error| error.to_string())
    }
}

fn trace(scenario: &Scenario) -> (&TrafficTrace, Duration) {
    let TrafficKind::Udp { offered: OfferedPackets::Trace(trace), duration, .. } = &scenario.traffic[0].kind else {
        panic!("expected a trace: {:?}", scenario.traffic)
    };
    (trace, *duration)
}

fn packets(scenario: &Scenario) -> Vec<(u64, u32)> {
    trace(scenario).0.packets().iter().map(|packet| (packet.at_ns / 1000, packet.bytes)).collect()
}

#[test]
fn times_and_lengths_carry_over() {
    let folder = Folder::with(&pcap(&frames()));
    let scenario = folder.item("file = 'c.pcap'", "").unwrap();
    assert_eq!(packets(&scenario), [(0, 60), (1000, 1514), (1500, 200), (3000, 60)]);
    // Three gaps of a millisecond in the mean, and one more after the last packet.
    assert_eq!((trace(&scenario).1, trace(&scenario).0.per_second()), (Duration::from_millis(4), 1000.0));
    let fast = folder.item("file = 'c.pcap', speed = 2.0, repeat = 3", "").unwrap();
    assert_eq!(packets(&fast), [(0, 60), (500, 1514), (750, 200), (1500, 60)]);
    assert_eq!((trace(&fast).1, trace(&fast).0.per_second()), (Duration::from_millis(6), 2000.0));
    for (duration, expected_ms) in [("2ms", 2), ("1s", 4)] {
        let given = folder.item("file = 'c.pcap'", &format!("duration = '{duration}'")).unwrap();
        assert_eq!(trace(&given).1, Duration::from_millis(expected_ms), "it ends with its packets at the latest");
    }
}

#[test]
fn packets_are_chosen_by_address() {
    let frame = |(ms, from, to): (u64, [u8; 4], [u8; 4])| {
        let builder = FrameBuilder::ethernet(Default::default(), Default::default()).ipv4(from.into(), to.into());
        let bytes = builder.ip_proto(ip_proto::TCP).build();
        CapturedFrame { bytes, ..CapturedFrame::new(BEGIN_NS + ms * 1_000_000, 100) }
    };
    let (a, b, c) = ([192, 0, 2, 1], [192, 0, 2, 200], [198, 51, 100, 7]);
    let folder = Folder::with(&pcap(&[(0, a, b), (1, b, a), (2, a, c), (3, c, a), (4, b, a)].map(frame)));
    for (keys, expected) in [
        ("ip_src = '192.0.2.1'", vec![0, 2000]),
        ("ip_dst = '192.0.2.1'", vec![1000, 3000, 4000]),
        ("ip_src = '192.0.2.0/24', ip_dst = '192.0.2.0/24'", vec![0, 1000, 4000]),
    ] {
        let scenario = folder.item(&format!("file = 'c.pcap', {keys}"), "").unwrap();
        assert_eq!(packets(&scenario).iter().map(|packet| packet.0).collect::<Vec<_>>(), expected, "{keys}");
        assert_eq!(trace(&scenario).1, Duration::from_millis(5), "all parts of a capture take the same time");
    }
    for (keys, problem) in [
        ("ip_src = '203.0.113.1'", "found 0 frames with these addresses, expected two or more"),
        ("ip_dst = 'fd00::1'", "found 0 frames with these addresses, expected two or more"),
        ("speed = '2x'", "arrival: speed: found `\"2x\"`, expected a number"),
        ("clamp = 'yes'", "arrival: clamp: found `\"yes\"`, expected true or false"),
        ("ip_src = 'a'", "ip_src: found `a`, expected an address or a prefix such as 10.0.0.1 or 10.0.0.0/8"),
    ] {
        let error = folder.item(&format!("file = 'c.pcap', {keys}"), "").unwrap_err();
        assert!(error.contains(problem), "{keys}: {error}");
    }
    let error = folder.item("clamp = true", "").unwrap_err();
    assert!(error.ends_with("arrival: found no `file`, expected it, such as file = \"capture.pcap\""), "{error}");
}

#[test]
fn lengths_that_cannot_be_sent_are_refused_or_clamped() {
    let mut frames = frames();
    (frames[0].wire_bytes, frames[1].wire_bytes) = (42, 2962);
    let folder = Folder::with(&pcap(&frames));
    let error = folder.item("file = 'c.pcap'", "").unwrap_err();
    let expected = "c.pcap: found 2 of 4 frames of lengths that cannot be sent (there are 42 to 2962 bytes), expected 58 to \
                    1514; `clamp = true` gives them the nearest length";
    assert!(error.ends_with(expected), "{error}");
    let scenario = folder.item("file = 'c.pcap', clamp = true", "").unwrap();
    assert_eq!(packets(&scenario).iter().map(|packet| packet.1).collect::<Vec<_>>(), [58, 1514, 200, 60]);
}

#[test]
fn bad_files_are_refused_with_their_path() {
    let whole = pcap(&frames());
    let with = |change: fn(&mut Vec<CapturedFrame>)| {
        let mut frames = frames();
        change(&mut frames);
        pcap(&frames)
    };
    let mut cooked = whole.clone();
    cooked[20] = 113;
    for (capture, problem) in [
        (Vec::new(), "found no pcap or pcapng header, expected a capture file"),
        (vec![7; 100], "found no pcap or pcapng header, expected a capture file"),
        (whole[..24].to_vec(), "found 0 frames, expected two or more: a rate needs gaps"),
        (with(|frames| frames.truncate(1)), "found 1 frame, expected two or more: a rate needs gaps"),
        (
            with(|frames| frames.iter_mut().for_each(|frame| frame.time_ns = BEGIN_NS)),
            "found all frames at one time, expected times that differ",
        ),
        (
            with(|frames| frames.swap(1, 2)),
            "found frame 3 500000 ns before the one before it, expected frames in order of time; `reordercap IN OUT` sorts \
             them",
        ),
        (
            whole[..whole.len() - 1].to_vec(),
            "damaged capture: the file ends in the middle of a record; repair it (`editcap IN OUT` keeps what can be read)",
        ),
        (cooked, "expected Ethernet (link type 1); capture on an Ethernet interface, not on `any`"),
    ] {
        let folder = Folder::with(&capture);
        let error = folder.item("file = 'c.pcap'", "").unwrap_err();
        let path = folder.path("c.pcap");
        assert!(error.contains(&format!("scenario.toml:15: traffic: arrival: {}: ", path.display())), "{error}");
        assert!(error.ends_with(problem), "{error}");
    }
}

#[test]
fn files_that_are_none_are_refused() {
    let folder = Folder::with(&[]);
    let error = |file: &str| folder.item(&format!("file = '{file}'"), "").unwrap_err();
    let path = |file: &str| folder.path(file).display().to_string();
    assert!(error("none.pcap").contains(&format!("cannot read {}: No such file", path("none.pcap"))));
    assert!(error(".").ends_with("found no regular file, expected a capture (pcap or pcapng)"), "{}", error("."));
    let huge = std::fs::File::create(folder.path("huge.pcap")).unwrap();
    huge.set_len((1 << 30) + 1).unwrap();
    let expected = format!("{}: found 1073741825 bytes, expected at most 1073741824", path("huge.pcap"));
    assert!(error("huge.pcap").ends_with(&expected), "{}", error("huge.pcap"));
}

#[test]
fn wrong_settings_are_refused() {
    let folder = Folder::with(&pcap(&frames()));
    for (arrival, more, problem) in [
        ("file = 'c.pcap', speed = 0.0", "", "speed: found 0, expected a factor of 0.001 to 1000000"),
        ("file = 'c.pcap', repeat = 0", "", "repeat: found 0, expected a number of times of 1 to 1000000"),
        ("file = 'c.pcap', repeat = -1", "", "repeat: found -1, expected a number of times of 1 to 1000000"),
        ("file = 'c.pcap', repeat = 1000000, speed = 0.001", "", "expected at most 24h, or a `duration`"),
        ("file = 'c.pcap', sped = 2.0", "", "unknown field `sped`, expected one of"),
        ("speed = 2.0", "", "found no `file`, expected it"),
        (
            "file = 'c.pcap'",
            "rate = 60",
            "traffic: found rate beside a trace or a capture, expected neither rate, payload nor sizes: the file has them",
        ),
    ] {
        let error = folder.item(arrival, more).unwrap_err();
        assert!(error.contains(problem), "{arrival}: {error}");
    }
}

#[test]
fn streams_replay_captures_too() {
    let folder = Folder::with(&pcap(&frames()));
    let text = |arrival: &str| {
        format!(
            "[[switch]]\nname = 's1'\n[switch.fabric]\nports = 2\nrate = '1Gbit/s'\nmax_packet = '1000B'\n[[stream]]\n\
             switch = 's1'\ninputs = '1'\noutput = 2\narrival = {{ kind = 'capture', file = 'c.pcap', {arrival} }}\n"
        )
    };
    let file = folder.path("scenario.toml");
    let parse = |arrival: &str| Scenario::parse(&text(arrival), Path::to_str(&file).unwrap());
    let error = parse("speed = 1.0").unwrap_err().to_string();
    assert!(
        error.contains("found 1 of 4 frames of lengths that cannot be sent") && error.contains("46 to 1000"),
        "{error}"
    );
    let OfferedPackets::Trace(trace) = &parse("clamp = true").unwrap().streams[0].source else { panic!("a trace") };
    assert_eq!(trace.packets().iter().map(|packet| packet.bytes).collect::<Vec<_>>(), [60, 1000, 200, 60]);
}
