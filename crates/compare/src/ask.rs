//! Asks all verbs for their answers, one after the other, so that nothing else runs while the live network is
//! measured.
use crate::answer::{Answer, Answerer, Verb};
use crate::answers::{lab, predict, stations, streams};
use crate::rig::Rig;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_emulator::result::Machine;
use weir_emulator::{Cancel, LabResult, Options, Progress};
use weir_scenario::{Scenario, native};
use weir_sim::network::{Settings, simulate};
use weir_sim::stations::has_timing;
use weir_sim::{Watch, replicate, run};
use weir_timing::Stage;
use weir_units::{Bps, Clock as _, SystemClock};

/// Time between two checks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Rate of a link that takes practically no time.
const NO_TIME: Bps = Bps(100_000_000_000_000);

/// Settings for answering a scenario.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Verbs to ask, in this order.
    pub verbs: Vec<Verb>,
    /// Number of live rounds.
    pub rounds: u32,
    /// Number of replications of whole networks in virtual time. Simulations of streams and stations use the
    /// scenario's own number.
    pub replications: u32,
    /// Number of threads that simulate.
    pub threads: usize,
    /// True if hosts of live rounds are network namespaces.
    pub netns: bool,
    /// Rate of links without one in the scenario, for formulas and packet by packet in virtual time. `None` uses the
    /// defaults of these verbs, and no limit for scenarios with stations.
    pub link_rate: Option<Bps>,
    /// Time that threads take to wake up, for formulas and packet by packet in virtual time. `None` measures it
    /// before a live run, and otherwise uses no time.
    pub wake_up: Option<Duration>,
    /// Names of models to ask in addition to the scenario's own formulas; `all` is all of them.
    pub models: Vec<String>,
}

/// Progress of asking.
#[derive(Debug, Clone, PartialEq)]
pub enum Told<'a> {
    /// Start of a verb's round: verb, number of the round from 1, number of rounds.
    Begins(Verb, u32, u32),
    /// Progress within the round.
    Goes(&'a Progress),
}

