//! Computes the waiting in a queue to which sources are connected directly, from their rates, gaps and service times.
use super::periodic::{PeriodicSource, WaitMoments, periodic_waits};
use super::{ArrivalStream, ServiceMoments, limited, merged_scv, mixed_service, waiting};
use crate::arrivals::RateModulation;
use std::sync::Arc;
use weir_model::station::{ModulatedSource, ModulatedWaits, modulated_waits};
use weir_model::{Distribution, Law, ModelError, station};

/// Points by which a continuous law of service times is represented.
const POINTS: u32 = 16;
/// Most sources whose gaps are looked at one by one. Those of more sources are described by their variance.
const MOST_SOURCES: usize = 100;
/// Least mean waiting time that is kept, as a share of that of the queue.
const LEAST_MEAN: f64 = 1e-6;

/// Packets of one source at a queue.
#[derive(Debug, Clone)]
pub(super) struct SourceLoad {
    /// Packets per second.
    pub(super) rate: f64,
    /// Squared coefficient of variation of the times between packets.
    pub(super) scv: f64,
    /// Rates between which the source changes, if it sends in bursts.
    pub(super) modulation: Option<Arc<RateModulation>>,
    pub(super) service: ServiceMoments,
}

/// Waiting times in a queue with one server, in seconds.
#[derive(Debug, Clone)]
pub(crate) struct QueueWait {
    /// Mean of all packets.
    pub(crate) mean: f64,
    /// Mean of each source's packets.
    pub(crate) each: Vec<f64>,
    /// Mean of all packets, weighted by their service times.
    pub(crate) by_load: f64,
    pub(super) shape: WaitShape,
    /// Longest wait that the buffer allows.
    pub(super) longest: f64,
}

/// Shape of a law of waiting times, whose mean is known.
#[derive(Debug, Clone)]
pub(super) enum WaitShape {
    /// The law is like that of Poisson arrivals.
    Poisson(Distribution),
    Moments(WaitMoments),
}

impl SourceLoad {
    /// Returns a flow's packets as its source sends them, with the time that they take at a queue.
    pub(super) fn of(flow: &ArrivalStream, service: ServiceMoments) -> SourceLoad {
        SourceLoad { rate: flow.rate, scv: flow.source_scv, modulation: flow.modulation.clone(), service }
    }
}

impl QueueWait {
    /// Returns the waiting for the packets of all sources, whose load is `offered`, below 1.
    pub(super) fn of(sources: &[SourceLoad], offered: f64) -> Result<QueueWait, ModelError> {
        let rate: f64 = sources.iter().map(|one| one.rate).sum();
        let service = mixed_service(sources.iter().map(|one| (one.rate, &one.service)))?;
        if sources.iter().any(|one| one.modulation.is_some()) {
            match QueueWait::modulated(sources, rate, offered, &service) {
                // Extreme rates and times: the variability of the gaps then has to do.
                Err(ModelError::NoConvergence { .. }) => {}
                answer => return answer,
            }
        }
        let constant = constant_share(sources);
        if constant > f64::EPSILON {
            let poisson = poisson_moments(rate, offered, &service);
            let periodic = periodic_waits(&periodic_sources(sources)?);
            let mixed = |periodic: f64, poisson: f64| poisson + (periodic - poisson) * constant;
            let both = WaitMoments {
                mean: mixed(periodic.all.mean, poisson.mean),
                square: mixed(periodic.all.square, poisson.square),
                share: mixed(periodic.all.share, poisson.share),
            };
            let each: Vec<f64> = periodic.each.iter().map(|own| mixed(*own, poisson.mean)).collect();
            let times: f64 = sources.iter().zip(&each).map(|(one, time)| one.rate * one.service.mean * time).sum();
            let shape = WaitShape::Moments(both);
            return Ok(QueueWait { mean: both.mean, each, by_load: times / offered, shape, longest: f64::INFINITY });
        }
        let scv = merged_scv(sources.iter().map(|one| (one.rate, one.scv)), rate, offered);
        let mean = waiting::general_mean(offered, &service, scv);
        let each = vec![mean; sources.len()];
        let law = if mean > 0.0 {
            let factor = mean * 2.0 * (1.0 - offered) * service.mean() / (offered * service.second_moment());
            let law = service.scaled(factor)?;
            station::mg1_waiting(offered / law.mean(), &law)?
        } else {
            Distribution::zero()
        };
        Ok(QueueWait { mean, each, by_load: mean, shape: WaitShape::Poisson(law), longest: f64::INFINITY })
    }

