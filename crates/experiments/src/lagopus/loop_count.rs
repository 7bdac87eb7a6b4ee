//! Experiment `lagopus-loop-count`, Table II and Fig. 3 of Rahimi et al., 2016. A loop count is the number of turns of
//! a thread's loop after which an incomplete burst of frames is passed on. The experiment measures its effect on a
//! delay-sensitive flow, alone and together with a bulk flow.
use super::network::{self, GIGABIT_FRAMES, VLANS, goodput_mbps};
use super::workers_here;
use crate::report::Claim;
use crate::testbed::{ExperimentTestbed, LagopusThreads, LoadMeasurement, PORTS, entry};
use crate::tester::{BulkFlowRate, TesterLoad, mean_us, quantile_us};
use crate::{ExperimentError, ExperimentRun, SampledValue};
use std::time::Duration;
use weir_model::mechanism::PollingSwitch;
use weir_openflow::model::{Action, FlowMod, Instruction, Match, PortNo};
use weir_packet::Field;
use weir_plot::short;
use weir_switch::threads::ReceivePolicy;

/// Maximum number of frames in a burst, as published.
const BURST: usize = 144;
/// Measured loop counts of the receiving and transmitting threads.
const LOOP_COUNTS: [u32; 2] = [100, 10_000];
/// Bit of the VLAN id field that says that a tag is present.
const PRESENT: u16 = 0x1000;
const PING_MEAN: &str = "ping round trip, mean";
const PING_BY_MODEL: &str = "the same by model poll_rtt, from published means";
const PING_P99: &str = "ping round trip, p99";
const GOODPUT: &str = "bulk goodput";
/// Claimed upper bound of the mean round trip of pings in microseconds, for every loop count.
const PING_MOST_US: f64 = 100.0;
/// Number of times that a ping waits for its burst on its round trip: at reception and at transmission, in both
/// directions.
const STAGES: u32 = 4;
/// Maximum relative error of the model's standard deviation, against the published one, for which the claim holds.
const SPREAD_WITHIN: f64 = 0.05;
/// Maximum factor by which a bulk flow may raise the 99th percentile of the pings' round trips when pings have a
/// separate worker, for which the claim holds.
const MOVED_MOST: f64 = 2.0;

/// Traffic of a measured case.
#[derive(Clone, Copy, PartialEq)]
enum LoopCountTraffic {
    /// Pings only.
    Ping,
    /// Bulk flow only.
    Bulk,
    /// Pings and bulk flow on one worker.
    Both,
    /// Pings and bulk flow. A class rule assigns the pings to a separate worker.
    Classed,
    /// Pings only, with the class rule of `Classed`, for comparison.
    ClassedPing,
}

impl LoopCountTraffic {
    fn name(self) -> &'static str {
        match self {
            LoopCountTraffic::Ping => "ping only",
            LoopCountTraffic::Bulk => "bulk only",
            LoopCountTraffic::Both => "both",
            LoopCountTraffic::Classed => "both, class rule",
            LoopCountTraffic::ClassedPing => "ping only, class rule",
        }
    }

    fn pings(self) -> bool {
        self != LoopCountTraffic::Bulk
    }

    fn has_bulk(self) -> bool {
        matches!(self, LoopCountTraffic::Bulk | LoopCountTraffic::Both | LoopCountTraffic::Classed)
    }

    fn has_class(self) -> bool {
        matches!(self, LoopCountTraffic::Classed | LoopCountTraffic::ClassedPing)
    }
}

fn case(traffic: LoopCountTraffic, loop_count: u32) -> String {
    format!("{}, loop count {loop_count}", traffic.name())
}

