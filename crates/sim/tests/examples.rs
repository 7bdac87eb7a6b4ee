//! Runs the examples and checks what they print.
use weir_testing::run_example;

#[test]
fn a_scenario_is_simulated() {
    let printed = run_example("simulate_file", &[]);
    for part in ["h1 -> h3", "as expected: yes"] {
        assert!(printed.contains(part), "`{part}` is not in:\n{printed}");
    }
}