    /// Returns the waiting if some sources send in bursts.
    fn modulated(sources: &[SourceLoad], rate: f64, offered: f64, service: &Law) -> Result<QueueWait, ModelError> {
        let source = |one: &SourceLoad| ModulatedSource {
            rates: one.modulation.as_ref().map_or_else(
                || vec![one.rate],
                |modulation| modulation.relative.iter().map(|relative| relative * one.rate).collect(),
            ),
            changes: one.modulation.as_ref().map_or_else(|| vec![vec![0.0]], |modulation| modulation.changes.clone()),
            scv: one.modulation.as_ref().map_or(one.scv, |modulation| modulation.scv),
            service_mean: one.service.mean,
            service_square: one.service.square,
        };
        let ModulatedWaits { mean, square, share, each } =
            modulated_waits(&sources.iter().map(source).collect::<Vec<_>>())?;
        // The remaining service that a packet meets, which the formula takes as diffuse.
        let square = square + rate * service.third_moment() / (3.0 * (1.0 - offered));
        let times: f64 = sources.iter().zip(&each).map(|(one, time)| one.rate * one.service.mean * time).sum();
        let shape = WaitShape::Moments(WaitMoments { mean, square, share });
        Ok(QueueWait { mean, each, by_load: times / offered, shape, longest: f64::INFINITY })
    }

    /// Returns the sum of independent waits, each with its mean in seconds, as few parts.
    ///
    /// The means may differ from those of the queues, for packets of which some have waited elsewhere already. With
    /// Poisson arrivals, fewer packets wait then, as long as before. With constant gaps they also wait for a shorter
    /// time. Both are chosen by comparison with followed packets.
    pub(crate) fn independent<'a>(
        waits: impl Iterator<Item = (&'a QueueWait, f64)>,
    ) -> Result<Vec<Distribution>, ModelError> {
        let (mut parts, mut sum, mut variance, mut none, mut longest) = (Vec::new(), 0.0, 0.0, 1.0, 0.0);
        for (wait, mean) in waits.filter(|(wait, mean)| *mean > LEAST_MEAN * wait.mean) {
            let part = mean / wait.mean;
            match &wait.shape {
                WaitShape::Poisson(law) => parts.push(limited::at_most(law.for_share(part.min(1.0))?, wait.longest)?),
                WaitShape::Moments(own) => {
                    let fewer = if part < 1.0 { part.sqrt() } else { part.min(1.0 / own.share) };
                    sum += mean;
                    longest += wait.longest;
                    variance += (own.square * part * part / fewer - mean * mean).max(0.0);
                    none *= (1.0 - own.share * fewer).max(0.0);
                }
            }
        }
        if sum > 0.0 {
            parts.push(limited::at_most(waiting::spread(1.0 - none, sum, variance + sum * sum)?, longest)?);
        }
        Ok(parts)
    }
}

/// Returns the share of the load that comes from sources with constant gaps; those whose gaps vary less than
/// exponential ones count in part. It is 0 if some vary more, and for very many sources, which are nearly Poisson.
pub(super) fn constant_share(sources: &[SourceLoad]) -> f64 {
    if sources.len() > MOST_SOURCES || sources.iter().any(|one| one.scv > 1.0) {
        return 0.0;
    }
    let load = |one: &SourceLoad| one.rate * one.service.mean;
    let constant: f64 = sources.iter().map(|one| load(one) * (1.0 - one.scv)).sum();
    (constant / sources.iter().map(load).sum::<f64>()).min(1.0)
}

/// Returns the sources as if all their gaps were constant.
pub(super) fn periodic_sources(sources: &[SourceLoad]) -> Result<Vec<PeriodicSource<'_>>, ModelError> {
    let source = |one| {
        let SourceLoad { rate, service, .. }: &SourceLoad = one;
        Ok(PeriodicSource { rate: *rate, service: &service.law, points: points(&service.law)? })
    };
    sources.iter().map(source).collect()
}

/// Returns the waiting with Poisson arrivals (Takács, see Kleinrock, Queueing Systems I, 1975, 5.7).
fn poisson_moments(rate: f64, offered: f64, service: &Law) -> WaitMoments {
    let free = 1.0 - offered;
    let mean = rate * service.second_moment() / (2.0 * free);
    let square = 2.0 * mean * mean + rate * service.third_moment() / (3.0 * free);
    WaitMoments { mean, square, share: offered }
}

/// Returns a law as points with weights, in ascending order. A law that is not made of constants is represented by
/// equally probable points.
pub(super) fn points(law: &Law) -> Result<Vec<(f64, f64)>, ModelError> {
    use weir_model::LawShape::Constant;
    let constants = law.parts().iter().map(|part| match part.shape {
        Constant(value) => Some((value, part.weight)),
        _ => None,
    });
    if let Some(mut points) = constants.collect::<Option<Vec<_>>>() {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        return Ok(points);
    }
    let (times, share) = (Distribution::law(law), 1.0 / f64::from(POINTS));
    (0..POINTS).map(|step| Ok((times.quantile((f64::from(step) + 0.5) * share)?, share))).collect()
}
