//! Models traffic between hosts over switches with virtual switches: finds the virtual switch that takes the packets,
//! and the output at which they wait.
use crate::graph::{RouteGraph, RouteHop};
use weir_model::Warning;
use weir_scenario::{FailMode, Scenario, ScenarioController, TrafficItem};
use weir_slicing::{PacketSelector, VirtualSwitch};

/// Share of an output that a virtual switch has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VirtualSwitchOutput {
    /// Index of the switch in the scenario.
    pub(crate) switch: usize,
    /// Index of the virtual switch in its switch.
    pub(crate) cut: usize,
    /// Numbers of the physical ports at which packets arrive and leave.
    pub(crate) input: u32,
    pub(crate) output: u32,
}

/// Properties of a packet on its route.
struct RoutedPacket<'a> {
    scenario: &'a Scenario,
    traffic: &'a TrafficItem,
    /// Sender and receiver of this direction.
    ends: [usize; 2],
    /// VLAN of the packet on the line by which it arrived; 0 for none.
    vlan: u16,
}

/// Returns the route with the outputs of virtual switches, each behind its switch.
///
/// # Errors
/// The reason in words why packets do not get through.
pub(crate) fn insert_outputs(
    scenario: &Scenario,
    graph: &RouteGraph,
    traffic: &TrafficItem,
    ends: [usize; 2],
    route: Vec<RouteHop>,
) -> Result<Vec<RouteHop>, String> {
    let mut packet = RoutedPacket { scenario, traffic, ends, vlan: 0 };
    let mut way = Vec::new();
    for (at, hop) in route.iter().enumerate() {
        way.push(*hop);
        let RouteHop::Switch(switch) = *hop else { continue };
        let (Some(RouteHop::Line(before)), Some(RouteHop::Line(after))) =
            (route.get(at.wrapping_sub(1)), route.get(at + 1))
        else {
            continue;
        };
        let [input, output] = [graph.lines[*before].ports[1], graph.lines[*after].ports[0]];
        if scenario.switches[switch].virtual_switches.is_empty() {
            packet.update_vlan(graph.is_down(*after));
            continue;
        }
        way.push(RouteHop::Output(packet.virtual_output(switch, input, output)?));
    }
    Ok(way)
}

impl RoutedPacket<'_> {
    /// Updates the VLAN behind a switch without virtual switches: a controller for tenants tags packets between
    /// switches.
    fn update_vlan(&mut self, to_host: bool) {
        let tenant = self.scenario.hosts[self.ends[0]].tenant.filter(|_| !to_host);
        self.vlan = tenant.map_or(0, |tenant| self.scenario.tenants[tenant].vlan);
    }

    /// Returns the output of the virtual switch that takes the packet from port to port.
    fn virtual_output(&mut self, switch: usize, input: u32, output: u32) -> Result<VirtualSwitchOutput, String> {
        let physical = &self.scenario.switches[switch];
        let whose = |one: &VirtualSwitch| one.select.iter().any(|selector| self.is_chosen(selector, input));
        let name = &physical.name;
        let Some(cut) = physical.virtual_switches.iter().position(whose) else {
            return Err(format!("{name}: no virtual switch takes its packets at port {input}"));
        };
        let own = &physical.virtual_switches[cut];
        let port = |number: u32| own.ports.iter().find(|port| port.port == number);
        let comes_in = port(input).is_some_and(|port| port.rate_in.0 > 0);
        let Some(leaves) = port(output).filter(|port| comes_in && port.rate_out.0 > 0) else {
            return Err(format!("{name}: virtual switch {} has no way from port {input} to port {output}", own.name));
        };
        if own.app.is_none()
            && own.connect.is_empty()
            && own.listen.is_empty()
            && own.entries.is_empty()
            && own.fail_mode != FailMode::Standalone
        {
            let problem = "has neither a controller nor entries, and is not standalone: it forwards nothing";
            return Err(format!("{name}: virtual switch {} {problem}", own.name));
        }
        self.vlan = leaves.vlan.unwrap_or(self.vlan);
        Ok(VirtualSwitchOutput { switch, cut, input, output })
    }

    fn is_chosen(&self, selector: &PacketSelector, input: u32) -> bool {
        let [from, to] = self.ends.map(|host| &self.scenario.hosts[host]);
        // The item's address is the receiver's on the way there, and the sender's on the way back.
        let there = self.ends == [self.traffic.from, self.traffic.to];
        let v6 = self.traffic.address.is_ipv6();
        let own =
            |host: &weir_scenario::ScenarioHost| host.ip.iter().find(|ip| ip.addr.is_ipv6() == v6).map(|ip| ip.addr);
        let (source, target) =
            if there { (own(from), Some(self.traffic.address)) } else { (Some(self.traffic.address), own(to)) };
        selector.port.is_none_or(|port| port == input)
            && selector.vlan.is_none_or(|vlan| vlan == self.vlan)
            && selector.eth_src.is_none_or(|mac| mac == from.mac)
            && selector.eth_dst.is_none_or(|mac| mac == to.mac)
            && selector.ip_src.is_none_or(|net| source.is_some_and(|ip| net.contains(ip)))
            && selector.ip_dst.is_none_or(|net| target.is_some_and(|ip| net.contains(ip)))
            && selector.mpls.is_none()
            && selector.tunnel.is_none()
    }
}

