//! Runs the examples and checks what they print.
use weir_testing::run_example;

#[test]
fn a_router_is_served() {
    let printed = run_example("virtual_router", &[]);
    for part in
        ["nw_dst=10.0.2.0/24", "tp_dst=0x200/0xfe00", "set_field:10.0.2.100->ip_src", "listening on", "\"away\""]
    {
        assert!(printed.contains(part), "`{part}` is not in:\n{printed}");
    }
}
