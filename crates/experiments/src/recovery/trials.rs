//! Runs trials in networks in virtual time: links fail and return while packets are counted.
use super::drawn::{self, FLOW_RATE, MOVED_EVERY_MS, MOVED_FOR_MS, SHORT_WAY};
use crate::ExperimentError;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use weir_emulator::CancelHandle;
use weir_routing::SwitchPort;
use weir_routing::intents::{IntentConstraints, IntentKind, IntentSpec, IntentState};
use weir_routing::request::{NetworkReply, NetworkRequest};
use weir_routing::state::EventRecord;
use weir_scenario::Scenario;
use weir_sim::SimulationMonitor;
use weir_sim::network::{NetworkSimulation, SimulatedLinkState, VirtualTimeSettings};
use weir_traffic::RandomStream;

/// Time of control messages to a switch and back, each way, and by how much single ones are later.
const CONTROL: Duration = Duration::from_micros(100);
const CONTROL_JITTER: Duration = Duration::from_micros(100);
/// Jitter of control messages while flows are moved, so that switches change in many orders.
const MOVING_JITTER: Duration = Duration::from_millis(3);
/// Time in which hosts are found, and intents are installed.
const WARM_UP: Duration = Duration::from_millis(400);
const INTENTS_WITHIN: u32 = 40;
/// Time after a change of a link until the next one.
pub(super) const PAUSE: Duration = Duration::from_millis(250);
/// Switches of networks whose links fail, and flows over them.
const SWITCHES: usize = 12;
const FLOWS: usize = 12;
/// Most events of one reply.
const EVENTS: usize = 1024;

/// Form of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// Ports go down.
    PortDown,
    /// Frames are lost without a word.
    Silent,
    /// Ports on the way of a protected intent go down.
    Protected,
}

/// Findings of trials with failures.
#[derive(Debug, Clone, Default)]
pub(super) struct FailureFindings {
    /// Times in ms for which packets were lost: one for each flow that a failure hit; with protected intents one for
    /// each failure, that of the flow hit most.
    pub(super) outages_ms: Vec<f64>,
    /// Times in ms from a port that went down until switches had confirmed all other ways.
    pub(super) confirmed_ms: Vec<f64>,
    /// Packets lost while a link came back.
    pub(super) lost_by_return: u64,
    pub(super) failures: u64,
}

impl FailureFindings {
    pub(super) fn add(&mut self, other: FailureFindings) {
        self.outages_ms.extend(other.outages_ms);
        self.confirmed_ms.extend(other.confirmed_ms);
        self.lost_by_return += other.lost_by_return;
        self.failures += other.failures;
    }
}

/// Findings of flows that were moved.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MoveFindings {
    pub(super) flows: u64,
    pub(super) packets: u64,
    pub(super) lost: u64,
    pub(super) repeated: u64,
    /// Longest delay of a packet in microseconds.
    pub(super) longest_us: f64,
}

/// A network in virtual time, whose controller is asked.
struct RecoveryBed<'a> {
    simulation: NetworkSimulation<'a>,
    /// Number of the last event that was read.
    last_event: u64,
}

