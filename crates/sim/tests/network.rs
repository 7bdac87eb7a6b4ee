//! Scenarios in virtual time.
use weir_emulator::{LabResult, Progress};
use weir_scenario::Scenario;
use weir_sim::Watch;
use weir_sim::network::{Settings, simulate};

fn quickstart() -> Scenario {
    let text = include_str!("../../../examples/quickstart.toml").replace("duration = \"2s\"", "duration = \"300ms\"");
    Scenario::parse(&text, "quickstart.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario) -> LabResult {
    let result = simulate(scenario, &Settings::default(), &Watch::default(), &mut |_| {});
    result.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_example_does_what_it_does_live() {
    let result = run(&quickstart());
    assert!(result.passed && !result.partial, "{:#?}", result.traffic);
    let pings: Vec<_> = result.traffic.iter().filter(|item| item.kind == "ping").collect();
    assert_eq!(pings.iter().map(|item| item.received).collect::<Vec<_>>(), [10, 10, 10, 0]);
    // There and back over a line of 100 us, and little else but for the first, which floods and asks the controller.
    for rtt in pings.iter().filter_map(|item| item.rtt) {
        assert!(rtt.min_us > 200.0 && rtt.p50_us < 210.0, "{rtt:?}");
        assert!(rtt.max_us > rtt.p50_us + 100.0, "the controller takes time: {rtt:?}");
    }
    let tcp = result.traffic.iter().find(|item| item.kind == "tcp").unwrap();
    // 96 KiB in 200 us and the time of the bytes themselves.
    let goodput = tcp.goodput_bps.unwrap();
    assert!((0.4e9..1e9).contains(&goodput), "{goodput}");
    let udp = result.traffic.iter().find(|item| item.kind == "udp").unwrap();
    assert_eq!((udp.sent, udp.loss), (udp.asked, Some(0.0)));
    let controller = result.controller.unwrap();
    assert!(controller.packet_ins > 0 && controller.flow_mods > 0 && controller.errors == 0, "{controller:?}");
    assert!(result.switches.iter().all(|switch| switch.channels_up == 1 && switch.entries > 0));
}

#[test]
fn the_same_scenario_gives_the_same_result() {
    let json = || serde_json::to_string(&run(&quickstart())).unwrap();
    assert_eq!(json(), json());
}

#[test]
fn a_run_that_is_stopped_says_so() {
    let watch = Watch::default();
    let mut told = 0;
    let result = simulate(&quickstart(), &Settings::default(), &watch, &mut |progress| {
        if let Progress::Traffic { elapsed, .. } = progress {
            told += 1;
            watch.cancel.store(elapsed.as_millis() > 100, std::sync::atomic::Ordering::Relaxed);
        }
    });
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    assert!(result.partial && !result.passed && told > 0);
}

#[test]
fn a_slow_line_and_no_controller() {
    let text = include_str!("../../../examples/wan.toml");
    let scenario = Scenario::parse(text, "wan.toml").unwrap();
    let result = run(&scenario);
    assert!(result.passed, "{:#?}", result.traffic);
    assert!(result.controller.is_none());
}

#[test]
fn what_virtual_time_cannot_give_is_refused() {
    let text = include_str!("../../../examples/external.toml");
    let scenario = Scenario::parse(text, "external.toml").unwrap();
    let error = simulate(&scenario, &Settings::default(), &Watch::default(), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("controllers elsewhere"), "{error}");
}
