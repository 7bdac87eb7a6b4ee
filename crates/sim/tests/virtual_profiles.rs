//! Tests virtual switches of switches with a profile, in virtual time.
use weir_network::LabResult;
use weir_scenario::{Profile, Scenario};
use weir_sim::SimulationMonitor;
use weir_sim::network::{VirtualTimeSettings, simulate};

/// A device that takes 1 ms for a command and 100 us for a packet, in one queue of eight.
const SLOW: &str = "name = \"slow\"\ndevice = \"A slow one\"\norigin = \"assumed\"\nsource = \"A test\"\n\
    [[level]]\nname = \"only\"\nsize = 30\nwrite = \"1ms\"\nforward = { base_l2 = \"100us\" }\n\
    [timing]\ndata_buffer = 8\n";

/// Two tenants of a switch with the profile [`SLOW`], each with two hosts, and this traffic. `keys` are more keys of
/// both virtual switches.
fn scenario(keys: &str, traffic: &str) -> Scenario {
    let tenant = |name: &str, dpid: u32, first: u32| {
        let ports: Vec<String> =
            (1..=2).map(|port| format!("{{ port = {}, number = {port}, rate = '400Mbit/s' }}", first + port)).collect();
        let ports = ports.join(", ");
        format!("[[switch.virtual]]\nname = '{name}'\ndpid = {dpid}\nbuffer = '64kB'\nports = [{ports}]\n{keys}\n")
    };
    let host = |name: &str, port: u32, ip: &str| {
        format!("[[host]]\nname = '{name}'\nswitch = 's1'\nport = {port}\nip = '{ip}/24'\n")
    };
    let mut text =
        "[controller]\nconnect = 'none'\n[[switch]]\nname = 's1'\n[switch.fabric]\nrate = '1Gbit/s'\n".to_owned();
    text += &(tenant("gold", 0x101, 0) + &tenant("tin", 0x102, 2));
    for (name, port, ip) in [("ga", 1, "10.1.0.1"), ("gb", 2, "10.1.0.2"), ("ta", 3, "10.2.0.1"), ("tb", 4, "10.2.0.2")]
    {
        text += &host(name, port, ip);
    }
    let mut scenario = Scenario::parse(&(text + traffic), "tenants").unwrap_or_else(|error| panic!("{error}"));
    let profile = Profile::parse(SLOW, "slow.toml").unwrap_or_else(|error| panic!("{error}"));
    scenario.switches[0].profile = Some(Box::new(profile));
    scenario
}

fn run(scenario: &Scenario) -> LabResult {
    let result = simulate(scenario, &VirtualTimeSettings::default(), &SimulationMonitor::default(), &mut |_| {});
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// Entries by which both virtual switches forward.
const ENTRIES: &str = "entries = ['in_port=1,actions=output:2', 'in_port=2,actions=output:1']";

const PINGS: &str = "[[traffic]]\nkind = 'ping'\nfrom = 'ta'\nto = 'tb'\ncount = 20\ninterval = '5ms'\n";

/// More packets of gold than its device can take: one each 80 us.
const FLOOD: &str =
    "[[traffic]]\nkind = 'udp'\nfrom = 'ga'\nto = 'gb'\nduration = '100ms'\nrate = '10Mbit/s'\npayload = '58B'\n";

#[test]
fn each_virtual_switch_takes_the_times_of_a_device_of_its_own() {
    let alone = run(&scenario(ENTRIES, PINGS));
    let both = run(&scenario(ENTRIES, &(PINGS.to_owned() + FLOOD)));
    for result in [&alone, &both] {
        let rtt = result.traffic[0].rtt_after_first.unwrap();
        // 100 us for each direction, and the fabric's lines: less than a microsecond for each packet.
        assert!((200.0..210.0).contains(&rtt.min_us), "{rtt:?}");
        assert!(rtt.max_us < 210.0, "a tenant waits for its own packets only: {rtt:?}");
    }
    let flood = &both.traffic[1];
    assert!(flood.loss.unwrap() > 0.1, "one device takes 10000 packets a second: {flood:#?}");
    let lost = both.drops.iter().find(|drop| drop.place == "s1 gold").unwrap_or_else(|| panic!("{:#?}", both.drops));
    assert_eq!(lost.packets, flood.sent.unwrap() - flood.received, "{:#?}", both.drops);
    let json = |result: &LabResult| serde_json::to_string(&(&result.traffic, &result.drops)).unwrap();
    assert_eq!(json(&run(&scenario(ENTRIES, &(PINGS.to_owned() + FLOOD)))), json(&both));
}

#[test]
fn an_application_waits_for_the_commands_of_the_device() {
    let result = run(&scenario("app = 'learning'", PINGS));
    assert!(result.passed, "{:#?}", result.traffic);
    let item = &result.traffic[0];
    let (all, rest) = (item.rtt.unwrap(), item.rtt_after_first.unwrap());
    assert!(all.max_us > 2.0 * 100.0 + 200.0, "the first ping asks the controller: {all:?}");
    assert!((200.0..210.0).contains(&rest.p50_us), "{rest:?}");
    assert!(result.virtual_switches.iter().all(|cut| cut.channels_up == 1 && cut.entries >= 1));
}
