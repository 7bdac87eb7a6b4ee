//! Controllers that are started for a comparison: well-known ones by name, others by their command line.
mod program;

pub(super) use program::NorthboundCommands;

use anyhow::{Context as _, bail, ensure};
use program::{ControllerProgram, ProgramStart};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Child;
use std::str::FromStr;
use std::time::Duration;
use weir_emulator::CancelHandle;
use weir_openflow::Version;
use weir_units::{Clock as _, SystemClock};

/// Time that a controller has to listen.
const STARTS: Duration = Duration::from_secs(30);
/// Time that a controller has to end after SIGTERM.
const ENDS: Duration = Duration::from_secs(3);
/// Time between two looks.
const NAP: Duration = Duration::from_millis(50);
/// Bytes of a controller's output that an error shows.
const SHOWN: i64 = 600;

/// Controller to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ComparedController {
    pub(super) name: String,
    kind: ControllerProgram,
}

impl FromStr for ComparedController {
    type Err = String;

    fn from_str(text: &str) -> Result<ComparedController, String> {
        let (name, kind) = match text.split_once('=') {
            None if text == "weir" => (text, ControllerProgram::Weir),
            None if text == "ovs-testcontroller" => (text, ControllerProgram::TestController),
            None if text == "os-ken" => (text, ControllerProgram::OsKen),
            Some((name, command)) if !name.is_empty() && command.contains("{port}") => {
                (name, ControllerProgram::Shell(command.to_owned()))
            }
            _ => {
                return Err(format!(
                    "found `{text}`, expected weir, ovs-testcontroller, os-ken, or NAME=COMMAND with {{port}} in the command"
                ));
            }
        };
        Ok(ComparedController { name: name.to_owned(), kind })
    }
}

impl ComparedController {
    /// Returns the controller's version, as far as it is known without asking it: OpenFlow has no message for it.
    pub(super) fn version(&self) -> Option<&'static str> {
        (self.kind == ControllerProgram::Weir).then_some(env!("CARGO_PKG_VERSION"))
    }

    /// Returns what the report has to say about the settings of a controller that is started with discovery.
    pub(super) fn settings(&self, version: Version) -> Option<String> {
        self.kind.settings(version, true)
    }

    /// Starts the controller, on the processor `core` if it is given, and waits until it listens.
    ///
    /// # Errors
    /// The program is missing, ends at once, or does not listen in time.
    pub(super) fn start(
        &self,
        version: Version,
        core: Option<usize>,
        cancel: &CancelHandle,
    ) -> anyhow::Result<StartedController> {
        self.start_as(version, core, cancel, false)
    }

    /// Starts the controller as [`ComparedController::start`] does, with discovery of links and a northbound interface
    /// if it has them.
    ///
    /// # Errors
    /// Fails for the reasons of [`ComparedController::start`].
    pub(super) fn start_discovering(
        &self,
        version: Version,
        core: Option<usize>,
        cancel: &CancelHandle,
    ) -> anyhow::Result<StartedController> {
        self.start_as(version, core, cancel, true)
    }

    fn start_as(
        &self,
        version: Version,
        core: Option<usize>,
        cancel: &CancelHandle,
        discovers: bool,
    ) -> anyhow::Result<StartedController> {
        let name = &self.name;
        // Both are bound at once, so that they differ.
        let [free, other] =
            [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot find a free port"));
        let (free, other) = (free?, other?);
        let [address, northbound] = [free.local_addr()?, other.local_addr()?];
        drop((free, other));
        let output = tempfile::tempfile().context("cannot make a temporary file for the controller's output")?;
        let folder = tempfile::tempdir().context("cannot make a temporary folder for the controller")?;
        let [port, northbound] = [address.port(), northbound.port()];
        let start = ProgramStart { port, northbound, version, folder: folder.path(), discovers };
        let mut command = self.kind.command(start)?;
        let (commands, ready) = (self.kind.northbound(start)?, self.kind.ready_file(start));
        command.stdout(output.try_clone()?).stderr(output.try_clone()?);
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().with_context(|| format!("{name}: cannot start {program}; is it installed?"))?;
        let mut started = StartedController { child, output, address, northbound, commands, _folder: folder };
        if let Some(core) = core {
            let mut set = rustix::thread::CpuSet::new();
            set.set(core);
            let pid = Pid::from_child(&started.child);
            rustix::thread::sched_setaffinity(Some(pid), &set)
                .with_context(|| format!("{name}: cannot be pinned to core {core}"))?;
        }
        started.wait_until_it_listens(name, ready.as_deref(), cancel)?;
        Ok(started)
    }
}

/// A running controller, with everything that it started; it ends when dropped.
pub(super) struct StartedController {
    child: Child,
    output: File,
    /// Files of the controller, removed after its end.
    _folder: tempfile::TempDir,
    pub(super) address: SocketAddr,
    /// Port of its northbound interface, if it has one there.
    pub(super) northbound: u16,
    /// Weir's own commands for its northbound interface, if there are some.
    pub(super) commands: Option<NorthboundCommands>,
}

impl StartedController {
    /// Ends the controller at once, as a failure does, with everything that it started.
    pub(super) fn kill(mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }

    /// Returns the process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the controller listens, and until the file `ready` is there.
    fn wait_until_it_listens(&mut self, name: &str, ready: Option<&Path>, cancel: &CancelHandle) -> anyhow::Result<()> {
        let clock = SystemClock::start();
        let is_ready = || ready.is_none_or(Path::exists);
        while !is_ready() || TcpStream::connect_timeout(&self.address, NAP).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("{name}: ended before it listened ({status}){}", self.last_words());
            }
            if clock.now().as_secs_f64() >= STARTS.as_secs_f64() {
                let words = self.last_words();
                bail!("{name}: does not listen on {} within {STARTS:?}{words}", self.address);
            }
            ensure!(!cancel.wait(NAP), "stopped while {name} started");
        }
        Ok(())
    }

    /// Returns the end of what the controller printed, for errors.
    fn last_words(&mut self) -> String {
        let mut text = String::new();
        let length = self.output.metadata().map_or(0, |file| i64::try_from(file.len()).unwrap_or(0));
        let _ = self.output.seek(SeekFrom::End(-length.min(SHOWN)));
        let _ = self.output.read_to_string(&mut text);
        if text.trim().is_empty() { String::new() } else { format!("; it printed: {}", text.trim()) }
    }
}

impl Drop for StartedController {
    fn drop(&mut self) {
        let pid = Pid::from_child(&self.child);
        let _ = kill_process_group(pid, Signal::TERM);
        let clock = SystemClock::start();
        while clock.now().as_secs_f64() < ENDS.as_secs_f64() && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::park_timeout(NAP);
        }
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_commands_are_read() {
        for name in ["weir", "os-ken", "ovs-testcontroller", "mine=./run --port {port}"] {
            assert!(name.parse::<ComparedController>().is_ok(), "{name}");
        }
        for wrong in ["ryu", "mine=./run", "=x {port}", ""] {
            let error = wrong.parse::<ComparedController>().unwrap_err();
            assert!(error.contains("NAME=COMMAND"), "{error}");
        }
    }

    #[test]
    fn a_program_that_ends_is_an_error_with_its_words() {
        let ends: ComparedController = "mine=sh -c 'echo no licence; true {port}'".parse().unwrap();
        let error = ends.start(Version::V13, None, &CancelHandle::new()).err().unwrap().to_string();
        assert!(error.contains("ended before it listened") && error.contains("no licence"), "{error}");
    }
}
