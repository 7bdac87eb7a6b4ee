//! Settings of the DHCP server.
use crate::apps::access_list::AccessPlace;
use crate::map::SwitchPort;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;
use std::time::Duration;
use weir_packet::{IpNet, MacAddr};
use weir_units::TimeSpan;

/// Most pools.
pub const MAX_POOLS: usize = 256;
/// Most addresses in the ranges and reservations of all pools.
pub const MAX_POOL_ADDRESSES: u32 = 1 << 18;
/// Most DNS servers of a pool: as many as fit into one option with many others.
pub const MAX_DNS_SERVERS: usize = 8;
/// Shortest and longest time of a lease.
pub const LEASE_TIMES: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(366 * 24 * 3600)];

/// Settings of the DHCP server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DhcpConfig {
    /// IP address of the server (server identifier). The application answers ARP for it.
    pub address: Ipv4Addr,
    /// Ethernet address of the server.
    #[serde(default = "default_mac")]
    pub mac: MacAddr,
    /// Most addresses that hosts at one port have, so that one host cannot take all.
    #[serde(default = "default_port_leases")]
    pub max_leases_per_port: u32,
    /// Pools of addresses; at least one.
    #[serde(rename = "pool")]
    pub pools: Vec<DhcpPool>,
}

/// Addresses of a subnet that the server gives to hosts, and what it tells them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DhcpPool {
    /// Subnet, such as `10.0.0.0/24`.
    pub subnet: IpNet,
    /// Addresses to give, `FIRST-LAST`, such as `10.0.0.100-10.0.0.199`.
    pub range: AddressRange,
    /// Ports and switches whose hosts have addresses of this pool; empty for all that no other pool names.
    #[serde(default)]
    pub at: Vec<AccessPlace>,
    /// Router that the hosts use, if any.
    pub router: Option<Ipv4Addr>,
    /// DNS servers, the preferred one first.
    #[serde(default)]
    pub dns: Vec<Ipv4Addr>,
    /// Domain in which hosts look for names without dots, if any.
    pub domain: Option<String>,
    /// Time for which a host has an address without asking again.
    #[serde(default = "default_lease_time")]
    pub lease_time: TimeSpan,
    /// Hosts that always have the same address.
    #[serde(default, rename = "reservation")]
    pub reservations: Vec<Reservation>,
}

/// Address of a host that always has the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    /// Ethernet address of the host.
    pub mac: MacAddr,
    /// IP address of the host, in the pool's subnet, inside or outside of its range.
    pub ip: Ipv4Addr,
}

/// Range of IPv4 addresses, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    /// First address.
    pub first: Ipv4Addr,
    /// Last address, not below the first.
    pub last: Ipv4Addr,
}

fn default_mac() -> MacAddr {
    MacAddr([0x02, 0x77, 0x65, 0x69, 0x72, 0x02])
}

fn default_port_leases() -> u32 {
    256
}

fn default_lease_time() -> TimeSpan {
    TimeSpan(Duration::from_secs(3600))
}

impl FromStr for AddressRange {
    type Err = String;

    fn from_str(text: &str) -> Result<AddressRange, String> {
        let error = || format!("found `{text}`, expected two addresses in order such as 10.0.0.100-10.0.0.199");
        let (first, last) = text.split_once('-').ok_or_else(error)?;
        let address = |text: &str| text.trim().parse().map_err(|_| error());
        let range = AddressRange { first: address(first)?, last: address(last)? };
        if range.first <= range.last { Ok(range) } else { Err(error()) }
    }
}

impl<'de> Deserialize<'de> for AddressRange {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl AddressRange {
    /// Returns the number of addresses.
    pub fn len(self) -> u32 {
        (self.last.to_bits() - self.first.to_bits()).saturating_add(1)
    }

    /// Returns false: a range has at least one address.
    pub fn is_empty(self) -> bool {
        false
    }

    /// Returns true if an address is in the range.
    pub fn contains(self, ip: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&ip)
    }
}

impl DhcpPool {
    /// Returns the mask of the subnet.
    pub fn mask(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - u32::from(self.subnet.prefix)).unwrap_or(0))
    }

    /// Returns the address to which packets for all hosts of the subnet go.
    pub fn broadcast(&self) -> Ipv4Addr {
        let IpAddr::V4(address) = self.subnet.addr else { return Ipv4Addr::BROADCAST };
        Ipv4Addr::from_bits(address.to_bits() | !self.mask().to_bits())
    }

    /// Returns true if a host of the subnet can have the address.
    pub fn is_host_address(&self, ip: Ipv4Addr) -> bool {
        let is_whole = self.subnet.prefix >= 31;
        let is_network = ip.to_bits() & !self.mask().to_bits() == 0;
        self.subnet.contains(ip.into()) && (is_whole || (!is_network && ip != self.broadcast()))
    }

    /// Returns true if the pool's `at` names a port or its switch.
    pub fn names(&self, at: SwitchPort) -> bool {
        self.at.iter().any(|place| place.dpid == at.dpid && place.port.is_none_or(|port| port == at.port))
    }

    /// Returns the address that is reserved for a host.
    pub fn reserved_for(&self, mac: MacAddr) -> Option<Ipv4Addr> {
        self.reservations.iter().find(|reservation| reservation.mac == mac).map(|reservation| reservation.ip)
    }

    /// Returns true if some host can get the address: it is in the range or reserved.
    pub fn gives(&self, ip: Ipv4Addr) -> bool {
        self.range.contains(ip) || self.reservations.iter().any(|reservation| reservation.ip == ip)
    }

    fn check(&self) -> Result<(), String> {
        let subnet = self.subnet;
        if !subnet.addr.is_ipv4() {
            return Err(format!("`subnet`: found {subnet}, expected a subnet of IPv4"));
        }
        let inside = |key: &str, ip: Ipv4Addr| match self.is_host_address(ip) {
            true => Ok(()),
            false => Err(format!("`{key}`: found {ip}, expected an address of a host in the subnet {subnet}")),
        };
        inside("range", self.range.first)?;
        inside("range", self.range.last)?;
        if let Some(router) = self.router {
            inside("router", router)?;
        }
        for reservation in &self.reservations {
            inside("reservation", reservation.ip)?;
        }
        if self.dns.len() > MAX_DNS_SERVERS {
            return Err(format!("`dns`: found {} servers, expected at most {MAX_DNS_SERVERS}", self.dns.len()));
        }
        if let Some(domain) = self.domain.as_ref().filter(|domain| !weir_units::is_host_name(domain)) {
            return Err(format!("`domain`: found `{domain}`, expected a name such as example.net"));
        }
        let [shortest, longest] = LEASE_TIMES;
        if !(shortest..=longest).contains(&self.lease_time.0) {
            let limits = format!("from {shortest:?} to {longest:?}");
            return Err(format!("`lease-time`: found {}, expected a time {limits}", self.lease_time));
        }
        Ok(())
    }
}

