//! What a switch that comes at half time shows: it joins the others, saturates the controller, or probes it.
use super::figures::{JoinFairness, join_fairness};
use super::fleet::SwitchFleet;
use super::measure::MeasureSettings;
use serde::Serialize;
use std::time::Duration;
use weir_traffic::TimeStatistics;
use weir_units::Instant;

/// Packet-ins a second of a probe, and as many echo requests.
pub(super) const PROBES_PER_SECOND: f64 = 100.0;

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
    /// Responses a second of the switch that came, from the event on.
    pub(super) own: f64,
    pub(super) own_delay: Option<TimeStatistics>,
    /// Round trips of the echo requests of the switch that came, and how many had no answer; only of a probe.
    pub(super) echo: Option<TimeStatistics>,
    pub(super) echo_lost: u64,
    /// Only if the switch sends as the others do.
    pub(super) fairness: Option<JoinFairness>,
}

/// Returns the effect of the event; `None` if the measurement ended before it. `others` are the responses of the ordinary
/// switches by windows.
pub(super) fn event_figures(
    settings: &MeasureSettings,
    fleet: &SwitchFleet,
    others: &[f64],
    from: Instant,
    measured: Duration,
) -> Option<EventFigures> {
    let event = settings.event?;
    let event_at = fleet.tally.event?;
    let special = fleet.switches.iter().find(|switch| switch.is_special())?;
    let half = fleet.tally.window(event_at)?;
    let before_s = event_at.since(from).as_secs_f64();
    let after_s = (measured.as_secs_f64() - before_s).max(f64::MIN_POSITIVE);
    let (first, second) = others.split_at(half.min(others.len()));
    let ordinary = fleet.switches.iter().filter(|switch| !switch.is_special());
    let ordinary: Vec<&[u32]> = ordinary.map(|switch| switch.figures.windows.as_slice()).collect();
    let is_alike = event == HalfTimeEvent::Join;
    Some(EventFigures {
        event,
        others_before: first.iter().sum::<f64>() / before_s,
        others_after: second.iter().sum::<f64>() / after_s,
        delay_before: fleet.tally.ordinary[0].summary(),
        delay_after: fleet.tally.ordinary[1].summary(),
        own: special.figures.answered() as f64 / after_s,
        own_delay: fleet.tally.special.summary(),
        echo: fleet.tally.echo.summary(),
        echo_lost: special.figures.echo_lost,
        fairness: is_alike.then(|| join_fairness(&special.figures.windows, &ordinary, half)),
    })
}
