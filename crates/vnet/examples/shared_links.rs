//! Allocates rates to virtual links that come and go on two substrate links, by each rule, and refuses one.
//!
//! `cargo run -p weir-vnet --example shared_links`
use weir_units::Bps;
use weir_vnet::allocation::{AllocationError, LinkSharing, SharingRule, SubstrateLink, VirtualLink};

fn mbps(rate: u64) -> Bps {
    Bps(rate * 1_000_000)
}

fn show(sharing: &LinkSharing, event: &str) {
    let rates: Vec<String> = sharing.rates().map(|(one, rate)| format!("{} {rate}", one.name)).collect();
    println!("  {event}: {}", rates.join(", "));
}

fn main() -> Result<(), AllocationError> {
    for rule in [SharingRule::MaximumSum, SharingRule::MaxMin, SharingRule::ProportionalFair] {
        println!("{rule:?}");
        let links = [SubstrateLink::new("s1-s2", mbps(2000)), SubstrateLink::new("s2-s3", mbps(1000))];
        let mut sharing = LinkSharing::new(rule, links)?;
        sharing.insert(VirtualLink::new("backup", ["s1-s2", "s2-s3"]).at_least(mbps(100)))?;
        sharing.insert(VirtualLink::new("web", ["s1-s2"]).between(mbps(200), mbps(1800)))?;
        sharing.insert(VirtualLink::new("voice", ["s2-s3"]).fixed_at(mbps(50)))?;
        show(&sharing, "three virtual links");
        let changes = sharing.insert(VirtualLink::new("video", ["s2-s3"]).at_least(mbps(300)).weighing(2.0))?;
        show(&sharing, "a fourth");
        println!("  new rates for: {}", changes.changed.into_keys().collect::<Vec<_>>().join(", "));
        if let Err(refused) = sharing.insert(VirtualLink::new("mirror", ["s1-s2", "s2-s3"]).at_least(mbps(600))) {
            println!("  refused: {refused}");
        }
    }
    Ok(())
}
