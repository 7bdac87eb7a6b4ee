//! A running instance of Open vSwitch and its bridges.
use super::bridge::OvsBridge;
use super::control::OvsControlSocket;
use crate::case::{PAUSE_MS, PORTS};
use crate::{CaseOutcome, DifferentialCase};
use anyhow::{Context as _, ensure};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use weir_openflow::Version;
use weir_testing::{TestProcess, run, wait_until};

/// Number of bridges for each version of OpenFlow.
const LANES_PER_VERSION: usize = 4;

/// Longest time to wait for a daemon to start.
const START: Duration = Duration::from_secs(30);

/// Number of log lines shown if the instance stops answering.
const LOG_LINES: usize = 8;

/// Open vSwitch's schema of its configuration.
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// A running instance. Dropping it stops its daemons.
pub struct OvsInstance {
    lanes: Vec<OvsBridge>,
    control: OvsControlSocket,
    // Field order is drop order: the switch stops before its database, and both before their folder is removed.
    switch: TestProcess,
    _database: TestProcess,
    folder: TempDir,
}

impl OvsInstance {
    /// Starts the daemons with one bridge per lane, and stops their clock.
    ///
    /// # Errors
    /// A channel or pipe cannot be opened, or a daemon does not start.
    pub fn start() -> anyhow::Result<OvsInstance> {
        let folder = tempfile::tempdir()?;
        let database = start_database(folder.path())?;
        let names = (0..LANES_PER_VERSION * Version::ALL.len()).map(|lane| format!("lane{lane}"));
        let captures = names.map(|name| OvsBridge::captures(folder.path(), &name).map(|captures| (name, captures)));
        let captures = captures.collect::<anyhow::Result<Vec<_>>>()?;
        let switch = start_switch(folder.path())?;
        configure(folder.path(), captures.iter().map(|(name, _)| name.as_str()));
        let versions = Version::ALL.into_iter().cycle();
        let lanes = captures.into_iter().zip(versions);
        let lanes = lanes.map(|((name, captures), version)| OvsBridge::open(folder.path(), &name, captures, version));
        let lanes = lanes.collect::<anyhow::Result<_>>()?;
        let mut control = OvsControlSocket::open(&folder.path().join("switch.ctl"))?;
        control.run("time/stop", &[])?;
        Ok(OvsInstance { lanes, control, switch, _database: database, folder })
    }

    /// Returns Open vSwitch's version, as printed by the daemon.
    pub fn version(&self) -> String {
        let text = run(Command::new("ovs-vswitchd").arg("--version"));
        text.lines().next().unwrap_or_default().to_owned()
    }

    /// Returns the process id of the switch.
    pub fn id(&self) -> u32 {
        self.switch.id()
    }

    /// Returns the OpenFlow versions of the lanes, in order.
    pub fn versions(&self) -> Vec<Version> {
        self.lanes.iter().map(OvsBridge::version).collect()
    }

    /// Runs a case, or none, on each lane. Each case comes with the number of notices that it is expected to cause.
    ///
    /// # Errors
    /// The instance does not answer.
    pub fn run(&mut self, cases: &[Option<(DifferentialCase, usize)>]) -> anyhow::Result<Vec<Option<CaseOutcome>>> {
        ensure!(cases.len() == self.lanes.len(), "a case, or none, for each lane");
        self.run_all(cases).with_context(|| {
            let seeds: Vec<u64> = cases.iter().flatten().map(|(case, _)| case.seed).collect();
            wait_until(Duration::from_secs(2), || self.switch.exited().is_some());
            let status = self.switch.exited();
            let log = std::fs::read_to_string(self.folder.path().join("switch.log")).unwrap_or_default();
            let last = log.lines().rev().take(LOG_LINES).collect::<Vec<_>>().join("\n");
            format!(
                "running the cases of seeds {seeds:?}; Open vSwitch's exit status {status:?}, last of its log:\n{last}"
            )
        })
    }

