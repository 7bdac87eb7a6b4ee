//! Tests `--metrics`: the counters of a switch and of a controller over HTTP, asked for with curl.
use crate::bed::{B4, Bed, ping, weir};

/// Returns the value of a metric's sample, given as it is printed, with its labels.
fn value(text: &str, sample: &str) -> f64 {
    let found = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    found.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {sample} in:\n{text}"))
}

#[test]
fn a_switch_and_a_controller_serve_their_counters() {
    if !weir_testing::root() || !weir_testing::programs(&["ip", "ping", "curl"]) {
        return;
    }
    let bed = Bed::new();
    let controller = bed.controller(&["--metrics", "9101"]);
    let ports = ["--name", "s1", "--dpid", "5", "--port", "1=af_packet:pa", "--port", "2=af_packet:pb"];
    let switch = bed.switch(&[&ports[..], &["--controller", "tcp:127.0.0.1:6653", "--metrics", "9100"]].concat());
    assert!(bed.reaches(B4, 30) && ping(&bed.a, B4, 3));
    let get = |port: u16| bed.run("curl", &["-sf", "-m", "60", &format!("http://127.0.0.1:{port}/metrics")]);
    let text = get(9100);
    assert!(text.contains("weir_switch_info{switch=\"s1\",dpid=\"0000000000000005\",version=\""), "{text}");
    assert!(value(&text, "weir_port_sent_packets_total{switch=\"s1\",port=\"2\",name=\"pb\"}") >= 4.0);
    assert_eq!(value(&text, "weir_channel_up{switch=\"s1\",peer=\"tcp:127.0.0.1:6653\"}"), 1.0);
    assert!(value(&text, "weir_table_entries{switch=\"s1\",table=\"0\"}") >= 2.0, "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    let text = get(9101);
    assert_eq!(value(&text, "weir_controller_switches"), 1.0);
    assert!(value(&text, "weir_controller_sent_messages_total{message=\"flow-mod\"}") >= 2.0, "{text}");
    // An address in use is refused, by name.
    let mut second = bed.switches.command(weir());
    let second = second.args(["controller", "--listen", "tcp:127.0.0.1:0", "--metrics", "9101"]).output();
    let said = String::from_utf8_lossy(&second.expect("weir starts").stderr).into_owned();
    assert!(said.contains("--metrics: cannot serve metrics on 127.0.0.1:9101: "), "{said}");
    let mut third = bed.switches.command(weir());
    let third = third.args(["switch", "--name", "s2", "--port", "1=null:", "--metrics", "9100"]).output();
    let said = String::from_utf8_lossy(&third.expect("weir starts").stderr).into_owned();
    assert!(said.contains("weir: --metrics: cannot serve metrics on 127.0.0.1:9100: "), "{said}");
    switch.stop();
    controller.stop();
}
