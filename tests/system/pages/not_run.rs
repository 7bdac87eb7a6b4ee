//! Lists the commands of the README and the guide that no test of pages runs, with the reasons.
use std::collections::BTreeSet;

/// Takes minutes, or measures the machine.
const LONG: &str = "it measures for long; tests/system/bench.rs and compare.rs run short ones";

/// Page, text in the command, and the reason why it is not run.
const NOT_RUN: [(&str, &str, &str); 1] = [("README.md", "quickstart", "tests/system/quickstart.rs runs it")];

/// Returns the number of the entry that says why a command is not run.
pub(super) fn reason(page: &str, command: &str) -> Option<usize> {
    NOT_RUN.iter().position(|(of, text, _)| *of == page && command.contains(text))
}

/// Returns the entries that are not among the used ones.
pub(super) fn unused(used: &BTreeSet<usize>) -> Vec<String> {
    let unused = NOT_RUN.iter().enumerate().filter(|(at, _)| !used.contains(at));
    unused.map(|(_, (page, text, why))| format!("{page}: {text}: {why}")).collect()
}
