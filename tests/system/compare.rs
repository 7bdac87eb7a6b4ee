//! Tests `weir compare` on the examples: formulas, simulation and the live switch side by side.
use crate::bed::{run_on_example, uncontrolled};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Output;

fn compare(file: &str, arguments: &[&str]) -> Output {
    run_on_example("compare", file, arguments)
}

const SHORT: [&str; 4] = ["--duration", "100ms", "--rounds", "2"];

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn the_quickstart_is_answered_side_by_side() {
    let output = compare("quickstart.toml", &[&SHORT[..], &["--replications", "2", "--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let answer = |verb: &str| list(&result, "answers").iter().find(|answer| answer["by"]["verb"] == verb).unwrap();
    for (verb, runs) in [("predict", 0), ("simulate", 2), ("run", 2)] {
        let own = answer(verb);
        assert_eq!((&own["state"], own["runs"].as_u64()), (&Value::from("answered"), Some(runs)), "{own:#}");
        let row = list(own, "rows").iter().find(|row| row["name"] == "udp blue-a > blue-b").unwrap();
        let figure = |metric: &str| row["figures"][metric]["value"].as_f64().unwrap();
        assert!(figure("delay_mean_s") >= 2e-3, "the link alone delays by 2 ms: {row:#}");
        assert!(
            figure("delay_p50_s") <= figure("delay_p95_s") && figure("delay_p95_s") <= figure("delay_p99_s"),
            "{row:#}"
        );
    }
    assert_eq!(result["reference"]["verb"], "run");
    let compared = list(&result, "compared").iter().find(|compared| compared["by"]["verb"] == "simulate").unwrap();
    let metrics: Vec<&str> = list(compared, "scores").iter().filter_map(|score| score["metric"].as_str()).collect();
    for metric in ["delay_mean_s", "delay_p95_s", "loss", "rate_bps"] {
        assert!(metrics.contains(&metric), "no {metric} in {metrics:?}");
    }
    for one in list(compared, "differences").iter().filter(|one| one["metric"] == "delay_mean_s") {
        let [reference, found] = ["reference", "found"].map(|side| one[side]["value"].as_f64().unwrap());
        let scaled = one["scaled"].as_f64().unwrap();
        assert!((scaled - (reference - found) / reference).abs() < 1e-9 && one["verdict"].is_string(), "{one:#}");
    }
}

/// Compares models of one switch with its simulated stations, and writes a page.
#[test]
fn models_are_held_against_simulated_stations() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let arguments =
        ["--model", "mahmood", "--model", "mg1", "--duration", "20s", "--replications", "3", "--csv", "--plot"];
    let output = compare("at-x510.toml", &[&arguments[..], &[page.to_str().unwrap()]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for start in ["predict,ok,delay_mean_s", "predict mahmood,ok,delay_mean_s", "simulate,ok,delay_p95_s"] {
        let line = format!("all packets at x510,{start}");
        assert!(text.contains(&line), "no `{line}` in\n{text}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("mahmood") && page.contains("<svg"), "{page}");
}

#[test]
fn a_folder_has_a_board_and_failures_are_rows() {
    let folder = tempfile::tempdir().unwrap();
    let example: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../examples/at-x510.toml"].iter().collect();
    std::fs::copy(example, folder.path().join("one.toml")).unwrap();
    std::fs::write(folder.path().join("broken.toml"), "switch = 3\n").unwrap();
    let arguments = ["--duration", "20s", "--replications", "2", "--json"];
    let output = compare(folder.path().to_str().unwrap(), &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let board: Value = serde_json::from_slice(&output.stdout).unwrap();
    let states: Vec<&str> = list(&board, "entries").iter().filter_map(|entry| entry["state"].as_str()).collect();
    assert_eq!(states, ["failed", "compared"], "{board:#}");
    let mean = list(&board, "places").iter().find(|place| place["metric"] == "delay_mean_s").unwrap();
    assert!(mean["valid"].as_u64() >= Some(1) && mean["common"]["mean"].as_f64() < Some(0.5), "{mean:#}");
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(compare(empty.path().to_str().unwrap(), &[]).status.code(), Some(2));
}

#[test]
fn the_table_and_the_lines_have_every_flow() {
    let simulated = ["--answers", "simulate", "--replications", "2", "--duration", "50ms"];
    for (format, words) in [
        (&[][..], ["udp blue-a > blue-b", "Nothing to hold", "seed 1"]),
        (&["--csv"][..], [",flow,", "delay_p95_s", "simulate"]),
    ] {
        let output = compare("quickstart.toml", &[&simulated[..], format].concat());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        words.iter().for_each(|word| assert!(text.contains(word), "no `{word}` in\n{text}"));
    }
}

#[test]
fn streams_are_compared_by_virtual_switch() {
    let arguments =
        ["--answers", "simulate,run", "--replications", "2", "--rounds", "1", "--duration", "20ms", "--csv"];
    let output = compare("vx-priority.toml", &arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for name in ["small", "big"] {
        let has = |answer: &str| {
            text.lines().any(|line| line.contains(name) && line.contains(&format!(",{answer},ok,loss,")))
        };
        assert!(has("simulate") && has("run"), "no loss of {name} from both in\n{text}");
    }
}

#[test]
fn without_any_answer_it_is_bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let file = uncontrolled(folder.path());
    for (arguments, problem) in [
        (&["--answers", "simulate"][..], "is the controller running?"),
        (&["--answers", "guess"][..], "expected one of predict, simulate, emulate, run"),
        (&["--reference", "predict"][..], "expected run, emulate or simulate"),
    ] {
        let output = compare(&file, arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(problem), "no `{problem}` in {error}");
    }
}
