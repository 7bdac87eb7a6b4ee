//! Tests that tables fit terminals: those of commands that need only files, with the names that examples have.
use crate::bed::weir;
use std::process::Command;

/// Maximum width of a table.
const MAX_WIDTH: usize = 100;

/// Returns the lines of tables in a report: those with three or more cells, which have two spaces or more between them.
fn table_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.trim().split("  ").filter(|cell| !cell.trim().is_empty()).count() >= 3)
}

/// Returns the lines of tables that are too wide.
fn wide_lines(arguments: &[&str]) -> Vec<String> {
    let output = Command::new(weir()).args(arguments).current_dir(weir_testing::workspace()).output();
    let text = String::from_utf8_lossy(&output.expect("weir starts").stdout).into_owned();
    assert!(table_lines(&text).count() > 1, "{arguments:?} prints no table: {text}");
    let is_wide = |line: &&str| line.chars().count() > MAX_WIDTH;
    table_lines(&text).filter(is_wide).map(|line| format!("{arguments:?}: {line}")).collect()
}

#[test]
fn tables_fit_a_terminal() {
    let examples = ["at-x510", "office", "quickstart", "two-tenants", "vx-priority", "wan"];
    let files: Vec<String> = examples.iter().map(|name| format!("examples/{name}.toml")).collect();
    let mut wide = Vec::new();
    for file in &files {
        wide.extend(wide_lines(&["predict", file]));
        wide.extend(wide_lines(&["simulate", file, "--duration", "200ms"]));
        let compare = ["compare", file, "--answers", "predict,simulate", "--duration", "200ms", "--replications", "2"];
        wide.extend(wide_lines(&compare));
    }
    for line in [
        &["predict", "examples/at-x510.toml", "--model", "all", "--sweep", "traffic.rate=60,600"][..],
        &["simulate", "examples/at-x510.toml", "--duration", "20s"],
        &["simulate", "examples/vx-priority.toml"],
        &["topology", "list", "examples/wan.toml"],
        &["model", "mm1k"],
        &["model", "mahmood"],
        &["model", "mm1", "lam=700", "mu=1000"],
        &["profile", "show", "at-x510"],
        &["profile", "diff", "at-x510", "two-level-tcam"],
        &["experiment", "vx-split-path"],
    ] {
        wide.extend(wide_lines(line));
    }
    assert!(wide.is_empty(), "{wide:#?}");
}
