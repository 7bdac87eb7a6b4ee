//! Fuzzes the scenario parser with any text. A text must be rejected, or the scenario that it describes must stay the
//! same when it is written out and parsed again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use weir_fuzz::bounded_by;
use weir_scenario::{Scenario, expand_topology};

/// Path given as the scenario's file. Its directory does not exist, so that no scenario can read other files by
/// relative paths.
const FILE: &str = "/nonexistent/fuzz.toml";
/// Memory limit, in bytes, for handling one scenario. It is large because a single line can request a network of 1000
/// nodes.
const MEMORY: usize = 256 << 20;

fuzz_target!(|input: &[u8]| {
    let Ok(written) = std::str::from_utf8(input) else { return };
    bounded_by(MEMORY, || {
        let Ok(scenario) = Scenario::parse(written, FILE) else { return };
        let told = expand_topology(written, FILE).unwrap_or_else(|error| panic!("{error}"));
        let again = Scenario::parse(&told, FILE).unwrap_or_else(|error| panic!("{error}\n{told}"));
        assert_eq!(again, scenario, "{told}");
    });
});
