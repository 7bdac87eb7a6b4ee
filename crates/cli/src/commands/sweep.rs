//! Sweeps: creates one scenario for each combination of swept values. Used by all verbs that answer a scenario
//! without running it.
use anyhow::{Context, anyhow, ensure};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use toml::Value;
use weir_scenario::Scenario;
use weir_units::counted;

/// Maximum number of points in a sweep.
const MAX_POINTS: usize = 100_000;

/// A key of the scenario file and the values that replace its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParameterSweep {
    key: String,
    steps: Vec<KeyPathElement>,
    values: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq)]
enum KeyPathElement {
    Key(String),
    Index(usize),
}

/// Replaced keys with their new values.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct SweptValues(pub(crate) BTreeMap<String, Value>);

impl SweptValues {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names the values of all keys but one, each behind a comma.
    pub(crate) fn without(&self, key: &str) -> String {
        let others = self.0.iter().filter(|(other, _)| other.as_str() != key);
        others.map(|(other, value)| format!(", {other} {}", plain(value))).collect()
    }
}

/// Returns the key with the most values, the first of several: the horizontal axis of charts.
pub(crate) fn key_with_most_values<'a>(points: impl Iterator<Item = &'a SweptValues>) -> String {
    let mut values: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (key, value) in points.flat_map(|point| &point.0) {
        values.entry(key).or_default().insert(plain(value));
    }
    values.iter().rev().max_by_key(|(_, values)| values.len()).map_or_else(String::new, |(key, _)| (*key).to_owned())
}

impl fmt::Display for SweptValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (key, value) in &self.0 {
            write!(f, "{}{key} = {}", if std::mem::take(&mut first) { "" } else { ", " }, plain(value))?;
        }
        Ok(())
    }
}

/// Formats a value for output: strings without quotes.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl ParameterSweep {
    /// Returns the swept key.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

impl FromStr for ParameterSweep {
    type Err = String;

    fn from_str(text: &str) -> Result<ParameterSweep, String> {
        let expected = "expected KEY=A,B,C or KEY=FROM..TO:STEP, such as link[0].rate=10Mbit/s..100Mbit/s:10Mbit/s";
        let (key, values) = text.split_once('=').ok_or_else(|| format!("found `{text}`, {expected}"))?;
        let (key, values) = (key.trim(), values.trim());
        let steps =
            steps(key).ok_or_else(|| format!("found key `{key}`, expected one such as switch[0].fabric.rate"))?;
        let values = match values.split_once("..") {
            Some((from, rest)) => range(from, rest).ok_or_else(|| format!("found `{values}`, {expected}"))?,
            None => values.split(',').map(|value| value_of(value.trim())).collect(),
        };
        if values.is_empty() || values.len() > MAX_POINTS {
            return Err(format!("found {} values, expected 1 to {MAX_POINTS}", values.len()));
        }
        Ok(ParameterSweep { key: key.to_owned(), steps, values })
    }
}

fn steps(key: &str) -> Option<Vec<KeyPathElement>> {
    let mut steps = Vec::new();
    for part in key.split('.') {
        let (name, mut rest) = part.find('[').map_or((part, ""), |at| part.split_at(at));
        if name.is_empty() {
            return None;
        }
        steps.push(KeyPathElement::Key(name.to_owned()));
        while let Some(inner) = rest.strip_prefix('[') {
            let (index, after) = inner.split_once(']')?;
            steps.push(KeyPathElement::Index(index.parse().ok()?));
            rest = after;
        }
        if !rest.is_empty() {
            return None;
        }
    }
    Some(steps)
}

/// Parses a TOML value. Text that is no TOML value becomes a string.
fn value_of(text: &str) -> Value {
    let parsed = toml::from_str::<toml::Table>(&format!("value = {text}")).ok();
    parsed.and_then(|mut table| table.remove("value")).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Parses `FROM..TO:STEP`, ends included. All three numbers must have the same unit.
fn range(from: &str, rest: &str) -> Option<Vec<Value>> {
    let (to, step) = rest.split_once(':')?;
    let ((from, unit), (to, unit_to), (step, unit_step)) = (number(from)?, number(to)?, number(step)?);
    if unit != unit_to || unit != unit_step || step <= 0.0 || to < from {
        return None;
    }
    let count = ((to - from) / step + 1e-9).floor() + 1.0;
    if count > MAX_POINTS as f64 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked, and not below 1")]
    let values = (0..count as u64).map(|n| {
        // Rounded, because sums of fractions leave an error in the last digits.
        let value = ((from + step * n as f64) * 1e9).round() / 1e9;
        value_of(&format!("{value}{unit}"))
    });
    Some(values.collect())
}

fn number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then_some((number, &text[end..]))
}

