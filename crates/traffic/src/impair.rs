//! Random impairments of a link: jitter of single frames' delay, and loss of frames.
//!
//! Draws depend on the seed and on the number of earlier frames, not on a clock. A link without jitter and loss draws
//! nothing.
use crate::{RandomStream, TrafficError};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use weir_units::TimeSpan;

/// Maximum deviation of a normally distributed delay, in standard deviations.
pub const MOST_DEVIATIONS: f64 = 4.0;
/// Shape of the Pareto law of [`JitterLaw::Pareto`]: the variance of the added delay is three times the square of its
/// mean.
const PARETO_SHAPE: f64 = 3.0;
/// Maximum Pareto delay of a frame, in multiples of its mean; reached once in 130,000 frames.
const PARETO_MOST: f64 = 100.0;

/// Variation of a link's delay from frame to frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LinkJitter {
    /// Amount of jitter, as defined by the law.
    pub size: Duration,
    /// Distribution of the jitter.
    pub law: JitterLaw,
    /// True if a frame may overtake others; otherwise it arrives no earlier than the frames before it.
    pub reorder: bool,
}

/// Distribution of jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JitterLaw {
    /// Uniform between the link's delay minus the jitter and the delay plus the jitter.
    #[default]
    Uniform,
    /// Normal around the delay with the jitter as standard deviation, truncated at [`MOST_DEVIATIONS`].
    Normal,
    /// Never below the delay, on average longer by the jitter, with a heavy tail: Pareto (Lomax) of shape 3.
    Pareto,
}

impl std::str::FromStr for JitterLaw {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<JitterLaw, TrafficError> {
        match text {
            "uniform" => Ok(JitterLaw::Uniform),
            "normal" => Ok(JitterLaw::Normal),
            "pareto" => Ok(JitterLaw::Pareto),
            _ => Err(TrafficError::parameter("jitter_law", text, "uniform, normal or pareto")),
        }
    }
}

impl LinkJitter {
    /// Checks that a link with this delay can have this jitter.
    ///
    /// # Errors
    /// Some frames would arrive before they were sent.
    pub fn check(&self, delay: Duration) -> Result<(), TrafficError> {
        let (most, what) = match self.law {
            JitterLaw::Uniform => (delay, "the delay"),
            JitterLaw::Normal => (delay.div_f64(MOST_DEVIATIONS), "a quarter of the delay"),
            JitterLaw::Pareto => return Ok(()),
        };
        if self.size <= most {
            return Ok(());
        }
        let expected = format!("at most {}, {what}; the law `pareto` only adds to the delay", TimeSpan(most));
        Err(TrafficError::parameter("jitter", TimeSpan(self.size), expected))
    }

    /// Returns a time that almost no frame exceeds beyond the link's delay, for callers that wait for the last frame.
    /// With the Pareto law one frame in a thousand exceeds it.
    pub fn most(&self) -> Duration {
        self.size.saturating_mul(match self.law {
            JitterLaw::Uniform => 1,
            JitterLaw::Normal => 4,
            JitterLaw::Pareto => 18,
        })
    }
}

/// Random loss of a link's frames.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LinkLoss {
    /// Share of lost frames, `0.0..=1.0`.
    pub share: f64,
    /// Mean number of consecutive losses, at least 1 (Gilbert, Capacity of a burst-noise channel, 1960); `None`:
    /// frames are lost independently.
    pub burst: Option<f64>,
}

impl LinkLoss {
    /// Checks that the values are valid.
    ///
    /// # Errors
    /// The share is out of range, or so large that bursts of this length leave no time between them.
    pub fn check(&self) -> Result<(), TrafficError> {
        if !(0.0..=1.0).contains(&self.share) {
            return Err(TrafficError::parameter("loss", self.share, "a share from 0 to 1, or per cent as in `1.5%`"));
        }
        let Some(burst) = self.burst else { return Ok(()) };
        if !(1.0..=1e6).contains(&burst) {
            return Err(TrafficError::parameter("loss_burst", burst, "a number of frames from 1 to 1000000"));
        }
        let most = burst / (burst + 1.0);
        if self.share <= most {
            return Ok(());
        }
        let expected = format!("at most {most:.4} with loss_burst = {burst}: a burst ends by a frame that arrives");
        Err(TrafficError::parameter("loss", self.share, expected))
    }
}

/// Random decisions about the frames of one direction of a link.
#[derive(Debug)]
pub struct ImpairmentRng {
    random: RandomStream,
    /// True if the last frame was lost as part of a burst.
    in_burst: bool,
}

