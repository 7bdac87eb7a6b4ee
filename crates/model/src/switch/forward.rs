//! Computes how long an idle switch takes to forward a packet: equation 5.1 of Cheng (2015).
use crate::ModelError;
use crate::check::{domain, finite, not_negative};
use serde::{Deserialize, Serialize};

/// Base of delays: 100 us between packets, 500 entries, packets of 128 bytes.
pub const BASE: PacketConditions = PacketConditions { gap_s: 100e-6, entries: 500.0, bytes: 128.0 };

/// Circumstances of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PacketConditions {
    /// Time since the previous packet, in seconds.
    pub gap_s: f64,
    /// Number of entries in the table.
    pub entries: f64,
    /// Length of the packet, in bytes.
    pub bytes: f64,
}

/// Slopes of the delay from the base.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DelaySlopes {
    /// Seconds for each level of times between packets, γ_a.
    pub per_level_s: f64,
    /// Seconds for each entry, γ_e.
    pub per_entry_s: f64,
    /// Seconds for each byte, γ_b.
    pub per_byte_s: f64,
}

/// Differences from the base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConditionOffsets {
    /// Number of levels of times between packets.
    pub levels: f64,
    /// Number of entries.
    pub entries: f64,
    /// Length in bytes.
    pub bytes: f64,
}

/// Range of the measurements.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRange {
    /// Least value of each.
    pub least: PacketConditions,
    /// Largest value of each.
    pub most: PacketConditions,
    /// Shortest measured delay, in seconds: no shorter one is predicted.
    pub shortest_s: f64,
}

/// Forwarding of packets that match entries of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForwardingLaw {
    /// Delay at the base, in seconds, β.
    pub base_s: f64,
    /// Slopes from the base.
    pub slopes: DelaySlopes,
    /// Times between packets at which the next level begins, in seconds, rising.
    pub thresholds_s: Vec<f64>,
    /// Range of the measurements behind these parameters.
    pub measured: MeasuredRange,
}

/// Predicted delay of a packet.
#[derive(Debug, Clone, PartialEq)]
pub struct ForwardingDelay {
    /// Delay in seconds.
    pub delay_s: f64,
    /// True if the formula gave less than any measured delay, so that `delay_s` is the shortest measured one.
    pub clipped: bool,
    /// Names of the quantities outside their measured range: the delay is extrapolated.
    pub outside: Vec<&'static str>,
}

/// Returns `β + γ_a Δlevel + γ_e (e - E) + γ_b (b - B)`, in seconds.
///
/// # Errors
/// An invalid number, or a delay below 0 because the differences are too large for these slopes.
pub fn delay_s(base_s: f64, slopes: DelaySlopes, from_base: ConditionOffsets) -> Result<f64, ModelError> {
    let delay = line_s(base_s, slopes, from_base)?;
    not_negative("D", delay).map_err(|_| domain("D", delay, "a delay, 0 or more: nearer to what was measured"))
}

/// Returns the value of the formula, which may be negative.
fn line_s(base_s: f64, slopes: DelaySlopes, from_base: ConditionOffsets) -> Result<f64, ModelError> {
    let delay = not_negative("beta", base_s)?
        + finite("ga", slopes.per_level_s)? * finite("dlevel", from_base.levels)?
        + finite("ge", slopes.per_entry_s)? * finite("de", from_base.entries)?
        + finite("gb", slopes.per_byte_s)? * finite("db", from_base.bytes)?;
    finite("D", delay)
}

impl ForwardingLaw {
    /// Returns the level of a time between packets, counted from 0.
    pub fn level(&self, gap_s: f64) -> usize {
        self.thresholds_s.iter().filter(|threshold| gap_s >= **threshold).count()
    }

    /// Returns a packet's delay on an idle switch. Outside of the measured range it is extrapolated, and marked as
    /// such.
    ///
    /// # Errors
    /// Invalid numbers.
    pub fn forward(&self, at: PacketConditions) -> Result<ForwardingDelay, ModelError> {
        for (name, value) in [("a", at.gap_s), ("e", at.entries), ("b", at.bytes)] {
            not_negative(name, value)?;
        }
        let shortest = not_negative("shortest delay", self.measured.shortest_s)?;
        let from_base = ConditionOffsets {
            levels: self.level(at.gap_s) as f64 - self.level(BASE.gap_s) as f64,
            entries: at.entries - BASE.entries,
            bytes: at.bytes - BASE.bytes,
        };
        let delay = line_s(self.base_s, self.slopes, from_base)?;
        Ok(ForwardingDelay { delay_s: delay.max(shortest), clipped: delay < shortest, outside: self.outside(at) })
    }

    fn outside(&self, at: PacketConditions) -> Vec<&'static str> {
        let MeasuredRange { least, most, .. } = &self.measured;
        let factors = [
            ("time between packets", least.gap_s, at.gap_s, most.gap_s),
            ("entries", least.entries, at.entries, most.entries),
            ("length", least.bytes, at.bytes, most.bytes),
        ];
        factors
            .into_iter()
            .filter(|(_, least, at, most)| !(least..=most).contains(&at))
            .map(|(name, ..)| name)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarding() -> ForwardingLaw {
        let slopes = DelaySlopes { per_level_s: 2e-6, per_entry_s: 0.0, per_byte_s: 8e-9 };
        let least = PacketConditions { gap_s: 1e-4, entries: 100.0, bytes: 64.0 };
        let most = PacketConditions { gap_s: 1.0, entries: 2000.0, bytes: 1024.0 };
        let measured = MeasuredRange { least, most, shortest_s: 3e-6 };
        ForwardingLaw { base_s: 3.34e-6, slopes, thresholds_s: vec![0.001, 0.1], measured }
    }

    #[test]
    fn delays_follow_levels_and_lengths() {
        let forward = |gap_s, bytes| forwarding().forward(PacketConditions { gap_s, bytes, ..BASE }).unwrap();
        assert_eq!(forward(1e-4, 128.0), ForwardingDelay { delay_s: 3.34e-6, clipped: false, outside: vec![] });
        assert!((forward(0.2, 1024.0).delay_s - (3.34e-6 + 4e-6 + 896.0 * 8e-9)).abs() < 1e-15);
        assert_eq!(
            forward(0.001, 128.0).delay_s.to_bits(),
            (3.34e-6_f64 + 2e-6).to_bits(),
            "a threshold begins a level"
        );
    }

    #[test]
    fn what_was_not_measured_is_said() {
        let forwarding = forwarding();
        let found = forwarding.forward(PacketConditions { gap_s: 2.0, bytes: 9000.0, entries: 1e6 }).unwrap();
        assert_eq!(found.outside, ["time between packets", "entries", "length"]);
        let short = forwarding.forward(PacketConditions { bytes: 64.0, ..BASE }).unwrap();
        assert_eq!((short.delay_s.to_bits(), short.clipped), (3e-6_f64.to_bits(), true));
        assert!(forwarding.forward(PacketConditions { bytes: f64::NAN, ..BASE }).is_err());
    }
}
