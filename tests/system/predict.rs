//! Tests `weir predict` on the examples: its answers, sweeps, pages, and errors.
use crate::bed::{run_on_example, stdout};
use std::process::Output;

fn predict(file: &str, arguments: &[&str]) -> Output {
    run_on_example("predict", file, arguments)
}

fn json(file: &str, arguments: &[&str]) -> serde_json::Value {
    let output = predict(file, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{}", stdout(&output)))
}

#[test]
fn every_example_is_answered() {
    for file in ["quickstart.toml", "wan.toml", "external.toml", "at-x510.toml", "vx-priority.toml", "intents.toml"] {
        let output = predict(file, &[]);
        let text = stdout(&output);
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("Models") && text.contains("assumed") && !text.contains("NaN"), "{file}:\n{text}");
    }
}

#[test]
fn doubling_new_flows_makes_the_tail_longer() {
    let points = json("at-x510.toml", &["--sweep", "traffic[0].new_flows=0.1,0.2"]);
    let p99 = |point: usize| points[point]["flows"][0]["delay"]["p99_s"].as_f64().unwrap();
    assert!(p99(0) < p99(1), "{} {}", p99(0), p99(1));
}

#[test]
fn unstable_points_are_rows_and_counted() {
    let sweep = ["--sweep", "traffic.rate=50,200000"];
    let text = stdout(&predict("at-x510.toml", &sweep));
    assert!(text.contains("UNSTABLE") && text.contains("2 rows of traffic, 1 of them UNSTABLE"), "{text}");
    let csv = stdout(&predict("at-x510.toml", &[&sweep[..], &["--csv"]].concat()));
    assert_eq!(csv.lines().count(), 3, "{csv}");
}

#[test]
fn pages_need_no_network() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("out.html");
    let file = page.to_str().unwrap();
    for arguments in [vec!["--plot", file], vec!["--plot", file, "--model", "all", "--sweep", "traffic.rate=20..60:20"]]
    {
        let output = predict("at-x510.toml", &arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let html = std::fs::read_to_string(&page).unwrap();
        assert!(html.contains("<svg") && html.ends_with("</html>\n"), "{html}");
        assert!(!html.contains("src=") && !html.contains("href=") && !html.contains("url("));
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for (arguments, expected) in [
        (vec!["--model", "mm2"], "expected all or one of"),
        (vec!["--sweep", "traffic[9].rate=1,2"], "found [9], but the list has"),
        (vec!["--sweep", "traffic[0].new_flows=1.5"], "expected a share"),
    ] {
        let output = predict("at-x510.toml", &arguments);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(expected) && errors.lines().count() == 1, "{arguments:?}: {errors}");
    }
}
