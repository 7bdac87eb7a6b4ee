//! The application-plane test emulator of RFC 8456, section 3.1 (interface I2): commands of the user that ask the
//! controller's northbound or management interface.
use super::frames::TestHost;
use super::topology::PortPlace;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

/// Bytes of a command's output that an error shows.
const SHOWN: usize = 200;

/// A command that runs. It ends, with all that it started, when dropped.
pub(super) struct NorthboundCommand {
    child: Child,
    output: std::fs::File,
}

impl NorthboundCommand {
    /// Starts a command line in a shell.
    ///
    /// # Errors
    /// The shell cannot be started. The text says so.
    pub(super) fn start(line: &str) -> Result<NorthboundCommand, String> {
        let failed = |error: std::io::Error| format!("cannot run `{line}`: {error}");
        let output = tempfile::tempfile().map_err(failed)?;
        let mut command = Command::new("sh");
        command.args(["-c", line]).process_group(0).stdin(Stdio::null());
        command.stdout(output.try_clone().map_err(failed)?).stderr(output.try_clone().map_err(failed)?);
        Ok(NorthboundCommand { child: command.spawn().map_err(failed)?, output })
    }

    /// Returns what the command printed if it has ended: an error if it failed.
    pub(super) fn ended(&mut self) -> Option<Result<String, String>> {
        let status = match self.child.try_wait() {
            Ok(status) => status?,
            Err(error) => return Some(Err(format!("cannot wait for the command: {error}"))),
        };
        let mut text = String::new();
        let read = self.output.seek(SeekFrom::Start(0)).and_then(|_| self.output.read_to_string(&mut text));
        Some(match read {
            Err(error) => Err(format!("cannot read the command's output: {error}")),
            Ok(_) if status.success() => Ok(text),
            Ok(_) => Err(format!("the command failed ({status}): {}", first_bytes(text.trim()))),
        })
    }
}

impl Drop for NorthboundCommand {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let pid = rustix::process::Pid::from_child(&self.child);
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// Numbers of switches, links and hosts that a controller knows, as far as it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownTopology {
    pub(super) nodes: u64,
    pub(super) links: Option<u64>,
    pub(super) hosts: Option<u64>,
}

impl KnownTopology {
    /// Reads the output of a topology command: the number of switches, and after it optionally those of links and
    /// hosts, separated by white space or commas.
    ///
    /// # Errors
    /// The text has anything else.
    pub(super) fn read(text: &str) -> Result<KnownTopology, String> {
        let words = text.split([' ', '\t', '\n', '\r', ',']).filter(|word| !word.is_empty());
        let numbers: Result<Vec<u64>, _> = words.map(str::parse).collect();
        match numbers.as_deref() {
            Ok([nodes, rest @ ..]) if rest.len() <= 2 => {
                Ok(KnownTopology { nodes: *nodes, links: rest.first().copied(), hosts: rest.get(1).copied() })
            }
            _ => Err(format!(
                "--topology-command: found `{}`, expected one to three numbers: switches, links, hosts",
                first_bytes(text.trim())
            )),
        }
    }

    /// Returns true if this is the network: its links may be counted once or in each direction. Hosts are not
    /// compared.
    pub(super) fn matches(&self, nodes: usize, links: usize) -> bool {
        let [nodes, links] = [nodes as u64, links as u64];
        self.nodes == nodes && self.links.is_none_or(|found| found == links || found == 2 * links)
    }
}

/// Reads the output of a command that prints a number of flow entries.
///
/// # Errors
/// The text has anything else.
pub(super) fn read_count(text: &str) -> Result<u64, String> {
    let text = text.trim();
    text.parse().map_err(|_| format!("--flows-command: found `{}`, expected a number", first_bytes(text)))
}

/// Returns the command that provisions a path, with its places filled in.
pub(super) fn provision(line: &str, [from, to]: [TestHost; 2], ports: [PortPlace; 2], number: u64) -> String {
    let values = [
        ("{src}", from.mac().to_string()),
        ("{dst}", to.mac().to_string()),
        ("{src_ip}", from.ip().to_string()),
        ("{dst_ip}", to.ip().to_string()),
        ("{src_dpid}", (ports[0].node + 1).to_string()),
        ("{dst_dpid}", (ports[1].node + 1).to_string()),
        ("{src_port}", ports[0].port.to_string()),
        ("{dst_port}", ports[1].port.to_string()),
        ("{number}", number.to_string()),
    ];
    values.iter().fold(line.to_owned(), |line, (place, value)| line.replace(place, value))
}

fn first_bytes(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::super::frames::HostPlace;
    use super::*;

    #[test]
    fn topologies_are_read_and_compared() {
        let found = KnownTopology::read("5, 8\n").unwrap();
        assert_eq!(found, KnownTopology { nodes: 5, links: Some(8), hosts: None });
        assert!(found.matches(5, 4) && found.matches(5, 8) && !found.matches(5, 3) && !found.matches(4, 8));
        assert!(KnownTopology::read("3").unwrap().matches(3, 99));
        for wrong in ["", "1 2 3 4", "five"] {
            assert!(KnownTopology::read(wrong).unwrap_err().contains("switches, links, hosts"), "{wrong}");
        }
        assert_eq!(read_count(" 12\n"), Ok(12));
        assert!(read_count("{}").unwrap_err().contains("expected a number"));
    }

    #[test]
    fn places_of_a_provisioning_command_are_filled_in() {
        let hosts = [0, 1].map(|generator| TestHost { place: HostPlace::Generator(generator), number: 258 });
        let ports = [PortPlace { node: 0, port: 1 }, PortPlace { node: 3, port: 1 }];
        let line = provision("add {src} {dst_ip} at {dst_dpid}/{dst_port} as {number}", hosts, ports, 9);
        assert_eq!(line, "add 02:00:00:00:01:02 11.0.1.2 at 4/1 as 9");
    }

    fn outcome(line: &str) -> Result<String, String> {
        let mut command = NorthboundCommand::start(line).unwrap();
        loop {
            if let Some(ended) = command.ended() {
                return ended;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn commands_give_their_output_or_their_error() {
        assert_eq!(outcome("echo 3 4"), Ok("3 4\n".to_owned()));
        assert!(outcome("echo no such flow; exit 3").unwrap_err().contains("no such flow"));
    }
}
