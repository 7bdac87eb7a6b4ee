//! Traffic sources: draws arrival times and packet lengths from a rule or a trace.
use crate::{
    ArrivalProcess, ArrivalSampler, PacketSizeLaw, PacketSizeSampler, RandomStream, TrafficError, TrafficTrace,
};
use weir_units::Instant;

/// Description of a source's packets.
#[derive(Debug, Clone, PartialEq)]
pub enum OfferedPackets {
    /// Packets by rule.
    Rule {
        /// Law of the arrival times.
        arrival: ArrivalProcess,
        /// Mean number of packets per second.
        per_second: f64,
        /// Distribution of packet lengths.
        size: PacketSizeLaw,
    },
    /// Packets of a trace.
    Trace(TrafficTrace),
}

impl OfferedPackets {
    /// Returns the same packets sent `factor` times slower: rates are divided by it, times multiplied.
    #[must_use]
    pub fn slowed(&self, factor: f64) -> OfferedPackets {
        match self {
            OfferedPackets::Rule { arrival, per_second, size } => OfferedPackets::Rule {
                arrival: arrival.slowed(factor),
                per_second: per_second / factor,
                size: size.clone(),
            },
            OfferedPackets::Trace(trace) => OfferedPackets::Trace(trace.slowed(factor)),
        }
    }

    /// Returns the mean number of packets per second.
    pub fn per_second(&self) -> f64 {
        match self {
            OfferedPackets::Rule { per_second, .. } => *per_second,
            OfferedPackets::Trace(trace) => trace.per_second(),
        }
    }

    /// Returns the mean packet length in bytes; 0 if there is no packet.
    ///
    /// # Errors
    /// The size description is not valid.
    pub fn mean_bytes(&self) -> Result<f64, TrafficError> {
        match self {
            OfferedPackets::Rule { size, .. } => Ok(PacketSizeSampler::new(size)?.mean()),
            OfferedPackets::Trace(trace) => {
                let packets = trace.packets();
                let sum: u64 = packets.iter().map(|packet| u64::from(packet.bytes)).sum();
                Ok(if packets.is_empty() { 0.0 } else { sum as f64 / packets.len() as f64 })
            }
        }
    }

    /// Returns the longest packet length in bytes; `None` if there is no packet.
    ///
    /// # Errors
    /// The size description is not valid.
    pub fn longest(&self) -> Result<Option<u32>, TrafficError> {
        match self {
            OfferedPackets::Rule { size, .. } => Ok(Some(PacketSizeSampler::new(size)?.longest())),
            OfferedPackets::Trace(trace) => Ok(trace.packets().iter().map(|packet| packet.bytes).max()),
        }
    }

    /// Returns the shortest packet length in bytes; `None` if there is no packet.
    ///
    /// # Errors
    /// The size description is not valid.
    pub fn shortest(&self) -> Result<Option<u32>, TrafficError> {
        match self {
            OfferedPackets::Rule { size, .. } => Ok(Some(PacketSizeSampler::new(size)?.shortest())),
            OfferedPackets::Trace(trace) => Ok(trace.packets().iter().map(|packet| packet.bytes).min()),
        }
    }
}

/// Draws the packets of a source one by one.
#[derive(Debug, Clone)]
pub struct PacketSampler {
    law: PacketSamplerKind,
    random: RandomStream,
}

#[derive(Debug, Clone)]
enum PacketSamplerKind {
    Rule(Box<ArrivalSampler>, PacketSizeSampler),
    Trace { trace: TrafficTrace, next: u64, start: Instant },
}

impl PacketSampler {
    /// Creates a source that begins at `start`, with its own random stream.
    ///
    /// # Errors
    /// A parameter is out of its limits.
    pub fn new(
        offered: &OfferedPackets,
        start: Instant,
        mut random: RandomStream,
    ) -> Result<PacketSampler, TrafficError> {
        let law = match offered {
            OfferedPackets::Rule { arrival, per_second, size } => {
                let arrivals = Box::new(ArrivalSampler::new(arrival, *per_second, &mut random)?);
                PacketSamplerKind::Rule(arrivals, PacketSizeSampler::new(size)?)
            }
            OfferedPackets::Trace(trace) => PacketSamplerKind::Trace { trace: trace.clone(), next: 0, start },
        };
        Ok(PacketSampler { law, random })
    }

