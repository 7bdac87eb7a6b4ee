//! Runs the switch-test patterns of Ryu and os-ken against the switch, with the runner of the reference data: the
//! full sets of the os-ken package, of which the reference data holds a part.
//!
//! Patterns that measure throughput (groups, meters) take seconds each, mostly waiting. They run in parallel, each
//! set with its own testers and switches, in namespaces. The fastest patterns send 20,000 packets per second, and
//! fail when the machine stops them. Measuring runs at a real-time priority, and a failed measurement is repeated
//! alone.
use std::path::Path;
use std::process::Command;
use std::sync::RwLock;
use std::thread;

/// Longest times in seconds to wait for a packet, a reply, a counter and a switch. Patterns expect what arrives, so
/// only failing patterns wait this long, and a busy machine may be slow.
const PATIENCE: &str = "--timeout 60 --msg-timeout 60 --miss-timeout 60 --start-timeout 60";

/// Number of measurements of a throughput until it counts as wrong. A machine stops the tester or the switch by
/// chance; a switch that divides or limits packets wrongly does so each time.
const TRIES: u32 = 5;

/// The tester's reasons for a failed throughput pattern that a busy machine can cause.
const HELD_UP: [&str; 2] = [" | throughput: ", " | the harness sent only "];

/// Lock of the machine: first runs hold it shared, repeated measurements alone.
static MACHINE: RwLock<()> = RwLock::new(());

/// A Python module that runs before the tester.
///
/// The module seeds the random packets: otherwise, in about one of some hundred runs of all patterns, a bucket of a
/// select group would by chance miss its share by more than the patterns' 10 %. It also gives the tester, with the
/// switch that the tester starts, a real-time priority where that is permitted. The set-up of the tester's namespace
/// has no such priority: writing IPv6 settings retries while another process has the kernel's lock of interfaces, and
/// at such a priority on each processor it would keep that process from ever running.
const BEFORE_THE_TESTER: &str = "\
import os, random
random.seed(1)
if 'TESTER_PRIORITY' in os.environ:
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(int(os.environ['TESTER_PRIORITY'])))
    except PermissionError:
        pass
";

/// Patterns of a set, and how they are run.
struct Run {
    /// OpenFlow version: `10`, `13`, `14`.
    version: &'static str,
    /// A folder of the reference data, or of the os-ken package (`os-ken:NAME`).
    set: &'static str,
    /// Selection of throughput patterns; `None` omits them.
    measured: Option<Measured>,
}

/// Settings for throughput patterns.
#[derive(Clone, Copy)]
struct Measured {
    /// A regular expression, without spaces, that the patterns' names match.
    only: &'static str,
    /// Duration of each measurement in seconds.
    seconds: u32,
    /// Number of testers that divide the patterns among them and run in parallel.
    shares: usize,
    /// Real-time priority of tester and switch: the faster the packets, the higher.
    priority: u8,
}

impl Run {
    const fn quick(version: &'static str, set: &'static str) -> Run {
        Run { version, set, measured: None }
    }

    const fn measured(set: &'static str, measured: Measured) -> Run {
        Run { version: "13", set, measured: Some(measured) }
    }

    /// Runs the patterns, all of which must pass. Returns their number, or `None` if they cannot run here.
    fn all_pass(&self) -> Option<usize> {
        let script = weir_testing::shared("conformance/tools/ryu-switch-test.sh")?;
        if !weir_testing::root() || !weir_testing::programs(&["ip", "python3", "ethtool"]) {
            return None;
        }
        let set = match self.set.strip_prefix("os-ken:") {
            Some(_) => self.set.to_owned(),
            None => weir_testing::shared(&format!("conformance/ryu-switch-tests/{}", self.set))?.display().to_string(),
        };
        let Some(Measured { only, seconds, shares, priority }) = self.measured else {
            let verdicts = shared(|| self.judge(Command::new("bash").arg(&script).arg("-m"), PATIENCE, &set));
            assert!(verdicts.failed.is_empty(), "{}", verdicts.failed.join("\n"));
            return Some(verdicts.passed);
        };
        let measure = |choice: &str| {
            let options = format!("{PATIENCE} --duration {seconds} {choice}");
            let mut tester = Command::new("bash");
            self.judge(tester.env("TESTER_PRIORITY", priority.to_string()).arg(&script), &options, &set)
        };
        let share = |number| {
            let verdicts = shared(|| measure(&format!("--only {only} --shard {number}/{shares}")));
            verdicts.passed + again(&verdicts.failed, measure)
        };
        Some(side_by_side(0..shares, share).into_iter().sum())
    }

