//! Checks tables: their sizes, the costs of changes, and packet delays.
use super::reader::{Checked, SectionReader};
use crate::number::{NumberOrTime, SignedSeconds};
use crate::written::{ForwardingToml, LevelToml, PerEntryCostToml, ProfileToml};
use crate::{LevelForwarding, MAX_LEVELS};
use toml::Spanned;
use weir_model::switch::batch::CommandBatching;
use weir_model::switch::costs::{PriorityCosts, TableCosts};
use weir_model::switch::device::{self, ENTRIES_MAX, SwitchModel};
use weir_model::switch::forward::{BASE, DelaySlopes, MeasuredRange, PacketConditions};
use weir_model::switch::policy::{ATTRIBUTES, EvictionPolicy};
use weir_model::switch::speedup;
use weir_units::Seconds;

/// Most commands of a batch.
const MAX_BATCH: u32 = 65_536;
/// Most thresholds of times between packets.
const MAX_GAP_LEVELS: usize = 64;
/// Largest deviation of a single command's speed-up from 1, as rounding to a few digits causes.
const ALONE: f64 = 0.005;
/// Longest time in this file, in seconds.
const MAX_TIME_S: f64 = super::MAX_SERVICE_S;

/// Tables of a profile.
pub(super) struct CheckedLevels {
    pub(super) tables: Option<SwitchModel>,
    pub(super) names: Vec<String>,
    pub(super) forwarding: Vec<Option<LevelForwarding>>,
}

/// Checks all tables.
pub(super) fn levels(document: &ProfileToml) -> Checked<CheckedLevels> {
    let reader = SectionReader { what: String::new() };
    if document.level.is_empty() {
        return without_levels(document, &reader);
    }
    if let Some(beyond) = document.level.get(MAX_LEVELS) {
        return Err(reader.error(beyond, &format!("[[level]]: expected at most {MAX_LEVELS}")));
    }
    check_sizes(&document.level)?;
    let batching = batching(document)?;
    let mut made = CheckedLevels { tables: None, names: Vec::new(), forwarding: Vec::new() };
    let mut levels = Vec::new();
    for level in document.level.iter().map(Spanned::as_ref) {
        let reader = SectionReader { what: format!("level {}", level.name.as_ref()) };
        levels.push(device::TableLevel {
            size: level.size.as_ref().map(|size| *size.as_ref()),
            costs: costs(&reader, level, batching.most)?,
        });
        made.names.push(level.name.as_ref().clone());
        made.forwarding.push(level.forward.as_ref().map(|forward| forwarding(&reader, forward)).transpose()?);
    }
    made.tables = Some(SwitchModel { levels, batching, policy: policy(document)? });
    Ok(made)
}

fn without_levels(document: &ProfileToml, reader: &SectionReader) -> Checked<CheckedLevels> {
    let beside = [
        ("batching", document.batching.as_ref().map(|batching| batching.timeout.span())),
        ("policy", document.policy.as_ref().map(Spanned::span)),
    ];
    match beside.into_iter().find_map(|(key, span)| Some((key, span?))) {
        Some((key, span)) => {
            Err(reader.problem(span, &format!("{key}: found it without [[level]], expected one at least: whose it is")))
        }
        None => Ok(CheckedLevels { tables: None, names: Vec::new(), forwarding: Vec::new() }),
    }
}

/// Checks that sizes do not decrease from level to level, and that only the last level is unlimited.
fn check_sizes(levels: &[Spanned<LevelToml>]) -> Checked<()> {
    let mut above = 1;
    for (at, level) in levels.iter().enumerate() {
        let reader = SectionReader { what: format!("level {}", level.as_ref().name.as_ref()) };
        let Some(size) = &level.as_ref().size else {
            if at + 1 == levels.len() {
                return Ok(());
            }
            return Err(reader.error(level, "found no `size`, expected one: only the last level may be without limit"));
        };
        if !(above..=ENTRIES_MAX as u64).contains(size.as_ref()) {
            let expected = if at == 0 { "1".to_owned() } else { format!("{above}, the size of the level before it,") };
            let problem = format!("size: found {}, expected {expected} to {ENTRIES_MAX}", size.as_ref());
            return Err(reader.error(size, &problem));
        }
        above = *size.as_ref();
    }
    Ok(())
}

