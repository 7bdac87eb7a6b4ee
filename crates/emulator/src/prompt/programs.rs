//! Runs a user's commands in a lab's hosts.
use super::{CommandError, PromptOutcome};
use crate::CancelHandle;
use crate::netns::programs::command;
use std::io::IsTerminal as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Time between two checks whether a program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Starts a line of shell in a namespace. Its standard input is the terminal, or empty if the program is in the
/// background or commands come from a script.
pub(super) fn start(namespace: &str, line: &str, background: bool) -> Result<Child, CommandError> {
    let mut command = shell_of(namespace, &["-c", line]);
    if background || !std::io::stdin().is_terminal() {
        command.stdin(Stdio::null());
    }
    Ok(command.spawn()?)
}

/// Waits for a program. Kills it if `cancel` is cancelled.
pub(super) fn wait(mut child: Child, cancel: &CancelHandle) -> Result<PromptOutcome, CommandError> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { PromptOutcome::Done } else { PromptOutcome::Failed });
        }
        if cancel.wait(LOOK_EVERY) {
            // The terminal has interrupted the program, too; this gives it time to clean up.
            std::thread::park_timeout(LOOK_EVERY * 20);
            child.kill()?;
            child.wait()?;
            return Ok(PromptOutcome::Failed);
        }
    }
}

/// Runs an interactive shell in a namespace until it ends.
pub(super) fn shell(namespace: &str, host: &str) -> Result<PromptOutcome, CommandError> {
    if !std::io::stdin().is_terminal() {
        return Err(std::io::Error::other(format!(
            "shell {host}: a shell needs a terminal; `{host} COMMAND` runs a command"
        ))
        .into());
    }
    let mut command = shell_of(namespace, &["-i"]);
    command.env("PS1", format!("{host}# "));
    command.status()?;
    Ok(PromptOutcome::Done)
}

fn shell_of(namespace: &str, arguments: &[&str]) -> Command {
    let arguments: Vec<String> = ["sh"].iter().chain(arguments).map(|&argument| argument.to_owned()).collect();
    command(namespace, &arguments)
}
