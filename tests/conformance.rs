//! Switch-test patterns of Ryu and os-ken against the switch, by the runner of the reference data: the full sets inside the os-ken
//! package, of which the reference data holds a part.
//!
//! Patterns that measure throughput (groups, meters) take seconds each, which are mostly waiting: they run side by side, each set with
//! testers and switches of its own, in namespaces. The fastest send 20,000 packets a second, and fail when they are held up; what
//! measures goes before everything else on the machine. These tests are a program of their own, beside which cargo runs no other.
use std::process::Command;
use std::thread;

/// How many seconds a packet may take, as with os-ken's own tester, and a reply.
const PATIENCE: &str = "--timeout 3 --msg-timeout 10";

/// A module that Python runs before the tester, for random packets that are the same each time: by chance, one of select groups' buckets
/// would get more or less than the patterns' 10 % of what it should in one of some hundred runs of all patterns.
const SAME_PACKETS: &str = "import random\nrandom.seed(1)\n";

/// Has a program go before those of a lower priority, and those of none, which share the processors by turns.
const FIRST: [&str; 2] = ["chrt", "--rr"];

/// Which patterns of a set, and how.
struct Run {
    /// OpenFlow's version: `10`, `13`, `14`.
    version: &'static str,
    /// A folder of the reference data, or of the os-ken package (`os-ken:NAME`).
    set: &'static str,
    /// None leaves throughput patterns out.
    measured: Option<Measured>,
}

/// Throughput patterns.
#[derive(Clone, Copy)]
struct Measured {
    /// A regular expression that their names match; without spaces.
    only: &'static str,
    /// For how long each is measured.
    seconds: u32,
    /// How many testers share them, side by side.
    shares: usize,
    /// With which priority; none if they may be held up for a while.
    priority: Option<u8>,
}

impl Run {
    const fn quick(version: &'static str, set: &'static str) -> Run {
        Run { version, set, measured: None }
    }

    const fn measured(set: &'static str, measured: Measured) -> Run {
        Run { version: "13", set, measured: Some(measured) }
    }

    /// Runs the patterns; counts them, all of which pass. None if this cannot be done here.
    fn all_pass(&self) -> Option<usize> {
        let script = weir_testing::shared("conformance/tools/ryu-switch-test.sh")?;
        if !weir_testing::root() || !weir_testing::programs(&["ip", "python3", "ethtool", "chrt"]) {
            return None;
        }
        let set = match self.set.strip_prefix("os-ken:") {
            Some(_) => self.set.to_owned(),
            None => weir_testing::shared(&format!("conformance/ryu-switch-tests/{}", self.set))?.display().to_string(),
        };
        let Some(Measured { only, seconds, shares, priority }) = self.measured else {
            return Some(self.passed(Command::new("bash").arg(&script).arg("-m"), PATIENCE, &set));
        };
        let share = |number| {
            let options = format!("{PATIENCE} --duration {seconds} --only {only} --shard {number}/{shares}");
            self.passed(with_priority(priority, "bash").arg(&script), &options, &set)
        };
        Some(side_by_side(0..shares, share).into_iter().sum())
    }

    /// How many patterns the tester lets pass, which are all of them.
    fn passed(&self, tester: &mut Command, options: &str, set: &str) -> usize {
        let modules = tempfile::tempdir().expect("a folder");
        std::fs::write(modules.path().join("sitecustomize.py"), SAME_PACKETS).expect("the folder is writable");
        // A tester that makes random packets answers no echo meanwhile.
        let switch = weir_testing::pattern_switch(env!("CARGO_BIN_EXE_weir")) + " --echo-interval 60s";
        tester.env("PYTHONPATH", modules.path()).args(["-v", self.version, "-a", options, &switch, set]);
        let output = tester.output().expect("the tester starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let last = text.lines().rfind(|line| line.starts_with("passed ")).unwrap_or_default();
        assert!(output.status.success() && last.ends_with("failed 0 error 0"), "{text}");
        last.split(' ').nth(1).and_then(|count| count.parse().ok()).expect("a count")
    }
}

/// A program with a priority, where that is permitted.
fn with_priority(priority: Option<u8>, program: &str) -> Command {
    let [chrt, how] = FIRST;
    let Some(priority) = priority.map(|priority| priority.to_string()) else { return Command::new(program) };
    let tried = Command::new(chrt).args([how, &priority, "true"]).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        return Command::new(program);
    }
    let mut command = Command::new(chrt);
    command.args([how, &priority, program]);
    command
}

/// What becomes of each thing, each on a thread of its own.
fn side_by_side<T: Send, R: Send>(things: impl IntoIterator<Item = T>, act: impl Fn(T) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let act = &act;
        let running: Vec<_> = things.into_iter().map(|thing| scope.spawn(move || act(thing))).collect();
        running.into_iter().map(|thread| thread.join().expect("every pattern passes")).collect()
    })
}

/// The patterns of several sets together; none if they cannot run here.
fn count(runs: &[Run]) -> Option<usize> {
    side_by_side(runs, Run::all_pass).into_iter().sum()
}

#[test]
fn every_pattern_of_the_reference_data_passes() {
    count(&[Run::quick("10", "of10"), Run::quick("13", "of13"), Run::quick("14", "of14")]);
}

#[test]
fn every_1_0_pattern_of_os_ken_passes() {
    if let Some(count) = count(&[Run::quick("10", "os-ken:of10")]) {
        assert_eq!(count, 192);
    }
}

/// Groups and meters are measured in 1.3.
#[test]
fn every_1_4_pattern_of_os_ken_without_throughput_passes() {
    if let Some(count) = count(&[Run::quick("14", "os-ken:of14")]) {
        assert_eq!(count, 952);
    }
}

/// Groups get 175 packets a second; it takes some thousand for each bucket's part to be within the patterns' 10 %. A meter's rate is exact
/// much sooner, but not if its tester waits for one that makes the packets for a group, which takes seconds.
#[test]
fn every_1_3_pattern_of_os_ken_passes() {
    const GROUPS: Measured = Measured { only: ".", seconds: 15, shares: 5, priority: None };
    const SLOW: Measured =
        Measured { only: "2Mbps|20Mbps|200pktps|2000pktps", seconds: 5, shares: 4, priority: Some(1) };
    const FAST: Measured = Measured { only: "200Mbps|20000pktps", seconds: 5, shares: 2, priority: Some(2) };
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
