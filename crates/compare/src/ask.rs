//! Asks all verbs for their answers, one after the other, so that nothing else runs while the live network is
//! measured.
use crate::answer::{AnswerSource, EvaluationMethod, ScenarioAnswer};
use crate::answers::{lab, predict, stations, streams};
use crate::overhead::EmulationOverhead;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_device::TimingStage;
use weir_emulator::{CancelHandle, LabOptions};
use weir_network::result::LabMachineInfo;
use weir_network::{LabProgress, LabResult};
use weir_scenario::{Scenario, defaults};
use weir_sim::network::{VirtualTimeSettings, simulate};
use weir_sim::stations::{has_stations, has_timing};
use weir_sim::{SimulationMonitor, replicate, run};
use weir_units::{Bps, Clock as _, SystemClock};

/// Time between two checks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Rate of a link that takes practically no time.
const INSTANT_LINK_RATE: Bps = Bps(100_000_000_000_000);

/// Settings for answering a scenario.
#[derive(Debug, Clone)]
pub struct ComparisonPlan {
    /// Verbs to ask, in this order.
    pub verbs: Vec<EvaluationMethod>,
    /// Number of live rounds.
    pub rounds: u32,
    /// Number of replications of whole networks in virtual time. Simulations of streams and stations use the
    /// scenario's own number.
    pub replications: u32,
    /// Number of threads that simulate.
    pub threads: usize,
    /// True if hosts of live rounds are network namespaces.
    pub netns: bool,
    /// Rate of links without one in the scenario, for formulas and in virtual time. `None` uses the defaults of these
    /// verbs, and no limit for scenarios with stations.
    pub link_rate: Option<Bps>,
    /// Time that threads take to wake up, for formulas and packet by packet in virtual time. `None` measures it
    /// before a live run, and otherwise uses no time.
    pub wake_up: Option<Duration>,
    /// Names of models to ask in addition to the scenario's own formulas; `all` is all of them.
    pub models: Vec<String>,
}

/// Progress of asking.
#[derive(Debug, Clone, PartialEq)]
pub enum ComparisonProgress<'a> {
    /// Start of a verb's round: verb, number of the round from 1, number of rounds.
    RoundStarted(EvaluationMethod, u32, u32),
    /// Progress within the round.
    RoundRunning(&'a LabProgress),
}

