//! Carries out the request about a profile's times.
use super::ProfileReply;
use crate::engine::Engine;
use crate::engine::inbox::EngineClient;
use crate::handle::SwitchError;
use serde_json::{Value, json};

/// Returns the accuracy of the profile's times; `commands` also takes the records of commands. Fails without a
/// profile.
pub(super) async fn show(engine: &EngineClient, commands: bool) -> Result<Value, SwitchError> {
    let profiled = engine.call_async(move |engine: &mut Engine| engine.profiled(commands)).await?;
    let none = "the switch has no profile: it takes the time it takes (weir switch --profile)";
    profiled.map(|profiled: ProfileReply| json!(profiled)).ok_or_else(|| SwitchError::Request(none.to_owned()))
}