/// Returns the scenarios for all combinations of the sweeps' values, or the file's own scenario without sweeps.
pub(crate) fn points(file: &Path, sweeps: &[ParameterSweep]) -> anyhow::Result<Vec<(SweptValues, Scenario)>> {
    let scenario = Scenario::read(file)?;
    if sweeps.is_empty() {
        return Ok(vec![(SweptValues::default(), scenario)]);
    }
    let count = sweeps.iter().try_fold(1usize, |count, sweep| count.checked_mul(sweep.values.len()));
    ensure!(count.is_some_and(|count| count <= MAX_POINTS), "--sweep: expected at most {MAX_POINTS} points in all");
    let text = weir_units::read_text(file).with_context(|| format!("cannot read {}", file.display()))?;
    let document: toml::Table = toml::from_str(&text)?;
    let mut points = vec![(SweptValues::default(), document)];
    for sweep in sweeps {
        let mut next = Vec::new();
        for (point, document) in points {
            for value in &sweep.values {
                let (mut point, mut document) = (point.clone(), document.clone());
                replace(&mut document, sweep, value.clone())?;
                point.0.insert(sweep.key.clone(), value.clone());
                next.push((point, document));
            }
        }
        points = next;
    }
    let read = |(point, document): (SweptValues, toml::Table)| {
        let text = toml::to_string(&document)?;
        // The error omits line numbers, which would refer to the rewritten text; the swept values identify the place.
        let mut scenario = Scenario::parse(&text, &file.display().to_string())
            .map_err(|error| anyhow!("--sweep: with {point}: {}", error.problem()))?;
        scenario.streams.iter_mut().for_each(|stream| stream.line = None);
        Ok((point, scenario))
    };
    points.into_iter().map(read).collect()
}

fn replace(document: &mut toml::Table, sweep: &ParameterSweep, value: Value) -> anyhow::Result<()> {
    let mut whole = Value::Table(std::mem::take(document));
    let replaced =
        set(&mut whole, &sweep.steps, &value).map_err(|problem| anyhow!("--sweep: {}: {problem}", sweep.key));
    if let Value::Table(table) = whole {
        *document = table;
    }
    replaced
}

