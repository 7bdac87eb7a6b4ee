//! Represents port numbers, including OpenFlow's reserved ones.
use std::fmt;
use std::str::FromStr;

/// OpenFlow port number in the 32-bit form (OpenFlow 1.3.5, 7.2.1). The codec of 1.0 translates its 16-bit reserved
/// numbers, so the rest of weir uses only this form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct PortNo(pub u32);

impl PortNo {
    /// Highest number of a physical or logical port.
    pub const MAX: PortNo = PortNo(0xffff_ff00);
    /// Value of `actset_output` if the action set has no output (OpenFlow 1.5.1, 7.2.1); not a port.
    pub const UNSET: PortNo = PortNo(0xffff_fff7);
    /// Outputs to the port on which the packet was received.
    pub const IN_PORT: PortNo = PortNo(0xffff_fff8);
    /// Processes the packet through the tables; only in packet-out.
    pub const TABLE: PortNo = PortNo(0xffff_fff9);
    /// Uses the switch's own, non-OpenFlow forwarding.
    pub const NORMAL: PortNo = PortNo(0xffff_fffa);
    /// Outputs to all ports in the packet's VLAN, except the input port and blocked ones.
    pub const FLOOD: PortNo = PortNo(0xffff_fffb);
    /// Outputs to all ports except the input port.
    pub const ALL: PortNo = PortNo(0xffff_fffc);
    /// Sends the packet to the controller.
    pub const CONTROLLER: PortNo = PortNo(0xffff_fffd);
    /// Port to the switch's own network stack.
    pub const LOCAL: PortNo = PortNo(0xffff_fffe);
    /// Wildcard in requests; not a port.
    pub const ANY: PortNo = PortNo(0xffff_ffff);

    const RESERVED: [(PortNo, &'static str); 8] = [
        (PortNo::IN_PORT, "IN_PORT"),
        (PortNo::TABLE, "TABLE"),
        (PortNo::NORMAL, "NORMAL"),
        (PortNo::FLOOD, "FLOOD"),
        (PortNo::ALL, "ALL"),
        (PortNo::CONTROLLER, "CONTROLLER"),
        (PortNo::LOCAL, "LOCAL"),
        (PortNo::ANY, "ANY"),
    ];

    /// Returns true if a device can have this number: `1..=MAX`.
    pub const fn is_ordinary(self) -> bool {
        self.0 != 0 && self.0 <= PortNo::MAX.0
    }
}

impl fmt::Display for PortNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match PortNo::RESERVED.iter().find(|(port, _)| port == self) {
            Some((_, name)) => f.pad(name),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

impl FromStr for PortNo {
    type Err = String;

    /// Parses a number or a reserved name in upper or lower case, as `ovs-ofctl` does.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(number) = text.parse() {
            return Ok(PortNo(number));
        }
        let reserved = PortNo::RESERVED.iter().find(|(_, name)| name.eq_ignore_ascii_case(text));
        reserved.map(|(port, _)| *port).ok_or_else(|| {
            format!("found `{text}`, expected a port number or one of in_port, table, normal, flood, all, controller, local, any")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_both_ways() {
        for (text, port) in [("7", PortNo(7)), ("LOCAL", PortNo::LOCAL), ("FLOOD", PortNo::FLOOD)] {
            assert_eq!(text.parse(), Ok(port));
            assert_eq!(port.to_string(), text);
        }
        assert_eq!("controller".parse(), Ok(PortNo::CONTROLLER));
        assert!("eth0".parse::<PortNo>().is_err());
    }
}
