//! Laws of service times.
use super::{Checked, Source};
use crate::ServiceTime;
use crate::document::Law;
use std::ops::Range;
use toml::{Table, Value};
use weir_traffic::{Service, Services};
use weir_units::Seconds;

/// The parameters of each law.
const LAWS: [(&str, &[&str]); 6] = [
    ("constant", &["mean"]),
    ("exponential", &["mean"]),
    ("gamma", &["mean", "scv"]),
    ("hyperexponential", &["mean", "scv", "share", "means"]),
    ("uniform", &["from", "to"]),
    ("lattice", &["values", "probs"]),
];
/// Longest time for a byte, in seconds.
const MAX_PER_BYTE_S: f64 = 1.0;

/// A service time; `what` names it in errors.
pub(super) fn service_time(source: &Source<'_>, what: &str, span: Range<usize>, law: &Law) -> Checked<ServiceTime> {
    read(law).map_err(|problem| source.error(span, format!("{what}: {problem}")))
}

fn read(law: &Law) -> Result<ServiceTime, String> {
    let (law, per_byte_s) = match law {
        Law::Time(text) => (Service::Constant(seconds(text)?), 0.0),
        Law::Table(table) => (of_table(table)?, per_byte(table)?),
    };
    Services::new(&law).map_err(|error| error.to_string())?;
    Ok(ServiceTime { law, per_byte_s })
}

fn of_table(table: &Table) -> Result<Service, String> {
    let names = || LAWS.map(|(name, _)| name).join(", ");
    let name = match table.get("law") {
        Some(Value::String(name)) => name.as_str(),
        Some(other) => return Err(format!("law: found {other}, expected one of {}", names())),
        None => return Err(format!("found no `law`, expected one of {}", names())),
    };
    let parameters = LAWS.iter().find(|(known, _)| *known == name).map(|(_, parameters)| *parameters);
    let parameters = parameters.ok_or_else(|| format!("law: found `{name}`, expected one of {}", names()))?;
    let is_known = |key: &&String| !["law", "per_byte"].contains(&key.as_str()) && !parameters.contains(&key.as_str());
    if let Some(extra) = table.keys().find(is_known) {
        return Err(format!("law {name}: found `{extra}`, expected {} and per_byte", parameters.join(", ")));
    }
    match name {
        "constant" => Ok(Service::Constant(time(table, "mean")?)),
        "exponential" => Ok(Service::Exponential(time(table, "mean")?)),
        "gamma" => Ok(Service::Gamma { mean_s: time(table, "mean")?, scv: number(table, "scv")? }),
        "uniform" => Ok(Service::Uniform { from_s: time(table, "from")?, to_s: time(table, "to")? }),
        "lattice" => lattice(table),
        _ => hyperexponential(table),
    }
}

fn hyperexponential(table: &Table) -> Result<Service, String> {
    if table.contains_key("means") {
        if table.contains_key("mean") || table.contains_key("scv") {
            return Err("law hyperexponential: expected either mean and scv, or share and means".to_owned());
        }
        let Ok(means_s) = <[f64; 2]>::try_from(times(table, "means")?) else {
            return Err("means: expected two times, such as [\"1ms\", \"10ms\"]".to_owned());
        };
        return Ok(Service::Hyperexponential { share: number(table, "share")?, means_s });
    }
    let scv = number(table, "scv")?;
    if !(scv > 1.0 && scv <= 1e6) {
        return Err(format!("scv: found {scv}, expected more than 1 for law hyperexponential: gamma has the others"));
    }
    Ok(Service::balanced(time(table, "mean")?, scv))
}

fn lattice(table: &Table) -> Result<Service, String> {
    let values = times(table, "values")?;
    let weights = match table.get("probs") {
        Some(Value::Array(items)) => {
            items.iter().map(|item| as_number(item).ok_or_else(|| wrong("probs", item, "numbers")))
        }
        Some(other) => return Err(wrong("probs", other, "a list of numbers, one for each value")),
        None => return Err("law lattice: found no `probs`, expected a list of numbers, one for each value".to_owned()),
    };
    let weights = weights.collect::<Result<Vec<f64>, String>>()?;
    if weights.len() != values.len() {
        return Err(format!("probs: found {} numbers, expected {}: one for each value", weights.len(), values.len()));
    }
    Ok(Service::Lattice(values.into_iter().zip(weights).collect()))
}

fn per_byte(table: &Table) -> Result<f64, String> {
    if !table.contains_key("per_byte") {
        return Ok(0.0);
    }
    let s = time(table, "per_byte")?;
    if s > MAX_PER_BYTE_S { Err(format!("per_byte: found {s} s, expected at most {MAX_PER_BYTE_S} s")) } else { Ok(s) }
}

fn wrong(key: &str, found: &Value, expected: &str) -> String {
    format!("{key}: found {found}, expected {expected}")
}

fn seconds(text: &str) -> Result<f64, String> {
    text.parse::<Seconds>().map(|time| time.0).map_err(|error| error.to_string())
}

fn time_of(key: &str, value: &Value) -> Result<f64, String> {
    match value {
        Value::String(text) => seconds(text).map_err(|problem| format!("{key}: {problem}")),
        other => Err(wrong(key, other, "a time with its unit, such as \"7.5ms\"")),
    }
}

fn time(table: &Table, key: &str) -> Result<f64, String> {
    let missing = || format!("found no `{key}`, expected a time such as \"7.5ms\"");
    time_of(key, table.get(key).ok_or_else(missing)?)
}

fn times(table: &Table, key: &str) -> Result<Vec<f64>, String> {
    match table.get(key) {
        Some(Value::Array(items)) => items.iter().map(|item| time_of(key, item)).collect(),
        Some(other) => Err(wrong(key, other, "a list of times, such as [\"4ms\", \"8ms\"]")),
        None => Err(format!("found no `{key}`, expected a list of times, such as [\"4ms\", \"8ms\"]")),
    }
}

fn as_number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

fn number(table: &Table, key: &str) -> Result<f64, String> {
    let value = table.get(key).ok_or_else(|| format!("found no `{key}`, expected a number"))?;
    as_number(value).ok_or_else(|| wrong(key, value, "a number"))
}
