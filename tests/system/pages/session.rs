//! Runs blocks of a page that need a running switch or network namespaces. A comment in front of a block says what:
//!
//! | comment | the block is run |
//! |---|---|
//! | `<!-- switch: ARGUMENTS -->` | beside a new `weir switch ARGUMENTS`, whose ports need nothing |
//! | `<!-- lab: COMMANDS -->` | as root in new namespaces, after these commands |
//! | `<!-- run -->`, `<!-- run: COMMANDS -->` | where the block before was run, after these commands |
//!
//! Commands are separated by `; `. More of them may follow ARGUMENTS. Those that start a switch or a controller, and
//! those that end with `&`, run until the session ends; of the former the first line of output is awaited. [`PRELUDE`]
//! has words for namespaces. All that a session starts ends with it, also when the test fails.
use super::block::{Block, missing};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_testing::{TestProcess, output_within, wait_until};

/// Longest time of a command.
const LIMIT: Duration = Duration::from_secs(60);
/// Time for a switch or controller to become ready.
const READY: Duration = Duration::from_secs(20);
/// Time until what a command shows, or a switch logs, is as on the page.
const PATIENCE: Duration = Duration::from_secs(30);
/// Programs of others that blocks call. A block is skipped if one that it calls is missing.
const PROGRAMS: [&str; 4] = ["ovs-ofctl", "iperf3", "tcpdump", "ping"];
/// Words for the comments of blocks: `space h1` makes a namespace, `address h1 10.0.0.1/24` gives its `eth0` an
/// address, `host h1 veth1 10.0.0.1/24` does both, with an interface `veth1` at the other end. `trunk a b` joins two
/// interfaces, and `listens h1 5201` waits until a program there listens on this port.
const PRELUDE: &str = r#"
quiet() { sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1; }
space() { ip netns add $1 && ip -n $1 link set lo up &&
    ip netns exec $1 sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1; }
address() { ip -n $1 addr add $2 dev eth0 && ip -n $1 link set eth0 up; }
host() { space $1 && ip link add $2 type veth peer name eth0 netns $1 && ip link set $2 up && address $1 $3; }
listens() { for try in $(seq 200); do ip netns exec $1 ss -ltn | grep -q ":$2 " && return 0; sleep 0.05; done; return 3; }
trunk() { ip link add $1 type veth peer name $2 && ip link set $1 up && ip link set $2 up; }
"#;

/// Beginnings of commands that run until their session ends.
const SERVERS: [&str; 3] = ["weir switch ", "./weir switch ", "weir controller"];
/// Beginnings of commands that may be run again until they show what the page shows.
const REPEATABLE: [&str; 7] = [
    "weir ctl show",
    "./weir ctl show",
    "weir ctl controller",
    "weir ctl dump",
    "weir ctl --switch s1 dump",
    "weir net",
    "weir run",
];

/// Comment in front of a block that asks for something.
struct Marker<'a> {
    kind: MarkerKind,
    /// Commands that precede the block.
    before: Vec<&'a str>,
}

/// Kind of the comment in front of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MarkerKind {
    Switch,
    Lab,
    Run,
}

impl<'a> Marker<'a> {
    fn of(block: &'a Block<'_>) -> Option<Marker<'a>> {
        let (kind, rest) = block.comment.split_once(':').unwrap_or((&block.comment, ""));
        let kind = match kind {
            "switch" => MarkerKind::Switch,
            "lab" => MarkerKind::Lab,
            "run" => MarkerKind::Run,
            _ => return None,
        };
        Some(Marker { kind, before: rest.split("; ").map(str::trim).filter(|command| !command.is_empty()).collect() })
    }
}

/// Returns true if the block is run here.
pub(super) fn is_marked(block: &Block<'_>) -> bool {
    Marker::of(block).is_some()
}

