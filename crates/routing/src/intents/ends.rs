//! Ends of intents: hosts and ports as they are named, and where they are.
use super::error::IntentError;
use crate::map::{Host, NetworkMap, SwitchPort};
use std::fmt;
use std::net::IpAddr;
use weir_packet::MacAddr;

/// An end as the intent names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EndName {
    Port(SwitchPort),
    Mac(MacAddr),
    Ip(IpAddr),
    Host(String),
}

/// An end in the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    pub(super) at: SwitchPort,
    /// Address of the host; `None` for a port, whatever hosts are there.
    pub(super) mac: Option<MacAddr>,
}

/// Ends of an intent at their present places.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Ends {
    pub(super) from: Vec<End>,
    pub(super) to: Vec<End>,
}

impl EndName {
    /// Reads an end. `key` is the part of the intent that names it.
    pub(super) fn parse(key: &'static str, text: &str) -> Result<EndName, IntentError> {
        if let Ok(mac) = text.parse() {
            return Ok(EndName::Mac(mac));
        }
        if let Ok(ip) = text.parse() {
            return Ok(EndName::Ip(ip));
        }
        if let Ok(port) = text.parse::<SwitchPort>() {
            let expected = "a port number from 1 to 4294967040";
            let error = || IntentError::invalid(key, format!("`{text}`"), expected);
            return if port.port.is_ordinary() { Ok(EndName::Port(port)) } else { Err(error()) };
        }
        if weir_units::is_host_name(text) {
            return Ok(EndName::Host(text.to_owned()));
        }
        let expected = "a host (Ethernet address, IP address or name) or a port (DPID:PORT)";
        Err(IntentError::invalid(key, format!("`{text}`"), expected))
    }

    /// Returns true if the end is a port.
    pub(super) const fn is_port(&self) -> bool {
        matches!(self, EndName::Port(_))
    }

    /// Returns where the end is, or why it cannot be used. `before` is where it was, so that it is found at once if it
    /// is still there.
    pub(super) fn find(&self, map: &NetworkMap, before: Option<&End>) -> Result<End, String> {
        let known = before.and_then(|end| map.hosts().get(&end.mac?)).filter(|host| self.names(host));
        if let Some(host) = known {
            return usable(map, End { at: host.at, mac: Some(host.mac) });
        }
        let host = |host: Option<&Host>| host.map(|host| End { at: host.at, mac: Some(host.mac) });
        let end = match self {
            EndName::Port(at) => Some(End { at: *at, mac: None }),
            EndName::Mac(mac) => host(map.hosts().get(mac)),
            EndName::Ip(ip) => host(map.host_of_ip(*ip)),
            EndName::Host(_) => host(self.only(map)?),
        };
        usable(map, end.ok_or_else(|| format!("no host {self} is known"))?)
    }

    /// Returns the one host with the name.
    fn only<'a>(&self, map: &'a NetworkMap) -> Result<Option<&'a Host>, String> {
        let mut named = map.hosts().values().filter(|host| self.names(host));
        let first = named.next();
        match named.count() {
            0 => Ok(first),
            more => Err(format!("{} hosts have the name {self}; use an address", more + 1)),
        }
    }

    fn names(&self, host: &Host) -> bool {
        match self {
            EndName::Port(_) => false,
            EndName::Mac(mac) => host.mac == *mac,
            EndName::Ip(ip) => host.ips.contains(ip),
            EndName::Host(name) => host.name.as_ref() == Some(name),
        }
    }
}

/// Returns where the ends of an intent are, or why they cannot be used. `before` is where they were.
pub(super) fn ends(map: &NetworkMap, wanted: &super::wanted::Wanted, before: Option<&Ends>) -> Result<Ends, String> {
    let find = |key: &str, names: &[EndName], known: Option<&Vec<End>>| {
        let end = |(index, name): (usize, &EndName)| {
            let found = name.find(map, known.and_then(|ends| ends.get(index)))?;
            let avoided = wanted.avoided_switches.contains(&found.at.dpid) || wanted.avoided_ports.contains(&found.at);
            if avoided { Err(format!("{name} is at port {}, which is to be avoided", found.at)) } else { Ok(found) }
        };
        let ends = names.iter().enumerate().map(end).collect::<Result<Vec<End>, String>>();
        ends.map_err(|reason| format!("{key}: {reason}"))
    };
    let from = find("from", &wanted.from, before.map(|ends| &ends.from))?;
    let to = find("to", &wanted.to, before.map(|ends| &ends.to))?;
    Ok(Ends { from, to })
}

/// Returns the end if packets can pass its port.
fn usable(map: &NetworkMap, end: End) -> Result<End, String> {
    let at = end.at;
    if !map.switches().contains_key(&at.dpid) {
        return Err(format!("switch {:x} is not connected", at.dpid));
    }
    if !map.is_up(at) {
        return Err(format!("port {at} is not there or is down"));
    }
    if map.is_trunk(at) {
        return Err(format!("port {at} leads to another switch"));
    }
    Ok(end)
}

impl fmt::Display for EndName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EndName::Port(at) => at.fmt(out),
            EndName::Mac(mac) => mac.fmt(out),
            EndName::Ip(ip) => ip.fmt(out),
            EndName::Host(name) => write!(out, "`{name}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::PortNo;

    #[test]
    fn ends_are_told_apart_by_their_form() {
        let read = |text| EndName::parse("from", text).unwrap();
        assert_eq!(read("1f:3"), EndName::Port(SwitchPort::new(0x1f, PortNo(3))));
        assert_eq!(read("02:00:00:00:00:01"), EndName::Mac(MacAddr([2, 0, 0, 0, 0, 1])));
        assert_eq!(read("10.0.0.1"), EndName::Ip([10, 0, 0, 1].into()));
        assert_eq!(read("fe80::1"), EndName::Ip("fe80::1".parse().unwrap()));
        assert_eq!(read("printer"), EndName::Host("printer".into()));
        for wrong in ["", "1f:0", "1f:local", "a b", "1:2:3"] {
            let error = EndName::parse("to", wrong).unwrap_err().to_string();
            assert!(error.starts_with("`to`: found `") && error.contains("expected a"), "{wrong}: {error}");
        }
    }
}
