//! Measures one controller once: connects the switches, lets them announce their hosts, sends, waits for the rest.
use super::engine::SwitchSockets;
use super::event::{EventFigures, HalfTimeEvent, PROBES_PER_SECOND, event_figures, run_event};
use super::figures::{jain, milliseconds, relative_deviation};
use super::fleet::SwitchFleet;
use super::pace::{AskedArrivals, OpenLoop, RequestPace};
use super::process::ProcessUse;
use super::request::{AskedFrames, AskedSources, RequestPlan};
use super::switch::{EmulatedSettings, EmulatedStage, EmulatedSwitch, HANDSHAKE};
use super::tally::{ReplyCounts, WINDOW};
use anyhow::bail;
use serde::Serialize;
use std::net::SocketAddr;
use std::time::Duration;
use weir_emulator::CancelHandle;
use weir_openflow::Version;
use weir_traffic::{RandomStream, TimeHistogram, TimeStatistics};
use weir_units::{Clock as _, Instant};

/// Time that the controller has for setting up all switches and for learning the hosts.
const SET_UP: Duration = Duration::from_secs(60);
/// Most unanswered requests of all switches together, if they send as fast as possible: what a slow controller answers
/// in some seconds.
const FLOOD_WAITING: u32 = 1 << 14;
/// Least unanswered requests of a switch that sends as fast as possible.
const LEAST_FLOOD: u32 = 16;
/// Most unanswered requests of all switches together.
const MOST_WAITING: u32 = 1 << 20;
/// Length of the windows of courses.
const COURSE: Duration = Duration::from_millis(100);

/// Rule by which all switches send.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum MeasuredPace {
    /// Number of unanswered requests of each switch.
    Window(u32),
    /// Requests as fast as possible.
    Flood,
    /// Requests a second of all switches together, whatever is answered.
    Rate { per_second: f64, arrivals: AskedArrivals, burst: u32 },
    /// A single unanswered request of each switch, counted as cbench counts.
    CbenchLatency,
    /// Full output buffers, counted as cbench counts.
    CbenchThroughput,
}

/// Settings of a measurement.
#[derive(Debug, Clone, Serialize)]
pub(super) struct MeasureSettings {
    pub(super) version: Version,
    pub(super) switches: u32,
    pub(super) hosts: u32,
    pub(super) frames: AskedFrames,
    pub(super) sources: AskedSources,
    pub(super) pace: MeasuredPace,
    /// Shares of the switches in the offered rate or window, in turn.
    pub(super) weights: Vec<u32>,
    pub(super) event: Option<HalfTimeEvent>,
    /// Number of times that the switch of the event connects, one after the other; 1 unless it joins the others.
    pub(super) joins: u32,
    /// Number of times that all switches connect and leave before the measurement.
    pub(super) storms: u32,
    pub(super) time_s: f64,
    pub(super) warm_up_s: f64,
    pub(super) timeout_s: f64,
    pub(super) seed: u64,
}

/// Responses of switches with equal weight.
#[derive(Debug, Clone, Serialize)]
pub(super) struct WeightFigures {
    pub(super) weight: u32,
    pub(super) switches: usize,
    /// Means of these switches.
    pub(super) asked_per_second: f64,
    pub(super) answered_per_second: f64,
}

/// Result of a measurement. All figures are of ordinary switches, if an event adds another one.
#[derive(Debug, Clone, Serialize)]
pub(super) struct MeasuredController {
    pub(super) controller: String,
    /// Requests that were answered, a second; each counts once, however many messages answered it.
    pub(super) responses_per_second: f64,
    /// Replies a second as cbench counts them; only in its modes.
    pub(super) cbench_per_second: Option<f64>,
    pub(super) delay: Option<TimeStatistics>,
    pub(super) asked: u64,
    pub(super) answered: u64,
    pub(super) unsent: u64,
    pub(super) lost: u64,
    pub(super) replies: ReplyCounts,
    pub(super) deviation_percent: Option<f64>,
    pub(super) jain: Option<f64>,
    pub(super) weights: Vec<WeightFigures>,
    pub(super) event: Option<EventFigures>,
    /// Times from connecting to the answered features request, of all connections.
    pub(super) handshakes: Option<TimeStatistics>,
    /// Milliseconds until all switches were connected and set up, of each storm.
    pub(super) storms_ms: Vec<f64>,
    /// Milliseconds until all switches were set up and their hosts were announced.
    pub(super) set_up_ms: f64,
    /// Switches that the controller had not set up in time; they send nothing.
    pub(super) not_set_up: usize,
    /// Connections that the controller ended, and why the first did.
    pub(super) ended: usize,
    pub(super) ended_why: Option<String>,
    /// Use of the controller's process in the measured time.
    pub(super) process: Option<ProcessUse>,
    /// Responses a second of the generator with the built-in reflector.
    pub(super) ceiling_per_second: Option<f64>,
    pub(super) is_partial: bool,
    /// Responses a second in windows of 100 ms.
    pub(super) course: Vec<f64>,
    /// Distribution of the delay: shares and microseconds.
    pub(super) delay_quantiles_us: Vec<(f64, f64)>,
}

