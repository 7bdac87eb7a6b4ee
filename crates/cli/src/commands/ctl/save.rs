//! `weir ctl save`: writes the configuration that a switch has now to a file, from which it can be started again.
use super::configuration::{ConfiguredPort, TableItem, read, virtual_item};
use super::port_numbers::PortNumbers;
use crate::commands::switch::document::SettingsDocument;
use anyhow::{Context, anyhow, bail};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table};
use weir_switch::ctl::{CtlClient, CtlRequest, RunningConfiguration, TableContents};

/// Settings of the command line that make the file's lists of no effect.
const LISTS: [&str; 5] = ["port", "meter", "group", "entry", "virtual"];

/// Saves the switch's configuration to `file`, or to the file that it was started with. Returns what was done as text
/// and as JSON.
///
/// # Errors
/// There is no file to write to, it differs from what the switch read, or it cannot be written.
pub(super) fn run(client: &mut CtlClient, file: Option<&Path>, entries: bool) -> anyhow::Result<(String, Value)> {
    let running = read(client)?;
    let own = running.source.file.clone();
    let target = match (file, &own) {
        (Some(file), _) => std::path::absolute(file)?,
        (None, Some(own)) => own.clone(),
        (None, None) => bail!("the switch was started without --config; say which file to write: weir ctl save FILE"),
    };
    let is_own = own.as_ref() == Some(&target);
    if is_own {
        check_unchanged(&target, &running.source.text)?;
    }
    let saved = SavedConfiguration::new(&running, entries)?;
    // What cannot be read back is not written.
    let empty = Default::default();
    SettingsDocument::new(&saved.text, &target, &empty).context("the configuration to be saved is refused")?;
    // A link to the file stays one.
    let place = target.canonicalize().unwrap_or_else(|_| target.clone());
    write(&place, &saved.text).with_context(|| format!("{}: cannot write it", target.display()))?;
    if is_own {
        client.ask(&CtlRequest::SetConfigurationText { text: saved.text.clone() })?;
    }
    Ok((saved.report(&target, is_own), saved.json(&target)))
}

/// Fails if the configuration file has another text than the switch read: saving would undo what was written there.
fn check_unchanged(file: &Path, text: &str) -> anyhow::Result<()> {
    match std::fs::read_to_string(file) {
        Ok(found) if found != text => Err(anyhow!(
            "{}: changed since the switch read it; `weir ctl reload` first, or save to another file",
            file.display()
        )),
        _ => Ok(()),
    }
}

/// Replaces a file by one with the same permissions and the same owner.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let before = std::fs::metadata(file).ok();
    weir_terminal::output::write_file(file, text)?;
    if let Some(before) = before {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::set_permissions(file, before.permissions())?;
        // Only root may give a file away; the others own it already.
        let _ = std::os::unix::fs::chown(file, Some(before.uid()), Some(before.gid()));
    }
    Ok(())
}

/// The text of a configuration file, and what it has.
#[derive(Debug, Default)]
struct SavedConfiguration {
    text: String,
    ports: usize,
    tables: TableContents,
    virtual_switches: usize,
    /// Flow entries with a time-out and virtual switches with a lifetime, which are left out.
    temporary: (usize, usize),
    /// Lists that the command line gives, too.
    overridden: Vec<PathBuf>,
}

