//! Runs the examples and checks what they print.
use weir_testing::run_example;

#[test]
fn memory_ports_pass_frames() {
    let printed = run_example("two_memory_ports", &[]);
    for part in ["at  2.000 ms: 1250 bytes", "because the buffer was full"] {
        assert!(printed.contains(part), "`{part}` is not in:\n{printed}");
    }
}
