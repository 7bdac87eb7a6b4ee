//! Assigns a source's packets to flows: a number of concurrent flows, each with geometrically many packets.
use crate::RandomStream;

/// Maximum number of concurrent flows of a source.
pub const MAX_FLOWS: u32 = 1000;

/// Draws the flow of each packet of a source.
///
/// With `at_a_time` flows, each packet belongs to one of the concurrent flows with equal probability. With
/// probability `share` (one over a flow's mean number of packets), the packet is the first of a new flow that
/// replaces that one. If packets arrive as a Poisson process, flows therefore begin as a Poisson process, have
/// geometrically many packets, and each flow's packets arrive as a Poisson process. Without `at_a_time`, each packet
/// begins a flow with that probability, or belongs to the last one.
#[derive(Debug, Clone)]
pub struct ConcurrentFlows {
    share: f64,
    /// Number of flows that began so far in each place.
    begun: Vec<u32>,
}

/// Flow of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowOfPacket {
    /// Place of the flow among the concurrent flows.
    pub place: usize,
    /// Number of flows that began in that place, this one included; 0 if none did.
    pub number: u32,
    /// True if the packet is the first of its flow.
    pub begins: bool,
}

impl ConcurrentFlows {
    /// Creates flows: `share` of the packets (`0.0..=1.0`) begin a flow; `at_a_time` flows are concurrent, at most
    /// [`MAX_FLOWS`].
    pub fn new(share: f64, at_a_time: Option<u32>) -> ConcurrentFlows {
        let places = at_a_time.map_or(1, |flows| flows.clamp(1, MAX_FLOWS)) as usize;
        // Without `at_a_time`, the first packet may belong to a flow that existed before.
        ConcurrentFlows { share, begun: vec![u32::from(at_a_time.is_none()); places] }
    }

    /// Draws the flow of the next packet.
    pub fn draw(&mut self, random: &mut RandomStream) -> FlowOfPacket {
        let places = self.begun.len();
        #[expect(clippy::cast_possible_truncation, reason = "below the number of places")]
        let place = if places > 1 { random.below(places as u64) as usize } else { 0 };
        let begun = &mut self.begun[place];
        let begins = *begun == 0 || (self.share > 0.0 && random.unit() < self.share);
        *begun = begun.wrapping_add(u32::from(begins));
        FlowOfPacket { place, number: *begun, begins }
    }

    /// Returns the number of concurrent flows.
    pub fn places(&self) -> usize {
        self.begun.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_have_geometrically_many_packets_and_share_the_source() {
        let (mut random, mut flows) = (RandomStream::new(5, 0, 0), ConcurrentFlows::new(0.2, Some(4)));
        let mut lengths: Vec<u32> = Vec::new();
        let mut now = [0u32; 4];
        let mut of_place = [0u32; 4];
        for _ in 0..200_000 {
            let drawn = flows.draw(&mut random);
            of_place[drawn.place] += 1;
            if drawn.begins && now[drawn.place] > 0 {
                lengths.push(std::mem::take(&mut now[drawn.place]));
            }
            now[drawn.place] += 1;
        }
        let count = lengths.len() as f64;
        let mean = lengths.iter().sum::<u32>() as f64 / count;
        let ones = lengths.iter().filter(|length| **length == 1).count() as f64 / count;
        // Five standard deviations of 40000 flows and of 50000 packets.
        assert!((mean - 5.0).abs() < 0.12, "{mean}");
        assert!((ones - 0.2).abs() < 0.01, "{ones}");
        assert!(of_place.iter().all(|packets| packets.abs_diff(50_000) < 1000), "{of_place:?}");
    }

    #[test]
    fn first_packets_begin_flows_where_their_number_is_known() {
        let mut random = RandomStream::new(1, 0, 0);
        let first = ConcurrentFlows::new(0.0, Some(1)).draw(&mut random);
        assert_eq!(first, FlowOfPacket { place: 0, number: 1, begins: true });
        let first = ConcurrentFlows::new(0.0, None).draw(&mut random);
        assert_eq!(first, FlowOfPacket { place: 0, number: 1, begins: false });
        assert_eq!(ConcurrentFlows::new(1.0, Some(u32::MAX)).places(), MAX_FLOWS as usize);
    }
}
