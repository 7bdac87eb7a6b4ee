//! Runs the examples and checks what they print.
use weir_testing::run_example;

#[test]
fn a_scenario_is_predicted() {
    let printed = run_example("predict_file", &[]);
    for part in ["h1 -> h3", "saturates first"] {
        assert!(printed.contains(part), "`{part}` is not in:\n{printed}");
    }
}
