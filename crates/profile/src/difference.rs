//! Compares two profiles.
use crate::{ParameterValue, Profile, ProfileParameter};
use serde::Serialize;
use std::collections::BTreeSet;

/// Parameter in which two profiles differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParameterDifference {
    /// Key of the parameter.
    pub key: String,
    /// Parameter in the first profile; none if it is missing there.
    pub left: Option<ProfileParameter>,
    /// Parameter in the second profile; none if it is missing there.
    pub right: Option<ProfileParameter>,
    /// Difference of the second from the first, as a share of the first; none if either is not a number, or the first
    /// is 0.
    pub relative: Option<f64>,
    /// True if the intervals of both values overlap; none if an interval is missing.
    pub overlap: Option<bool>,
}

/// Returns the parameters in which two profiles differ, in the order of the first, then of the second.
pub fn differences(left: &Profile, right: &Profile) -> Vec<ParameterDifference> {
    let (left, right) = (left.parameters(), right.parameters());
    let mut seen = BTreeSet::new();
    let keys = left.iter().chain(&right).map(|parameter| parameter.key.as_str()).filter(|key| seen.insert(*key));
    let find = |list: &[ProfileParameter], key: &str| list.iter().find(|parameter| parameter.key == key).cloned();
    keys.filter_map(|key| difference(key, find(&left, key), find(&right, key))).collect()
}

fn difference(
    key: &str,
    left: Option<ProfileParameter>,
    right: Option<ProfileParameter>,
) -> Option<ParameterDifference> {
    let value = |side: &Option<ProfileParameter>| side.as_ref().map(|parameter| parameter.value.clone());
    if value(&left) == value(&right) {
        return None;
    }
    let number =
        |side: &Option<ProfileParameter>| side.as_ref().and_then(|parameter| ParameterValue::number(&parameter.value));
    let interval = |side: &Option<ProfileParameter>| side.as_ref()?.evidence.as_ref()?.interval;
    let relative = match (number(&left), number(&right)) {
        (Some(left), Some(right)) if left != 0.0 => Some((right - left) / left),
        _ => None,
    };
    let overlap = match (interval(&left), interval(&right)) {
        (Some([low, high]), Some([from, to])) => Some(low <= to && from <= high),
        _ => None,
    };
    Some(ParameterDifference { key: key.to_owned(), left, right, relative, overlap })
}