fn batching(document: &ProfileToml) -> Checked<CommandBatching> {
    let reader = SectionReader { what: "batching".to_owned() };
    let Some(batching) = &document.batching else { return Ok(CommandBatching::NONE) };
    let most = *batching.most.as_ref();
    if !(1..=MAX_BATCH).contains(&most) {
        return Err(reader.error(&batching.most, &format!("most: found {most}, expected 1 to {MAX_BATCH} commands")));
    }
    Ok(CommandBatching { timeout_s: time(&reader, "timeout", Some(&batching.timeout))?, most })
}

fn policy(document: &ProfileToml) -> Checked<EvictionPolicy> {
    let reader = SectionReader { what: "policy".to_owned() };
    let Some(policy) = &document.policy else { return Ok(EvictionPolicy::default()) };
    if document.level.len() < 2 {
        return Err(reader.error(policy, "found it with one level, expected two at least: entries move to the next"));
    }
    let twice = |attribute| policy.as_ref().iter().filter(|rank| rank.attribute == attribute).count() > 1;
    if let Some(attribute) = ATTRIBUTES.into_iter().find(|attribute| twice(*attribute)) {
        return Err(
            reader.error(policy, &format!("found {attribute:?} twice, expected each attribute once").to_lowercase())
        );
    }
    Ok(EvictionPolicy(policy.as_ref().clone()))
}

fn costs(reader: &SectionReader, level: &LevelToml, most: u32) -> Checked<TableCosts> {
    let both = |key: &str, written: &Option<Spanned<crate::written::PriorityCostsToml>>| {
        let Some(written) = written else {
            return Ok(PriorityCosts { single: speedup::PerEntryCost::NONE, several: speedup::PerEntryCost::NONE });
        };
        let of = |name: &str, overhead: &Option<PerEntryCostToml>| {
            let known =
                overhead.as_ref().map(|overhead| self::overhead(reader, &format!("{key}.{name}"), overhead, most));
            known.transpose()
        };
        let (single, several) = (of("single", &written.as_ref().single)?, of("several", &written.as_ref().several)?);
        match (single.or(several), several.or(single)) {
            (Some(single), Some(several)) => Ok(PriorityCosts { single, several }),
            _ => Err(reader.error(written, &format!("{key}: found neither single nor several, expected one or both"))),
        }
    };
    Ok(TableCosts {
        add: both("add", &level.add)?,
        modify: both("modify", &level.modify)?,
        shift_s: time(reader, "shift", level.shift.as_ref())?,
        search_s: time(reader, "search", level.search.as_ref())?,
        write_s: time(reader, "write", level.write.as_ref())?,
        delete_s: level.delete.as_ref().map(|delete| time(reader, "delete", Some(delete))).transpose()?,
    })
}

fn overhead(
    reader: &SectionReader,
    key: &str,
    written: &PerEntryCostToml,
    most: u32,
) -> Checked<speedup::PerEntryCost> {
    let per_entry_s = time(reader, &format!("{key}.per_entry"), Some(&written.per_entry))?;
    let Some(coefficients) = &written.speedup else {
        return Ok(speedup::PerEntryCost { per_entry_s, speedup: speedup::BatchSpeedup::NONE });
    };
    let speedup = speedup::BatchSpeedup(*coefficients.as_ref());
    let wrong = |problem: String| reader.error(coefficients, &format!("{key}.speedup: {problem}"));
    for batch in 1..=most {
        let faster = speedup.at(batch).map_err(|error| wrong(error.to_string()))?;
        if batch == 1 && (faster - 1.0).abs() > ALONE {
            return Err(wrong(format!(
                "found {faster} for a command alone, expected 1: its cost over that in a batch"
            )));
        }
    }
    Ok(speedup::PerEntryCost { per_entry_s, speedup })
}

