//! Fits how an idle switch forwards to measured delays, one factor at a time around the base: Cheng (2015), sections
//! 5.1 and 5.3.
use super::levels::{GapDelaySample, GapLevels};
use super::line::RegressionLine;
use super::quantiles::MedianAndSpread;
use crate::ModelError;
use crate::check::{domain, not_negative};
use crate::switch::forward::{BASE, DelaySlopes, ForwardingLaw, MeasuredRange, PacketConditions};

/// Delays with one value of a factor, everything else as in [`BASE`].
#[derive(Debug, Clone, PartialEq)]
pub struct FactorDelays {
    /// Value of the factor.
    pub at: f64,
    /// Delays in seconds.
    pub delays_s: Vec<f64>,
}

/// Measurements for entries of one kind.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ForwardingSamples {
    /// Delays with everything as in [`BASE`], in seconds.
    pub base_s: Vec<f64>,
    /// Delays with other numbers of entries.
    pub by_entries: Vec<FactorDelays>,
    /// Delays with other lengths, in bytes.
    pub by_bytes: Vec<FactorDelays>,
    /// Delays with other times between packets, in seconds.
    pub by_gap: Vec<FactorDelays>,
}

/// Forwarding of a switch, with the fits behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct ForwardingFit {
    /// Fitted parameters of the forwarding law.
    pub forwarding: ForwardingLaw,
    /// Line over the number of entries.
    pub entries: RegressionLine,
    /// Line over the length.
    pub bytes: RegressionLine,
    /// Steps over the time between packets.
    pub gaps: GapLevels,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

impl ForwardingFit {
    /// Fits all parameters. Slopes that are not significantly different from 0 become 0, with a note.
    ///
    /// # Errors
    /// Too few series for a line, or invalid delays.
    pub fn fit(delays: &ForwardingSamples) -> Result<ForwardingFit, ModelError> {
        let base = MedianAndSpread::of(&delays.base_s)?;
        let mut notes = Vec::new();
        let entries = line("entries", &delays.by_entries, &mut notes)?;
        let bytes = line("bytes", &delays.by_bytes, &mut notes)?;
        let gaps = GapLevels::find(&delays.by_gap.iter().map(sample).collect::<Result<Vec<_>, _>>()?)?;
        let slopes = DelaySlopes {
            per_level_s: gaps.per_level,
            per_entry_s: entries.slope_or_zero(),
            per_byte_s: bytes.slope_or_zero(),
        };
        let forwarding = ForwardingLaw {
            base_s: not_negative("delay", base.median)?,
            slopes,
            thresholds_s: gaps.thresholds_s.clone(),
            measured: measured(delays)?,
        };
        Ok(ForwardingFit { forwarding, entries, bytes, gaps, notes })
    }
}

fn line(name: &str, series: &[FactorDelays], notes: &mut Vec<String>) -> Result<RegressionLine, ModelError> {
    let medians = series
        .iter()
        .map(|series| Ok(MedianAndSpread::of(&series.delays_s)?.median))
        .collect::<Result<Vec<_>, ModelError>>()?;
    let line = RegressionLine::fit(&series.iter().map(|series| series.at).collect::<Vec<_>>(), &medians)?;
    if line.is_flat() {
        notes.push(format!("{name}: a slope of {:.3e} s is not told from 0: taken for 0", line.slope));
    }
    Ok(line)
}

fn sample(series: &FactorDelays) -> Result<GapDelaySample, ModelError> {
    let n = series.delays_s.len() as f64;
    if n < 1.0 {
        return Err(domain("delays", "none", "one or more"));
    }
    let mean = series.delays_s.iter().sum::<f64>() / n;
    let squares: f64 = series.delays_s.iter().map(|delay| (delay - mean).powi(2)).sum();
    Ok(GapDelaySample { gap_s: series.at, mean, sd: (squares / (n - 1.0).max(1.0)).sqrt() })
}

/// Returns the range of the measurements.
fn measured(delays: &ForwardingSamples) -> Result<MeasuredRange, ModelError> {
    let range = |series: &[FactorDelays], base: f64| {
        series.iter().fold((base, base), |(least, most): (f64, f64), one| (least.min(one.at), most.max(one.at)))
    };
    let (gap, entries, bytes) = (
        range(&delays.by_gap, BASE.gap_s),
        range(&delays.by_entries, BASE.entries),
        range(&delays.by_bytes, BASE.bytes),
    );
    let series = delays.by_gap.iter().chain(&delays.by_entries).chain(&delays.by_bytes);
    let all = series.flat_map(|series| &series.delays_s).chain(&delays.base_s);
    let shortest_s = all.copied().fold(f64::INFINITY, f64::min);
    Ok(MeasuredRange {
        least: PacketConditions { gap_s: gap.0, entries: entries.0, bytes: bytes.0 },
        most: PacketConditions { gap_s: gap.1, entries: entries.1, bytes: bytes.1 },
        shortest_s: not_negative("delay", shortest_s)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns delays of 3.34 us, plus 8 ns a byte, plus 5 us from 10 ms between packets on; with noise.
    fn delays(seed: u64) -> ForwardingSamples {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut series = |at: f64, gap_s: f64, bytes: f64| {
            let delay = 3.34e-6 + 8e-9 * (bytes - 128.0) + if gap_s >= 0.01 { 5e-6 } else { 0.0 };
            FactorDelays { at, delays_s: (0..100).map(|_| delay + 2e-7 * (random.f64() - 0.5)).collect() }
        };
        ForwardingSamples {
            base_s: series(0.0, 1e-4, 128.0).delays_s,
            by_entries: [100.0, 200.0, 500.0, 1000.0, 2000.0].map(|at| series(at, 1e-4, 128.0)).into(),
            by_bytes: [64.0, 128.0, 256.0, 512.0, 1024.0].map(|at| series(at, 1e-4, at)).into(),
            by_gap: [1e-4, 1e-3, 1e-2, 0.1, 1.0].map(|at| series(at, at, 128.0)).into(),
        }
    }

    #[test]
    fn parameters_are_found_again() {
        let all: Vec<ForwardingFit> = (0..20).map(|seed| ForwardingFit::fit(&delays(seed)).unwrap()).collect();
        for ForwardingFit { forwarding, bytes, .. } in &all {
            assert!((forwarding.base_s - 3.34e-6).abs() < 5e-8 && forwarding.thresholds_s == [0.01]);
            assert!((forwarding.slopes.per_level_s - 5e-6).abs() < 5e-8);
            assert!((forwarding.slopes.per_byte_s - 8e-9).abs() < 2e-10 && bytes.r2 > 0.99);
            assert!(forwarding.slopes.per_entry_s.abs() < 1e-10);
            assert_eq!(forwarding.forward(PacketConditions { bytes: 1500.0, ..BASE }).unwrap().outside, ["length"]);
        }
        let within =
            |fitted: &&ForwardingFit| fitted.bytes.slope_ci95.is_some_and(|(low, high)| low <= 8e-9 && 8e-9 <= high);
        assert!(all.iter().filter(within).count() >= 16, "intervals hold the truth 19 times in 20");
        assert!(all.iter().filter(|fitted| fitted.notes.len() == 1).count() >= 16, "entries do not matter");
    }

    #[test]
    fn what_is_missing_is_refused() {
        assert!(ForwardingFit::fit(&ForwardingSamples::default()).is_err());
        let mut one = delays(1);
        one.by_gap[0].delays_s.clear();
        assert_eq!(ForwardingFit::fit(&one).unwrap_err().kind(), "DOMAIN");
    }
}
