//! Checks that weir and Open vSwitch answer drawn messages and frames equally, or differ in ways that a clause
//! explains.
use weir_differential::print;
use weir_differential::run::OvsComparison;

/// Programs of Open vSwitch that an instance needs.
const PROGRAMS: [&str; 5] = ["setpriv", "ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl"];

/// Number of cases compared, of every version, with and without pauses.
const CASES: u64 = 2048;

#[test]
fn drawn_cases_differ_in_explained_ways_only() {
    if !weir_testing::programs(&PROGRAMS) {
        return;
    }
    let mut comparison = OvsComparison::start(3, false).expect("Open vSwitch starts");
    let report = comparison.run(0..CASES).expect("Open vSwitch answers");
    let unknown = report.unknown.iter().map(|unknown| {
        format!(
            "--case {}\n{}{}",
            unknown.case.seed,
            print::case(&unknown.case),
            print::difference(&unknown.difference)
        )
    });
    let unknown: String = unknown.collect();
    assert!(unknown.is_empty(), "of no known kind; repeat with cargo run -p weir-differential -- {unknown}");
    assert_eq!(report.cases, CASES);
    // Drawn messages must not all be refused: most cases agree to their ends, and known differences occur.
    assert!(report.same > CASES / 3, "only {} cases are the same", report.same);
    assert!(report.kinds.len() > 10, "only {:?}", report.kinds);
}

#[test]
fn every_kind_is_explained_on_its_page() {
    let page =
        std::fs::read_to_string(weir_testing::workspace().join("docs/differences.md")).expect("the page is there");
    assert!(
        page.contains(&print::kinds()),
        "docs/differences.md needs the table of cargo run -p weir-differential -- --kinds"
    );
}