impl SavedConfiguration {
    /// Brings the file that a switch was started with to the switch's present state. What did not change keeps its
    /// place and its comments.
    fn new(running: &RunningConfiguration, entries: bool) -> anyhow::Result<SavedConfiguration> {
        let source = &running.source;
        let mut document: DocumentMut = source.text.parse().context("the configuration file cannot be read")?;
        let given: DocumentMut = source.command_line.parse().context("the command line's settings cannot be read")?;
        let mut saved = SavedConfiguration::default();
        for (key, item) in given.iter() {
            if LISTS.contains(&key) {
                saved.overridden.push(key.into());
            }
            match (document.get_mut(key).and_then(Item::as_table_mut), item.as_table()) {
                (Some(here), Some(more)) => more.iter().for_each(|(key, item)| drop(here.insert(key, item.clone()))),
                _ => drop(document.insert(key, plain(item))),
            }
        }
        if !document.contains_key("dpid") {
            // Without one it is the first port's address, and ports may change.
            document.insert("dpid", toml_edit::value(format!("{:#x}", running.datapath_id)));
        }
        merge(&mut document, "port", &running.ports, |text| {
            ConfiguredPort::parse(text).map_or_else(|_| text.to_owned(), |port| port.canonical())
        });
        saved.ports = running.ports.len();
        if entries {
            let numbers = PortNumbers::of(&ConfiguredPort::parse_all(&running.ports)?);
            for (key, kind, texts) in lists(&running.tables, ["meter", "group", "entry"]) {
                merge(&mut document, key, texts, |text| {
                    kind.canonical(text, &numbers).map_or_else(|_| text.to_owned(), |item| item.text)
                });
            }
            saved.tables = running.tables.clone();
            saved.temporary.0 = running.tables.temporary_entries;
        }
        saved.put_virtual_switches(&mut document, running, entries)?;
        saved.text = document.to_string();
        Ok(saved)
    }

    /// Replaces the file's virtual switches by the present ones.
    fn put_virtual_switches(
        &mut self,
        document: &mut DocumentMut,
        running: &RunningConfiguration,
        entries: bool,
    ) -> anyhow::Result<()> {
        let was_file = document.get("virtual").is_some_and(Item::is_str);
        let mut items = ArrayOfTables::new();
        for (spec, tables) in &running.virtual_switches {
            if !spec["lifetime"].is_null() {
                self.temporary.1 += 1;
                continue;
            }
            let text = virtual_item(spec)?.to_string();
            let read: DocumentMut = text.parse().context("a virtual switch cannot be written down")?;
            let mut item = Table::new();
            item.insert("name", Item::None);
            // Lists of tables are written in one line: sections within sections are hard to read.
            read.iter().for_each(|(key, value)| drop(item.insert(key, inline(value))));
            let kept = if entries { tables.clone() } else { kept_tables(document, spec) };
            for (key, _, texts) in lists(&kept, ["meters", "groups", "entries"]) {
                if !texts.is_empty() {
                    item.insert(key, toml_edit::value(array(texts)));
                }
            }
            self.temporary.0 += if entries { tables.temporary_entries } else { 0 };
            items.push(item);
        }
        self.virtual_switches = items.len();
        document.remove("virtual");
        if !items.is_empty() {
            document.insert("virtual", Item::ArrayOfTables(items));
        }
        if (was_file || self.virtual_switches > 0) && !document.contains_key("fabric") {
            let fabric: DocumentMut = running.source.fabric.parse().context("the fabric cannot be read")?;
            if !fabric.is_empty() {
                let mut section = fabric.as_table().clone();
                section.set_implicit(false);
                document.insert("fabric", Item::Table(section));
            }
        }
        Ok(())
    }

    /// Describes what was saved.
    fn report(&self, file: &Path, is_own: bool) -> String {
        let tables = &self.tables;
        let kinds = [
            (self.ports, "port", "ports"),
            (tables.meters.len(), "meter", "meters"),
            (tables.groups.len(), "group", "groups"),
            (tables.entries.len(), "flow entry", "flow entries"),
            (self.virtual_switches, "virtual switch", "virtual switches"),
        ];
        let mut text = format!("saved to {}: {}\n", file.display(), counted(&kinds, "nothing but settings"));
        let (entries, switches) = self.temporary;
        if entries + switches > 0 {
            let kinds = [
                (entries, "flow entry with a time-out", "flow entries with time-outs"),
                (switches, "virtual switch with a lifetime", "virtual switches with lifetimes"),
            ];
            let _ = writeln!(text, "left out: {}", counted(&kinds, ""));
        }
        for key in self.overridden.iter().filter(|_| is_own) {
            let key = key.display();
            let _ = writeln!(
                text,
                "note: the command line gives --{key}, too; leave it out at the next start, or it takes precedence over the file"
            );
        }
        text
    }

