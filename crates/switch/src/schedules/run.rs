//! Runs one seed: draws the plan, drives the parts, brings them to rest and checks the result.
use super::cable::{CableFarEnd, CablePort, cable};
use super::checks;
use super::controller::{KEYS, ScriptedController};
use super::forwarding_oracle::ForwardingOracle;
use super::frames;
use super::memory_connection::wire;
use super::plan::SchedulePlan;
use super::schedule_rng::ScheduleRng;
use super::scheduled_switch::{ScheduledSwitch, TurnCollector};
use super::script::ScriptInputs;
use super::tenant;
use crate::clock::virtual_time::ThreadVirtualTime;
use crate::config::{PortConfig, SoftwareSwitchConfig};
use crate::control::{ByteStream, ControlContext};
use crate::handle::AssembledSwitch;
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use weir_openflow::Version;
use weir_openflow::model::PortNo;

/// Number of steps that a failure shows.
const SHOWN: usize = 40;

/// Result of a seed without a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScheduleReport {
    /// Number of steps taken.
    pub steps: u64,
    /// Number of frames sent to the switch, including packet-outs.
    pub frames: u64,
    /// Number of messages that controllers sent.
    pub messages: u64,
    /// Number of faults by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Hash of all steps in order; equal runs have equal hashes.
    pub trace: u64,
}

/// A seed that failed.
#[derive(Debug, Clone)]
pub struct ScheduleFailure {
    /// The seed that failed.
    pub seed: u64,
    /// Plan of the run, as text.
    pub plan: String,
    /// Description of the failure.
    pub problem: String,
    /// The last steps, the newest at the end.
    pub steps: Vec<String>,
}

impl std::fmt::Display for ScheduleFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.problem)?;
        writeln!(f, "{}", self.plan)?;
        self.steps.iter().try_for_each(|step| writeln!(f, "  {step}"))?;
        let command = "cargo run -p weir-switch --features schedules --example schedules --";
        write!(f, "again: {command} --seeds {0}..{1}", self.seed, self.seed + 1)
    }
}

/// Runs a seed.
///
/// # Errors
/// The first check that failed, with the last steps.
pub fn run(seed: u64) -> Result<ScheduleReport, Box<ScheduleFailure>> {
    ThreadVirtualTime::start();
    let result = catch_unwind(|| play(seed)).unwrap_or_else(|panic| {
        let problem = format!("panic while the switch was made or taken apart: {}", words_of(&*panic));
        Err(Box::new(ScheduleFailure { seed, plan: String::new(), problem, steps: Vec::new() }))
    });
    ThreadVirtualTime::end();
    result
}

/// Makes a seed's switch, drives it and ends it.
fn play(seed: u64) -> Result<ScheduleReport, Box<ScheduleFailure>> {
    let mut dice = ScheduleRng::new(seed, 0);
    let plan = SchedulePlan::draw(&mut dice);
    let words = format!("{plan:?}");
    let mut world = ScheduleRun::new(plan, dice);
    let drive =
        |world: &mut ScheduleRun| world.play().and_then(|()| world.calm()).and_then(|()| checks::at_rest(world));
    // A panic of the switch is reported like any other failure. The parts are not used after it.
    let driven = catch_unwind(AssertUnwindSafe(|| drive(&mut world)));
    let ScheduleRun { mut report, steps, parts, hosts, controllers, gone, ledger, .. } = world;
    let all = || controllers.iter().chain(&gone);
    report.frames = ledger.sent() as u64;
    report.messages = all().map(ScriptedController::messages).sum();
    report.faults.insert("partial_read_or_write", all().map(ScriptedController::partial).sum());
    let result = match driven {
        Ok(result) => result.and_then(|()| checks::at_end(parts, hosts)),
        Err(panic) => {
            std::mem::forget(parts);
            Err(format!("panic: {}", words_of(&*panic)))
        }
    };
    match result {
        Ok(()) => Ok(report),
        Err(problem) => Err(Box::new(ScheduleFailure { seed, plan: words, problem, steps: steps.into() })),
    }
}

