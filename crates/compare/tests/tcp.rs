//! Compares formulas and the simulation packet by packet for TCP connections from start to end.
use weir_predict::{PredictSettings, PredictionStatus, predict};
use weir_scenario::Scenario;
use weir_sim::SimulationMonitor;
use weir_sim::network::simulate;

/// Returns a scenario with a connection over a line, after pings that resolve the hosts' addresses. `beside` adds
/// datagrams that take three quarters of the line.
fn scenario(mbit: u32, delay: &str, buffer: &str, duration: &str, beside: bool) -> Scenario {
    let host = |name: char, switch: char| {
        format!("[[host]]\nname = '{name}'\nswitch = '{switch}'\nip = '10.0.0.{}/24'\n", u32::from(name))
    };
    let ping = |from: char, to: char| {
        format!("[[traffic]]\nkind = 'ping'\nfrom = '{from}'\nto = '{to}'\ncount = 2\ninterval = '50ms'\n")
    };
    let mut text = format!(
        "duration = '{duration}'\n[controller]\nconnect = 'none'\n[[switch]]\nname = 'w'\nfail_mode = 'standalone'\n\
         [[switch]]\nname = 'e'\nfail_mode = 'standalone'\n[[link]]\nends = ['w', 'e']\nrate = '{mbit}Mbit/s'\ndelay = '{delay}'\nbuffer = '{buffer}'\n"
    );
    text += &[host('a', 'w'), host('b', 'w'), host('c', 'e'), host('d', 'e'), ping('a', 'c'), ping('b', 'd')].concat();
    text += "[[traffic]]\nkind = 'tcp'\nfrom = 'a'\nto = 'c'\nstart = '1s'\n";
    if beside {
        let kbit = mbit * 750;
        text += &format!("[[traffic]]\nkind = 'udp'\nfrom = 'b'\nto = 'd'\nstart = '1s'\nrate = '{kbit}kbit/s'\n");
    }
    Scenario::parse(&text, "tcp.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the payload rate in bit/s, by formulas and in virtual time.
fn rates(scenario: &Scenario) -> (f64, f64) {
    let formulas = predict(scenario, &PredictSettings::default()).unwrap();
    let flow = formulas.flows.iter().find(|flow| flow.kind == "tcp").unwrap();
    assert_eq!(flow.status, PredictionStatus::Ok);
    let lab = simulate(
        scenario,
        &weir_sim::network::VirtualTimeSettings::default(),
        &SimulationMonitor::default(),
        &mut |_| (),
    )
    .unwrap();
    let found = lab.traffic.iter().find(|item| item.kind == "tcp").unwrap();
    (flow.goodput_bps.unwrap(), found.goodput_bps.unwrap())
}

#[test]
fn connections_get_what_virtual_time_gives_them() {
    let mut off: Vec<f64> = Vec::new();
    for (mbit, delay, buffer, duration, beside) in [
        // Slow start is the whole connection.
        (50, "40ms", "256kB", "500ms", false),
        (10, "40ms", "64kB", "2s", false),
        // Limited by the window, then by the line.
        (50, "10ms", "64kB", "10s", false),
        (10, "10ms", "256kB", "10s", false),
        (200, "1ms", "64kB", "2s", false),
        // Bursts of slow start overflow the buffer.
        (50, "10ms", "16kB", "2s", false),
        (10, "40ms", "16kB", "2s", false),
        // Limited by the rate that other traffic leaves.
        (10, "1ms", "64kB", "2s", true),
        (10, "10ms", "64kB", "2s", true),
        (10, "40ms", "64kB", "10s", true),
        (50, "1ms", "256kB", "2s", true),
        (50, "10ms", "64kB", "500ms", true),
    ] {
        let (formula, found) = rates(&scenario(mbit, delay, buffer, duration, beside));
        let ratio = formula / found;
        assert!((0.5..2.0).contains(&ratio), "{mbit} {delay} {buffer} {duration} {beside}: {formula}, found {found}");
        off.push(ratio.ln().abs());
    }
    let average = off.iter().sum::<f64>() / off.len() as f64;
    assert!(average < 0.2, "{average}: {off:?}");
}

#[test]
fn a_short_connection_over_a_full_line_waits_for_its_timer() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/wan.toml")).unwrap();
    let scenario = Scenario::parse(&text, "wan.toml").unwrap();
    let (formula, found) = rates(&scenario);
    assert!((0.5..2.0).contains(&(formula / found)), "{formula}, found {found}");
    let formulas = predict(&scenario, &PredictSettings::default()).unwrap();
    let tcp = formulas.flows.iter().find(|flow| flow.kind == "tcp").unwrap();
    assert!(tcp.notes.iter().any(|note| note.contains("waits 1 time") || note.contains("waits 2 times")), "{tcp:?}");
    // Most datagrams find the buffer empty during the wait.
    let udp = formulas.flows.iter().find(|flow| flow.kind == "udp").unwrap().delay.unwrap();
    assert!(udp.p50_s < 0.014 && udp.p99_s > 0.02, "{udp:?}");
}
