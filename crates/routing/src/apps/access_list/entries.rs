//! Flow entries of an access list: rules as matches, ranges of ports as masks.
use super::rule::{AccessAction, AccessRule};
use crate::app::{ACCESS_TABLE, REWRITE_TABLE};
use crate::map::SwitchPort;
use crate::tables::DesiredEntry;
use weir_openflow::model::{Instruction, Match, PortNo, TableId};
use weir_packet::field::{eth_type, ip_proto};
use weir_packet::{Field, FlowKey, FlowMask};

/// Priority of the first rule's entries. Each later rule has one less.
pub const TOP_PRIORITY: u16 = 0xf000;
/// Most rules.
pub const MAX_RULES: usize = 1000;
/// Most entries of a rule in a switch. Two ranges of ports need up to 900 for each version of IP.
pub const MAX_ENTRIES_OF_RULE: usize = 2048;
/// Most entries of all rules together.
pub const MAX_ENTRIES: usize = 16_384;

/// An entry of an access list.
#[derive(Debug, Clone)]
pub(super) struct AccessEntry {
    /// Index of its rule.
    pub(super) rule: usize,
    /// Switch that has it; `None` for all.
    pub(super) dpid: Option<u64>,
    pub(super) matching: Match,
    /// The match as value and mask.
    pub(super) value: FlowKey,
    pub(super) mask: FlowMask,
}

impl AccessEntry {
    /// Returns the priority of the entry in a switch.
    pub(super) fn priority(&self) -> u16 {
        TOP_PRIORITY - u16::try_from(self.rule).unwrap_or(TOP_PRIORITY)
    }

    /// Returns the entry as a switch should have it.
    pub(super) fn desired(&self, action: AccessAction) -> DesiredEntry {
        let instructions = match action {
            AccessAction::Permit => vec![Instruction::GotoTable(TableId(REWRITE_TABLE))],
            AccessAction::Deny => Vec::new(),
        };
        DesiredEntry::new(ACCESS_TABLE, self.priority(), self.matching.clone(), instructions)
    }

    /// Returns true if the entry applies to a packet that enters at a switch.
    pub(super) fn applies(&self, at: SwitchPort, key: &FlowKey) -> bool {
        self.dpid.is_none_or(|dpid| dpid == at.dpid) && key.matches(&self.value, &self.mask)
    }
}

/// Returns the entries of all rules, in the order of the rules.
///
/// # Errors
/// The number of the rule that is wrong or needs too many entries, and why.
pub(super) fn entries_of(rules: &[AccessRule]) -> Result<Vec<AccessEntry>, String> {
    if rules.len() > MAX_RULES {
        return Err(format!("found {} rules, expected at most {MAX_RULES}", rules.len()));
    }
    let mut entries = Vec::new();
    for (index, rule) in rules.iter().enumerate() {
        let problem = |problem: String| format!("rule {}: {problem}", index + 1);
        rule.check().map_err(problem)?;
        for (dpid, port) in places(rule) {
            let matches = matches_of(rule, port);
            if matches.len() > MAX_ENTRIES_OF_RULE || entries.len() + matches.len() > MAX_ENTRIES {
                let limits = format!("at most {MAX_ENTRIES_OF_RULE} of a rule and {MAX_ENTRIES} of all");
                return Err(problem(format!("found too many flow entries, expected {limits}")));
            }
            for matching in matches {
                let (value, mask) = matching.key_and_mask().map_err(|error| problem(format!("{error:?}")))?;
                entries.push(AccessEntry { rule: index, dpid, matching, value, mask });
            }
        }
    }
    Ok(entries)
}

