//! Checks what only the controller of a network has: its settings, applications and intents.
use super::{ScenarioResult, SourceFile, intents};
use crate::document::{ControllerToml, IntentToml};
use crate::{EmbeddedApp, ForwardingMode, NetworkControl, Scenario, ScenarioHost, ScenarioSwitch};
use toml::Spanned;
use weir_routing::apps::ApplicationTables;
use weir_routing::intents::IntentConfig;
use weir_routing::settings;

/// Settings, applications and intents as written.
pub(super) struct WrittenControl<'a> {
    pub(super) controller: Option<&'a ControllerToml>,
    pub(super) applications: ApplicationTables,
    pub(super) intents: Vec<Spanned<IntentToml>>,
}

/// Checks settings, applications and intents. All of them need the controller of a network.
pub(super) fn check(
    source: &SourceFile<'_>,
    written: WrittenControl<'_>,
    switches: &[ScenarioSwitch],
    hosts: &[ScenarioHost],
) -> ScenarioResult<NetworkControl> {
    let controls_network = |controller: &&ControllerToml| controller.app == Some(EmbeddedApp::Forwarding);
    let Some(controller) = written.controller.filter(controls_network) else {
        return refuse_unused(source, &written);
    };
    let applications = written.applications.check();
    let applications = applications.map_err(|error| source.error(error.span.unwrap_or(0..0), error.problem))?;
    let mut control = settings(source, controller)?;
    control.applications = applications;
    control.intents = intents::check(source, written.intents, switches, hosts)?;
    Ok(control)
}

/// Refuses settings, applications and intents of a scenario without the controller of a network.
fn refuse_unused(source: &SourceFile<'_>, written: &WrittenControl<'_>) -> ScenarioResult<NetworkControl> {
    let key = written.controller.and_then(ControllerToml::first_of_network);
    let intent = || written.intents.first().map(|intent| ("intent", intent.span()));
    match key.or_else(|| written.applications.first()).or_else(intent) {
        None => Ok(NetworkControl::default()),
        Some((name, span)) => {
            let needs = format!("{name}: found it without app = \"forwarding\" in [controller], expected both");
            Err(source.error(span, needs))
        }
    }
}

/// Checks the settings of the controller of a network.
fn settings(source: &SourceFile<'_>, controller: &ControllerToml) -> ScenarioResult<NetworkControl> {
    let mut control = NetworkControl::default();
    if let Some(forward) = &controller.forward {
        control.forward = *forward.as_ref();
    }
    if let Some(ecmp) = &controller.ecmp {
        control.ecmp = *ecmp.as_ref();
        if control.ecmp && control.forward != ForwardingMode::Proactive {
            let needs = "ecmp: found it with a reactive `forward`, expected forward = \"proactive\": a reactive entry \
                         has one way";
            return Err(source.error(ecmp.span(), needs.to_owned()));
        }
    }
    if let Some(answers) = &controller.arp_answers {
        control.arp_answers = *answers.as_ref();
    }
    if let Some(time) = read(source, "idle_timeout", controller.idle_timeout.as_ref(), settings::parse_idle_timeout)? {
        control.idle_timeout = time.0;
    }
    let probes = controller.probe_interval.as_ref();
    if let Some(time) = read(source, "probe_interval", probes, settings::parse_probe_interval)? {
        control.probe_interval = time.0;
    }
    control.port_buffer = read(source, "port_buffer", controller.port_buffer.as_ref(), settings::parse_port_buffer)?;
    Ok(control)
}

/// Reads a setting that is written as text.
fn read<T>(
    source: &SourceFile<'_>,
    key: &str,
    text: Option<&Spanned<String>>,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> ScenarioResult<Option<T>> {
    let Some(text) = text else { return Ok(None) };
    let read = parse(text.as_ref()).map_err(|problem| source.error(text.span(), format!("{key}: {problem}")))?;
    Ok(Some(read))
}

/// Fills in what the rest of the scenario tells about ports and switches.
pub(super) fn fill_in(scenario: &mut Scenario) {
    let bytes = IntentConfig::default().packet_bytes;
    let (buffer, delay) = (scenario.largest_port_buffer(), scenario.longest_switch_delay(bytes as f64));
    let control = &mut scenario.network_control;
    control.port_buffer = control.port_buffer.or(buffer);
    control.switch_delay = delay;
}
