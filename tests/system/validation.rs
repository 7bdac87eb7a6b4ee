//! Tests `weir experiment model-validation-*`: compares a profile with an external switch.
use crate::bed::{ready, weir};
use std::process::{Output, Stdio};
use weir_testing::{Namespace, programs, root};

/// Two levels, slow enough that a busy machine can distinguish them.
const TWO_LEVELS: &str = "name = 'two'\ndevice = 'Two levels'\norigin = 'assumed'\nsource = 'A test'\n\
    [[level]]\nname = 'fast'\nsize = 20\nwrite = '2ms'\nforward = { base_l2 = '500us', base_l3 = '500us', base_l2l3 = '500us' }\n\
    [[level]]\nname = 'slow'\nsize = 60\nwrite = '1ms'\nforward = { base_l2 = '2ms', base_l3 = '2ms', base_l2l3 = '2ms' }\n";

/// The kernel's bridge, as fast as it is on some machine.
const BRIDGE: &str = "name = 'bridge'\ndevice = 'A bridge'\norigin = 'assumed'\nsource = 'A test'\n\
    [[level]]\nname = 'addresses'\nwrite = '0ns'\nforward = { base_l2 = '2us' }\n";

fn experiment(rig: &Namespace, arguments: &[&str]) -> Output {
    let mut command = rig.command(weir());
    command.arg("experiment").args(arguments).stdin(Stdio::null());
    command.output().unwrap_or_else(|error| panic!("cannot start weir: {error}"))
}

#[test]
fn a_profile_is_held_against_a_live_switch() {
    if !root() || !programs(&["ip"]) {
        return;
    }
    let rig = Namespace::new();
    (0..3).for_each(|at| rig.join(&format!("d{at}"), &rig, &format!("p{at}")));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("two.toml");
    std::fs::write(&file, TWO_LEVELS).expect("written");
    let profile = file.to_str().expect("a path of text");
    let mut command = rig.command(weir());
    command.args(["switch", "--listen", "ptcp:6653", "--profile", profile]);
    for at in 0..3 {
        command.arg("--port").arg(format!("{}=af_packet:p{at}", at + 1));
    }
    let _switch = ready(command);
    for (id, things) in [("model-validation-control", "commands"), ("model-validation-data", "packets")] {
        let on = ["--switch", "tcp:127.0.0.1:6653", "--data", "d0,d1,d2", "--profile", profile, "--json"];
        let output = experiment(&rig, &[&[id][..], &on].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        let report: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{said}"));
        assert_eq!(report["partial"], false, "{report}");
        let figures = report["figures"].as_array().expect("figures");
        let of = |case: &str| figures.iter().find(|one| one["case"] == case && one["metric"] == "error rate").cloned();
        // Closeness depends on the machine, and on a busy one some of the four runs cannot be compared; the comparison
        // itself must have happened.
        for case in [format!("100 {things}"), format!("300 {things}"), "tcp:127.0.0.1:6653".to_owned()] {
            let figure = of(&case).unwrap_or_else(|| panic!("no {case}: {report}"));
            let rate = figure["ours"].as_f64().expect("a number");
            assert!(figure["samples"].as_u64() >= Some(1) && (0.0..1000.0).contains(&rate), "{figure}");
        }
        assert!(report["claims"][0]["because"].as_str().is_some_and(|text| text.contains(" of 2 ")), "{report}");
    }
    // The address of no switch.
    let output = experiment(&rig, &["model-validation-data", "--switch", "tcp:127.0.0.1:1", "--data", "d0,d1"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("127.0.0.1:1"), "{output:?}");
}

#[test]
fn a_bridge_is_held_against_its_profile() {
    if !root() || !programs(&["ip"]) {
        return;
    }
    let rig = Namespace::new();
    (0..2).for_each(|at| rig.join(&format!("d{at}"), &rig, &format!("p{at}")));
    rig.ip("link add br0 type bridge");
    rig.ip("link set br0 up");
    (0..2).for_each(|at| rig.ip(&format!("link set p{at} master br0")));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bridge.toml");
    std::fs::write(&file, BRIDGE).expect("written");
    let on = ["--data", "d0,d1", "--profile", file.to_str().expect("a path of text"), "--json"];
    let output = experiment(&rig, &[&["model-validation-data"][..], &on].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{said}"));
    let figures = report["figures"].as_array().expect("figures");
    // Closeness depends on the machine; packets must have come through, twice, and been compared with the profile.
    for case in ["100 packets", "300 packets", "d0,d1"] {
        for metric in ["error rate", "difference of a second measurement", "error of the median, all runs"] {
            let of = figures.iter().find(|one| one["case"] == case && one["metric"] == metric);
            let figure = of.unwrap_or_else(|| panic!("no {metric} of {case}: {report}"));
            assert!(figure["ours"].as_f64().is_some_and(f64::is_finite), "{figure}");
        }
    }
    assert!(figures.iter().any(|one| one["case"] == "packets 2 to 10 ms behind another"), "{report}");
    // The pair that measured the rig's own delay is gone.
    let left = weir_testing::run(rig.command("ip").args(["-brief", "link"]));
    assert!(left.lines().all(|line| !line.starts_with("weir")), "{left}");
    // A bridge takes no commands.
    let output = experiment(&rig, &[&["model-validation-control"][..], &on].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("model-validation-data"), "{said}");
}
