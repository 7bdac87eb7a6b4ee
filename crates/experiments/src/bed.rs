//! A switch between the two ends of a tester.
use crate::tester::{Ends, Load, Seen, Window, tester};
use crate::{ExperimentError, Run};
use std::sync::PoisonError;
use std::time::Duration;
use weir_openflow::model::{Action, FlowMod, Instruction, Match, PortNo};
use weir_switch::threads::{Bursts, Mode, Policy, ThreadsConfig};
use weir_switch::{PortConfig, Switch, SwitchConfig, SwitchError, SwitchHandle};
use weir_units::{Clock, SystemClock};

/// The ports that the tester's ends are.
pub(crate) const PORTS: [PortNo; 2] = [PortNo(1), PortNo(2)];

/// Time between opening the ports and the first frame.
const LEAD: Duration = Duration::from_millis(50);
/// Time that load is offered before it counts: threads come awake, tables into caches.
const WARM_UP: Duration = Duration::from_millis(300);
/// Time that frames may be under way when sending ends.
const LINGER: Duration = Duration::from_millis(200);

/// How the switch's work is spread over threads: a pipeline as in Lagopus.
#[derive(Debug, Clone)]
pub(crate) struct Threads {
    /// Worker threads behind the thread of the ports.
    pub(crate) workers: usize,
    /// All six burst sizes.
    pub(crate) burst: usize,
    /// Turns of a loop after which a burst that is not full is handed on.
    pub(crate) io_loop_count: u32,
    /// What packets of a flow, which go to one worker, have in common.
    pub(crate) policy: Policy,
    /// Classes of traffic whose worker is chosen, as `MATCH=>WORKER`.
    pub(crate) classes: Vec<&'static str>,
}

/// As published for every experiment.
const WORKER_LOOP_COUNT: u32 = 1000;

/// See the module's page.
pub(crate) struct Bed {
    clock: SystemClock,
    switch: SwitchHandle,
    seed: u64,
}

/// What was measured under one load.
pub(crate) struct Measured {
    /// What each end has seen.
    pub(crate) ends: [Seen; 2],
    /// Frames that the switch dropped, by reason.
    pub(crate) drops: Vec<(String, u64)>,
}

impl Bed {
    /// Starts a switch with these entries.
    pub(crate) fn new(run: &Run<'_>, threads: Threads, flows: Vec<FlowMod>) -> Result<Bed, ExperimentError> {
        let config = threads.config()?;
        let clock = config.clock;
        let switch = Switch::start(config)?;
        switch.flow_mods(flows)?;
        Ok(Bed { clock, switch, seed: run.options.seed })
    }

    /// Offers a load for a time and measures; nothing if it was stopped early.
    pub(crate) fn measure(
        &self,
        run: &Run<'_>,
        load: &Load,
        time: Duration,
    ) -> Result<Option<Measured>, ExperimentError> {
        let begin = self.clock.now() + LEAD;
        let from = begin + WARM_UP;
        let window = Window { begin, from, until: from + time };
        let (ports, ends) = tester(load, window, self.clock, self.seed);
        let before = self.switch.snapshot()?.drops;
        for (number, port) in PORTS.into_iter().zip(ports) {
            self.switch.add_port(PortConfig::new(number, port))?;
        }
        let stopped = run.options.cancel.wait(LEAD + WARM_UP + time + LINGER);
        for number in PORTS {
            self.switch.remove_port(number)?;
        }
        let drops = more(&before, self.switch.snapshot()?.drops);
        Ok((!stopped).then(|| Measured { ends: seen(ends), drops }))
    }
}

impl Threads {
    /// A switch of these threads.
    fn config(self) -> Result<SwitchConfig, SwitchError> {
        let classes =
            self.classes.into_iter().map(str::parse).collect::<Result<_, _>>().map_err(SwitchError::Request)?;
        let threads = ThreadsConfig {
            mode: Mode::Pipeline,
            workers: self.workers,
            bursts: Bursts::all(self.burst),
            io_loop_count: self.io_loop_count,
            worker_loop_count: WORKER_LOOP_COUNT,
            policy: self.policy,
            classes,
            ..ThreadsConfig::default()
        };
        Ok(SwitchConfig { threads, ..SwitchConfig::default() })
    }
}

/// What the ends have seen: once their ports are gone nobody else holds it.
fn seen(ends: Ends) -> [Seen; 2] {
    ends.map(|end| std::mem::take(&mut *end.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// By how much counters have grown.
fn more(before: &[(String, u64)], after: Vec<(String, u64)>) -> Vec<(String, u64)> {
    let grown = after.into_iter().map(|(reason, count)| {
        let known = before.iter().find(|(other, _)| *other == reason).map_or(0, |(_, count)| *count);
        (reason, count.saturating_sub(known))
    });
    grown.filter(|(_, count)| *count > 0).collect()
}

impl Measured {
    /// Share of the bulk frames of one end that did not arrive at the other.
    pub(crate) fn loss(&self, from: usize) -> f64 {
        let due = self.ends[from].due;
        if due == 0 { 0.0 } else { due.saturating_sub(self.ends[1 - from].arrived) as f64 / due as f64 }
    }

    /// Notes where frames were lost, and that the switch was kept from the processor, if it was.
    pub(crate) fn disturbances(&self, run: &mut Run<'_>, case: &str) {
        let missed: u64 = self.ends.iter().map(|end| end.missed).sum();
        let gap = self.ends.iter().map(|end| end.longest_gap).max().unwrap_or_default();
        let mut lost: Vec<String> =
            self.drops.iter().map(|(reason, count)| format!("{count} {}", reason.replace('_', " "))).collect();
        if missed > 0 {
            lost.push(format!(
                "{missed} did not fit the port's ring, which nobody looked at for {} us",
                gap.as_micros()
            ));
        }
        if !lost.is_empty() {
            run.note(format!("{case}: lost: {}", lost.join(", ")));
        }
    }
}

/// An entry that sends what matches out of a port, after other actions.
pub(crate) fn entry(priority: u16, matching: Match, before: Vec<Action>, port: PortNo) -> FlowMod {
    let actions = before.into_iter().chain([Action::output(port)]).collect();
    FlowMod::add(priority, matching, vec![Instruction::ApplyActions(actions)])
}
