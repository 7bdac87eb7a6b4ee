//! Counts the process's threads and descriptors, in a test program of its own, to show that nothing of a lab is left
//! behind.
use weir_emulator::{LabOptions, run};
use weir_scenario::Scenario;

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn nothing_of_a_lab_stays_behind() {
    let text = r#"
        [[switch]]
        name = "s"
        [[host]]
        name = "a"
        switch = "s"
        ip = "10.0.0.1/24"
        [[host]]
        name = "b"
        switch = "s"
        ip = "10.0.0.2/24"
        [[traffic]]
        kind = "ping"
        from = "a"
        to = "b"
        count = 2
        interval = "10ms"
    "#;
    let scenario = Scenario::parse(text, "test").unwrap();
    let run_once = || {
        assert!(run(&scenario, &LabOptions::default(), &mut |_| {}).unwrap().passed);
        (count("/proc/self/task"), count("/proc/self/fd"))
    };
    let threads = count("/proc/self/task");
    // The first run also makes what the process keeps: the runtime's descriptors for signals.
    let first = run_once();
    assert_eq!(first.0, threads);
    for _ in 0..3 {
        assert_eq!(run_once(), first);
    }
}
