//! Shows what packets and commands take at a device, by its profile, and what the figures rest on.
//!
//! `cargo run -p weir-profile --example show_delays -- [NAME_OR_FILE]`; without an argument, of all shipped profiles.
use std::path::Path;
use weir_profile::{ControlPathTiming, Profile, ProfileError, SHIPPED};

fn main() -> Result<(), ProfileError> {
    match std::env::args().nth(1) {
        Some(name) => show(&Profile::find(&name, Path::new("."))?),
        None => {
            for (name, _) in SHIPPED {
                show(&Profile::find(name, Path::new("."))?);
            }
        }
    }
    Ok(())
}

fn show(profile: &Profile) {
    println!("{}: {}", profile.name, profile.device);
    if let Some(timing) = &profile.timing {
        if let Some(data) = &timing.data {
            let [short, long] = [64.0, 1500.0].map(|bytes| data.mean_s(bytes) * 1e6);
            println!("  data path: {short:.1} us with 64 bytes, {long:.1} us with 1500");
        }
        match &timing.control {
            ControlPathTiming::Measured { delay_s, capacity, .. } => {
                println!("  through the controller: {:.1} ms, at most {capacity} packets a second", delay_s * 1e3);
            }
            ControlPathTiming::Agents { packet_in: Some(packet_in), packet_out: Some(packet_out), .. } => {
                let [to, from] = [packet_in, packet_out].map(|service| service.mean_s(64.0) * 1e3);
                println!("  packet to the controller: {to:.2} ms, from the controller: {from:.2} ms");
            }
            ControlPathTiming::Agents { .. } => println!("  path to the controller: not known"),
        }
    }
    // Every figure of the file, with its evidence where there is some.
    let parameters = profile.parameters();
    let known = parameters.iter().filter_map(|parameter| Some((parameter, parameter.evidence.as_ref()?)));
    let with_interval: Vec<_> = known.filter_map(|(parameter, found)| Some((parameter, found.interval?))).collect();
    println!("  {} figures, {} of them with an interval", parameters.len(), with_interval.len());
    for (parameter, [low, high]) in with_interval.iter().take(3) {
        println!(
            "    {}: {}, from {} to {}",
            parameter.key,
            parameter.shown(),
            parameter.show(*low),
            parameter.show(*high)
        );
    }
}
