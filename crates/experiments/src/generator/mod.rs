//! Experiment `generator-quality`: how exactly the traffic generator keeps the times between packets.
use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun, SampledValue};
use weir_generator::{TrafficRun, TrafficRunConfig, TrafficRunReport, TrafficSenderConfig};
use weir_plot::short;
use weir_port::memory;
use weir_traffic::{ArrivalProcess, FlowMix, GapQuality, OfferedPackets, OfferedTraffic, PacketSizeLaw};

/// The ends of the published ranges, and the middle.
const RATES: [u32; 3] = [5000, 15_000, 30_000];
const SIZES: [u32; 2] = [100, 1400];
const LAWS: [(&str, ArrivalProcess); 2] =
    [("constant", ArrivalProcess::Constant), ("exponential", ArrivalProcess::Poisson)];
/// Capacity in frames of the link between the two ends.
const CAPACITY: usize = 1 << 14;
const MEAN_ERROR: &str = "error of the mean";
const MEDIAN_ERROR: &str = "median error";
const RECEIVED_ERROR: &str = "error of the mean, received";
const DISTANCE: &str = "Kolmogorov-Smirnov distance";
/// The published bound of the mean's error, in percent.
const PUBLISHED: f64 = 1.1;

fn case(law: &str, rate: u32, bytes: u32) -> String {
    format!("{law}, {rate} pps, {bytes} B")
}

/// Measures all laws, rates and sizes.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    for (name, law) in LAWS {
        for rate in RATES {
            for bytes in SIZES {
                if run.options.cancel.is_cancelled() {
                    return Ok(());
                }
                let case = case(name, rate, bytes);
                run.tell(&case);
                let report = one(run, &law, rate, bytes)?;
                figures(run, &case, &report);
            }
        }
    }
    claims(run);
    run.note("packets go from one port in memory to another: what is measured is the generator, not a network card");
    Ok(())
}

fn one(
    run: &ExperimentRun<'_>,
    arrival: &ArrivalProcess,
    rate: u32,
    bytes: u32,
) -> Result<TrafficRunReport, ExperimentError> {
    let offered =
        OfferedPackets::Rule { arrival: arrival.clone(), per_second: rate.into(), size: PacketSizeLaw::Fixed(bytes) };
    let offer = OfferedTraffic::Packets { offered, flows: FlowMix::default() };
    let source = TrafficSenderConfig { offer, replay: None, frames: Default::default(), seed: run.options.seed };
    let (near, far) = memory::pair(CAPACITY).map_err(|error| ExperimentError::Case(error.to_string()))?;
    let config = TrafficRunConfig { duration: Some(run.sizes.time.0), ..TrafficRunConfig::default() };
    let failed = |error: weir_generator::GeneratorError| ExperimentError::Case(error.to_string());
    let rig =
        TrafficRun::new(config, Some((source, Box::new(near))), Some(Box::new(far)), Vec::new()).map_err(failed)?;
    rig.run(&mut || run.options.cancel.is_cancelled(), &mut |_| ()).map_err(failed)
}

fn figures(run: &mut ExperimentRun<'_>, case: &str, report: &TrafficRunReport) {
    let sent = report.sent.as_ref().and_then(|sent| sent.gaps.as_ref());
    if let Some(gaps) = sent {
        run.figure(case, MEAN_ERROR, "%", SampledValue::of(percent(gaps), gaps.gaps));
        let median = gaps.errors.map_or(0.0, |errors| errors.p50_us / gaps.planned_mean_us * 100.0);
        run.figure(case, MEDIAN_ERROR, "%", SampledValue::of(median, gaps.gaps));
        if let Some(fit) = gaps.fit {
            run.figure(case, DISTANCE, "", SampledValue::of(fit.distance, fit.samples));
            run.figure(case, "p of the test", "", SampledValue::of(fit.p_value, fit.samples));
        }
    }
    if let Some(gaps) = report.received.as_ref().and_then(|received| received.gaps.as_ref()) {
        run.figure(case, RECEIVED_ERROR, "%", SampledValue::of(percent(gaps), gaps.gaps));
    }
    if let Some(late) = report.sent.as_ref().and_then(|sent| sent.late) {
        run.figure(case, "late, 99 % at most", "us", SampledValue::of(late.p99_us, late.samples));
    }
}

/// Returns the error of the mean gap, in percent.
fn percent(gaps: &GapQuality) -> f64 {
    gaps.mean_error.abs() * 100.0
}

fn claims(run: &mut ExperimentRun<'_>) {
    let worst = |metric: &str| {
        let figures = run.figures.iter().filter(|figure| figure.metric == metric);
        figures.max_by(|a, b| a.ours.total_cmp(&b.ours)).map(|figure| (figure.ours, figure.case.clone()))
    };
    let [mean, distance] = [MEAN_ERROR, DISTANCE].map(worst);
    if let Some((error, case)) = mean {
        let because = format!("at most {} % ({case})", short(error));
        let text = "the mean time between packets is nearer to its plan than the published 1.1 %";
        run.claims.push(Claim::tested(text, error < PUBLISHED, because));
    }
    if let Some((distance, case)) = distance {
        let because = format!("the largest difference from the law's shares is {} ({case})", short(distance));
        let text = "exponential times between packets differ from their law by less than one in fifty";
        run.claims.push(Claim::tested(text, distance < 0.02, because));
    }
}

#[cfg(test)]
mod tests {
    use crate::ExperimentOptions;

    #[test]
    fn every_case_has_its_figures() {
        let options = ExperimentOptions { seed: 1, ..ExperimentOptions::default() };
        let report = crate::find("generator-quality").unwrap().run(&options, &mut |_| ()).unwrap();
        assert!(!report.partial);
        for metric in [super::MEAN_ERROR, super::RECEIVED_ERROR] {
            let cases = report.figures.iter().filter(|figure| figure.metric == metric).count();
            assert_eq!(cases, 12, "{metric}");
        }
        assert_eq!(report.figures.iter().filter(|figure| figure.metric == super::DISTANCE).count(), 6);
        assert_eq!(report.claims.len(), 2);
        assert!(report.figures.iter().any(|figure| figure.published.is_some()));
    }
}
