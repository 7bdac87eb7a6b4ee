//! Tests virtual switches under control in virtual time: by applications, and by controllers outside of virtual time.
use std::sync::{Arc, Mutex};
use weir_controller::apps::learning::{LearningConfig, LearningSwitch};
use weir_controller::{ConnectionId, ControllerApp, ControllerOutbox};
use weir_network::result::VirtualSwitchResult;
use weir_network::{LabResult, NetworkError, VirtualSwitchApps, named_app};
use weir_openflow::model::{Action, FeaturesReply, FlowMod, Instruction, Match};
use weir_openflow::{Body, Message, Version};
use weir_packet::{Field, PortNo};
use weir_scenario::Scenario;
use weir_sim::SimulationMonitor;
use weir_sim::network::{VirtualTimeSettings, simulate, simulate_with_apps};
use weir_units::Instant;

/// Two tenants with two hosts each; `gold` and `tin` are more keys of their virtual switches.
fn scenario(gold: &str, tin: &str) -> Scenario {
    let text = format!(
        r#"
        [controller]
        connect = "none"
        [[switch]]
        name = "s1"
        [switch.fabric]
        rate = "100Mbit/s"
        [[switch.virtual]]
        name = "gold"
        dpid = 0x101
        ports = [{{ port = 1, rate = "60Mbit/s" }}, {{ port = 2, rate = "60Mbit/s" }}]
        buffer = "24kB"
        {gold}
        [[switch.virtual]]
        name = "tin"
        dpid = 0x102
        ports = [{{ port = 3, number = 1, rate = "20Mbit/s" }}, {{ port = 4, number = 2, rate = "20Mbit/s" }}]
        buffer = "24kB"
        {tin}
        "#
    );
    let host = |name: &str, port: u32, ip: &str| {
        format!("[[host]]\nname = '{name}'\nswitch = 's1'\nport = {port}\nip = '{ip}/24'\n")
    };
    let hosts = [("ga", 1, "10.1.0.1"), ("gb", 2, "10.1.0.2"), ("ta", 3, "10.2.0.1"), ("tb", 4, "10.2.0.2")];
    let hosts: String = hosts.into_iter().map(|(name, port, ip)| host(name, port, ip)).collect();
    let ping = |from: &str, to: &str| {
        format!("[[traffic]]\nkind = 'ping'\nfrom = '{from}'\nto = '{to}'\ncount = 3\ninterval = '10ms'\n")
    };
    let text = text + &hosts + &ping("ga", "gb") + &ping("ta", "tb");
    Scenario::parse(&text, "tenants").unwrap_or_else(|error| panic!("{error}"))
}

fn run_with(scenario: &Scenario, apps: &VirtualSwitchApps) -> Result<LabResult, NetworkError> {
    let settings = VirtualTimeSettings::default();
    simulate_with_apps(scenario, apps, &settings, &SimulationMonitor::default(), &mut |_| {})
}

fn run(scenario: &Scenario) -> Result<LabResult, NetworkError> {
    simulate(scenario, &VirtualTimeSettings::default(), &SimulationMonitor::default(), &mut |_| {})
}

fn received(result: &LabResult) -> Vec<u64> {
    result.traffic.iter().map(|item| item.received).collect()
}

#[test]
fn an_application_controls_each_virtual_switch_and_times_are_equal_in_each_run() {
    let scenario = scenario("app = 'learning'", "app = 'learning'\nopenflow = '1.0'");
    let result = run(&scenario).unwrap();
    assert_eq!(received(&result), [3, 3], "{:#?}", result.traffic);
    // The first ping asks the controller twice for each direction, 50 us each way; the others do not.
    for item in &result.traffic {
        let (all, rest) = (item.rtt.unwrap(), item.rtt_after_first.unwrap());
        assert!(all.max_us > rest.max_us + 200.0, "{all:?} {rest:?}");
    }
    for VirtualSwitchResult { name, channels_up, entries, controller, .. } in &result.virtual_switches {
        let controller = controller.as_ref().unwrap();
        assert!(*channels_up == 1 && *entries >= 2 && controller.packet_ins >= 2, "{name}: {entries} {controller:?}");
        assert_eq!(controller.errors, 0, "{name}");
    }
    assert!(result.controller.is_none(), "the switch itself has no controller");
    let json = |result: &LabResult| serde_json::to_string(&(&result.traffic, &result.virtual_switches)).unwrap();
    assert_eq!(json(&run(&scenario).unwrap()), json(&result));
}

#[test]
fn without_application_a_secure_virtual_switch_forwards_nothing() {
    let result = run(&scenario("app = 'learning'", "")).unwrap();
    assert_eq!(received(&result), [3, 0]);
    let [gold, tin] = &result.virtual_switches[..] else { panic!("two virtual switches") };
    assert!(gold.controller.is_some() && tin.controller.is_none());
}

/// Application of a program: connects ports 1 and 2, and notes the switches that have come.
struct Patch(Arc<Mutex<Vec<u64>>>);

impl ControllerApp for Patch {
    fn handle_switch_up(
        &mut self,
        _now: Instant,
        switch: ConnectionId,
        _version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        self.0.lock().unwrap().push(features.datapath_id);
        for (from, to) in [(1u32, 2), (2, 1)] {
            let matching = Match::any().with(Field::InPort, from);
            let actions = vec![Instruction::ApplyActions(vec![Action::output(PortNo(to))])];
            let entry = FlowMod::add(10, matching, actions);
            out.push((switch, Message { xid: from, body: Body::FlowMod(entry) }));
        }
    }

    fn handle_message(&mut self, _: Instant, _: ConnectionId, _: Message, _: &mut ControllerOutbox) {}

    fn handle_switch_down(&mut self, _: Instant, _: ConnectionId) {}
}

#[test]
fn a_program_gives_each_virtual_switch_any_application() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let apps = VirtualSwitchApps::new(move |virtual_switch| match virtual_switch.name.as_str() {
        "tin" => Ok(Some(Box::new(Patch(Arc::clone(&noted))))),
        _ => named_app(virtual_switch),
    });
    let result = run_with(&scenario("app = 'learning'", ""), &apps).unwrap();
    assert_eq!(received(&result), [3, 3]);
    assert_eq!(*seen.lock().unwrap(), [0x102]);
    let tin = &result.virtual_switches[1];
    assert_eq!((tin.entries, tin.controller.as_ref().unwrap().packet_ins), (2, 0));
    // Both entries are in effect before traffic begins.
    let times = result.traffic[1].rtt.unwrap();
    assert!(times.max_us < 200.0, "{times:?}");
    let everywhere = VirtualSwitchApps::new(|_| Ok(Some(Box::new(LearningSwitch::new(LearningConfig::default())))));
    let error = run_with(&scenario("connect = 'tcp:127.0.0.1:1'", ""), &everywhere).unwrap_err().to_string();
    assert!(error.starts_with("virtual switch gold: found an application and connect"), "{error}");
}

#[test]
fn a_controller_that_is_not_there_and_several_are_refused() {
    let error = run(&scenario("", "connect = 'unix:/nowhere/weir'")).unwrap_err().to_string();
    assert!(error.starts_with("virtual switch tin: connect: unix:/nowhere/weir: "), "{error}");
    assert!(error.ends_with("is the controller running?"), "{error}");
    let error = run(&scenario("", "connect = ['tcp:127.0.0.1:1', 'tcp:127.0.0.1:2']")).unwrap_err().to_string();
    assert!(error.starts_with("virtual switch tin: connect: found 2 controllers, expected one"), "{error}");
}
