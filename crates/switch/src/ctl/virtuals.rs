//! Carries out requests about virtual switches.
use super::flows::wrong;
use crate::control::ControlContext;
use crate::engine::Engine;
use crate::handle::SwitchError;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::oneshot;
use toml::Table;
use weir_scenario::{PacketSelector, QueueManager, VirtualPortSpec, VirtualSwitch};

/// Time that the channels of a virtual switch may take to end.
const END_TIME: Duration = Duration::from_secs(5);

/// Adds a virtual switch described in `text`. `file` names the text in error messages.
///
/// # Errors
/// Fails if the text is wrong or too little capacity is left.
pub(super) async fn add(control: &ControlContext, text: &str, file: &str) -> Result<Value, SwitchError> {
    let shape = control.engine.call_async(|engine| engine.fabric_shape()).await?;
    let spec = VirtualSwitch::parse(text, file, &shape).map_err(wrong)?;
    let name = spec.name.clone();
    let (said, answer) = oneshot::channel();
    control.add_virtual(spec, Box::new(move |result| drop(said.send(result))))?;
    let listeners = answer.await.map_err(|_| SwitchError::Stopped)??;
    let listeners: Vec<String> = listeners.iter().map(ToString::to_string).collect();
    Ok(json!({ "added": name, "listen": listeners }))
}

/// Changes a virtual switch: keys in `text` replace the present ones, other keys stay.
///
/// # Errors
/// Fails if there is no virtual switch of that name, the text is wrong, or too little capacity is left.
pub(super) async fn resize(control: &ControlContext, name: &str, text: &str, file: &str) -> Result<Value, SwitchError> {
    let asked = name.to_owned();
    let (shape, old) = control
        .engine
        .call_async(move |engine| {
            let old = engine.virtual_spec(&asked)?;
            Ok::<_, SwitchError>((engine.fabric_shape(), old))
        })
        .await??;
    let text = merged(&old, text).map_err(|problem| SwitchError::Request(format!("{file}: {problem}")))?;
    let spec = VirtualSwitch::parse(&text, file, &shape).map_err(wrong)?;
    if spec.name != name {
        return Err(wrong(format!(
            "virtual switch {name}: name: found {}; a name cannot change while it runs",
            spec.name
        )));
    }
    control.engine.call_async(move |engine| engine.resize_virtual(spec)).await??;
    Ok(json!({ "resized": name }))
}

/// Removes a virtual switch. On return its channels have ended and its addresses are free.
///
/// # Errors
/// Fails if there is no virtual switch of that name.
pub(super) async fn remove(control: &ControlContext, name: &str) -> Result<Value, SwitchError> {
    let tenant = control.virtuals.find(name)?;
    let asked = name.to_owned();
    control.engine.call_async(move |engine| engine.remove_virtual(&asked)).await??;
    // The limit matters only if a channel hangs; it then ends later by itself.
    let _ = tokio::time::timeout(END_TIME, tenant.ended()).await;
    Ok(json!({ "removed": name }))
}

/// Returns virtual switches with their ports and crosspoints: all, or the named one.
///
/// # Errors
/// Fails if there is no virtual switch of that name.
pub(super) async fn show(control: &ControlContext, name: Option<&str>) -> Result<Value, SwitchError> {
    if let Some(name) = name {
        control.virtuals.find(name)?;
    }
    let all = control.engine.call_async(|engine: &mut Engine| engine.virtual_snapshots()).await?;
    let wanted: Vec<_> = all.into_iter().filter(|cut| name.is_none_or(|name| cut.name == name)).collect();
    Ok(json!(wanted))
}

/// Returns the text of a virtual switch after changes.
fn merged(old: &VirtualSwitch, changes: &str) -> Result<String, String> {
    let changes: Table = changes.parse().map_err(|error: toml::de::Error| error.message().to_owned())?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use weir_scenario::{FabricSpec, Scenario};

    fn fabric() -> FabricSpec {
        let scenario = "[[switch]]\nname = 's'\n[switch.fabric]\nports = 4\nrate = '1Gbit/s'\n";
        Scenario::parse(scenario, "s").unwrap().switches[0].fabric.clone().unwrap()
    }

    fn parsed(text: &str) -> VirtualSwitch {
        VirtualSwitch::parse(text, "v", &fabric()).unwrap()
    }

    const TEXT: &str = "name = 'gold'\ndpid = 0x101\nbuffer = '24kB'\nlifetime = '1h'\nlisten = 'ptcp:7001'\n\
                        ports = [{ port = 1, rate = '100Mbit/s' }, { port = 2, number = 9, rate = '50Mbit/s', ceiling = '1Gbit/s' }]\n\
                        paths = [[1, 9], [9, 1]]\nqueue = 'red'\nred = { min = '3kB' }\nbuffers = [{ from = 1, to = 9, buffer = '48kB' }]\n";

    #[test]
    fn what_is_not_said_stays() {
        let old = parsed(TEXT);
        let same = parsed(&merged(&old, "").unwrap());
        assert_eq!(same, VirtualSwitch { lifetime: None, ..old.clone() });
        let more = parsed(&merged(&old, "buffer = '30kB'\npriority = 3").unwrap());
        assert_eq!((more.buffer.0, more.priority, &more.ports), (30_000, 3, &old.ports));
        let tail = parsed(&merged(&old, "queue = 'tail-drop'").unwrap());
        assert_eq!(tail.queue, QueueManager::TailDrop);
    }

    #[test]
    fn selectors_that_nobody_wrote_follow_the_ports() {
        let old = parsed("name = 'a'\ndpid = 1\nbuffer = '9kB'\nports = [{ port = 1, rate = '1Mbit/s' }]\n");
        let more = "ports = [{ port = 1, rate = '1Mbit/s' }, { port = 3, rate = '1Mbit/s' }]";
        let ports: Vec<_> = parsed(&merged(&old, more).unwrap()).select.iter().map(|select| select.port).collect();
        assert_eq!(ports, [Some(1), Some(3)]);
        assert!(merged(&old, "buffer = = 3").is_err());
    }
}
