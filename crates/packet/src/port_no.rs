//! Port numbers, with the reserved ones of OpenFlow.
use std::fmt;
use std::str::FromStr;

/// An OpenFlow port number in its 32-bit form (OpenFlow 1.3.5, 7.2.1). Version 1.0's 16-bit reserved numbers are mapped
/// by the codec, so the rest of weir sees only these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct PortNo(pub u32);

impl PortNo {
    /// Highest number of a physical or logical port.
    pub const MAX: PortNo = PortNo(0xffff_ff00);
    /// No output in the action set: a value of `actset_output` only (OpenFlow 1.5.1, 7.2.1).
    pub const UNSET: PortNo = PortNo(0xffff_fff7);
    /// Send back out of the port the packet came in on.
    pub const IN_PORT: PortNo = PortNo(0xffff_fff8);
    /// Run the packet through the tables; only in packet-out.
    pub const TABLE: PortNo = PortNo(0xffff_fff9);
    /// The switch's own, non-OpenFlow forwarding.
    pub const NORMAL: PortNo = PortNo(0xffff_fffa);
    /// All ports in the packet's VLAN but the input port and blocked ones.
    pub const FLOOD: PortNo = PortNo(0xffff_fffb);
    /// All ports but the input port.
    pub const ALL: PortNo = PortNo(0xffff_fffc);
    /// Send to the controller.
    pub const CONTROLLER: PortNo = PortNo(0xffff_fffd);
    /// The switch's own network stack.
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

    /// Whether a device can have this number: `1..=MAX`.
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

    /// Reads a number or a reserved name in any case, as `ovs-ofctl` does.
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
