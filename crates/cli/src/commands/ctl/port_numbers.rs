//! Numbers of ports by their names, as entries and groups of a configuration may call them.
use super::configuration::ConfiguredPort;
use anyhow::anyhow;
use std::collections::BTreeMap;
use std::fmt;
use toml::{Table, Value};
use weir_openflow::model::PortNo;
use weir_openflow::text::PortNames;

/// Numbers of a switch's ports by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PortNumbers(BTreeMap<String, PortNo>);

impl PortNumbers {
    /// Returns the numbers of the ports that have one. Of two ports with one name the later one counts.
    pub(super) fn of<'a>(ports: impl IntoIterator<Item = &'a ConfiguredPort>) -> PortNumbers {
        let numbered = ports.into_iter().filter_map(|port| Some((port.name.clone(), port.number?)));
        PortNumbers(numbered.collect())
    }

    /// Returns the numbers that the ports have on a virtual switch, from its item in a configuration.
    pub(super) fn of_virtual(&self, item: &Table) -> PortNumbers {
        let number = |port: &Value, key| port.get(key).and_then(Value::as_integer).and_then(|n| u32::try_from(n).ok());
        let ports = item.get("ports").and_then(Value::as_array).into_iter().flatten();
        let numbers = ports.filter_map(|port| {
            let physical = number(port, "port")?;
            let (name, _) = self.0.iter().find(|(_, known)| known.0 == physical)?;
            Some((name.clone(), PortNo(number(port, "number").unwrap_or(physical))))
        });
        PortNumbers(numbers.collect())
    }

    /// Returns the text of an entry or a group with numbers in place of ports' names.
    ///
    /// # Errors
    /// No port has a name that stands in the place of a port.
    pub(super) fn numbered(&self, text: &str) -> anyhow::Result<String> {
        PortNames::find(text).replaced(text.to_owned(), |name| {
            self.0.get(name).copied().ok_or_else(|| anyhow!("no port `{name}` with a number; there are: {self}"))
        })
    }
}

impl fmt::Display for PortNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports: Vec<String> = self.0.iter().map(|(name, number)| format!("{number}={name}")).collect();
        if ports.is_empty() { f.write_str("none") } else { f.write_str(&ports.join(", ")) }
    }
}

/// Numbers of ports by their names, before and after a reload.
#[derive(Debug)]
pub(super) struct ReloadPortNumbers {
    pub(super) old: PortNumbers,
    pub(super) new: PortNumbers,
}

impl ReloadPortNumbers {
    /// Takes the numbers from the configurations and from the switch. In the old configuration the switch's number
    /// counts, in the new one its own. Ports that are to be removed have none in the new one.
    ///
    /// # Errors
    /// A text is no port.
    pub(super) fn new(old: &[String], new: &[String], running: &[String]) -> anyhow::Result<ReloadPortNumbers> {
        let [old, new, running] = [old, new, running].map(ConfiguredPort::parse_all);
        let (old, new, running) = (old?, new?, running?);
        let has = |ports: &[ConfiguredPort], port: &ConfiguredPort| ports.iter().any(|other| other.spec == port.spec);
        let stays = running.iter().filter(|port| has(&new, port) || !has(&old, port));
        Ok(ReloadPortNumbers {
            old: PortNumbers::of(old.iter().chain(&running)),
            new: PortNumbers::of(stays.chain(&new)),
        })
    }

    /// Returns the numbers that the ports have on a virtual switch before and after.
    pub(super) fn of_virtual(&self, before: Option<&Table>, after: &Table) -> ReloadPortNumbers {
        ReloadPortNumbers {
            old: before.map(|before| self.old.of_virtual(before)).unwrap_or_default(),
            new: self.new.of_virtual(after),
        }
    }
}
