//! Runs the examples and checks what they print.
use weir_testing::run_example;

#[test]
fn the_messages_of_a_capture_are_printed() {
    let printed = run_example("decode_capture", &[]);
    for part in ["OFPT_FLOW_MOD", "nw_dst=10.0.0.0/8", "OFPT_BARRIER_REQUEST"] {
        assert!(printed.contains(part), "`{part}` is not in:\n{printed}");
    }
}
