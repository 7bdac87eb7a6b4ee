//! Lists the project's files, without what is built or fetched.
use std::fs;
use std::path::Path;

/// Folders that are not the project's own text.
const LEFT_OUT: [&str; 6] = ["target", ".git", "corpus", "artifacts", "node_modules", "__pycache__"];

/// A text file of the project.
pub(crate) struct Text {
    /// Path from the project's root.
    pub(crate) path: String,
    pub(crate) content: String,
}

impl Text {
    /// Returns the lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.content.lines())
    }

    /// Returns the lines in front of a module of tests at the end of a file, with their numbers.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_test_module = |line: &str| line.starts_with("mod ") && line.ends_with('{');
        let mut lines = self.lines().peekable();
        std::iter::from_fn(move || {
            let (number, line) = lines.next()?;
            let is_end = line == "#[cfg(test)]" && lines.peek().is_some_and(|(_, next)| is_test_module(next));
            (!is_end).then_some((number, line))
        })
    }

    /// Returns true if the file has tests only.
    pub(crate) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }
}

/// Returns all text files whose name ends with one of `endings`, sorted by path.
pub(crate) fn texts(endings: &[&str]) -> Vec<Text> {
    let root = weir_testing::workspace();
    let mut found = Vec::new();
    collect(&root, &root, endings, &mut found);
    found.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(!found.is_empty(), "no file ends with {endings:?}");
    found
}

fn collect(root: &Path, folder: &Path, endings: &[&str], found: &mut Vec<Text>) {
    for entry in fs::read_dir(folder).expect("a folder of the project").map(|entry| entry.expect("an entry")) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let kind = entry.file_type().expect("a kind of file");
        if kind.is_dir() && !LEFT_OUT.contains(&name.as_str()) {
            collect(root, &path, endings, found);
        } else if kind.is_file() && endings.iter().any(|ending| name.ends_with(ending)) {
            let content = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let path = path.strip_prefix(root).expect("inside the project").display().to_string();
            found.push(Text { path, content });
        }
    }
}
