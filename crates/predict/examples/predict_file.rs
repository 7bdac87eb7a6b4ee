//! Predicts the delays and losses of a scenario file by formulas, and says what limits the answers.
//!
//! `cargo run -p weir-predict --example predict_file -- FILE.toml`; without a file, of a row of three switches.
use std::path::Path;
use weir_predict::{PredictSettings, predict};
use weir_scenario::Scenario;

const BUILT_IN: &str = r#"
    name = "row"
    [topology]
    kind = "linear"
    switches = 3
    rate = "100Mbit/s"
    delay = "200us"
    host_rate = "1Gbit/s"
    [[traffic]]
    kind = "udp"
    from = "h1"
    to = "h3"
    rate = "60Mbit/s"
    [[traffic]]
    kind = "udp"
    from = "h2"
    to = "h3"
    rate = "30Mbit/s"
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = match std::env::args().nth(1) {
        Some(file) => Scenario::read(Path::new(&file))?,
        None => Scenario::parse(BUILT_IN, "row.toml")?,
    };
    let prediction = predict(&scenario, &PredictSettings::default())?;
    println!("{}: times in microseconds", prediction.scenario);
    for flow in &prediction.flows {
        print!("{:<6} {:>8} -> {:<8} {:?}", flow.kind, flow.from, flow.to, flow.status);
        if let Some(delay) = flow.delay {
            let [mean, p50, p99] = [delay.mean_s, delay.p50_s, delay.p99_s].map(|delay_s| delay_s * 1e6);
            print!("  mean {mean:.0}  p50 {p50:.0}  p99 {p99:.0}");
        }
        if let Some(loss) = flow.loss {
            print!("  lost {:.2}%", loss * 100.0);
        }
        println!();
    }
    println!("\nThe busiest devices:");
    for device in prediction.devices.iter().take(5) {
        println!("{:<24} {:5.1}% busy, by {}", device.device, device.utilisation * 100.0, device.model);
    }
    if let Some(bottleneck) = &prediction.bottleneck {
        println!("\nIf all traffic grows, {bottleneck} saturates first.");
    }
    for assumption in &prediction.assumptions {
        println!("Assumed: {assumption}");
    }
    for warning in &prediction.warnings {
        println!("Warning: {warning}");
    }
    Ok(())
}
