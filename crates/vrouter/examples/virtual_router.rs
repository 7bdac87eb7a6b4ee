//! A virtual router under a real controller: prints its flow entries, waits for a switch, and then takes commands.
//!
//! `cargo run -p weir-vrouter --example virtual_router -- tcp:127.0.0.1:6653 router.json 1 7` serves the router of
//! `router.json` in seven tables of the switch with datapath id 1. Any switch that speaks OpenFlow 1.3 may connect,
//! such as `weir switch` or Open vSwitch. Lines of the input are commands, such as `vrouter status`. Without arguments
//! the program prints the entries of a router of its own, and its state.
use std::io::BufRead;
use weir_controller::{Controller, ControllerConfig};
use weir_vrouter::config::VirtualRouterConfig;
use weir_vrouter::entries::{Neighbours, RouterPlacement, entries};
use weir_vrouter::{VirtualRouterApp, VirtualRouterSettings};

/// Router between two networks, of which the second is VLAN 100 of port 2.
const ROUTER: &str = r#"{
    "name": "blue",
    "ports": [
        {"port": "1", "mac": "02:00:00:00:00:01", "addresses": ["10.0.1.1/24", "fd00:1::1/64"]},
        {"port": "2.100", "mac": "02:00:00:00:00:02", "addresses": ["10.0.2.1/24", "fd00:2::1/64"]}
    ],
    "routes": [{"prefix": "0.0.0.0/0", "via": "10.0.2.254"}],
    "filters": [{"action": "deny", "protocol": "tcp", "destination-port": "1-1023", "output": "1"}],
    "translations": [{"inside": "10.0.1.9", "outside": "10.0.2.100", "port": "2.100"}]
}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let whole = RouterPlacement::whole_switch();
    let (listen, text, dpid, tables) = match &arguments[..] {
        [] => ("tcp:127.0.0.1:0".to_owned(), ROUTER.to_owned(), 1, whole.tables),
        [listen, file, dpid, tables] => {
            (listen.clone(), std::fs::read_to_string(file)?, u64::from_str_radix(dpid, 16)?, tables.parse()?)
        }
        _ => return Err("found other arguments, expected none, or LISTEN FILE DPID TABLES".into()),
    };
    let config: VirtualRouterConfig = serde_json::from_str(&text)?;
    config.check()?;
    let placement = RouterPlacement { tables, ..whole };
    for entry in entries(&config, &Neighbours::new(), &placement)? {
        println!("{entry}");
    }

    let app = VirtualRouterApp::new(VirtualRouterSettings::default());
    let server = ControllerConfig { listen: vec![listen.parse()?], ..ControllerConfig::default() };
    let controller = Controller::start(Box::new(app), server)?;
    println!("listening on {}", controller.addresses()[0]);
    let add = serde_json::json!({"dpid": dpid, "placement": placement, "config": config});
    controller.command(&format!("vrouter add {add}"));
    if arguments.is_empty() {
        println!("{}", controller.command("vrouter status").join("\n"));
        return Ok(());
    }
    for line in std::io::stdin().lock().lines() {
        println!("{}", controller.command(&line?).join("\n"));
    }
    Ok(())
}