/// Measures each kind of traffic with each loop count, and compares the results with a model of a polling switch.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    let mut cases = vec![LoopCountTraffic::Ping, LoopCountTraffic::Bulk, LoopCountTraffic::Both];
    if workers_here(2) == 2 {
        cases.extend([LoopCountTraffic::ClassedPing, LoopCountTraffic::Classed]);
    }
    for loop_count in LOOP_COUNTS {
        for traffic in &cases {
            if run.options.cancel.is_cancelled() {
                return Ok(());
            }
            one(run, *traffic, loop_count)?;
        }
    }
    claims(run);
    predict(run)?;
    run.note("the bulk flow is frames of a fixed rate, that of a full 1 Gbit/s link; goodput counts what iperf3 would");
    Ok(())
}

fn one(run: &mut ExperimentRun<'_>, traffic: LoopCountTraffic, loop_count: u32) -> Result<(), ExperimentError> {
    let case = case(traffic, loop_count);
    run.tell(&case);
    let (workers, classes) = if traffic.has_class() { (2, vec!["icmp=>0", "tcp=>1"]) } else { (1, Vec::new()) };
    let threads =
        LagopusThreads { workers, burst: BURST, io_loop_count: loop_count, policy: ReceivePolicy::Mac, classes };
    let bed = ExperimentTestbed::new(run, threads, entries())?;
    let bulk = traffic.has_bulk().then(|| network::stream(0, true, BulkFlowRate::PerSecond(GIGABIT_FRAMES)));
    let interval = run.sizes.ping_interval.0;
    let load = TesterLoad { bulk: [bulk, None], ping: traffic.pings().then(|| (interval, network::pings())) };
    let Some(measured) = bed.measure(run, &load, time(run, traffic))? else { return Ok(()) };
    figures(run, &case, &measured);
    Ok(())
}

/// Returns the duration of a case. With the small sizes, cases with pings last twice as long, because quantiles need
/// many samples.
fn time(run: &ExperimentRun<'_>, traffic: LoopCountTraffic) -> Duration {
    run.sizes.time.0 * if traffic.pings() && !run.options.full { 2 } else { 1 }
}

/// Returns the paper's three entries: two that exchange the VLAN tags between the directions, and one that sends all
/// other packets to the controller.
fn entries() -> Vec<FlowMod> {
    let across = [0, 1].map(|from: usize| {
        let matching = Match::any().with(Field::VlanVid, VLANS[from] | PRESENT);
        let retag = Action::SetField { field: Field::VlanVid, value: u128::from(VLANS[1 - from] | PRESENT) };
        entry(100, matching, vec![retag], PORTS[1 - from])
    });
    let punt = vec![Instruction::ApplyActions(vec![Action::Output { port: PortNo::CONTROLLER, max_len: 128 }])];
    across.into_iter().chain([FlowMod::add(0, Match::any(), punt)]).collect()
}

fn figures(run: &mut ExperimentRun<'_>, case: &str, measured: &LoadMeasurement) {
    let [first, second] = &measured.ends;
    if first.pings > 0 {
        run.figure(case, PING_MEAN, "us", mean_us(&first.round_trips));
        run.figure(case, "ping round trip, p50", "us", quantile_us(&first.round_trips, 0.5));
        run.figure(case, PING_P99, "us", quantile_us(&first.round_trips, 0.99));
        let answered = first.round_trips.len();
        let lost = first.pings.saturating_sub(answered) as f64 / first.pings as f64;
        run.figure(case, "ping loss", "", SampledValue::of(lost, first.pings));
    }
    if first.due > 0 {
        let goodput: Vec<f64> = second.rates().into_iter().map(goodput_mbps).collect();
        run.figure(case, GOODPUT, "Mbit/s", SampledValue::mean_of(&goodput));
        run.figure(case, "bulk loss", "", SampledValue::of(measured.loss(0), first.due));
    }
    measured.disturbances(run, case);
}

