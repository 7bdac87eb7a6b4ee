//! Runs the examples and checks what they print.
use weir_testing::run_example;

#[test]
fn a_small_switch_forwards() {
    let printed = run_example("tiny_switch", &[]);
    for part in ["host 2 received 1 of the 2 frames", "to the controller"] {
        assert!(printed.contains(part), "`{part}` is not in:\n{printed}");
    }
}
