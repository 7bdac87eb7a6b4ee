//! Runs the commands in the blocks of documents, and compares what they print with what the documents show.
//!
//! Commands that need only files are run: predictions, simulations, models, topologies, profiles, messages. Their
//! output must have each line that the page shows, apart from numbers. A page gives a command a file by a comment in
//! front of the block with its content: `<!-- file: ring.toml -->`. A line `...` stands for any lines.
use crate::bed::weir;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Commands that need only files.
const RUN: [&str; 7] = ["predict", "simulate", "model", "topology", "ofp", "licenses", "profile"];
/// Subcommands of `profile` that measure nothing.
const PROFILE: [&str; 4] = ["list", "show", "diff", "validate"];
/// Commands of these kinds that cannot run: the page names files of its reader's. This number may only fall.
const WITHOUT_FILE: usize = 13;

/// A block of a page.
struct Block<'a> {
    /// Line number of the fence.
    line: usize,
    /// Word behind the fence, such as `toml`.
    kind: &'a str,
    /// Name in the comment in front of the block.
    file: Option<&'a str>,
    lines: Vec<&'a str>,
}

/// A command with the output that the page shows.
struct ShownCommand<'a> {
    line: usize,
    command: &'a str,
    output: Vec<&'a str>,
}

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

fn blocks(page: &str) -> Vec<Block<'_>> {
    let (mut found, mut open, mut before) = (Vec::new(), None::<Block<'_>>, "");
    for (line, text) in (1..).zip(page.lines()) {
        let fence = text.trim_start().strip_prefix("```");
        match (open.take(), fence) {
            (None, Some(kind)) => {
                let file = before.strip_prefix("<!-- file: ").and_then(|rest| rest.strip_suffix(" -->"));
                open = Some(Block { line, kind: kind.trim(), file, lines: Vec::new() });
            }
            (Some(block), Some(_)) => found.push(block),
            (Some(mut block), None) => {
                block.lines.push(text);
                open = Some(block);
            }
            (None, None) => {}
        }
        before = text.trim();
    }
    found
}

/// Returns the command in a line of a block: what follows the prompt, if it calls weir.
pub(crate) fn command_of(line: &str) -> Option<&str> {
    let line = line.trim_start().trim_start_matches(['$', '#']).trim_start();
    let line = line.strip_prefix("sudo ").unwrap_or(line);
    line.strip_prefix("./weir ").or_else(|| line.strip_prefix("weir "))
}

fn is_prompt(line: &str) -> bool {
    line.starts_with("$ ") || line.starts_with("# ")
}

/// Returns the commands of a page. The output follows in the same block, or is the next block.
fn shown<'a>(blocks: &[Block<'a>]) -> Vec<ShownCommand<'a>> {
    let mut found: Vec<ShownCommand<'a>> = Vec::new();
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| block.kind.is_empty()) {
        let (from, mut shows) = (found.len(), false);
        for line in &block.lines {
            if let Some(command) = command_of(line) {
                found.push(ShownCommand { line: block.line, command, output: Vec::new() });
                shows = true;
            } else if is_prompt(line) {
                shows = false;
            } else if let Some(last) = found.last_mut().filter(|_| shows) {
                last.output.push(line);
            }
        }
        let follows = |next: &&Block<'_>| next.line == block.line + block.lines.len() + 2 && next.kind.is_empty();
        let next = blocks.get(at + 1).filter(follows);
        if let (Some(next), Some(last)) = (next, found[from..].last_mut())
            && last.output.is_empty()
            && !next.lines.iter().any(|line| command_of(line).is_some())
        {
            last.output.clone_from(&next.lines);
        }
    }
    found
}

fn is_run(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    // The picture in the README has the names of commands, too.
    let is_command = !command.contains("   ");
    is_command && RUN.contains(&first) && (first != "profile" || PROFILE.contains(&second))
}

/// Returns a line without what differs from run to run: numbers, their units of time, the machine, the kind of build.
fn shape(line: &str) -> String {
    let line = line.split(" cores of ").next().unwrap_or_default();
    let line = line.replace("debug build", "release build").replace("quick build", "release build");
    let (mut shape, mut in_number) = (String::new(), false);
    for c in line.chars() {
        let goes_on = in_number && ['.', ','].contains(&c);
        if c.is_ascii_digit() || goes_on {
            if !in_number {
                shape.push('#');
            }
            in_number = true;
        } else {
            in_number = false;
            shape.push(c);
        }
    }
    let words = shape.split_whitespace().map(|word| match word {
        "ns" | "us" | "ms" | "s" => "TIME",
        other => other,
    });
    words.collect::<Vec<_>>().join(" ")
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
    let lines: BTreeSet<String> = told.lines().map(shape).collect();
    let is_missing = |line: &&&str| !line.trim().is_empty() && line.trim() != "..." && !lines.contains(&shape(line));
    let missing: Vec<&&str> = shown.output.iter().filter(is_missing).collect();
    let shows_error = shown.output.iter().any(|line| line.starts_with("weir: "));
    if missing.is_empty() && (shows_error || ran.status.code().is_some_and(|code| code <= 1)) {
        return None;
    }
    Some(format!("{command}\n  ended with {:?}; lines that it does not print: {missing:#?}\n{told}", ran.status.code()))
}

#[test]
fn commands_print_what_documents_show() {
    let folder = playground();
    let (mut count, mut without_file, mut problems) = (0, Vec::new(), Vec::new());
    for file in pages() {
        let name = file.strip_prefix(root()).expect("in the project").display().to_string();
        // The changelog tells of commands that were.
        if name == "CHANGELOG.md" || name.starts_with("docs/contributing") {
            continue;
        }
        let page = fs::read_to_string(&file).expect("a page");
        let blocks = blocks(&page);
        for block in &blocks {
            if let Some(file) = block.file {
                fs::write(folder.path().join(file), block.lines.join("\n")).expect("writable");
            }
        }
        for shown in shown(&blocks).iter().filter(|shown| is_run(shown.command)) {
            let is_there = |word: &str| folder.path().join(word.trim_matches('\'')).exists();
            let ends = [".toml", ".pcap", ".graphml", ".json"];
            let mut files = shown.command.split_whitespace().filter(|word| ends.iter().any(|end| word.ends_with(end)));
            if files.clone().next().is_some() && !files.any(is_there) {
                without_file.push(format!("{name}:{}: weir {}", shown.line, shown.command));
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

#[test]
fn lines_are_compared_without_their_numbers() {
    assert_eq!(shape(" udp  a b   12.5 ms  1,000 x2"), shape(" udp a b 9 us 3 x14"));
    assert_eq!(shape("seed 1, on 2 cores of A, Linux 6"), shape("seed 1, on 16 cores of B, Linux 5"));
    assert_ne!(shape("udp a b 12.5 ms"), shape("tcp a b 12.5 ms"));
}
