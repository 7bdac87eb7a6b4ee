//! Runs the examples and checks what they print.
use weir_testing::run_example;

#[test]
fn an_application_answers() {
    let printed = run_example("own_application", &[]);
    for part in ["event: Up", "OFPT_PACKET_OUT", "actions=FLOOD", "{\"packets\": 1}"] {
        assert!(printed.contains(part), "`{part}` is not in:\n{printed}");
    }
}
