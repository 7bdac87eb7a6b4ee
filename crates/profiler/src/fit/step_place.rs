//! Places steps of delays between the cases that were measured, by packets at random times.
//!
//! Cases say between which times a step lies, and not where. A step that is placed wrongly would not explain the
//! packets in between, and look like a curve.
use super::gaps::GapDelays;
use crate::ProfilerError;
use weir_model::fit::quantiles::MedianAndSpread;

/// Returns steps of which each lies where the packets (time after the one before, delay; by rising times) deviate
/// least, within the times of the cases (`gaps_s`) around it.
pub(super) fn placed(steps: &GapDelays, gaps_s: &[f64], packets_s: &[(f64, f64)]) -> Result<GapDelays, ProfilerError> {
    let mut placed = steps.clone();
    if packets_s.is_empty() {
        return Ok(placed);
    }
    for step in 0..steps.thresholds_s.len() {
        let high = steps.thresholds_s[step];
        let low = gaps_s.iter().copied().filter(|gap| *gap < high).fold(0.0, f64::max);
        let mut best = (deviation(&placed, packets_s)?, high);
        for at_s in packets_s.iter().map(|(gap_s, _)| *gap_s).filter(|gap_s| *gap_s > low && *gap_s < high) {
            placed.thresholds_s[step] = at_s;
            let found = deviation(&placed, packets_s)?;
            if found < best.0 {
                best = (found, at_s);
            }
        }
        placed.thresholds_s[step] = best.1;
    }
    Ok(placed)
}

/// Returns the sum of the packets' deviations from the steps, in seconds. Where the first step begins is free.
fn deviation(steps: &GapDelays, packets_s: &[(f64, f64)]) -> Result<f64, ProfilerError> {
    let offsets: Vec<f64> = packets_s.iter().map(|(gap_s, delay)| delay - steps.above_first_s(*gap_s)).collect();
    let first = MedianAndSpread::of(&offsets)?.median;
    Ok(offsets.iter().map(|offset| (offset - first).abs()).sum())
}
