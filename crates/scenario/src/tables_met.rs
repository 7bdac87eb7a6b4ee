//! Says what packets of a scenario's traffic meet in the tables of its switches, so that answers without flow tables
//! (formulas, simulated stations) use the same part of a profile as a switch that looks the packets up.
use crate::{FailMode, Scenario, ScenarioController, ScenarioSwitch, TrafficItem, TrafficKind};
use std::net::IpAddr;
use weir_openflow::model::{FlowCommand, FlowMod, Instruction, MatchField};
use weir_openflow::text;
use weir_packet::Field;
use weir_packet::field::{eth_type, ip_proto};
use weir_profile::{LevelForwarding, MatchLayers, ProfileUse};

/// Entries that packets meet in the tables of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MetLevel {
    /// Level of the profile, from 0: the slowest that holds an entry of the packet.
    pub level: usize,
    /// Addresses that these entries match.
    pub kind: MatchLayers,
    /// Number of entries in the level.
    pub entries: u64,
}

impl MetLevel {
    /// Returns how the level forwards; none if the profile does not say.
    pub fn forwarding(self, switch: &ScenarioSwitch) -> Option<&LevelForwarding> {
        switch.profile.as_ref()?.forwarding.get(self.level)?.as_ref()
    }
}

/// Contents of all switches' tables: the entries of the file, or those that a controller adds by addresses.
#[derive(Debug)]
pub struct ScenarioTables<'a> {
    scenario: &'a Scenario,
    /// Entries of the file, by switch.
    written: Vec<Vec<FlowMod>>,
    /// Learned entries, by switch: pairs of hosts, with the number of entries of the pair.
    learned: Vec<Vec<([usize; 2], u64)>>,
}

