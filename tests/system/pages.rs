//! Runs the commands in the blocks of documents, and compares what they print with what the documents show.
//!
//! Commands that need only files are run: predictions, simulations, models, topologies, profiles, messages. Their
//! output must have each line that the page shows, apart from numbers. A page gives a command a file by a comment in
//! front of the block with its content: `<!-- file: ring.toml -->`. A line `...` stands for any lines.
//!
//! Blocks that need more have a comment that says what: a running switch, or namespaces and root ([`session`]). Each
//! other command of the README and the guide is listed with the reason why it is not run ([`not_run`]).
mod block;
mod not_run;
mod session;

use crate::bed::weir;
pub(crate) use block::command_of;
use block::{Block, ShownCommand, blocks, missing, shape, shown};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Commands that need only files.
const RUN: [&str; 8] = ["predict", "simulate", "model", "topology", "ofp", "licenses", "profile", "experiment"];
/// Subcommands of `profile` and `experiment` that measure nothing.
const HARMLESS: [&str; 5] = ["list", "show", "diff", "validate", "plot"];
/// Commands outside of the guide, of these kinds, that cannot run: the page names files of its reader's. This number
/// may only fall.
const WITHOUT_FILE: usize = 13;

/// Returns the folder of the project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the Markdown files of the project.
pub(crate) fn pages() -> Vec<PathBuf> {
    fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if path.is_dir() && name != "target" && name != ".git" {
                collect(&path, into);
            } else if path.extension().is_some_and(|end| end == "md") {
                into.push(path);
            }
        }
    }
    let mut found = Vec::new();
    collect(&root(), &mut found);
    found
}

fn is_run(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    RUN.contains(&first) && (!["profile", "experiment"].contains(&first) || HARMLESS.contains(&second))
}

/// Makes a folder that looks like the project, so that commands may write files.
fn playground() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(root()).expect("the project").flatten() {
        if !["target", ".git"].contains(&entry.file_name().to_str().unwrap_or_default()) {
            let path = entry.path().canonicalize().expect("a path");
            symlink(path, folder.path().join(entry.file_name())).expect("a link");
        }
    }
    // Commands in documents call `weir`; the script of this name is not what is tested.
    fs::remove_file(folder.path().join("weir")).expect("the script's link");
    symlink(weir(), folder.path().join("weir")).expect("a link");
    folder
}

/// Returns what is wrong with a command: it fails, or does not print what the page shows.
fn problem(folder: &Path, shown: &ShownCommand<'_>) -> Option<String> {
    let command = format!("weir {}", shown.command);
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let ran = Command::new("sh").args(["-c", &command]).current_dir(folder).env("PATH", path).output();
    let ran = ran.expect("sh starts");
    let told = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    let missing = missing(&told, &shown.output);
    let shows_error = shown.output.iter().any(|line| line.starts_with("weir: "));
    if missing.is_empty() && (shows_error || ran.status.code().is_some_and(|code| code <= 1)) {
        return None;
    }
    Some(format!("{command}\n  ended with {:?}; lines that it does not print: {missing:#?}\n{told}", ran.status.code()))
}

/// Returns the name of a page, from the project's folder on.
fn page_name(file: &Path) -> String {
    file.strip_prefix(root()).expect("in the project").display().to_string()
}

/// Returns true if a page is for users: each of its commands is run, or listed with the reason why not.
fn is_guide(page: &str) -> bool {
    page == "README.md" || page.starts_with("docs/guide/")
}

#[test]
fn commands_print_what_documents_show() {
    let folder = playground();
    let (mut count, mut without_file, mut problems) = (0, Vec::new(), Vec::new());
    for file in pages() {
        let name = page_name(&file);
        // The changelog tells of commands that were.
        if name == "CHANGELOG.md" || name.starts_with("docs/contributing") {
            continue;
        }
        let page = fs::read_to_string(&file).expect("a page");
        let blocks = blocks(&page);
        write_files(folder.path(), &blocks);
        for shown in shown(&blocks).iter().filter(|shown| is_run(shown.command)) {
            if not_run::reason(&name, &format!("weir {}", shown.command)).is_some() {
                continue;
            }
            let is_there = |word: &str| folder.path().join(word.trim_matches('\'')).exists();
            let ends = [".toml", ".pcap", ".graphml", ".json"];
            let mut files = shown.command.split_whitespace().filter(|word| ends.iter().any(|end| word.ends_with(end)));
            if files.clone().next().is_some() && !files.any(is_there) {
                let command = format!("{name}:{}: weir {}", shown.line, shown.command);
                if is_guide(&name) {
                    problems.push(format!("{command}: give it its file, or say in not_run.rs why it is not run"));
                }
                without_file.push(command);
                continue;
            }
            count += 1;
            problems.extend(problem(folder.path(), shown).map(|problem| format!("{name}:{}: {problem}", shown.line)));
        }
    }
    assert!(count > 25, "only {count} commands were run");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(without_file.len() <= WITHOUT_FILE, "give them their files: {without_file:#?}");
}

