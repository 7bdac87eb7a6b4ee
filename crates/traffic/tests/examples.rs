//! Runs the examples and checks what they print.
use weir_testing::run_example;

#[test]
fn a_poisson_stream_is_drawn() {
    let printed = run_example("poisson", &[]);
    for part in
        ["They are exponential: yes", "The seed gives the packets again: true", "Another seed gives others: true"]
    {
        assert!(printed.contains(part), "`{part}` is not in:\n{printed}");
    }
}
