//! Open vSwitch in user space as a neighbour of weir's switches, in a namespace and with files of its own.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use weir_testing::{Namespace, TestProcess, run, wait_until};

/// Time for a daemon to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running switch daemon with its database; stopped when dropped.
pub(crate) struct OpenVswitch {
    socket: PathBuf,
    // Field order is drop order: the switch stops before its database.
    _switch: TestProcess,
    _database: TestProcess,
}

impl OpenVswitch {
    /// Programs that must be installed.
    pub(crate) const PROGRAMS: [&str; 4] = ["ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl"];

    /// Starts the daemons in a namespace, with all their files in `folder`.
    pub(crate) fn start(namespace: &Namespace, folder: &Path) -> OpenVswitch {
        let path = |name: &str| folder.join(name).display().to_string();
        let (file, socket) = (path("conf.db"), folder.join("db.sock"));
        run(Command::new("ovsdb-tool").args(["create", &file, "/usr/share/openvswitch/vswitch.ovsschema"]));
        let quiet = |mut command: Command| TestProcess::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        let mut database = namespace.command("ovsdb-server");
        let remote = format!("--remote=punix:{}", socket.display());
        database.args([&file, &remote, &format!("--unixctl={}", path("db.ctl"))]);
        let database = quiet(database);
        assert!(wait_until(PATIENCE, || socket.exists()), "ovsdb-server does not listen");
        vsctl(&socket, &["--no-wait", "init"]);
        let mut switch = namespace.command("ovs-vswitchd");
        switch.args([&format!("unix:{}", socket.display()), &format!("--unixctl={}", path("vs.ctl"))]);
        switch.args(["--disable-system", &format!("--log-file={}", path("vs.log"))]);
        switch.env("OVS_RUNDIR", folder).env("OVS_LOGDIR", folder);
        OpenVswitch { _switch: quiet(switch), _database: database, socket }
    }

    /// Adds a bridge of the datapath in user space, with settings and ports.
    pub(crate) fn add_bridge(&self, name: &str, settings: &[&str], ports: &[&str]) {
        let bridge = ["add-br", name, "--", "set", "bridge", name, "datapath_type=netdev"];
        self.vsctl(&[&bridge[..], settings].concat());
        ports.iter().for_each(|port| _ = self.vsctl(&["add-port", name, port]));
    }

    /// Runs `ovs-vsctl`. Returns its output.
    pub(crate) fn vsctl(&self, arguments: &[&str]) -> String {
        vsctl(&self.socket, arguments)
    }
}

fn vsctl(socket: &Path, arguments: &[&str]) -> String {
    run(Command::new("ovs-vsctl").arg(format!("--db=unix:{}", socket.display())).args(arguments))
}
