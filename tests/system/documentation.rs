//! Compares documents with the program: tests, fields and errors named in docs/openflow.md exist, and so do the
//! commands and options in the blocks of all pages.
use crate::bed::weir;
use crate::pages::{command_of, pages, root};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use weir_openflow::model::error::{
    AsyncConfigFailed, BadAction, BadInstruction, BadMatch, BadProperty, BadRequest, BundleFailed, FlowModFailed,
    FlowMonitorFailed, GroupModFailed, HelloFailed, MeterModFailed, PortModFailed, QueueOpFailed, RoleRequestFailed,
    SwitchConfigFailed, TableFeaturesFailed, TableModFailed,
};
use weir_packet::Field;

fn page() -> String {
    fs::read_to_string(root().join("docs/openflow.md")).expect("docs/openflow.md is there")
}

/// Returns the texts between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_test_named_is_there() {
    let page = page();
    let references: BTreeSet<&str> = quoted(&page).filter(|word| word.contains("::")).collect();
    assert!(references.len() > 100, "only {} tests are named", references.len());
    let missing: Vec<&str> = references.into_iter().filter(|reference| !is_there(reference)).collect();
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
}

/// Returns true if a test exists. It is written as crate (or `system`, `conformance`), names in its path, function.
fn is_there(reference: &str) -> bool {
    let mut parts: Vec<&str> = reference.split("::").collect();
    let (Some(function), krate) = (parts.pop(), parts.remove(0)) else { return false };
    let folder = match krate {
        "system" => root().join("tests/system"),
        "conformance" => root().join("tests"),
        krate => root().join("crates").join(krate),
    };
    let mut files = Vec::new();
    rust_files(&folder, &mut files);
    let has_function = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap_or_default();
        text.contains(&format!("fn {function}("))
    };
    let names = |file: &Path| file.with_extension("").iter().map(|name| name.to_string_lossy().into_owned()).collect();
    files.iter().any(|file| {
        let names: BTreeSet<String> = names(file);
        parts.iter().all(|part| *part == "tests" || names.contains(*part)) && has_function(file)
    })
}

fn rust_files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn every_field_is_there() {
    let page = page();
    let words: BTreeSet<&str> = quoted(&page).collect();
    let missing: Vec<&str> = Field::ALL.into_iter().map(Field::name).filter(|name| !words.contains(name)).collect();
    assert!(missing.is_empty(), "fields that the page lacks: {missing:?}");
}

#[test]
fn every_error_is_there() {
    let page = page();
    let words: BTreeSet<&str> = quoted(&page).collect();
    let mut missing = Vec::new();
    macro_rules! look {
        ($($kind:ident),*) => {$(
            let names = (0..64).filter_map($kind::from_number).map($kind::name);
            missing.extend(names.filter(|name| !words.contains(name)));
        )*};
    }
    look!(
        HelloFailed,
        BadRequest,
        BadAction,
        BadInstruction,
        BadMatch,
        FlowModFailed,
        GroupModFailed,
        PortModFailed,
        TableModFailed,
        QueueOpFailed,
        SwitchConfigFailed,
        RoleRequestFailed,
        MeterModFailed,
        TableFeaturesFailed,
        BadProperty,
        AsyncConfigFailed,
        FlowMonitorFailed,
        BundleFailed
    );
    assert!(missing.is_empty(), "errors that the page lacks: {missing:?}");
}

/// Help texts of the command's parts, each asked for once.
#[derive(Default)]
struct Helps(HashMap<Vec<String>, String>);

impl Helps {
    fn of(&mut self, path: &[String]) -> String {
        let ask = || {
            let output = Command::new(weir()).args(path).arg("--help").output().expect("weir starts");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        self.0.entry(path.to_vec()).or_insert_with(ask).clone()
    }

    /// Returns what is wrong with the words that follow `weir` in a command.
    fn problem(&mut self, command: &[&str]) -> Option<String> {
        let (mut path, mut help) = (Vec::new(), self.of(&[]));
        for (at, word) in command.iter().enumerate() {
            if let Some(option) = word.strip_prefix("--") {
                let option = format!("--{}", option.split('=').next().unwrap_or_default());
                let is_end = |c: char| !c.is_alphanumeric() && c != '-';
                let has_it = help
                    .match_indices(&option)
                    .any(|(at, _)| help[at + option.len()..].chars().next().is_none_or(is_end));
                if !has_it {
                    return Some(format!("weir {}: no option {option}", path.join(" ")));
                }
            } else if at == path.len() && has_command(&help, word) {
                path.push((*word).to_owned());
                help = self.of(&path);
            } else if at == path.len() && help.contains("\nCommands:\n") && word.chars().all(char::is_alphabetic) {
                return Some(format!("weir {}: no command {word}", path.join(" ")));
            }
        }
        None
    }
}

fn has_command(help: &str, word: &str) -> bool {
    let commands = help.split("\nCommands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap_or_default();
    commands.lines().any(|line| line.starts_with("  ") && line.split_whitespace().next() == Some(word))
}

/// Returns the commands of weir in a page's blocks, each with its line number and the words behind `weir`. Commands
/// that follow in a pipe, and comments, are left out.
fn commands(page: &str) -> Vec<(usize, Vec<&str>)> {
    let (mut in_block, mut found) = (false, Vec::new());
    for (number, line) in (1..).zip(page.lines()) {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        let rest = command_of(line).filter(|_| in_block);
        let is_end = |word: &&str| ["|", ";", "&", "&&", ">", "<", "#", "\\"].contains(word) || word.contains("$(");
        found.extend(rest.map(|rest| (number, rest.split_whitespace().take_while(|word| !is_end(word)).collect())));
    }
    found
}

#[test]
fn commands_in_documents_exist_with_their_options() {
    let (mut helps, mut count, mut problems) = (Helps::default(), 0, Vec::new());
    for file in pages() {
        let page = fs::read_to_string(&file).expect("a page");
        for (line, command) in commands(&page) {
            // `./weir test` is the script's own.
            if command.first() != Some(&"test") {
                count += 1;
                problems.extend(helps.problem(&command).map(|problem| format!("{}:{line}: {problem}", file.display())));
            }
        }
    }
    assert!(count > 100, "only {count} commands were found");
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(helps.problem(&["ctl", "show", "--colour"]).is_some() && helps.problem(&["ctl", "shoe"]).is_some());
}
