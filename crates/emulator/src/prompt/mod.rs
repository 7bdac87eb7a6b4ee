//! Runs commands on a running lab, line by line, interactively or from a script.
pub mod command;
mod complete;
mod links;
mod programs;
mod reach;
mod show;

pub use command::{HELP, LabLinkId, LinkChange, PromptCommand, parse};
pub use complete::PromptCompleter;

use crate::{CancelHandle, Lab, LabError};
use std::io::{self, Write};
use std::process::Child;
use weir_network::certificate::Certificate;
use weir_network::{LabProgress, LabResult};

/// Outcome of a command.
#[derive(Debug)]
pub enum PromptOutcome {
    /// The command was carried out.
    Done,
    /// The command was carried out but found a failure, which its output describes.
    Failed,
    /// Report of the scenario's traffic.
    Report(Box<LabResult>),
    /// Certificate of how far times can be trusted.
    Certificate(Box<Certificate>),
    /// The lab has to end.
    Quit,
}

/// Running lab that carries out commands.
pub struct LabConsole {
    lab: Lab,
    /// Programs in the background. They end with their hosts.
    background: Vec<Child>,
}

/// Reason why a command could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The lab reported an error.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// Output could not be written, or a program could not be started.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl LabConsole {
    /// Returns a console for a lab that was started with [`crate::LabOptions::emulate`].
    pub fn new(lab: Lab) -> LabConsole {
        LabConsole { lab, background: Vec::new() }
    }

    /// Returns a completer with the lab's names.
    pub fn completer(&self) -> PromptCompleter {
        PromptCompleter::new(self.lab.scenario())
    }

    /// Parses a line.
    ///
    /// # Errors
    /// Description of what was found and what was expected.
    pub fn parse(&self, line: &str) -> Result<PromptCommand, String> {
        parse(self.lab.scenario(), line)
    }

    /// Carries a command out. Writes its output to `out`; programs write to the process's own output. `cancel` ends
    /// it early.
    ///
    /// # Errors
    /// See [`CommandError`]; the lab continues to run.
    pub fn carry_out(
        &mut self,
        command: &PromptCommand,
        cancel: &CancelHandle,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(LabProgress),
    ) -> Result<PromptOutcome, CommandError> {
        self.reap();
        match command {
            PromptCommand::Nothing => {}
            PromptCommand::Help => writeln!(out, "{HELP}")?,
            PromptCommand::Nodes => show::nodes(&self.lab, out)?,
            PromptCommand::Links => links::list(&self.lab, out)?,
            PromptCommand::PingAll { timeout } => return reach::ping_all(&self.lab, *timeout, cancel, out, progress),
            PromptCommand::Iperf { from, to, duration } => {
                return reach::iperf(&mut self.lab, [*from, *to], *duration, out);
            }
            PromptCommand::Link { links, changes } => links::change(&self.lab, links, changes)?,
            PromptCommand::Dump(switch) => show::dump(&self.lab, *switch, out)?,
            PromptCommand::Show(switch) => show::switch(&self.lab, *switch, out)?,
            PromptCommand::Traffic => {
                self.lab.traffic(cancel, progress)?;
                return Ok(PromptOutcome::Report(Box::new(self.lab.report()?)));
            }
            PromptCommand::Certificate => return Ok(PromptOutcome::Certificate(Box::new(self.lab.certificate()?))),
            PromptCommand::Shell(host) => {
                return programs::shell(self.lab.namespace(*host), &self.lab.scenario().hosts[*host].name);
            }
            PromptCommand::Run { host, line, background } => return self.run(*host, line, *background, cancel, out),
            PromptCommand::Sleep(duration) => _ = cancel.wait(*duration),
            PromptCommand::Quit => return Ok(PromptOutcome::Quit),
        }
        Ok(PromptOutcome::Done)
    }

    fn run(
        &mut self,
        host: usize,
        line: &str,
        background: bool,
        cancel: &CancelHandle,
        out: &mut dyn Write,
    ) -> Result<PromptOutcome, CommandError> {
        out.flush()?;
        let child = programs::start(self.lab.namespace(host), line, background)?;
        if background {
            self.background.push(child);
            return Ok(PromptOutcome::Done);
        }
        programs::wait(child, cancel)
    }

    /// Removes background programs that have ended.
    fn reap(&mut self) {
        self.background.retain_mut(|child| !matches!(child.try_wait(), Ok(Some(_))));
    }

    /// Takes the lab down. Returns its results.
    ///
    /// # Errors
    /// A switch has ended.
    pub fn finish(self) -> Result<LabResult, LabError> {
        let LabConsole { lab, mut background } = self;
        let result = lab.finish();
        // Programs have been killed with their namespaces.
        background.iter_mut().for_each(|child| _ = child.wait());
        result
    }
}
