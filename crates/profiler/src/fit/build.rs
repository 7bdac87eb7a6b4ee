//! Builds a device's profile from all measurements and the costs fitted to them.
use super::costs::FittedTableCosts;
use super::{cases, effect, forwarding, service};
use crate::control::{MeasuredBurst, TimedCommandKind};
use crate::levels::MeasuredLevels;
use crate::measurement::Measurement;
use crate::rules::SHORTEST;
use crate::store::PacketDelayRow;
use crate::{ProfilerError, RigDelayTable};
use std::collections::BTreeMap;
use weir_model::fit::quantiles::MedianAndSpread;
use weir_model::switch::device::{SwitchModel, TableLevel};
use weir_model::switch::forward::PacketConditions;
use weir_profile::{
    BarrierTiming, ControlPathTiming, Evidence, FlowCacheTiming, LevelForwarding, Profile, ProfileOrigin,
    ReturnDiscipline, ServiceTime, SwitchTiming,
};

/// Maximum share of bursts whose barrier may be answered too early for the switch to count as one whose barriers wait
/// for commands.
const EARLY: f64 = 0.5;
/// Share of the computed time of a burst's commands; a barrier that was answered before it did not wait for them.
const SURELY: f64 = 0.5;
/// Time between packets for the controller in seconds; long enough that each finds the switch idle.
const ALONE_S: f64 = 5e-3;
/// Default of `SwitchTiming::slow`: time at the switch above which a packet counts as held up.
const SLOW: std::time::Duration = std::time::Duration::from_millis(1);

/// Texts and names in a profile that do not come from measurements.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProfileMetadata {
    /// Name of the profile.
    pub name: String,
    /// Name of the measured device.
    pub device: String,
    /// Source of the profile's numbers: what was measured, with which grid and seed.
    pub source: String,
    /// Date of the measurement.
    pub date: Option<String>,
    /// Folder of the measured raw data.
    pub runs: Option<std::path::PathBuf>,
}

/// Behaviour of a switch's barriers, with evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct BarrierBehaviour {
    /// Behaviour in the form that profiles have.
    pub barrier: BarrierTiming,
    /// Evidence for the barrier's lag.
    pub evidence: Option<Evidence>,
    /// Number of bursts whose barrier was answered before the commands took effect, and number of all bursts.
    pub early: [usize; 2],
    /// Number of bursts carried out in another order than they were sent.
    pub reordered: usize,
}

/// Determines the behaviour of barriers from timed bursts. The time from the end of a burst to the barrier's reply
/// (lag) comes from the bursts that were timed most precisely. If changes take effect later than they are carried out,
/// the end of a burst is computed from the fitted costs. `most` is the batch size; in that case larger bursts are not
/// used, because the costs do not include the wait for the last batch.
pub fn barriers(
    timed: &[MeasuredBurst],
    costs: &FittedTableCosts,
    most: u32,
) -> Result<BarrierBehaviour, ProfilerError> {
    let bursts: Vec<&MeasuredBurst> =
        timed.iter().filter(|one| matches!(one.command, TimedCommandKind::Add | TimedCommandKind::Modify)).collect();
    let early = bursts.iter().filter(|one| one.barrier_s < one.low_s).count();
    let done_s = |one: &MeasuredBurst| match costs.effect {
        Some(_) => effect::commands_s(&costs.fitted, one),
        None => one.seconds(),
    };
    let overtakes = |one: &&&MeasuredBurst| match costs.effect {
        Some(_) => one.barrier_s < done_s(one) * SURELY,
        None => one.barrier_s < one.low_s,
    };
    let waits = bursts.iter().filter(overtakes).count() as f64 <= EARLY * bursts.len() as f64;
    let mut finest = bursts.clone();
    if costs.effect.is_some() && most > 1 {
        finest.retain(|one| one.batch <= most);
    }
    // The time computed from costs is most precise where it is smallest.
    let width = |one: &MeasuredBurst| if costs.effect.is_some() { done_s(one) } else { one.high_s - one.low_s };
    finest.sort_by(|left, right| width(left).total_cmp(&width(right)));
    finest.truncate((bursts.len() / 3).max(4));
    let width = MedianAndSpread::of(&finest.iter().map(|one| one.high_s - one.low_s).collect::<Vec<_>>())
        .map_or(0.0, |width| width.median);
    let lags = finest
        .iter()
        .map(|one| (1.0, if waits { one.barrier_s - done_s(one) } else { one.barrier_s }))
        .collect::<Vec<_>>();
    let usual = MedianAndSpread::of(&lags.iter().map(|lag| lag.1).collect::<Vec<_>>()).map_or(0.0, |lag| lag.median);
    let fitted = service::fit(&lags)?;
    // A lag shorter than the time between two packets cannot be measured.
    let (lag, evidence) = match fitted {
        Some((lag, evidence)) if lag.mean_s(1.0).min(usual) > width => {
            (Some(ServiceTime { per_byte_s: 0.0, ..lag }), Some(evidence))
        }
        _ => (None, None),
    };
    let reordered = timed.iter().filter(|one| one.reordered).count();
    Ok(BarrierBehaviour { barrier: BarrierTiming { waits, lag }, evidence, early: [early, bursts.len()], reordered })
}

