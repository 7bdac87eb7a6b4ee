//! Makes the controller of a scenario.
use weir_controller::apps::learning::{LearningConfig, LearningSwitch};
use weir_openflow::Version;
use weir_openflow::session::SessionConfig;
use weir_packet::PortNo;
use weir_scenario::{EmbeddedApp, LinkEnd, OpenFlowVersion, Scenario, ScenarioController, ScenarioHost};

/// Returns the application of a scenario's embedded controller and the settings of its sessions; `None` if the
/// controller is external or there is none.
pub fn embedded(scenario: &Scenario) -> Option<(LearningSwitch, SessionConfig)> {
    let ScenarioController::Embedded { app: EmbeddedApp::Learning, openflow } = scenario.control else {
        return None;
    };
    let vlan = |host: &ScenarioHost| {
        let vlan = scenario.tenants[host.tenant?].vlan;
        Some(((scenario.switches[host.switch].dpid, PortNo(host.port)), vlan))
    };
    let end = |end: LinkEnd| (scenario.switches[end.switch].dpid, PortNo(end.port));
    let learning = LearningConfig {
        access: scenario.hosts.iter().filter_map(vlan).collect(),
        links: scenario.links.iter().map(|link| link.ends.map(end)).collect(),
        ..Default::default()
    };
    let versions = match openflow {
        OpenFlowVersion::V10 => vec![Version::V10],
        OpenFlowVersion::V13 => vec![Version::V13, Version::V10],
    };
    Some((LearningSwitch::new(learning), SessionConfig { versions, ..SessionConfig::default() }))
}
