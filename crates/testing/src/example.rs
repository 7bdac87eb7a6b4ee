//! Runs the examples of a package, which cargo builds together with its tests.
use std::process::Command;

/// Runs an example of the calling test's package, which must succeed. Returns its output.
///
/// Cargo builds examples for `cargo test`, but not for a single test program (`--test NAME`).
pub fn run_example(name: &str, arguments: &[&str]) -> String {
    let test = std::env::current_exe().expect("the test's own path");
    // The test is target/PROFILE/deps/NAME-HASH.
    let profile = test.ancestors().nth(2).expect("the folder of the profile");
    let path = profile.join("examples").join(name);
    let output = Command::new(&path).args(arguments).output().unwrap_or_else(|error| {
        panic!("{}: {error}; build it with `cargo build --examples`, or run all tests of the package", path.display())
    });
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{name}: {}\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    text
}
