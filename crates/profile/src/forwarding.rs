//! Describes the delay of packets in a table by the kind of match.
use crate::{FirstPackets, ServiceTime};
use serde::Serialize;
use weir_model::switch::forward::{DelaySlopes, ForwardingDelay, ForwardingLaw, MeasuredRange, PacketConditions};
use weir_model::{Distribution, Law, LawShape, ModelError};

/// Number of lengths that represent a law of packet lengths that is not a list.
const LENGTHS: u32 = 8;

/// Addresses that an entry matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchLayers {
    /// Ethernet addresses only.
    L2,
    /// IP addresses only.
    L3,
    /// Ethernet and IP addresses.
    L2L3,
}

impl MatchLayers {
    /// All kinds, in the order of [`LevelForwarding::base_s`].
    pub const ALL: [MatchLayers; 3] = [MatchLayers::L2, MatchLayers::L3, MatchLayers::L2L3];

    /// Returns the kind of an entry that matches these addresses. An entry that matches neither counts as `L2`.
    pub fn of(ethernet: bool, ip: bool) -> MatchLayers {
        match (ethernet, ip) {
            (true, true) => MatchLayers::L2L3,
            (false, true) => MatchLayers::L3,
            (_, false) => MatchLayers::L2,
        }
    }

    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            MatchLayers::L2 => "l2",
            MatchLayers::L3 => "l3",
            MatchLayers::L2L3 => "l2l3",
        }
    }
}

/// Forwarding law of one table: equation 5.1 of Cheng (2015).
#[derive(Debug, Clone, PartialEq)]
pub struct LevelForwarding {
    /// Delay at the base by kind, in seconds, in the order of [`MatchLayers::ALL`].
    pub base_s: [Option<f64>; 3],
    /// Slopes from the base.
    pub slopes: DelaySlopes,
    /// Times between packets at which the next level of delay begins, in seconds, rising.
    pub gap_levels_s: Vec<f64>,
    /// Time of a packet that finds another one in the level, in seconds: its thread is awake, and what it uses is at
    /// hand. `None` if such packets take as long as others.
    pub busy_s: Option<f64>,
    /// Range of the measurements behind the law.
    pub measured: MeasuredRange,
}

impl LevelForwarding {
    /// Returns the law for entries of a kind. A kind that was not measured gets the law of the next kind that matches
    /// more, or less if there is none.
    pub fn of(&self, kind: MatchLayers) -> ForwardingLaw {
        let order = match kind {
            MatchLayers::L2 => [0, 2, 1],
            MatchLayers::L3 => [1, 2, 0],
            MatchLayers::L2L3 => [2, 1, 0],
        };
        let base_s = order.into_iter().find_map(|at| self.base_s[at]).unwrap_or(0.0);
        ForwardingLaw { base_s, slopes: self.slopes, thresholds_s: self.gap_levels_s.clone(), measured: self.measured }
    }

    /// Returns a packet's delay on an idle switch.
    ///
    /// # Errors
    /// Invalid numbers.
    pub fn forward(&self, kind: MatchLayers, at: PacketConditions) -> Result<ForwardingDelay, ModelError> {
        self.of(kind).forward(at)
    }

    /// Returns the law of the service times of packets that match entries of a kind. `entries` is the number of entries
    /// in the table, `lengths` the law of the packets' lengths in bytes. `come_after(t)` is the share of the packets
    /// that come `t` seconds or more after the packet before, and `first` describes those whose flow is not in the
    /// cache.
    ///
    /// Each level of times between packets has its own time, which is not below [`MeasuredRange::shortest_s`].
    ///
    /// # Errors
    /// Invalid numbers.
    pub fn service(
        &self,
        kind: MatchLayers,
        entries: f64,
        lengths: &Law,
        come_after: impl Fn(f64) -> f64,
        first: FirstPackets,
    ) -> Result<ServiceTime, ModelError> {
        let law = self.of(kind);
        let tiers = [(1.0 - first.share, 0.0), (first.share, first.more_s)];
        let tiers = tiers.into_iter().filter(|(share, _)| *share > 0.0);
        let levels: Vec<PacketGroup> = gap_levels(&law.thresholds_s, come_after)
            .into_iter()
            .flat_map(|(share, gap_s)| {
                tiers.clone().map(move |(part, more_s)| PacketGroup { share: share * part, gap_s, more_s })
            })
            .collect();
        let shortest_bytes = lengths.parts().iter().map(|part| shortest(&part.shape)).fold(f64::INFINITY, f64::min);
        let slope = law.slopes.per_byte_s;
        let mut fixed = Vec::new();
        for PacketGroup { share, gap_s, more_s } in &levels {
            let delay = law.forward(PacketConditions { gap_s: *gap_s, entries, bytes: shortest_bytes })?;
            let constant = delay.delay_s - slope * shortest_bytes;
            if slope < 0.0 || delay.clipped && slope > 0.0 || constant < 0.0 {
                return sized(&law, entries, lengths, &levels);
            }
            fixed.push((*share, constant + more_s));
        }
        Ok(ServiceTime { law: lattice(&fixed)?, per_byte_s: slope })
    }
}

/// Packets of one level of times between packets and one tier.
#[derive(Debug, Clone, Copy)]
struct PacketGroup {
    share: f64,
    gap_s: f64,
    /// Additional time of the tier, in seconds.
    more_s: f64,
}