/// Returns the message of a panic.
fn words_of(panic: &dyn Any) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// A host at the other end of a port.
pub(super) struct CableHost {
    pub(super) number: PortNo,
    pub(super) end: CableFarEnd,
    pub(super) is_gone: bool,
}

/// The switch and everything around it.
pub(super) struct ScheduleRun {
    pub(super) plan: SchedulePlan,
    pub(super) dice: ScheduleRng,
    pub(super) parts: ScheduledSwitch,
    pub(super) hosts: Vec<CableHost>,
    pub(super) controllers: Vec<ScriptedController>,
    /// Controllers whose connections have ended.
    pub(super) gone: Vec<ScriptedController>,
    next_key: u16,
    next_virtual_key: u16,
    pub(super) ledger: ForwardingOracle,
    /// Number of frames that hosts sent.
    pub(super) sent: u64,
    /// True if a port vanished or lost its link.
    pub(super) ports_failed: bool,
    pub(super) report: ScheduleReport,
    steps: VecDeque<String>,
}

impl ScheduleRun {
    pub(super) fn new(plan: SchedulePlan, mut dice: ScheduleRng) -> ScheduleRun {
        ThreadVirtualTime::set_reading(plan.reading);
        let mut hosts = Vec::new();
        let mut ports = Vec::new();
        for number in 1..=plan.ports {
            let (port, host) = host(number, plan.cable);
            ports.push(PortConfig::new(PortNo(number), Box::new(port)));
            hosts.push(host);
        }
        let config = SoftwareSwitchConfig {
            datapath: plan.datapath(),
            threads: plan.threads(),
            ports,
            spin: plan.spin,
            fabric: plan.has_virtual.then(|| tenant::fabric(plan.ports)),
            ..SoftwareSwitchConfig::default()
        };
        let mut kept = TurnCollector::on(plan.cores);
        let assembled = AssembledSwitch::new(config, false, &mut kept).expect("the plan is one that can be");
        let versions = plan.versions.clone();
        let seed = dice.next();
        let mut world = ScheduleRun {
            plan,
            dice: ScheduleRng::new(seed, 1),
            parts: ScheduledSwitch::new(assembled, kept),
            hosts,
            controllers: Vec::new(),
            gone: Vec::new(),
            next_key: 1,
            next_virtual_key: frames::FIRST_VIRTUAL_KEY,
            ledger: ForwardingOracle::default(),
            sent: 0,
            ports_failed: false,
            report: ScheduleReport::default(),
            steps: VecDeque::new(),
        };
        // The engine shares the tables from its first turn on; workers wait for that.
        world.parts.step_engine();
        versions.into_iter().for_each(|version| world.connect(version));
        world
    }

    pub(super) fn connect(&mut self, version: Version) {
        self.connect_to(self.parts.control.clone(), version, false);
    }

    /// Connects a controller to the switch, or to its virtual switch.
    pub(super) fn connect_to(&mut self, control: ControlContext, version: Version, is_virtual: bool) {
        let wire_dice = ScheduleRng::new(self.dice.next(), 2);
        let (switch_end, controller_end) = wire(self.plan.wire, self.plan.piece, wire_dice);
        let name = format!("controller {} ({})", self.gone.len() + self.controllers.len(), version.name());
        self.parts.serve(control, ByteStream::new(switch_end));
        let next = if is_virtual { &mut self.next_virtual_key } else { &mut self.next_key };
        let first_key = *next;
        *next += KEYS;
        self.controllers.push(ScriptedController::new(
            name,
            version,
            controller_end,
            first_key,
            ThreadVirtualTime::now(),
        ));
    }

