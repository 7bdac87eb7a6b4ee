//! Live virtual switches on a switch with a profile: each takes the times of a device of its own. The times themselves
//! are tested in virtual time.
use crate::bed::{Controller, forward, switch, until};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_device::ProfileConfig;
use weir_openflow::Body;
use weir_profile::Profile;
use weir_scenario::{parse_slicing, parse_virtual_switch};
use weir_slicing::FabricSpec;
use weir_switch::{SoftwareSwitchConfig, SwitchHandle};
use weir_units::{Bps, Clock, Instant, SystemClock};

/// Time of a flow-mod.
const WRITE: Duration = Duration::from_millis(20);
/// Flow-mods of one tenant, which take some seconds.
const MANY: u16 = 200;

const SLOW: &str = r#"
name = "slow"
device = "A slow one"
origin = "assumed"
source = "A test"
[[level]]
name = "only"
size = 1000
write = "20ms"
forward = { base_l2 = "300us" }
"#;

fn fabric() -> FabricSpec {
    let ports: BTreeMap<u32, Option<Bps>> = (1..=3).map(|port| (port, None)).collect();
    parse_slicing("[fabric]\nrate = '1Gbit/s'\n", "test", "s", ports).unwrap().0
}

/// Adds a virtual switch for packets from port `from`, and connects a controller to it.
async fn tenant(switch: &SwitchHandle, name: &str, from: u32) -> Controller<tokio::io::DuplexStream> {
    let ports: Vec<String> = (1..=3).map(|port| format!("{{ port = {port}, rate = '400Mbit/s' }}")).collect();
    let text = format!(
        "name = '{name}'\ndpid = {}\nbuffer = '64kB'\nselect = [{{ port = {from} }}]\nports = [{}]\n",
        0x100 + from,
        ports.join(", ")
    );
    switch.add_virtual(parse_virtual_switch(&text, "test", &fabric()).unwrap()).unwrap();
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    switch.connect_virtual_stream(name, theirs).unwrap();
    Controller::up(ours).await
}

#[tokio::test]
async fn a_tenant_does_not_wait_for_the_messages_of_another() {
    let profile = Box::new(Profile::parse(SLOW, "test.toml").unwrap());
    let config = SoftwareSwitchConfig {
        fabric: Some(fabric()),
        profile: Some(ProfileConfig { profile, seed: 1 }),
        ..SoftwareSwitchConfig::default()
    };
    let (switch, mut hosts) = switch(3, config);
    let (mut gold, mut tin) = (tenant(&switch, "gold", 1).await, tenant(&switch, "tin", 2).await);
    let clock = SystemClock::start();
    for number in 0..MANY {
        gold.send(Body::FlowMod(weir_openflow::model::FlowMod { priority: 100 + number, ..forward(1, 3) })).await;
    }
    until(|| switch.virtual_snapshot("gold").unwrap().timing.unwrap().commands_waiting > 0).await;
    tin.send(Body::FlowMod(forward(2, 3))).await;
    tin.barrier().await;
    // A machine may be slower than the device, never faster.
    assert!(clock.now() - Instant::ZERO >= WRITE);
    let waits = switch.virtual_snapshot("gold").unwrap().timing.unwrap().commands_waiting;
    assert!(waits > 0, "all of gold's flow-mods were carried out before the one of tin");
    let [_, b, c] = &mut hosts[..] else { unreachable!() };
    b.send(c, 2);
    assert_eq!(c.tag(), 2);
    let tin = switch.virtual_snapshot("tin").unwrap();
    assert_eq!((tin.entries(), tin.timing.unwrap().commands), (1, 1));
    let crosspoints = switch.snapshot().unwrap().virtual_switches.swap_remove(1).crosspoints;
    let passed: Vec<(u32, u32, u64)> = crosspoints.iter().map(|at| (at.from.0, at.to.0, at.packets)).collect();
    assert_eq!(passed, [(2, 3, 1)], "the packet waited at the crosspoint of its input");
    assert_eq!(switch.snapshot().unwrap().timing.unwrap().commands, 0, "the switch itself got no message");
}
