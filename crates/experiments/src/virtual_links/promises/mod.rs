//! Experiment `network-promises`: drawn sets of virtual networks, simulated packet by packet beside what they were
//! promised.
mod drawn;

use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun, SampledValue};
use weir_emulator::CancelHandle;
use weir_network::promises::PromiseResult;
use weir_network::result::LabResult;
use weir_scenario::{Scenario, TrafficKind};
use weir_sim::network::{VirtualTimeSettings, simulate};
use weir_sim::{ReplicationLimits, SimulationMonitor, replicate};
use weir_traffic::RandomStream;

/// Rate of each network that shares one line, and rate of the line as frames of the longest packets with tags see it.
const SHARE_MBPS: f64 = 5.0;
const LINE_MBPS: f64 = 100.0 * 1514.0 / 1518.0;
/// Tolerance of rates, as a share.
const RATE: f64 = 0.005;

/// Findings on one set.
#[derive(Debug, Clone, Default)]
struct SetFindings {
    asked: usize,
    admitted: usize,
    /// Networks that lost packets although they were in profile, and those with a packet later than its bound.
    lossy: usize,
    late: usize,
    /// Longest delay over the bound, and rate over the guaranteed one, of each network in profile.
    nearness: Vec<f64>,
    /// Promises that were not kept, in words.
    broken: Vec<String>,
    rates: Vec<f64>,
}

/// Simulates all sets, and a full line.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    run.simulated = true;
    let (time, seed, cancel) = (run.sizes.time.0, run.options.seed, run.options.cancel.clone());
    let count = u64::from(run.sizes.replications.max(1));
    let milliseconds = time.as_millis();
    let once = |number: u64| set(seed, number, milliseconds, &cancel);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let progress = &mut *run.progress;
    progress(&format!("{count} sets of networks"));
    let tell = |done: &[SetFindings]| {
        if done.len().is_multiple_of(10) {
            progress(&format!("{} of {count} sets", done.len()));
        }
        false
    };
    let found: Vec<SetFindings> = replicate(&ReplicationLimits { least: 1, most: count, threads }, once, tell)?.results;
    judge(run, &found);
    full_line(run, milliseconds, &cancel)
}

/// Simulates one set; `None` if it was stopped.
fn set(
    seed: u64,
    number: u64,
    milliseconds: u128,
    cancel: &CancelHandle,
) -> Result<Option<SetFindings>, ExperimentError> {
    if cancel.is_cancelled() {
        return Ok(None);
    }
    let drawn = drawn::draw(&mut RandomStream::new(seed, 0, number), milliseconds)?;
    let Some(result) = simulated(&drawn.scenario, cancel)? else { return Ok(None) };
    let mut findings = SetFindings { asked: drawn.asked, admitted: drawn.admitted, ..SetFindings::default() };
    judge_promises(&drawn.scenario, &result, &mut findings);
    findings.broken.iter_mut().for_each(|text| *text = format!("set {number}, {text}"));
    Ok(Some(findings))
}

fn simulated(scenario: &Scenario, cancel: &CancelHandle) -> Result<Option<LabResult>, ExperimentError> {
    let watch = SimulationMonitor::default();
    let result = cancel.set_during(&watch.cancel, || {
        simulate(scenario, &VirtualTimeSettings::default(), &watch, &mut |_| {})
            .map_err(|error| ExperimentError::Case(error.to_string()))
    })?;
    Ok((!result.partial).then_some(result))
}