    /// Runs the plan's number of steps, each of a part chosen by the dice.
    fn play(&mut self) -> Result<(), String> {
        for _ in 0..self.plan.steps {
            self.step()?;
            self.parts.engine.check_bounds()?;
        }
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        if self.dice.hits(self.plan.faults) {
            self.fault();
        }
        match self.dice.below(16) {
            0..5 => self.turn_engine(),
            5..7 => self.turn_worker(),
            7..10 => {
                let tasks = 1 + self.dice.below(4);
                self.parts.step_control(tasks);
                self.note(|| format!("control: {tasks} tasks"));
            }
            10..12 => return self.turn_controller(),
            12 => self.send_frames(),
            13 => return self.receive_frames(),
            14 => self.script(),
            _ => self.pass_time(),
        }
        Ok(())
    }

    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        self.report.steps += 1;
        if self.steps.len() == SHOWN {
            self.steps.pop_front();
        }
        let now = ThreadVirtualTime::now().as_nanos();
        let what = what();
        for byte in what.bytes().chain(now.to_le_bytes()) {
            self.report.trace = (self.report.trace ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        self.steps.push_back(format!("{:>12.3} us  {what}", now as f64 / 1e3));
    }

    fn turn_engine(&mut self) {
        let step = self.parts.step_engine();
        self.note(|| format!("engine: {step:?}"));
    }

    fn turn_worker(&mut self) {
        if self.parts.workers.is_empty() {
            return;
        }
        let worker = self.dice.below(self.parts.workers.len());
        let step = self.parts.step_worker(worker);
        self.note(|| format!("worker {worker}: {step:?}"));
    }

    fn turn_controller(&mut self) -> Result<(), String> {
        let place = self.dice.below(self.controllers.len());
        let Some(controller) = self.controllers.get_mut(place) else { return Ok(()) };
        let name = controller.name.clone();
        controller.step(ThreadVirtualTime::now(), &mut self.ledger)?;
        if controller.is_over {
            let over = self.controllers.remove(place);
            self.gone.push(over);
        }
        self.note(|| format!("{name}: reads and writes"));
        Ok(())
    }

    fn script(&mut self) {
        let ports: Vec<PortNo> = self.hosts.iter().map(|host| host.number).collect();
        let place = self.dice.below(self.controllers.len());
        let may_copy = self.plan.may_copy;
        if let Some(controller) = self.controllers.get_mut(place) {
            controller.act(ScriptInputs { dice: &mut self.dice, ports: &ports, may_copy }, &mut self.ledger);
            let name = controller.name.clone();
            self.note(|| format!("{name}: says something"));
        }
    }

    fn send_frames(&mut self) {
        let place = self.dice.below(self.hosts.len());
        let count = self.dice.pick(&[1, 3, 40]);
        for _ in 0..count {
            let key = self.draw_key();
            let number = self.ledger.send(key);
            if self.hosts[place].end.send(frames::frame(key, number)) {
                self.sent += 1;
            } else {
                self.ledger.take_back();
                self.count("full_ring_to_the_switch");
                break;
            }
        }
        self.note(|| format!("host {place}: sends up to {count} frames"));
    }

    /// Returns the key of a controller, or one that no entry has.
    fn draw_key(&mut self) -> u16 {
        let virtual_keys = self.next_virtual_key - frames::FIRST_VIRTUAL_KEY;
        let place = self.dice.below(usize::from(self.next_key + virtual_keys));
        let place = u16::try_from(place).unwrap_or(0);
        if place < self.next_key { place } else { frames::FIRST_VIRTUAL_KEY + place - self.next_key }
    }

    fn receive_frames(&mut self) -> Result<(), String> {
        let place = self.dice.below(self.hosts.len());
        self.receive(place, 64)?;
        self.note(|| format!("host {place}: receives"));
        Ok(())
    }

    pub(super) fn receive(&mut self, place: usize, most: usize) -> Result<(), String> {
        let host = &self.hosts[place];
        for _ in 0..most {
            let Some(bytes) = host.end.receive() else { break };
            let number = frames::number(&bytes).ok_or("a frame without its number")?;
            self.ledger.left(number, host.number)?;
        }
        Ok(())
    }

    fn pass_time(&mut self) {
        let by = match self.dice.below(10) {
            0..5 => Duration::from_nanos(self.dice.next() % 20_000),
            5..9 => Duration::from_micros(self.dice.next() % 2_000),
            _ => Duration::from_millis(self.dice.next() % 300),
        };
        ThreadVirtualTime::advance(by);
        self.note(|| format!("time: {by:?}"));
    }
}

fn host(number: u32, capacity: usize) -> (CablePort, CableHost) {
    let (port, end) = cable(&format!("p{number}"), capacity);
    (port, CableHost { number: PortNo(number), end, is_gone: false })
}
