//! `weir emulate`: runs a scenario with real programs, over links and switches that keep the file's times, and offers
//! a prompt. Exit status 0 if all went well, 1 if traffic or a command failed, 2 for bad input, 3 if times cannot be
//! trusted and `--strict` is given, 130 when stopped.
mod input;
mod signals;

use super::run::{NOT_AS_EXPECTED, NOT_FAITHFUL, is_faithful, progress, report, set_duration};
use anyhow::Context as _;
use input::{PromptInput, PromptLine};
use signals::PromptSignalHandler;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_emulator::prompt::{self, LabConsole, PromptCommand, PromptOutcome};
use weir_emulator::{Dilation, Lab, LabOptions, NeighbourResolution};
use weir_network::{LabProgress, LabResult};
use weir_scenario::Scenario;
use weir_terminal::progress::tell;
use weir_terminal::prose::wrapped;
use weir_terminal::signals::STOPPED;
use weir_units::{TimeSpan, counted};

/// Exit status if a line of a script could not be parsed.
const BAD_LINE: u8 = 2;

#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct EmulateArgs {
    /// Scenario file (TOML; docs/scenario.md describes it)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Give a prompt (or read commands from a pipe) even if the file has traffic; the command `traffic` runs it
    #[arg(long)]
    cli: bool,
    /// Run this command of the prompt, and end; may be given several times
    #[arg(long, value_name = "COMMAND", conflicts_with = "cli")]
    exec: Vec<String>,
    /// Run N times slower than the file says, for networks that this machine is too slow for: rates of links are
    /// divided by N, delays multiplied, and the scenario's traffic with them; reports use the file's time. Programs
    /// in hosts run in real time: times that they report are N times as long
    #[arg(long, value_name = "N", default_value = "1")]
    dilate: Dilation,
    /// How hosts find each other's Ethernet addresses: `ask` (ARP, neighbour discovery), `known` (each host knows
    /// those of its tenant from the start; Mininet's --arp), or `auto`: `ask`, unless the kernel's tables have no
    /// room for all answers
    #[arg(long, value_name = "HOW", default_value = "auto")]
    neighbours: NeighbourResolution,
    /// End with status 3 unless the certificate says that times are faithful
    #[arg(long)]
    strict: bool,
    /// Length of each tcp and udp item of traffic, such as 10s, instead of the scenario's
    #[arg(long, value_name = "TIME")]
    duration: Option<TimeSpan>,
    /// Print the result at the end as one JSON document
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the result at the end as CSV, a line for each item of traffic, or for each stream if there is no traffic
    #[arg(long)]
    csv: bool,
}

const AFTER_HELP: &str = "Needs root: hosts are network namespaces. A file with traffic is run and ends; without traffic there is a prompt, where `help` \
says what can be typed, or commands are read from a pipe. docs/guide/emulate.md shows it.";

pub(crate) fn run(args: EmulateArgs) -> anyhow::Result<ExitCode> {
    let mut scenario = Scenario::read(&args.file)?;
    if let Some(duration) = args.duration {
        set_duration(&mut scenario, duration)?;
    }
    // Parsed before anything is started, so that a script with a mistake changes nothing.
    let read = |line: &String| prompt::parse(&scenario, line).map_err(|problem| anyhow::anyhow!("--exec: {problem}"));
    let commands: Vec<PromptCommand> = args.exec.iter().map(read).collect::<Result<_, _>>()?;
    let signals = PromptSignalHandler::watch()?;
    let options = LabOptions {
        emulate: true,
        dilation: args.dilate,
        neighbours: args.neighbours,
        cancel: signals.all().clone(),
        ..LabOptions::default()
    };
    let mut shown = progress::LabProgressDisplay::new();
    let lab = Lab::start(&scenario, &options, &mut |progress| shown.update(&progress));
    drop(shown);
    let lab = lab?;
    tell_start(&scenario, &lab);
    let mut session = PromptSession {
        console: LabConsole::new(lab),
        signals,
        is_document: args.json || args.csv,
        failed: false,
        has_parse_error: false,
        write_error: None,
    };
    let is_whole = commands.is_empty() && !args.cli && !(scenario.traffic.is_empty() && scenario.streams.is_empty());
    if !commands.is_empty() {
        session.run_commands(&commands)?;
    } else if is_whole {
        session.run_command(&PromptCommand::Traffic, false)?;
    } else {
        session.run_prompt()?;
    }
    session.finish(&args, is_whole)
}

/// Prints to standard error what was started, and how long that took.
fn tell_start(scenario: &Scenario, lab: &Lab) {
    let started = lab.started();
    let (switches, hosts) = (scenario.switches.len(), scenario.hosts.len());
    let (some_switches, some_hosts) = (counted(switches, "switch", "switches"), counted(hosts, "host", "hosts"));
    let some_links = counted(scenario.links.len(), "link", "links");
    let s = |time: std::time::Duration| time.as_secs_f64();
    let each = s(started.sum()) * 1000.0 / (switches + hosts).max(1) as f64;
    tell(&format!(
        "{some_switches}, {some_hosts} and {some_links} between switches in {:.2} s, {each:.1} ms a node (hosts {:.2} s, switches {:.2} s, control and links up {:.2} s)",
        s(started.sum()),
        s(started.hosts),
        s(started.switches),
        s(started.control)
    ));
    if started.neighbours_known {
        tell("hosts know each other's Ethernet addresses: no ARP, no neighbour discovery (--neighbours)");
    }
}

