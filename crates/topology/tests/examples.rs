//! Runs the examples and checks what they print.
use weir_testing::run_example;

#[test]
fn the_widest_path_is_found() {
    let printed = run_example("widest_path", &[]);
    for part in ["widest path from Oslo to Bergen: 4Gbit/s", "Stavanger - Bergen"] {
        assert!(printed.contains(part), "`{part}` is not in:\n{printed}");
    }
}
