//! Switch-test patterns of Ryu and os-ken against the switch, by the runner of the reference data: the full sets inside the os-ken
//! package, of which the reference data holds a part.
//!
//! Patterns that measure throughput (groups, meters) measure for some seconds each and take part in the machine's time, so that
//! these tests are a program of their own: cargo runs no other beside it, and it runs one set at a time.
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Runs that share a set with throughput patterns: much of their time is waiting, but the fastest send 20,000 packets a second.
const SHARES: usize = 2;

/// Which patterns of a set, and how.
struct Run {
    /// OpenFlow's version: `10`, `13`, `14`.
    version: &'static str,
    /// A folder of the reference data, or of the os-ken package (`os-ken:NAME`).
    set: &'static str,
    /// Seconds that throughput is measured for; none leaves those patterns out.
    seconds: Option<u32>,
    shares: usize,
}

/// One set at a time.
static ALONE: Mutex<()> = Mutex::new(());

impl Run {
    const fn quick(version: &'static str, set: &'static str) -> Run {
        Run { version, set, seconds: None, shares: 1 }
    }

    const fn measured(version: &'static str, set: &'static str, seconds: u32) -> Run {
        Run { version, set, seconds: Some(seconds), shares: SHARES }
    }

    /// Runs the patterns; counts them, all of which pass. None if this cannot be done here.
    fn all_pass(&self) -> Option<usize> {
        let script = weir_testing::shared("conformance/tools/ryu-switch-test.sh")?;
        if !weir_testing::root() || !weir_testing::programs(&["ip", "python3", "ethtool"]) {
            return None;
        }
        let set = match self.set.strip_prefix("os-ken:") {
            Some(_) => self.set.to_owned(),
            None => weir_testing::shared(&format!("conformance/ryu-switch-tests/{}", self.set))?.display().to_string(),
        };
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        thread::scope(|scope| {
            let share = |number| {
                scope.spawn({
                    let (script, set) = (&script, &set);
                    move || self.share(number, script, set)
                })
            };
            let shares: Vec<_> = (0..self.shares).map(share).collect();
            Some(shares.into_iter().map(|share| share.join().expect("every pattern passes")).sum())
        })
    }

    fn share(&self, number: usize, script: &std::path::Path, set: &str) -> usize {
        let mut options = format!("--shard {number}/{}", self.shares);
        let mut run = Command::new("bash");
        run.arg(script).args(["-v", self.version]);
        match self.seconds {
            Some(seconds) => options += &format!(" --duration {seconds}"),
            None => drop(run.arg("-m")),
        }
        let switch = weir_testing::pattern_switch(env!("CARGO_BIN_EXE_weir"));
        let output = run.args(["-a", &options, &switch, set]).output().expect("bash starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        let last = text.lines().rfind(|line| line.starts_with("passed ")).unwrap_or_default();
        assert!(output.status.success() && last.ends_with("failed 0 error 0"), "{text}");
        last.split(' ').nth(1).and_then(|count| count.parse().ok()).expect("a count")
    }
}

/// The patterns of several sets together; none if they cannot run here.
fn count(runs: &[Run]) -> Option<usize> {
    runs.iter().map(Run::all_pass).sum()
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

/// A select group's two buckets get halves of some thousand packets, which are within the patterns' 10 % but for one run in a million;
/// a meter's rate is exact much sooner.
#[test]
fn every_1_3_pattern_of_os_ken_passes() {
    let runs = [
        Run::quick("13", "os-ken:of13/action"),
        Run::quick("13", "os-ken:of13/match"),
        Run::quick("13", "os-ken:of13/set_field"),
        Run::measured("13", "os-ken:of13/group", 15),
        Run::measured("13", "os-ken:of13/meter", 5),
    ];
    if let Some(count) = count(&runs) {
        assert_eq!(count, 991);
    }
}