impl ImpairmentRng {
    /// Creates the decisions for direction `number` of a link, for this seed.
    pub fn new(seed: u64, number: u64) -> ImpairmentRng {
        ImpairmentRng::of(RandomStream::new(seed, 0, number))
    }

    /// Creates decisions that draw from a given stream.
    pub fn of(random: RandomStream) -> ImpairmentRng {
        ImpairmentRng { random, in_burst: false }
    }

    /// Draws whether the next frame is lost. Returns true if it is.
    pub fn loses(&mut self, loss: LinkLoss) -> bool {
        let Some(burst) = loss.burst else { return self.random.unit() < loss.share };
        // Two states; the state changes before each frame, and frames are lost in one of them. A burst ends with a
        // probability of one over its mean length, and begins so often that the share of frames in bursts equals the
        // share of losses.
        let changes = if self.in_burst { 1.0 / burst } else { loss.share / (burst * (1.0 - loss.share)) };
        self.in_burst ^= self.random.unit() < changes;
        self.in_burst
    }

    /// Draws the delay of the next frame on a link with this base delay.
    pub fn delay(&mut self, delay: Duration, jitter: LinkJitter) -> Duration {
        let off = match jitter.law {
            JitterLaw::Uniform => self.random.unit() * 2.0 - 1.0,
            JitterLaw::Normal => self.deviations(),
            // Lomax is Pareto minus its minimum, which is two thirds of its mean.
            JitterLaw::Pareto => (3.0 * self.random.pareto(PARETO_SHAPE) - 2.0).clamp(0.0, PARETO_MOST),
        };
        let longer = Duration::from_secs_f64(jitter.size.as_secs_f64() * off.abs());
        if off < 0.0 { delay.saturating_sub(longer) } else { delay.saturating_add(longer) }
    }

