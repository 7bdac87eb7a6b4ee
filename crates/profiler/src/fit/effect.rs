//! Fits the time from when commands were carried out until packets are treated accordingly.
//!
//! A switch that caches decisions about packets takes such a time, whatever the number of commands (Open vSwitch:
//! until its threads have revalidated their flows). To decide whether a switch behaves so, two fits of the same times
//! are compared: with the cost of commands alone, and with an additional constant for each burst. Schwarz's criterion
//! (1978) charges the latter for its additional parameter.
use super::linear::CostRegression;
use super::{service, spread};
use crate::ProfilerError;
use crate::control::MeasuredBurst;
use crate::terms::{CostTerm, CostTermCounts};
use weir_model::Distribution;
use weir_model::fit::quantiles::MedianAndSpread;
use weir_profile::{Evidence, ServiceTime};

/// Decrease of the criterion that counts as certain: very strong evidence (Kass and Raftery 1995).
const TELLING: f64 = 10.0;
/// Number of quantiles at which the law is compared with the times.
const QUANTILES: u32 = 100;

/// Time of bursts beside that of their commands, and of the flows in the switch's cache.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectFit {
    /// Time of each fitted burst, in seconds, at least 0.
    pub samples_s: Vec<f64>,
    /// Decrease of Schwarz's criterion by the additional constant.
    pub criterion: f64,
}

impl EffectFit {
    /// Returns the bursts' times beside their commands, if they are certain and long enough to be measured.
    pub(super) fn of(fitted: &CostRegression, timed: &[&MeasuredBurst]) -> Option<EffectFit> {
        if fitted.criterion < TELLING || !shows(fitted, timed) {
            return None;
        }
        let others_s = |one: &MeasuredBurst| commands_s(fitted, one) + revalidation_s(fitted, one);
        let samples_s = timed.iter().map(|one| (one.seconds() - others_s(one)).max(0.0)).collect();
        Some(EffectFit { samples_s, criterion: fitted.criterion })
    }

    /// Fits a law to the times less `rig_s` seconds each, and compares its quantiles with theirs.
    pub(super) fn law(&self, rig_s: f64) -> Result<Option<(ServiceTime, Evidence)>, ProfilerError> {
        // Times of zero count, too.
        let samples: Vec<(f64, f64)> = self.samples_s.iter().map(|s| (1.0, (s - rig_s).max(1e-9))).collect();
        let Some((time, evidence)) = service::fit(&samples)? else { return Ok(None) };
        let mut times: Vec<f64> = samples.into_iter().map(|sample| sample.1).collect();
        times.sort_by(f64::total_cmp);
        let shares = (0..QUANTILES).map(|at| (f64::from(at) + 0.5) / f64::from(QUANTILES));
        let law = time.law.as_ref().map_or(Distribution::zero(), Distribution::law);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in the list")]
        let at = |share: f64| times[((share * times.len() as f64) as usize).min(times.len() - 1)];
        let pairs: Vec<(f64, f64)> = law.curve(shares).into_iter().map(|(share, s)| (at(share), s)).collect();
        let mean = pairs.iter().map(|pair| pair.0).sum::<f64>() / pairs.len().max(1) as f64;
        let total: f64 = pairs.iter().map(|pair| (pair.0 - mean).powi(2)).sum();
        let left: f64 = pairs.iter().map(|pair| (pair.0 - pair.1).powi(2)).sum();
        let mut off: Vec<f64> = pairs.iter().map(|pair| (pair.0 - pair.1) / pair.0).collect();
        let r2 = (total > 0.0).then(|| (1.0 - left / total).max(0.0));
        Ok(Some((time, Evidence { r2, residual: Some(spread::median_size(&mut off)), ..evidence })))
    }
}

/// Returns true if the constant of bursts exceeds the time between two packets in the most precisely timed bursts.
pub(super) fn shows(fitted: &CostRegression, timed: &[&MeasuredBurst]) -> bool {
    fitted.costs.get(&CostTerm::Constant).is_some_and(|found| found.value > finest_width(timed))
}

/// Returns the time that a burst's commands take by their fitted costs, in seconds after sending.
pub(super) fn commands_s(fitted: &CostRegression, timed: &MeasuredBurst) -> f64 {
    terms_s(fitted, &timed.terms)
}

/// Returns the time that these terms take without those of the effect, in seconds.
pub(crate) fn terms_s(fitted: &CostRegression, terms: &CostTermCounts) -> f64 {
    let is_own = |column: &CostTerm| !matches!(column, CostTerm::Constant | CostTerm::Revalidate);
    terms.0.iter().filter(|(column, _)| is_own(column)).map(|(column, times)| fitted.value(*column) * times).sum()
}

/// Returns the time of the flows in the cache until packets met a burst's changes, in seconds.
fn revalidation_s(fitted: &CostRegression, timed: &MeasuredBurst) -> f64 {
    let flows = timed.terms.0.get(&CostTerm::Revalidate).copied().unwrap_or(0.0);
    fitted.value(CostTerm::Revalidate) * flows
}

/// Returns the median bracket width of the most precisely timed third of the bursts, in seconds.
fn finest_width(timed: &[&MeasuredBurst]) -> f64 {
    let mut widths: Vec<f64> = timed.iter().map(|one| one.high_s - one.low_s).collect();
    widths.sort_by(f64::total_cmp);
    widths.truncate((widths.len() / 3).max(4));
    MedianAndSpread::of(&widths).map_or(f64::INFINITY, |width| width.median)
}
