//! Commands that people run in a lab's hosts.
use super::{CommandError, Outcome};
use crate::Cancel;
use crate::netns::programs::command;
use std::io::IsTerminal as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often it is looked whether a program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Starts a line of shell in a namespace. Its input is the terminal's, or nothing: the lines of a script are not for it.
pub(super) fn start(namespace: &str, line: &str, background: bool) -> Result<Child, CommandError> {
    let mut command = shell_of(namespace, &["-c", line]);
    if background || !std::io::stdin().is_terminal() {
        command.stdin(Stdio::null());
    }
    Ok(command.spawn()?)
}

/// Waits for a program; kills it when `cancel` says so.
pub(super) fn wait(mut child: Child, cancel: &Cancel) -> Result<Outcome, CommandError> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { Outcome::Done } else { Outcome::Failed });
        }
        if cancel.wait(LOOK_EVERY) {
            // A terminal has interrupted it already, and it may be tidying up.
            std::thread::park_timeout(LOOK_EVERY * 20);
            child.kill()?;
            child.wait()?;
            return Ok(Outcome::Failed);
        }
    }
}

/// A shell for people, in a namespace; until they leave it.
pub(super) fn shell(namespace: &str, host: &str) -> Result<Outcome, CommandError> {
    if !std::io::stdin().is_terminal() {
        return Err(std::io::Error::other(format!(
            "shell {host}: a shell needs a terminal; `{host} COMMAND` runs a command"
        ))
        .into());
    }
    let mut command = shell_of(namespace, &["-i"]);
    command.env("PS1", format!("{host}# "));
    command.status()?;
    Ok(Outcome::Done)
}

fn shell_of(namespace: &str, arguments: &[&str]) -> Command {
    let arguments: Vec<String> = ["sh"].iter().chain(arguments).map(|&argument| argument.to_owned()).collect();
    command(namespace, &arguments)
}
