//! Describes which packets belong to a virtual switch.
use crate::{FabricSpec, VirtualPortSpec};
use serde::Serialize;
use std::fmt;
use weir_packet::{IpNet, MacAddr};

/// Largest MPLS label.
const MAX_LABEL: u32 = (1 << 20) - 1;

/// Selector of a virtual switch's packets: matches packets for which all given fields are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PacketSelector {
    /// Physical input port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
    /// VLAN id, `1..=4094`; 0 for packets without a tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Ethernet source address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eth_src: Option<MacAddr>,
    /// Ethernet destination address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eth_dst: Option<MacAddr>,
    /// Prefix of the IP source address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_src: Option<IpNet>,
    /// Prefix of the IP destination address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_dst: Option<IpNet>,
    /// Outermost MPLS label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpls: Option<u32>,
    /// Id of the tunnel through which the packets arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<u64>,
}

impl PacketSelector {
    /// Checks a selector of a virtual switch with these ports on a switch with this fabric. Returns it with the VLAN of
    /// its port, if that has one outside.
    ///
    /// # Errors
    /// A message on a value that no packet can have, or that does not fit the other values or the ports.
    pub fn checked(mut self, ports: &[VirtualPortSpec], fabric: &FabricSpec) -> Result<PacketSelector, String> {
        if self == PacketSelector::default() {
            return Err("found nothing in it, expected for example { port = 1, vlan = 10 }".to_owned());
        }
        if let (Some(src), Some(dst)) = (self.ip_src, self.ip_dst)
            && src.addr.is_ipv4() != dst.addr.is_ipv4()
        {
            return Err("found ip_src and ip_dst of two versions of IP, expected one".to_owned());
        }
        if self.mpls.is_some() && self.ip_src.or(self.ip_dst).is_some() {
            return Err(
                "found mpls and an IP address, expected one of them: nothing behind MPLS is looked at".to_owned()
            );
        }
        if let Some(port) = self.port.filter(|port| fabric.ports.iter().all(|known| known.port != *port)) {
            return Err(format!("port: found {port}, expected one of the switch's {} ports", fabric.ports.len()));
        }
        if let Some(vlan) = self.vlan.filter(|vlan| *vlan > 4094) {
            return Err(format!("vlan: found {vlan}, expected 0 (no tag) to 4094"));
        }
        if let Some(label) = self.mpls.filter(|label| *label > MAX_LABEL) {
            return Err(format!("mpls: found {label}, expected at most {MAX_LABEL}"));
        }
        if let Some(own) = ports.iter().find(|port| Some(port.port) == self.port).and_then(|port| port.vlan) {
            if let Some(vlan) = self.vlan.filter(|vlan| *vlan != own) {
                return Err(format!("vlan: found {vlan}, expected the port's vlan = {own}, or none"));
            }
            self.vlan = Some(own);
        }
        Ok(self)
    }
}

impl fmt::Display for PacketSelector {
    /// Writes the selector as in scenario files: `{ port = 1, vlan = 10 }`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |what: &str, value: Option<String>| value.map(|value| format!("{what} = {value}"));
        let quoted = |what: &str, value: Option<String>| value.map(|value| format!("{what} = \"{value}\""));
        let parts = [
            text("port", self.port.map(|port| port.to_string())),
            text("vlan", self.vlan.map(|vlan| vlan.to_string())),
            quoted("eth_src", self.eth_src.map(|mac| mac.to_string())),
            quoted("eth_dst", self.eth_dst.map(|mac| mac.to_string())),
            quoted("ip_src", self.ip_src.map(|net| net.to_string())),
            quoted("ip_dst", self.ip_dst.map(|net| net.to_string())),
            text("mpls", self.mpls.map(|label| label.to_string())),
            text("tunnel", self.tunnel.map(|id| id.to_string())),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        write!(f, "{{ {} }}", parts.join(", "))
    }
}