impl<'a> ScenarioTables<'a> {
    /// Returns the tables, given the switches that the packets of each traffic item pass.
    pub fn new(scenario: &'a Scenario, passed: &[Vec<usize>]) -> ScenarioTables<'a> {
        let parse = |entry: &String| text::parse_flow(entry, FlowCommand::Add).ok();
        let learns = !matches!(scenario.control, ScenarioController::None);
        let written = |switch: &ScenarioSwitch| match learns {
            // Controllers usually delete what they find.
            true => Vec::new(),
            false => switch.entries.iter().filter_map(parse).collect(),
        };
        let mut learned = vec![Vec::new(); scenario.switches.len()];
        for (item, switches) in scenario.traffic.iter().zip(passed).filter(|_| learns) {
            let flows = if let TrafficKind::Udp { flows: Some(flows), .. } = item.kind { flows.into() } else { 1 };
            for switch in switches {
                let of_switch: &mut Vec<([usize; 2], u64)> = &mut learned[*switch];
                for (pair, entries) in [([item.from, item.to], flows), ([item.to, item.from], 1)] {
                    match of_switch.iter_mut().find(|(known, _)| *known == pair) {
                        Some((_, known)) => *known = entries.max(*known),
                        None => of_switch.push((pair, entries)),
                    }
                }
            }
        }
        ScenarioTables { scenario, written: scenario.switches.iter().map(written).collect(), learned }
    }

    /// Returns what packets of a traffic item meet at a switch; `back` for those of the opposite direction.
    pub fn met(&self, switch: usize, item: &TrafficItem, back: bool) -> MetLevel {
        let (mut found, mut kinds) = (Vec::new(), [false; 2]);
        let own = &self.scenario.switches[switch];
        let is_skipped = self.scenario.control == ScenarioController::None && own.fail_mode == FailMode::Standalone;
        if self.learned[switch].is_empty() && !is_skipped {
            let mut table = 0;
            while let Some(at) = self.best(switch, table, item, back) {
                let entry = &self.written[switch][at];
                found.push(at as u64);
                for (kind, fields) in kinds.iter_mut().zip([&ETHERNET[..], &IP[..]]) {
                    *kind |= fields.iter().any(|field| entry.matching.get(*field).is_some_and(|(_, mask)| mask != 0));
                }
                let Some(next) = entry.instructions.iter().find_map(goto).filter(|next| *next > table) else { break };
                table = next;
            }
        } else if !is_skipped {
            let pair = if back { [item.to, item.from] } else { [item.from, item.to] };
            let before = self.learned[switch].iter().take_while(|(known, _)| *known != pair);
            // The entry for packets without an entry comes first.
            found.push(1 + before.map(|(_, entries)| entries).sum::<u64>());
            kinds[0] = true;
        }
        let level = found.iter().map(|at| self.level_of(switch, *at)).max().unwrap_or_else(|| self.last(switch));
        MetLevel { level, kind: MatchLayers::of(kinds[0], kinds[1]), entries: self.entries(switch, level) }
    }

    /// Returns what packets without an entry meet: they have passed all levels.
    pub fn missed(&self, switch: usize) -> MetLevel {
        let level = self.last(switch);
        MetLevel { level, kind: MatchLayers::L2, entries: self.entries(switch, level) }
    }

    /// Returns the entry of highest priority in a table that matches an item's packets. Only addresses and protocol
    /// are compared; ports, tags and the rest count as matched.
    fn best(&self, switch: usize, table: u8, item: &TrafficItem, back: bool) -> Option<usize> {
        let packet = |field| self.field(item, back, field);
        let matches = |entry: &FlowMod| {
            entry.table.0 == table
                && entry.matching.fields.iter().all(|one| match one {
                    MatchField::Known { field, value, mask } => {
                        let mask = mask.unwrap_or(field.all_ones());
                        packet(*field).is_none_or(|own| own & mask == value & mask)
                    }
                    MatchField::Raw(_) => true,
                })
        };
        let all = self.written[switch].iter().enumerate().filter(|(_, entry)| matches(entry));
        all.max_by_key(|(at, entry)| (entry.priority, std::cmp::Reverse(*at))).map(|(at, _)| at)
    }

    /// Returns a field of an item's packets; none if it is not compared.
    fn field(&self, item: &TrafficItem, back: bool, field: Field) -> Option<u128> {
        let hosts = [item.from, item.to].map(|host| &self.scenario.hosts[host]);
        let is_v6 = item.address.is_ipv6();
        let sender = hosts[0].ip.iter().map(|net| net.addr).find(|addr| addr.is_ipv6() == is_v6)?;
        let (macs, ips) = (hosts.map(|host| u128::from(host.mac.to_bits())), [sender, item.address].map(bits));
        let (from, to) = if back { (1, 0) } else { (0, 1) };
        Some(match field {
            Field::EthSrc => macs[from],
            Field::EthDst => macs[to],
            Field::EthType => u128::from(if is_v6 { eth_type::IPV6 } else { eth_type::IPV4 }),
            Field::Ipv4Src | Field::Ipv6Src => ips[from],
            Field::Ipv4Dst | Field::Ipv6Dst => ips[to],
            Field::IpProto => u128::from(match item.kind {
                TrafficKind::Ping { .. } if is_v6 => ip_proto::ICMPV6,
                TrafficKind::Ping { .. } => ip_proto::ICMP,
                TrafficKind::Tcp { .. } => ip_proto::TCP,
                TrafficKind::Udp { .. } => ip_proto::UDP,
            }),
            _ => return None,
        })
    }

    fn total(&self, switch: usize) -> u64 {
        match &self.learned[switch][..] {
            [] => self.written[switch].len() as u64,
            learned => 1 + learned.iter().map(|(_, entries)| entries).sum::<u64>(),
        }
    }

    fn sizes(&self, switch: usize) -> impl Iterator<Item = Option<u64>> {
        let tables = self.scenario.switches[switch].profile.as_ref().and_then(|profile| profile.tables.as_ref());
        tables.into_iter().flat_map(|tables| tables.levels.iter().map(|level| level.size))
    }

    fn last(&self, switch: usize) -> usize {
        self.sizes(switch).count().saturating_sub(1)
    }

    /// Returns the level of an entry, given its place among all in order of arrival: each level is filled in turn. The
    /// size of a level is its own room.
    fn level_of(&self, switch: usize, at: u64) -> usize {
        let mut before = 0u64;
        let fits = |size: Option<u64>| {
            before = size.map_or(u64::MAX, |size| before.saturating_add(size));
            at < before
        };
        self.sizes(switch).position(fits).unwrap_or_else(|| self.last(switch))
    }

    /// Returns the number of entries in a level of a switch; 0 if the switch's profile has no levels.
    pub fn entries(&self, switch: usize, level: usize) -> u64 {
        let before: u64 = self.sizes(switch).take(level).flatten().sum();
        let left = self.total(switch).saturating_sub(before);
        self.sizes(switch).nth(level).map_or(0, |size| size.map_or(left, |size| size.min(left)))
    }
}

/// Returns a text for each profile with parameters that have no effect on an answer: its switches, and the parameters.
pub fn unused_parameters(scenario: &Scenario, used: ProfileUse) -> Vec<String> {
    let mut found: Vec<(Vec<&str>, Vec<String>)> = Vec::new();
    for switch in &scenario.switches {
        let keys = switch.profile.as_ref().map(|profile| profile.without_effect(used)).unwrap_or_default();
        match found.iter_mut().find(|(_, known)| *known == keys) {
            _ if keys.is_empty() => {}
            Some((names, _)) => names.push(&switch.name),
            None => found.push((vec![&switch.name], keys)),
        }
    }
    let text = |(names, keys): (Vec<&str>, Vec<String>)| {
        format!("profile of {}: no effect here: {}", names.join(", "), keys.join(", "))
    };
    found.into_iter().map(text).collect()
}

const ETHERNET: [Field; 2] = [Field::EthSrc, Field::EthDst];
const IP: [Field; 4] = [Field::Ipv4Src, Field::Ipv4Dst, Field::Ipv6Src, Field::Ipv6Dst];

fn goto(instruction: &Instruction) -> Option<u8> {
    if let Instruction::GotoTable(table) = instruction { Some(table.0) } else { None }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORK: &str = "[[host]]\nname = 'a'\nswitch = 's1'\nip = '10.0.0.1/24'\n[[host]]\nname = 'b'\nswitch = 's1'\n\
        ip = '10.0.0.2/24'\n[[traffic]]\nkind = 'ping'\nfrom = 'a'\nto = 'b'\n";

    fn scenario(control: &str, entries: &str) -> Scenario {
        let switch = format!("[[switch]]\nname = 's1'\nprofile = 'two-level-tcam'\nentries = [{entries}]\n");
        Scenario::parse(&format!("[controller]\n{control}\n{switch}{NETWORK}"), "met.toml").unwrap()
    }

    #[test]
    fn it_is_the_entry_of_the_highest_priority_and_those_behind_it() {
        let entries = "'priority=1,actions=output:1', 'priority=9,ip,nw_dst=10.0.0.2,actions=resubmit(,0)', \
            'priority=9,ip,nw_dst=10.0.0.1,actions=goto_table:1', 'table=1,dl_type=0x800,actions=output:1'";
        let scenario = scenario("connect = 'none'", entries);
        let tables = ScenarioTables::new(&scenario, &[vec![0]]);
        let met = |back| tables.met(0, &scenario.traffic[0], back);
        assert_eq!(met(true), MetLevel { level: 0, kind: MatchLayers::L3, entries: 4 });
        assert_eq!(met(false).kind, MatchLayers::L3);
        assert_eq!(tables.missed(0), MetLevel { level: 1, kind: MatchLayers::L2, entries: 0 });
    }

    #[test]
    fn a_bridge_without_a_controller_skips_its_tables() {
        let mut scenario = scenario("connect = 'none'", "'actions=output:1'");
        let met = |scenario: &Scenario| ScenarioTables::new(scenario, &[vec![0]]).met(0, &scenario.traffic[0], false);
        assert_eq!(met(&scenario), MetLevel { level: 0, kind: MatchLayers::L2, entries: 1 });
        scenario.switches[0].fail_mode = FailMode::Standalone;
        assert_eq!(met(&scenario).level, 1);
    }

    #[test]
    fn learned_entries_match_ethernet_addresses() {
        let scenario = scenario("app = 'learning'", "");
        let tables = ScenarioTables::new(&scenario, &[vec![0]]);
        let met = tables.met(0, &scenario.traffic[0], false);
        assert_eq!(met, MetLevel { level: 0, kind: MatchLayers::L2, entries: 3 }, "both directions, and the miss");
    }
}