/// A running lab with its prompt.
struct PromptSession {
    console: LabConsole,
    signals: PromptSignalHandler,
    /// True if standard output carries only the final result as JSON or CSV; output of commands then goes to standard
    /// error.
    is_document: bool,
    failed: bool,
    has_parse_error: bool,
    /// First error of writing a command's output to standard output.
    write_error: Option<anyhow::Error>,
}

impl PromptSession {
    fn run_commands(&mut self, commands: &[PromptCommand]) -> anyhow::Result<()> {
        for command in commands {
            if self.signals.all().is_cancelled() || !self.run_command(command, true)? {
                break;
            }
        }
        Ok(())
    }

    /// Reads and runs lines until the end of input.
    fn run_prompt(&mut self) -> anyhow::Result<()> {
        let mut input = PromptInput::open(self.signals.all().clone(), self.console.completer())?;
        loop {
            match input.next_line()? {
                PromptLine::Text(line) => match self.console.parse(&line) {
                    Ok(command) => {
                        if !self.run_command(&command, true)? {
                            return Ok(());
                        }
                    }
                    Err(problem) => {
                        self.has_parse_error = true;
                        eprintln!("{problem}");
                    }
                },
                PromptLine::Interrupted => {}
                PromptLine::End => return Ok(()),
            }
        }
    }

    /// Runs one command. Returns false if the session is to end.
    fn run_command(&mut self, command: &PromptCommand, reports: bool) -> anyhow::Result<bool> {
        let cancel = self.signals.begin();
        let mut shown = progress::LabProgressDisplay::new();
        let mut progress = |progress: LabProgress| shown.update(&progress);
        let mut said = Vec::new();
        let is_document = self.is_document;
        let outcome = {
            // Programs write to the terminal directly, so text that precedes their output must be flushed first.
            let mut out = PromptOutput { said: &mut said, is_document };
            self.console.carry_out(command, &cancel, &mut out, &mut progress)
        };
        drop(shown);
        self.print_output(&mut said);
        match outcome {
            Ok(PromptOutcome::Done) => {}
            Ok(PromptOutcome::Failed) => self.failed = true,
            Ok(PromptOutcome::Quit) => return Ok(false),
            Ok(PromptOutcome::Report(result)) => {
                self.failed |= !result.passed && !result.partial;
                if reports && !is_document {
                    self.print_output(&mut wrapped(&report::text(&result)).into_bytes());
                }
            }
            Ok(PromptOutcome::Certificate(certificate)) => {
                self.print_output(&mut wrapped(&certificate.to_string()).into_bytes());
            }
            Err(error) => {
                self.failed = true;
                eprintln!("{:#}", anyhow::Error::from(error));
            }
        }
        Ok(true)
    }

    /// Prints a command's output. After a write error the lab goes on, and [`PromptSession::finish`] returns the error.
    fn print_output(&mut self, said: &mut Vec<u8>) {
        if let Err(error) = flush(said, self.is_document) {
            self.write_error.get_or_insert(error);
        }
    }

    /// Stops the lab and prints its result. `is_whole` is true if the file's traffic was the only thing to run: then
    /// the full report is printed, otherwise only the certificate.
    fn finish(self, args: &EmulateArgs, is_whole: bool) -> anyhow::Result<ExitCode> {
        let PromptSession { console, signals, failed, has_parse_error: misread, write_error: lost, .. } = self;
        let stopped = signals.all().is_cancelled();
        let result = console.finish()?;
        if args.json {
            weir_terminal::output::print(
                &(serde_json::to_string_pretty(&result).context("cannot write the result")? + "\n"),
            )?;
        } else if args.csv {
            weir_terminal::output::print(&report::csv(&result))?;
        } else if is_whole {
            weir_terminal::output::print(&wrapped(&report::text(&result)))?;
        } else {
            tell_certificate(&result)?;
        }
        lost.map_or(Ok(()), Err)?;
        let faithful = is_faithful(&result);
        Ok(match () {
            () if stopped || result.partial => ExitCode::from(STOPPED),
            () if misread => ExitCode::from(BAD_LINE),
            () if failed => ExitCode::from(NOT_AS_EXPECTED),
            () if args.strict && !faithful => ExitCode::from(NOT_FAITHFUL),
            () => ExitCode::SUCCESS,
        })
    }
}

/// Collects a command's output. It is printed when flushed, which happens before a program prints, or at the
/// command's end.
struct PromptOutput<'a> {
    said: &'a mut Vec<u8>,
    is_document: bool,
}

impl std::io::Write for PromptOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.said.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        flush(self.said, self.is_document).map_err(std::io::Error::other)
    }
}

fn flush(said: &mut Vec<u8>, is_document: bool) -> anyhow::Result<()> {
    let text = String::from_utf8_lossy(said).into_owned();
    said.clear();
    if is_document {
        // Standard output carries only the final result.
        eprint!("{text}");
        return Ok(());
    }
    weir_terminal::output::print(&text)
}

/// Prints the certificate after every emulation. Standard error is used if standard output is no terminal, so that
/// the output of commands stays unmixed.
fn tell_certificate(result: &LabResult) -> anyhow::Result<()> {
    if let Some(certificate) = &result.certificate {
        if std::io::stdout().is_terminal() {
            weir_terminal::output::print(&wrapped(&certificate.to_string()))?;
        } else {
            eprint!("{}", wrapped(&certificate.to_string()));
        }
    }
    Ok(())
}