fn judge_promises(scenario: &Scenario, result: &LabResult, findings: &mut SetFindings) {
    for promise in result.promises.iter().filter(|promise| promise.out_of_profile.is_none()) {
        let item = result
            .traffic
            .iter()
            .position(|item| item.kind == "udp" && item.from == promise.from && item.to == promise.to);
        let Some(number) = item else { continue };
        findings.lossy += usize::from(promise.loss.is_some_and(|loss| loss > 0.0));
        if promise.kept == Some(false) {
            let PromiseResult { network, from, to, loss, measured_us, bound_us, .. } = promise;
            let [loss, measured, bound] = [*loss, *measured_us, *bound_us].map(Option::unwrap_or_default);
            findings.broken.push(format!(
                "{network} from {from} to {to}: {:.3} % lost, at most {measured:.0} us, bound {bound:.0}",
                loss * 100.0
            ));
        }
        if let Some((measured, bound)) = promise.measured_us.zip(promise.bound_us) {
            findings.late += usize::from(promise.kept == Some(false) && promise.loss == Some(0.0));
            findings.nearness.push(measured / bound);
        }
        if let TrafficKind::Udp { duration, offered, .. } = &scenario.traffic[number].kind {
            let bytes = result.traffic[number].received as f64 * offered.mean_bytes().unwrap_or(0.0);
            findings.rates.push(8.0 * bytes / duration.as_secs_f64() / promise.guaranteed_bps as f64);
        }
    }
}

fn judge(run: &mut ExperimentRun<'_>, found: &[SetFindings]) {
    let sum = |of: fn(&SetFindings) -> usize| found.iter().map(of).sum::<usize>();
    let [asked, admitted] = [sum(|set| set.asked), sum(|set| set.admitted)];
    let nearness: Vec<f64> = found.iter().flat_map(|set| set.nearness.iter().copied()).collect();
    let rates: Vec<f64> = found.iter().flat_map(|set| set.rates.iter().copied()).collect();
    let examined = nearness.len();
    run.figure("all sets", "networks asked for", "", SampledValue::mean_of(&[asked as f64]));
    run.figure("all sets", "networks admitted", "", SampledValue::mean_of(&[admitted as f64]));
    run.figure("all sets", "networks in profile", "", SampledValue::mean_of(&[examined as f64]));
    run.figure("all sets", "longest delay over bound", "", SampledValue::mean_of(&nearness));
    let most = nearness.iter().copied().fold(0.0, f64::max);
    run.figure("all sets", "largest of these", "", SampledValue::mean_of(&[most]));
    let lossy = sum(|set| set.lossy);
    run.figure("all sets", "networks in profile with loss", "", SampledValue::mean_of(&[lossy as f64]));
    found.iter().flat_map(|set| &set.broken).for_each(|text| run.note(format!("not kept: {text}")));
    let of = format!("of {examined} networks in profile");
    let claim = |text: &str, wrong: usize| Claim::tested(text, wrong == 0 && examined > 0, format!("{wrong} {of}"));
    run.claims.push(claim("no network in profile loses a packet", lossy));
    run.claims.push(claim("no packet in profile is later than its bound", sum(|set| set.late)));
    // The ends of the time cut off up to one packet each.
    let off = rates.iter().map(|rate| (rate - 1.0).abs()).fold(0.0, f64::max);
    let because = format!("{:.3} % off at most", 100.0 * off);
    run.claims.push(Claim::tested("networks in profile get their rates within 0.5 %", off <= RATE, because));
}

/// Fills one line with equal networks, and compares their number with what the line carries.
fn full_line(run: &mut ExperimentRun<'_>, milliseconds: u128, cancel: &CancelHandle) -> Result<(), ExperimentError> {
    let admitted = (1..=24)
        .map_while(|networks| {
            Scenario::parse(&drawn::line(networks, milliseconds), "line").ok().map(|one| (networks, one))
        })
        .last();
    let Some((networks, scenario)) = admitted else {
        return Err(ExperimentError::Case("no network fits a line of 100 Mbit/s".to_owned()));
    };
    let Some(result) = simulated(&scenario, cancel)? else { return Ok(()) };
    let kept = result.promises.iter().filter(|promise| promise.kept == Some(true)).count();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number above 0")]
    let carried = (LINE_MBPS / SHARE_MBPS) as usize;
    run.figure("full line", "networks admitted", "", SampledValue::mean_of(&[networks as f64]));
    run.figure("full line", "networks that it carries", "", SampledValue::mean_of(&[carried as f64]));
    let share = networks as f64 / carried as f64;
    let because = format!("{networks} of {carried}; {kept} promises kept");
    let text = "at least 90 % of what a line carries is admitted, and kept";
    run.claims.push(Claim::tested(text, share >= 0.9 && kept == networks, because));
    Ok(())
}