/// Returns warnings about controllers of virtual switches, whose packet-ins the formulas do not count, and about
/// switches that have both service times and virtual switches.
pub(crate) fn warnings(scenario: &Scenario) -> Vec<Warning> {
    let all = scenario.switches.iter().flat_map(|switch| &switch.virtual_switches);
    let controlled = all.filter(|cut| cut.app.is_some() || !cut.connect.is_empty()).map(|cut| cut.name.as_str());
    let controlled: Vec<&str> = controlled.collect();
    let timed =
        scenario.switches.iter().filter(|switch| switch.timing.is_some() && !switch.virtual_switches.is_empty());
    let timed: Vec<&str> = timed.map(|switch| switch.name.as_str()).collect();
    let controllers = format!(
        "virtual switches with a controller are predicted as if they had all entries: the first packets of their \
         flows, which wait for the controller, take longer ({})",
        controlled.join(", ")
    );
    let devices = format!(
        "all virtual switches of a switch with service times are predicted as if they shared one device: each has a \
         device of its own, so its packets wait less under load ({})",
        timed.join(", ")
    );
    let mut warnings = Vec::new();
    if !controlled.is_empty() {
        warnings.push(Warning::new("VIRTUAL_CONTROLLERS", controllers));
    }
    if !timed.is_empty() {
        warnings.push(Warning::new("VIRTUAL_DEVICES", devices));
    }
    warnings
}

/// Returns true if a switch forwards anything. Those with virtual switches are checked separately.
pub(crate) fn forwards(scenario: &Scenario, switch: usize) -> bool {
    let switch = &scenario.switches[switch];
    !switch.virtual_switches.is_empty()
        || scenario.control != ScenarioController::None
        || switch.fail_mode == FailMode::Standalone
        || !switch.entries.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_and_devices_of_virtual_switches_are_named() {
        let text = "[[switch]]\nname = 's1'\nTIMING[switch.fabric]\nports = 2\nrate = '1Gbit/s'\n[[switch.virtual]]\n\
                    name = 'gold'\ndpid = 7\nbuffer = '24kB'\nports = [{ port = 1, rate = '1Gbit/s' }]\nAPP";
        let codes = |timing: &str, app: &str| {
            let text = text.replace("TIMING", timing).replace("APP", app);
            let scenario = Scenario::parse(&text, "test").unwrap_or_else(|error| panic!("{error}"));
            warnings(&scenario).into_iter().map(|warning| warning.kind).collect::<Vec<_>>()
        };
        let (timing, app) = ("[switch.timing]\ndata = '9us'\n", "app = 'learning'\n");
        assert!(codes("", "").is_empty());
        assert_eq!(codes("", app), ["VIRTUAL_CONTROLLERS"]);
        assert_eq!(codes(timing, ""), ["VIRTUAL_DEVICES"]);
    }
}
