//! Commands from outside the controller.
use super::{VirtualRouterApp, VirtualRouterId};
use crate::config::VirtualRouterConfig;
use crate::entries::RouterPlacement;
use serde::{Deserialize, Serialize};
use weir_controller::ControllerOutbox;
use weir_units::Instant;

/// Content of `vrouter add`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AddCommand {
    dpid: u64,
    placement: RouterPlacement,
    config: VirtualRouterConfig,
}

/// Content of `vrouter replace`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplaceCommand {
    dpid: u64,
    number: u16,
    config: VirtualRouterConfig,
}

/// Answer to a command that fails.
#[derive(Debug, Serialize)]
struct CommandFailure {
    error: String,
}

impl VirtualRouterApp {
    /// Answers a command in JSON; `None` if it does not begin with `vrouter`.
    pub(super) fn answer_command(&mut self, now: Instant, command: &str, out: &mut ControllerOutbox) -> Option<String> {
        let rest = command.trim().strip_prefix("vrouter").filter(|rest| rest.is_empty() || rest.starts_with(' '))?;
        let (verb, content) = rest.trim_start().split_once(' ').unwrap_or((rest.trim(), ""));
        let answer = match verb {
            "status" => to_json(&self.statuses()),
            "add" => self.add_command(now, content, out),
            "replace" => self.replace_command(now, content, out),
            "remove" => self.remove_command(now, content, out),
            _ => Err(format!("found `{verb}`, expected status, add, replace or remove after vrouter")),
        };
        Some(answer.unwrap_or_else(|error| to_json(&CommandFailure { error }).unwrap_or_default()))
    }

    fn add_command(&mut self, now: Instant, content: &str, out: &mut ControllerOutbox) -> Result<String, String> {
        let AddCommand { dpid, placement, config } = from_json(content)?;
        let id = self.add(now, dpid, config, placement, out).map_err(|error| error.to_string())?;
        to_json(&self.status(id))
    }

    fn replace_command(&mut self, now: Instant, content: &str, out: &mut ControllerOutbox) -> Result<String, String> {
        let ReplaceCommand { dpid, number, config } = from_json(content)?;
        let id = VirtualRouterId { dpid, number };
        self.replace(now, id, config, out).map_err(|error| error.to_string())?;
        to_json(&self.status(id))
    }

    fn remove_command(&mut self, now: Instant, content: &str, out: &mut ControllerOutbox) -> Result<String, String> {
        let id: VirtualRouterId = from_json(content)?;
        self.remove(now, id, out).map_err(|error| error.to_string())?;
        Ok("{\"removed\": true}".to_owned())
    }
}

fn from_json<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn to_json<T: Serialize>(value: &T) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}
