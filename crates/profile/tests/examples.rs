//! Runs the examples and checks what they print.
use weir_testing::run_example;

#[test]
fn delays_of_profiles_are_shown() {
    let printed = run_example("show_delays", &[]);
    for part in ["ovs-kernel: ", "data path: 6.2 us with 64 bytes, 6.4 us with 1500"] {
        assert!(printed.contains(part), "`{part}` is not in:\n{printed}");
    }
}
