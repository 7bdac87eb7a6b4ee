//! Rules for names in the code: a type's name means one thing in the workspace, and `unsafe` has its places.
use crate::files::texts;
use crate::{Finding, at_most};
use std::collections::BTreeMap;

/// Names that several crates use on purpose, each for its own (docs/contributing/glossary.md).
const SHARED: [&str; 2] = ["Config", "Error"];

/// Crates that may have `unsafe` code: both talk to the kernel or to the processor.
const UNSAFE: [&str; 2] = ["crates/port/", "crates/memory/"];

/// Returns the name of the type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub").map_or(line, |rest| {
        let rest = rest.trim_start();
        rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest).trim_start()
    });
    let rest = ["struct ", "enum ", "trait ", "union "].iter().find_map(|kind| line.strip_prefix(kind))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()))
}

#[test]
fn a_name_of_a_type_means_one_thing() {
    let mut places: BTreeMap<String, Vec<(String, usize)>> = BTreeMap::new();
    for text in texts(&[".rs"]) {
        if text.is_test() || !text.path.starts_with("crates/") || !text.path.contains("/src/") {
            continue;
        }
        for (line, name) in text.code().filter_map(|(line, content)| Some((line, declared(content)?))) {
            places.entry(name.to_owned()).or_default().push((text.path.clone(), line));
        }
    }
    assert!(places.len() > 500, "only {} types were found", places.len());
    let twice = places.into_iter().filter(|(name, places)| places.len() > 1 && !SHARED.contains(&name.as_str()));
    let finding = |(name, places): (String, Vec<(String, usize)>)| {
        let (file, line) = places[0].clone();
        let others: Vec<String> = places[1..].iter().map(|(file, line)| format!("{file}:{line}")).collect();
        Finding { file, line, what: format!("`{name}` is also in {}", others.join(", ")) }
    };
    at_most(0, "name each for what it is, such as `TableLine` and `LinkRate`", &twice.map(finding).collect::<Vec<_>>());
}

#[test]
fn unsafe_code_has_its_places() {
    let mut found = Vec::new();
    for text in texts(&[".rs"]) {
        if UNSAFE.iter().any(|place| text.path.starts_with(place)) || text.path.starts_with("tests/tidy/") {
            continue;
        }
        for (line, content) in text.lines() {
            let code = content.split("//").next().unwrap_or_default();
            if ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"].iter().any(|part| code.contains(part)) {
                found.push(Finding { file: text.path.clone(), line, what: content.trim().to_owned() });
            }
        }
    }
    at_most(0, "move it behind a safe function of `port` (system) or `memory` (memory, processor)", &found);
}

#[test]
fn declarations_are_recognised() {
    assert_eq!(declared("pub(crate) struct Frame<'a> {"), Some("Frame"));
    assert_eq!(declared("    pub enum Kind {"), Some("Kind"));
    assert_eq!(declared("trait Port: Send {"), Some("Port"));
    assert_eq!([declared("pub fn structure() {"), declared("// struct Frame")], [None, None]);
}