impl MeasuredController {
    /// Returns the replies a second that the pace is about.
    pub(super) fn rate(&self) -> f64 {
        self.cbench_per_second.unwrap_or(self.responses_per_second)
    }
}

impl MeasureSettings {
    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.time_s)
    }

    fn weight(&self, number: u32) -> u32 {
        self.weights.get(number as usize % self.weights.len().max(1)).copied().unwrap_or(1)
    }

    /// Returns the settings of a switch. Switch `self.switches` is that of the event.
    pub(super) fn switch(&self, number: u32) -> anyhow::Result<EmulatedSettings> {
        let is_special = number == self.switches;
        let weight = if is_special { 1 } else { self.weight(number) };
        let switch = u16::try_from(number)?;
        let plan = RequestPlan {
            version: self.version,
            frames: self.frames,
            sources: self.sources,
            hosts: self.hosts,
            switch,
        };
        let most = plan.period().min(MOST_WAITING / self.switches).min(1 << 16);
        // What the switch of the event sends is part of it, too.
        let flooding = self.switches + u32::from(self.event.is_some());
        let flood = (FLOOD_WAITING / flooding).max(LEAST_FLOOD).min(most);
        let event = self.event.filter(|_| is_special);
        let random = RandomStream::new(self.seed, 0, u64::from(number));
        let pace = match self.pace {
            _ if event == Some(HalfTimeEvent::Greedy) => RequestPace::Window(flood),
            _ if event == Some(HalfTimeEvent::Probe) => {
                RequestPace::Open(OpenLoop::new(PROBES_PER_SECOND, AskedArrivals::Poisson, 1, random)?)
            }
            MeasuredPace::Window(window) => RequestPace::Window((window * weight).min(most)),
            MeasuredPace::Flood => RequestPace::Window(flood),
            MeasuredPace::Rate { per_second, arrivals, burst } => {
                let all: u32 = (0..self.switches).map(|number| self.weight(number)).sum();
                let own = per_second * f64::from(weight) / f64::from(all);
                RequestPace::Open(OpenLoop::new(own, arrivals, burst, random)?)
            }
            MeasuredPace::CbenchLatency => RequestPace::CbenchLatency,
            MeasuredPace::CbenchThroughput => RequestPace::CbenchThroughput,
        };
        // Lost requests hold places, so a small window has more of them than it needs.
        let most_waiting = match pace {
            RequestPace::Window(window) => window.saturating_mul(8).clamp(128, most.max(128)),
            _ => most,
        };
        let echo_interval =
            (event == Some(HalfTimeEvent::Probe)).then(|| Duration::from_secs_f64(1.0 / PROBES_PER_SECOND));
        let timeout = Duration::from_secs_f64(self.timeout_s);
        Ok(EmulatedSettings { plan, pace, timeout, most_waiting, is_special, echo_interval })
    }
}

