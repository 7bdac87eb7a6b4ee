//! Reads text as a scenario file: it is rejected, or the scenario is unchanged by writing it out and reading it
//! again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use weir_fuzz::bounded_by;
use weir_scenario::{Scenario, write_out};

/// Path from which no file that a scenario names can be found.
const FILE: &str = "/nonexistent/fuzz.toml";
/// Memory limit of a scenario in bytes: one of its lines can request a network of 1000 nodes.
const MEMORY: usize = 256 << 20;

fuzz_target!(|input: &[u8]| {
    let Ok(written) = std::str::from_utf8(input) else { return };
    bounded_by(MEMORY, || {
        let Ok(scenario) = Scenario::parse(written, FILE) else { return };
        let told = write_out(written, FILE).unwrap_or_else(|error| panic!("{error}"));
        let again = Scenario::parse(&told, FILE).unwrap_or_else(|error| panic!("{error}\n{told}"));
        assert_eq!(again, scenario, "{told}");
    });
});
