//! Processes that a test starts, and that end with it.
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process, kill_process_group};

/// Time that a process has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// A running process, with everything it starts, in its own process group; ended when dropped.
pub struct TestProcess {
    child: Child,
    name: String,
}

impl TestProcess {
    /// Starts `command`; its output is handled as the command says.
    pub fn start(command: &mut Command) -> TestProcess {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.process_group(0).stdin(Stdio::null()).spawn();
        TestProcess { child: child.unwrap_or_else(|error| panic!("cannot start {name}: {error}")), name }
    }

    /// Returns its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Takes its standard output, if the command piped it.
    pub fn stdout(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// Takes its standard error, if the command piped it.
    pub fn stderr(&mut self) -> Option<std::process::ChildStderr> {
        self.child.stderr.take()
    }

    /// Sends a signal to the process, not to its group.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid(), signal);
    }

    /// Returns its exit status, if it has ended.
    pub fn exited(&mut self) -> Option<std::process::ExitStatus> {
        self.child.try_wait().expect("waiting for a child")
    }

    /// Sends SIGTERM to the group, and SIGKILL at the latest after 5 s.
    ///
    /// # Panics
    /// Panics if the process did not end by SIGTERM.
    pub fn stop(mut self) {
        assert!(self.end(), "{} did not end within {GRACE:?} of SIGTERM", self.name);
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Ends the group. Returns true if the process ended without SIGKILL.
    fn end(&mut self) -> bool {
        if self.exited().is_some() {
            return true;
        }
        let _ = kill_process_group(self.pid(), Signal::TERM);
        let ended = wait_until(GRACE, || self.exited().is_some());
        let _ = kill_process_group(self.pid(), Signal::KILL);
        let _ = self.child.wait();
        ended
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs a command to its end and returns its standard output.
///
/// # Panics
/// Panics with both outputs if the command fails or takes longer than a minute.
pub fn run(command: &mut Command) -> String {
    let shown = format!("{command:?}");
    let output = output_within(Duration::from_secs(60), command);
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{shown}: {}\n{text}\n{errors}", output.status);
    text.into_owned()
}

/// Runs a command to its end and returns its status and both outputs. A command that does not end within `limit` is
/// killed, so that it fails its test and does not delay others.
///
/// # Panics
/// Panics with both outputs if the command takes longer than `limit`.
pub fn output_within(limit: Duration, command: &mut Command) -> Output {
    let shown = format!("{command:?}");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.as_mut().unwrap_or_else(|error| panic!("{shown}: {error}"));
    let stdout = read_on_thread(child.stdout.take().expect("piped"));
    let stderr = read_on_thread(child.stderr.take().expect("piped"));
    let ended = wait_until(limit, || child.try_wait().expect("waiting for a child").is_some());
    if !ended {
        let _ = child.kill();
    }
    let status = child.wait().expect("waiting for a child");
    let output = Output { status, stdout: stdout.join().expect("reading"), stderr: stderr.join().expect("reading") };
    let text = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat();
    assert!(ended, "{shown}: still running after {limit:?}\n{text}");
    output
}

/// Reads all of a pipe on its own thread.
fn read_on_thread(mut pipe: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// Polls `condition` every 10 ms until it is true, at most for `limit`. Returns true if it became true.
#[expect(clippy::disallowed_methods, reason = "tests wait for other processes, which have no descriptor to wait on")]
pub fn wait_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the CPUs that a thread of this process may run on, as the kernel writes them (`0`, `0-1`); `None` if no
/// thread has that name.
pub fn cpus_of_thread(name: &str) -> Option<String> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?.filter_map(|task| Some(task.ok()?.path()));
    let has_name =
        |path: &std::path::PathBuf| std::fs::read_to_string(path.join("comm")).is_ok_and(|found| found.trim() == name);
    let status = tasks.into_iter().find(has_name).and_then(|path| std::fs::read_to_string(path.join("status")).ok())?;
    Some(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().to_owned())
}

/// Returns the shell command by which the reference data's scripts start a switch; `weir` is the program. Ports,
/// controller, datapath id and OpenFlow version are taken from environment variables.
pub fn pattern_switch(weir: &str) -> String {
    let ports = r#"n=0; a=; for p in $OF_PORTS; do n=$((n+1)); a="$a --port $n=af_packet:$p"; done;"#;
    let version = r#"v=1.3; case "$OF_VER" in 1?) v=1.${OF_VER#1};; esac;"#;
    // The tester times its packets on the same few processors, and a long spin would take them away from it.
    let arguments = r#"--spin 20us --dpid 0x$OF_DPID --versions $v --controller tcp:$OF_CTL --name conform-$$ $a"#;
    format!("{ports} {version} exec {weir} switch {arguments}")
}
