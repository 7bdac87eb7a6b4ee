//! Checks service times of devices.
use super::{ScenarioResult, SourceFile};
use crate::document;
use crate::{ControlPathTiming, ControllerTiming, Profile, ScenarioSwitch, SwitchTiming};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use toml::Spanned;
use weir_profile::check::{MAX_SERVICE_S, SectionReader};

/// Returns the profile of a switch: made of its section `timing`, or read from its profile's file.
pub(super) fn switch(
    source: &SourceFile<'_>,
    name: &str,
    item: &document::SwitchToml,
) -> ScenarioResult<Option<Profile>> {
    match (&item.profile, &item.timing) {
        (Some(profile), Some(_)) => {
            let both = format!(
                "switch {name}: found `profile` and a section `timing`, expected one of them: a profile has its own"
            );
            Err(source.error(profile.span(), both))
        }
        (None, timing @ Some(_)) => {
            let timing =
                timing_section(source, &SectionReader { what: format!("switch {name}: timing") }, timing.as_ref())?;
            Ok(timing.map(|timing| Profile::of_timing(name, timing)))
        }
        (Some(profile), None) => {
            let directory = Path::new(source.file).parent().unwrap_or(Path::new(""));
            let found = Profile::find(profile.as_ref(), directory);
            let wrong = |error| source.error(profile.span(), format!("switch {name}: profile: {error}"));
            found.map(Some).map_err(wrong)
        }
        (None, None) => Ok(None),
    }
}

/// Checks a section `timing`, if there is one.
pub(super) fn timing_section(
    source: &SourceFile<'_>,
    reader: &SectionReader,
    timing: Option<&Spanned<document::TimingToml>>,
) -> ScenarioResult<Option<SwitchTiming>> {
    let checked = timing.map(|timing| weir_profile::check::timing(reader, timing)).transpose();
    checked.map_err(|problem| source.problem(problem))
}

/// Checks the controller's timing.
pub(super) fn controller(
    source: &SourceFile<'_>,
    item: Option<&Spanned<document::ControllerToml>>,
    switches: &[ScenarioSwitch],
) -> ScenarioResult<ControllerTiming> {
    let Some(item) = item else { return Ok(ControllerTiming::default()) };
    let reader = SectionReader { what: "controller".to_owned() };
    let problem = |problem| source.problem(problem);
    let controller = item.as_ref();
    let made = ControllerTiming {
        service: reader.law("service", controller.service.as_ref()).map_err(problem)?,
        buffer: reader.buffer("buffer", controller.buffer.as_ref()).map_err(problem)?,
        delay: controller.delay.as_ref().map_or(Duration::ZERO, |delay| delay.as_ref().0),
        install: controller.install.as_ref().map(|install| *install.as_ref()).unwrap_or_default(),
    };
    if let Some(long) = controller.delay.as_ref().filter(|delay| delay.as_ref().0.as_secs_f64() > MAX_SERVICE_S) {
        return Err(problem(reader.error(long, &format!("delay: found {}, expected at most an hour", long.as_ref()))));
    }
    if let Some(buffer) = controller.buffer.as_ref().filter(|_| made.service.is_none()) {
        return Err(problem(reader.error(buffer, "found `buffer` without `service`, expected both")));
    }
    let Some(service) = &controller.service else { return Ok(made) };
    if controller.connect.as_ref().is_some_and(|target| target.as_ref() == "none") {
        let none = "service: found it with connect = \"none\", expected a controller that serves";
        return Err(problem(reader.error(service, none)));
    }
    let asks = |switch: &ScenarioSwitch| {
        switch.timing.as_ref().is_some_and(|timing| matches!(timing.control, ControlPathTiming::Agents { .. }))
    };
    // A controller elsewhere is charged this time in packet-by-packet simulation.
    if controller.connect.is_none() && !switches.iter().any(asks) {
        let nobody = "service: found no switch that it is for, expected one with [switch.timing] and without `control`, which has the \
                       controller in it";
        return Err(problem(reader.error(service, nobody)));
    }
    Ok(made)
}

/// Refuses new flows if switches have timing but no device gives the time for asking the controller.
pub(super) fn refuse_unknown_control(
    source: &SourceFile<'_>,
    begin: Option<(&'static str, Range<usize>)>,
    switches: &[ScenarioSwitch],
    controller: &ControllerTiming,
) -> ScenarioResult<()> {
    let Some((key, span)) = begin else { return Ok(()) };
    let mut timed = switches.iter().filter_map(|switch| switch.timing.as_ref()).peekable();
    let is_unknown = |timing: &SwitchTiming| timing.control.is_unknown();
    if timed.peek().is_none() || controller.service.is_some() || !timed.all(is_unknown) {
        return Ok(());
    }
    let unknown = format!(
        "{key}: found it, but no service time of what it asks, expected `service` in [controller], or `packet_in`, \
         `packet_out` or `control` in [switch.timing]"
    );
    Err(source.error(span, unknown))
}
