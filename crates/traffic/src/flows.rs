//! Draws the flow that each packet belongs to.
use crate::{PacketSizeLaw, PacketSizeSampler, RandomStream, TrafficError, positive};
use rand_distr::{Distribution as _, Zipf};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_units::Instant;

/// Maximum number of flows that are active at a time.
pub const MAX_ACTIVE: usize = 1 << 20;

/// Mix of flows from which each packet's flow is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowMix {
    /// Number of flows known from the start, at least one; numbered from 0.
    pub known: u64,
    /// Exponent of popularity: the n-th flow is drawn in proportion to `n^-zipf`. 0: all flows are equally popular.
    pub zipf: f64,
    /// Probability that a packet begins a flow never used before, `0.0..=1.0`.
    pub new: f64,
}

impl Default for FlowMix {
    /// Returns a mix of a single flow.
    fn default() -> Self {
        FlowMix { known: 1, zipf: 0.0, new: 0.0 }
    }
}

/// Flows that begin, send and end.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowArrivals {
    /// Flows that begin per second, as a Poisson process.
    pub per_second: f64,
    /// Mean number of packets of a flow; the number is geometrically distributed.
    pub packets: f64,
    /// Packets per second of an active flow, as a Poisson process.
    pub packets_per_second: f64,
    /// Distribution of packet lengths.
    pub size: PacketSizeLaw,
}

/// Flow of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DrawnFlow {
    pub(crate) flow: u64,
    pub(crate) is_new: bool,
}

/// Draws flows from a mix.
#[derive(Debug, Clone)]
pub(crate) struct FlowMixSampler {
    mix: FlowMix,
    zipf: Option<Zipf<f64>>,
    /// Number of the next flow never used before.
    next_new: u64,
}

impl FlowMixSampler {
    pub(crate) fn new(mix: FlowMix) -> Result<FlowMixSampler, TrafficError> {
        // Numbers up to 2^52 are exact as `f64`.
        if !(1..=1 << 52).contains(&mix.known) {
            return Err(TrafficError::parameter("flows", mix.known, "1 to 2^52"));
        }
        if !(0.0..=1.0).contains(&mix.new) {
            return Err(TrafficError::parameter("probability of a new flow", mix.new, "0 to 1"));
        }
        let refused = || TrafficError::parameter("zipf", mix.zipf, "0 (all alike) or more, such as 1.1");
        if !(mix.zipf.is_finite() && mix.zipf >= 0.0) {
            return Err(refused());
        }
        let is_skewed = mix.zipf > 0.0 && mix.known > 1;
        let zipf = is_skewed.then(|| Zipf::new(mix.known as f64, mix.zipf).map_err(|_| refused())).transpose()?;
        Ok(FlowMixSampler { mix, zipf, next_new: mix.known })
    }

    #[inline]
    pub(crate) fn draw(&mut self, random: &mut RandomStream) -> DrawnFlow {
        // An impossible event draws no random number, so that sources without new flows keep their sequence.
        if self.mix.new > 0.0 && random.unit() < self.mix.new {
            self.next_new += 1;
            return DrawnFlow { flow: self.next_new - 1, is_new: true };
        }
        let flow = match &self.zipf {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to `known`")]
            Some(zipf) => (zipf.sample(random) as u64).saturating_sub(1),
            None if self.mix.known == 1 => 0,
            None => random.below(self.mix.known),
        };
        DrawnFlow { flow, is_new: false }
    }
}

/// Draws the packets of flows that begin, send and end.
#[derive(Debug, Clone)]
pub(crate) struct FlowArrivalSampler {
    spec: FlowArrivals,
    sizes: PacketSizeSampler,
    random: RandomStream,
    /// Time at which the next flow begins.
    next_flow: Instant,
    /// Number of flows that began so far.
    begun: u64,
    /// Active flows with the time of their next packet.
    active: BinaryHeap<Reverse<(Instant, u64)>>,
    /// Flows that did not begin because [`MAX_ACTIVE`] flows were active.
    pub(crate) refused: u64,
}

impl FlowArrivalSampler {
    pub(crate) fn new(
        spec: &FlowArrivals,
        start: Instant,
        random: RandomStream,
    ) -> Result<FlowArrivalSampler, TrafficError> {
        positive("flows per second", spec.per_second)?;
        positive("packets per second of a flow", spec.packets_per_second)?;
        if !(spec.packets.is_finite() && spec.packets >= 1.0) {
            return Err(TrafficError::parameter("packets of a flow", spec.packets, "1 or more"));
        }
        let sizes = PacketSizeSampler::new(&spec.size)?;
        let spec = spec.clone();
        let active = BinaryHeap::new();
        let mut coming = FlowArrivalSampler { spec, sizes, random, next_flow: start, begun: 0, active, refused: 0 };
        coming.next_flow = coming.after(start, coming.spec.per_second);
        Ok(coming)
    }

