//! A lab's prompt: what can be asked of a running lab, line by line, by people and by scripts.
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

/// What came of a command.
#[derive(Debug)]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was done, and did not come out well; its output says why.
    Failed,
    /// The scenario's traffic was run.
    Report(Box<LabResult>),
    /// How far times can be trusted.
    Certificate(Box<Certificate>),
    /// The lab is to end.
    Quit,
}

/// A running lab that is told what to do.
pub struct Console {
    lab: Lab,
    /// Programs in the background. They end with their hosts.
    background: Vec<Child>,
}

/// Why a command could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The lab could not do it.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// Its output could not be written, or a program not be started.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Console {
    /// For a lab that was started with [`crate::Options::emulate`].
    pub fn new(lab: Lab) -> Console {
        Console { lab, background: Vec::new() }
    }

    /// Reads a line.
    ///
    /// # Errors
    /// What was found, and what would have been right.
    pub fn parse(&self, line: &str) -> Result<Command, String> {
        parse(self.lab.scenario(), line)
    }

    /// Carries a command out; what it has to say goes to `out`, what programs print to the process's own output. `cancel` ends it early.
    ///
    /// # Errors
    /// See [`CommandError`]; the lab runs on.
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

    /// Takes note of background programs that have ended.
    fn reap(&mut self) {
        self.background.retain_mut(|child| !matches!(child.try_wait(), Ok(Some(_))));
    }

    /// Takes the lab down; what it measured.
    ///
    /// # Errors
    /// A switch has ended.
    pub fn finish(self) -> Result<LabResult, LabError> {
        let Console { lab, mut background } = self;
        let result = lab.finish();
        // Their namespaces are gone, and they with them.
        background.iter_mut().for_each(|child| _ = child.wait());
        result
    }
}