/// Returns where a rule has entries: switch and input port, `None` for all. Ports of a switch that is named as a whole
/// need none of their own.
fn places(rule: &AccessRule) -> Vec<(Option<u64>, Option<PortNo>)> {
    if rule.at.is_empty() {
        return vec![(None, None)];
    }
    let is_whole = |dpid: u64| rule.at.iter().any(|place| place.dpid == dpid && place.port.is_none());
    let own = rule.at.iter().filter(|place| place.port.is_none() || !is_whole(place.dpid));
    let mut places = Vec::new();
    for place in own.map(|place| (Some(place.dpid), place.port)) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Returns the matches that together are a rule's packets from a port.
fn matches_of(rule: &AccessRule, port: Option<PortNo>) -> Vec<Match> {
    let mut link = Match::any();
    if let Some(port) = port {
        link = link.with(Field::InPort, port.0);
    }
    for (field, mac) in [(Field::EthDst, rule.destination_mac), (Field::EthSrc, rule.source_mac)] {
        if let Some(mac) = mac {
            link = link.with(field, mac.to_bits());
        }
    }
    let is_about_ip = rule.source.is_some() || rule.destination.is_some() || rule.protocol.is_some();
    if !is_about_ip {
        return vec![link];
    }
    let versions = [true, false].into_iter().filter(|is_ipv4| rule.is_ipv4().is_none_or(|only| only == *is_ipv4));
    versions.flat_map(|is_ipv4| ip_matches(rule, link.clone(), is_ipv4)).collect()
}

/// Returns the matches of a rule in one version of IP, each with the fields of `link`.
fn ip_matches(rule: &AccessRule, link: Match, is_ipv4: bool) -> Vec<Match> {
    let mut ip = link.with(Field::EthType, if is_ipv4 { eth_type::IPV4 } else { eth_type::IPV6 });
    let number = rule.protocol.and_then(|protocol| protocol.number);
    if let Some(number) = number {
        ip = ip.with(Field::IpProto, number);
    }
    let [source, destination] =
        if is_ipv4 { [Field::Ipv4Src, Field::Ipv4Dst] } else { [Field::Ipv6Src, Field::Ipv6Dst] };
    for (field, prefix) in [(source, rule.source), (destination, rule.destination)] {
        let Some(prefix) = prefix else { continue };
        let bits = match prefix.0.addr {
            std::net::IpAddr::V4(v4) => u128::from(v4.to_bits()),
            std::net::IpAddr::V6(v6) => v6.to_bits(),
        };
        let behind = field.bits().saturating_sub(prefix.0.prefix.into());
        let mask = field.all_ones() & u128::MAX.checked_shl(behind).unwrap_or(0);
        ip = ip.with_bits(field, bits & mask, mask);
    }
    let [source, destination] = match number {
        Some(ip_proto::UDP) => [Field::UdpSrc, Field::UdpDst],
        Some(ip_proto::SCTP) => [Field::SctpSrc, Field::SctpDst],
        _ => [Field::TcpSrc, Field::TcpDst],
    };
    let mut matches = vec![ip];
    for (field, range) in [(source, rule.source_port), (destination, rule.destination_port)] {
        let Some(range) = range else { continue };
        let blocks = range.blocks();
        let with_block = |matching: &Match| {
            let matching = matching.clone();
            let with = |(value, mask): &(u16, u16)| matching.clone().with_bits(field, *value, *mask);
            blocks.iter().map(with).collect::<Vec<_>>()
        };
        matches = matches.iter().flat_map(with_block).collect();
    }
    matches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_limited() {
        let rule: AccessRule = toml::from_str(
            "action = \"deny\"\nprotocol = \"tcp\"\nsource-port = \"1-65534\"\ndestination-port = \"1-65534\"",
        )
        .unwrap();
        assert_eq!(entries_of(std::slice::from_ref(&rule)).unwrap().len(), 2 * 30 * 30);
        let problem = entries_of(&vec![rule; 10]).unwrap_err();
        assert!(problem.starts_with("rule 10: found too many flow entries"), "{problem}");
        let deny: AccessRule = toml::from_str("action = \"deny\"").unwrap();
        assert!(entries_of(&vec![deny; MAX_RULES + 1]).unwrap_err().contains("1001 rules"));
    }

    #[test]
    fn ports_of_a_whole_switch_need_no_entries() {
        let rule: AccessRule = toml::from_str("action = \"deny\"\nat = [\"1:2\", \"1\", \"2:1\", \"2:1\"]").unwrap();
        assert_eq!(places(&rule), [(Some(1), None), (Some(2), Some(PortNo(1)))]);
    }
}
