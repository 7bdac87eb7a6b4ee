//! Runs the switch that comes at half time: it joins the others, saturates the controller, or probes it.
use super::engine::SwitchSockets;
use super::figures::{JoinFairness, join_fairness};
use super::fleet::{LEFT, SwitchFleet};
use super::measure::{MeasureSettings, connect};
use super::switch::EmulatedStage;
use super::tally::Tally;
use anyhow::anyhow;
use rustix::process::setpriority_process;
use rustix::thread::gettid;
use serde::Serialize;
use std::ops::Range;
use std::time::Duration;
use weir_traffic::TimeStatistics;
use weir_units::{Clock as _, Instant};

/// Packet-ins a second of a probe, and as many echo requests.
pub(super) const PROBES_PER_SECOND: f64 = 100.0;
/// Priority of the probe's thread, as in nice(1).
const MOST_URGENT: i32 = -20;

/// Event at half time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum HalfTimeEvent {
    /// A further switch connects, and sends as the others do.
    Join,
    /// A further switch sends as fast as possible.
    Greedy,
    /// A further switch asks little, and measures how long it waits beside the others.
    Probe,
}

/// Effect of the event at half time.
#[derive(Debug, Clone, Serialize)]
pub(super) struct EventFigures {
    pub(super) event: HalfTimeEvent,
    /// Responses a second of the ordinary switches together.
    pub(super) others_before: f64,
    pub(super) others_after: f64,
    pub(super) delay_before: Option<TimeStatistics>,
    pub(super) delay_after: Option<TimeStatistics>,
    /// Responses a second of the switch that came, from the event on, however often it came.
    pub(super) own: f64,
    pub(super) own_delay: Option<TimeStatistics>,
    /// Round trips of the echo requests of the switch that came, and how many had no answer; only of a probe.
    pub(super) echo: Option<TimeStatistics>,
    pub(super) echo_lost: u64,
    /// Fairness to the switch each time that it came, if it sends as the others do.
    pub(super) fairness: Vec<JoinFairness>,
}

/// Lets the switch of the event come at the beginning of `time`: once until its end, or several times, one after the
/// other. Returns how fairly it was served each time, if it sends as the others do.
///
/// # Errors
/// The controller does not accept the switch, or the system cannot wait for sockets.
pub(super) fn run_event(
    sockets: &mut SwitchSockets,
    fleet: &mut SwitchFleet,
    settings: &MeasureSettings,
    time: Range<Instant>,
) -> anyhow::Result<Vec<JoinFairness>> {
    sockets.run(fleet, time.start, SwitchFleet::has_ended)?;
    if settings.event == Some(HalfTimeEvent::Probe) {
        run_probe(sockets, fleet, settings, time.end)?;
        return Ok(Vec::new());
    }
    let each = time.end.since(time.start) / settings.joins;
    let mut fairness = Vec::new();
    for join in 1..=settings.joins {
        if sockets.is_cancelled() {
            break;
        }
        let (begun, until) = (sockets.clock.now(), time.start + each * join);
        let number = start_one_more(sockets, fleet, settings, until)?;
        sockets.run(fleet, until, SwitchFleet::has_ended)?;
        if settings.event == Some(HalfTimeEvent::Join)
            && let Some(from) = fleet.tally.window(begun)
        {
            let ordinary = fleet.switches.iter().filter(|switch| !switch.is_special());
            let ordinary: Vec<&[u32]> = ordinary.map(|switch| switch.figures.windows.as_slice()).collect();
            fairness.push(join_fairness(&fleet.switches[number].figures.windows, &ordinary, from));
        }
        fleet.switches[number].figures.forget_windows();
        if join < settings.joins {
            sockets.end(fleet, number, LEFT);
        }
    }
    Ok(fairness)
}

/// Runs the probe until `until` on a thread of its own: its delays are those of the controller, and not of the thread
/// that sends as much as it can for the other switches.
fn run_probe(
    sockets: &mut SwitchSockets,
    fleet: &mut SwitchFleet,
    settings: &MeasureSettings,
    until: Instant,
) -> anyhow::Result<()> {
    let tally = Tally { measured: fleet.tally.measured.clone(), event: fleet.tally.event, ..Tally::default() };
    let mut probe = SwitchFleet::default();
    probe.tally = tally;
    let open_sockets = sockets.beside();
    let timeout = Duration::from_secs_f64(settings.timeout_s);
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || -> anyhow::Result<SwitchFleet> {
            // It is woken at once beside the other thread, if this process may ask for that.
            let _ = setpriority_process(Some(gettid()), MOST_URGENT);
            let mut own_sockets = open_sockets()?;
            start_one_more(&mut own_sockets, &mut probe, settings, until)?;
            own_sockets.run(&mut probe, until, SwitchFleet::has_ended)?;
            probe.stop();
            let has_answers = |probe: &SwitchFleet| probe.switches.iter().all(|switch| switch.waiting() == 0);
            own_sockets.run(&mut probe, until + timeout, has_answers)?;
            Ok(probe)
        });
        let ran = sockets.run(fleet, until, SwitchFleet::has_ended);
        fleet.stop();
        let probe = thread.join().map_err(|_| anyhow!("the probe's thread ended early"))??;
        fleet.absorb(probe);
        ran
    })
}

/// Connects one more switch and starts its requests once it is set up. Returns its number.
fn start_one_more(
    sockets: &mut SwitchSockets,
    fleet: &mut SwitchFleet,
    settings: &MeasureSettings,
    until: Instant,
) -> anyhow::Result<usize> {
    let number = fleet.switches.len();
    connect(sockets, fleet, settings.switch(settings.switches)?)?;
    let is_up =
        |fleet: &SwitchFleet| matches!(fleet.switches[number].stage(), EmulatedStage::Ready | EmulatedStage::Closed);
    sockets.run(fleet, until, is_up)?;
    if fleet.switches[number].stage() == EmulatedStage::Ready {
        fleet.start(number, sockets.clock.now());
    }
    Ok(number)
}

/// Returns the effect of the event, without how fairly it was served; `None` if the measurement ended before it.
/// `others` are the responses of the ordinary switches by windows.
pub(super) fn event_figures(
    settings: &MeasureSettings,
    fleet: &SwitchFleet,
    others: &[f64],
    from: Instant,
    measured: Duration,
) -> Option<EventFigures> {
    let event = settings.event?;
    let event_at = fleet.tally.event?;
    let special = || fleet.switches.iter().filter(|switch| switch.is_special());
    special().next()?;
    let half = fleet.tally.window(event_at)?;
    let before_s = event_at.since(from).as_secs_f64();
    let after_s = (measured.as_secs_f64() - before_s).max(f64::MIN_POSITIVE);
    let (first, second) = others.split_at(half.min(others.len()));
    Some(EventFigures {
        event,
        others_before: first.iter().sum::<f64>() / before_s,
        others_after: second.iter().sum::<f64>() / after_s,
        delay_before: fleet.tally.ordinary[0].summary(),
        delay_after: fleet.tally.ordinary[1].summary(),
        own: special().map(|switch| switch.figures.answered()).sum::<u64>() as f64 / after_s,
        own_delay: fleet.tally.special.summary(),
        echo: fleet.tally.echo.summary(),
        echo_lost: special().map(|switch| switch.figures.echo_lost).sum(),
        fairness: Vec::new(),
    })
}