/// Writes the blocks that are files.
fn write_files(folder: &Path, blocks: &[Block<'_>]) {
    for block in blocks {
        if let Some(file) = block.file() {
            fs::write(folder.join(file), block.lines.join("\n")).expect("writable");
        }
    }
}

/// Runs the marked blocks of the pages that `wanted` picks.
fn run_marked(wanted: impl Fn(&str) -> bool, at_least: usize) {
    let (mut count, mut problems) = (0, Vec::new());
    for file in pages().into_iter().filter(|file| wanted(&page_name(file))) {
        let folder = playground();
        let page = fs::read_to_string(&file).expect("a page");
        let blocks = blocks(&page);
        write_files(folder.path(), &blocks);
        let (wrong, commands) = session::run_page(folder.path(), &blocks);
        problems.extend(wrong.into_iter().map(|problem| format!("{}: {problem}", page_name(&file))));
        count += commands;
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count >= at_least || !weir_testing::is_root(), "only {count} commands were run");
}

#[test]
fn the_page_of_the_switch_shows_what_happens() {
    run_marked(|page| page == "docs/guide/switch.md", 50);
}

#[test]
fn the_other_pages_show_what_happens() {
    run_marked(|page| is_guide(page) && page != "docs/guide/switch.md", 20);
}

#[test]
fn commands_of_the_guide_are_run_or_listed() {
    let (mut forgotten, mut used) = (Vec::new(), BTreeSet::new());
    for file in pages() {
        let name = page_name(&file);
        let page = fs::read_to_string(&file).expect("a page");
        let blocks = blocks(&page);
        for block in
            blocks.iter().filter(|block| is_guide(&name) && block.kind.is_empty() && !session::is_marked(block))
        {
            for (command, _) in block.commands() {
                let reason = not_run::reason(&name, &command);
                used.extend(reason);
                let is_run = command_of(&command).is_some_and(is_run);
                if reason.is_none() && !is_run {
                    forgotten.push(format!("{name}:{}: {command}", block.line));
                }
            }
        }
    }
    assert!(forgotten.is_empty(), "run them (tests/system/pages/session.rs), or say why not: {forgotten:#?}");
    assert_eq!(not_run::unused(&used), Vec::<String>::new(), "there are no such commands any more");
}

#[test]
fn lines_are_compared_without_their_numbers() {
    assert_eq!(shape(" udp  a b   12.5 ms  1,000 x2"), shape(" udp a b 9 us 3 x14"));
    assert_eq!(shape("seed 1, on 2 cores of A, Linux 6"), shape("seed 1, on 16 cores of B, Linux 5"));
    assert_ne!(shape("udp a b 12.5 ms"), shape("tcp a b 12.5 ms"));
    assert_eq!(
        shape("dpid:00008ac0e4ab6598 0xff 5e:fa:45:7e:f4:58"),
        shape("dpid:0000000000000001 0x1 02:00:00:00:00:01")
    );
    assert_eq!(shape("  < 0.8 ns  output:2"), shape("   12.5 ns  output:3"));
    assert_eq!(block::missing("one 1\ntwo 2 and more", &["one 7", "...", "two 9 and..."]), [""; 0]);
    assert_eq!(block::missing("one 1", &["two 2"]), ["two 2"]);
    // What the machine did is not compared, in as many lines as it takes.
    let shown = ["Fidelity: doubtful", "  since frames were late", "    and later", "    still", "All 2 items"];
    assert_eq!(block::missing("Fidelity: faithful\nAll 2 items", &shown), [""; 0]);
    assert_eq!(block::missing("Fidelity: faithful\n", &shown), ["All 2 items"]);
}
