//! Tests the Debian package: built from the command under test, unpacked, and started as its unit says, also under
//! systemd and in a container.
use crate::bed::{B4, Bed, ping, ready, weir};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use weir_testing::{Signal, run, workspace};

/// Builds the package of the command under test. Returns its file.
fn package(folder: &Path) -> PathBuf {
    let packages = folder.join("packages");
    let mut command = Command::new(workspace().join("packaging/package"));
    command.env("WEIR_DEB_COMPRESSION", "none").args(["--binary", weir()]).arg(&packages);
    run(&mut command);
    let version = env!("CARGO_PKG_VERSION");
    let package = fs::read_dir(&packages).expect("a folder").flatten().map(|file| file.path()).find(|file| {
        file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&format!("weir_{version}_")))
    });
    package.expect("a package")
}

/// Builds the package of the command under test and unpacks it. Returns the folder with its files.
fn unpacked(folder: &Path) -> PathBuf {
    let package = package(folder);
    let control = run(Command::new("dpkg-deb").arg("--field").arg(&package));
    assert!(control.contains("Package: weir\n") && control.contains("Depends: libc6 (>= 2."), "{control}");
    let root = folder.join("root");
    run(Command::new("dpkg-deb").arg("--extract").args([&package, &root]));
    run(Command::new("dpkg-deb").arg("--control").args([&package, &folder.join("control")]));
    root
}

/// Returns the words of a unit's setting.
fn setting<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    let line = unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("no {key}")).split(' ').collect()
}

// One test for all: building the package takes seconds.
#[test]
fn the_package_is_whole_and_its_service_starts_saves_and_reloads() {
    let programs = ["dpkg-deb", "strip", "objdump", "setpriv", "sh", "ping", "ip"];
    if !weir_testing::root() || !weir_testing::programs(&programs) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("readable by the switch's user");
    let root = unpacked(folder.path());
    for file in [
        "usr/bin/weir",
        "usr/share/man/man1/weir-switch.1.gz",
        "usr/share/man/man1/weir-ctl-save.1.gz",
        "usr/share/bash-completion/completions/weir",
        "usr/share/zsh/vendor-completions/_weir",
        "usr/share/fish/vendor_completions.d/weir.fish",
        "usr/share/doc/weir/copyright",
        "etc/weir/switch.toml",
        "usr/lib/systemd/system/weir@.service",
    ] {
        assert!(root.join(file).is_file(), "{file} is missing");
    }
    let sections = run(Command::new("objdump").arg("-h").arg(root.join("usr/bin/weir")));
    assert!(!sections.contains(".debug_line"), "the program is not stripped");
    for script in ["postinst", "prerm", "postrm"] {
        run(Command::new("sh").arg("-n").arg(folder.path().join("control").join(script)));
    }
    let template = fs::read_to_string(root.join("usr/lib/systemd/system/weir@.service")).expect("a unit");
    assert_eq!(setting(&template, "ExecReload")[3], "/run/weir/%i.sock");
    the_service_starts(&root, folder.path());
}

/// Runs a script of the packaging, which exits with 77 if it cannot do its work on this machine.
fn tried(script: &str, argument: &Path) {
    let done = Command::new(workspace().join("packaging").join(script)).arg(argument).output().expect("it runs");
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    match done.status.code() {
        Some(0) => {}
        Some(77) => weir_testing::skip(&said),
        _ => panic!("{said}"),
    }
}

#[test]
fn the_service_runs_under_systemd() {
    if weir_testing::root() && weir_testing::programs(&["dpkg-deb", "strip", "objdump", "systemd-nspawn"]) {
        let folder = tempfile::tempdir().expect("a folder");
        tried("try-service", &package(folder.path()));
    }
}

#[test]
fn the_image_is_built_and_its_switch_answers() {
    if weir_testing::root() && weir_testing::programs(&["dpkg-deb", "strip", "objdump", "buildah"]) {
        let folder = tempfile::tempdir().expect("a folder");
        tried("try-image", &unpacked(folder.path()));
    }
}

