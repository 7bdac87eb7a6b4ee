//! Makes the controller of a scenario.
use crate::NetworkError;
use std::time::Duration;
use weir_controller::ControllerApp;
use weir_controller::apps::learning::{LearningConfig, LearningSwitch};
use weir_openflow::Version;
use weir_openflow::session::SessionConfig;
use weir_packet::PortNo;
use weir_routing::forwarding::ForwardingConfig;
use weir_routing::{NetworkConfig, NetworkController};
use weir_scenario::{EmbeddedApp, LinkEnd, OpenFlowVersion, Scenario, ScenarioController, ScenarioHost};

/// Time in which links are found: a probe leaves by each port as soon as it is known.
const TIME_TO_FIND_LINKS: Duration = Duration::from_millis(500);
/// Share of changes that have to be in effect before packets are led to them.
const EFFECTIVE_SHARE: f64 = 0.999;
/// Time in which hosts are found after they have announced themselves.
const TIME_TO_FIND_HOSTS: Duration = Duration::from_millis(100);
/// Time in which intents are carried out.
const TIME_FOR_INTENTS: Duration = Duration::from_millis(400);

/// Application of an embedded controller, and the settings of its sessions.
pub type EmbeddedController = (Box<dyn ControllerApp>, SessionConfig);

/// Returns the application of a scenario's embedded controller and the settings of its sessions; `None` if the
/// controller is external or there is none.
///
/// # Errors
/// Applications of the controller of a network are refused, although the scenario was checked.
pub fn embedded(scenario: &Scenario) -> Result<Option<EmbeddedController>, NetworkError> {
    let ScenarioController::Embedded { app, openflow } = scenario.control else {
        return Ok(None);
    };
    let app: Box<dyn ControllerApp> = match app {
        EmbeddedApp::Learning => Box::new(LearningSwitch::new(learning(scenario))),
        EmbeddedApp::Forwarding => Box::new(of_network(scenario)?),
    };
    let versions = match openflow {
        OpenFlowVersion::V10 => vec![Version::V10],
        OpenFlowVersion::V13 => vec![Version::V13, Version::V10],
    };
    Ok(Some((app, SessionConfig { versions, ..SessionConfig::default() })))
}

/// Returns the controller of a scenario's network, with its applications.
fn of_network(scenario: &Scenario) -> Result<NetworkController, NetworkError> {
    let apps = scenario.network_control.applications.apps().map_err(NetworkError::Scenario)?;
    Ok(NetworkController::new(network_config(scenario), apps))
}

/// Returns the settings of the controller of a scenario's network.
fn network_config(scenario: &Scenario) -> NetworkConfig {
    let control = &scenario.network_control;
    let mut config = NetworkConfig {
        forwarding: ForwardingConfig {
            mode: control.forward,
            ecmp: control.ecmp,
            answer_arp: control.arp_answers,
            idle_timeout: control.idle_timeout,
            ..ForwardingConfig::default()
        },
        ..NetworkConfig::default()
    };
    config.discovery.interval = control.probe_interval;
    config.tables.barrier_lag = barrier_lag(scenario);
    config.intents.port_buffer = control.port_buffer;
    config.intents.switch_delay = control.switch_delay.unwrap_or(config.intents.switch_delay);
    config
}

/// Returns the time from a switch's answer to a barrier until nearly all its changes are in effect, of the slowest
/// switch: the `effect` of profiles.
fn barrier_lag(scenario: &Scenario) -> Duration {
    let profiles = scenario.switches.iter().filter_map(|switch| switch.profile.as_deref());
    profiles.map(|profile| profile.time_until_effect(EFFECTIVE_SHARE)).max().unwrap_or_default()
}

/// Returns the time after all switches have connected in which the embedded controller finds the links of the network.
pub fn time_to_find_links(scenario: &Scenario) -> Duration {
    match scenario.control {
        ScenarioController::Embedded { app: EmbeddedApp::Forwarding, .. } => TIME_TO_FIND_LINKS,
        _ => Duration::ZERO,
    }
}

/// Returns the times, after links were found and before traffic begins, in which hosts are found and in which intents
/// are carried out. Hosts announce themselves ([`StackHost::announce`](crate::StackHost::announce)) at the beginning,
/// and the controller gets the intents ([`submit`](crate::intents::submit)) between both. `None` without intents: hosts
/// are then found by their traffic.
pub fn times_for_intents(scenario: &Scenario) -> Option<[Duration; 2]> {
    (!scenario.network_control.intents.is_empty()).then_some([TIME_TO_FIND_HOSTS, TIME_FOR_INTENTS])
}

/// Returns the settings of a learning switch that knows the tenants and the links of a scenario.
fn learning(scenario: &Scenario) -> LearningConfig {
    let vlan = |host: &ScenarioHost| {
        let vlan = scenario.tenants[host.tenant?].vlan;
        Some(((scenario.switches[host.switch].dpid, PortNo(host.port)), vlan))
    };
    let end = |end: LinkEnd| (scenario.switches[end.switch].dpid, PortNo(end.port));
    LearningConfig {
        access: scenario.hosts.iter().filter_map(vlan).collect(),
        links: scenario.links.iter().map(|link| link.ends.map(end)).collect(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_scenario::Profile;

    #[test]
    fn the_slowest_profile_says_how_late_barriers_are() {
        let text = "[controller]\napp = \"forwarding\"\n[[switch]]\nname = \"a\"\n[[switch]]\nname = \"b\"\n";
        let mut scenario = Scenario::parse(text, "test.toml").expect("a scenario");
        assert_eq!(network_config(&scenario).tables.barrier_lag, Duration::ZERO);
        let profile = |effect: &str| {
            let head = "name = \"late\"\ndevice = \"late\"\norigin = \"assumed\"\nsource = \"a test\"\n";
            let profile = Profile::parse(&format!("{head}effect = \"{effect}\"\n"), "late.toml");
            Some(Box::new(profile.expect("a profile")))
        };
        for (switch, effect) in scenario.switches.iter_mut().zip(["5ms", "2ms"]) {
            switch.profile = profile(effect);
        }
        let lag = network_config(&scenario).tables.barrier_lag;
        assert!(lag.abs_diff(Duration::from_millis(5)) < Duration::from_micros(1), "{lag:?}");
    }
}