fn forwarding(reader: &SectionReader, written: &Spanned<ForwardingToml>) -> Checked<LevelForwarding> {
    let forward = written.as_ref();
    let base = |key: &str, base: &Option<Spanned<Seconds>>| {
        base.as_ref().map(|base| time(reader, key, Some(base))).transpose()
    };
    let base_s = [
        base("forward.base_l2", &forward.base_l2)?,
        base("forward.base_l3", &forward.base_l3)?,
        base("forward.base_l2l3", &forward.base_l2l3)?,
    ];
    let Some(least) = base_s.into_iter().flatten().reduce(f64::min) else {
        return Err(reader.error(written, "forward: found no base_l2, base_l3 or base_l2l3, expected one at least"));
    };
    let shortest_s = time(reader, "forward.shortest", forward.shortest.as_ref())?;
    if let Some(wrong) = forward.shortest.as_ref().filter(|_| shortest_s > least) {
        return Err(reader.error(wrong, "forward.shortest: found more than a base delay, expected the shortest of all"));
    }
    let slope = |key: &str, slope: &Option<Spanned<SignedSeconds>>| match slope {
        Some(wrong) if wrong.as_ref().0.abs() > MAX_TIME_S => {
            Err(reader.error(wrong, &format!("{key}: expected less than an hour")))
        }
        other => Ok(other.as_ref().map_or(0.0, |slope| slope.as_ref().0)),
    };
    let slopes = DelaySlopes {
        per_level_s: slope("forward.per_gap_level", &forward.per_gap_level)?,
        per_entry_s: slope("forward.per_entry", &forward.per_entry)?,
        per_byte_s: slope("forward.per_byte", &forward.per_byte)?,
    };
    let busy_s = forward.busy.as_ref().map(|busy| time(reader, "forward.busy", Some(busy))).transpose()?;
    if let (Some(wrong), true) = (&forward.busy, busy_s.is_some_and(|busy| busy > least)) {
        let problem = "forward.busy: found more than a base delay, expected the time of a packet behind another";
        return Err(reader.error(wrong, problem));
    }
    let gap_levels_s = gap_levels(reader, forward)?;
    Ok(LevelForwarding { base_s, slopes, gap_levels_s, busy_s, measured: measured(reader, forward, shortest_s)? })
}

fn gap_levels(reader: &SectionReader, forward: &ForwardingToml) -> Checked<Vec<f64>> {
    if let Some(beyond) = forward.gap_levels.get(MAX_GAP_LEVELS) {
        return Err(reader.error(beyond, &format!("forward.gap_levels: expected at most {MAX_GAP_LEVELS}")));
    }
    let mut rising: Vec<f64> = Vec::new();
    for threshold in &forward.gap_levels {
        let at = time(reader, "forward.gap_levels", Some(threshold))?;
        if at <= rising.last().copied().unwrap_or(0.0) {
            let problem = format!("forward.gap_levels: found {}, expected times above 0 that rise", threshold.as_ref());
            return Err(reader.error(threshold, &problem));
        }
        rising.push(at);
    }
    if let (Some(slope), true) = (&forward.per_gap_level, rising.is_empty()) {
        return Err(reader.error(slope, "forward.per_gap_level: found it without gap_levels, expected both"));
    }
    Ok(rising)
}

fn measured(reader: &SectionReader, forward: &ForwardingToml, shortest_s: f64) -> Checked<MeasuredRange> {
    let mut measured = MeasuredRange { least: BASE, most: BASE, shortest_s };
    let Some(range) = &forward.range else {
        let zero = PacketConditions { gap_s: 0.0, entries: 0.0, bytes: 0.0 };
        let all = PacketConditions { gap_s: f64::INFINITY, entries: f64::INFINITY, bytes: f64::INFINITY };
        return Ok(MeasuredRange { least: zero, most: all, shortest_s });
    };
    let ends = |key: &str, ends: &Option<Spanned<[NumberOrTime; 2]>>, base: f64| match ends {
        None => Ok((base, base)),
        Some(wrong)
            if !(0.0 <= wrong.as_ref()[0].0
                && wrong.as_ref()[0].0 <= wrong.as_ref()[1].0
                && wrong.as_ref()[1].0.is_finite()) =>
        {
            Err(reader.error(wrong, &format!("forward.range.{key}: expected the least and the most, 0 or more")))
        }
        Some(ends) => Ok((ends.as_ref()[0].0, ends.as_ref()[1].0)),
    };
    (measured.least.gap_s, measured.most.gap_s) = ends("gap", &range.gap, BASE.gap_s)?;
    (measured.least.entries, measured.most.entries) = ends("entries", &range.entries, BASE.entries)?;
    (measured.least.bytes, measured.most.bytes) = ends("bytes", &range.bytes, BASE.bytes)?;
    Ok(measured)
}

/// Reads a time of 0 or more; 0 if it is not written.
pub(super) fn time(reader: &SectionReader, key: &str, time: Option<&Spanned<Seconds>>) -> Checked<f64> {
    match time {
        Some(long) if long.as_ref().0 > MAX_TIME_S => {
            Err(reader.error(long, &format!("{key}: found {}, expected at most an hour", long.as_ref())))
        }
        other => Ok(other.map_or(0.0, |time| time.as_ref().0)),
    }
}