/// Returns names for a number of table levels, the fastest first.
fn names(levels: usize) -> Vec<String> {
    (1..=levels).map(|level| if levels == 1 { "table".to_owned() } else { format!("level {level}") }).collect()
}

/// Builds the profile of a measured device.
pub(crate) fn profile(about: &ProfileMetadata, measured: &Measurement) -> Result<Profile, ProfilerError> {
    let mut evidence: BTreeMap<String, Evidence> = BTreeMap::new();
    let tables = tables(measured, &mut evidence);
    let forwarding = all_forwarding(measured, &mut evidence)?;
    let barriers = measured.barriers.clone();
    let barrier =
        barriers.as_ref().map_or(BarrierTiming { waits: true, lag: None }, |barriers| barriers.barrier.clone());
    if let (Some(_), Some(Some(found))) = (&barrier.lag, barriers.map(|barriers| barriers.evidence)) {
        evidence.insert("barrier.lag".to_owned(), found);
    }
    let effect = effect(measured, &mut evidence)?;
    let cache = cache(measured, &forwarding, effect.is_some(), &mut evidence);
    let timing = timing(measured, &forwarding, &mut evidence)?;
    let n_levels = tables.as_ref().map_or(0, |tables| tables.levels.len());
    let profile = Profile {
        name: about.name.clone(),
        device: about.device.clone(),
        origin: ProfileOrigin::Measured,
        source: about.source.clone(),
        measured_with: Some(format!("weir profile {}", env!("CARGO_PKG_VERSION"))),
        date: about.date.clone(),
        runs: about.runs.clone(),
        tables,
        levels: names(n_levels),
        forwarding,
        barrier,
        effect,
        cache,
        timing,
        evidence,
    };
    let runs = profile.runs.clone();
    // The profile is written and read again, so that it has exactly what its users will read.
    let read = Profile::parse(&profile.to_toml(), &format!("{}.toml", about.name))?;
    Ok(Profile { runs, ..read })
}

/// Returns the time from the moment when commands are carried out until they affect packets, without the delay of the
/// measuring rig.
fn effect(
    measured: &Measurement,
    evidence: &mut BTreeMap<String, Evidence>,
) -> Result<Option<ServiceTime>, ProfilerError> {
    let Some(found) = measured.costs.as_ref().and_then(|costs| costs.effect.as_ref()) else { return Ok(None) };
    let rig_s = if measured.rig.is_known() { measured.rig.message_s(SHORTEST) } else { 0.0 };
    let Some((time, found)) = found.law(rig_s)? else { return Ok(None) };
    let found = Evidence { note: measured.rig.note(rig_s), ..found };
    evidence.insert("effect".to_owned(), found);
    Ok(Some(ServiceTime { per_byte_s: 0.0, ..time }))
}

/// Returns the cache of flows. What first packets take belongs to forwarding, so it is left out without that.
fn cache(
    measured: &Measurement,
    forwarding: &[Option<LevelForwarding>],
    has_effect: bool,
    evidence: &mut BTreeMap<String, Evidence>,
) -> Option<FlowCacheTiming> {
    let found = measured.flow_cache.as_ref()?;
    let unknown: Vec<&str> = found.unknown.iter().map(|tier| tier.note()).collect();
    let note = (!unknown.is_empty()).then(|| unknown.join("; "));
    if found.first_s.is_none()
        && let Some(base) = evidence.get_mut("level1.forward.base_l2l3")
    {
        let notes: Vec<String> = base.note.take().into_iter().chain(note.clone()).collect();
        base.note = (!notes.is_empty()).then(|| notes.join("; "));
    }
    let costs = measured.costs.as_ref().filter(|_| has_effect);
    let revalidate_s = costs.map_or(0.0, |costs| costs.revalidate_s);
    let mut timing = FlowCacheTiming { revalidate_s, ..found.timing()? };
    if let Some((_, interval, samples)) = found.first_s {
        let found = Evidence { interval: Some(interval), samples: Some(samples as u64), note, ..Evidence::default() };
        evidence.insert("cache.first".to_owned(), found);
    }
    if let Some(interval) = found.idle_s {
        evidence.insert("cache.idle".to_owned(), Evidence { interval: Some(interval), ..Evidence::default() });
    }
    if let Some(found) = costs.and_then(|costs| costs.evidence.get("cache.revalidate")) {
        evidence.insert("cache.revalidate".to_owned(), found.clone());
    }
    if forwarding.iter().any(Option::is_none) {
        timing.first_s = 0.0;
        evidence.remove("cache.first");
    }
    Some(timing)
}

