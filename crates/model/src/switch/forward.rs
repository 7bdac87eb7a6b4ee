//! How long an idle switch takes to forward a packet: equation 5.1 of Cheng (2015).
use crate::ModelError;
use crate::check::{domain, finite, not_negative};
use serde::{Deserialize, Serialize};

/// Where delays are measured from: 100 us between packets, 500 entries, packets of 128 bytes.
pub const BASE: At = At { gap_s: 100e-6, entries: 500.0, bytes: 128.0 };

/// A packet's circumstances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct At {
    /// Time since the packet before it, in seconds.
    pub gap_s: f64,
    /// Entries in the table.
    pub entries: f64,
    /// Its length, in bytes.
    pub bytes: f64,
}

/// How delay grows, from the base.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Slopes {
    /// Seconds for each level of times between packets, γ_a.
    pub per_level_s: f64,
    /// Seconds for each entry, γ_e.
    pub per_entry_s: f64,
    /// Seconds for each byte, γ_b.
    pub per_byte_s: f64,
}

/// Differences from the base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Differences {
    /// Levels of times between packets.
    pub levels: f64,
    /// Entries.
    pub entries: f64,
    /// Bytes.
    pub bytes: f64,
}

/// The least and the most that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The least of each.
    pub least: At,
    /// The most of each.
    pub most: At,
    /// The shortest delay, in seconds: none shorter is foretold.
    pub shortest_s: f64,
}

/// How a switch forwards packets that match entries of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forwarding {
    /// At the base, in seconds, β.
    pub base_s: f64,
    /// From there.
    pub slopes: Slopes,
    /// Times between packets, in seconds, rising, from which on the next level begins.
    pub thresholds_s: Vec<f64>,
    /// What this comes from.
    pub measured: Measured,
}

/// A packet's delay.
#[derive(Debug, Clone, PartialEq)]
pub struct Forwarded {
    /// Seconds.
    pub delay_s: f64,
    /// The formula gave less than was ever measured, and this is what was measured.
    pub clipped: bool,
    /// What lies outside of what was measured: the delay is extrapolated.
    pub outside: Vec<&'static str>,
}

/// `β + γ_a Δlevel + γ_e (e - E) + γ_b (b - B)`, in seconds.
///
/// # Errors
/// A number that is none, or a delay below 0: the differences are too large for these slopes.
pub fn delay_s(base_s: f64, slopes: Slopes, from_base: Differences) -> Result<f64, ModelError> {
    let delay = line_s(base_s, slopes, from_base)?;
    not_negative("D", delay).map_err(|_| domain("D", delay, "a delay, 0 or more: nearer to what was measured"))
}

/// The formula, whatever comes out.
fn line_s(base_s: f64, slopes: Slopes, from_base: Differences) -> Result<f64, ModelError> {
    let delay = not_negative("beta", base_s)?
        + finite("ga", slopes.per_level_s)? * finite("dlevel", from_base.levels)?
        + finite("ge", slopes.per_entry_s)? * finite("de", from_base.entries)?
        + finite("gb", slopes.per_byte_s)? * finite("db", from_base.bytes)?;
    finite("D", delay)
}

impl Forwarding {
    /// The level of a time between packets, counted from 0.
    pub fn level(&self, gap_s: f64) -> usize {
        self.thresholds_s.iter().filter(|threshold| gap_s >= **threshold).count()
    }

    /// A packet's delay on an idle switch. Beside what was measured it is extrapolated, and says so.
    ///
    /// # Errors
    /// Numbers that are none.
    pub fn forward(&self, at: At) -> Result<Forwarded, ModelError> {
        for (name, value) in [("a", at.gap_s), ("e", at.entries), ("b", at.bytes)] {
            not_negative(name, value)?;
        }
        let shortest = not_negative("shortest delay", self.measured.shortest_s)?;
        let from_base = Differences {
            levels: self.level(at.gap_s) as f64 - self.level(BASE.gap_s) as f64,
            entries: at.entries - BASE.entries,
            bytes: at.bytes - BASE.bytes,
        };
        let delay = line_s(self.base_s, self.slopes, from_base)?;
        Ok(Forwarded { delay_s: delay.max(shortest), clipped: delay < shortest, outside: self.outside(at) })
    }

    fn outside(&self, at: At) -> Vec<&'static str> {
        let Measured { least, most, .. } = &self.measured;
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

    fn forwarding() -> Forwarding {
        let slopes = Slopes { per_level_s: 2e-6, per_entry_s: 0.0, per_byte_s: 8e-9 };
        let least = At { gap_s: 1e-4, entries: 100.0, bytes: 64.0 };
        let most = At { gap_s: 1.0, entries: 2000.0, bytes: 1024.0 };
        let measured = Measured { least, most, shortest_s: 3e-6 };
        Forwarding { base_s: 3.34e-6, slopes, thresholds_s: vec![0.001, 0.1], measured }
    }

    #[test]
    fn delays_follow_levels_and_lengths() {
        let forward = |gap_s, bytes| forwarding().forward(At { gap_s, bytes, ..BASE }).unwrap();
        assert_eq!(forward(1e-4, 128.0), Forwarded { delay_s: 3.34e-6, clipped: false, outside: vec![] });
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
        let found = forwarding.forward(At { gap_s: 2.0, bytes: 9000.0, entries: 1e6 }).unwrap();
        assert_eq!(found.outside, ["time between packets", "entries", "length"]);
        let short = forwarding.forward(At { bytes: 64.0, ..BASE }).unwrap();
        assert_eq!((short.delay_s.to_bits(), short.clipped), (3e-6_f64.to_bits(), true));
        assert!(forwarding.forward(At { bytes: f64::NAN, ..BASE }).is_err());
    }
}