/// Sets the value at the path `steps` below `at`.
fn set(at: &mut Value, steps: &[KeyPathElement], value: &Value) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else {
        *at = value.clone();
        return Ok(());
    };
    match (step, at) {
        (KeyPathElement::Key(name), Value::Table(table)) if rest.is_empty() => {
            table.insert(name.clone(), value.clone());
            Ok(())
        }
        (KeyPathElement::Key(name), Value::Table(table)) => {
            let next = table.get_mut(name).ok_or_else(|| format!("the file has no `{name}` there"))?;
            set(next, rest, value)
        }
        (KeyPathElement::Index(index), Value::Array(items)) => {
            let count = items.len();
            let item = items.get_mut(*index).ok_or_else(|| {
                let known = match count {
                    0 => String::new(),
                    1 => ", [0]".to_owned(),
                    _ => format!(", [0] to [{}]", count - 1),
                };
                format!("found [{index}], but the list has {}{known}", counted(count, "item", "items"))
            })?;
            set(item, rest, value)
        }
        (KeyPathElement::Key(name), Value::Array(items)) => {
            // A list without an index: sets every item that has the key, or every item if none has it.
            let says = |item: &Value| item.get(name).is_some();
            let all = !items.iter().any(says);
            items.iter_mut().filter(|item| all || says(item)).try_for_each(|item| set(item, steps, value))
        }
        (KeyPathElement::Key(name), _) => Err(format!("`{name}` is asked of what is no table")),
        (KeyPathElement::Index(index), _) => Err(format!("[{index}] is asked of what is no list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        text.parse::<ParameterSweep>().unwrap().values.iter().map(plain).collect()
    }

    #[test]
    fn lists_and_ranges_are_read() {
        assert_eq!(values("seed=1,2,5"), ["1", "2", "5"]);
        assert_eq!(values("switch[0].virtual[1].quantum=1500..4500:1500"), ["1500", "3000", "4500"]);
        assert_eq!(values("link[0].rate=10Mbit/s..30Mbit/s:10Mbit/s"), ["10Mbit/s", "20Mbit/s", "30Mbit/s"]);
        assert_eq!(values("stream[0].load=0.1..0.3:0.1"), ["0.1", "0.2", "0.3"]);
        assert_eq!(values("switch[0].fabric.discipline=drr,strict-priority"), ["drr", "strict-priority"]);
    }

    #[test]
    fn what_is_no_sweep_is_refused() {
        for wrong in [
            "seed",
            "=1",
            "a[x]=1",
            "a[0=1",
            "a..b=1",
            "a=1..2",
            "a=1..2:0",
            "a=3..1:1",
            "a=1kB..2MB:1kB",
            "a=0..1:1e-9",
        ] {
            assert!(wrong.parse::<ParameterSweep>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_list_without_a_number_is_every_item_that_says_it() {
        let text = "[[a]]\nc = 1\n[[a]]\nd = 1\n[[a]]\nc = 2\n";
        let after = |key: &str| {
            let mut document: toml::Table = toml::from_str(text).unwrap();
            replace(&mut document, &format!("{key}=7").parse().unwrap(), Value::Integer(7)).unwrap();
            let item = |item: &Value, key| item.get(key).and_then(Value::as_integer);
            let items = document["a"].as_array().unwrap();
            items.iter().map(|one| ["c", "d", "e"].map(|key| item(one, key))).collect::<Vec<_>>()
        };
        assert_eq!(after("a.c"), [[Some(7), None, None], [None, Some(1), None], [Some(7), None, None]]);
        let everywhere = [[Some(1), None, Some(7)], [None, Some(1), Some(7)], [Some(2), None, Some(7)]];
        assert_eq!(after("a.e"), everywhere);
    }

    /// Returns the sweeps in the command blocks of a page, each with the file that it is for.
    fn documented(page: &str) -> Vec<(String, Vec<ParameterSweep>)> {
        let commands = page.lines().filter(|line| line.contains("weir ") && line.contains(" --sweep "));
        let read = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_matches('\'')).collect();
            let file = words.iter().find(|word| word.starts_with("examples/"))?;
            let sweeps = words.windows(2).filter(|pair| pair[0] == "--sweep");
            Some(((*file).to_owned(), sweeps.map(|pair| pair[1].parse().expect(line)).collect()))
        };
        commands.filter_map(read).collect()
    }

    #[test]
    fn sweeps_in_the_documents_work() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folder = |name: &str| std::fs::read_dir(root.join(name)).unwrap().map(|entry| entry.unwrap().path());
        let is_text = |path: &std::path::PathBuf| path.extension().is_some_and(|kind| kind == "md" || kind == "toml");
        let pages = folder("docs/guide").chain(folder("examples")).filter(is_text);
        let sweeps: Vec<_> = pages.flat_map(|page| documented(&std::fs::read_to_string(page).unwrap())).collect();
        assert!(sweeps.len() > 4, "only {} sweeps are documented", sweeps.len());
        for (file, sweeps) in sweeps {
            points(&root.join(&file), &sweeps).unwrap_or_else(|error| panic!("{file}: {error:#}"));
        }
    }

    #[test]
    fn values_are_replaced_where_they_are() {
        let mut document: toml::Table = toml::from_str("[[a]]\n[[a.b]]\nc = 1\n[[a.b]]\nc = 2\n").unwrap();
        let sweep: ParameterSweep = "a[0].b[1].c=7".parse().unwrap();
        replace(&mut document, &sweep, Value::Integer(7)).unwrap();
        assert_eq!(document["a"][0]["b"][1]["c"].as_integer(), Some(7));
        for wrong in ["x.y=1", "a[1].b[0].c=1", "a[0].b.x.c=1", "a[0].b[0].c.d=1"] {
            let sweep: ParameterSweep = wrong.parse().unwrap();
            assert!(replace(&mut document, &sweep, Value::Integer(1)).is_err(), "{wrong}");
        }
        for (wrong, problem) in [
            ("a[1].b[0].c=1", "a[1].b[0].c: found [1], but the list has 1 item, [0]"),
            ("a[0].b[2].c=1", "a[0].b[2].c: found [2], but the list has 2 items, [0] to [1]"),
        ] {
            let error = replace(&mut document, &wrong.parse().unwrap(), Value::Integer(1)).unwrap_err().to_string();
            assert_eq!(error, format!("--sweep: {problem}"));
        }
    }
}
