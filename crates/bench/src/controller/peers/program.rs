//! Programs that a comparison starts: their command lines, their settings in words, and the commands for their
//! northbound interfaces.
use anyhow::Context as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use weir_openflow::Version;

/// Application of os-ken: its package has none that forwards.
const OSKEN_APP: &str = include_str!("../osken_learning.py");
/// Options of weir as the controller of a network. Paths are provisioned with the first packet, so that there is
/// something to provision; probes are rarer than by default, because a periodic probe cannot be told apart from a
/// reaction to a change (RFC 8456, section 5.1.8); and generators have more hosts behind a port than a network should.
const NETWORK: [&str; 10] = [
    "--app",
    "forwarding",
    "--forward",
    "reactive-path",
    "--probe-interval",
    "1s",
    "--max-hosts",
    "1000000",
    "--max-hosts-per-port",
    "1000000",
];
/// Name of the socket of weir's interface, beside that of `weir ctl`.
const WEIR_SOCKET: &str = "weir.controller";
const WEIR_API: &str = "weir.api";

/// Program of a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ControllerProgram {
    Weir,
    TestController,
    OsKen,
    /// Command line for a shell, with `{port}` for the port to listen on, and `{northbound}` for that of its
    /// northbound interface.
    Shell(String),
}

/// Settings of a start.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProgramStart<'a> {
    /// Ports of 127.0.0.1 to listen on: for switches, and for the northbound interface.
    pub(super) port: u16,
    pub(super) northbound: u16,
    pub(super) version: Version,
    /// Folder for files of the controller.
    pub(super) folder: &'a Path,
    /// True if the controller should discover links and have a northbound interface, as far as it can.
    pub(super) discovers: bool,
}

/// Shell commands for a northbound interface, with the places of `weir bench rfc8456`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::controller) struct NorthboundCommands {
    /// Prints the numbers of switches, links and hosts that the controller knows.
    pub(in crate::controller) topology: String,
    /// Provisions the path of a pair of hosts, and fails if it cannot.
    pub(in crate::controller) provision: String,
    /// Prints the number of flow entries that the controller has.
    pub(in crate::controller) flows: String,
}

impl ProgramStart<'_> {
    /// Returns true if weir is the controller of a whole network, which needs OpenFlow 1.3; otherwise it is a learning
    /// switch.
    fn is_network(self) -> bool {
        self.discovers && self.version >= Version::V13
    }
}

impl ControllerProgram {
    /// Returns the command that starts the program, in a process group of its own.
    ///
    /// # Errors
    /// A file of the program cannot be written; weir's own program is not found.
    pub(super) fn command(&self, start: ProgramStart<'_>) -> anyhow::Result<Command> {
        let ProgramStart { port, northbound, version, folder, discovers } = start;
        let mut command = match self {
            ControllerProgram::Weir => {
                let mut command = Command::new(weir()?);
                let listen = format!("tcp:127.0.0.1:{port}");
                command.args(["controller", "--listen", &listen, "--versions", version.name()]);
                command.arg("--control-socket").arg(folder.join(WEIR_SOCKET));
                if start.is_network() {
                    command.args(NETWORK);
                }
                command
            }
            ControllerProgram::TestController => {
                let mut command = Command::new("ovs-testcontroller");
                // Without a limit of packet-ins, and with unixctl off its usual path.
                command.args([&format!("ptcp:{port}:127.0.0.1"), "--unixctl=none"]);
                let number = version as u8 - 1 + 10;
                command.args(["-O", &format!("OpenFlow{number}")]);
                command
            }
            ControllerProgram::OsKen => {
                let script = folder.join("osken_learning.py");
                std::fs::write(&script, OSKEN_APP).context("cannot write the application of os-ken")?;
                let mut command = Command::new("python3");
                command.arg(script).args(["--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port"]);
                command.env("WEIR_BENCH_OPENFLOW", version.name());
                command.arg(port.to_string());
                if discovers {
                    command.arg("--observe-links").env("WEIR_BENCH_NORTHBOUND", northbound.to_string());
                }
                command
            }
            ControllerProgram::Shell(line) => {
                let mut command = Command::new("sh");
                let line = line.replace("{port}", &port.to_string()).replace("{northbound}", &northbound.to_string());
                command.args(["-c", &format!("exec {line}")]);
                command
            }
        };
        command.process_group(0).stdin(Stdio::null());
        Ok(command)
    }

    /// Returns weir's own commands for the northbound interface of a program that was started like this; `None` if
    /// there are none.
    ///
    /// # Errors
    /// Weir's own program is not found.
    pub(super) fn northbound(&self, start: ProgramStart<'_>) -> anyhow::Result<Option<NorthboundCommands>> {
        Ok(match self {
            ControllerProgram::Weir if start.is_network() => {
                Some(weir_commands(&weir()?, &start.folder.join(WEIR_API)))
            }
            ControllerProgram::OsKen if start.discovers => Some(osken_commands(start.northbound)),
            _ => None,
        })
    }

