//! Lists the commands of the README and the guide that no test of pages runs, with the reasons.
use std::collections::BTreeSet;

/// Commands that measure.
const LONG: &str = "measures for long; tests/system/bench.rs and compare.rs run short ones";
/// Commands for machines of another kind.
const MACHINE: &str = "installs something, or needs services, containers or real interfaces";
/// Commands with names of the reader's.
const OWN: &str = "needs a file or a device of the reader's";
/// Commands of other projects.
const FAUCET: &str = "tests/system/controllers.rs runs Faucet";
/// Commands of other projects.
const MININET: &str = "tests/system/mininet.rs runs Mininet";
/// Commands that ask by HTTP.
const API: &str = "crates/api/tests does it, and tests/system/net.rs";
/// Commands to a network under control.
const NETWORK: &str = "tests/system/net.rs does it";
/// Commands of a page that needs a switch in the background.
const METRICS: &str = "tests/system/metrics.rs does it";
/// Commands of a measurement.
const SET_UP: &str = "prepares the long measurement behind it";
/// Commands with keys.
const TLS: &str = "tests/system/tls.rs does it, with keys of its own";
/// Commands that wait for messages.
const CHANCE: &str = "shows what happens by chance; crates/switch/tests/live has its tests";

/// Page, text in the command, and the reason why it is not run.
const NOT_RUN: [(&str, &str, &str); 64] = [
    ("README.md", "weir quickstart", "tests/system/quickstart.rs runs it"),
    ("README.md", "./weir test", "runs all tests, these too"),
    ("README.md", "weir compare", LONG),
    ("docs/guide/api.md", "weir controller", API),
    ("docs/guide/api.md", "curl", API),
    ("docs/guide/api.md", "ask -", API),
    ("docs/guide/bench.md", "weir bench", LONG),
    ("docs/guide/bench.md", "apt install", MACHINE),
    ("docs/guide/bench.md", "bench/ovs_dpdk.py", LONG),
    ("docs/guide/bench-controller.md", "osken-venv", MACHINE),
    ("docs/guide/bench-controller.md", "weir controller &", SET_UP),
    ("docs/guide/bench-controller.md", "weir bench controller", LONG),
    ("docs/guide/bench-controller.md", "weir     ", "is a line of a table"),
    ("docs/guide/bench-rfc8456.md", "weir bench rfc8456", LONG),
    ("docs/guide/compare.md", "weir compare", LONG),
    ("docs/guide/controller.md", "kill -USR1 PID", "tests/system/failover.rs does it"),
    ("docs/guide/controller.md", "--discover-links", "crates/controller/tests/learning/discovery.rs has rings"),
    ("docs/guide/controller.md", "ssl:", TLS),
    ("docs/guide/emulate.md", "weir emulate examples/lab.toml", "is a prompt; tests/system/emulate.rs types"),
    ("docs/guide/emulate.md", "s2.mgmt", "needs the lab of the prompt above"),
    ("docs/guide/emulate.md", "weir cleanup", "needs a lab that was killed; tests/system/emulate_limits.rs has one"),
    ("docs/guide/faucet.md", "faucet", FAUCET),
    ("docs/guide/faucet.md", "weir switch", FAUCET),
    ("docs/guide/faucet.md", "ping", FAUCET),
    ("docs/guide/faucet.md", "weir emulate FILE", FAUCET),
    ("docs/guide/from-mininet.md", "mn --custom", MININET),
    ("docs/guide/from-mininet.md", "weir emulate", "is a prompt; tests/system/emulate.rs types"),
    ("docs/guide/install.md", "packaging/package", "tests/system/packages.rs makes packages"),
    ("docs/guide/install.md", "apt ", MACHINE),
    ("docs/guide/install.md", "systemctl", MACHINE),
    ("docs/guide/install.md", "--switch switch", "needs the service; tests/system/saving.rs does it"),
    ("docs/guide/install.md", "tar xzf", MACHINE),
    ("docs/guide/install.md", "mkdir -p /run/weir", MACHINE),
    ("docs/guide/install.md", "podman", "needs podman; tests/system/packages.rs runs the image with buildah"),
    ("docs/guide/metrics.md", "weir switch", METRICS),
    ("docs/guide/metrics.md", "curl", METRICS),
    ("docs/guide/intents.md", "weir net intent", NETWORK),
    ("docs/guide/mininet.md", "cargo build", MININET),
    ("docs/guide/mininet.md", "mn --custom", MININET),
    ("docs/guide/mininet.md", "weir controller", MININET),
    ("docs/guide/net.md", "weir net intent add", NETWORK),
    ("docs/guide/net.md", "weir net --api https:", TLS),
    ("docs/guide/network.md", "weir controller", NETWORK),
    ("docs/guide/network.md", "weir emulate", "is a prompt; tests/system/emulate.rs types"),
    ("docs/guide/network.md", "weir net", NETWORK),
    ("docs/guide/perf.md", "weir ctl perf", "needs a busy switch; crates/switch/tests/live asks one"),
    ("docs/guide/profile.md", "weir profile validate mine.toml", OWN),
    ("docs/guide/profile.md", "weir profile tcp:", LONG),
    ("docs/guide/profile.md", "weir experiment model-validation-data", LONG),
    ("docs/guide/profile.md", "weir profile --data", LONG),
    ("docs/guide/profile.md", "ip netns add lab", SET_UP),
    ("docs/guide/profile.md", "ip link", SET_UP),
    ("docs/guide/profile.md", "/tmp/lab", SET_UP),
    ("docs/guide/profile.md", "ovs/profile.toml", OWN),
    ("docs/guide/switch.md", "weir switch --port 1=af_packet:veth1", "needs a user without privileges, or keys"),
    ("docs/guide/switch.md", "ovs-pki", TLS),
    ("docs/guide/switch.md", "ssl:127.0.0.1:6654", TLS),
    ("docs/guide/switch.md", "weir ctl monitor", CHANCE),
    ("docs/guide/switch.md", "weir ctl snoop", CHANCE),
    ("docs/guide/threads.md", "af_xdp", MACHINE),
    ("docs/guide/topology.md", "graphml", OWN),
    ("docs/guide/traffic.md", "af_packet:eth1", OWN),
    ("docs/guide/traffic.md", "per-visit", OWN),
    ("docs/guide/tutorial.md", "weir compare", LONG),
];

/// Returns the number of the entry that says why a command is not run.
pub(super) fn reason(page: &str, command: &str) -> Option<usize> {
    NOT_RUN.iter().position(|(of, text, _)| *of == page && command.contains(text))
}

/// Returns the entries that are not among the used ones.
pub(super) fn unused(used: &BTreeSet<usize>) -> Vec<String> {
    let unused = NOT_RUN.iter().enumerate().filter(|(at, _)| !used.contains(at));
    unused.map(|(_, (page, text, why))| format!("{page}: {text}: {why}")).collect()
}
