//! Compares a live run with the simulation packet by packet for hosts behind virtual switches.
use weir_emulator::LabOptions;
use weir_network::LabResult;
use weir_network::result::TrafficResult;
use weir_scenario::Scenario;
use weir_sim::SimulationMonitor;
use weir_sim::network::{VirtualTimeSettings, simulate};

#[test]
fn hosts_behind_virtual_switches_reach_whom_they_reach_live() {
    let text = include_str!("../../../examples/two-tenants.toml").replace("duration = \"2s\"", "duration = \"500ms\"");
    let scenario = Scenario::parse(&text, "two-tenants.toml").unwrap_or_else(|error| panic!("{error}"));
    let live = weir_emulator::run(&scenario, &LabOptions::default(), &mut |_| {}).unwrap();
    let simulated =
        simulate(&scenario, &VirtualTimeSettings::default(), &SimulationMonitor::default(), &mut |_| {}).unwrap();
    let verdicts = |result: &LabResult| {
        let of = |item: &TrafficResult| (item.kind, item.ok, item.received > 0);
        result.traffic.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&live), verdicts(&simulated));
    assert!(live.drops.iter().any(|drop| drop.place == "s1 tin" && drop.reason == "buffer full"), "{:?}", live.drops);
}
