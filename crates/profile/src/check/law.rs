//! Reads laws of service times.
use crate::ServiceTime;
use crate::written;
use toml::{Table, Value};
use weir_model::{Law, ModelError};
use weir_units::Seconds;

/// Parameters of each law.
const LAWS: [(&str, &[&str]); 6] = [
    ("constant", &["mean"]),
    ("exponential", &["mean"]),
    ("gamma", &["mean", "scv"]),
    ("hyperexponential", &["mean", "scv", "share", "means"]),
    ("uniform", &["from", "to"]),
    ("lattice", &["values", "probs"]),
];
/// Longest service time, in seconds.
pub const MAX_SERVICE_S: f64 = 3600.0;
/// Largest squared coefficient of variation: with larger ones no formula converges.
pub(crate) const MAX_SCV: f64 = 1e6;
/// Longest time for a byte, in seconds.
const MAX_PER_BYTE_S: f64 = 1.0;

/// Reads a service time, or returns what is wrong with it.
pub(crate) fn read(law: &written::LawToml) -> Result<ServiceTime, String> {
    match law {
        written::LawToml::Time(text) => Ok(ServiceTime { law: constant(seconds(text)?)?, per_byte_s: 0.0 }),
        written::LawToml::Table(table) => Ok(ServiceTime { law: of_table(table)?, per_byte_s: per_byte(table)? }),
    }
}

fn of_table(table: &Table) -> Result<Option<Law>, String> {
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
        "constant" => constant(time(table, "mean")?),
        "exponential" => law(Law::exponential(time(table, "mean")?)),
        "gamma" => law(Law::gamma(time(table, "mean")?, scv(table)?)),
        "uniform" => uniform(time(table, "from")?, time(table, "to")?),
        "lattice" => lattice(table),
        _ => hyperexponential(table),
    }
}

/// Returns a constant law; none if the time is 0.
fn constant(s: f64) -> Result<Option<Law>, String> {
    if s == 0.0 { Ok(None) } else { law(Law::constant(s)) }
}

fn uniform(from: f64, to: f64) -> Result<Option<Law>, String> {
    if to > from {
        law(Law::uniform(from, to))
    } else {
        Err(format!("to: found {to} s, expected more than from, {from} s"))
    }
}

fn law(law: Result<Law, ModelError>) -> Result<Option<Law>, String> {
    law.map(Some).map_err(|error| error.to_string())
}

fn hyperexponential(table: &Table) -> Result<Option<Law>, String> {
    if table.contains_key("means") {
        if table.contains_key("mean") || table.contains_key("scv") {
            return Err("law hyperexponential: expected either mean and scv, or share and means".to_owned());
        }
        let Ok([first, second]) = <[f64; 2]>::try_from(times(table, "means")?) else {
            return Err("means: expected two times, such as [\"1ms\", \"10ms\"]".to_owned());
        };
        return law(Law::hyperexponential(number(table, "share")?, first, second));
    }
    law(Law::balanced(time(table, "mean")?, scv(table)?))
}

/// Reads the squared coefficient of variation; the laws themselves check its lower bound.
fn scv(table: &Table) -> Result<f64, String> {
    let scv = number(table, "scv")?;
    if scv <= MAX_SCV { Ok(scv) } else { Err(format!("scv: found {scv}, expected at most {MAX_SCV}")) }
}

fn lattice(table: &Table) -> Result<Option<Law>, String> {
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
    let total: f64 = weights.iter().sum();
    if !(total.is_finite() && total > 0.0) || weights.iter().any(|weight| *weight < 0.0) {
        return Err(format!("probs: found {total} in all, expected numbers of 0 or more, not all 0"));
    }
    let shares: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
    law(Law::lattice(&values, &shares))
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
    let s = text.parse::<Seconds>().map_err(|error| error.to_string())?.0;
    if s <= MAX_SERVICE_S { Ok(s) } else { Err(format!("found {text}, expected at most {MAX_SERVICE_S} s")) }
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
