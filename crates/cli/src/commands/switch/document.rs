//! The settings of a switch as TOML: what the command line says, in the words of the configuration file, and both
//! together. `weir ctl save` and `weir ctl reload` work on these documents.
use super::{SwitchArgs, SwitchSettings};
use anyhow::{Context, bail};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args as _};
use std::path::Path;
use toml::{Table, Value};
use weir_switch::ctl::ConfigurationSource;

/// Section of the configuration file with the settings of threads; also the heading of their options.
const THREADS: &str = "threads";
/// Options whose values are numbers in the configuration file. The others are texts.
const NUMBERS: [&str; 11] = [
    "in-band-queue",
    "in-band-vlan",
    "tables",
    "max-entries",
    "packet-in-rate",
    "packet-in-burst",
    "workers",
    "io-loop-count",
    "worker-loop-count",
    "ring-size",
    "buffers",
];

/// Returns the settings that the command line gives, as the configuration file would say them.
pub(super) fn command_line(matches: &ArgMatches) -> Table {
    let mut settings = Table::new();
    let mut threads = Table::new();
    for argument in SwitchArgs::augment_args(clap::Command::new("switch")).get_arguments() {
        let (Some(key), id) = (argument.get_long(), argument.get_id().as_str()) else { continue };
        let given =
            matches.try_contains_id(id).unwrap_or(false) && matches.value_source(id) == Some(ValueSource::CommandLine);
        if key == "config" || !given {
            continue;
        }
        let values = matches.get_raw(id).into_iter().flatten().map(|value| value.to_string_lossy());
        let mut values: Vec<Value> = values.map(|value| setting(key, &value)).collect();
        let is_list = matches!(argument.get_action(), ArgAction::Append);
        let value = if is_list { Value::Array(values) } else { values.pop().unwrap_or(Value::Boolean(true)) };
        let is_of_threads = argument.get_help_heading().is_some_and(|heading| heading.eq_ignore_ascii_case(THREADS));
        if is_of_threads { &mut threads } else { &mut settings }.insert(key.to_owned(), value);
    }
    if !threads.is_empty() {
        settings.insert(THREADS.to_owned(), Value::Table(threads));
    }
    settings
}

fn setting(key: &str, text: &str) -> Value {
    let number = NUMBERS.contains(&key).then(|| text.parse().ok()).flatten();
    number.map_or_else(|| Value::String(text.to_owned()), Value::Integer)
}

/// Settings of a configuration file, with those of the command line over them.
#[derive(Debug)]
pub(crate) struct SettingsDocument {
    /// All settings.
    pub(crate) all: Table,
}

impl SettingsDocument {
    /// Reads the text of a configuration file, and puts the command line's settings over it. `file` names the text in
    /// errors.
    ///
    /// # Errors
    /// The text is no configuration of a switch; the message has the line.
    pub(crate) fn new(text: &str, file: &Path, source: &ConfigurationSource) -> anyhow::Result<SettingsDocument> {
        SwitchSettings::parse(text, file)?;
        let mut all: Table = text.parse().with_context(|| format!("{}: cannot be read", file.display()))?;
        let over: Table = source.command_line.parse().context("the command line's settings cannot be read")?;
        for (key, value) in over {
            match (all.get_mut(&key), value) {
                (Some(Value::Table(here)), Value::Table(more)) => here.extend(more),
                (_, value) => drop(all.insert(key, value)),
            }
        }
        let both = all.to_string();
        SwitchSettings::parse(&both, file).and_then(|settings| settings.with_tls_of_file().check())?;
        Ok(SettingsDocument { all })
    }

    /// Returns the texts of a list.
    pub(crate) fn list(&self, key: &str) -> Vec<String> {
        texts(&self.all, key)
    }

    /// Returns the virtual switches that the document itself describes; `None` if it names a file with them.
    pub(crate) fn virtual_switches(&self) -> Option<Vec<Table>> {
        match self.all.get("virtual") {
            None => Some(Vec::new()),
            Some(Value::Array(items)) => Some(items.iter().filter_map(Value::as_table).cloned().collect()),
            Some(_) => None,
        }
    }
}

/// Returns true if a virtual switch of a configuration file has keys that a scenario's does not have.
pub(crate) fn has_groups_or_meters(item: &Table) -> bool {
    item.contains_key("groups") || item.contains_key("meters")
}