    /// Returns the arrival time of the packet after one at `last` (for the first packet, the source's start).
    /// [`Instant::FAR`] means that there is none.
    #[inline]
    pub fn next_after(&mut self, last: Instant) -> Instant {
        let (from, after) = match &mut self.law {
            PacketSamplerKind::Rule(arrivals, _) => (last, arrivals.next(&mut self.random)),
            PacketSamplerKind::Trace { trace, next, start } => match trace.packet(*next) {
                Some(packet) => (*start, packet.at_ns),
                None => return Instant::FAR,
            },
        };
        Instant::from_nanos(from.as_nanos().saturating_add(after))
    }

    /// Returns the length in bytes of the packet that arrives now.
    #[inline]
    pub fn bytes(&mut self) -> u32 {
        match &mut self.law {
            PacketSamplerKind::Rule(_, sizes) => sizes.draw(&mut self.random),
            PacketSamplerKind::Trace { trace, next, .. } => {
                *next += 1;
                trace.packet(*next - 1).map_or(0, |packet| packet.bytes)
            }
        }
    }

    /// Returns the source's random stream, for other draws about its packets.
    #[inline]
    pub fn random(&mut self) -> &mut RandomStream {
        &mut self.random
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OnOff, ParetoOnOff, TwoStateMmpp};

    #[test]
    fn a_list_is_offered_once_from_its_start_on() {
        let offered = OfferedPackets::Trace(TrafficTrace::parse("0.5,64\n0.75,1500\n").unwrap());
        let mut source = PacketSampler::new(&offered, Instant::from_nanos(1_000), RandomStream::new(1, 0, 0)).unwrap();
        let mut packets = Vec::new();
        loop {
            let at = source.next_after(Instant::from_nanos(1_000));
            if at == Instant::FAR {
                break;
            }
            packets.push((at.as_nanos(), source.bytes()));
        }
        assert_eq!(packets, [(500_001_000, 64), (750_001_000, 1500)]);
        assert_eq!((offered.shortest(), offered.longest()), (Ok(Some(64)), Ok(Some(1500))));
        assert_eq!((offered.mean_bytes(), offered.per_second()), (Ok(782.0), 2.0 / 0.75));
    }

    #[test]
    fn slower_packets_are_the_same_ones_later() {
        let rule = |arrival| OfferedPackets::Rule { arrival, per_second: 1000.0, size: PacketSizeLaw::Fixed(100) };
        for offered in [
            OfferedPackets::Trace(TrafficTrace::parse("0.5,64\n0.75,1500\n").unwrap()),
            rule(ArrivalProcess::Poisson),
            rule(ArrivalProcess::TwoState(TwoStateMmpp { high: 3.0, low: 0.1, high_s: 0.01 })),
            rule(ArrivalProcess::ParetoOnOff(ParetoOnOff { on_s: 0.01, off_s: 0.02, shape: 1.5 })),
            rule(ArrivalProcess::OnOff(OnOff { on_s: 0.01, off_s: 0.02 })),
        ] {
            let times = |offered: &OfferedPackets| {
                let mut source = PacketSampler::new(offered, Instant::ZERO, RandomStream::new(3, 1, 0)).unwrap();
                let mut last = Instant::ZERO;
                let mut next = || {
                    last = source.next_after(last);
                    last
                };
                (0..500)
                    .map(|_| next())
                    .filter(|at| *at < Instant::FAR)
                    .map(|at| at.as_nanos() as f64)
                    .collect::<Vec<_>>()
            };
            let (fast, slow) = (times(&offered), times(&offered.slowed(4.0)));
            assert!(fast.len() == slow.len() && fast.len() >= 2, "{offered:?}");
            let is_later = |(fast, slow): (&f64, &f64)| (slow / 4.0 - fast).abs() < 1e-6 * fast + 1000.0;
            assert!(fast.iter().zip(&slow).all(is_later), "{offered:?}: {:?} {:?}", &fast[..2], &slow[..2]);
        }
    }

    #[test]
    fn a_rule_gives_the_same_packets_again() {
        let offered =
            OfferedPackets::Rule { arrival: ArrivalProcess::Poisson, per_second: 1e6, size: PacketSizeLaw::Imix };
        let packets = || {
            let mut source = PacketSampler::new(&offered, Instant::ZERO, RandomStream::new(5, 1, 2)).unwrap();
            let mut at = Instant::ZERO;
            let next = |_| {
                at = source.next_after(at);
                (at, source.bytes())
            };
            (0..1000).map(next).collect::<Vec<_>>()
        };
        assert_eq!(packets(), packets());
        assert!(packets().is_sorted_by_key(|packet| packet.0));
        assert_eq!((offered.shortest(), offered.longest()), (Ok(Some(60)), Ok(Some(1514))));
        assert_eq!(offered.per_second(), 1e6);
    }
}
