//! How long it takes until packets meet what a burst changed, beside what its commands cost.
//!
//! A switch whose data path keeps what it has decided of packets takes a time for that which has nothing to do with how many commands there were (Open vSwitch: until its threads have come
//! round). Whether a switch is like that, is asked by comparing two fits of the same times: what commands cost alone, and with a time for each burst. The latter has one parameter more, which
//! Schwarz's criterion (1978) charges it for.
use super::linear::Fitted;
use super::{service, spread};
use crate::ProfilerError;
use crate::control::Timed;
use crate::terms::Column;
use weir_model::Distribution;
use weir_model::fit::order::Middle;
use weir_profile::{Evidence, ServiceTime};

/// By how much the criterion has to be lower with a time for each burst: very strong evidence (Kass and Raftery 1995).
const TELLING: f64 = 10.0;
/// Quantiles that a law is held against.
const QUANTILES: u32 = 100;

/// What bursts took beside their commands.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// Of each burst that was fitted, in seconds, not less than 0.
    pub samples_s: Vec<f64>,
    /// By how much Schwarz's criterion is lower than without.
    pub criterion: f64,
}

impl Effect {
    /// What the bursts of a fit took beside commands, if that is certain and shows.
    pub(super) fn of(fitted: &Fitted, timed: &[&Timed]) -> Option<Effect> {
        if fitted.criterion < TELLING || !shows(fitted, timed) {
            return None;
        }
        let samples_s = timed.iter().map(|one| (one.seconds() - commands_s(fitted, one)).max(0.0)).collect();
        Some(Effect { samples_s, criterion: fitted.criterion })
    }

    /// The law of these times, and how well its quantiles are theirs. So much of each is the rig's own.
    pub(super) fn law(&self, rig_s: f64) -> Result<Option<(ServiceTime, Evidence)>, ProfilerError> {
        // Those that are nothing count, too.
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

/// Whether bursts take more beside their commands than what lies between two packets, as far as times were looked at most finely.
pub(super) fn shows(fitted: &Fitted, timed: &[&Timed]) -> bool {
    fitted.costs.get(&Column::Constant).is_some_and(|found| found.value > finest_width(timed))
}

/// When commands were carried out that a burst consists of, in seconds after it was sent, by what they cost.
pub(super) fn commands_s(fitted: &Fitted, timed: &Timed) -> f64 {
    fitted.predict(&timed.terms) - fitted.value(Column::Constant)
}

/// The time between two packets where it was shortest: the median of a third of the bursts.
fn finest_width(timed: &[&Timed]) -> f64 {
    let mut widths: Vec<f64> = timed.iter().map(|one| one.high_s - one.low_s).collect();
    widths.sort_by(f64::total_cmp);
    widths.truncate((widths.len() / 3).max(4));
    Middle::of(&widths).map_or(f64::INFINITY, |width| width.median)
}