fn tables(measured: &Measurement, evidence: &mut BTreeMap<String, Evidence>) -> Option<SwitchModel> {
    // A device without a control channel has one unlimited table.
    let unknown = || (!measured.delays.is_empty()).then(MeasuredLevels::unknown);
    let sizes = &measured.sizes.clone().or_else(unknown)?;
    let batching =
        measured.batching.as_ref().map_or(weir_model::switch::batch::CommandBatching::NONE, |found| found.batching);
    let costs: Option<&FittedTableCosts> = measured.costs.as_ref();
    let none = weir_model::switch::costs::TableCosts {
        add: NOTHING,
        modify: NOTHING,
        shift_s: 0.0,
        search_s: 0.0,
        write_s: 0.0,
        delete_s: None,
    };
    let mut above = 1;
    let mut levels = Vec::new();
    for (at, size) in sizes.sizes.iter().enumerate() {
        // Files require the levels in the order of their sizes.
        let size = size.map(|size| size.max(above));
        above = size.unwrap_or(above);
        if size.is_some() {
            let interval = sizes
                .intervals
                .get(at)
                .copied()
                .flatten()
                .filter(|[low, high]| size.is_some_and(|size| (*low..=*high).contains(&(size as f64))));
            let found = Evidence { interval, samples: Some(sizes.entries), ..Evidence::default() };
            evidence.insert(format!("level{}.size", at + 1), found);
        }
        let costs = costs.and_then(|costs| costs.levels.get(at)).copied().unwrap_or(none);
        levels.push(TableLevel { size, costs });
    }
    if let Some(costs) = costs {
        let written = |key: &str| {
            // Costs that are not written to the file cannot have evidence there.
            let level = levels.iter().enumerate().find(|(at, _)| key.starts_with(&format!("level{}.", at + 1)));
            level.is_some_and(|(_, level)| {
                let is_none = |costs: &weir_model::switch::costs::PriorityCosts<_>| *costs == NOTHING;
                !(key.contains(".add.") && is_none(&level.costs.add)
                    || key.contains(".modify.") && is_none(&level.costs.modify))
            })
        };
        evidence.extend(
            costs.evidence.iter().filter(|(key, _)| written(key)).map(|(key, found)| (key.clone(), found.clone())),
        );
    }
    if costs.is_none() {
        let note = Some("not measured: taken for no time".to_owned());
        let keys =
            (1..=levels.len()).flat_map(|level| ["shift", "search", "write"].map(|key| format!("level{level}.{key}")));
        evidence.extend(keys.map(|key| (key, Evidence { note: note.clone(), ..Evidence::default() })));
    }
    if let (true, Some(interval)) = (batching.most > 1, measured.batching.as_ref().and_then(|found| found.timeout_s)) {
        let found = Evidence { interval: Some(interval), ..Evidence::default() };
        evidence.insert("batching.timeout".to_owned(), found);
    }
    let policy =
        measured.policy.as_ref().filter(|_| levels.len() > 1).map(|found| found.policy.clone()).unwrap_or_default();
    Some(SwitchModel { levels, batching, policy })
}

const NOTHING: weir_model::switch::costs::PriorityCosts<weir_model::switch::speedup::PerEntryCost> =
    weir_model::switch::costs::PriorityCosts {
        single: weir_model::switch::speedup::PerEntryCost::NONE,
        several: weir_model::switch::speedup::PerEntryCost::NONE,
    };

