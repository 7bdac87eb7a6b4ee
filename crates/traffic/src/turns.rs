//! Which flow a source's packets are of: some at a time, each of geometrically many packets.
use crate::Stream;

/// Flows that a source may have at a time, at most.
pub const MAX_FLOWS: u32 = 1000;

/// The flow of each packet of a source.
///
/// With flows *at a time*, each packet is of one of them, any as likely as another, and with a probability of one over the mean number of a flow's packets it is
/// the first of the flow that takes that one's place. So with packets of a Poisson process, flows begin as a Poisson process, have geometrically many
/// packets, and these come as a Poisson process. Without, each packet begins a flow with that probability, or is of the one begun last.
#[derive(Debug, Clone)]
pub struct Flows {
    share: f64,
    /// How many began in each place.
    begun: Vec<u32>,
}

/// A packet's flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowOfPacket {
    /// Its place among those of its time.
    pub place: usize,
    /// How many flows began in that place, it included; 0 if none did.
    pub number: u32,
    /// Whether the packet is its first.
    pub begins: bool,
}

impl Flows {
    /// `share` of the packets begin a flow, `0.0..=1.0`; `at_a_time` flows are there together, more than [`MAX_FLOWS`] counting as so many.
    pub fn new(share: f64, at_a_time: Option<u32>) -> Flows {
        let places = at_a_time.map_or(1, |flows| flows.clamp(1, MAX_FLOWS)) as usize;
        // Without a number, the first packet may be of a flow that is there already.
        Flows { share, begun: vec![u32::from(at_a_time.is_none()); places] }
    }

    /// The next packet's flow.
    pub fn draw(&mut self, random: &mut Stream) -> FlowOfPacket {
        let places = self.begun.len();
        #[expect(clippy::cast_possible_truncation, reason = "below the number of places")]
        let place = if places > 1 { random.below(places as u64) as usize } else { 0 };
        let begun = &mut self.begun[place];
        let begins = *begun == 0 || (self.share > 0.0 && random.unit() < self.share);
        *begun = begun.wrapping_add(u32::from(begins));
        FlowOfPacket { place, number: *begun, begins }
    }

    /// How many are there at a time.
    pub fn places(&self) -> usize {
        self.begun.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_have_geometrically_many_packets_and_share_the_source() {
        let (mut random, mut flows) = (Stream::new(5, 0, 0), Flows::new(0.2, Some(4)));
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
        let mut random = Stream::new(1, 0, 0);
        let first = Flows::new(0.0, Some(1)).draw(&mut random);
        assert_eq!(first, FlowOfPacket { place: 0, number: 1, begins: true });
        let first = Flows::new(0.0, None).draw(&mut random);
        assert_eq!(first, FlowOfPacket { place: 0, number: 1, begins: false });
        assert_eq!(Flows::new(1.0, Some(u32::MAX)).places(), MAX_FLOWS as usize);
    }
}