/// Measures a controller. With `pid`, also the use of its process.
///
/// # Errors
/// The controller is not reached, closes the connections of all switches, answers nothing, or does not set up the
/// switches in time.
pub(super) fn measure(
    controller: &str,
    address: SocketAddr,
    settings: &MeasureSettings,
    pid: Option<u32>,
    cancel: &CancelHandle,
) -> anyhow::Result<MeasuredController> {
    let mut handshakes = TimeHistogram::default();
    let mut storms_ms = Vec::new();
    for _ in 0..settings.storms {
        let (fleet, _, took) = set_up(address, settings, cancel)?;
        storms_ms.push(milliseconds(took));
        handshakes.merge(&fleet.tally.handshakes);
    }
    let (mut fleet, mut sockets, set_up_time) = set_up(address, settings, cancel)?;
    let begin = sockets.clock.now();
    let from = begin + Duration::from_secs_f64(settings.warm_up_s);
    let to = from + settings.time();
    let event_at = settings.event.map(|_| from + settings.time() / 2);
    let not_set_up = fleet.count(|stage| !matches!(stage, EmulatedStage::Ready | EmulatedStage::Closed));
    fleet.tally.measured = Some(from..to);
    fleet.tally.event = event_at;
    for number in 0..fleet.switches.len() {
        if fleet.switches[number].stage() == EmulatedStage::Ready {
            fleet.start(number, begin);
        }
    }
    sockets.run(&mut fleet, from, SwitchFleet::has_ended)?;
    let before = pid.and_then(ProcessUse::read);
    let fairness = match event_at {
        Some(event_at) => run_event(&mut sockets, &mut fleet, settings, event_at..to)?,
        None => Vec::new(),
    };
    sockets.run(&mut fleet, to, SwitchFleet::has_ended)?;
    let process = pid.and_then(ProcessUse::read).zip(before).map(|(after, before)| after.since(&before));
    let is_partial = sockets.is_cancelled();
    let end = sockets.clock.now().min(to);
    fleet.stop();
    let waits = |fleet: &SwitchFleet| fleet.switches.iter().all(|switch| switch.waiting() == 0);
    let rest = Duration::from_secs_f64(settings.timeout_s);
    sockets.run(&mut fleet, to + rest, waits)?;
    handshakes.merge(&fleet.tally.handshakes);
    let mut result = summary(controller, settings, &fleet, from, end.since(from));
    if let Some(event) = &mut result.event {
        event.fairness = fairness;
    }
    if result.answered == 0 && result.rate() <= 0.0 && !is_partial {
        let ended = fleet.ends().next().map_or_else(String::new, |why| format!("; a connection ended: {why}"));
        bail!(
            "{address}: none of {} packet-ins was answered within {} s{ended}; does the controller run an application \
             that answers packet-ins, such as a learning switch?",
            result.asked,
            settings.timeout_s
        );
    }
    (result.handshakes, result.not_set_up) = (handshakes.summary(), not_set_up);
    (result.storms_ms, result.set_up_ms) = (storms_ms, milliseconds(set_up_time));
    (result.process, result.is_partial) = (process, is_partial);
    Ok(result)
}

/// Connects one more switch.
pub(super) fn connect(
    sockets: &mut SwitchSockets,
    fleet: &mut SwitchFleet,
    settings: EmulatedSettings,
) -> anyhow::Result<()> {
    let begun = sockets.open()?;
    fleet.connect(settings, begun)?;
    sockets.flush(fleet);
    Ok(())
}

/// Connects all switches and waits until their hosts are announced. Returns the time that it took.
fn set_up(
    address: SocketAddr,
    settings: &MeasureSettings,
    cancel: &CancelHandle,
) -> anyhow::Result<(SwitchFleet, SwitchSockets, Duration)> {
    let (mut fleet, mut sockets) = (SwitchFleet::default(), SwitchSockets::new(address, cancel.clone())?);
    let begin = sockets.clock.now();
    for number in 0..settings.switches {
        if sockets.is_cancelled() {
            break;
        }
        connect(&mut sockets, &mut fleet, settings.switch(number)?)?;
        let now = sockets.clock.now();
        sockets.run(&mut fleet, now, |_| true)?;
    }
    let is_over = |stage: EmulatedStage| matches!(stage, EmulatedStage::Ready | EmulatedStage::Closed);
    sockets.run(&mut fleet, begin + SET_UP, |fleet| fleet.count(is_over) == fleet.switches.len())?;
    let took = sockets.clock.now().since(begin);
    let (ready, all) = (fleet.count(|stage| stage == EmulatedStage::Ready), fleet.switches.len());
    if sockets.is_cancelled() {
        bail!("stopped before the first request: {ready} of {all} switches were set up");
    }
    if ready == 0 {
        let why = fleet.ends().next().unwrap_or("no features request");
        bail!(
            "{address}: the controller set up none of {all} switches: {why}; expected an OpenFlow {} controller that \
             sends a hello and a features request within {HANDSHAKE:?}",
            settings.version.name()
        );
    }
    Ok((fleet, sockets, took))
}