/// Asks all verbs of the plan. Answers that are missing are listed with the reason. After a cancel, the remaining
/// answers are left out.
pub fn ask(
    scenario: &Scenario,
    plan: &ComparisonPlan,
    cancel: &CancelHandle,
    tell: &mut dyn FnMut(ComparisonProgress<'_>),
) -> Vec<ScenarioAnswer> {
    let mut answers = Vec::new();
    let rig = measure_overhead(scenario, plan, cancel);
    let wake_up = plan.wake_up.or(rig.map(|rig| rig.wake_up())).unwrap_or_default();
    for verb in &plan.verbs {
        let answer = match verb {
            _ if cancel.is_cancelled() => ScenarioAnswer::left_out(AnswerSource::new(*verb), "stopped before it began"),
            EvaluationMethod::Predict => {
                answers.extend(predicted(scenario, plan, wake_up, tell));
                continue;
            }
            EvaluationMethod::Simulate if !scenario.streams.is_empty() && scenario.traffic.is_empty() => {
                simulated_streams(scenario, plan, cancel, tell)
            }
            EvaluationMethod::Simulate if has_stations(scenario) && scenario.streams.is_empty() => {
                let rated = plan.link_rate.map(|rate| scenario.clone().with_link_rate(rate));
                simulated_stations(rated.as_ref().unwrap_or(scenario), plan, cancel, tell)
            }
            EvaluationMethod::Simulate => simulated_network(scenario, plan, wake_up, cancel, tell),
            EvaluationMethod::Run | EvaluationMethod::Emulate => match not_live(scenario) {
                Some(why) => ScenarioAnswer::left_out(AnswerSource::new(*verb), why),
                None if *verb == EvaluationMethod::Emulate => emulated(scenario, plan, cancel, tell),
                None => live(scenario, plan, rig, cancel, tell),
            },
        };
        answers.push(answer);
    }
    answers
}

/// Measures the live rig's own delay, if a live run of hosts in this process is planned and needs it.
fn measure_overhead(scenario: &Scenario, plan: &ComparisonPlan, cancel: &CancelHandle) -> Option<EmulationOverhead> {
    let live =
        plan.verbs.contains(&EvaluationMethod::Run) && not_live(scenario).is_none() && !scenario.traffic.is_empty();
    if live && !plan.netns && plan.wake_up.is_none() { EmulationOverhead::measure(scenario, cancel) } else { None }
}

/// Returns why a scenario cannot be run live as described; `None` if it can.
fn not_live(scenario: &Scenario) -> Option<String> {
    if scenario.controller.service.is_some() {
        return Some("a live controller takes the time it takes: expected no `service` in [controller]".to_owned());
    }
    let profiles = scenario.switches.iter().filter_map(|switch| Some((&switch.name, switch.profile.as_deref()?)));
    profiles.into_iter().find_map(|(name, profile)| {
        let wrong = TimingStage::<()>::new(profile, 0).err()?;
        Some(format!("switch {name} cannot be emulated: {wrong}"))
    })
}

/// Runs rounds until they are done, one fails, or they are cancelled.
fn rounds<E: std::fmt::Display>(
    verb: EvaluationMethod,
    count: u32,
    cancel: &CancelHandle,
    tell: &mut dyn FnMut(ComparisonProgress<'_>),
    mut one: impl FnMut(u32, &mut dyn FnMut(LabProgress)) -> Result<LabResult, E>,
) -> Result<Vec<LabResult>, String> {
    let mut results = Vec::new();
    for round in 0..count.max(1) {
        tell(ComparisonProgress::RoundStarted(verb, round + 1, count.max(1)));
        let result = one(round, &mut |progress| tell(ComparisonProgress::RoundRunning(&progress)))
            .map_err(|error| error.to_string())?;
        results.push(result);
        if cancel.is_cancelled() {
            break;
        }
    }
    Ok(results)
}

/// Marks an answer as partial if not all rounds were run.
fn finished(mut answer: ScenarioAnswer, done: usize, asked: u32) -> ScenarioAnswer {
    if answer.is_available() && u32::try_from(done).is_ok_and(|done| done < asked) {
        answer.state = crate::answer::AnswerState::Partial;
    }
    answer
}

fn simulated_network(
    scenario: &Scenario,
    plan: &ComparisonPlan,
    wake_up: Duration,
    cancel: &CancelHandle,
    tell: &mut dyn FnMut(ComparisonProgress<'_>),
) -> ScenarioAnswer {
    let told = Some(scenario.controller.delay).filter(|delay| !delay.is_zero());
    let control_delay = told.unwrap_or(VirtualTimeSettings::default().control_delay);
    let settings = VirtualTimeSettings {
        link_rate: plan.link_rate.unwrap_or(defaults::LINK_RATE),
        control_delay,
        wake_up,
        ..VirtualTimeSettings::default()
    };
    let one = |round: u32, progress: &mut dyn FnMut(LabProgress)| {
        let watch = SimulationMonitor::default();
        let seeded = Scenario { seed: scenario.seed.wrapping_add(u64::from(round)), ..scenario.clone() };
        cancel.set_during(&watch.cancel, || simulate(&seeded, &settings, &watch, progress))
    };
    match rounds(EvaluationMethod::Simulate, plan.replications, cancel, tell, one) {
        Ok(results) => {
            let mut answer = lab::answer(EvaluationMethod::Simulate, scenario, &results);
            streams::add_live(&mut answer, scenario, &results);
            if !wake_up.is_zero() {
                answer.conditions +=
                    &format!("; {:.1} us to wake a thread up that sleeps", wake_up.as_secs_f64() * 1e6);
            }
            finished(answer, results.len(), plan.replications)
        }
        Err(why) => ScenarioAnswer::left_out(AnswerSource::new(EvaluationMethod::Simulate), why),
    }
}

fn live(
    scenario: &Scenario,
    plan: &ComparisonPlan,
    rig: Option<EmulationOverhead>,
    cancel: &CancelHandle,
    tell: &mut dyn FnMut(ComparisonProgress<'_>),
) -> ScenarioAnswer {
    let options = LabOptions { netns: plan.netns, certify: true, cancel: cancel.clone(), ..LabOptions::default() };
    let one = |_, progress: &mut dyn FnMut(LabProgress)| weir_emulator::run(scenario, &options, progress);
    match rounds(EvaluationMethod::Run, plan.rounds, cancel, tell, one) {
        Ok(results) => {
            let mut answer = lab::answer(EvaluationMethod::Run, scenario, &results);
            streams::add_live(&mut answer, scenario, &results);
            answer.conditions += &rig.map_or_else(String::new, |rig| format!("; {rig}"));
            finished(answer, results.len(), plan.rounds)
        }
        Err(why) => ScenarioAnswer::left_out(AnswerSource::new(EvaluationMethod::Run), why),
    }
}

fn emulated(
    scenario: &Scenario,
    plan: &ComparisonPlan,
    cancel: &CancelHandle,
    tell: &mut dyn FnMut(ComparisonProgress<'_>),
) -> ScenarioAnswer {
    let options = LabOptions { emulate: true, cancel: cancel.clone(), ..LabOptions::default() };
    let one = |_, progress: &mut dyn FnMut(LabProgress)| weir_emulator::run(scenario, &options, progress);
    match rounds(EvaluationMethod::Emulate, plan.rounds, cancel, tell, one) {
        Ok(results) => {
            let mut answer = lab::answer(EvaluationMethod::Emulate, scenario, &results);
            streams::add_live(&mut answer, scenario, &results);
            finished(answer, results.len(), plan.rounds)
        }
        Err(why) => ScenarioAnswer::left_out(AnswerSource::new(EvaluationMethod::Emulate), why),
    }
}

fn predicted(
    scenario: &Scenario,
    plan: &ComparisonPlan,
    wake_up: Duration,
    tell: &mut dyn FnMut(ComparisonProgress<'_>),
) -> Vec<ScenarioAnswer> {
    let none = |why: String| vec![ScenarioAnswer::left_out(AnswerSource::new(EvaluationMethod::Predict), why)];
    if scenario.traffic.is_empty() && scenario.streams.is_empty() {
        return none("this scenario has neither [[traffic]] between hosts nor a [[stream]]".to_owned());
    }
    tell(ComparisonProgress::RoundStarted(EvaluationMethod::Predict, 1, 1));
    // Simulated stations treat links without a rate as taking no time, so formulas have to do so, too.
    let unsaid = if has_timing(scenario) { INSTANT_LINK_RATE } else { defaults::LINK_RATE };
    let settings = weir_predict::PredictSettings {
        link_rate: plan.link_rate.unwrap_or(unsaid),
        wake_up,
        models: plan.models.clone(),
    };
    match weir_predict::predict(scenario, &settings) {
        Ok(prediction) => predict::answers(scenario, &prediction),
        Err(why) => none(why.to_string()),
    }
}

/// Results of replications of streams or stations.
struct ReplicatedRuns<R> {
    runs: Vec<R>,
    conditions: String,
    is_partial: bool,
}

/// Runs the scenario's number of replications. Fails if not one was through.
fn replicated<R: Send, E: std::fmt::Display + Send>(
    scenario: &Scenario,
    plan: &ComparisonPlan,
    cancel: &CancelHandle,
    level: &str,
    one: impl Fn(u64, &SimulationMonitor) -> Result<Option<R>, E> + Sync,
) -> Result<ReplicatedRuns<R>, String> {
    let asked = u64::from(scenario.simulate.replications.max(1));
    let (clock, watch) = (SystemClock::start(), SimulationMonitor::default());
    let window = weir_sim::scenario::window(scenario);
    let number = weir_sim::ReplicationLimits { least: asked, most: asked, threads: plan.threads };
    let done = while_watched(&watch, cancel, || replicate(&number, |place| one(place, &watch), |_| true));
    let runs = done.map_err(|why| why.to_string())?.results;
    if runs.is_empty() {
        return Err("stopped before a replication was through".to_owned());
    }
    let build = weir_units::BUILD_KIND;
    let machine = LabMachineInfo::this();
    let conditions = format!(
        "{} x {:.3} s after {:.3} s, {level}, seed {}, in {:.1} s on {} threads, weir {} ({build} build), {} cores of {}, Linux {}",
        runs.len(),
        window.length.as_secs_f64(),
        window.warm_up.as_secs_f64(),
        scenario.seed,
        clock.now().as_secs_f64(),
        plan.threads,
        env!("CARGO_PKG_VERSION"),
        machine.cores,
        machine.cpu,
        machine.kernel
    );
    Ok(ReplicatedRuns { is_partial: (runs.len() as u64) < asked, runs, conditions })
}

fn simulated_streams(
    scenario: &Scenario,
    plan: &ComparisonPlan,
    cancel: &CancelHandle,
    tell: &mut dyn FnMut(ComparisonProgress<'_>),
) -> ScenarioAnswer {
    let level = "lengths and classes through the fabric in virtual time";
    let window = weir_sim::scenario::window(scenario);
    replicated_answer(tell, weir_sim::scenario::model(scenario), |model| {
        let one = |number, watch: &SimulationMonitor| {
            let result = run(model, window, scenario.seed, number, watch)?;
            Ok::<_, weir_sim::FabricNetworkError>(Some(result).filter(|result| !result.partial))
        };
        let done = replicated(scenario, plan, cancel, level, one)?;
        Ok(streams::simulated(&model.groups, &done.runs, done.conditions, done.is_partial))
    })
}

fn simulated_stations(
    scenario: &Scenario,
    plan: &ComparisonPlan,
    cancel: &CancelHandle,
    tell: &mut dyn FnMut(ComparisonProgress<'_>),
) -> ScenarioAnswer {
    let level = "devices as queueing stations in virtual time";
    let window = weir_sim::scenario::window(scenario);
    replicated_answer(tell, weir_sim::stations::plan(scenario), |made| {
        let one = |number, watch: &SimulationMonitor| {
            let result = weir_sim::stations::run(made, window, scenario.seed, number, watch)?;
            Ok::<_, weir_traffic::TrafficError>(Some(result).filter(|result| !result.partial))
        };
        let done = replicated(scenario, plan, cancel, level, one)?;
        Ok(stations::answer(scenario, made, &done.runs, done.conditions, done.is_partial))
    })
}

/// Answers with replications of what was made of the scenario, or says why there is no answer.
fn replicated_answer<M, E: std::fmt::Display>(
    tell: &mut dyn FnMut(ComparisonProgress<'_>),
    made: Result<M, E>,
    answer: impl FnOnce(&M) -> Result<ScenarioAnswer, String>,
) -> ScenarioAnswer {
    let answered = made.map_err(|why| why.to_string()).and_then(|made| {
        tell(ComparisonProgress::RoundStarted(EvaluationMethod::Simulate, 1, 1));
        answer(&made)
    });
    answered.unwrap_or_else(|why| ScenarioAnswer::left_out(AnswerSource::new(EvaluationMethod::Simulate), why))
}

/// Runs work that a watch can stop, and sets the watch if `cancel` is cancelled.
fn while_watched<R>(watch: &SimulationMonitor, cancel: &CancelHandle, work: impl FnOnce() -> R) -> R {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if cancel.wait(LOOK_EVERY) {
                    watch.cancel.store(true, Ordering::Relaxed);
                    break;
                }
            }
        });
        let result = work();
        over.store(true, Ordering::Relaxed);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{AnswerState, PerformanceMetric};

    fn scenario(more: &str) -> Scenario {
        let text = format!(
            "[[switch]]\nname = \"s1\"\n{more}\n\
             [[host]]\nname = \"a\"\nswitch = \"s1\"\nip = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\nswitch = \"s1\"\nip = \"10.0.0.2/24\"\n\
             [[traffic]]\nkind = \"udp\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit/s\"\nduration = \"20ms\"\n"
        );
        Scenario::parse(&text, "made up").unwrap()
    }

    fn plan(verbs: &[EvaluationMethod]) -> ComparisonPlan {
        let link_rate = None;
        let models = Vec::new();
        let (threads, netns, wake_up) = (1, false, Some(Duration::ZERO));
        ComparisonPlan { verbs: verbs.to_vec(), rounds: 1, replications: 2, threads, netns, link_rate, wake_up, models }
    }

    #[test]
    fn what_a_live_network_cannot_be_is_not_run_live() {
        let timed = scenario("[switch.timing]\ncontrol = { delay = \"20ms\", capacity = 70 }");
        let answers = ask(&timed, &plan(&[EvaluationMethod::Run]), &CancelHandle::new(), &mut |_| ());
        let AnswerState::LeftOut(why) = &answers[0].state else { panic!("{answers:?}") };
        assert!(why.starts_with("switch s1 cannot be emulated: profile s1: found timing.control"), "{why}");
        for live in ["", "[switch.timing]\ndata = \"9us\""] {
            assert_eq!(not_live(&scenario(live)), None);
        }
    }

    #[test]
    fn a_link_rate_has_its_effect_on_formulas_and_stations() {
        // Frames of 1042 bytes on two links of 10 Mbit/s take 1667 us, and 9 us in the switch.
        let timed = scenario("[switch.timing]\ndata = \"9us\"");
        let rated = |link_rate| {
            let plan = ComparisonPlan { link_rate, ..plan(&[EvaluationMethod::Predict, EvaluationMethod::Simulate]) };
            let answers = ask(&timed, &plan, &CancelHandle::new(), &mut |_| ());
            let rows =
                answers.iter().map(|answer| answer.rows.iter().find(|row| row.subject.name == "udp a > b").unwrap());
            rows.map(|row| row.figures[&PerformanceMetric::DelayMean].value).collect::<Vec<_>>()
        };
        let [fast, slow] = [None, Some(Bps(10_000_000))].map(rated);
        assert!(fast.len() == 2 && fast.iter().all(|mean_s| *mean_s < 0.1e-3), "{fast:?}");
        assert!(slow.len() == 2 && slow.iter().all(|mean_s| (1.6e-3..1.8e-3).contains(mean_s)), "{slow:?}");
    }

    #[test]
    fn simulations_are_replicated_and_can_be_stopped() {
        let mut told = Vec::new();
        let cancel = CancelHandle::new();
        let plan = plan(&[EvaluationMethod::Simulate]);
        let answers = ask(&scenario(""), &plan, &cancel, &mut |progress| {
            if let ComparisonProgress::RoundStarted(verb, round, rounds) = progress {
                told.push((verb, round, rounds));
            }
        });
        assert_eq!(told, [(EvaluationMethod::Simulate, 1, 2), (EvaluationMethod::Simulate, 2, 2)]);
        assert_eq!((answers[0].runs, &answers[0].state), (2, &AnswerState::Answered));
        let row = answers[0].rows.iter().find(|row| row.subject.name == "udp a > b").unwrap();
        assert!(row.samples > 0 && !row.quantiles_s.is_empty(), "{row:?}");
        cancel.cancel();
        let answers = ask(&scenario(""), &plan, &cancel, &mut |_| ());
        assert!(!answers[0].is_available());
    }
}
