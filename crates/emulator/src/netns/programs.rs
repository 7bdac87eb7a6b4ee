//! Runs programs: `ip` to its end, ping and iperf3 until they finish or are interrupted.
use crate::LabError;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Checks that the programs and privileges for a lab of namespaces are available. `iperf`: also check for iperf3.
pub(super) fn check(iperf: bool) -> Result<(), LabError> {
    let mut needed = vec![("ip", "iproute2"), ("ping", "iputils-ping"), ("setpriv", "util-linux")];
    needed.extend(iperf.then_some(("iperf3", "iperf3")));
    let missing: Vec<_> = needed.into_iter().filter(|(program, _)| !installed(program)).collect();
    if !missing.is_empty() {
        let (programs, packages): (Vec<_>, Vec<_>) = missing.into_iter().unzip();
        let (programs, packages) = (programs.join(", "), packages.join(" "));
        return Err(LabError::Missing(format!(
            "hosts in namespaces need {programs}: apt-get install {packages}; `weir run` without --netns needs none"
        )));
    }
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(LabError::Missing("hosts in namespaces need root: use sudo; `weir run` without --netns needs none".into()))
}

pub(super) fn installed(program: &str) -> bool {
    let folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    folders.iter().any(|folder| folder.join(program).exists())
}

/// Runs `ip` with these arguments and this standard input.
///
/// # Errors
/// The program cannot be run, or fails.
pub(super) fn ip(arguments: &[&str], input: &str) -> Result<(), LabError> {
    let mut command = Command::new("ip");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = command.spawn().and_then(|mut child| {
        // If `ip` does not read a batch to its end, its exit status is an error.
        let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output()?;
        if output.status.success() { written.map(|()| output) } else { Ok(output) }
    });
    let output = output.map_err(LabError::system("run ip"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    Err(LabError::Command { command: format!("ip {}", arguments.join(" ")), said })
}

/// Returns a command that runs a program in a namespace. `setpriv` lets the kernel kill the program if this process
/// is killed or the thread that starts it ends.
pub(crate) fn command(namespace: &str, arguments: &[String]) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, "setpriv", "--pdeathsig", "KILL"]).args(arguments);
    command
}

/// Registry of running programs, so that all can be ended at once.
#[derive(Default)]
pub(crate) struct ProgramRegistry(Mutex<RunningPrograms>);

#[derive(Default)]
struct RunningPrograms {
    pids: Vec<Pid>,
    /// True if no more programs are started.
    ending: bool,
}

impl ProgramRegistry {
    /// Runs a program in a namespace to its end. Returns its standard output and its trimmed standard error. Returns
    /// empty texts at once if programs are being ended.
    pub(crate) fn run(&self, namespace: &str, arguments: &[String]) -> io::Result<(String, String)> {
        let Some(mut child) = self.spawn(namespace, arguments)? else { return Ok(Default::default()) };
        let (mut output, mut errors) = (String::new(), String::new());
        // The pipe has room for standard error, because ping and iperf3 write at most a few lines to it.
        let read = child.stdout.take().map_or(Ok(0), |mut stdout| stdout.read_to_string(&mut output));
        let _ = child.stderr.take().map_or(Ok(0), |mut stderr| stderr.read_to_string(&mut errors));
        self.reap(child);
        read.map(|_| (output, errors.trim().to_owned()))
    }

    /// Starts a program in a namespace and waits until it prints a line that contains `ready`. Returns `None` if the
    /// program ended before, or programs are being ended.
    pub(crate) fn start_until(
        &self,
        namespace: &str,
        arguments: &[String],
        ready: &str,
    ) -> io::Result<Option<BackgroundProgram<'_>>> {
        let Some(mut child) = self.spawn(namespace, arguments)? else { return Ok(None) };
        let stdout = child.stdout.take().map(BufReader::new);
        let mut lines = stdout.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
        let is_ready = lines.any(|line| line.contains(ready));
        let server = BackgroundProgram { programs: self, child: Some(child), _output: Box::new(lines) };
        Ok(is_ready.then_some(server))
    }

    /// Returns true if no more programs are started.
    pub(crate) fn is_ending(&self) -> bool {
        self.running().ending
    }

    /// Interrupts all running programs and lets no more start.
    pub(super) fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Kills all running programs and lets no more start.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        let mut running = self.running();
        running.ending = true;
        for pid in &running.pids {
            // Fails if the program has ended already. Its process id is not reused before it is reaped.
            let _ = kill_process(*pid, signal);
        }
    }

    fn spawn(&self, namespace: &str, arguments: &[String]) -> io::Result<Option<Child>> {
        let mut running = self.running();
        if running.ending {
            return Ok(None);
        }
        let mut command = command(namespace, arguments);
        command.env("LC_ALL", "C");
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        running.pids.extend(pid(&child));
        Ok(Some(child))
    }

    /// Waits for a program that has closed its output.
    fn reap(&self, mut child: Child) {
        // Removes the program from the list first: the process id may be reused once it is reaped.
        self.running().pids.retain(|other| Some(*other) != pid(&child));
        let _ = child.wait();
    }

    fn running(&self) -> MutexGuard<'_, RunningPrograms> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

/// Program in the background, killed when dropped.
pub(crate) struct BackgroundProgram<'a> {
    programs: &'a ProgramRegistry,
    child: Option<Child>,
    /// Output kept open, so that the program can continue to write.
    _output: Box<dyn Iterator<Item = String>>,
}

impl Drop for BackgroundProgram<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            self.programs.reap(child);
        }
    }
}