    fn run_all(&mut self, cases: &[Option<(DifferentialCase, usize)>]) -> anyhow::Result<Vec<Option<CaseOutcome>>> {
        for (lane, case) in self.lanes.iter_mut().zip(cases) {
            lane.begin(case.as_ref().map(|(case, _)| case));
        }
        loop {
            for lane in &mut self.lanes {
                lane.send()?;
            }
            for lane in &mut self.lanes {
                lane.receive()?;
            }
            if self.lanes.iter().all(OvsBridge::is_finished) {
                break;
            }
            self.control.run("time/warp", &[&PAUSE_MS.to_string()])?;
            for lane in &mut self.lanes {
                lane.settle()?;
            }
        }
        for lane in &mut self.lanes {
            lane.send_clear()?;
        }
        for (lane, case) in self.lanes.iter_mut().zip(cases) {
            lane.receive_clear(case.as_ref().map_or(0, |(_, notices)| *notices))?;
        }
        Ok(self.lanes.iter_mut().map(OvsBridge::end).collect())
    }
}

fn start_database(folder: &Path) -> anyhow::Result<TestProcess> {
    let file = folder.join("conf.db");
    run(Command::new("ovsdb-tool").arg("create").arg(&file).arg(SCHEMA));
    let mut command = daemon("ovsdb-server", folder, "database");
    command.arg(&file).arg(format!("--remote=punix:{}", folder.join("db.sock").display()));
    started(command, &folder.join("db.sock"))
}

fn start_switch(folder: &Path) -> anyhow::Result<TestProcess> {
    let mut command = daemon("ovs-vswitchd", folder, "switch");
    command.arg(format!("unix:{}", folder.join("db.sock").display()));
    // Only the datapath in user space, on ports without devices.
    command.args(["--enable-dummy=override", "--disable-system"]);
    started(command, &folder.join("switch.ctl"))
}

/// Returns the command for a daemon in the foreground that uses only `folder`. The daemon ends with the thread that
/// starts it, even if that is killed.
fn daemon(program: &str, folder: &Path, name: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", program]);
    for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
        command.env(variable, folder);
    }
    command.arg(format!("--unixctl={}", folder.join(format!("{name}.ctl")).display()));
    command.arg(format!("--log-file={}", folder.join(format!("{name}.log")).display()));
    command.args(["--no-chdir", "-vconsole:off", "-vsyslog:off"]).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn started(mut command: Command, socket: &Path) -> anyhow::Result<TestProcess> {
    let mut running = TestProcess::start(&mut command);
    let is_up = wait_until(START, || socket.exists() || running.exited().is_some());
    ensure!(is_up && running.exited().is_none(), "{command:?} did not start");
    Ok(running)
}

fn configure<'a>(folder: &Path, bridges: impl Iterator<Item = &'a str>) {
    let mut command = Command::new("ovs-vsctl");
    command.arg(format!("--db=unix:{}", folder.join("db.sock").display())).arg("--no-syslog");
    // Without room for cached flows, every frame passes the OpenFlow tables and is counted there at once. Open
    // vSwitch parses as many tags as it supports, instead of one.
    command.args(["set", "Open_vSwitch", ".", "other_config:flow-limit=0", "other_config:vlan-limit=2"]);
    for bridge in bridges {
        command.args(["--", "add-br", bridge, "--", "set", "Bridge", bridge]);
        command.args([
            "datapath_type=dummy",
            "fail_mode=secure",
            "protocols=OpenFlow10,OpenFlow13,OpenFlow14,OpenFlow15",
        ]);
        for port in 1..=PORTS {
            let name = format!("{bridge}-{port}");
            let capture = format!("options:tx_pcap={}", super::bridge::capture(folder, bridge, port).display());
            command.args(["--", "add-port", bridge, &name, "--", "set", "Interface", &name, "type=dummy"]);
            command.args([&format!("ofport_request={port}"), &capture]);
        }
        let capture = super::bridge::capture(folder, bridge, super::bridge::LOCAL);
        let capture = format!("options:tx_pcap={}", capture.display());
        command.args(["--", "set", "Interface", bridge, &capture]);
    }
    run(&mut command);
}

/// Opens a bridge's management socket.
pub(super) fn connect(folder: &Path, bridge: &str) -> anyhow::Result<std::os::unix::net::UnixStream> {
    let path = folder.join(format!("{bridge}.mgmt"));
    wait_until(START, || path.exists());
    let stream = std::os::unix::net::UnixStream::connect(&path).with_context(|| format!("{}", path.display()))?;
    stream.set_read_timeout(Some(START))?;
    Ok(stream)
}
