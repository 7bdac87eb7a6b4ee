//! Runs a controller of a network with the application, for switches that connect to port 6653 of this computer.
use network_app::{KnockingConfig, PortKnocking};
use std::net::Ipv4Addr;
use weir_controller::{Controller, ControllerConfig};
use weir_routing::{NetworkConfig, NetworkController};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let knocking = PortKnocking::new(KnockingConfig {
        server: Ipv4Addr::new(10, 0, 0, 2),
        port: 22,
        knocks: vec![7001, 8001, 9001],
        open_s: 60,
    });
    // The controller of a network finds links and hosts, and forwards; applications come on top, in this order.
    let network = NetworkController::new(NetworkConfig::default(), vec![Box::new(knocking)]);
    let config = ControllerConfig { listen: vec!["tcp:127.0.0.1:6653".parse()?], ..ControllerConfig::default() };
    let controller = Controller::start(Box::new(network), config)?;
    println!("listening on {}; Ctrl-C ends it", controller.addresses()[0]);
    loop {
        std::thread::park();
    }
}
