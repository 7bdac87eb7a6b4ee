//! Runs the examples and checks what they print.
use weir_testing::run_example;

#[test]
fn disciplines_share_a_line() {
    let printed = run_example("disciplines", &[]);
    for part in ["75.0%  25.0%", "100.0%   0.0%"] {
        assert!(printed.contains(part), "`{part}` is not in:\n{printed}");
    }
}
