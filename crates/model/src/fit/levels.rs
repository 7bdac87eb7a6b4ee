//! Finds steps of the delay over the time between packets: Cheng (2015), section 5.3.
use super::line::RegressionLine;
use crate::ModelError;
use crate::check::{domain, not_negative, positive};

/// Delays measured with one time between packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GapDelaySample {
    /// Time between packets, in seconds.
    pub gap_s: f64,
    /// Mean delay, in any unit.
    pub mean: f64,
    /// Standard deviation of the delays, in the same unit.
    pub sd: f64,
}

/// Steps of the delay.
#[derive(Debug, Clone, PartialEq)]
pub struct GapLevels {
    /// Mean delay of each level, by rising time between packets.
    pub means: Vec<f64>,
    /// Shortest time between packets measured in each level but the first, in seconds.
    pub thresholds_s: Vec<f64>,
    /// Additional delay of each level, γ_a; 0 for a single level.
    pub per_level: f64,
    /// Line through the levels' means; none for a single level.
    pub line: Option<RegressionLine>,
}

impl GapLevels {
    /// Finds the levels: a sample belongs to the level before it if its interval of mean ± standard deviation overlaps
    /// with that of the level's first sample. So a delay that rises little by little has levels, too.
    ///
    /// # Errors
    /// No sample, or an invalid one.
    pub fn find(samples: &[GapDelaySample]) -> Result<GapLevels, ModelError> {
        if samples.is_empty() {
            return Err(domain("samples", "none", "one or more"));
        }
        for sample in samples {
            positive("ipt", sample.gap_s)?;
            not_negative("mean", sample.mean)?;
            not_negative("sd", sample.sd)?;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_by(|left, right| left.gap_s.total_cmp(&right.gap_s));
        let mut levels: Vec<&[GapDelaySample]> = Vec::new();
        let mut rest = sorted.as_slice();
        while let Some(first) = rest.first() {
            let together = rest.iter().position(|sample| !overlap(first, sample)).unwrap_or(rest.len());
            let (level, others) = rest.split_at(together);
            levels.push(level);
            rest = others;
        }
        let mean = |level: &&[GapDelaySample]| level.iter().map(|sample| sample.mean).sum::<f64>() / level.len() as f64;
        let means: Vec<f64> = levels.iter().map(mean).collect();
        let thresholds_s = levels.iter().skip(1).filter_map(|level| Some(level.first()?.gap_s)).collect();
        let index: Vec<f64> = (0..means.len()).map(|at| at as f64).collect();
        let line = if means.len() > 1 { Some(RegressionLine::fit(&index, &means)?) } else { None };
        Ok(GapLevels { per_level: line.map_or(0.0, |line| line.slope), means, thresholds_s, line })
    }
}

fn overlap(left: &GapDelaySample, right: &GapDelaySample) -> bool {
    left.mean + left.sd >= right.mean - right.sd && right.mean + right.sd >= left.mean - left.sd
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample((gap_s, mean, sd): (f64, f64, f64)) -> GapDelaySample {
        GapDelaySample { gap_s, mean, sd }
    }

    #[test]
    fn two_levels() {
        let samples = [(0.01, 21.0, 2.0), (1e-4, 10.0, 1.0), (2e-4, 11.0, 1.0), (5e-4, 10.5, 1.0), (1e-3, 20.0, 2.0)];
        let levels = GapLevels::find(&samples.map(sample)).unwrap();
        assert_eq!((levels.means, levels.thresholds_s, levels.per_level), (vec![10.5, 20.5], vec![1e-3], 10.0));
    }

    #[test]
    fn a_delay_that_rises_little_by_little_has_levels() {
        // As measured on Open vSwitch: neighbours overlap, the ends are four times apart.
        let samples = [
            (383e-6, 62.0, 7.0),
            (1e-3, 79.0, 16.0),
            (2.1e-3, 104.0, 21.0),
            (3.2e-3, 131.0, 28.0),
            (4.4e-3, 156.0, 51.0),
            (5.5e-3, 195.0, 20.0),
            (1e-2, 221.0, 23.0),
        ];
        let levels = GapLevels::find(&samples.map(sample)).unwrap();
        assert_eq!(levels.thresholds_s, [2.1e-3, 5.5e-3], "{levels:?}");
        assert!((levels.per_level - 68.75).abs() < 1e-9, "{levels:?}");
    }

    #[test]
    fn one_level_and_none() {
        let levels = GapLevels::find(&[sample((1.0, 5.0, 0.0))]).unwrap();
        assert_eq!((levels.means, levels.per_level, levels.line), (vec![5.0], 0.0, None));
        assert!(GapLevels::find(&[]).is_err() && GapLevels::find(&[sample((0.0, 1.0, 1.0))]).is_err());
    }
}
