//! Draws a Poisson stream of packets, tests its gaps against the exponential law, and shows that a seed repeats it.
//!
//! `cargo run -p weir-traffic --example poisson -- [PACKETS_PER_SECOND] [SEED]`
use weir_traffic::{
    ArrivalProcess, BimodalSizes, FlowMix, GapRecorder, OfferedPackets, OfferedTraffic, PacketSchedule, PacketSizeLaw,
    ScheduledPacket,
};
use weir_units::Instant;

/// Number of packets to draw.
const PACKETS: usize = 50_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let per_second: f64 = arguments.next().as_deref().unwrap_or("1000").parse()?;
    let seed: u64 = arguments.next().as_deref().unwrap_or("1").parse()?;
    let size = PacketSizeLaw::Bimodal(BimodalSizes::default());
    let offered = OfferedPackets::Rule { arrival: ArrivalProcess::Poisson, per_second, size };
    // Half of the packets belong to five flows, the first of which is the most popular; the others begin new ones.
    let traffic = OfferedTraffic::Packets { offered, flows: FlowMix { known: 5, zipf: 1.0, new: 0.5 } };
    let draw = |seed| -> Result<Vec<ScheduledPacket>, weir_traffic::TrafficError> {
        let mut schedule = PacketSchedule::new(&traffic, Instant::ZERO, seed)?;
        Ok(std::iter::from_fn(|| schedule.next_packet()).take(PACKETS).collect())
    };

    let packets = draw(seed)?;
    println!("The first packets:");
    for packet in &packets[..5] {
        let begins = if packet.is_new_flow { ", which begins" } else { "" };
        println!("{:>8.1} us {:>5} bytes, flow {}{begins}", packet.at.as_secs_f64() * 1e6, packet.bytes, packet.flow);
    }

    let mut gaps = GapRecorder::default();
    packets.iter().for_each(|packet| gaps.record(packet.at.as_nanos(), packet.at.as_nanos()));
    let quality = gaps.quality(traffic.gap_law().as_ref()).ok_or("there are no gaps")?;
    println!(
        "\n{} gaps: mean {:.1} us, squared coefficient of variation {:.3}",
        quality.gaps, quality.mean_us, quality.scv
    );
    let fit = quality.fit.ok_or("the law of the gaps is known")?;
    println!("They are exponential: {}", if fit.fits() { "yes" } else { "no" });

    println!("The seed gives the packets again: {}", draw(seed)? == packets);
    println!("Another seed gives others: {}", draw(seed + 1)? != packets);
    Ok(())
}
