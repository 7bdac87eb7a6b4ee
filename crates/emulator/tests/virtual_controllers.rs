//! Tests virtual switches in labs under the control of applications in this process.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_emulator::{LabOptions, run};
use weir_network::{LabResult, VirtualSwitchApps, named_app};
use weir_scenario::Scenario;

/// Two tenants with two hosts each. Only `gold` has an application.
const TENANTS: &str = r#"
    [controller]
    connect = "none"
    [[switch]]
    name = "s1"
    [switch.fabric]
    rate = "100Mbit/s"
    [[switch.virtual]]
    name = "gold"
    dpid = 0x101
    app = "learning"
    ports = [{ port = 1, rate = "60Mbit/s" }, { port = 2, rate = "60Mbit/s" }]
    buffer = "24kB"
    [[switch.virtual]]
    name = "tin"
    dpid = 0x102
    ports = [{ port = 3, number = 1, rate = "20Mbit/s" }, { port = 4, number = 2, rate = "20Mbit/s" }]
    buffer = "24kB"
    [[host]]
    name = "ga"
    switch = "s1"
    port = 1
    ip = "10.1.0.1/24"
    [[host]]
    name = "gb"
    switch = "s1"
    port = 2
    ip = "10.1.0.2/24"
    [[host]]
    name = "ta"
    switch = "s1"
    port = 3
    ip = "10.2.0.1/24"
    [[host]]
    name = "tb"
    switch = "s1"
    port = 4
    ip = "10.2.0.2/24"
    [[traffic]]
    kind = "ping"
    from = "ga"
    to = "gb"
    count = 3
    interval = "20ms"
    [[traffic]]
    kind = "ping"
    from = "ta"
    to = "tb"
    count = 3
    interval = "20ms"
"#;

fn lab(apps: VirtualSwitchApps) -> LabResult {
    let scenario = Scenario::parse(TENANTS, "tenants.toml").unwrap_or_else(|error| panic!("{error}"));
    let options = LabOptions { apps, ..LabOptions::default() };
    run(&scenario, &options, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_virtual_switch_is_controlled_by_the_application_that_its_scenario_names() {
    let result = lab(VirtualSwitchApps::default());
    let received: Vec<u64> = result.traffic.iter().map(|item| item.received).collect();
    // Without controller, entries and fail mode "standalone" the second virtual switch forwards nothing.
    assert_eq!(received, [3, 0], "{:#?}", result.traffic);
    let [gold, tin] = &result.virtual_switches[..] else { panic!("two virtual switches") };
    let controller = gold.controller.as_ref().unwrap();
    assert!(controller.packet_ins >= 2 && controller.errors == 0, "{controller:?}");
    assert!(gold.channels_up == 1 && gold.entries >= 2, "{gold:?}");
    assert!(tin.channels_up == 0 && tin.controller.is_none(), "{tin:?}");
}

#[test]
fn a_program_gives_applications_by_virtual_switch() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let result = lab(VirtualSwitchApps::new(move |virtual_switch| {
        count.fetch_add(1, Ordering::Relaxed);
        let app = weir_slicing::VirtualSwitchApp { name: "learning".into(), openflow: weir_openflow::Version::V13 };
        named_app(&weir_slicing::VirtualSwitch { app: Some(app), ..virtual_switch.clone() })
    }));
    assert!(result.passed, "{:#?}", result.traffic);
    assert_eq!(asked.load(Ordering::Relaxed), 2, "each virtual switch has one application");
    assert!(result.virtual_switches.iter().all(|cut| cut.channels_up == 1), "{:#?}", result.virtual_switches);
}
