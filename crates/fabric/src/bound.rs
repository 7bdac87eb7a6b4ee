//! How long a packet that finds none of its own before it waits at most, until its last bit has left: what a discipline guarantees.
use std::time::Duration;
use weir_units::Bps;

/// Under deficit round robin: the quanta of a round but its own, and what the others have left over from the round before, then the packet itself;
/// (3F - 2q)/C, F being the sum of the quanta, q its own (after Shreedhar and Varghese, 1995; Stiliadis and Varma, 1998). Quanta are at
/// least one largest packet.
pub fn drr_bound(round_bytes: u64, own_quantum: u64, packet_bytes: u64, rate: Bps) -> Duration {
    let before = round_bytes.saturating_mul(3).saturating_sub(own_quantum.saturating_mul(2));
    rate.time_of(before.saturating_add(packet_bytes))
}

/// Under strict priority, first of all: the packet that is being sent, then the packet itself. For those behind there is no bound.
pub fn strict_priority_bound(largest_packet: u64, packet_bytes: u64, rate: Bps) -> Duration {
    rate.time_of(largest_packet.saturating_add(packet_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_with_the_others() {
        let rate = Bps(1_000_000_000);
        // Four with quanta of one largest packet: ten of them, and the packet.
        assert_eq!(drr_bound(4 * 1514, 1514, 1514, rate), rate.time_of(11 * 1514));
        assert_eq!(drr_bound(1514, 1514, 100, rate), rate.time_of(1614));
        assert_eq!(strict_priority_bound(1514, 64, rate), rate.time_of(1578));
        assert_eq!(drr_bound(u64::MAX, 0, 1, Bps(1)), rate.time_of(0).max(Bps(1).time_of(u64::MAX)));
    }
}
