//! Runs the examples and checks what they print.
use weir_testing::run_example;

#[test]
fn a_packet_is_parsed_and_edited() {
    let printed = run_example("parse_and_edit", &[]);
    for part in
        ["VLAN 7", "198.51.100.1:40000 -> 192.0.2.9:80", "checksums right", "matches vlan_vid=7,tcp_dst=80: true"]
    {
        assert!(printed.contains(part), "`{part}` is not in:\n{printed}");
    }
}
