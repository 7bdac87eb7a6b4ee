//! Decides whether hosts resolve addresses (ARP, neighbour discovery) or know them from the start.
//!
//! The kernel keeps resolved addresses of all namespaces in one table, whose size only the initial namespace can set.
//! If all hosts talk to all others, the table is soon full and packets wait for room. Permanent entries do not count.
use std::fs;
use std::net::IpAddr;
use std::str::FromStr;
use weir_packet::MacAddr;
use weir_scenario::ScenarioHost;

/// Files with the kernel's limits on resolved neighbours, for IPv4 and IPv6.
const ROOM: [&str; 2] = ["/proc/sys/net/ipv4/neigh/default/gc_thresh3", "/proc/sys/net/ipv6/neigh/default/gc_thresh3"];
/// Limit assumed if the kernel does not give one.
const USUAL_ROOM: usize = 1024;

/// Method by which hosts of a lab find each other's Ethernet addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NeighbourResolution {
    /// Hosts ask, unless the kernel's table has no room for all answers.
    #[default]
    Auto,
    /// Hosts always ask.
    Ask,
    /// Hosts know the addresses of their own tenant's hosts from the start.
    Known,
}

impl FromStr for NeighbourResolution {
    type Err = String;

    fn from_str(text: &str) -> Result<NeighbourResolution, String> {
        match text {
            "auto" => Ok(NeighbourResolution::Auto),
            "ask" => Ok(NeighbourResolution::Ask),
            "known" => Ok(NeighbourResolution::Known),
            _ => Err(format!("found `{text}`, expected auto, ask or known")),
        }
    }
}

impl NeighbourResolution {
    /// Returns true if these hosts know each other's addresses from the start.
    pub(crate) fn are_known(self, hosts: &[ScenarioHost]) -> bool {
        match self {
            NeighbourResolution::Ask => false,
            NeighbourResolution::Known => true,
            NeighbourResolution::Auto => {
                let v4 = (0..hosts.len()).flat_map(|host| of(hosts, host)).filter(|(address, _)| address.is_ipv4());
                let v6 = (0..hosts.len()).flat_map(|host| of(hosts, host)).filter(|(address, _)| address.is_ipv6());
                v4.count() > room(ROOM[0]) || v6.count() > room(ROOM[1])
            }
        }
    }
}

fn room(file: &str) -> usize {
    fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(USUAL_ROOM)
}

/// Returns the addresses of the other hosts of a host's tenant.
pub(super) fn of(hosts: &[ScenarioHost], host: usize) -> impl Iterator<Item = (IpAddr, MacAddr)> {
    let tenant = hosts[host].tenant;
    let others = hosts.iter().enumerate().filter(move |(at, other)| *at != host && other.tenant == tenant);
    others.flat_map(|(_, other)| other.ip.iter().map(|net| (net.addr, other.mac)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_scenario::Scenario;

    fn hosts(count: usize) -> Vec<ScenarioHost> {
        let mut text = "[[tenant]]\nname = \"red\"\nvlan = 5\n[[switch]]\nname = \"s1\"\n".to_owned();
        for number in 1..=count {
            let (high, low) = (number / 200, number % 200 + 1);
            text += &format!("[[host]]\nname = \"h{number}\"\nswitch = \"s1\"\nip = \"10.0.{high}.{low}/16\"\n");
        }
        text += "[[host]]\nname = \"r\"\nswitch = \"s1\"\ntenant = \"red\"\nip = [\"10.9.0.1/16\", \"fd00::1/64\"]\n";
        Scenario::parse(&text, "neighbours").unwrap_or_else(|error| panic!("{error}")).hosts
    }

    #[test]
    fn hosts_know_those_of_their_tenant() {
        let hosts = hosts(3);
        let first: Vec<_> = of(&hosts, 0).collect();
        let expected = [1, 2].map(|other: usize| (hosts[other].ip[0].addr, hosts[other].mac));
        assert_eq!(first, expected);
        assert_eq!(of(&hosts, 3).count(), 0, "alone");
    }

    #[test]
    fn many_hosts_know_each_other_unless_told_otherwise() {
        let (few, many) = (hosts(4), hosts(500));
        let known = |wanted: &str| {
            let wanted: NeighbourResolution = wanted.parse().unwrap();
            [&few, &many].map(|hosts| wanted.are_known(hosts))
        };
        assert_eq!((known("ask"), known("known")), ([false, false], [true, true]));
        // Needs 249,500 entries; a machine with a higher limit lets hosts ask.
        assert_eq!(known("auto"), [false, room(ROOM[0]) < 249_500]);
        assert!(
            "always"
                .parse::<NeighbourResolution>()
                .unwrap_err()
                .contains("found `always`, expected auto, ask or known")
        );
    }
}
