//! Runs the examples and checks what they print.
use weir_testing::run_example;

#[test]
fn percentiles_are_printed() {
    let printed = run_example("percentile", &[]);
    for part in ["0.80  500 bytes", "load 1.1: "] {
        assert!(printed.contains(part), "`{part}` is not in:\n{printed}");
    }
}