/// Runs `what` in a scenario. Returns `None` if it was stopped.
fn within<T>(
    text: &str,
    seed: u64,
    jitter: Duration,
    cancel: &CancelHandle,
    what: impl FnOnce(&mut RecoveryBed<'_>, &Scenario) -> Result<T, ExperimentError>,
) -> Result<Option<T>, ExperimentError> {
    let scenario = Scenario { seed, ..Scenario::parse(text, "network")? };
    let settings =
        VirtualTimeSettings { control_delay: CONTROL, control_jitter: jitter, ..VirtualTimeSettings::default() };
    let watch = SimulationMonitor::default();
    let flag: &AtomicBool = &watch.cancel;
    cancel.set_during(flag, || {
        let simulation = NetworkSimulation::start(&scenario, &settings, &watch).map_err(wrong)?;
        let found = what(&mut RecoveryBed { simulation, last_event: 0 }, &scenario);
        // What a stopped simulation lacks is no finding.
        if cancel.is_cancelled() { Ok(None) } else { found.map(Some) }
    })
}

fn wrong(error: impl std::fmt::Display) -> ExperimentError {
    ExperimentError::Case(error.to_string())
}

impl RecoveryBed<'_> {
    fn run_for(&mut self, time: Duration) -> Result<(), ExperimentError> {
        self.simulation.run_for(time).map_err(wrong)
    }

    /// Runs until just before flows send their next packets, when none is on its way. A way takes less than a packet's
    /// interval.
    fn align(&mut self) -> Result<(), ExperimentError> {
        let interval = Duration::from_secs(1) / FLOW_RATE;
        let since = self.simulation.elapsed().as_nanos() % interval.as_nanos();
        let since = Duration::from_nanos(u64::try_from(since).unwrap_or(0));
        self.run_for(interval * 2 - interval / 10 - since)
    }

    fn ask(&mut self, request: &NetworkRequest) -> Result<NetworkReply, ExperimentError> {
        let text = serde_json::to_string(request).map_err(wrong)?;
        let reply = self.simulation.ask(&text).ok_or_else(|| wrong("the controller gives no reply"))?;
        match serde_json::from_str(&reply).map_err(wrong)? {
            NetworkReply::Error { message, .. } => Err(wrong(message)),
            reply => Ok(reply),
        }
    }

    /// Returns the events since the last call.
    fn events(&mut self) -> Result<Vec<EventRecord>, ExperimentError> {
        let mut all = Vec::new();
        loop {
            let request = NetworkRequest::Events { after: self.last_event, most: EVENTS };
            let NetworkReply::Events { events } = self.ask(&request)? else {
                return Err(wrong("found another reply, expected events"));
            };
            let Some(last) = events.last() else { return Ok(all) };
            self.last_event = last.number;
            all.extend(events);
        }
    }

    /// Returns the packets that each flow has sent beyond those that arrived.
    fn missing(&self) -> Vec<u64> {
        let missing = |count: &weir_sim::network::TrafficCount| count.sent.saturating_sub(count.received);
        self.simulation.counts().iter().map(missing).collect()
    }

    /// Changes a link and lets time pass. Returns the packets of each flow that were lost.
    fn change(&mut self, link: usize, state: SimulatedLinkState) -> Result<Vec<u64>, ExperimentError> {
        let before = self.missing();
        self.simulation.set_link(link, state);
        self.run_for(PAUSE)?;
        self.align()?;
        Ok(self.missing().iter().zip(before).map(|(now, before)| now.saturating_sub(before)).collect())
    }
}

fn named(events: &[EventRecord], kind: &str) -> Option<f64> {
    events.iter().find(|event| event.kind == kind).map(|event| event.time_s)
}

/// Returns the time in ms after the last switch has connected until all links are known.
pub(super) fn discovery(
    random: &mut RandomStream,
    [switches, links]: [usize; 2],
    seed: u64,
    cancel: &CancelHandle,
) -> Result<Option<f64>, ExperimentError> {
    let text = drawn::switches(random, switches, links);
    within(&text, seed, CONTROL_JITTER, cancel, |bed, _| {
        bed.run_for(WARM_UP)?;
        let events = bed.events()?;
        let times = |kind| events.iter().filter(move |event| event.kind == kind).map(|event| event.time_s);
        if times("link-up").count() != links || times("switch-up").count() != switches {
            let found = times("link-up").count();
            return Err(wrong(format!("found {found} links, expected {links}; seed {seed}")));
        }
        let [known, connected] = ["link-up", "switch-up"].map(|kind| times(kind).fold(0.0, f64::max));
        Ok((known - connected) * 1e3)
    })
}

/// Lets links fail and return for `time`, in a network that is drawn.
pub(super) fn failures(
    random: &mut RandomStream,
    kind: FailureKind,
    (time, seed): (Duration, u64),
    cancel: &CancelHandle,
) -> Result<Option<FailureFindings>, ExperimentError> {
    let trials = u32::try_from(time.as_nanos() / (2 * PAUSE).as_nanos()).unwrap_or(u32::MAX).max(1);
    // Flows go on until after the last trial.
    let longest = WARM_UP + (PAUSE + PAUSE / 10) * (2 * trials + INTENTS_WITHIN);
    let text = drawn::flows(random, SWITCHES, FLOWS, u64::try_from(longest.as_millis()).unwrap_or(u64::MAX));
    within(&text, seed, CONTROL_JITTER, cancel, |bed, scenario| {
        bed.run_for(WARM_UP)?;
        if kind == FailureKind::Protected {
            protect(bed, scenario)?;
        }
        bed.align()?;
        let mut found = FailureFindings::default();
        for _ in 0..trials {
            let link = match kind {
                FailureKind::Protected => link_of_intent(bed, scenario, random)?,
                _ => crate::draw::below(random, scenario.links.len()),
            };
            bed.run_for(Duration::from_micros(random.below(1000)))?;
            bed.events()?;
            let state = if kind == FailureKind::Silent { SimulatedLinkState::Silent } else { SimulatedLinkState::Down };
            let lost = bed.change(link, state)?;
            let ms = |lost: u64| lost as f64 * 1e3 / f64::from(FLOW_RATE);
            if kind == FailureKind::Protected {
                // The link is on a way in use, so that no loss is a finding, too.
                found.outages_ms.extend(lost.into_iter().max().map(ms));
            } else {
                found.outages_ms.extend(lost.into_iter().filter(|lost| *lost > 0).map(ms));
            }
            let events = bed.events()?;
            if let Some((down, rerouted)) = named(&events, "port-down").zip(named(&events, "rerouted")) {
                found.confirmed_ms.push((rerouted - down) * 1e3);
            }
            found.lost_by_return += bed.change(link, SimulatedLinkState::Up)?.into_iter().sum::<u64>();
            found.failures += 1;
            if kind == FailureKind::Protected {
                wait_for_intents(bed)?;
                bed.align()?;
            }
        }
        Ok(found)
    })
}

