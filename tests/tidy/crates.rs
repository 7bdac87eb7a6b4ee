//! Rules for crates: the table of docs/ARCHITECTURE.md is that of the manifests, libraries can be published, and the
//! files that documents name exist.
use crate::files::texts;
use crate::{Finding, at_most};
use std::collections::BTreeSet;
use std::fs;

const PAGE: &str = "docs/ARCHITECTURE.md";

/// A row of the crate table.
struct Row {
    line: usize,
    name: String,
    uses: String,
}

/// Returns the rows of the table with the columns crate, what and uses.
fn rows(page: &str) -> Vec<Row> {
    let lines = (1..).zip(page.lines()).skip_while(|(_, line)| !line.starts_with("| crate |")).skip(2);
    let cells = lines.take_while(|(_, line)| line.starts_with('|')).map(|(number, line)| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, uses] = cells[..] else { panic!("{PAGE}:{number}: found {} columns, expected 3", cells.len()) };
        Row { line: number, name: name.trim_matches('`').to_owned(), uses: uses.to_owned() }
    });
    cells.collect()
}

/// Returns the manifest in a folder of the project.
fn manifest(folder: &str) -> toml::Table {
    let path = weir_testing::workspace().join(folder).join("Cargo.toml");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().expect("a manifest is TOML")
}

/// Returns the names of all crates.
fn crates() -> BTreeSet<String> {
    let folders = fs::read_dir(weir_testing::workspace().join("crates")).expect("the crates");
    folders.map(|folder| folder.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// Returns the project's crates that a crate uses, from its manifest.
fn used(name: &str) -> BTreeSet<String> {
    let manifest = manifest(&format!("crates/{name}"));
    let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
    let names = dependencies.into_iter().flat_map(toml::Table::keys);
    names.filter_map(|name| name.strip_prefix("weir-")).map(str::to_owned).collect()
}

#[test]
fn the_crate_table_is_that_of_the_manifests() {
    let page = fs::read_to_string(weir_testing::workspace().join(PAGE)).expect("the page");
    let (mut above, mut found) = (BTreeSet::new(), Vec::new());
    for Row { line, name, uses } in rows(&page) {
        let said: BTreeSet<String> = match uses.strip_prefix("all above") {
            Some(but) => above.iter().filter(|one| !but.contains(&format!("`{one}`"))).cloned().collect(),
            None => uses.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect(),
        };
        let is = used(&name);
        let mut tell = |what: String| found.push(Finding { file: PAGE.to_owned(), line, what });
        if said != is {
            tell(format!("`{name}` uses {is:?}, but the table says {said:?}"));
        }
        if let Some(below) = is.iter().find(|one| !above.contains(*one)) {
            tell(format!("`{name}` uses `{below}`, which is not above it"));
        }
        above.insert(name);
    }
    assert_eq!(above, crates(), "the table has each crate once");
    at_most(0, "write what the manifest has, in an order in which each crate uses only those above it", &found);
}

#[test]
fn libraries_can_be_published() {
    let root = manifest("");
    let dependencies = &root["workspace"]["dependencies"];
    let packages: Vec<(String, toml::Value)> = crates()
        .into_iter()
        .map(|name| (name.clone(), manifest(&format!("crates/{name}"))["package"].clone()))
        .collect();
    let is_public = |package: &toml::Value| package.get("publish") == Some(&toml::Value::Boolean(true));
    let public: BTreeSet<&str> =
        packages.iter().filter(|(_, package)| is_public(package)).map(|(name, _)| name.as_str()).collect();
    assert!(public.contains("openflow"), "found only {public:?}");
    let mut found = Vec::new();
    for (name, package) in packages.iter().filter(|(name, _)| public.contains(name.as_str())) {
        let file = format!("crates/{name}/Cargo.toml");
        let mut tell = |what: String| found.push(Finding { file: file.clone(), line: 1, what });
        for key in ["description", "license", "readme", "keywords", "categories", "rust-version", "include"] {
            if package.get(key).is_none() {
                tell(format!("no `{key}`"));
            }
        }
        for part in ["README.md", "LICENSE"] {
            if !weir_testing::workspace().join("crates").join(name).join(part).is_file() {
                tell(format!("no {part} beside it"));
            }
        }
        if dependencies.get(format!("weir-{name}")).is_none_or(|one| one.get("version").is_none()) {
            tell("no version in the workspace's dependencies".to_owned());
        }
        for private in used(name).iter().filter(|one| !public.contains(one.as_str())) {
            tell(format!("uses `{private}`, which is not published"));
        }
    }
    at_most(0, "complete the manifest as those of other libraries, or do not publish the crate", &found);
}

#[test]
fn the_files_named_in_documents_exist() {
    let mut found = Vec::new();
    let roots = ["crates/", "tests/", "docs/", "bench/", "experiments/", "fuzz/", "examples/", "testdata/", "mininet/"];
    let is_file = |word: &str| {
        let has_ending = word.rsplit('/').next().is_some_and(|name| name.contains('.'));
        // Recipes have placeholders in capitals: `crates/CRATE/benches/NAME.rs`.
        let is_placeholder = |part: &str| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase());
        let is_path = word.chars().all(is_part_of_path) && !word.split(['/', '.', '-']).any(is_placeholder);
        has_ending && is_path && roots.iter().any(|root| word.starts_with(root))
    };
    for page in texts(&[".md"]) {
        // The changelog tells of files that were.
        if page.path == "CHANGELOG.md" {
            continue;
        }
        for (line, content) in page.lines() {
            for word in content.split('`').skip(1).step_by(2).filter(|word| is_file(word)) {
                if !weir_testing::workspace().join(word).exists() {
                    found.push(Finding { file: page.path.clone(), line, what: format!("no such file: {word}") });
                }
            }
        }
    }
    at_most(0, "name the file that has it now", &found);
}

/// Reading a way through the code takes as many steps as it has files. Each section of ARCHITECTURE tells one in the
/// table that it begins with.
#[test]
fn the_ways_of_a_frame_and_a_flow_mod_are_short() {
    let page = std::fs::read_to_string(weir_testing::workspace().join("docs/ARCHITECTURE.md")).unwrap();
    for (heading, most) in [("## Life of a frame", 12), ("## Life of a flow-mod", 14)] {
        let section = page.split_once(heading).unwrap_or_else(|| panic!("there is no section `{heading}`")).1;
        let table = section.lines().skip_while(|line| !line.starts_with("| file")).skip(2);
        let files = table.take_while(|line| line.starts_with("| `crates/")).count();
        assert!(files > 0 && files <= most, "{heading}: {files} files, expected at most {most}: shorten the way");
    }
}

fn is_part_of_path(c: char) -> bool {
    c.is_ascii_alphanumeric() || ['/', '.', '_', '-'].contains(&c)
}

/// CONTRIBUTING.md and docs/ARCHITECTURE.md say that two crates have unsafe code.
#[test]
fn two_crates_have_unsafe_code() {
    let begins = ["unsafe {", "unsafe fn ", "unsafe impl "];
    let mut found = Vec::new();
    for text in texts(&[".rs"]) {
        let is_theirs =
            ["crates/port/", "crates/memory/", "tests/tidy/"].iter().any(|path| text.path.starts_with(path));
        if !is_theirs && text.path.starts_with("crates/") {
            let lines = text.lines().filter(|(_, line)| begins.iter().any(|begin| line.contains(begin)));
            found.extend(lines.map(|(line, what)| Finding {
                file: text.path.clone(),
                line,
                what: what.trim().to_owned(),
            }));
        }
    }
    at_most(0, "move the code to `port` or `memory`", &found);
}