/// Runs the marked blocks of a page. Returns what is wrong, and the number of commands.
pub(super) fn run_page(folder: &Path, blocks: &[Block<'_>]) -> (Vec<String>, usize) {
    let (mut problems, mut count, mut session, mut is_skipped) = (Vec::new(), 0, None::<Session<'_>>, false);
    for block in blocks {
        let Some(marker) = Marker::of(block) else { continue };
        if marker.kind != MarkerKind::Run {
            (session, is_skipped) = (None, false);
        }
        let text = format!("{} {}", block.comment, block.lines.join(" "));
        let needed: Vec<&str> = PROGRAMS.into_iter().filter(|program| text.contains(program)).collect();
        let lacks_root = marker.kind == MarkerKind::Lab && !weir_testing::root();
        is_skipped |= lacks_root || !weir_testing::programs(&needed);
        if is_skipped {
            continue;
        }
        let session = session.get_or_insert_with(|| Session::new(folder));
        let first = if marker.kind == MarkerKind::Switch { "weir switch " } else { "" };
        let before = marker.before.iter().enumerate();
        let before = before.map(|(at, command)| (format!("{}{command}", if at == 0 { first } else { "" }), Vec::new()));
        for (command, output) in before.chain(block.commands()) {
            count += 1;
            let problem = session.problem(&command, &output);
            problems.extend(problem.map(|problem| format!("line {}: {problem}", block.line)));
        }
    }
    (problems, count)
}

/// Commands that belong together, with the switches that run beside them. As root a session has its own network, its
/// own names of namespaces and its own `/run/weir`.
struct Session<'a> {
    folder: &'a Path,
    /// Commands that run until the session ends.
    background: Vec<TestProcess>,
    /// Lines that those wrote.
    told: Arc<Mutex<String>>,
    /// Home folder, and the place of control sockets without root.
    runtime: tempfile::TempDir,
    /// Process that keeps the namespaces.
    holder: Option<TestProcess>,
}

impl<'a> Session<'a> {
    fn new(folder: &'a Path) -> Session<'a> {
        let runtime = tempfile::tempdir().expect("a folder");
        let mut session = Session { folder, background: Vec::new(), told: Arc::default(), runtime, holder: None };
        if weir_testing::is_root() {
            let inside = "mkdir -p /run/netns /run/weir && mount -t tmpfs none /run/netns && mount -t tmpfs none /run/weir \
                          && ip link set lo up && echo ready && exec sleep infinity";
            let mut command = Command::new("unshare");
            let command = command.args(["--mount", "--net", "sh", "-c", inside]).stdout(Stdio::piped());
            let mut holder = TestProcess::start(command);
            let mut line = String::new();
            let said = holder.stdout().map(|stdout| BufReader::new(stdout).read_line(&mut line));
            assert!(said.is_some_and(|said| said.is_ok()) && line == "ready\n", "no namespaces for a page: {line}");
            session.holder = Some(holder);
            session.run("quiet");
        }
        session
    }

    /// Returns a shell command in the session.
    fn shell(&self, text: &str) -> Command {
        let mut command = match &self.holder {
            Some(holder) => {
                let mut command = Command::new("nsenter");
                command
                    .args(["--target", &holder.id().to_string(), "--mount", "--net", "sh"])
                    .env_remove("XDG_RUNTIME_DIR");
                command
            }
            None => {
                let mut command = Command::new("sh");
                command.env("XDG_RUNTIME_DIR", self.runtime.path());
                command
            }
        };
        let folder = self.folder.display();
        let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
        command.args(["-c", &format!("{PRELUDE}cd {folder}\n{text}")]);
        command.env("PATH", path).env("HOME", self.runtime.path());
        command
    }

    /// Runs a command to its end. Returns what it wrote and its status.
    fn run(&self, text: &str) -> (String, Option<i32>) {
        let output = output_within(LIMIT, &mut self.shell(text));
        let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (told, output.status.code())
    }

    /// Runs a command. Returns what is wrong with it: it fails, or does not show these lines.
    fn problem(&mut self, command: &str, lines: &[&str]) -> Option<String> {
        if SERVERS.iter().any(|begin| command.starts_with(begin)) || command.ends_with('&') {
            let is_ready = self.start(command);
            let is_right = is_ready && wait_until(PATIENCE, || missing(&self.told(), lines).is_empty());
            return (!is_right).then(|| self.report(command, "", lines));
        }
        // What a switch counts and shows follows a moment later; live runs may be disturbed by the machine.
        let is_repeatable = REPEATABLE.iter().any(|begin| command.starts_with(begin));
        let shows_error = lines.iter().any(|line| line.starts_with("weir: "));
        let mut ran = self.run(command);
        let mut is_first = true;
        let is_right = wait_until(PATIENCE, || {
            // Each run is looked at, the last one, too.
            if is_repeatable && !std::mem::take(&mut is_first) {
                ran = self.run(command);
            }
            let is_good = shows_error || ran.1.is_some_and(|code| code <= 1);
            is_good && missing(&format!("{}{}", ran.0, self.told()), lines).is_empty()
        });
        (!is_right).then(|| self.report(&format!("{command}\n  ended with {:?}", ran.1), &ran.0, lines))
    }

    /// Starts a command that runs until the session ends. Returns false if a server does not become ready.
    fn start(&mut self, command: &str) -> bool {
        let is_server = !command.ends_with('&');
        let text = format!("exec {} 2>&1", command.trim_end_matches('&').trim());
        let mut process = TestProcess::start(self.shell(&text).stdout(Stdio::piped()));
        let stdout = process.stdout().expect("piped");
        let (told, before) = (Arc::clone(&self.told), self.told().len());
        // Reads on until the process ends, so that it never blocks on a full pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                told.lock().unwrap_or_else(PoisonError::into_inner).push_str(&format!("{line}\n"));
            }
        });
        let is_ready = || self.told()[before..].lines().any(is_ready_line);
        let is_up = !is_server || wait_until(READY, || is_ready() || process.exited().is_some()) && is_ready();
        self.background.push(process);
        is_up
    }

    fn report(&self, command: &str, told: &str, lines: &[&str]) -> String {
        let background = self.told();
        let lacking = missing(&format!("{told}{background}"), lines);
        format!("{command}\n  lines that it does not print: {lacking:#?}\n{told}\nin the background:\n{background}")
    }

    /// Returns what the commands in the background wrote.
    fn told(&self) -> String {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns true if a line says that a switch or a controller is ready.
fn is_ready_line(line: &str) -> bool {
    line.contains(" is ready: ") || line.contains(" listens on ")
}
