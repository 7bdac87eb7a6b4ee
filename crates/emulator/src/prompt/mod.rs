//! Runs commands on a running lab, line by line, interactively or from a script.
pub mod command;
mod links;
mod programs;
mod reach;
mod show;

pub use command::{Change, Command, HELP, LinkPlace, parse};

use crate::certificate::Certificate;
use crate::{Cancel, Lab, LabError, LabResult, Progress};
use std::io::{self, Write};
use std::process::Child;

/// Outcome of a command.
#[derive(Debug)]
pub enum Outcome {
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
pub struct Console {
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

impl Console {
    /// Returns a console for a lab that was started with [`crate::Options::emulate`].
    pub fn new(lab: Lab) -> Console {
        Console { lab, background: Vec::new() }
    }

    /// Parses a line.
    ///
    /// # Errors
    /// Description of what was found and what was expected.
    pub fn parse(&self, line: &str) -> Result<Command, String> {
        parse(self.lab.scenario(), line)
    }

    /// Carries a command out. Writes its output to `out`; programs write to the process's own output. `cancel` ends
    /// it early.
    ///
    /// # Errors
    /// See [`CommandError`]; the lab continues to run.
    pub fn carry_out(
        &mut self,
        command: &Command,
        cancel: &Cancel,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, CommandError> {
        self.reap();
        match command {
            Command::Nothing => {}
            Command::Help => writeln!(out, "{HELP}")?,
            Command::Nodes => show::nodes(&self.lab, out)?,
            Command::Links => links::list(&self.lab, out)?,
            Command::PingAll { timeout } => return reach::ping_all(&self.lab, *timeout, cancel, out, progress),
            Command::Iperf { from, to, duration } => {
                return reach::iperf(&mut self.lab, [*from, *to], *duration, out);
            }
            Command::Link { links, changes } => links::change(&self.lab, links, changes)?,
            Command::Dump(switch) => show::dump(&self.lab, *switch, out)?,
            Command::Show(switch) => show::switch(&self.lab, *switch, out)?,
            Command::Traffic => {
                self.lab.traffic(cancel, progress)?;
                return Ok(Outcome::Report(Box::new(self.lab.report()?)));
            }
            Command::Certificate => return Ok(Outcome::Certificate(Box::new(self.lab.certificate()?))),
            Command::Shell(host) => {
                return programs::shell(self.lab.namespace(*host), &self.lab.scenario().hosts[*host].name);
            }
            Command::Run { host, line, background } => return self.run(*host, line, *background, cancel, out),
            Command::Sleep(duration) => _ = cancel.wait(*duration),
            Command::Quit => return Ok(Outcome::Quit),
        }
        Ok(Outcome::Done)
    }

    fn run(
        &mut self,
        host: usize,
        line: &str,
        background: bool,
        cancel: &Cancel,
        out: &mut dyn Write,
    ) -> Result<Outcome, CommandError> {
        out.flush()?;
        let child = programs::start(self.lab.namespace(host), line, background)?;
        if background {
            self.background.push(child);
            return Ok(Outcome::Done);
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
        let Console { lab, mut background } = self;
        let result = lab.finish();
        // Programs have been killed with their namespaces.
        background.iter_mut().for_each(|child| _ = child.wait());
        result
    }
}
