//! Tests labs with hosts in namespaces, and that nothing of them is left behind.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use weir_emulator::{CancelHandle, LabOptions, run};
use weir_network::result::LabHostKind;
use weir_network::{LabProgress, LabResult};
use weir_scenario::{Scenario, TrafficKind};

/// Process id above the kernel's limit.
const NOBODY: u32 = 4_194_999;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn can_run() -> bool {
    weir_testing::root() && weir_testing::programs(&["ip", "ping", "iperf3"])
}

fn quickstart() -> Scenario {
    let mut scenario = Scenario::read(&weir_testing::workspace().join("examples/quickstart.toml")).unwrap();
    for item in &mut scenario.traffic {
        if let TrafficKind::Tcp { duration } | TrafficKind::Udp { duration, .. } = &mut item.kind {
            *duration = Duration::from_secs(1);
        }
    }
    scenario
}

fn lab(options: LabOptions, progress: &mut dyn FnMut(LabProgress)) -> LabResult {
    run(&quickstart(), &LabOptions { netns: true, ..options }, progress).unwrap()
}

/// Returns the namespaces and interfaces of a process.
fn leftovers(pid: u32) -> Vec<String> {
    let ours = |name: &String| name.starts_with(&format!("weir-{pid}-")) || name.starts_with(&format!("weir{pid}p"));
    let entries = |folder| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries("/run/netns").chain(entries("/sys/class/net"));
    names.filter_map(|entry| entry.file_name().into_string().ok()).filter(ours).collect()
}

#[test]
fn real_programs_see_the_same_network() {
    if !can_run() {
        return;
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // Leftovers of a killed run, with a process inside.
    let left = format!("weir-{NOBODY}-red-a");
    weir_testing::run(Command::new("ip").args(["netns", "add", &left]));
    let pair = format!("link add weir{NOBODY}p0 type veth peer name eth0 netns {left}");
    weir_testing::run(Command::new("ip").args(pair.split_whitespace()));
    let mut inside = Command::new("ip").args(["netns", "exec", &left, "sleep", "1000"]).spawn().unwrap();

    let result = lab(LabOptions::default(), &mut |_| {});
    assert!(result.passed, "{result:#?}");
    assert_eq!(result.setup.mode, LabHostKind::Netns);
    for item in result.traffic.iter().filter(|item| item.kind == "ping" && item.reached) {
        let rtt = item.rtt.unwrap();
        assert_eq!((item.sent, item.received, rtt.samples), (Some(10), 10, 10), "{item:?}");
        assert!(rtt.min_us >= 4000.0, "the link delays each way by 2 ms: {rtt:?}");
    }
    let tcp = result.traffic.iter().find(|item| item.kind == "tcp").unwrap();
    assert!(tcp.goodput_bps.unwrap() > 1e6 && tcp.goodput_bps.unwrap() < 1e9, "{tcp:?}");
    assert_eq!(leftovers(std::process::id()), Vec::<String>::new());
    assert_eq!(leftovers(NOBODY), Vec::<String>::new());
    let ended = weir_testing::wait_until(Duration::from_secs(5), || inside.try_wait().unwrap().is_some());
    assert!(ended, "the process in the namespace that was left behind");
}

#[test]
fn a_stopped_run_cleans_up() {
    if !can_run() {
        return;
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let cancel = CancelHandle::new();
    let result = lab(LabOptions { cancel: cancel.clone(), ..LabOptions::default() }, &mut |progress| {
        if matches!(progress, LabProgress::Traffic { elapsed, .. } if elapsed > Duration::from_millis(300)) {
            cancel.cancel();
        }
    });
    assert!(result.partial && !result.passed, "{result:#?}");
    assert!(result.traffic[0].received > 0 && result.traffic[0].partial, "{result:#?}");
    assert_eq!(leftovers(std::process::id()), Vec::<String>::new());
}

#[test]
fn a_panic_cleans_up() {
    if !can_run() {
        return;
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut made = Vec::new();
    let caught = catch_unwind(AssertUnwindSafe(|| {
        lab(LabOptions::default(), &mut |progress| {
            if matches!(progress, LabProgress::Traffic { .. }) {
                made = leftovers(std::process::id());
                panic!("on purpose");
            }
        })
    }));
    assert!(caught.is_err());
    assert_eq!(made.len(), 8, "four namespaces and four interfaces: {made:?}");
    assert_eq!(leftovers(std::process::id()), Vec::<String>::new());
}
