//! Tests `weir profile SWITCH` on weir, on weir with a profile, and on Open vSwitch in user space, and the errors for
//! switches that are absent or silent.
use crate::bed::{ready, weir};
use crate::open_vswitch::OpenVswitch;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_profile::Profile;
use weir_testing::{Namespace, TestProcess, programs, root, run, wait_until};

const PATIENCE: Duration = Duration::from_secs(20);

/// A grid that takes seconds.
const GRID: &str = "priorities = ['same', 'descending']\nentries = [1, 40]\nbatches = [1, 8]\ndeletions = [1, 20]\nruns = 2\n\
    entries_max = 200\nbatch_max = 16\nspacing_ms = 3\nmessages = 6\npackets = 6\nbytes = [64, 1500]\ngaps_us = [200, 2000]\nidle_ms = 250\ntrial_ms = 20\n";

/// Two levels that even a busy machine can distinguish.
const TWO_LEVELS: &str = "name = 'two'\ndevice = 'Two levels'\norigin = 'assumed'\nsource = 'A test'\n\
    policy = [{ attribute = 'priority', evicts = 'lowest' }]\n\
    [[level]]\nname = 'fast'\nsize = 24\nwrite = '2ms'\nforward = { base_l2l3 = '100us' }\n\
    [[level]]\nname = 'slow'\nsize = 60\nwrite = '1ms'\nforward = { base_l2l3 = '4ms' }\n";

/// Returns a namespace with three pairs of interfaces: `d0` to `d2` for the profiler, `p0` to `p2` for the switch.
fn rig() -> Namespace {
    let rig = Namespace::new();
    for at in 0..3 {
        rig.join(&format!("d{at}"), &rig, &format!("p{at}"));
    }
    rig
}

/// Returns a lock with which a switch and its profiler have the processors to themselves, among these tests.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn profile(rig: &Namespace, out: &Path, arguments: &[&str]) -> Output {
    let grid = out.with_extension("grid");
    std::fs::write(&grid, GRID).expect("written");
    let mut command = rig.command(weir());
    command.args(["profile", "tcp:127.0.0.1:6653", "--data", "d0,d1,d2"]);
    command.arg("--grid").arg(&grid).arg("--out").arg(out).args(arguments);
    command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("cannot start weir: {error}"))
}

fn measured(output: &Output, out: &Path) -> Profile {
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {said}", output.status);
    Profile::read(&out.join("profile.toml")).unwrap_or_else(|error| panic!("{error}\n{said}"))
}

/// Returns true if the raw runs of both planes exist.
fn runs_are_kept(out: &Path) -> bool {
    out.join("control.csv").exists() && out.join("delays.csv").exists()
}

fn switch(rig: &Namespace, arguments: &[&str]) -> TestProcess {
    let mut command = rig.command(weir());
    command.args(["switch", "--listen", "ptcp:6653"]).args(arguments);
    for at in 0..3 {
        command.arg("--port").arg(format!("{}=af_packet:p{at}", at + 1));
    }
    ready(command)
}

#[test]
fn weir_is_measured_and_gone_on_with() {
    if !root() {
        return;
    }
    let (_alone, rig, folder) = (alone(), rig(), tempfile::tempdir().expect("a folder"));
    let _switch = switch(&rig, &[]);
    let arguments = ["--json", "--name", "weir"];
    let out = folder.path().join("found");
    let output = profile(&rig, &out, &arguments);
    let (found, said) = (measured(&output, &out), String::from_utf8_lossy(&output.stdout).into_owned());
    assert!(runs_are_kept(&out));
    // The number of levels depends on late packets of the machine; it is judged in virtual time.
    assert!(!found.levels.is_empty() && found.name == "weir", "{said}");
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["summary"]["ports"], serde_json::json!([1, 2, 3]));
    assert!(said["partial"].is_null() && said["summary"]["throughput"][0]["pps"].as_f64().is_some(), "{said}");
    // All runs exist, so none is measured again.
    let rows = std::fs::read_to_string(out.join("control.csv")).expect("rows");
    measured(&profile(&rig, &out, &[]), &out);
    assert_eq!(std::fs::read_to_string(out.join("control.csv")).expect("rows"), rows);
    let shown = Command::new(weir()).args(["profile", "show"]).arg(out.join("profile.toml")).output().expect("it runs");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("level1.write"), "{shown:?}");
    let other = profile(&rig, &out, &["--ports", "2,1,3"]);
    assert!(String::from_utf8_lossy(&other.stderr).contains("wrong way round"), "{other:?}");
}

