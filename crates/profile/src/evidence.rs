//! Reads the evidence for parameters' values. Any value of a profile may be written alone, or as `{ value = ..,
//! interval = [.., ..], r2 = .., residual = .., samples = .., note = ".." }`; laws have these keys besides their own.
//! The keys are removed before the rest is read, so that all values have one form.
use crate::check::{Checked, SpannedProblem};
use crate::number::NumberOrTime;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// Keys of a value's evidence.
const KEYS: [&str; 5] = ["interval", "r2", "residual", "samples", "note"];
/// Most levels of nested tables.
const MAX_DEPTH: usize = 16;

/// Evidence for a value.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Evidence {
    /// Interval of the true value with 95 % confidence, in the parameter's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Share of the variance that the fit explains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r2: Option<f64>,
    /// Median relative deviation of the measurements from the fit. It distinguishes a constant law, which explains no
    /// variance, from one that explains nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residual: Option<f64>,
    /// Number of samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Source of the value, and remarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[derive(Deserialize)]
struct EvidenceToml {
    interval: Option<Spanned<[NumberOrTime; 2]>>,
    r2: Option<Spanned<f64>>,
    residual: Option<Spanned<f64>>,
    samples: Option<Spanned<u64>>,
    note: Option<Spanned<String>>,
}

/// Evidence by parameter key, with its position in the file.
pub(crate) type EvidenceByKey = BTreeMap<String, (Evidence, Range<usize>)>;

/// Removes all evidence from a table, and collects it in `found`.
pub(crate) fn take(table: &mut DeTable<'_>, path: &str, depth: usize, found: &mut EvidenceByKey) -> Checked<()> {
    for (key, value) in table.iter_mut() {
        let path = if path.is_empty() { key.get_ref().to_string() } else { format!("{path}.{}", key.get_ref()) };
        take_value(value, &path, depth, found)?;
    }
    Ok(())
}

fn take_value(value: &mut Spanned<DeValue<'_>>, path: &str, depth: usize, found: &mut EvidenceByKey) -> Checked<()> {
    let span = value.span();
    if depth > MAX_DEPTH {
        let text = format!("{path}: found more than {MAX_DEPTH} tables in each other, expected a profile");
        return Err(SpannedProblem { span, text });
    }
    match value.as_mut() {
        DeValue::Table(table) if table.contains_key("value") || table.contains_key("law") => {
            if let Some(evidence) = take_keys(table, path)? {
                found.insert(path.to_owned(), (evidence, span.clone()));
            }
            let Some(inner) = table.remove("value") else { return Ok(()) };
            if let Some((key, _)) = table.iter().next() {
                let expected = format!("expected value, {}", KEYS.join(", "));
                return Err(SpannedProblem {
                    span: key.span(),
                    text: format!("{path}: found `{}`, {expected}", key.get_ref()),
                });
            }
            *value = inner;
            Ok(())
        }
        DeValue::Table(table) => take(table, path, depth + 1, found),
        DeValue::Array(items) => items
            .iter_mut()
            .enumerate()
            .try_for_each(|(at, item)| take_value(item, &format!("{path}{}", at + 1), depth + 1, found)),
        _ => Ok(()),
    }
}

/// Removes the evidence of one value.
fn take_keys(table: &mut DeTable<'_>, path: &str) -> Checked<Option<Evidence>> {
    let mut taken = DeTable::new();
    for key in KEYS {
        if let Some((name, value)) = table.remove_entry(key) {
            taken.insert(name, value);
        }
    }
    if taken.is_empty() {
        return Ok(None);
    }
    let whole = taken.values().next().map_or(0..0, Spanned::span);
    let spanned = Spanned::new(whole.clone(), DeValue::Table(taken));
    let written = EvidenceToml::deserialize(ValueDeserializer::from(spanned)).map_err(|error| SpannedProblem {
        span: error.span().unwrap_or(whole),
        text: format!("{path}: {}", weir_units::reworded(error.message(), &[])),
    })?;
    written.checked(path).map(Some)
}

impl EvidenceToml {
    fn checked(self, path: &str) -> Checked<Evidence> {
        let wrong = |span, text: String| Err(SpannedProblem { span, text: format!("{path}: {text}") });
        if let Some(interval) = &self.interval {
            let [low, high] = interval.as_ref();
            if !(low.0.is_finite() && high.0.is_finite() && low.0 <= high.0) {
                let found = format!("interval: found {} to {}, expected the lower end first", low.0, high.0);
                return wrong(interval.span(), found);
            }
        }
        if let Some(r2) = self.r2.as_ref().filter(|r2| !(r2.as_ref().is_finite() && *r2.as_ref() <= 1.0)) {
            return wrong(r2.span(), format!("r2: found {}, expected at most 1", r2.as_ref()));
        }
        if let Some(wide) =
            self.residual.as_ref().filter(|share| !(share.as_ref().is_finite() && *share.as_ref() >= 0.0))
        {
            return wrong(wide.span(), format!("residual: found {}, expected a share, 0 or more", wide.as_ref()));
        }
        if let Some(none) = self.samples.as_ref().filter(|samples| *samples.as_ref() == 0) {
            return wrong(none.span(), "samples: found 0, expected 1 or more, or no `samples`".to_owned());
        }
        if let Some(long) = self.note.as_ref().filter(|note| note.as_ref().len() > crate::MAX_TEXT) {
            return wrong(long.span(), format!("note: expected at most {} bytes", crate::MAX_TEXT));
        }
        Ok(Evidence {
            interval: self.interval.map(|interval| interval.into_inner().map(|end| end.0)),
            r2: self.r2.map(Spanned::into_inner),
            residual: self.residual.map(Spanned::into_inner),
            samples: self.samples.map(Spanned::into_inner),
            note: self.note.map(Spanned::into_inner),
        })
    }
}
