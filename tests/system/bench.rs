//! Tests `weir bench datapath`: every case's packets leave by the right port, and other programs can generate the
//! same packets from the files that it writes.
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use weir_testing::{programs, workspace};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const ROUTES: &str = "10.0.0.0/8\n10.1.0.0/16\n192.0.2.1/32\n";
const RULES: &str = "@10.0.0.0/8\t192.0.2.0/24\t0 : 65535\t1024 : 65535\t0x06/0xFF\t0x0000/0x0000\t\n\
    @10.1.0.0/16\t0.0.0.0/0\t5 : 9\t0 : 65535\t0x11/0xFF\t0x0000/0x0000\t\n\
    @0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000\t\n";

fn bench(arguments: &[&str]) -> Output {
    Command::new(WEIR).args(["bench", "datapath"]).args(arguments).output().expect("weir runs")
}

fn cases(arguments: &[&str]) -> Vec<Value> {
    let output = bench(&[arguments, &["--time", "1ms", "--warm-up", "0s", "--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    report["cases"].as_array().expect("a list of cases").clone()
}

/// Checks that every packet left. Returns the share of packets that matched the case's entries.
fn hits(arguments: &[&str]) -> Vec<f64> {
    let whole = |case: &Value| {
        assert!(case["packets"].as_u64() > Some(0) && case["packets"] == case["sent"], "{case}");
        case["hits"].as_f64().unwrap_or(-1.0)
    };
    cases(arguments).iter().map(whole).collect()
}

#[test]
fn all_packets_leave_through_the_entries() {
    assert_eq!(hits(&["port", "wildcard", "mac", "udp", "mpls", "masks", "pipeline"]), [1.0; 7]);
    assert_eq!(hits(&["io"]), [-1.0]);
    assert_eq!(hits(&["attack"]), [0.0], "hostile packets miss");
    assert_eq!(hits(&["attack", "--headers", "calm"]), [1.0]);
    assert_eq!(hits(&["udp", "--order", "random", "--entries", "3000", "--seed", "7", "--size", "1514"]), [1.0]);
    assert_eq!(hits(&["mac", "--entries", "10", "--flows", "1000"]), [1.0]);
    assert_eq!(hits(&["masks", "--masks", "5", "--entries", "1000"]), [1.0]);
    for ports in ["memory", "pcap"] {
        assert_eq!(hits(&["udp", "mpls", "--ports", ports]), [1.0; 2], "{ports}");
    }
}

#[test]
fn cases_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (routes, rules) = (file("routes", ROUTES), file("rules", RULES));
    assert_eq!(hits(&["lpm", "--file", &routes, "--flows", "1000"]), [1.0]);
    for case in ["classbench", "attack"] {
        assert_eq!(hits(&[case, "--file", &rules, "--flows", "1000"]), [1.0], "the last rule takes everything");
    }
    let wrong = file("wrong", "@10.0.0.0/8 x\n");
    let output = bench(&["classbench", "--file", &wrong]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("wrong:1: found `@10.0.0.0/8 x`, expected @SOURCE/N DESTINATION/N"), "{said}");
}

#[test]
fn workers_count_what_they_pass_together() {
    let arguments =
        ["udp", "pipeline", "--workers", "3", "--oversubscribe", "--time", "1ms", "--warm-up", "0s", "--json"];
    let output = bench(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let together = report["together"].as_array().expect("a list of what several did");
    let measured: Vec<_> = together.iter().map(|all| (all["case"].as_str(), all["workers"].as_u64())).collect();
    let cases = ["udp", "pipeline"].into_iter().flat_map(|case| [2, 3].map(|workers| (Some(case), Some(workers))));
    assert_eq!(measured, cases.collect::<Vec<_>>());
    for all in together {
        let each = all["each"].as_array().expect("a list of workers");
        let packets: u64 = each.iter().filter_map(|one| one["packets"].as_u64()).sum();
        assert_eq!(each.len() as u64, all["workers"].as_u64().unwrap_or(0), "{all}");
        assert!(packets > 0 && all["packets"].as_u64() >= Some(packets), "{all}");
        assert!(
            all["packets"] == all["sent"] && all["hits"].as_f64() == Some(1.0),
            "the tables counted each packet: {all}"
        );
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let refused: [(&[&str], &str); 7] = [
        (&["lpm"], "case lpm: needs prefixes, one in each line: give --file FILE"),
        (&["port", "--entries", "3"], "--entries does not go with a case of one entry or none"),
        (&["mac", "--masks", "3"], "--masks does not go with this case"),
        (&["udp", "--flows", "2M"], "each entry is one flow's: found 2000000 flows for 1000 entries"),
        (&["mac", "--flows", "17M"], "found 17000000 flows, expected 1 to 16777216"),
        (&["udp", "--ports", "pcap", "--entries", "200k"], "found 200000 flows, expected at most 100000"),
        (&["port", "--time", "0s"], "--time: found 0ns, expected a time above zero"),
    ];
    for (arguments, expected) in refused {
        let output = bench(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

/// The program bench/peers/flowgen.c generates weir's packets from the files that weir writes.
#[test]
fn the_peer_s_generator_makes_the_same_packets() {
    if !programs(&["cc"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let generator = folder.path().join("flowgen");
    let source = workspace().join("bench/peers/flowgen.c");
    let built = Command::new("cc").args(["-DFLOWGEN_SHOW", "-o"]).args([&generator, &source]).status().unwrap();
    assert!(built.success());
    let routes = folder.path().join("routes");
    std::fs::write(&routes, ROUTES).unwrap();
    let all: [&[&str]; 8] = [
        &["port"],
        &["wildcard", "--size", "1000"],
        &["mac", "--entries", "10", "--flows", "100", "--order", "random", "--seed", "5"],
        &["udp", "--entries", "70", "--order", "random"],
        &["mpls", "--entries", "3"],
        &["masks"],
        &["attack"],
        &["lpm", "--file", routes.to_str().unwrap(), "--flows", "100"],
    ];
    for (number, arguments) in all.into_iter().enumerate() {
        let case = folder.path().join(number.to_string());
        let output = bench(&[arguments, &["--out", case.to_str().unwrap()]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let first = std::fs::read(case.join("first")).unwrap();
        assert_eq!(first.len(), 256 * 60);
        let shown = shown(&generator, &case);
        let same = shown.chunks(64).zip(first.chunks(60)).all(|(theirs, ours)| theirs[..60] == *ours);
        assert!(same && shown.len() == 256 * 64, "{arguments:?}");
        let entries = std::fs::read_to_string(case.join("entries")).unwrap();
        assert!(entries.lines().count() > 0 && entries.lines().all(|line| line.ends_with("actions=output:2")));
    }
}

fn shown(generator: &Path, case: &Path) -> Vec<u8> {
    let told: Value = serde_json::from_slice(&std::fs::read(case.join("generator.json")).unwrap()).unwrap();
    let mut command = Command::new(generator);
    command.arg("256").env("FLOWGEN_LIST", case.join("list"));
    for name in ["headers", "flows", "spread", "size", "order", "seed"] {
        let text = told[name].as_str().map_or_else(|| told[name].to_string(), str::to_owned);
        command.env(format!("FLOWGEN_{}", name.to_uppercase()), text);
    }
    command.output().unwrap().stdout
}

/// Measures one thread and as many as there are cores, at most two; all received frames must leave.
#[test]
fn threads_are_measured_in_turn() {
    let threads = if std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) { "1,2" } else { "1" };
    let arguments = ["--threads", threads, "--others", "0,1", "--rounds", "2", "--time", "5ms", "--json"];
    let output = Command::new(WEIR).args(["bench", "threads"]).args(arguments).output().expect("weir runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let rows = report["rows"].as_array().expect("a list of rows");
    assert_eq!(rows.len(), 3 * 2 * threads.split(',').count());
    assert_eq!(report["samples"].as_array().expect("a list of samples").len(), 2 * rows.len());
    assert!(rows.iter().all(|row| row["mpps"].as_f64() > Some(0.0) && row["ratio"].as_f64() > Some(0.0)), "{rows:?}");
    let refused = Command::new(WEIR).args(["bench", "threads", "--threads", "0"]).output().expect("weir runs");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--threads: found 0, expected 1 to"));
}

#[test]
fn weir_as_a_controller_answers_every_packet_in() {
    let arguments = ["bench", "controller", "--compare", "weir", "--switches", "3", "--hosts", "8", "--window", "2"];
    let short = ["--time", "300ms", "--warm-up", "100ms", "--json"];
    let output = Command::new(WEIR).args(arguments).args(short).output().expect("weir runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let found = &report["controllers"][0];
    assert!(found["answered"].as_u64() > Some(0) && found["lost"] == 0 && found["ended"] == 0, "{found}");
    let replies = &found["replies"];
    assert!(replies["wrong"] == 0 && replies["malformed"] == 0 && replies["errors"] == 0, "{replies}");
    assert!(found["ceiling_per_second"].as_f64() > Some(0.0), "{found}");
}

#[test]
fn a_controller_that_is_not_there_is_an_error() {
    let command = |arguments: &[&str]| Command::new(WEIR).args(["bench", "controller"]).args(arguments).output();
    for (arguments, expected) in [
        (&["127.0.0.1:1"][..], "does the controller listen there?"),
        (&["nowhere"][..], "expected a controller's HOST:PORT"),
        (&["--compare", "ryu"][..], "expected weir, ovs-testcontroller, os-ken, or NAME=COMMAND"),
        (&["127.0.0.1:1", "--openflow", "1.5"][..], "expected 1.0, 1.3 or 1.4"),
    ] {
        let output = command(arguments).expect("weir runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && errors.contains(expected), "{arguments:?}: {errors}");
    }
}
