//! Model of the delay of a way.
//!
//! The time from the first bit at the first switch to the last bit out of the last port is the sum of: a constant for
//! each switch, the measured delay of each link, the time to send the packet out of each port, and the wait for packets
//! in front of it. Waits are those of an M/D/1 queue with packets of one length (Kleinrock, Queueing Systems I, 1975,
//! 5.7), at the load that intents have reserved or that was measured, whichever is more. Waits at different ports are
//! taken to be independent. In the worst case each port's buffer is full.
use super::config::IntentConfig;
use super::lanes::{Lane, lanes};
use super::spec::{DelayBound, DelayKind};
use super::way::{Way, link};
use crate::map::NetworkMap;
use weir_model::station::mg1_waiting;
use weir_model::{Distribution, Law, ModelError};
use weir_units::Bps;

/// Figures from which delays are worked out.
pub(super) struct DelayInput<'a> {
    pub(super) map: &'a NetworkMap,
    pub(super) config: &'a IntentConfig,
    /// Returns the load of a lane in bit/s.
    pub(super) load: &'a dyn Fn(Lane) -> f64,
}

/// Delay of a way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WayDelay {
    /// The delay asked for, in seconds.
    pub(super) delay_s: f64,
    /// Link that contributes most, to look for ways without it where each way cannot be looked at by itself.
    pub(super) worst: Option<Lane>,
}

impl DelayInput<'_> {
    /// Returns the delay of a way, or why it is not known.
    pub(super) fn of(&self, way: &Way, kind: DelayKind) -> Result<WayDelay, String> {
        let mut parts = Vec::new();
        let mut worst: Option<(f64, Lane)> = None;
        for lane in lanes(way).filter(|lane| matches!(lane, Lane::From(_))) {
            let (constant_s, wait) = self.part(lane, kind)?;
            let whole = constant_s + wait.as_ref().map_or(0.0, Distribution::mean);
            let is_link = self.propagation_s(lane).is_some();
            if is_link && worst.is_none_or(|(most, _)| whole > most) {
                worst = Some((whole, lane));
            }
            parts.push(Distribution::constant(constant_s).map_err(text)?);
            parts.extend(wait);
        }
        let sum = Distribution::sum(&parts);
        let delay_s = match kind {
            DelayKind::WorstCase => sum.mean(),
            DelayKind::Percentile(percent) => sum.quantile(percent / 100.0).map_err(text)?,
        };
        Ok(WayDelay { delay_s, worst: worst.map(|(_, lane)| lane) })
    }

    /// Returns the constant part of a lane in seconds, and the wait in front of it.
    pub(super) fn part(&self, lane: Lane, kind: DelayKind) -> Result<(f64, Option<Distribution>), String> {
        let assumed = self.config.assumed_rate;
        let rate = lane.rate(self.map, assumed).ok_or_else(|| format!("the rate {lane} is not known"))?;
        let seconds = |bytes: u64| bytes as f64 * 8.0 / rate as f64;
        let send_s = seconds(self.config.packet_bytes);
        let constant_s = self.config.switch_delay.as_secs_f64() + self.propagation_s(lane).unwrap_or(0.0) + send_s;
        if kind == DelayKind::WorstCase {
            let buffer = self.config.port_buffer.ok_or("the buffers of ports are not known")?;
            return Ok((constant_s + seconds(buffer.0), None));
        }
        let load = (self.load)(lane);
        if load >= rate as f64 {
            return Err(format!("the load {lane} is {} of {}", bps(load), Bps(rate)));
        }
        let per_second = load / (self.config.packet_bytes as f64 * 8.0);
        let wait = (per_second > 0.0).then(|| mg1_waiting(per_second, &Law::constant(send_s)?));
        Ok((constant_s, wait.transpose().map_err(text)?))
    }

    /// Returns the delay of the link behind a lane in seconds; `None` if it leads to a host.
    fn propagation_s(&self, lane: Lane) -> Option<f64> {
        let Lane::From(at) = lane else { return None };
        let link = link(self.map, at)?;
        Some(link.delay.unwrap_or(self.config.assumed_link_delay).as_secs_f64())
    }
}

/// Returns the largest delay of ways, or why it is not known.
pub(super) fn largest<'a>(
    input: &DelayInput<'_>,
    ways: impl IntoIterator<Item = &'a Way>,
    kind: DelayKind,
) -> Result<Option<WayDelay>, String> {
    let mut largest: Option<WayDelay> = None;
    for way in ways {
        let delay = input.of(way, kind)?;
        if largest.is_none_or(|most| delay.delay_s > most.delay_s) {
            largest = Some(delay);
        }
    }
    Ok(largest)
}

/// Returns what a delay that exceeds its bound is, in words; `None` if it does not.
pub(super) fn excess(delay: &WayDelay, bound: &DelayBound) -> Option<String> {
    let most = bound.most.0.as_secs_f64();
    let of = match bound.kind {
        DelayKind::Percentile(percent) => format!("in {percent} % of the cases"),
        DelayKind::WorstCase => "in the worst case".to_owned(),
    };
    let text = || format!("delay: {:.1} us {of}, at most {:.1} us asked for", delay.delay_s * 1e6, most * 1e6);
    (delay.delay_s > most).then(text)
}

fn text(error: ModelError) -> String {
    error.to_string()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn bps(load: f64) -> Bps {
    Bps(load.round() as u64)
}