    /// Draws a standard normal number, truncated.
    fn deviations(&mut self) -> f64 {
        loop {
            let number: f64 = rand_distr::Distribution::sample(&rand_distr::StandardNormal, &mut self.random);
            if number.abs() <= MOST_DEVIATIONS {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FRAMES: usize = 200_000;

    fn delays(law: JitterLaw) -> Vec<f64> {
        let mut dice = ImpairmentRng::new(7, 0);
        let jitter = LinkJitter { size: Duration::from_millis(2), law, reorder: true };
        (0..FRAMES).map(|_| dice.delay(Duration::from_millis(20), jitter).as_secs_f64() * 1e3).collect()
    }

    fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (mean, square.sqrt())
    }

    /// Returns the share of values up to each limit.
    fn shares(values: &[f64], limits: &[f64]) -> Vec<f64> {
        limits
            .iter()
            .map(|limit| values.iter().filter(|value| *value <= limit).count() as f64 / FRAMES as f64)
            .collect()
    }

    /// Five standard errors of a share.
    const SLACK: f64 = 5.0 * 0.5 / 447.0;

    #[test]
    fn uniform_delays_are_as_likely_everywhere() {
        let values = delays(JitterLaw::Uniform);
        let (mean, deviation) = mean_and_deviation(&values);
        assert!((mean - 20.0).abs() < 0.02 && (deviation - 2.0 / 3f64.sqrt()).abs() < 0.01, "{mean} {deviation}");
        assert!(values.iter().all(|value| (18.0..=22.0).contains(value)));
        for (found, expected) in shares(&values, &[18.4, 19.0, 20.0, 21.5]).iter().zip([0.1, 0.25, 0.5, 0.875]) {
            assert!((found - expected).abs() < SLACK, "{found} {expected}");
        }
    }

    #[test]
    fn normal_delays_have_their_quantiles_and_are_cut_off() {
        let values = delays(JitterLaw::Normal);
        let (mean, deviation) = mean_and_deviation(&values);
        assert!((mean - 20.0).abs() < 0.025 && (deviation - 2.0).abs() < 0.02, "{mean} {deviation}");
        assert!(values.iter().all(|value| (12.0..=28.0).contains(value)));
        let expected = [0.0227501, 0.1586553, 0.5, 0.8413447, 0.9772499];
        for (found, expected) in shares(&values, &[16.0, 18.0, 20.0, 22.0, 24.0]).iter().zip(expected) {
            assert!((found - expected).abs() < SLACK, "{found} {expected}");
        }
    }

    #[test]
    fn pareto_delays_have_a_heavy_tail_over_the_delay() {
        let values = delays(JitterLaw::Pareto);
        let (mean, _) = mean_and_deviation(&values);
        assert!((mean - 22.0).abs() < 0.06, "{mean}");
        assert!(values.iter().all(|value| (20.0..=220.0).contains(value)));
        let late = values.iter().filter(|value| **value > 20.0 + 2.0 * 18.0).count();
        assert!((100..320).contains(&late), "one in a thousand: {late}");
        // P(X > x) = (1 + x / (2 * 2 ms)) ^ -3.
        let expected = [2.0, 4.0, 16.0, 36.0].map(|over: f64| 1.0 - (1.0 + over / 4.0).powi(-3));
        for (found, expected) in shares(&values, &[22.0, 24.0, 36.0, 56.0]).iter().zip(expected) {
            assert!((found - expected).abs() < SLACK, "{found} {expected}");
        }
    }

    /// Returns the share of lost frames, and the mean number of consecutive losses.
    fn losses(loss: LinkLoss) -> (f64, f64) {
        let mut dice = ImpairmentRng::new(3, 0);
        let lost: Vec<bool> = (0..FRAMES).map(|_| dice.loses(loss)).collect();
        let total = lost.iter().filter(|lost| **lost).count() as f64;
        let begun = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() + usize::from(lost[0]);
        (total / FRAMES as f64, total / begun as f64)
    }

    #[test]
    fn frames_are_lost_by_themselves_or_in_bursts() {
        let (share, row) = losses(LinkLoss { share: 0.1, burst: None });
        assert!((share - 0.1).abs() < 0.0034 && (row - 1.0 / 0.9).abs() < 0.02, "{share} {row}");
        let (share, row) = losses(LinkLoss { share: 0.1, burst: Some(10.0) });
        assert!((share - 0.1).abs() < 0.015 && (row - 10.0).abs() < 1.1, "{share} {row}");
        let (share, row) = losses(LinkLoss { share: 0.2, burst: Some(1.0) });
        assert!((share - 0.2).abs() < 0.005 && row == 1.0, "{share} {row}");
        assert_eq!(losses(LinkLoss { share: 0.0, burst: Some(5.0) }).0, 0.0);
        assert_eq!(losses(LinkLoss { share: 1.0, burst: None }).0, 1.0);
    }

    #[test]
    fn what_no_link_can_do_is_refused() {
        let ms = Duration::from_millis;
        let check = |law, size, delay| {
            LinkJitter { size: ms(size), law, reorder: false }.check(ms(delay)).map_err(|e| e.to_string())
        };
        assert_eq!(check(JitterLaw::Uniform, 5, 5), Ok(()));
        assert_eq!(check(JitterLaw::Normal, 5, 20), Ok(()));
        assert_eq!(check(JitterLaw::Pareto, 5, 0), Ok(()));
        let late = "jitter: found 6ms, expected at most 5ms, the delay; the law `pareto` only adds to the delay";
        assert_eq!(check(JitterLaw::Uniform, 6, 5), Err(late.to_owned()));
        assert!(check(JitterLaw::Normal, 6, 20).unwrap_err().contains("at most 5ms, a quarter of the delay"));
        let loss = |share, burst| LinkLoss { share, burst }.check().map_err(|error| error.to_string());
        assert_eq!(loss(1.0, None), Ok(()));
        assert_eq!(loss(0.5, Some(1.0)), Ok(()));
        assert!(loss(0.51, Some(1.0)).unwrap_err().starts_with("loss: found 0.51, expected at most 0.5000 with"));
        for (share, burst) in [(f64::NAN, None), (-0.1, None), (1.1, None), (0.1, Some(0.5)), (0.1, Some(f64::NAN))] {
            assert!(loss(share, burst).is_err(), "{share} {burst:?}");
        }
    }

    proptest! {
        #[test]
        fn the_seed_decides_and_no_delay_is_negative(seed: u64, delay_us in 0u64..10_000_000, size_us in 0u64..10_000_000) {
            let delay = Duration::from_micros(delay_us);
            for law in [JitterLaw::Uniform, JitterLaw::Normal, JitterLaw::Pareto] {
                let jitter = LinkJitter { size: Duration::from_micros(size_us), law, reorder: false };
                let draw = || { let mut dice = ImpairmentRng::new(seed, 1); [(); 20].map(|()| dice.delay(delay, jitter)) };
                prop_assert_eq!(draw(), draw());
                let most = delay + jitter.size.mul_f64(if law == JitterLaw::Pareto { PARETO_MOST } else { MOST_DEVIATIONS } + 1e-6);
                prop_assert!(draw().iter().all(|found| *found <= most + Duration::from_nanos(1)));
            }
        }
    }
}
