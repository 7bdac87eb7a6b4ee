//! Plans packets one after the other: arrival time, length and flow.
use crate::flows::{DrawnFlow, FlowArrivalSampler, FlowMixSampler};
use crate::{FlowArrivals, FlowMix, GapLaw, OfferedPackets, PacketSampler, PacketSizeLaw, RandomStream, TrafficError};
use weir_units::Instant;

/// Description of a source's packets and their flows.
#[derive(Debug, Clone, PartialEq)]
pub enum OfferedTraffic {
    /// Packets by rule or from a trace; each gets a flow drawn for it.
    Packets {
        /// Arrival times and lengths.
        offered: OfferedPackets,
        /// Mix of flows.
        flows: FlowMix,
    },
    /// Flows by rule, each with its own packets.
    Flows(FlowArrivals),
}

impl OfferedTraffic {
    /// Returns the mean number of packets per second.
    pub fn per_second(&self) -> f64 {
        match self {
            OfferedTraffic::Packets { offered, .. } => offered.per_second(),
            OfferedTraffic::Flows(flows) => flows.per_second * flows.packets,
        }
    }

    /// Returns the shortest and the longest packet length in bytes; `None` if there is no packet.
    ///
    /// # Errors
    /// The size description is not valid.
    pub fn lengths(&self) -> Result<Option<[u32; 2]>, TrafficError> {
        let sizes = |size: &PacketSizeLaw| {
            crate::PacketSizeSampler::new(size).map(|sizes| Some([sizes.shortest(), sizes.longest()]))
        };
        match self {
            OfferedTraffic::Packets { offered: OfferedPackets::Rule { size, .. }, .. } => sizes(size),
            OfferedTraffic::Packets { offered, .. } => {
                Ok(offered.shortest()?.zip(offered.longest()?).map(|(shortest, longest)| [shortest, longest]))
            }
            OfferedTraffic::Flows(flows) => sizes(&flows.size),
        }
    }

    /// Returns the law of the times between packets; `None` if they are dependent or the law is not known.
    pub fn gap_law(&self) -> Option<GapLaw> {
        match self {
            OfferedTraffic::Packets { offered: OfferedPackets::Rule { arrival, per_second, .. }, .. } => {
                GapLaw::of(arrival, *per_second)
            }
            _ => None,
        }
    }
}

/// A packet to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduledPacket {
    /// Planned sending time.
    pub at: Instant,
    /// Length in bytes of the frame without frame check sequence.
    pub bytes: u32,
    /// Number of the packet's flow.
    pub flow: u64,
    /// True if the packet is the first of its flow.
    pub is_new_flow: bool,
}

/// Draws the packets of a source with their flows one by one.
#[derive(Debug, Clone)]
pub struct PacketSchedule {
    source: PacketScheduleSource,
    last: Instant,
}

#[derive(Debug, Clone)]
enum PacketScheduleSource {
    Packets { generator: Box<PacketSampler>, flows: FlowMixSampler, random: RandomStream },
    Flows(Box<FlowArrivalSampler>),
}

impl PacketSchedule {
    /// Creates a schedule of a source with this seed, from `start` on.
    ///
    /// # Errors
    /// A parameter is out of its limits.
    pub fn new(offer: &OfferedTraffic, start: Instant, seed: u64) -> Result<PacketSchedule, TrafficError> {
        let source = match offer {
            OfferedTraffic::Packets { offered, flows } => PacketScheduleSource::Packets {
                generator: Box::new(PacketSampler::new(offered, start, RandomStream::new(seed, 0, 0))?),
                flows: FlowMixSampler::new(*flows)?,
                random: RandomStream::new(seed, 0, 1),
            },
            OfferedTraffic::Flows(flows) => PacketScheduleSource::Flows(Box::new(FlowArrivalSampler::new(
                flows,
                start,
                RandomStream::new(seed, 0, 0),
            )?)),
        };
        Ok(PacketSchedule { source, last: start })
    }

    /// Returns the next packet; `None` at the end of a trace.
    #[inline]
    pub fn next_packet(&mut self) -> Option<ScheduledPacket> {
        let (at, pick, bytes) = match &mut self.source {
            PacketScheduleSource::Packets { generator, flows, random } => {
                let at = generator.next_after(self.last);
                if at == Instant::FAR {
                    return None;
                }
                (at, flows.draw(random), generator.bytes())
            }
            PacketScheduleSource::Flows(coming) => coming.next(),
        };
        self.last = at;
        let DrawnFlow { flow, is_new } = pick;
        Some(ScheduledPacket { at, bytes, flow, is_new_flow: is_new })
    }

    /// Returns the number of flows that did not begin because too many flows were active.
    pub fn refused_flows(&self) -> u64 {
        if let PacketScheduleSource::Flows(coming) = &self.source { coming.refused } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrivalProcess, TrafficTrace};

    #[test]
    fn packets_come_as_the_generator_has_them_whatever_their_flows() {
        let offered =
            OfferedPackets::Rule { arrival: ArrivalProcess::Poisson, per_second: 1e5, size: PacketSizeLaw::Imix };
        let start = Instant::from_nanos(500);
        let times = |known| {
            let flows = FlowMix { known, zipf: 1.1, new: 0.1 };
            let offer = OfferedTraffic::Packets { offered: offered.clone(), flows };
            let mut schedule = PacketSchedule::new(&offer, start, 9).unwrap();
            (0..1000).map_while(move |_| schedule.next_packet()).map(|p| (p.at, p.bytes)).collect::<Vec<_>>()
        };
        let mut generator = PacketSampler::new(&offered, start, RandomStream::new(9, 0, 0)).unwrap();
        let mut at = start;
        let own = (0..1000).map(|_| {
            at = generator.next_after(at);
            (at, generator.bytes())
        });
        let own: Vec<_> = own.collect();
        assert_eq!(times(10), own);
        assert_eq!(times(1_000_000), own);
    }

    #[test]
    fn a_list_ends() {
        let offered = OfferedPackets::Trace(TrafficTrace::parse("0 64\n1 1500").unwrap());
        let offer = OfferedTraffic::Packets { offered, flows: FlowMix::default() };
        let mut schedule = PacketSchedule::new(&offer, Instant::from_nanos(7), 0).unwrap();
        assert_eq!(schedule.next_packet().map(|p| (p.at.as_nanos(), p.bytes)), Some((7, 64)));
        assert_eq!(schedule.next_packet().map(|p| (p.at.as_nanos(), p.bytes)), Some((1_000_000_007, 1500)));
        assert_eq!((schedule.next_packet(), offer.lengths()), (None, Ok(Some([64, 1500]))));
    }
}
