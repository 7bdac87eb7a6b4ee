//! Tests `weir topology`, and scenarios with topologies in virtual time.
use crate::bed::weir;
use std::process::Command;

fn weir_says(arguments: &[&str], folder: &std::path::Path) -> (bool, String) {
    let output = Command::new(weir()).args(arguments).current_dir(folder).output().expect("weir starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

#[test]
fn a_file_is_shown_listed_and_becomes_a_scenario_that_runs_in_virtual_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let net = r#"{"nodes": [{"id": 1, "name": "A"}, {"id": 2, "name": "B"}, {"id": 3, "name": "C"}],
        "edges": [{"source": 1, "target": 2, "dist": 100}, {"source": 2, "target": 3, "dist": 100}, {"source": 3, "target": 1, "dist": 100}]}"#;
    std::fs::write(folder.path().join("net.json"), net).expect("a file");
    let (ok, shown) = weir_says(&["topology", "show", "net.json"], folder.path());
    assert!(ok && shown.contains("  diameter    1 link, 1.00 links between two nodes in the mean\n"), "{shown}");
    let (ok, listed) = weir_says(&["topology", "list", "net.json"], folder.path());
    assert!(ok && listed.contains("  A          B   -     500µs\n"), "{listed}");
    let (ok, refused) = weir_says(&["topology", "show", "net.json", "--toml"], folder.path());
    assert!(!ok && refused.contains("link A - B: found no rate, expected `rate` in [topology]"), "{refused}");
    let (ok, written) = weir_says(&["topology", "show", "net.json", "--toml", "--rate", "10Mbit/s"], folder.path());
    assert!(ok && written.contains("name = \"h-a\"") && written.contains("delay = \"500µs\""), "{written}");
    let traffic =
        "[[traffic]]\nkind = 'ping'\nfrom = 'h-a'\nto = 'h-c'\n[[traffic]]\nkind = 'ping'\nfrom = 'h-b'\nto = 'h-c'\n";
    std::fs::write(folder.path().join("x.toml"), written + traffic).expect("a file");
    let (ok, result) = weir_says(&["simulate", "x.toml"], folder.path());
    assert!(ok, "{result}");
}

#[test]
fn all_hosts_of_a_fat_tree_reach_each_other_in_virtual_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut text = "[topology]\nkind = 'fat-tree'\nk = 4\nhosts = 1\nrate = '1Gbit/s'\ndelay = '10us'\n".to_owned();
    for (from, to) in (1..=8).flat_map(|from| (1..=8).filter(move |to| *to != from).map(move |to| (from, to))) {
        text += &format!("[[traffic]]\nkind = 'ping'\nfrom = 'h{from}'\nto = 'h{to}'\ncount = 2\n");
    }
    std::fs::write(folder.path().join("x.toml"), text).expect("a file");
    let (ok, result) = weir_says(&["simulate", "x.toml"], folder.path());
    assert!(ok, "{result}");
}
