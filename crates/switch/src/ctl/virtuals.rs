//! Carries out requests about virtual switches.
use super::flows::wrong;
use crate::control::{CHANNELS_END, ControlContext};
use crate::engine::Engine;
use crate::handle::SwitchError;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use weir_slicing::VirtualSwitchReader;

/// Returns the reader of virtual switches.
///
/// # Errors
/// Fails if the program that started the switch gave none.
fn reader(control: &ControlContext) -> Result<&'static dyn VirtualSwitchReader, SwitchError> {
    let none = "this switch reads no descriptions of virtual switches: its program gave it no reader of them";
    control.virtual_switch_reader.ok_or_else(|| wrong(none))
}

/// Adds a virtual switch described in `text`. `file` names the text in error messages.
///
/// # Errors
/// Fails if the text is wrong or too little capacity is left, or if the switch has no reader of such texts.
pub(super) async fn add(control: &ControlContext, text: &str, file: &str) -> Result<Value, SwitchError> {
    let shape = control.engine.call_async(|engine| engine.fabric_shape()).await?;
    let spec = reader(control)?.read(text, file, &shape).map_err(wrong)?;
    let name = spec.name.clone();
    let (said, answer) = oneshot::channel();
    control.add_virtual(spec, Box::new(move |result| drop(said.send(result))))?;
    let listeners = answer.await.map_err(|_| SwitchError::Stopped)??;
    let listeners: Vec<String> = listeners.iter().map(ToString::to_string).collect();
    Ok(json!({ "added": name, "listen": listeners }))
}

/// Changes a virtual switch: values in `text` replace the present ones, other values stay.
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
    let spec = reader(control)?.change(&old, text, file, &shape).map_err(wrong)?;
    if spec.name != name {
        return Err(wrong(format!(
            "virtual switch {name}: name: found {}; a name cannot change while it runs",
            spec.name
        )));
    }
    let (said, answer) = oneshot::channel();
    control.resize_virtual(spec, Box::new(move |result| drop(said.send(result))))?;
    answer.await.map_err(|_| SwitchError::Stopped)??;
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
    let _ = tokio::time::timeout(CHANNELS_END, tenant.ended()).await;
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
