//! Delay bounds of disciplines: maximum time from a packet's arrival at an empty queue until its last bit has left.
use std::time::Duration;
use weir_units::Bps;

/// Returns the bound under deficit round robin: (3F - 2q)/C plus the packet's own time, where F is the sum of the
/// quanta (`round_bytes`), q the own quantum and C the rate. It covers the other quanta of a round, what others have
/// left over from the previous round, and the packet (after Shreedhar and Varghese, 1995; Stiliadis and Varma, 1998).
/// Requires quanta of at least one longest packet.
pub fn drr_bound(round_bytes: u64, own_quantum: u64, packet_bytes: u64, rate: Bps) -> Duration {
    let before = round_bytes.saturating_mul(3).saturating_sub(own_quantum.saturating_mul(2));
    rate.time_of(before.saturating_add(packet_bytes))
}

/// Returns the bound of the highest priority under strict priority: the packet being sent, then the packet itself.
/// Lower priorities have no bound.
pub fn strict_priority_bound(largest_packet: u64, packet_bytes: u64, rate: Bps) -> Duration {
    rate.time_of(largest_packet.saturating_add(packet_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_with_the_others() {
        let rate = Bps(1_000_000_000);
        // Four switches with quanta of one longest packet: ten of these packets, and the packet.
        assert_eq!(drr_bound(4 * 1514, 1514, 1514, rate), rate.time_of(11 * 1514));
        assert_eq!(drr_bound(1514, 1514, 100, rate), rate.time_of(1614));
        assert_eq!(strict_priority_bound(1514, 64, rate), rate.time_of(1578));
        assert_eq!(drr_bound(u64::MAX, 0, 1, Bps(1)), rate.time_of(0).max(Bps(1).time_of(u64::MAX)));
    }
}
