//! Plans packets one after the other: arrival time, length and flow.
use crate::flows::{Coming, Mixed, Pick};
use crate::{FlowArrivals, FlowMix, GapLaw, Generator, Offered, Size, Stream, TrafficError};
use weir_units::Instant;

/// Description of a source's packets and their flows.
#[derive(Debug, Clone, PartialEq)]
pub enum Offer {
    /// Packets by rule or from a trace; each gets a flow drawn for it.
    Packets {
        /// Arrival times and lengths.
        offered: Offered,
        /// Mix of flows.
        flows: FlowMix,
    },
    /// Flows by rule, each with its own packets.
    Flows(FlowArrivals),
}

impl Offer {
    /// Returns the mean number of packets per second.
    pub fn per_second(&self) -> f64 {
        match self {
            Offer::Packets { offered, .. } => offered.per_second(),
            Offer::Flows(flows) => flows.per_second * flows.packets,
        }
    }

    /// Returns the shortest and the longest packet length in bytes; `None` if there is no packet.
    ///
    /// # Errors
    /// The size description is not valid.
    pub fn lengths(&self) -> Result<Option<[u32; 2]>, TrafficError> {
        let sizes = |size: &Size| crate::Sizes::new(size).map(|sizes| Some([sizes.shortest(), sizes.longest()]));
        match self {
            Offer::Packets { offered: Offered::Rule { size, .. }, .. } => sizes(size),
            Offer::Packets { offered, .. } => {
                Ok(offered.shortest()?.zip(offered.longest()?).map(|(shortest, longest)| [shortest, longest]))
            }
            Offer::Flows(flows) => sizes(&flows.size),
        }
    }

    /// Returns the law of the times between packets; `None` if they are dependent or the law is not known.
    pub fn gap_law(&self) -> Option<GapLaw> {
        match self {
            Offer::Packets { offered: Offered::Rule { arrival, per_second, .. }, .. } => {
                GapLaw::of(arrival, *per_second)
            }
            _ => None,
        }
    }
}

/// A packet to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
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
pub struct Schedule {
    source: Source,
    last: Instant,
}

#[derive(Debug, Clone)]
enum Source {
    Packets { generator: Box<Generator>, flows: Mixed, random: Stream },
    Flows(Box<Coming>),
}

impl Schedule {
    /// Creates a schedule of a source with this seed, from `start` on.
    ///
    /// # Errors
    /// A parameter is out of its limits.
    pub fn new(offer: &Offer, start: Instant, seed: u64) -> Result<Schedule, TrafficError> {
        let source = match offer {
            Offer::Packets { offered, flows } => Source::Packets {
                generator: Box::new(Generator::new(offered, start, Stream::new(seed, 0, 0))?),
                flows: Mixed::new(*flows)?,
                random: Stream::new(seed, 0, 1),
            },
            Offer::Flows(flows) => Source::Flows(Box::new(Coming::new(flows, start, Stream::new(seed, 0, 0))?)),
        };
        Ok(Schedule { source, last: start })
    }

    /// Returns the next packet; `None` at the end of a trace.
    #[inline]
    pub fn next_packet(&mut self) -> Option<Planned> {
        let (at, pick, bytes) = match &mut self.source {
            Source::Packets { generator, flows, random } => {
                let at = generator.next_after(self.last);
                if at == Instant::FAR {
                    return None;
                }
                (at, flows.draw(random), generator.bytes())
            }
            Source::Flows(coming) => coming.next(),
        };
        self.last = at;
        let Pick { flow, is_new } = pick;
        Some(Planned { at, bytes, flow, is_new_flow: is_new })
    }

    /// Returns the number of flows that did not begin because too many flows were active.
    pub fn refused_flows(&self) -> u64 {
        if let Source::Flows(coming) = &self.source { coming.refused } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrival, Trace};

    #[test]
    fn packets_come_as_the_generator_has_them_whatever_their_flows() {
        let offered = Offered::Rule { arrival: Arrival::Poisson, per_second: 1e5, size: Size::Imix };
        let start = Instant::from_nanos(500);
        let times = |known| {
            let flows = FlowMix { known, zipf: 1.1, new: 0.1 };
            let offer = Offer::Packets { offered: offered.clone(), flows };
            let mut schedule = Schedule::new(&offer, start, 9).unwrap();
            (0..1000).map_while(move |_| schedule.next_packet()).map(|p| (p.at, p.bytes)).collect::<Vec<_>>()
        };
        let mut generator = Generator::new(&offered, start, Stream::new(9, 0, 0)).unwrap();
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
        let offered = Offered::Trace(Trace::parse("0 64\n1 1500").unwrap());
        let offer = Offer::Packets { offered, flows: FlowMix::default() };
        let mut schedule = Schedule::new(&offer, Instant::from_nanos(7), 0).unwrap();
        assert_eq!(schedule.next_packet().map(|p| (p.at.as_nanos(), p.bytes)), Some((7, 64)));
        assert_eq!(schedule.next_packet().map(|p| (p.at.as_nanos(), p.bytes)), Some((1_000_000_007, 1500)));
        assert_eq!((schedule.next_packet(), offer.lengths()), (None, Ok(Some([64, 1500]))));
    }
}