/// Returns the share of packets in each level of times between packets, with a time of the level.
fn gap_levels(thresholds_s: &[f64], come_after: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let begins = || std::iter::once(0.0).chain(thresholds_s.iter().copied());
    let shares: Vec<f64> = std::iter::once(1.0).chain(thresholds_s.iter().map(|at| come_after(*at))).collect();
    let ends = shares.iter().skip(1).copied().chain([0.0]);
    let levels = shares.iter().zip(ends).map(|(from, to)| (from - to).max(0.0)).zip(begins());
    levels.filter(|(share, _)| *share > 0.0).collect()
}

/// Returns the service time where it is no line over the length: a list of times, one for each level and length.
fn sized(law: &ForwardingLaw, entries: f64, lengths: &Law, levels: &[PacketGroup]) -> Result<ServiceTime, ModelError> {
    let mut times = Vec::new();
    for part in lengths.parts() {
        let listed = match part.shape {
            LawShape::Constant(bytes) => vec![bytes],
            _ => {
                let own = Distribution::law(&of_shape(part.shape)?);
                let share = |at: u32| (f64::from(at) + 0.5) / f64::from(LENGTHS);
                (0..LENGTHS).map(|at| own.quantile(share(at))).collect::<Result<_, _>>()?
            }
        };
        for (bytes, PacketGroup { share, gap_s, more_s }) in
            listed.iter().flat_map(|bytes| levels.iter().map(move |level| (bytes, level)))
        {
            let delay = law.forward(PacketConditions { gap_s: *gap_s, entries, bytes: *bytes })?;
            times.push((part.weight * share / listed.len() as f64, delay.delay_s + more_s));
        }
    }
    Ok(ServiceTime { law: lattice(&times)?, per_byte_s: 0.0 })
}

/// Returns the law of one part alone.
fn of_shape(shape: LawShape) -> Result<Law, ModelError> {
    match shape {
        LawShape::Constant(value) => Law::constant(value),
        LawShape::Exponential(mean) => Law::exponential(mean),
        LawShape::Gamma { mean, scv } => Law::gamma(mean, scv),
        LawShape::Uniform { low, high } => Law::uniform(low, high),
    }
}

/// Returns the shortest length of a law's part.
fn shortest(shape: &LawShape) -> f64 {
    match shape {
        LawShape::Constant(value) => *value,
        LawShape::Uniform { low, .. } => *low,
        LawShape::Exponential(_) | LawShape::Gamma { .. } => 0.0,
    }
}

/// Returns the law of times with these weights, whose sum is 1; none if all are 0.
fn lattice(times: &[(f64, f64)]) -> Result<Option<Law>, ModelError> {
    if times.iter().all(|(_, time)| *time <= 0.0) {
        return Ok(None);
    }
    let (weights, values): (Vec<f64>, Vec<f64>) =
        times.iter().map(|(weight, time)| (*weight, time.max(f64::MIN_POSITIVE))).unzip();
    Law::lattice(&values, &weights).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(shortest_s: f64, per_byte_s: f64) -> LevelForwarding {
        let zero = PacketConditions { gap_s: 0.0, entries: 0.0, bytes: 0.0 };
        let far = PacketConditions { gap_s: 1e9, entries: 1e9, bytes: 1e9 };
        LevelForwarding {
            base_s: [Some(20e-6), None, None],
            slopes: DelaySlopes { per_level_s: 5e-6, per_entry_s: 1e-8, per_byte_s },
            gap_levels_s: vec![0.001, 0.01],
            busy_s: None,
            measured: MeasuredRange { least: zero, most: far, shortest_s },
        }
    }

    fn mean_of(law: &LevelForwarding, entries: f64, tail: impl Fn(f64) -> f64) -> f64 {
        law.service(MatchLayers::L2, entries, &Law::constant(128.0).unwrap(), tail, FirstPackets::default())
            .unwrap()
            .mean_s(128.0)
    }

    #[test]
    fn each_level_of_times_between_packets_has_its_share() {
        let tail = |t: f64| (-t / 0.005).exp();
        let expected = 20e-6 + 5e-6 * (tail(0.001) + tail(0.01));
        assert!((mean_of(&law(0.0, 1e-9), 500.0, tail) - expected).abs() < 1e-12);
        assert!((mean_of(&law(0.0, 1e-9), 600.0, tail) - expected - 1e-6).abs() < 1e-12, "100 entries more");
        // Each level is cut off by itself, before the mean is taken.
        let cut = (1.0 - tail(0.001)) * 24e-6 + (tail(0.001) - tail(0.01)) * 25e-6 + tail(0.01) * 30e-6;
        assert!((mean_of(&law(24e-6, 1e-9), 500.0, tail) - cut).abs() < 1e-12);
    }

    #[test]
    fn long_packets_may_take_less_time() {
        let lengths = Law::lattice(&[128.0, 1128.0], &[0.5, 0.5]).unwrap();
        let found =
            law(14e-6, -1e-8).service(MatchLayers::L2, 500.0, &lengths, |_| 0.0, FirstPackets::default()).unwrap();
        assert!((found.mean_s(628.0) - 17e-6).abs() < 1e-12, "20 us, and 10 us cut off at 14 us: {found:?}");
    }
}