impl DhcpConfig {
    /// Checks what the types of the fields leave open.
    ///
    /// # Errors
    /// The pool and the key that are wrong, what was found and what was expected.
    pub fn check(&self) -> Result<(), String> {
        if self.address.is_unspecified() || self.address.is_multicast() || self.address.is_broadcast() {
            return Err(format!("`address`: found {}, expected the address of a host", self.address));
        }
        if self.mac.is_multicast() || self.mac == MacAddr::default() {
            return Err(format!("`mac`: found {}, expected the address of a host", self.mac));
        }
        if self.pools.is_empty() || self.pools.len() > MAX_POOLS {
            return Err(format!("found {} pools, expected 1 to {MAX_POOLS}", self.pools.len()));
        }
        let mut addresses: u32 = 0;
        let (mut macs, mut ips) = (BTreeSet::new(), BTreeSet::new());
        for (index, pool) in self.pools.iter().enumerate() {
            let problem = |problem: String| format!("pool {}: {problem}", index + 1);
            pool.check().map_err(problem)?;
            let reserved = u32::try_from(pool.reservations.len()).unwrap_or(u32::MAX);
            addresses = addresses.saturating_add(pool.range.len()).saturating_add(reserved);
            for Reservation { mac, ip } in &pool.reservations {
                if !macs.insert((index, *mac)) || !ips.insert(*ip) {
                    return Err(problem(format!("`reservation`: found {mac} or {ip} twice, expected each once")));
                }
            }
            let overlaps =
                |other: &DhcpPool| other.range.first <= pool.range.last && pool.range.first <= other.range.last;
            if let Some(other) = self.pools[..index].iter().position(overlaps) {
                let other = other + 1;
                return Err(problem(format!("`range`: found addresses of pool {other}, expected others")));
            }
        }
        if addresses > MAX_POOL_ADDRESSES {
            return Err(format!("found {addresses} addresses in all pools, expected at most {MAX_POOL_ADDRESSES}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "address = \"10.0.0.1\"\n[[pool]]\nsubnet = \"10.0.0.0/24\"\nrange = \"10.0.0.100-10.0.0.199\"\n";

    fn check(text: &str) -> Result<(), String> {
        toml::from_str::<DhcpConfig>(text).map_err(|error| error.message().to_owned())?.check()
    }

    #[test]
    fn wrong_settings_are_named() {
        assert_eq!(check(GOOD), Ok(()));
        let pool = |line: &str| format!("{GOOD}{line}\n");
        let second = "[[pool]]\nsubnet = \"10.0.0.0/24\"\nrange = \"10.0.0.150-10.0.0.160\"";
        let many = "[[pool]]\nsubnet = \"10.0.0.0/8\"\nrange = \"10.1.0.0-10.9.0.0\"";
        let twice = "[[pool.reservation]]\nmac = \"02:00:00:00:00:01\"\nip = \"10.0.0.5\"\n".repeat(2);
        let cases = [
            (GOOD.replace("199", "255"), "pool 1: `range`: found 10.0.0.255, expected an address of a host"),
            (GOOD.replace("-10.0.0.199", ""), "expected two addresses in order"),
            (GOOD.replace("10.0.0.1\"", "0.0.0.0\""), "`address`: found 0.0.0.0"),
            (pool("router = \"10.0.1.1\""), "`router`: found 10.0.1.1"),
            (pool("lease-time = \"1s\""), "`lease-time`: found 1s, expected a time from 10s"),
            (pool("domain = \"a b\""), "`domain`: found `a b`"),
            (pool("leasetime = \"1h\""), "unknown field `leasetime`"),
            (pool(second), "pool 2: `range`: found addresses of pool 1"),
            (pool(many), "addresses in all pools, expected at most 262144"),
            (pool(&twice), "`reservation`: found 02:00:00:00:00:01 or 10.0.0.5 twice"),
            ("address = \"10.0.0.1\"\npool = []".to_owned(), "found 0 pools"),
        ];
        for (text, part) in cases {
            let problem = check(&text).unwrap_err();
            assert!(problem.contains(part), "{problem}");
        }
    }
}
