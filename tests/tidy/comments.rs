//! Rules for comments in Rust files: plain English that is understood without the code below it.
use crate::files::{Text, texts};
use crate::{Finding, at_most};

/// Longest line of a comment, in characters.
const WIDTH: usize = 120;

/// Words that a doc comment must not begin with: they refer to something that the reader cannot see.
const OPENINGS: [&str; 33] = [
    "It", "Its", "They", "Them", "Their", "What", "Whatever", "Who", "Whoever", "Whose", "Where", "Wherever", "When",
    "Whether", "Those", "These", "One", "Ones", "That", "This", "As", "Such", "Here", "There", "So", "Of", "Also",
    "Too", "And", "But", "Or", "Nothing", "Somebody",
];

/// Words of these that no paragraph may begin with either: behind a heading or an empty line they refer to nothing.
const POINTING: [&str; 7] = ["It", "Its", "They", "Them", "Their", "Those", "Whose"];

/// Words for people. Components are not people.
const PEOPLE: [&str; 11] =
    ["whoever", "somebody", "someone", "nobody", "everybody", "guest", "guests", "he", "his", "him", "she"];

/// Comment lines of one kind without a line of code in between.
struct Comment {
    /// Number of the first line.
    line: usize,
    is_doc: bool,
    /// The lines without the slashes.
    lines: Vec<String>,
}

impl Comment {
    fn text(&self) -> String {
        self.lines.join(" ").trim().to_owned()
    }
}

/// Returns the slashes that a line begins with (`//`, `///` or `//!`) and the text behind them.
fn slashes(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let kind = ["///", "//!", "//"].into_iter().find(|kind| line.starts_with(kind))?;
    let text = &line[kind.len()..];
    (text.is_empty() || text.starts_with(' ')).then_some((kind, text.trim()))
}

fn comments(text: &Text) -> Vec<Comment> {
    let mut found: Vec<Comment> = Vec::new();
    let mut last = None;
    for (number, line) in text.lines() {
        let kind = slashes(line);
        if let Some((kind, content)) = kind {
            if last != Some(kind) {
                found.push(Comment { line: number, is_doc: kind != "//", lines: Vec::new() });
            }
            found.last_mut().expect("one was pushed").lines.push(content.to_owned());
        }
        last = kind.map(|(kind, _)| kind);
    }
    found
}

/// Returns what `problem` says of the project's comments.
fn findings(problem: impl Fn(&Comment) -> Option<String>) -> Vec<Finding> {
    let mut found = Vec::new();
    for text in texts(&[".rs"]) {
        for comment in comments(&text) {
            let file = text.path.clone();
            found.extend(problem(&comment).map(|what| Finding { file, line: comment.line, what }));
        }
    }
    found
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '\'').filter(|word| !word.is_empty())
}

#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    let found = findings(|comment| {
        let text = comment.text();
        let first = words(&text).next().filter(|first| comment.is_doc && text.starts_with(first))?.to_owned();
        let is_bad = OPENINGS.contains(&first.as_str()) || text.starts_with("The same");
        is_bad.then(|| format!("begins with `{first}`: {text}"))
    });
    let advice = "begin with a verb (\"Returns ...\") or name the thing (\"Arrival time of the message.\"); \
                  for a boolean: \"True if ...\"";
    at_most(0, advice, &found);
}

#[test]
fn paragraphs_name_their_subject() {
    let found = findings(|comment| {
        let begins = |at: usize| at == 0 || comment.lines[at - 1].is_empty() || comment.lines[at - 1].starts_with('#');
        let starts = (0..comment.lines.len()).filter(|at| comment.is_doc && begins(*at)).map(|at| &comment.lines[at]);
        let bad = starts.into_iter().find(|line| words(line).next().is_some_and(|first| POINTING.contains(&first)))?;
        Some(format!("a paragraph begins with: {bad}"))
    });
    at_most(0, "name the subject again; of errors: \"Fails for the reasons of [`open`].\"", &found);
}

#[test]
fn components_are_not_people() {
    let found = findings(|comment| {
        let text = comment.text();
        let prose = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        let person = words(&prose).find(|word| PEOPLE.contains(&word.to_lowercase().as_str()))?.to_owned();
        Some(format!("`{person}`: {text}"))
    });
    at_most(0, "name the component: the reader, the port that holds the lock, callers that ...", &found);
}

#[test]
fn comments_say_it_in_full() {
    let found = findings(|comment| {
        let text = comment.text();
        let empty = ["See the module's page", "The same for", "The same, for", "the same, for", "The same as"];
        empty.into_iter().find(|part| text.contains(part)).map(|part| format!("`{part}`: {text}"))
    });
    at_most(0, "say it again in full, or link to the item and say what differs", &found);
}

#[test]
fn comments_are_wrapped() {
    let mut found = Vec::new();
    for text in texts(&[".rs"]) {
        let mut in_example = false;
        for (line, content) in text.lines() {
            let Some((_, comment)) = slashes(content) else {
                in_example = false;
                continue;
            };
            // Examples are code, and a link cannot be broken.
            in_example ^= comment.starts_with("```");
            let is_link = comment.split_whitespace().any(|word| word.contains("://"));
            if content.chars().count() > WIDTH && !in_example && !is_link {
                let what = format!("{} characters", content.chars().count());
                found.push(Finding { file: text.path.clone(), line, what });
            }
        }
    }
    at_most(0, "wrap comments at 120 columns", &found);
}