/// Starts what the unit says, as the unit's kind of user, with the unpacked files in place of the installed ones.
fn the_service_starts(root: &Path, folder: &Path) {
    let unit = fs::read_to_string(root.join("usr/lib/systemd/system/weir.service")).expect("a unit");
    let bed = Bed::new();
    let run_folder = folder.join("run");
    fs::create_dir(&run_folder).expect("a folder");
    let nobody = "65534";
    run(Command::new("chown").arg(nobody).arg(&run_folder));
    let place = |word: &&str| {
        let (root, run) = (root.display(), run_folder.display());
        let placed = word.strip_prefix("/usr/").map(|rest| format!("{root}/usr/{rest}"));
        let placed = placed.or_else(|| word.strip_prefix("/etc/").map(|rest| format!("{root}/etc/{rest}")));
        let placed = placed.or_else(|| word.strip_prefix("/run/weir/").map(|rest| format!("{run}/{rest}")));
        placed.unwrap_or_else(|| (*word).to_owned())
    };
    let (start, reload) = (setting(&unit, "ExecStart"), setting(&unit, "ExecReload"));
    let capabilities = setting(&unit, "AmbientCapabilities").join(",").to_lowercase().replace("cap_", "+");
    let configuration = root.join("etc/weir/switch.toml");
    let default = fs::read_to_string(&configuration).expect("the default configuration");
    let switch = || {
        // The socket of the switch before.
        let _ = fs::remove_file(folder.join("notify"));
        let manager = UnixDatagram::bind(folder.join("notify")).expect("a socket");
        manager.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
        run(Command::new("chmod").arg("666").arg(folder.join("notify")));
        let mut command = bed.switches.command("setpriv");
        command.args(["--reuid", nobody, "--regid", nobody, "--clear-groups", "--inh-caps"]);
        command.arg(format!("-all,{capabilities}")).arg("--ambient-caps").arg(format!("-all,{capabilities}"));
        command.args(["--bounding-set", &format!("-all,{capabilities}"), "--no-new-privs"]);
        command.env("NOTIFY_SOCKET", folder.join("notify")).args(start.iter().map(place));
        let process = ready(command);
        let mut told = [0; 1024];
        let length = manager.recv(&mut told).expect("the service manager is told");
        let told = String::from_utf8_lossy(&told[..length]).into_owned();
        assert!(told.starts_with("READY=1\nSTATUS=switch switch forwards, dpid 0x"), "{told}");
        (process, manager)
    };
    // The default configuration starts.
    let (process, manager) = switch();
    process.signal(Signal::TERM);
    let mut told = [0; 1024];
    let length = manager.recv(&mut told).expect("the service manager is told");
    assert!(told[..length].starts_with(b"STOPPING=1\n"));
    process.stop();

    fs::write(&configuration, format!("{default}port = ['1=af_packet:pa']\n")).expect("written");
    let (process, _) = switch();
    let program = place(&"/usr/bin/weir");
    let socket = place(&"/run/weir/switch.sock");
    let ctl = |arguments: &[&str]| bed.run(&program, &[&["ctl", "--switch", &socket], arguments].concat());
    ctl(&["add-flow", "in_port=1,actions=output:2"]);
    ctl(&["add-flow", "in_port=2,actions=output:1"]);
    ctl(&["save"]);
    let saved = fs::read_to_string(&configuration).expect("read");
    assert!(saved.starts_with("# The switch that"), "the comments stay: {saved}");
    fs::write(
        &configuration,
        saved
            .replace("\"1=af_packet:pa\"", "\"1=af_packet:pa\", \"2=af_packet:pb\"")
            .replace("'1=af_packet:pa'", "'1=af_packet:pa', '2=af_packet:pb'"),
    )
    .expect("written");
    let words: Vec<String> = reload.iter().map(place).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = bed.run(words[0], &words[1..]);
    assert!(said.contains("port 2=af_packet:pb: added"), "{said}");
    assert!(ping(&bed.a, B4, 2));
    process.stop();
    let (process, _) = switch();
    assert!(ping(&bed.a, B4, 2), "after a restart");
    process.stop();
}