fn claims(run: &mut ExperimentRun<'_>) {
    let means: Vec<(String, f64)> = LOOP_COUNTS
        .into_iter()
        .filter_map(|count| {
            let case = case(LoopCountTraffic::Ping, count);
            run.value(&case, PING_MEAN).map(|mean| (case, mean))
        })
        .collect();
    let holds = means.iter().all(|(_, mean)| *mean < PING_MOST_US);
    let said: Vec<String> = means.iter().map(|(case, mean)| format!("{} us with {case}", short(*mean))).collect();
    let text = "pings alone take less than 0.1 ms at any loop count";
    run.claims.push(Claim::tested(text, holds, said.join(", ")));
    for count in LOOP_COUNTS {
        let text =
            format!("with the class rule the bulk flow moves the pings' p99 by less than 2x, loop count {count}");
        let quantile = |traffic| run.value(&case(traffic, count), PING_P99);
        let claim = match (quantile(LoopCountTraffic::ClassedPing), quantile(LoopCountTraffic::Classed)) {
            (Some(alone), Some(beside)) => {
                let because = format!("from {} to {} us", short(alone), short(beside));
                Claim::tested(text, beside < alone * MOVED_MOST, because)
            }
            _ => Claim::untested(text, "two workers need two processors"),
        };
        run.claims.push(claim);
    }
}

/// Fits the model of a polling switch (`weir model poll_rtt`) to the published means. They determine both parameters:
/// the time of a loop iteration, and the part of a round trip that is not waiting. The published standard deviation,
/// which is not used for the fit, tests the model.
fn predict(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    let definition = crate::find("lagopus-loop-count")?.definition()?;
    let cases = LOOP_COUNTS.map(|count| case(LoopCountTraffic::Ping, count));
    let [Some(few), Some(many)] = cases.each_ref().map(|case| definition.published(case, PING_MEAN)) else {
        return Ok(());
    };
    let [fewer, more] = LOOP_COUNTS.map(f64::from);
    let stages = f64::from(STAGES);
    let round_us = (many.value - few.value) * 2.0 / (stages * (more - fewer));
    let base_us = few.value - stages * fewer * round_us / 2.0;
    let mut last = None;
    for (case, rounds) in cases.iter().zip([fewer, more]) {
        let polling = PollingSwitch { rounds, round_s: round_us * 1e-6, stages: STAGES, base_s: base_us * 1e-6 };
        let delay = polling.delay()?;
        let (mean, sd) = (delay.mean_s * 1e6, delay.sd_s * 1e6);
        run.figure(case, PING_BY_MODEL, "us", SampledValue { value: mean, sd: Some(sd), samples: 0 });
        last = Some(sd);
    }
    if let (Some(ours), Some(published)) = (last, many.sd) {
        let text = format!("waiting for {STAGES} bursts explains how much published pings vary with loop count {more}");
        let holds = (ours / published - 1.0).abs() < SPREAD_WITHIN;
        let because = format!("standard deviation {} us by the model, {} us published", short(ours), short(published));
        run.claims.push(Claim::tested(text, holds, because));
    }
    run.note(format!(
        "the model has {} us for a round of the published switch and {} us for all that is no waiting; here no burst waits, whatever the loop count, \
         and what is left is the second part",
        short(round_us),
        short(base_us)
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExperimentOptions, find};

    #[test]
    fn the_model_has_the_published_means_and_their_spread() {
        let experiment = find("lagopus-loop-count").unwrap();
        let options = ExperimentOptions { seed: 1, ..ExperimentOptions::default() };
        let mut silent = |_: &str| ();
        let mut run = ExperimentRun::new(&options, experiment.definition().unwrap().small, &mut silent);
        predict(&mut run).unwrap();
        let figures: Vec<(f64, f64)> = run.figures.iter().map(|figure| (figure.ours, figure.sd.unwrap())).collect();
        assert_eq!(figures.len(), 2);
        assert!((figures[0].0 - 507.0).abs() < 1e-6 && (figures[1].0 - 4468.0).abs() < 1e-6, "{figures:?}");
        assert!((figures[1].1 - 1159.0).abs() < 25.0, "{figures:?}");
        assert_eq!(run.claims.len(), 1);
        assert_eq!(run.claims[0].holds, Some(true));
    }
}
