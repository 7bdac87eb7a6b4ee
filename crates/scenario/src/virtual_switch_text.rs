//! Reads virtual switches that are described outside a scenario, with the keys of a scenario's file.
use crate::{ScenarioError, check, document, error};
use std::collections::BTreeMap;
use toml::Table;
use weir_slicing::{FabricSpec, PacketSelector, QueueManager, VirtualPortSpec, VirtualSwitch, VirtualSwitchReader};
use weir_units::Bps;

/// Checks the text of a file with a section `[fabric]` and items `[[virtual]]`, which have the keys of a scenario's
/// `[switch.fabric]` and `[[switch.virtual]]`. `switch` is the name of the switch, `ports` are its port numbers with
/// their rates, if known.
///
/// # Errors
/// The text is not TOML, or a value in it is wrong. The error has the line.
pub fn parse_slicing(
    text: &str,
    file: &str,
    switch: &str,
    ports: BTreeMap<u32, Option<Bps>>,
) -> Result<(FabricSpec, Vec<VirtualSwitch>), ScenarioError> {
    let document: document::SlicingToml =
        toml::from_str(text).map_err(|error| ScenarioError::syntax(file, text, &error))?;
    check::fabric_file(&check::SourceFile { file, text }, switch, document, ports)
}

/// Checks the text of a virtual switch for a physical switch with this fabric. Its keys are those of a scenario's
/// `[[switch.virtual]]`.
///
/// # Errors
/// The text is not TOML or not a virtual switch, or names ports that the fabric does not have. The error has the line.
pub fn parse_virtual_switch(text: &str, file: &str, fabric: &FabricSpec) -> Result<VirtualSwitch, ScenarioError> {
    let document: document::VirtualSwitchToml =
        toml::from_str(text).map_err(|error| ScenarioError::syntax(file, text, &error))?;
    check::virtual_switch(document, &check::SourceFile { file, text }, fabric)
}

/// Checks a virtual switch after changes: keys in `changes` replace the present ones, other keys stay.
///
/// # Errors
/// `changes` is not TOML, or the changed virtual switch has an error as of [`parse_virtual_switch`].
fn changed_virtual_switch(
    old: &VirtualSwitch,
    changes: &str,
    file: &str,
    fabric: &FabricSpec,
) -> Result<VirtualSwitch, ScenarioError> {
    let text = merged(old, changes).map_err(|problem| ScenarioError::without_line(file, problem))?;
    parse_virtual_switch(&text, file, fabric)
}

/// Returns the text of a virtual switch after changes.
fn merged(old: &VirtualSwitch, changes: &str) -> Result<String, String> {
    let changes: Table = changes.parse().map_err(|error: toml::de::Error| error::said(&error))?;
    let mut all = Table::try_from(old).map_err(|error| error.to_string())?;
    // A lifetime counts from the time of the request that gives it.
    all.remove("lifetime");
    if old.queue != QueueManager::Red || changes.contains_key("queue") {
        all.remove("red");
    }
    let unsaid: Vec<PacketSelector> = old.ports.iter().map(VirtualPortSpec::selector).collect();
    if changes.contains_key("ports") {
        // Selectors that were not chosen explicitly follow the ports.
        if old.select == unsaid {
            all.remove("select");
        }
    }
    all.extend(changes);
    Ok(all.to_string())
}

/// Reads virtual switches with the keys of a scenario's `[[switch.virtual]]`, for switches that are asked to add or
/// change one while they run.
#[derive(Debug, Clone, Copy)]
pub struct TomlVirtualSwitchReader;

impl VirtualSwitchReader for TomlVirtualSwitchReader {
    fn read(&self, text: &str, file: &str, fabric: &FabricSpec) -> Result<VirtualSwitch, String> {
        let new = parse_virtual_switch(text, file, fabric).map_err(|error| error.to_string())?;
        check::refuse_app(new.app.as_ref()).map_err(|problem| format!("virtual switch {}: {problem}", new.name))?;
        Ok(new)
    }

    fn change(
        &self,
        old: &VirtualSwitch,
        changes: &str,
        file: &str,
        fabric: &FabricSpec,
    ) -> Result<VirtualSwitch, String> {
        let new = changed_virtual_switch(old, changes, file, fabric).map_err(|error| error.to_string())?;
        if new.app != old.app {
            let problem = "app: found a change of the application, which stays as long as the virtual switch";
            return Err(format!("virtual switch {}: {problem}; expected `app` and `openflow` as before", old.name));
        }
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_slicing::FabricPort;

    fn fabric() -> FabricSpec {
        let ports = (1..=4).map(|port| FabricPort { port, rate: Bps(1_000_000_000) });
        FabricSpec { ports: ports.collect(), ..FabricSpec::default() }
    }

    fn parsed(text: &str) -> VirtualSwitch {
        parse_virtual_switch(text, "v", &fabric()).unwrap()
    }

    fn changed(old: &VirtualSwitch, changes: &str) -> VirtualSwitch {
        changed_virtual_switch(old, changes, "v", &fabric()).unwrap()
    }

    const TEXT: &str = "name = 'gold'\ndpid = 0x101\nbuffer = '24kB'\nlifetime = '1h'\nlisten = 'ptcp:7001'\n\
                        ports = [{ port = 1, rate = '100Mbit/s' }, { port = 2, number = 9, rate = '50Mbit/s', ceiling = '1Gbit/s' }]\n\
                        paths = [[1, 9], [9, 1]]\nqueue = 'red'\nred = { min = '3kB' }\nbuffers = [{ from = 1, to = 9, buffer = '48kB' }]\n";

    #[test]
    fn what_is_not_said_stays() {
        let old = parsed(TEXT);
        assert_eq!(changed(&old, ""), VirtualSwitch { lifetime: None, ..old.clone() });
        let more = changed(&old, "buffer = '30kB'\npriority = 3");
        assert_eq!((more.buffer.0, more.priority, &more.ports), (30_000, 3, &old.ports));
        assert_eq!(changed(&old, "queue = 'tail-drop'").queue, QueueManager::TailDrop);
    }

    #[test]
    fn an_application_stays_and_does_not_come_while_the_switch_runs() {
        let old = parsed(&(TEXT.to_owned() + "app = 'learning'\nopenflow = '1.0'\n"));
        let reader = TomlVirtualSwitchReader;
        assert_eq!(reader.change(&old, "priority = 3", "v", &fabric()).unwrap().app, old.app);
        let refused = |changes: &str| reader.change(&old, changes, "v", &fabric()).unwrap_err();
        assert!(refused("openflow = '1.3'").contains("which stays"), "{}", refused("openflow = '1.3'"));
        assert!(refused("connect = 'tcp:127.0.0.1:1'").contains("expected one of them"));
        let new = reader.read(&(TEXT.to_owned() + "app = 'learning'\n"), "v", &fabric()).unwrap_err();
        assert!(new.contains("found \"learning\" outside a scenario"), "{new}");
    }

    #[test]
    fn selectors_that_nobody_wrote_follow_the_ports() {
        let old = parsed("name = 'a'\ndpid = 1\nbuffer = '9kB'\nports = [{ port = 1, rate = '1Mbit/s' }]\n");
        let more = "ports = [{ port = 1, rate = '1Mbit/s' }, { port = 3, rate = '1Mbit/s' }]";
        let ports: Vec<_> = changed(&old, more).select.iter().map(|select| select.port).collect();
        assert_eq!(ports, [Some(1), Some(3)]);
        let error = changed_virtual_switch(&old, "buffer = = 3", "v", &fabric()).unwrap_err().to_string();
        assert!(error.starts_with("v: "), "{error}");
    }
}
