//! Checks the project's own files: words of comments, names of types, documents, links, where `unsafe` may be.
//!
//! Each rule counts what breaks it. A count that cannot be 0 yet has a limit, which may only fall: a test fails when
//! there is more, and asks to lower the limit when there is less.
mod comments;
mod crates;
mod documents;
mod files;
mod names;

use std::fmt::Write as _;

/// Findings that a failing rule shows at most.
const SHOWN: usize = 40;

/// Place that breaks a rule.
struct Finding {
    /// Path from the project's root.
    file: String,
    /// Line number, from 1.
    line: usize,
    what: String,
}

/// Fails if a rule has more findings than `limit`, or fewer: then the limit is to be lowered. `advice` says what to
/// write instead.
fn at_most(limit: usize, advice: &str, findings: &[Finding]) {
    if findings.len() == limit {
        return;
    }
    if findings.len() < limit {
        panic!("only {} places are left, where {limit} are allowed: lower the limit", findings.len());
    }
    let mut shown = String::new();
    for Finding { file, line, what } in findings.iter().take(SHOWN) {
        let _ = writeln!(shown, "{file}:{line}: {what}");
    }
    panic!("{} places, where {limit} are allowed: {advice}\n{shown}", findings.len());
}