    /// Runs the tester.
    fn judge(&self, tester: &mut Command, options: &str, set: &str) -> Verdicts {
        let modules = tempfile::tempdir().expect("a folder");
        std::fs::write(modules.path().join("sitecustomize.py"), BEFORE_THE_TESTER).expect("the folder is writable");
        // A tester answers no echo while it generates random packets.
        let switch = weir_testing::pattern_switch(env!("CARGO_BIN_EXE_weir")) + " --echo-interval 60s";
        tester.env("PYTHONPATH", modules.path()).args(["-v", self.version, "-a", options, &switch, set]);
        let output = tester.output().expect("the tester starts");
        Verdicts::read(&(String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr)))
    }
}

/// Verdicts of the tester on patterns.
struct Verdicts {
    passed: usize,
    /// Lines of patterns that did not pass: `failed FILE | PATTERN | REASON`.
    failed: Vec<String>,
}

impl Verdicts {
    fn read(text: &str) -> Verdicts {
        let is_verdict =
            |line: &&str| line.contains(" | ") && (line.starts_with("failed ") || line.starts_with("error "));
        let failed: Vec<String> = text.lines().filter(is_verdict).map(str::to_owned).collect();
        // Last line of the output, such as "passed 991 failed 0 error 0".
        let last = text.lines().rfind(|line| line.starts_with("passed ")).unwrap_or_default();
        let counts: Vec<usize> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [passed, wrong, refused] = counts[..] else { panic!("the tester did not end: {text}") };
        assert_eq!(wrong + refused, failed.len(), "{text}");
        Verdicts { passed, failed }
    }
}

/// Runs `act` concurrently with other first measurements.
fn shared<R>(act: impl FnOnce() -> R) -> R {
    let _shared = MACHINE.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    act()
}

/// Repeats the measurement of throughput patterns that a busy machine may have failed, one at a time and alone. All
/// must pass then. Returns their number.
fn again(failed: &[String], measure: impl Fn(&str) -> Verdicts) -> usize {
    for line in failed {
        assert!(HELD_UP.iter().any(|reason| line.contains(reason)), "{line}");
        let choice = format!("--only {}", only(line));
        let passes = |number| {
            let _alone = MACHINE.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            let verdicts = measure(&choice);
            assert_eq!(verdicts.passed + verdicts.failed.len(), 1, "{choice}");
            println!("measured again ({number} of {TRIES}): {line}");
            verdicts.failed.is_empty()
        };
        assert!((2..=TRIES).any(passes), "{line}");
    }
    failed.len()
}

/// Returns a regular expression for the pattern of a verdict, without spaces and characters that a shell would
/// expand.
fn only(line: &str) -> String {
    let pattern = line.split_once(' ').map_or(line, |(_, rest)| rest.trim_start());
    let name = pattern.rsplit_once(" | ").map_or(pattern, |(name, _)| name);
    let plain = |part: &str| part.replace(|letter: char| !letter.is_ascii_alphanumeric(), ".");
    format!("^{}$", name.split(" | ").map(plain).collect::<Vec<_>>().join("."))
}