fn summary(
    controller: &str,
    settings: &MeasureSettings,
    fleet: &SwitchFleet,
    from: Instant,
    measured: Duration,
) -> MeasuredController {
    let seconds = measured.as_secs_f64().max(f64::MIN_POSITIVE);
    let ordinary = || fleet.switches.iter().filter(|switch| !switch.is_special());
    let sum = |of: fn(&EmulatedSwitch) -> u64| ordinary().map(of).sum::<u64>();
    let answered = sum(|switch| switch.figures.answered());
    let is_cbench = matches!(settings.pace, MeasuredPace::CbenchLatency | MeasuredPace::CbenchThroughput);
    let cbench = sum(|switch| switch.figures.cbench);
    // With weights, shares are compared per unit of weight.
    let per_switch: Vec<f64> = (0..)
        .zip(ordinary())
        .map(|(number, switch)| {
            let count = if is_cbench { switch.figures.cbench } else { switch.figures.answered() };
            count as f64 / f64::from(settings.weight(number))
        })
        .collect();
    let mut delays = TimeHistogram::default();
    fleet.tally.ordinary.iter().for_each(|part| delays.merge(part));
    let others = windows(ordinary());
    MeasuredController {
        controller: controller.to_owned(),
        responses_per_second: answered as f64 / seconds,
        cbench_per_second: is_cbench.then_some(cbench as f64 / seconds),
        delay: delays.summary(),
        asked: sum(|switch| switch.figures.asked),
        answered,
        unsent: sum(|switch| switch.figures.unsent),
        lost: sum(|switch| switch.figures.lost),
        replies: fleet.tally.counts,
        deviation_percent: relative_deviation(&per_switch),
        jain: jain(&per_switch),
        weights: by_weight(settings, fleet, seconds),
        event: event_figures(settings, fleet, &others, from, measured),
        handshakes: None,
        storms_ms: Vec::new(),
        set_up_ms: 0.0,
        not_set_up: 0,
        ended: fleet.ends().count(),
        ended_why: fleet.ends().next().map(str::to_owned),
        process: None,
        ceiling_per_second: None,
        is_partial: false,
        course: course(&others),
        delay_quantiles_us: delays.quantiles_us(),
    }
}

/// Returns the responses of several switches together, by windows of [`WINDOW`].
fn windows<'a>(switches: impl Iterator<Item = &'a EmulatedSwitch>) -> Vec<f64> {
    let mut all: Vec<f64> = Vec::new();
    for switch in switches {
        let own = &switch.figures.windows;
        all.resize(all.len().max(own.len()), 0.0);
        all.iter_mut().zip(own).for_each(|(all, own)| *all += f64::from(*own));
    }
    all
}

fn course(windows: &[f64]) -> Vec<f64> {
    let length = usize::try_from(COURSE.as_nanos() / WINDOW.as_nanos()).unwrap_or(1);
    windows.chunks_exact(length).map(|part| part.iter().sum::<f64>() / COURSE.as_secs_f64()).collect()
}

fn by_weight(settings: &MeasureSettings, fleet: &SwitchFleet, seconds: f64) -> Vec<WeightFigures> {
    let mut weights = settings.weights.clone();
    weights.sort_unstable();
    weights.dedup();
    let figures = |weight: u32| {
        let numbered = (0..).zip(fleet.switches.iter().filter(|switch| !switch.is_special()));
        let own: Vec<_> = numbered.filter(|(number, _)| settings.weight(*number) == weight).collect();
        let mean = |of: fn(&EmulatedSwitch) -> u64| {
            own.iter().map(|(_, switch)| of(switch)).sum::<u64>() as f64 / seconds / own.len().max(1) as f64
        };
        WeightFigures {
            weight,
            switches: own.len(),
            asked_per_second: mean(|switch| switch.figures.asked),
            answered_per_second: mean(|switch| switch.figures.answered()),
        }
    };
    weights.into_iter().map(figures).collect()
}