/// Asks all verbs of the plan. Answers that are missing are listed with the reason. After a cancel, the remaining
/// answers are left out.
pub fn ask(scenario: &Scenario, plan: &Plan, cancel: &Cancel, tell: &mut dyn FnMut(Told<'_>)) -> Vec<Answer> {
    let mut answers = Vec::new();
    let rig = rig(scenario, plan, cancel);
    let wake_up = plan.wake_up.or(rig.map(|rig| rig.wake_up())).unwrap_or_default();
    for verb in &plan.verbs {
        let answer = match verb {
            _ if cancel.is_cancelled() => Answer::left_out(Answerer::new(*verb), "stopped before it began"),
            Verb::Predict => {
                answers.extend(predicted(scenario, plan, wake_up, tell));
                continue;
            }
            Verb::Simulate if !scenario.streams.is_empty() => simulated_streams(scenario, plan, cancel, tell),
            Verb::Simulate if has_timing(scenario) => simulated_stations(scenario, plan, cancel, tell),
            Verb::Simulate => simulated_network(scenario, plan, wake_up, cancel, tell),
            Verb::Run | Verb::Emulate => match not_live(scenario) {
                Some(why) => Answer::left_out(Answerer::new(*verb), why),
                None if *verb == Verb::Emulate => emulated(scenario, plan, cancel, tell),
                None => live(scenario, plan, rig, cancel, tell),
            },
        };
        answers.push(answer);
    }
    answers
}

/// Measures the live rig's own delay, if a live run of hosts in this process is planned and needs it.
fn rig(scenario: &Scenario, plan: &Plan, cancel: &Cancel) -> Option<Rig> {
    let live = plan.verbs.contains(&Verb::Run) && not_live(scenario).is_none() && !scenario.traffic.is_empty();
    if live && !plan.netns && plan.wake_up.is_none() { Rig::measure(scenario, cancel) } else { None }
}

/// Returns why a scenario cannot be run live as described; `None` if it can.
fn not_live(scenario: &Scenario) -> Option<String> {
    if scenario.controller.service.is_some() {
        return Some("a live controller takes the time it takes: expected no `service` in [controller]".to_owned());
    }
    let profiles = scenario.switches.iter().filter_map(|switch| Some((&switch.name, switch.profile.as_deref()?)));
    profiles.into_iter().find_map(|(name, profile)| {
        let wrong = Stage::<()>::new(profile, 0).err()?;
        Some(format!("switch {name} cannot be emulated: {wrong}"))
    })
}

/// Runs rounds until they are done, one fails, or they are cancelled.
fn rounds<E: std::fmt::Display>(
    verb: Verb,
    count: u32,
    cancel: &Cancel,
    tell: &mut dyn FnMut(Told<'_>),
    mut one: impl FnMut(u32, &mut dyn FnMut(Progress)) -> Result<LabResult, E>,
) -> Result<Vec<LabResult>, String> {
    let mut results = Vec::new();
    for round in 0..count.max(1) {
        tell(Told::Begins(verb, round + 1, count.max(1)));
        let result = one(round, &mut |progress| tell(Told::Goes(&progress))).map_err(|error| error.to_string())?;
        results.push(result);
        if cancel.is_cancelled() {
            break;
        }
    }
    Ok(results)
}

/// Marks an answer as partial if not all rounds were run.
fn finished(mut answer: Answer, done: usize, asked: u32) -> Answer {
    if answer.is_there() && u32::try_from(done).is_ok_and(|done| done < asked) {
        answer.state = crate::answer::State::Partial;
    }
    answer
}

fn simulated_network(
    scenario: &Scenario,
    plan: &Plan,
    wake_up: Duration,
    cancel: &Cancel,
    tell: &mut dyn FnMut(Told<'_>),
) -> Answer {
    let told = Some(scenario.controller.delay).filter(|delay| !delay.is_zero());
    let control_delay = told.unwrap_or(Settings::default().control_delay);
    let settings = Settings { link_rate: plan.link_rate.unwrap_or(native::LINK_RATE), control_delay, wake_up };
    let one = |round: u32, progress: &mut dyn FnMut(Progress)| {
        let watch = Watch::default();
        let seeded = Scenario { seed: scenario.seed.wrapping_add(u64::from(round)), ..scenario.clone() };
        simulate(&seeded, &settings, &watch, &mut |told| {
            progress(told);
            watch.cancel.store(cancel.is_cancelled(), Ordering::Relaxed);
        })
    };
    match rounds(Verb::Simulate, plan.replications, cancel, tell, one) {
        Ok(results) => {
            let mut answer = lab::answer(Verb::Simulate, scenario, &results);
            if !wake_up.is_zero() {
                answer.conditions +=
                    &format!("; {:.1} us to wake a thread up that sleeps", wake_up.as_secs_f64() * 1e6);
            }
            finished(answer, results.len(), plan.replications)
        }
        Err(why) => Answer::left_out(Answerer::new(Verb::Simulate), why),
    }
}

fn live(scenario: &Scenario, plan: &Plan, rig: Option<Rig>, cancel: &Cancel, tell: &mut dyn FnMut(Told<'_>)) -> Answer {
    let options = Options { netns: plan.netns, cancel: cancel.clone(), ..Options::default() };
    let one = |_, progress: &mut dyn FnMut(Progress)| weir_emulator::run(scenario, &options, progress);
    match rounds(Verb::Run, plan.rounds, cancel, tell, one) {
        Ok(results) => {
            let mut answer = lab::answer(Verb::Run, scenario, &results);
            streams::add_live(&mut answer, scenario, &results);
            answer.conditions += &rig.map_or_else(String::new, |rig| format!("; {rig}"));
            finished(answer, results.len(), plan.rounds)
        }
        Err(why) => Answer::left_out(Answerer::new(Verb::Run), why),
    }
}

fn emulated(scenario: &Scenario, plan: &Plan, cancel: &Cancel, tell: &mut dyn FnMut(Told<'_>)) -> Answer {
    let options = Options { emulate: true, cancel: cancel.clone(), ..Options::default() };
    let one = |_, progress: &mut dyn FnMut(Progress)| weir_emulator::run(scenario, &options, progress);
    match rounds(Verb::Emulate, plan.rounds, cancel, tell, one) {
        Ok(results) => {
            let mut answer = lab::answer(Verb::Emulate, scenario, &results);
            streams::add_live(&mut answer, scenario, &results);
            let certificates = results.iter().filter_map(|result| result.certificate.as_ref());
            if let Some(worst) = certificates.max_by_key(|certificate| certificate.verdict) {
                answer.conditions += &format!("; times of the worst round {}", worst.verdict);
            }
            finished(answer, results.len(), plan.rounds)
        }
        Err(why) => Answer::left_out(Answerer::new(Verb::Emulate), why),
    }
}

fn predicted(scenario: &Scenario, plan: &Plan, wake_up: Duration, tell: &mut dyn FnMut(Told<'_>)) -> Vec<Answer> {
    let none = |why: String| vec![Answer::left_out(Answerer::new(Verb::Predict), why)];
    if scenario.traffic.is_empty() && scenario.streams.is_empty() {
        return none("this scenario has neither [[traffic]] between hosts nor a [[stream]]".to_owned());
    }
    tell(Told::Begins(Verb::Predict, 1, 1));
    // Simulated stations treat links without a rate as taking no time, so formulas have to do so, too.
    let unsaid = if has_timing(scenario) { NO_TIME } else { native::LINK_RATE };
    let settings =
        weir_predict::Settings { link_rate: plan.link_rate.unwrap_or(unsaid), wake_up, models: plan.models.clone() };
    match weir_predict::predict(scenario, &settings) {
        Ok(prediction) => predict::answers(scenario, &prediction),
        Err(why) => none(why.to_string()),
    }
}

/// Results of replications of streams or stations.
struct Replicated<R> {
    runs: Vec<R>,
    conditions: String,
    is_partial: bool,
}

/// Runs the scenario's number of replications.
fn replicated<R: Send, E: std::fmt::Display + Send>(
    scenario: &Scenario,
    plan: &Plan,
    cancel: &Cancel,
    level: &str,
    one: impl Fn(u64, &Watch) -> Result<Option<R>, E> + Sync,
) -> Result<Replicated<R>, String> {
    let asked = u64::from(scenario.simulate.replications.max(1));
    let (clock, watch) = (SystemClock::start(), Watch::default());
    let window = weir_sim::scenario::window(scenario);
    let number = weir_sim::Plan { least: asked, most: asked, threads: plan.threads };
    let done = while_watched(&watch, cancel, || replicate(&number, |place| one(place, &watch), |_| true));
    let runs = done.map_err(|why| why.to_string())?.results;
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let machine = Machine::this();
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
    Ok(Replicated { is_partial: (runs.len() as u64) < asked, runs, conditions })
}

fn simulated_streams(scenario: &Scenario, plan: &Plan, cancel: &Cancel, tell: &mut dyn FnMut(Told<'_>)) -> Answer {
    let none = |why: String| Answer::left_out(Answerer::new(Verb::Simulate), why);
    let model = match weir_sim::scenario::model(scenario) {
        Ok(model) => model,
        Err(why) => return none(why.to_string()),
    };
    tell(Told::Begins(Verb::Simulate, 1, 1));
    let window = weir_sim::scenario::window(scenario);
    let one = |number, watch: &Watch| {
        let result = run(&model, window, scenario.seed, number, watch)?;
        Ok::<_, weir_sim::ModelError>(Some(result).filter(|result| !result.partial))
    };
    match replicated(scenario, plan, cancel, "lengths and classes through the fabric in virtual time", one) {
        Ok(done) => streams::simulated(&model.groups, &done.runs, done.conditions, done.is_partial),
        Err(why) => none(why),
    }
}

fn simulated_stations(scenario: &Scenario, plan: &Plan, cancel: &Cancel, tell: &mut dyn FnMut(Told<'_>)) -> Answer {
    let none = |why: String| Answer::left_out(Answerer::new(Verb::Simulate), why);
    let made = match weir_sim::stations::plan(scenario) {
        Ok(made) => made,
        Err(why) => return none(why.to_string()),
    };
    tell(Told::Begins(Verb::Simulate, 1, 1));
    let window = weir_sim::scenario::window(scenario);
    let one = |number, watch: &Watch| {
        let result = weir_sim::stations::run(&made, window, scenario.seed, number, watch)?;
        Ok::<_, weir_traffic::TrafficError>(Some(result).filter(|result| !result.partial))
    };
    match replicated(scenario, plan, cancel, "devices as queueing stations in virtual time", one) {
        Ok(done) => stations::answer(scenario, &made, &done.runs, done.conditions, done.is_partial),
        Err(why) => none(why),
    }
}

/// Runs work that a watch can stop, and sets the watch if `cancel` is cancelled.
fn while_watched<R>(watch: &Watch, cancel: &Cancel, work: impl FnOnce() -> R) -> R {
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
    use crate::answer::State;

    fn scenario(more: &str) -> Scenario {
        let text = format!(
            "[[switch]]\nname = \"s1\"\n{more}\n\
             [[host]]\nname = \"a\"\nswitch = \"s1\"\nip = \"10.0.0.1/24\"\n[[host]]\nname = \"b\"\nswitch = \"s1\"\nip = \"10.0.0.2/24\"\n\
             [[traffic]]\nkind = \"udp\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit/s\"\nduration = \"20ms\"\n"
        );
        Scenario::parse(&text, "made up").unwrap()
    }

    fn plan(verbs: &[Verb]) -> Plan {
        let link_rate = None;
        let models = Vec::new();
        let (threads, netns, wake_up) = (1, false, Some(Duration::ZERO));
        Plan { verbs: verbs.to_vec(), rounds: 1, replications: 2, threads, netns, link_rate, wake_up, models }
    }

    #[test]
    fn what_a_live_network_cannot_be_is_not_run_live() {
        let timed = scenario("[switch.timing]\ncontrol = { delay = \"20ms\", capacity = 70 }");
        let answers = ask(&timed, &plan(&[Verb::Run]), &Cancel::new(), &mut |_| ());
        let State::LeftOut(why) = &answers[0].state else { panic!("{answers:?}") };
        assert!(why.starts_with("switch s1 cannot be emulated: profile s1: found timing.control"), "{why}");
        for live in ["", "[switch.timing]\ndata = \"9us\""] {
            assert_eq!(not_live(&scenario(live)), None);
        }
    }

    #[test]
    fn simulations_are_replicated_and_can_be_stopped() {
        let mut told = Vec::new();
        let cancel = Cancel::new();
        let plan = plan(&[Verb::Simulate]);
        let answers = ask(&scenario(""), &plan, &cancel, &mut |progress| {
            if let Told::Begins(verb, round, rounds) = progress {
                told.push((verb, round, rounds));
            }
        });
        assert_eq!(told, [(Verb::Simulate, 1, 2), (Verb::Simulate, 2, 2)]);
        assert_eq!((answers[0].runs, &answers[0].state), (2, &State::Answered));
        let row = answers[0].rows.iter().find(|row| row.subject.name == "udp a > b").unwrap();
        assert!(row.samples > 0 && !row.quantiles_s.is_empty(), "{row:?}");
        cancel.cancel();
        let answers = ask(&scenario(""), &plan, &cancel, &mut |_| ());
        assert!(!answers[0].is_there());
    }
}