/// Checks that the result for a switch of 1.0 is as complete as for any other.
fn is_whole(output: &Output, out: &Path) {
    let found = measured(output, out);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("OpenFlow 1.0"), "{said}");
    for message in ["packet_out of 128 bytes", "packet_in of 128 bytes", "echo", "statistics of 10 entries"] {
        assert!(said.lines().any(|line| line.starts_with(message)), "{message}: {said}");
    }
    let delays = || std::fs::read_to_string(out.join("delays.csv")).unwrap_or_default();
    let forward = found.forwarding[0].as_ref().unwrap_or_else(|| panic!("no packets measured: {said}\n{}", delays()));
    assert!(forward.base_s.iter().all(Option::is_some), "{forward:?}");
    assert!(found.timing.is_some_and(|timing| !timing.control.is_unknown()), "{said}");
}

#[test]
fn version_1_0_does_as_well() {
    if !root() {
        return;
    }
    let (_alone, rig, folder) = (alone(), rig(), tempfile::tempdir().expect("a folder"));
    let out = folder.path().join("old");
    let _switch = switch(&rig, &["--versions", "1.0"]);
    is_whole(&profile(&rig, &out, &[]), &out);
    let refused = profile(&rig, &folder.path().join("new"), &["--openflow", "1.3"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("handshake failed") && said.contains("1.0"), "{said}");
}

#[test]
fn open_vswitch_with_1_0_alone_is_measured() {
    if !root() || !programs(&OpenVswitch::PROGRAMS) {
        return;
    }
    let (_alone, rig, folder) = (alone(), rig(), tempfile::tempdir().expect("a folder"));
    let _switch = open_vswitch(&rig, folder.path(), "OpenFlow10");
    let out = folder.path().join("ovs");
    is_whole(&profile(&rig, &out, &[]), &out);
}

/// Creates a bridge of the kernel with the ports `p0` to `p2`, in the rig.
fn bridge(rig: &Namespace) {
    rig.ip("link add br0 type bridge");
    rig.ip("link set br0 up");
    for at in 0..3 {
        rig.ip(&format!("link set p{at} master br0"));
    }
}

#[test]
fn a_bridge_is_measured_without_openflow() {
    if !root() {
        return;
    }
    let (_alone, rig, folder) = (alone(), rig(), tempfile::tempdir().expect("a folder"));
    bridge(&rig);
    let grid = folder.path().join("grid.toml");
    std::fs::write(&grid, GRID).expect("written");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let weir_in_rig = |arguments: &[&str]| {
        let output = rig.command(weir()).args(arguments).stdin(Stdio::null()).output().expect("weir starts");
        let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat();
        (output.status.code(), said)
    };
    let data = ["profile", "--data", "d0,d1", "--grid", &file("grid.toml"), "--out", &file("bridge")];
    let (code, said) = weir_in_rig(&[&data[..], &["--only", "data"]].concat());
    assert_eq!(code, Some(0), "{said}");
    // Sentences are wrapped at another word if their numbers have more digits.
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = ["A device without OpenFlow: its data plane alone", "a veth pair", "control plane: not measured"];
    assert!(expected.iter().all(|expected| words.contains(expected)) && words.contains("throughput"), "{said}");
    let profile = file("bridge/profile.toml");
    let found = Profile::read(Path::new(&profile)).expect("a profile");
    let forward = found.forwarding[0].clone().expect("packets were measured");
    assert!(forward.base_s[0].is_some_and(|s| s < 1e-2) && forward.base_s[1..] == [None, None], "{forward:?}");
    // Commands on the profile report which values are unknown, and it can be used.
    let (code, said) = weir_in_rig(&["profile", "show", &profile]);
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        code == Some(0) && words.contains("not measured") && words.contains("of the rig's own taken off"),
        "{said}"
    );
    assert_eq!(weir_in_rig(&["profile", "validate", &profile]).0, Some(0));
    assert_eq!(weir_in_rig(&["profile", "diff", &profile, &profile]).0, Some(0));
    assert_eq!(weir_in_rig(&["profile", "plot", &profile, "--out", &file("page.html")]).0, Some(0));
    let scenario = "duration = '1s'\n[controller]\nconnect = 'none'\n[[switch]]\nname = 's1'\nfail_mode = 'standalone'\n\
        profile = 'bridge/profile.toml'\n[[host]]\nname = 'a'\nswitch = 's1'\nip = '10.0.0.1/24'\n\
        [[host]]\nname = 'b'\nswitch = 's1'\nip = '10.0.0.2/24'\n\
        [[traffic]]\nkind = 'ping'\nfrom = 'a'\nto = 'b'\ncount = 5\ninterval = '20ms'\n";
    std::fs::write(file("net.toml"), scenario).expect("written");
    for verb in [&["run"][..], &["simulate", "--level", "packets"]] {
        let (code, said) = weir_in_rig(&[verb, &[&file("net.toml")]].concat());
        assert_eq!(code, Some(0), "{verb:?}: {said}");
    }
    // A missing part cannot be measured, and a wrong cable is reported.
    let (code, said) = weir_in_rig(&data);
    assert!(code == Some(2) && said.contains("found no SWITCH"), "{said}");
    let (code, said) = weir_in_rig(&[&data[..], &["--only", "data", "--ports", "1,2"]].concat());
    assert!(code == Some(2) && said.contains("--ports or --openflow without a SWITCH"), "{said}");
    rig.ip("link set p1 nomaster");
    let elsewhere = ["profile", "--data", "d0,d1", "--only", "data", "--patience", "1s", "--out", &file("elsewhere")];
    let (code, said) = weir_in_rig(&elsewhere);
    assert!(code == Some(2) && said.contains("packets at the second interface (--data): found 0 of 20"), "{said}");
}

