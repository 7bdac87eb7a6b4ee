//! `weir profile`, and scenarios that name a profile.
use crate::bed::weir;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    let output = Command::new(weir()).args(arguments).output();
    output.unwrap_or_else(|error| panic!("cannot start weir: {error}"))
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn shipped_profiles_are_listed_shown_and_right() {
    let list: serde_json::Value = serde_json::from_slice(&run(&["profile", "list", "--json"]).stdout).unwrap();
    let names: Vec<&str> = list.as_array().unwrap().iter().map(|profile| profile["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["native", "at-x510", "two-level-tcam", "ovs-kernel", "ofsoftswitch13"]);
    let valid = run(&[&["profile", "validate"], &names[..]].concat());
    assert!(valid.status.success(), "{}", stderr(&valid));
    let text = stdout(&run(&["profile", "show", "at-x510"]));
    assert!(text.contains("not calibrated") && text.contains("3.34us + 7.96ns a byte"), "{text}");
    let shown: serde_json::Value =
        serde_json::from_slice(&run(&["profile", "show", "at-x510", "--json"]).stdout).unwrap();
    let buffer = shown["parameters"].as_array().unwrap().iter().find(|one| one["key"] == "timing.buffer").unwrap();
    assert_eq!((buffer["unit"].as_str(), buffer["value"].as_f64()), (Some("packets"), Some(200.0)));
}

#[test]
fn profiles_are_compared_and_drawn() {
    let alike = run(&["profile", "diff", "ovs-kernel", "ovs-kernel"]);
    assert_eq!((alike.status.code(), stdout(&alike).as_str()), (Some(0), "ovs-kernel and ovs-kernel are alike\n"));
    let apart = run(&["profile", "diff", "ovs-kernel", "ofsoftswitch13"]);
    assert_eq!(apart.status.code(), Some(1));
    assert!(stdout(&apart).contains("intervals apart"), "{}", stdout(&apart));
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let drawn = run(&["profile", "plot", "two-level-tcam", "--output", page.to_str().unwrap()]);
    assert!(drawn.status.success(), "{}", stderr(&drawn));
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<figure>").count(), 4);
    assert!(page.contains("level1.shift") && !page.contains("NaN"));
}

#[test]
fn a_wrong_file_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let text = stdout(&run(&["profile", "show", "two-level-tcam", "--toml"]));
    std::fs::write(&file, text.replace("value = \"500us\"", "value = \"-500us\"")).unwrap();
    let output = run(&["profile", "validate", "native", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("mine.toml:") && stderr(&output).contains("found `-500us`"),
        "{}",
        stderr(&output)
    );
    assert!(stdout(&output).starts_with("native: 0 parameters"), "the others are checked all the same");
}

#[test]
fn formulas_and_stations_read_a_profile_beside_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let profile = stdout(&run(&["profile", "show", "at-x510", "--toml"]));
    std::fs::write(folder.path().join("mine.toml"), profile).unwrap();
    let file = folder.path().join("scenario.toml");
    let scenario = "duration = '20s'\n[controller]\nservice = '7.49ms'\n[[switch]]\nname = 's1'\nprofile = 'mine.toml'\n\
        [[host]]\nname = 'h1'\nswitch = 's1'\nip = '10.0.0.1/24'\n[[host]]\nname = 'h2'\nswitch = 's1'\nip = '10.0.0.2/24'\n\
        [[traffic]]\nkind = 'udp'\nfrom = 'h1'\nto = 'h2'\nrate = 40\npayload = '558B'\narrival = 'poisson'\nnew_flows = 0.25\n";
    std::fs::write(&file, scenario).unwrap();
    for verb in ["predict", "simulate"] {
        let output = run(&[verb, file.to_str().unwrap()]);
        assert!(output.status.success(), "{verb}: {}", stderr(&output));
        assert!(stdout(&output).contains("s1"), "{}", stdout(&output));
    }
    std::fs::remove_file(folder.path().join("mine.toml")).unwrap();
    let output = run(&["predict", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.contains("scenario.toml:6: switch s1: profile: found no profile") && said.contains("at-x510"),
        "{said}"
    );
}