    /// Returns the file that is there once the northbound interface answers; `None` if it does so from the start on.
    pub(super) fn ready_file(&self, start: ProgramStart<'_>) -> Option<PathBuf> {
        (*self == ControllerProgram::Weir && start.is_network()).then(|| start.folder.join(WEIR_API))
    }

    /// Returns what the report has to say about the program's settings, with discovery of links or without.
    pub(super) fn settings(&self, version: Version, discovers: bool) -> Option<String> {
        match self {
            ControllerProgram::Weir if discovers && version >= Version::V13 => {
                Some(format!("weir controller {}", NETWORK.join(" ")))
            }
            ControllerProgram::Weir => Some("weir controller --app learning".to_owned()),
            ControllerProgram::OsKen if discovers => Some(
                "os-ken with weir's learning switch and os-ken's module for discovery. That module's loop waits for \
                 ever once all ports are due at a time; weir's application wakes it each second"
                    .to_owned(),
            ),
            ControllerProgram::OsKen => Some("os-ken with weir's learning switch".to_owned()),
            ControllerProgram::TestController | ControllerProgram::Shell(_) => None,
        }
    }
}

/// Returns the path of the program that runs.
fn weir() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find weir's own program")
}

/// Returns the commands for the interface of weir at a Unix socket.
fn weir_commands(program: &Path, socket: &Path) -> NorthboundCommands {
    let net = format!("{} net --api {}", quoted(&program.display()), quoted(&format!("unix:{}", socket.display())));
    let counts = [r"\([0-9]*\) switch[es]*", r"\([0-9]*\) links*", r"\([0-9]*\) hosts*"].join(", ");
    NorthboundCommands {
        topology: format!(r"{net} show | sed -n '1s/^{counts},.*/\1 \2 \3/p'"),
        provision: format!("{net} intent add {{src}}-{{dst}} --from {{src}} --to {{dst}} --wait"),
        flows: format!(r"{net} show --csv | sed -n 's/^counter,.*,tables_wanted,\([0-9]*\)$/\1/p'"),
    }
}

/// Returns the commands for the interface of weir's application of os-ken.
fn osken_commands(port: u16) -> NorthboundCommands {
    let ask = |rest: &str| format!("curl -sSf 'http://127.0.0.1:{port}{rest}'");
    NorthboundCommands { topology: ask("/topology"), provision: ask("/path?src={src}&dst={dst}"), flows: ask("/flows") }
}

/// Returns a text as one word of a shell.
fn quoted(text: &impl ToString) -> String {
    format!("'{}'", text.to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(version: Version, discovers: bool) -> ProgramStart<'static> {
        ProgramStart { port: 1, northbound: 2, version, folder: Path::new("/x y"), discovers }
    }

    #[test]
    fn weir_is_a_network_where_discovery_is_asked_for() {
        let weir = ControllerProgram::Weir;
        let arguments = |start| format!("{:?}", weir.command(start).unwrap());
        let network = start(Version::V13, true);
        assert!(arguments(network).contains("\"--app\" \"forwarding\""), "{}", arguments(network));
        let commands = weir.northbound(network).unwrap().unwrap();
        assert!(commands.topology.contains("'unix:/x y/weir.api' show"), "{commands:?}");
        for learning in [start(Version::V10, true), start(Version::V13, false)] {
            assert!(!arguments(learning).contains("forwarding"), "{}", arguments(learning));
            assert_eq!(weir.northbound(learning).unwrap(), None);
        }
    }

    #[test]
    fn words_of_a_shell_are_quoted() {
        assert_eq!(quoted(&"/a b/it's"), r"'/a b/it'\''s'");
    }

    #[test]
    fn counts_are_taken_from_what_weir_net_prints() {
        let commands = weir_commands(Path::new("weir"), Path::new("s"));
        let output = |line: &str, printed: &str| {
            // The commands have the part after the program's output.
            let (_, filter) = line.split_once(" | ").unwrap();
            let shell = Command::new("sh").args(["-c", &format!("printf '{printed}' | {filter}")]).output().unwrap();
            String::from_utf8(shell.stdout).unwrap()
        };
        let shown = "1 switch, 12 links, 0 hosts, 1 intent; the controller is up for 1.0 s\\n\\n switch\\n";
        assert_eq!(output(&commands.topology, shown), "1 12 0\n");
        assert_eq!(output(&commands.topology, "3 switches, 1 link, 1 host, 0 intents; x\\n"), "3 1 1\n");
        let csv = "kind,a,counter,count\\ncounter,,tables_messages,9\\ncounter,,tables_wanted,42\\n";
        assert_eq!(output(&commands.flows, csv), "42\n");
    }
}