#[test]
fn what_a_live_switch_hides_is_found() {
    if !root() {
        return;
    }
    let (_alone, rig, folder) = (alone(), rig(), tempfile::tempdir().expect("a folder"));
    let hidden = folder.path().join("two.toml");
    std::fs::write(&hidden, TWO_LEVELS).expect("written");
    // A sleeping virtual machine may need longer to wake up than the differences of packet delays to be measured.
    let _switch = switch(&rig, &["--spin", "1s", "--profile", hidden.to_str().expect("a path of text")]);
    let sizes = |found: &Profile| -> Vec<Option<u64>> {
        found.tables.iter().flat_map(|tables| &tables.levels).map(|level| level.size).collect()
    };
    let out = folder.path().join("found");
    let output = profile(&rig, &out, &["--only", "tables"]);
    let (found, said) = (measured(&output, &out), String::from_utf8_lossy(&output.stdout).into_owned());
    // Rejected entries show the total room exactly, 24 and 60. Late packets of a busy machine may hide which entries
    // are slow; the profile then says that a second look found other sizes. `profile-tables` has a record.
    assert!(said.contains("84 were taken, then it was full"), "{said}");
    let is_doubted = said.contains("a second look at the same entries gave other sizes");
    assert!(is_doubted || sizes(&found).into_iter().flatten().sum::<u64>() == 24 + 60, "{said}");
    let tables = found.tables.expect("tables");
    // On a busy machine the policy may be undetermined, but must not be wrong.
    let wrong = tables
        .policy
        .0
        .iter()
        .any(|rank| format!("{rank:?}") != "EvictionCriterion { attribute: Priority, evicts: Lowest }");
    assert!(!wrong, "{:?}", tables.policy);
}

/// Starts Open vSwitch in user space in a rig, with its files in a separate folder.
fn open_vswitch(rig: &Namespace, folder: &Path, versions: &str) -> OpenVswitch {
    let switch = OpenVswitch::start(rig, folder);
    switch.add_bridge("br0", &["fail_mode=secure", &format!("protocols={versions}")], &["p0", "p1", "p2"]);
    switch.vsctl(&["set-controller", "br0", "ptcp:6653"]);
    let listens = || run(rig.command("ss").args(["-ltn"])).contains(":6653");
    assert!(wait_until(PATIENCE, listens), "ovs-vswitchd does not listen");
    switch
}

#[test]
fn open_vswitch_in_user_space_is_measured() {
    if !root() || !programs(&OpenVswitch::PROGRAMS) {
        return;
    }
    let (_alone, rig, folder) = (alone(), rig(), tempfile::tempdir().expect("a folder"));
    let _switch = open_vswitch(&rig, folder.path(), "OpenFlow10,OpenFlow13");
    let out = folder.path().join("found");
    let output = profile(&rig, &out, &[]);
    let (found, said) = (measured(&output, &out), String::from_utf8_lossy(&output.stdout).into_owned());
    assert!(runs_are_kept(&out));
    assert!(found.device.contains("Open vSwitch"), "{}", found.device);
    // Delays of a busy machine may look like levels; the record of `profile-tables` checks that there is only one.
    assert!(!found.levels.is_empty(), "{said}");
}

#[test]
fn what_cannot_be_measured_is_told() {
    if !root() {
        return;
    }
    let (_alone, rig, folder) = (alone(), rig(), tempfile::tempdir().expect("a folder"));
    let said = |output: Output| (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned());
    let (code, error) = said(profile(&rig, &folder.path().join("nobody"), &[]));
    assert!(code == Some(2) && error.contains("does the switch listen there?"), "{error}");
    rig.ip("link set d1 down");
    let (code, error) = said(profile(&rig, &folder.path().join("down"), &[]));
    assert!(code == Some(2) && error.contains("--data d1: found no link"), "{error}");
    // A server that listens and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let target = format!("tcp:{}", silent.local_addr().expect("an address"));
    let out = folder.path().join("silent");
    let output = Command::new(weir()).args(["profile", &target, "--patience", "200ms", "--out"]).arg(out).output();
    let (code, error) = said(output.expect("it runs"));
    assert!(code == Some(2) && error.contains("within 200ms"), "{error}");
}
