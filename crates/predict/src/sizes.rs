//! Computes laws of packet lengths, and of the service times that depend on them.
use weir_model::{Law, ModelError};
use weir_scenario::ServiceTime;
use weir_traffic::{BimodalSizes, OfferedPackets, PacketSizeLaw};

/// Most different lengths kept separate; more are represented by mean and variance.
const MOST_LENGTHS: usize = 64;

/// Returns the law of a source's packet lengths, in bytes.
pub(crate) fn lengths(offered: &OfferedPackets) -> Result<Law, ModelError> {
    match offered {
        OfferedPackets::Rule { size, .. } => of_size(size),
        OfferedPackets::Trace(trace) => {
            listed(&trace.packets().iter().map(|packet| (packet.bytes, 1.0)).collect::<Vec<_>>())
        }
    }
}

fn of_size(size: &PacketSizeLaw) -> Result<Law, ModelError> {
    match size {
        PacketSizeLaw::Fixed(bytes) => Law::constant(f64::from(*bytes)),
        PacketSizeLaw::Exponential(mean) => Law::exponential(*mean),
        PacketSizeLaw::Imix => listed(&[(60, 7.0), (590, 4.0), (1514, 1.0)]),
        PacketSizeLaw::Bimodal(BimodalSizes { short, short_bytes, long_bytes }) => {
            Law::mixture([(*short, range(*short_bytes)?), (1.0 - *short, range(*long_bytes)?)])
        }
        PacketSizeLaw::Empirical(list) => listed(&list.0),
    }
}

fn range([from, to]: [u32; 2]) -> Result<Law, ModelError> {
    if from == to { Law::constant(f64::from(from)) } else { Law::uniform(f64::from(from), f64::from(to)) }
}

fn listed(lengths: &[(u32, f64)]) -> Result<Law, ModelError> {
    let mut sorted: Vec<(u32, f64)> = lengths.to_vec();
    sorted.sort_by_key(|(bytes, _)| *bytes);
    sorted.dedup_by(|one, before| {
        let same = one.0 == before.0;
        if same {
            before.1 += one.1;
        }
        same
    });
    let total: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    if sorted.len() <= MOST_LENGTHS {
        return Law::mixture(
            sorted
                .iter()
                .map(|(bytes, weight)| Ok((weight / total, Law::constant(f64::from(*bytes))?)))
                .collect::<Result<Vec<_>, _>>()?,
        );
    }
    let mean = sorted.iter().map(|(bytes, weight)| f64::from(*bytes) * weight).sum::<f64>() / total;
    let square = sorted.iter().map(|(bytes, weight)| f64::from(*bytes).powi(2) * weight).sum::<f64>() / total;
    Law::gamma(mean, (square / (mean * mean) - 1.0).max(0.0))
}

/// Service with a constant law and a time for each byte of the packet.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServiceDemand {
    pub(crate) fixed: Option<Law>,
    pub(crate) per_byte_s: f64,
}

impl ServiceDemand {
    pub(crate) fn of(service: Option<&ServiceTime>) -> ServiceDemand {
        service
            .map(|service| ServiceDemand { fixed: service.law.clone(), per_byte_s: service.per_byte_s })
            .unwrap_or_default()
    }

    /// Returns the mean service time in seconds of a packet of `bytes` bytes.
    pub(crate) fn mean_s(&self, bytes: f64) -> f64 {
        self.fixed.as_ref().map_or(0.0, Law::mean) + self.per_byte_s * bytes
    }

    /// Returns the law of the whole service time for packets of these lengths; none if it takes no time.
    pub(crate) fn with(&self, lengths: &Law) -> Result<Option<Law>, ModelError> {
        let sized = (self.per_byte_s > 0.0).then(|| lengths.scaled(self.per_byte_s)).transpose()?;
        match (&self.fixed, sized) {
            (Some(fixed), Some(sized)) => sum(fixed, &sized).map(Some),
            (Some(law), None) => Ok(Some(law.clone())),
            (None, sized) => Ok(sized),
        }
    }
}

/// Returns the sum of two independent times: exact for constants, otherwise by mean and variance.
fn sum(a: &Law, b: &Law) -> Result<Law, ModelError> {
    use weir_model::LawShape::Constant;
    let all: Option<Vec<(f64, f64)>> = a
        .parts()
        .iter()
        .flat_map(|a| b.parts().iter().map(move |b| (a, b)))
        .map(|(a, b)| match (a.shape, b.shape) {
            (Constant(x), Constant(y)) => Some((x + y, a.weight * b.weight)),
            _ => None,
        })
        .take(MOST_LENGTHS + 1)
        .collect();
    match all {
        Some(all) if all.len() <= MOST_LENGTHS => {
            let (values, weights): (Vec<f64>, Vec<f64>) = all.into_iter().unzip();
            Law::lattice(&values, &weights)
        }
        _ => {
            let mean = a.mean() + b.mean();
            Law::gamma(mean, (a.variance() + b.variance()) / (mean * mean))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_traffic::EmpiricalSizes;

    #[test]
    fn laws_have_the_mean_of_the_sizes_that_are_drawn() {
        let many = PacketSizeLaw::Empirical(EmpiricalSizes((1..500).map(|bytes| (bytes, f64::from(bytes))).collect()));
        for size in [
            PacketSizeLaw::Fixed(100),
            PacketSizeLaw::Imix,
            PacketSizeLaw::Bimodal(BimodalSizes::default()),
            PacketSizeLaw::Exponential(300.0),
            many,
        ] {
            let mean = weir_traffic::PacketSizeSampler::new(&size).unwrap().mean();
            let found = of_size(&size).unwrap().mean();
            // Drawn lengths are rounded up to whole bytes.
            let within = if matches!(size, PacketSizeLaw::Exponential(_)) { 0.002 } else { 1e-9 };
            assert!((found / mean - 1.0).abs() < within, "{size:?}: {found}, {mean}");
        }
    }

    #[test]
    fn a_service_by_the_byte_is_as_uneven_as_the_packets() {
        let lengths = Law::lattice(&[100.0, 1000.0], &[0.5, 0.5]).unwrap();
        let work = ServiceDemand { fixed: Some(Law::constant(3e-6).unwrap()), per_byte_s: 8e-9 };
        let law = work.with(&lengths).unwrap().unwrap();
        assert!((law.mean() - (3e-6 + 4.4e-6)).abs() < 1e-15 && (law.variance() - (3.6e-6f64).powi(2)).abs() < 1e-18);
        let uneven = ServiceDemand { fixed: Some(Law::exponential(3e-6).unwrap()), per_byte_s: 8e-9 };
        let law = uneven.with(&lengths).unwrap().unwrap();
        assert!((law.mean() - 7.4e-6).abs() < 1e-15 && (law.variance() - 9e-12 - 12.96e-12).abs() < 1e-18);
        assert_eq!(ServiceDemand::default().with(&lengths).unwrap(), None);
    }
}
