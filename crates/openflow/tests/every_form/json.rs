//! Tests the JSON that `weir ctl dump-flows --json` and similar commands print: parsing its text gives the model's
//! values, and different values have different JSON.
use crate::entries::{flow_stats, group_desc, meter_config};
use proptest::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};
use weir_openflow::model::multipart::FlowStats;
use weir_openflow::model::{Action, Bytes, Instruction, MatchField};

/// Returns the value of a JSON number or of a string such as `"0x12"`.
fn number(value: &Value) -> Option<u128> {
    match value {
        Value::String(text) => u128::from_str_radix(text.strip_prefix("0x")?, 16).ok(),
        value => value.as_u64().map(u128::from),
    }
}

fn bytes(value: &Value) -> Option<Bytes> {
    let digits = value.as_str()?;
    let pairs = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok());
    pairs.collect::<Option<Vec<u8>>>().map(Bytes)
}

/// Parses a match field from JSON.
fn field(value: &Value) -> Option<MatchField> {
    use weir_openflow::model::matching::RawField;
    if let Some(known) = value.get("Known") {
        return Some(MatchField::Known {
            field: known["field"].as_str()?.parse().ok()?,
            value: number(&known["value"])?,
            mask: if known["mask"].is_null() { None } else { Some(number(&known["mask"])?) },
        });
    }
    let raw = value.get("Raw")?;
    Some(MatchField::Raw(RawField {
        class: u16::try_from(number(&raw["class"])?).ok()?,
        number: u8::try_from(number(&raw["number"])?).ok()?,
        has_mask: raw["has_mask"].as_bool()?,
        payload: bytes(&raw["payload"])?,
    }))
}

/// Returns the value after printing it as JSON and parsing the text.
fn printed(value: &impl Serialize) -> Value {
    let told = json!(value);
    let read = serde_json::from_str(&told.to_string()).unwrap();
    assert_eq!(told, read);
    read
}

/// Compares the fields that set-fields in the JSON set.
fn set_fields(stats: &FlowStats, told: &Value) -> Result<(), TestCaseError> {
    for (instruction, told) in stats.instructions.iter().zip(told["instructions"].as_array().unwrap()) {
        let Instruction::ApplyActions(actions) = instruction else { continue };
        for (action, told) in actions.iter().zip(told["ApplyActions"].as_array().unwrap()) {
            if let Action::SetField { field, value } = action {
                prop_assert_eq!(told["SetField"]["field"].as_str(), Some(field.name()));
                prop_assert_eq!(number(&told["SetField"]["value"]), Some(*value));
            }
        }
    }
    Ok(())
}

/// Returns `one` with one part replaced by that of `other`.
fn with_part_of(mut one: FlowStats, other: &FlowStats, part: usize) -> FlowStats {
    let other = other.clone();
    match part {
        0 => one.table = other.table,
        1 => one.duration_sec = other.duration_sec,
        2 => one.duration_nsec = other.duration_nsec,
        3 => one.priority = other.priority,
        4 => one.idle_timeout = other.idle_timeout,
        5 => one.hard_timeout = other.hard_timeout,
        6 => one.flags = other.flags,
        7 => one.importance = other.importance,
        8 => one.cookie = other.cookie,
        9 => one.packet_count = other.packet_count,
        10 => one.byte_count = other.byte_count,
        11 => one.more = other.more,
        12 => one.matching = other.matching,
        _ => one.instructions = other.instructions,
    }
    one
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_entry_is_read_from_json(stats in flow_stats()) {
        let told = printed(&stats);
        let matching: Option<Vec<_>> = told["matching"].as_array().unwrap().iter().map(field).collect();
        prop_assert_eq!(matching, Some(stats.matching.fields.clone()), "{}", told);
        set_fields(&stats, &told)?;
        let numbers = [
            ("table", u128::from(stats.table.0)),
            ("duration_sec", stats.duration_sec.into()),
            ("duration_nsec", stats.duration_nsec.into()),
            ("priority", stats.priority.into()),
            ("idle_timeout", stats.idle_timeout.into()),
            ("hard_timeout", stats.hard_timeout.into()),
            ("flags", stats.flags.0.into()),
            ("importance", stats.importance.into()),
            ("cookie", stats.cookie.into()),
            ("packet_count", stats.packet_count.into()),
            ("byte_count", stats.byte_count.into()),
        ];
        for (key, expected) in numbers {
            prop_assert_eq!(number(&told[key]), Some(expected), "{}", key);
        }
    }

    /// Changing any part of an entry changes its JSON.
    #[test]
    fn entries_that_differ_have_other_json(one in flow_stats(), other in flow_stats(), part in 0_usize..14) {
        let changed = with_part_of(one.clone(), &other, part);
        prop_assert_eq!(printed(&one) == printed(&changed), one == changed);
    }

    #[test]
    fn groups_that_differ_have_other_json(one in group_desc(), other in group_desc(), part in 0_usize..9, place in any::<prop::sample::Index>()) {
        let told = printed(&one);
        prop_assert_eq!(number(&told["group"]), Some(one.group.0.into()));
        prop_assert_eq!(told["buckets"].as_array().unwrap().len(), one.buckets.len());
        let mut changed = one.clone();
        match part {
            0 => changed.kind = other.kind,
            1 => changed.group = other.group,
            2 => changed.properties = other.properties,
            part => {
                if one.buckets.is_empty() || other.buckets.is_empty() {
                    return Ok(());
                }
                let at = place.index(one.buckets.len());
                let from = place.get(&other.buckets).clone();
                let bucket = &mut changed.buckets[at];
                match part {
                    3 => bucket.id = from.id,
                    4 => bucket.weight = from.weight,
                    5 => bucket.watch_port = from.watch_port,
                    6 => bucket.watch_group = from.watch_group,
                    7 => bucket.actions = from.actions,
                    _ => bucket.properties = from.properties,
                }
            }
        }
        prop_assert_eq!(told == printed(&changed), one == changed);
    }

    #[test]
    fn meters_that_differ_have_other_json(one in meter_config(), other in meter_config(), part in 0_usize..5, place in any::<prop::sample::Index>()) {
        let told = printed(&one);
        prop_assert_eq!(number(&told["meter"]), Some(one.meter.0.into()));
        let mut changed = one.clone();
        match part {
            0 => changed.flags = other.flags,
            1 => changed.meter = other.meter,
            part => {
                if one.bands.is_empty() || other.bands.is_empty() {
                    return Ok(());
                }
                let at = place.index(one.bands.len());
                let from = place.get(&other.bands).clone();
                let band = &mut changed.bands[at];
                match part {
                    2 => band.rate = from.rate,
                    3 => band.burst_size = from.burst_size,
                    _ => band.kind = from.kind,
                }
            }
        }
        prop_assert_eq!(told == printed(&changed), one == changed);
    }
}
