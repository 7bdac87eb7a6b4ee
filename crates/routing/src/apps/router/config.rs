//! Settings of the router.
use serde::Deserialize;
use std::net::IpAddr;
use weir_packet::{IpNet, MacAddr};

/// Most subnets.
pub const MAX_SUBNETS: usize = 256;

/// Settings of the router.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouterConfig {
    /// Ethernet address of the router, in all subnets.
    #[serde(default = "default_mac")]
    pub mac: MacAddr,
    /// The router's address in each subnet with the length of the prefix, such as `10.0.1.1/24`.
    pub gateways: Vec<IpNet>,
}

fn default_mac() -> MacAddr {
    MacAddr([0x02, 0x77, 0x65, 0x69, 0x72, 0x01])
}

impl RouterConfig {
    /// Checks what the types of the fields leave open.
    ///
    /// # Errors
    /// The key that is wrong, what was found and what was expected.
    pub fn check(&self) -> Result<(), String> {
        if self.mac.is_multicast() || self.mac == MacAddr::default() {
            return Err(format!("`mac`: found {}, expected the address of a host", self.mac));
        }
        if self.gateways.is_empty() || self.gateways.len() > MAX_SUBNETS {
            let found = self.gateways.len();
            return Err(format!("`gateways`: found {found} addresses, expected 1 to {MAX_SUBNETS}"));
        }
        for (index, gateway) in self.gateways.iter().enumerate() {
            let overlaps = |other: &&IpNet| other.contains(gateway.addr) || gateway.contains(other.addr);
            if let Some(other) = self.gateways.get(..index).unwrap_or_default().iter().find(overlaps) {
                let problem = format!("found {gateway} in a subnet with {other}, expected one address a subnet");
                return Err(format!("`gateways`: {problem}"));
            }
        }
        Ok(())
    }

    /// Returns the router's address in the subnet of a host, if it is connected.
    pub fn gateway_of(&self, host: IpAddr) -> Option<IpAddr> {
        self.gateways.iter().find(|gateway| gateway.contains(host)).map(|gateway| gateway.addr)
    }

    /// Returns true if an address is one of the router's.
    pub fn is_gateway(&self, ip: IpAddr) -> bool {
        self.gateways.iter().any(|gateway| gateway.addr == ip)
    }
}