    fn json(&self, file: &Path) -> Value {
        json!({
            "saved": file,
            "ports": self.ports,
            "meters": self.tables.meters.len(),
            "groups": self.tables.groups.len(),
            "entries": self.tables.entries.len(),
            "virtual_switches": self.virtual_switches,
            "left_out": { "entries": self.temporary.0, "virtual_switches": self.temporary.1 },
        })
    }
}

/// Returns the meters, groups and entries that a configuration file has for a virtual switch.
fn kept_tables(document: &DocumentMut, spec: &Value) -> TableContents {
    let items = document.get("virtual").and_then(Item::as_array_of_tables).into_iter().flatten();
    let name = spec["name"].as_str();
    let item = items.into_iter().find(|item| item.get("name").and_then(Item::as_str) == name);
    let texts = |key: &str| {
        let values = item.and_then(|item| item.get(key)).and_then(Item::as_array).into_iter().flatten();
        values.filter_map(|value| value.as_str().map(str::to_owned)).collect()
    };
    TableContents { meters: texts("meters"), groups: texts("groups"), entries: texts("entries"), temporary_entries: 0 }
}

/// Returns the three lists of a switch's tables, each under a key.
fn lists<'a>(tables: &'a TableContents, keys: [&'static str; 3]) -> [(&'static str, TableItem, &'a [String]); 3] {
    let [meters, groups, entries] = keys;
    [
        (meters, TableItem::Meter, &tables.meters),
        (groups, TableItem::Group, &tables.groups),
        (entries, TableItem::Entry, &tables.entries),
    ]
}

/// Returns numbers with their words, without zeroes; `none` if all are zero.
fn counted(kinds: &[(usize, &str, &str)], none: &str) -> String {
    let there = kinds.iter().filter(|(count, ..)| *count > 0);
    let words = there.map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }));
    let words: Vec<String> = words.collect();
    if words.is_empty() { none.to_owned() } else { words.join(", ") }
}

/// Changes a list of the file into `present`. Texts of the same thing, of which `canonical` returns one text, stay as
/// they are written.
fn merge(document: &mut DocumentMut, key: &str, present: &[String], canonical: impl Fn(&str) -> String) {
    let mut old = document.get(key).and_then(Item::as_array).cloned().unwrap_or_default();
    let before = old.len();
    let mut wanted: HashSet<String> = present.iter().map(|text| canonical(text)).collect();
    let mut there = HashSet::new();
    old.retain(|value| {
        let text = value.as_str().map(&canonical).filter(|text| wanted.remove(text));
        text.map(|text| there.insert(text)).is_some()
    });
    let missing: Vec<&String> = present.iter().filter(|text| !there.contains(&canonical(text))).collect();
    if old.len() == before && missing.is_empty() {
        return;
    }
    if present.is_empty() {
        document.remove(key);
        return;
    }
    if old.is_empty() {
        old = array(missing.into_iter().map(String::as_str));
    } else {
        missing.into_iter().for_each(|text| old.push(text.as_str()));
        break_lines(&mut old);
    }
    match document.get_mut(key) {
        Some(item) => *item = toml_edit::value(old),
        None => drop(document.insert(key, toml_edit::value(old))),
    }
}

/// Returns a list with each text in its own line.
fn array<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Array {
    let mut array: Array = texts.into_iter().map(Into::into).collect();
    break_lines(&mut array);
    array
}

/// Puts each value of a list in its own line; those that are keep their comments.
fn break_lines(array: &mut Array) {
    for value in array.iter_mut() {
        let prefix = value.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
        if !prefix.contains('\n') {
            let comment = prefix.trim().to_owned();
            value.decor_mut().set_prefix(format!("\n    {comment}"));
        }
    }
    array.set_trailing_comma(true);
    if !array.trailing().as_str().is_some_and(|text| text.contains('\n')) {
        array.set_trailing("\n");
    }
}

/// Returns a value without its place in the document that it comes from.
fn plain(item: &Item) -> Item {
    item.as_value().map_or_else(|| item.clone(), |value| toml_edit::value(value.clone()))
}

/// Returns a section or a list of sections as a value of one line.
fn inline(item: &Item) -> Item {
    item.clone().into_value().map_or_else(|other| other, toml_edit::value)
}