/// Returns the texts of a list in a table; none if it is missing.
pub(crate) fn texts(table: &Table, key: &str) -> Vec<String> {
    let values = table.get(key).and_then(Value::as_array).into_iter().flatten();
    values.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the part of a configuration file's text that describes the fabric and virtual switches, with its lines at
/// their places, so that errors name the right line. If that is not all that `wanted` has (the file may be written in
/// another way), returns `wanted` as text.
///
/// # Errors
/// `wanted` cannot be written as TOML.
pub(super) fn slicing_text(text: &str, wanted: &Table) -> anyhow::Result<String> {
    let mut inside = false;
    let lines = text.lines().map(|line| {
        if let Some(header) = line.trim_start().strip_prefix('[') {
            let name = header.trim_start_matches('[').trim_start();
            let name = name.split(['.', ']', ' ']).next().unwrap_or_default();
            inside = matches!(name, "fabric" | "virtual");
        }
        if inside { line } else { "" }
    });
    let part = lines.collect::<Vec<_>>().join("\n");
    if part.parse::<Table>().is_ok_and(|found| found == *wanted) {
        return Ok(part);
    }
    toml::to_string(wanted).context("the virtual switches cannot be written down")
}

/// Checks that the virtual switches of a configuration file have names, each once.
///
/// # Errors
/// A message with the name.
pub(super) fn check_names(items: &[Table]) -> anyhow::Result<()> {
    let mut names: Vec<&str> = items.iter().filter_map(|item| item.get("name")).filter_map(Value::as_str).collect();
    if names.len() < items.len() {
        bail!("virtual: found one without a name; give each a name");
    }
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => bail!("virtual: found {} twice; give each its own name", pair[0]),
        None => Ok(()),
    }
}

/// Returns true if a text describes a network rather than one switch.
pub(super) fn is_scenario(text: &str) -> bool {
    let is_list = |table: &Table, key: &str| table.get(key).is_some_and(Value::is_array);
    text.parse::<Table>().is_ok_and(|table| {
        table.contains_key("topology") || ["switch", "host", "link"].iter().any(|key| is_list(&table, key))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches as _};

    fn given(arguments: &[&str]) -> (ArgMatches, Table) {
        let command = SwitchArgs::augment_args(Command::new("switch"));
        let matches = command.get_matches_from(std::iter::once(&"switch").chain(arguments));
        let table = command_line(&matches);
        (matches, table)
    }

    #[test]
    fn the_command_line_is_said_in_the_words_of_the_file() {
        let (matches, table) = given(&[
            "--config",
            "x.toml",
            "--name",
            "5",
            "--port",
            "1=null:a",
            "--port",
            "null:b",
            "--versions",
            "1.3,1.0",
            "--tables",
            "8",
            "--workers",
            "2",
            "--mode",
            "pipeline",
            "--fail-mode",
            "standalone",
            "--spin",
            "0",
        ]);
        let text = table.to_string();
        assert_eq!(table["name"], Value::from("5"), "{text}");
        assert_eq!((&table["tables"], &table[THREADS]["workers"]), (&Value::from(8), &Value::from(2)), "{text}");
        assert_eq!(texts(&table, "versions"), ["1.3", "1.0"]);
        assert!(!table.contains_key("config"), "{text}");
        let said = SwitchArgs::from_arg_matches(&matches).unwrap().settings;
        let read = SwitchSettings::parse(&text, Path::new("x")).unwrap();
        assert_eq!((read.name, read.port, read.versions), (said.name, said.port, said.versions));
    }

    /// Every option has to be a key of the file, a number where the file has one.
    #[test]
    fn every_option_is_a_key() {
        for argument in SwitchArgs::augment_args(Command::new("switch")).get_arguments() {
            let key = argument.get_long().unwrap();
            let file_only = ["config"];
            if file_only.contains(&key) {
                continue;
            }
            let heading = argument.get_help_heading().map(|_| "[threads]\n").unwrap_or_default();
            let text = format!("{heading}{key} = false");
            let error = SwitchSettings::parse(&text, Path::new("x")).err().map(|error| error.to_string());
            let error = error.unwrap_or_default();
            assert!(!error.contains("unknown field"), "{key}: {error}");
            let text = format!("{heading}{key} = 1");
            let is_number = SwitchSettings::parse(&text, Path::new("x")).is_ok();
            assert_eq!(is_number, NUMBERS.contains(&key), "{key}");
        }
    }

    #[test]
    fn the_command_line_lies_over_the_file() {
        let source = ConfigurationSource {
            command_line: "port = ['1=null:x']\n[threads]\nworkers = 1\n".to_owned(),
            ..ConfigurationSource::default()
        };
        let text = "name = 's1'\nport = ['2=null:y']\nentry = ['actions=drop']\n[threads]\nring-size = 64\n";
        let both = SettingsDocument::new(text, Path::new("x"), &source).unwrap();
        assert_eq!((both.list("port"), both.list("entry")), (vec!["1=null:x".into()], vec!["actions=drop".into()]));
        assert_eq!(both.all[THREADS]["ring-size"], Value::from(64));
        let broken = SettingsDocument::new("name = 's1'\nprot = []\n", Path::new("x.toml"), &source).unwrap_err();
        assert!(broken.to_string().starts_with("x.toml:2: unknown field `prot`"), "{broken}");
    }

    #[test]
    fn lines_of_virtual_switches_keep_their_numbers() {
        let text = "name = 's1'\n[fabric]\nspeedup = 2\n[threads]\nworkers = 1\n[[virtual]]\nname = 'gold'\n";
        let wanted: Table = "virtual = [{name='gold'}]\nfabric = {speedup=2}".parse().unwrap();
        assert_eq!(slicing_text(text, &wanted).unwrap().lines().nth(6), Some("name = 'gold'"));
        let inline = "virtual = [{name='gold'}]\nfabric = {speedup=2}\n";
        assert_eq!(slicing_text(inline, &wanted).unwrap().parse::<Table>().unwrap(), wanted);
    }
}