    /// Returns the next packet: its arrival time, its flow and its length in bytes.
    pub(crate) fn next(&mut self) -> (Instant, DrawnFlow, u32) {
        loop {
            let ahead = self.active.peek().map(|Reverse(first)| *first);
            let (at, pick) = match ahead {
                Some((at, flow)) if at < self.next_flow => {
                    self.active.pop();
                    (at, DrawnFlow { flow, is_new: false })
                }
                _ => {
                    let at = self.next_flow;
                    self.next_flow = self.after(at, self.spec.per_second);
                    self.begun += 1;
                    if self.active.len() >= MAX_ACTIVE {
                        self.refused += 1;
                        continue;
                    }
                    (at, DrawnFlow { flow: self.begun - 1, is_new: true })
                }
            };
            if self.random.unit() >= 1.0 / self.spec.packets {
                let next = self.after(at, self.spec.packets_per_second);
                self.active.push(Reverse((next, pick.flow)));
            }
            return (at, pick, self.sizes.draw(&mut self.random));
        }
    }

    /// Draws an exponential time after `from`.
    fn after(&mut self, from: Instant, per_second: f64) -> Instant {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let ns = (self.random.exponential() * 1e9 / per_second).round() as u64;
        Instant::from_nanos(from.as_nanos().saturating_add(ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn popularity_falls_as_said() {
        let mut random = RandomStream::new(3, 0, 0);
        for zipf in [0.0, 1.0, 1.5] {
            let mut flows = FlowMixSampler::new(FlowMix { known: 100, zipf, new: 0.0 }).unwrap();
            let mut counts = vec![0_u32; 100];
            for _ in 0..200_000 {
                let pick = flows.draw(&mut random);
                counts[usize::try_from(pick.flow).unwrap()] += 1;
                assert!(!pick.is_new);
            }
            let whole: f64 = (1..=100).map(|n| f64::from(n).powf(-zipf)).sum();
            for n in [1, 2, 10] {
                let expected = f64::from(n).powf(-zipf) / whole * 200_000.0;
                let found = f64::from(counts[usize::try_from(n).unwrap() - 1]);
                assert!((found - expected).abs() < 6.0 * expected.sqrt(), "{zipf}, {n}: {found} for {expected}");
            }
        }
    }

    #[test]
    fn new_flows_come_with_their_probability_and_never_twice() {
        let mut random = RandomStream::new(4, 0, 0);
        let mut flows = FlowMixSampler::new(FlowMix { known: 10, zipf: 0.0, new: 0.2 }).unwrap();
        let picks: Vec<DrawnFlow> = (0..50_000).map(|_| flows.draw(&mut random)).collect();
        let new: Vec<u64> = picks.iter().filter(|pick| pick.is_new).map(|pick| pick.flow).collect();
        assert!((9_700..10_300).contains(&new.len()), "{}", new.len());
        assert!(new.iter().all(|flow| *flow >= 10) && new.iter().collect::<HashSet<_>>().len() == new.len());
        assert!(picks.iter().all(|pick| pick.is_new || pick.flow < 10));
    }

    #[test]
    fn flows_come_send_and_end() {
        let spec =
            FlowArrivals { per_second: 200.0, packets: 5.0, packets_per_second: 50.0, size: PacketSizeLaw::Fixed(100) };
        let mut coming = FlowArrivalSampler::new(&spec, Instant::ZERO, RandomStream::new(5, 0, 0)).unwrap();
        let mut packets: HashMap<u64, Vec<Instant>> = HashMap::new();
        let (mut last, mut news) = (Instant::ZERO, 0_u64);
        loop {
            let (at, pick, bytes) = coming.next();
            if at > Instant::from_nanos(100_000_000_000) {
                break;
            }
            assert!(at >= last && bytes == 100);
            last = at;
            assert_eq!(pick.is_new, !packets.contains_key(&pick.flow));
            news += u64::from(pick.is_new);
            packets.entry(pick.flow).or_default().push(at);
        }
        assert!((news as f64 / 20_000.0 - 1.0).abs() < 0.03, "{news} flows in 100 s");
        let all: usize = packets.values().map(Vec::len).sum();
        assert!((all as f64 / 100_000.0 - 1.0).abs() < 0.05, "{all} packets");
        let (mut gaps, mut sum) = (0.0, 0.0);
        for pair in packets.values().flat_map(|times| times.windows(2)) {
            gaps += 1.0;
            sum += pair[1].since(pair[0]).as_secs_f64();
        }
        assert!((sum / gaps / 0.02 - 1.0).abs() < 0.03, "{}", sum / gaps);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for mix in [
            FlowMix { known: 0, ..FlowMix::default() },
            FlowMix { new: 1.1, ..FlowMix::default() },
            FlowMix { zipf: -1.0, ..FlowMix::default() },
            FlowMix { zipf: f64::NAN, ..FlowMix::default() },
        ] {
            assert!(FlowMixSampler::new(mix).is_err(), "{mix:?}");
        }
        let right = FlowArrivals { per_second: 1.0, packets: 2.0, packets_per_second: 1.0, size: PacketSizeLaw::Imix };
        for spec in [
            FlowArrivals { per_second: 0.0, ..right.clone() },
            FlowArrivals { packets: 0.5, ..right.clone() },
            FlowArrivals { packets_per_second: f64::NAN, ..right.clone() },
        ] {
            assert!(FlowArrivalSampler::new(&spec, Instant::ZERO, RandomStream::new(0, 0, 0)).is_err(), "{spec:?}");
        }
    }
}