/// Asks for a protected intent for the hosts of each flow, and waits until all are installed.
fn protect(bed: &mut RecoveryBed<'_>, scenario: &Scenario) -> Result<(), ExperimentError> {
    for (number, item) in scenario.traffic.iter().enumerate() {
        let [from, to] = [item.from, item.to].map(|host| scenario.hosts[host].ip[0].addr.to_string());
        let constraints = IntentConstraints { protected: true, ..IntentConstraints::default() };
        let (key, kind, traffic) = (format!("f{number}"), IntentKind::HostToHost, String::new());
        let intent = IntentSpec { key, kind, from: vec![from], to: vec![to], traffic, constraints };
        bed.ask(&NetworkRequest::SetIntent { intent })?;
    }
    wait_for_intents(bed)
}

fn wait_for_intents(bed: &mut RecoveryBed<'_>) -> Result<(), ExperimentError> {
    for _ in 0..INTENTS_WITHIN {
        let NetworkReply::State(state) = bed.ask(&NetworkRequest::Show)? else {
            return Err(wrong("found another reply, expected the state"));
        };
        if state.intents.iter().all(|intent| intent.state == IntentState::Installed) {
            return Ok(());
        }
        bed.run_for(PAUSE)?;
    }
    // A pair of ways may be missing for longer; the trial then counts what the intent loses as it is.
    Ok(())
}

/// Returns a link on the way in use of one of the intents, drawn at random.
fn link_of_intent(
    bed: &mut RecoveryBed<'_>,
    scenario: &Scenario,
    random: &mut RandomStream,
) -> Result<usize, ExperimentError> {
    let key = format!("f{}", crate::draw::below(random, scenario.traffic.len()));
    let NetworkReply::Intent(status) = bed.ask(&NetworkRequest::Intent { key })? else {
        return Err(wrong("found another reply, expected an intent"));
    };
    // The first way is that from the sender; ports into switches and out of them alternate.
    let ports = status.paths.first().map(|path| path.ports.as_slice()).unwrap_or_default();
    let outs: Vec<SwitchPort> = ports.iter().skip(1).step_by(2).copied().collect();
    let links = outs.len().saturating_sub(1).max(1);
    let at = outs.get(crate::draw::below(random, links)).copied();
    let is_at = |link: &weir_scenario::ScenarioLink| {
        link.ends
            .iter()
            .any(|end| at.is_some_and(|at| at.dpid == scenario.switches[end.switch].dpid && at.port.0 == end.port))
    };
    scenario.links.iter().position(is_at).ok_or_else(|| wrong(format!("no link at {at:?} of a protected intent")))
}

/// Moves flows to a shorter way that returns.
pub(super) fn moves(
    random: &mut RandomStream,
    seed: u64,
    cancel: &CancelHandle,
) -> Result<Option<MoveFindings>, ExperimentError> {
    within(&drawn::moved(random), seed, MOVING_JITTER, cancel, |bed, _| {
        bed.simulation.set_link(SHORT_WAY, SimulatedLinkState::Down);
        let interval = Duration::from_millis(MOVED_EVERY_MS);
        // A twentieth of an interval before the next packets.
        bed.run_for(Duration::from_millis(MOVED_FOR_MS / 2) - interval / 20)?;
        bed.events()?;
        let (before, delays_before) = (bed.simulation.counts(), bed.simulation.delays());
        bed.simulation.set_link(SHORT_WAY, SimulatedLinkState::Up);
        bed.run_for(interval * u32::try_from(MOVED_FOR_MS / MOVED_EVERY_MS / 2).unwrap_or(1))?;
        if named(&bed.events()?, "rerouted").is_none() {
            return Err(wrong(format!("the flows were not moved; seed {seed}")));
        }
        let mut found = MoveFindings::default();
        for (now, before) in bed.simulation.counts().iter().zip(before) {
            let [sent, received] = [now.sent - before.sent, now.received - before.received];
            found.flows += u64::from(received > 0);
            found.packets += sent;
            found.lost += sent.saturating_sub(received);
            found.repeated += received.saturating_sub(sent);
        }
        let delays = bed.simulation.delays().without(&delays_before);
        found.longest_us = delays.summary().map_or(0.0, |delays| delays.max_us);
        Ok(found)
    })
}
