//! Tests `weir model`: single evaluations, files of them, and its errors.
use crate::bed::{run_weir, stderr, stdout};
use std::process::Output;

fn model(arguments: &[&str]) -> Output {
    run_weir(&[&["model"], arguments].concat())
}

#[test]
fn every_model_that_is_listed_describes_itself() {
    let output = model(&["--list", "--json"]);
    let models: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let models = models.as_array().expect("a list");
    assert!(models.len() > 10);
    for name in models.iter().map(|model| model["name"].as_str().expect("a name")) {
        let text = stdout(&model(&[name]));
        for word in ["Assumes", "Validity", "Source", "parameter", "answer"] {
            assert!(text.contains(word), "no `{word}` for {name}:\n{text}");
        }
    }
}

#[test]
fn one_evaluation_is_the_same_in_each_form() {
    let text = stdout(&model(&["mm1", "lam=700", "mu=1000"]));
    assert!(text.contains("3.333333ms") && text.contains("Assumes"), "{text}");
    let output = model(&["mm1", "--params", r#"{"lam": 700, "mu": 1000}"#, "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["status"], "OK");
    assert!((json["metrics"]["T"]["value"].as_f64().expect("a number") - 1.0 / 300.0).abs() < 1e-12);
    let csv = stdout(&model(&["mm1", "lam=700", "mu=1000", "--csv"]));
    assert!(csv.starts_with("lam,mu,status,T [s],") && csv.contains("700,1000,OK,0.00333"), "{csv}");
}

#[test]
fn rows_without_a_steady_state_stay_and_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("loads.csv");
    let file = path.to_str().expect("a path of text");
    std::fs::write(&path, "id,lam,dist\na,700,\"[\"\"det\"\", 0.001]\"\nb,1000,\"[\"\"det\"\", 0.001]\"\n")
        .expect("written");
    let output = model(&["mg1", "--rows", file, "--csv"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 of 2 rows answered, 1 unstable"), "{}", stderr(&output));
    let text = stdout(&output);
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.contains("\nb,1000,\"[\"\"det\"\",0.001]\",UNSTABLE,"), "{text}");
    // A row that is no input for the model has its error among the other rows, and sets the exit status.
    std::fs::write(&path, "lam,mu\n700,1000\n-1,1000\n").expect("written");
    let output = model(&["mm1", "--rows", file]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("3.333333ms") && stdout(&output).contains("DOMAIN"), "{}", stdout(&output));
}

#[test]
fn bad_input_is_named_with_what_there_is() {
    for (arguments, words) in [
        (&["mm2", "lam=1"][..], "found mm2, expected one of mm1"),
        (&["mm1", "lam=1", "nu=1"], "found nu, expected lam, mu"),
        (&["mm1", "lam=1"], "mu: found nothing, expected the service rate in 1/s"),
        (&["mm1", "lam=1", "mu=1"], "utilisation 1.000 at the queue"),
        (&["mm1", "--params", "[1]"], "expected a JSON object"),
        (&["mm1", "lam"], "expected PARAMETER=VALUE"),
        (&["mahmood", "lam=1", "p=1.5", "mu_s=9", "mu_c=9"], "p: found 1.5"),
        (&["mm1", "--rows", "/nowhere.csv"], "/nowhere.csv"),
    ] {
        let output = model(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    }
}
