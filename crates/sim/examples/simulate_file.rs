//! Simulates a scenario file packet by packet in virtual time: hosts, links, switches and the controller.
//!
//! `cargo run -p weir-sim --example simulate_file -- FILE.toml`; without a file, of a row of three switches.
use std::path::Path;
use weir_scenario::Scenario;
use weir_sim::SimulationMonitor;
use weir_sim::network::{VirtualTimeSettings, simulate};

const BUILT_IN: &str = r#"
    name = "row"
    [topology]
    kind = "linear"
    switches = 3
    rate = "100Mbit/s"
    delay = "200us"
    [[traffic]]
    kind = "ping"
    from = "h1"
    to = "h3"
    count = 5
    interval = "100ms"
    [[traffic]]
    kind = "udp"
    from = "h2"
    to = "h3"
    rate = "5Mbit/s"
    duration = "500ms"
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = match std::env::args().nth(1) {
        Some(file) => Scenario::read(Path::new(&file))?,
        None => Scenario::parse(BUILT_IN, "row.toml")?,
    };
    // The monitor could stop the run from another thread. The last argument is told the progress.
    let monitor = SimulationMonitor::default();
    let result = simulate(&scenario, &VirtualTimeSettings::default(), &monitor, &mut |_| {})?;
    println!("{}: {:.3} s of virtual time", scenario.name, result.setup.duration_s);
    for item in &result.traffic {
        print!("{:<5} {:>8} -> {:<8}", item.kind, item.from, item.to);
        print!(" {}", if item.reached { "reached" } else { "not reached" });
        if let Some(loss) = item.loss {
            print!(", lost {:.1}%", loss * 100.0);
        }
        if let Some(times) = item.rtt.or(item.delay) {
            let what = if item.rtt.is_some() { "round trip" } else { "one way" };
            print!(", {what} {:.0} us at least, {:.0} us at most", times.min_us, times.max_us);
        }
        println!();
    }
    for switch in &result.switches {
        println!("{}: {} flow entries", switch.name, switch.entries);
    }
    println!("as expected: {}", if result.passed { "yes" } else { "no" });
    Ok(())
}
