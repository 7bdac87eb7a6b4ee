//! Describes the nodes of a lab in text.
use super::CommandError;
use crate::{Lab, LabError};
use std::io::Write;
use weir_openflow::Version;
use weir_openflow::model::multipart::FlowRequest;
use weir_scenario::{EmbeddedApp, Scenario, ScenarioController};
use weir_units::counted;

/// Lists hosts and switches.
pub(super) fn nodes(lab: &Lab, out: &mut dyn Write) -> std::io::Result<()> {
    let scenario = lab.scenario();
    for (host, namespace) in scenario.hosts.iter().zip(lab.namespaces()) {
        let addresses: Vec<String> = host.ip.iter().map(ToString::to_string).collect();
        let tenant = host.tenant.map_or(String::new(), |tenant| format!("  tenant {}", scenario.tenants[tenant].name));
        let (name, mac, switch) = (&host.name, host.mac, &scenario.switches[host.switch].name);
        writeln!(
            out,
            "{name}  {}  {mac}  at {switch} port {}{tenant}  namespace {namespace}",
            addresses.join(" "),
            host.port
        )?;
    }
    for switch in &scenario.switches {
        let ports = counted(ports(scenario, &switch.name), "port", "ports");
        let openflow = lab.folder().join(format!("{}.mgmt", switch.name));
        writeln!(out, "{}  datapath id {:#x}  {ports}  unix:{}", switch.name, switch.dpid, openflow.display())?;
    }
    match &scenario.control {
        ScenarioController::Embedded { app, .. } => {
            let what = match app {
                EmbeddedApp::Learning => "a learning switch",
                EmbeddedApp::Forwarding => "the controller of a network",
            };
            writeln!(out, "controller: {what} in this process")
        }
        ScenarioController::Connect(address) => writeln!(out, "controller: {address}"),
        ScenarioController::None => writeln!(out, "controller: none"),
    }
}

fn ports(scenario: &Scenario, name: &str) -> usize {
    let is_it = |switch: usize| scenario.switches[switch].name == name;
    let hosts = scenario.hosts.iter().filter(|host| is_it(host.switch)).count();
    hosts + scenario.links.iter().flat_map(|link| link.ends).filter(|end| is_it(end.switch)).count()
}

/// Lists a switch's flow entries in the format of `ovs-ofctl dump-flows`.
pub(super) fn dump(lab: &Lab, switch: usize, out: &mut dyn Write) -> Result<(), CommandError> {
    for flow in lab.switch(switch).flows(FlowRequest::all()).map_err(LabError::from)? {
        writeln!(out, "{}", weir_openflow::text::format_stats(&flow, Version::V13))?;
    }
    Ok(())
}

/// Shows a switch's ports and control channels.
pub(super) fn switch(lab: &Lab, switch: usize, out: &mut dyn Write) -> Result<(), CommandError> {
    let snapshot = lab.switch(switch).snapshot().map_err(LabError::from)?;
    for port in &snapshot.ports {
        let (number, name, link) = (port.number, &port.name, if port.link_up { "up" } else { "DOWN" });
        let counters = &port.counters;
        writeln!(
            out,
            "port {number} {name}  link {link}  received {}, sent {}, dropped {}",
            counters.rx_packets,
            counters.tx_packets,
            counters.rx_missed + counters.rx_errors + counters.tx_dropped()
        )?;
    }
    for channel in &snapshot.channels {
        writeln!(out, "channel {}  {}", channel.target, channel.state)?;
    }
    writeln!(out, "{}", counted(snapshot.entries(), "flow entry", "flow entries"))?;
    Ok(())
}