fn all_forwarding(
    measured: &Measurement,
    evidence: &mut BTreeMap<String, Evidence>,
) -> Result<Vec<Option<LevelForwarding>>, ProfilerError> {
    let levels = measured.sizes.as_ref().map_or(usize::from(!measured.delays.is_empty()), |sizes| sizes.sizes.len());
    let mut made = Vec::new();
    for level in 0..levels {
        let delays = measured.delays.iter().find(|delays| delays.base.level == level);
        let fitted = match delays {
            Some(delays) => {
                let cases = cases::cases(&without_rig(&delays.rows, &measured.rig), level);
                let bytes = delays.base.bytes;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a second")]
                let off = |(gap_s, delay_s): &(f64, f64)| {
                    (*gap_s, measured.rig.off(*delay_s, bytes, (gap_s * 1e6).min(1e6) as u32))
                };
                let mixed_s: Vec<(f64, f64)> = delays.mixed_s.iter().map(off).collect();
                forwarding::fit(&cases, delays.base, delays.busy_s, &mixed_s, &measured.rig)?
            }
            None => None,
        };
        made.push(fitted.map(|(law, found)| {
            evidence.extend(found.into_iter().map(|(key, found)| rig_noted(key, found, measured)));
            law
        }));
    }
    Ok(made)
}

/// Subtracts the delay of the measuring rig from the delays of packets.
fn without_rig(rows: &[PacketDelayRow], rig: &RigDelayTable) -> Vec<PacketDelayRow> {
    let off = |row: &PacketDelayRow| {
        let delay_s = row.delay_s.map(|delay_s| rig.off(delay_s, row.bytes, row.gap_us));
        PacketDelayRow { delay_s, ..row.clone() }
    };
    rows.iter().map(off).collect()
}

/// Adds a note to the evidence of base delays: how much delay of the measuring rig was subtracted.
fn rig_noted(key: String, found: Evidence, measured: &Measurement) -> (String, Evidence) {
    let base = measured.delays.iter().find(|delays| key.starts_with(&format!("level{}.", delays.base.level + 1)));
    let note = base
        .filter(|_| key.contains(".base_"))
        .and_then(|delays| measured.rig.note(measured.rig.packet_s(delays.base.bytes, delays.base.gap_us)));
    (key, Evidence { note: found.note.clone().or(note), ..found })
}

/// Fits the times that the switch takes for packet-ins and packet-outs. The time of packet-ins is without that of the
/// data path. Returns `None` if neither was measured.
fn timing(
    measured: &Measurement,
    forwarding: &[Option<LevelForwarding>],
    evidence: &mut BTreeMap<String, Evidence>,
) -> Result<Option<SwitchTiming>, ProfilerError> {
    let first = forwarding.first().and_then(Option::as_ref);
    let found_s = measured.sizes.as_ref().and_then(|sizes| sizes.delays_s.first().copied());
    let unknown_s = found_s.map_or(0.0, |s| measured.rig.off(s, SHORTEST, 0));
    let data_s = |bytes: u32| {
        let at = PacketConditions { gap_s: ALONE_S, entries: 1.0, bytes: bytes.into() };
        let law = first.and_then(|law| law.forward(weir_profile::MatchLayers::L2L3, at).ok());
        law.map_or(unknown_s, |forwarded| forwarded.delay_s)
    };
    let rig_s = |bytes: u32| if measured.rig.is_known() { measured.rig.message_s(bytes) } else { 0.0 };
    let mut law = |kind: &str, less_s: &dyn Fn(u32) -> f64| -> Result<Option<ServiceTime>, ProfilerError> {
        let of_kind = measured.messages.iter().filter(|row| row.message == kind);
        let samples: Vec<(f64, f64)> = of_kind
            .filter_map(|row| Some((f64::from(row.size), row.delay_s? - less_s(row.size) - rig_s(row.size))))
            .collect();
        let Some((time, found)) = service::fit(&samples)? else { return Ok(None) };
        let found = Evidence { note: found.note.clone().or(measured.rig.note(rig_s(128))), ..found };
        evidence.insert(format!("timing.{kind}"), found);
        Ok(Some(time))
    };
    let (packet_in, packet_out) = (law("packet_in", &data_s)?, law("packet_out", &|_| 0.0)?);
    if packet_in.is_none() && packet_out.is_none() {
        return Ok(None);
    }
    Ok(Some(SwitchTiming {
        data: None,
        data_buffer: None,
        gate: None,
        control: ControlPathTiming::Agents { packet_in, packet_out, shared: false, buffer: None },
        returns: ReturnDiscipline::Direct,
        write: std::time::Duration::ZERO,
        slow: SLOW,
    }))
}
