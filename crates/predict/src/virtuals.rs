//! Traffic between hosts where switches are cut into virtual ones: whose packets they are, and what they wait for at the output.
use crate::graph::{Graph, Hop};
use weir_scenario::{Control, FailMode, Scenario, Selector, Traffic, VirtualSwitch};

/// A virtual switch's share of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Output {
    /// Place of the switch in the file.
    pub(crate) switch: usize,
    /// Place of the virtual switch among its.
    pub(crate) cut: usize,
    /// Numbers of the physical ports that packets come in and leave by.
    pub(crate) input: u32,
    pub(crate) output: u32,
}

/// What is known of a packet on its way.
struct Packet<'a> {
    scenario: &'a Scenario,
    traffic: &'a Traffic,
    /// From the sender to the receiver, or back.
    ends: [usize; 2],
    /// The VLAN it is in on the line that it came by; 0: none.
    vlan: u16,
}

/// A way with the outputs of virtual switches in it, each behind its switch.
///
/// # Errors
/// Why packets do not get through, in words.
pub(crate) fn through(
    scenario: &Scenario,
    graph: &Graph,
    traffic: &Traffic,
    ends: [usize; 2],
    route: Vec<Hop>,
) -> Result<Vec<Hop>, String> {
    let mut packet = Packet { scenario, traffic, ends, vlan: 0 };
    let mut way = Vec::new();
    for (at, hop) in route.iter().enumerate() {
        way.push(*hop);
        let Hop::Switch(switch) = *hop else { continue };
        let (Some(Hop::Line(before)), Some(Hop::Line(after))) = (route.get(at.wrapping_sub(1)), route.get(at + 1))
        else {
            continue;
        };
        let [input, output] = [graph.lines[*before].ports[1], graph.lines[*after].ports[0]];
        if scenario.switches[switch].virtual_switches.is_empty() {
            packet.leaves_uncut(graph.is_down(*after));
            continue;
        }
        way.push(Hop::Output(packet.taken(switch, input, output)?));
    }
    Ok(way)
}

impl Packet<'_> {
    /// A controller for tenants tags packets between switches.
    fn leaves_uncut(&mut self, to_host: bool) {
        let tenant = self.scenario.hosts[self.ends[0]].tenant.filter(|_| !to_host);
        self.vlan = tenant.map_or(0, |tenant| self.scenario.tenants[tenant].vlan);
    }

    /// The virtual switch that takes it from port to port.
    fn taken(&mut self, switch: usize, input: u32, output: u32) -> Result<Output, String> {
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
        if own.connect.is_empty()
            && own.listen.is_empty()
            && own.entries.is_empty()
            && own.fail_mode != FailMode::Standalone
        {
            let problem = "has neither a controller nor entries, and is not standalone: it forwards nothing";
            return Err(format!("{name}: virtual switch {} {problem}", own.name));
        }
        self.vlan = leaves.vlan.unwrap_or(self.vlan);
        Ok(Output { switch, cut, input, output })
    }

    fn is_chosen(&self, selector: &Selector, input: u32) -> bool {
        let [from, to] = self.ends.map(|host| &self.scenario.hosts[host]);
        // The receiver's address is the item's, on the way there; on the way back it is the sender's.
        let there = self.ends == [self.traffic.from, self.traffic.to];
        let v6 = self.traffic.address.is_ipv6();
        let own = |host: &weir_scenario::Host| host.ip.iter().find(|ip| ip.addr.is_ipv6() == v6).map(|ip| ip.addr);
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

/// Whether a switch that is not cut forwards anything.
pub(crate) fn forwards(scenario: &Scenario, switch: usize) -> bool {
    let switch = &scenario.switches[switch];
    !switch.virtual_switches.is_empty()
        || scenario.control != Control::None
        || switch.fail_mode == FailMode::Standalone
        || !switch.entries.is_empty()
}
