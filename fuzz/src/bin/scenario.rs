//! Text as a scenario file: read or refused; a scenario that is written out reads as the same scenario.
#![no_main]
use libfuzzer_sys::fuzz_target;
use weir_fuzz::bounded_by;
use weir_scenario::{Scenario, write_out};

/// No file that a scenario names is found from here.
const FILE: &str = "/nonexistent/fuzz.toml";
/// Memory that a scenario may take: a line of it can ask for a network of 1000 nodes.
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
