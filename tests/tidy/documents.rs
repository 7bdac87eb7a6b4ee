//! Rules for documents: no traces of a merge, lines that fit, links that lead somewhere.
use crate::files::{Text, texts};
use crate::{Finding, at_most};

/// Longest line of prose, in characters.
const WIDTH: usize = 120;

/// Files that are read by people.
const READ: [&str; 9] = [".rs", ".md", ".toml", ".py", ".sh", ".yaml", ".html", ".txt", ".json"];

#[test]
fn no_merge_is_left_half_done() {
    let mut found = Vec::new();
    for text in texts(&READ) {
        let marks = ["<<<<<<< ", ">>>>>>> "];
        for (line, content) in text.lines().filter(|(_, line)| marks.iter().any(|mark| line.starts_with(mark))) {
            found.push(Finding { file: text.path.clone(), line, what: content.to_owned() });
        }
    }
    at_most(0, "decide what stays, and remove the markers", &found);
}

/// Returns the lines of prose: no code, no tables.
fn prose(text: &Text) -> impl Iterator<Item = (usize, &str)> {
    let mut in_block = false;
    text.lines().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence && !line.starts_with('|')
    })
}

#[test]
fn prose_is_wrapped() {
    let mut found = Vec::new();
    for text in texts(&[".md"]) {
        for (line, content) in prose(&text) {
            let length = content.chars().count();
            // A link or a piece of code cannot be broken.
            let longest = content.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
            if length > WIDTH && longest < WIDTH / 2 {
                found.push(Finding { file: text.path.clone(), line, what: format!("{length} characters") });
            }
        }
    }
    at_most(0, "wrap prose at 120 columns", &found);
}

/// Returns the targets of a line's links.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// Returns the name by which links reach a heading: its words in lower case, joined by hyphens.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns true if a link of the page at `from` leads to a file, and to a heading of it if it names one.
fn leads_somewhere(from: &str, target: &str, pages: &[Text]) -> bool {
    let (path, heading) = target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
    let folder = weir_testing::workspace().join(from).parent().expect("a page has a folder").to_owned();
    let file = if path.is_empty() { weir_testing::workspace().join(from) } else { folder.join(path) };
    let Ok(file) = file.canonicalize() else { return false };
    let Some(heading) = heading.filter(|_| file.extension().is_some_and(|ending| ending == "md")) else { return true };
    let is_page = |page: &&Text| weir_testing::workspace().join(&page.path).canonicalize().is_ok_and(|it| it == file);
    pages
        .iter()
        .find(is_page)
        .is_some_and(|page| prose(page).any(|(_, line)| line.starts_with('#') && anchor(line) == heading))
}

#[test]
fn links_lead_somewhere() {
    let pages = texts(&[".md"]);
    let mut found = Vec::new();
    for page in &pages {
        for (line, content) in prose(page) {
            for target in links(content).filter(|target| !target.contains("://") && !target.starts_with("mailto:")) {
                if !leads_somewhere(&page.path, target, &pages) {
                    found.push(Finding { file: page.path.clone(), line, what: format!("no such place: {target}") });
                }
            }
        }
    }
    at_most(0, "name a file that is there, and a heading of it", &found);
}

#[test]
fn headings_have_the_names_that_links_use() {
    assert_eq!(anchor("## What it cost"), "what-it-cost");
    assert_eq!(anchor("# `weir ctl`: show"), "weir-ctl-show");
    assert_eq!(links("see [a](b.md#c) and [d](e)").collect::<Vec<_>>(), ["b.md#c", "e"]);
}