/// Runs `act` on each thing, each in a separate thread. Returns the results.
fn side_by_side<T: Send, R: Send>(things: impl IntoIterator<Item = T>, act: impl Fn(T) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let act = &act;
        let running: Vec<_> = things.into_iter().map(|thing| scope.spawn(move || act(thing))).collect();
        running.into_iter().map(|thread| thread.join().expect("every pattern passes")).collect()
    })
}

/// Runs several sets in parallel. Returns the number of patterns, or `None` if they cannot run here.
fn count(runs: &[Run]) -> Option<usize> {
    side_by_side(runs, Run::all_pass).into_iter().sum()
}

/// Patterns of the reference data are run once: as those of the package, with which they have to be equal.
#[test]
fn patterns_of_the_reference_data_are_those_of_os_ken() {
    let Some(python) = weir_testing::osken() else { return };
    for set in ["of10", "of13", "of14"] {
        let Some(folder) = weir_testing::shared(&format!("conformance/ryu-switch-tests/{set}")) else { return };
        let script = "import os, os_ken; print(os.path.dirname(os_ken.__file__))";
        let output = Command::new(&python).args(["-c", script]).output().expect("python starts");
        let package = String::from_utf8(output.stdout).expect("a path");
        let same = Path::new(package.trim()).join("tests/switch").join(set);
        let compared = compare(&folder, &same);
        assert!(compared > 10, "{set}: {compared} files");
    }
}

/// Compares the files of a folder with those of the same names in another one. Returns their number.
fn compare(folder: &Path, other: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let count = |entry: std::fs::DirEntry| {
        let (path, same) = (entry.path(), other.join(entry.file_name()));
        if path.is_dir() {
            return compare(&path, &same);
        }
        assert!(std::fs::read(&path).ok() == std::fs::read(&same).ok(), "{} differs", path.display());
        1
    };
    entries.map(count).sum()
}

#[test]
fn every_1_0_pattern_of_os_ken_passes() {
    if let Some(count) = count(&[Run::quick("10", "os-ken:of10")]) {
        assert_eq!(count, 192);
    }
}

/// Groups and meters are measured in 1.3 only.
#[test]
fn every_1_4_pattern_of_os_ken_without_throughput_passes() {
    if let Some(count) = count(&[Run::quick("14", "os-ken:of14")]) {
        assert_eq!(count, 952);
    }
}

/// Groups get 175 packets per second; each bucket needs some thousand to be within the patterns' 10 %. A meter's rate
/// is precise much sooner, unless its tester waits for one that generates the packets for a group, which takes
/// seconds.
#[test]
fn every_1_3_pattern_of_os_ken_passes() {
    const GROUPS: Measured = Measured { only: ".", seconds: 15, shares: 5, priority: 1 };
    const SLOW: Measured = Measured { only: "2Mbps|20Mbps|200pktps|2000pktps", seconds: 5, shares: 4, priority: 2 };
    const FAST: Measured = Measured { only: "200Mbps|20000pktps", seconds: 5, shares: 2, priority: 3 };
    let runs = [
        Run::quick("13", "os-ken:of13/action"),
        Run::quick("13", "os-ken:of13/match"),
        Run::quick("13", "os-ken:of13/set_field"),
        Run::measured("os-ken:of13/group", GROUPS),
        Run::measured("os-ken:of13/meter", SLOW),
        Run::measured("os-ken:of13/meter", FAST),
    ];
    if let Some(count) = count(&runs) {
        assert_eq!(count, 991);
    }
}

#[test]
fn a_verdict_names_its_pattern() {
    let line = "failed group: 00_ALL.json | all (IPv4)/'a*' | throughput: {'in_port': 2} 157pktps, wanted 175";
    assert_eq!(only(line), "^group..00.ALL.json.all..IPv4...a..$");
    let verdicts =
        Verdicts::read(&format!("{line}\ngroup meter passed 1 failed 1 error 0\npassed 1 failed 1 error 0\n"));
    assert_eq!((verdicts.passed, verdicts.failed), (1, vec![line.to_owned()]));
}
