//! Checks a profile file as a whole, and converts it to a [`Profile`].
use super::cache;
use super::levels::{self, CheckedLevels};
use super::reader::{Checked, SectionReader, SpannedProblem};
use super::timing;
use crate::evidence::EvidenceByKey;
use crate::timing::{ControlPathTiming, ReturnDiscipline, ServiceTime, SwitchTiming};
use crate::written::{self, ProfileToml};
use crate::{BarrierTiming, LevelForwarding, MAX_TEXT, MatchLayers, Profile, ProfileOrigin};
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;
use weir_model::Law;
use weir_model::switch::forward::BASE;

/// Relative tolerance in the check that a value lies in its interval, because both may be rounded.
const ROUNDING: f64 = 1e-9;

/// Checks a parsed profile file, and converts it. `found` is the evidence that was separated from the parameters.
pub(crate) fn profile(document: ProfileToml, found: EvidenceByKey) -> Checked<Profile> {
    let reader = SectionReader { what: String::new() };
    let origin = *document.origin.as_ref();
    let texts = [Some(&document.name), Some(&document.device), Some(&document.source)];
    for text in texts.into_iter().chain([&document.measured_with, &document.date, &document.runs].map(Option::as_ref)) {
        check_text(&reader, text)?;
    }
    if origin == ProfileOrigin::Measured && document.measured_with.is_none() {
        return Err(reader.error(&document.origin, "origin: found measured, expected measured_with as well: by what"));
    }
    let CheckedLevels { tables, names, forwarding } = levels::levels(&document)?;
    let mut made = Profile {
        timing: service_times(&document, &forwarding)?,
        barrier: barrier(&document)?,
        effect: effect(&document)?,
        cache: cache::flows(&document)?,
        name: document.name.as_ref().clone(),
        device: document.device.into_inner(),
        origin,
        source: document.source.into_inner(),
        measured_with: document.measured_with.map(Spanned::into_inner),
        date: document.date.map(Spanned::into_inner),
        runs: document.runs.map(|runs| PathBuf::from(runs.into_inner())),
        tables,
        levels: names,
        forwarding,
        evidence: Default::default(),
    };
    let changes_at_once = made.barrier == BarrierTiming { waits: true, lag: None } && made.effect.is_none();
    let nothing = made.tables.is_none() && made.timing.is_none() && changes_at_once;
    match (nothing, origin) {
        (false, ProfileOrigin::Native) => {
            let problem = "origin: found native with times, expected none of [[level]], [timing], [barrier] and effect";
            return Err(reader.error(&document.origin, problem));
        }
        (true, ProfileOrigin::Measured | ProfileOrigin::Literature | ProfileOrigin::Assumed) => {
            let problem = "found nothing that takes time, expected [[level]] or [timing], or origin = \"native\"";
            return Err(reader.error(&document.name, problem));
        }
        _ => {}
    }
    attach(&mut made, found)?;
    Ok(made)
}

fn check_text(reader: &SectionReader, text: Option<&Spanned<String>>) -> Checked<()> {
    match text {
        Some(wrong) if wrong.as_ref().trim().is_empty() || wrong.as_ref().len() > MAX_TEXT => {
            Err(reader
                .error(wrong, &format!("found a text of {} bytes, expected 1 to {MAX_TEXT}", wrong.as_ref().len())))
        }
        _ => Ok(()),
    }
}

fn barrier(document: &ProfileToml) -> Checked<BarrierTiming> {
    let Some(barrier) = &document.barrier else { return Ok(BarrierTiming { waits: true, lag: None }) };
    let reader = SectionReader { what: "barrier".to_owned() };
    let lag = without_length(&reader, "lag", barrier.lag.as_ref(), "a barrier has no length")?;
    Ok(BarrierTiming { waits: barrier.waits.unwrap_or(true), lag })
}

fn effect(document: &ProfileToml) -> Checked<Option<ServiceTime>> {
    let reader = SectionReader { what: String::new() };
    without_length(&reader, "effect", document.effect.as_ref(), "it is of changes, whatever their length")
}

/// Reads the distribution of a time under the name `key`, and checks that it has no part that grows with a length
/// (`per_byte`); `reason` says in the error why there is none. Returns `None` if the time is missing or zero.
fn without_length(
    reader: &SectionReader,
    key: &str,
    written: Option<&Spanned<written::LawToml>>,
    reason: &str,
) -> Checked<Option<ServiceTime>> {
    let time = reader.law(key, written)?.filter(|time| *time != ServiceTime::default());
    if let (Some(written), Some(_)) = (written, time.as_ref().filter(|time| time.per_byte_s > 0.0)) {
        let problem = format!("{key}: found per_byte, expected a time without it: {reason}");
        return Err(reader.error(written, &problem));
    }
    Ok(time)
}

/// Reads the service times of the data path and the agents. If the file has none for the data path, it is derived from
/// the forwarding of the first table level.
fn service_times(document: &ProfileToml, levels: &[Option<LevelForwarding>]) -> Checked<Option<SwitchTiming>> {
    let reader = SectionReader { what: "timing".to_owned() };
    let data = levels.first().and_then(Option::as_ref).and_then(at_base);
    let Some(written) = &document.timing else {
        return Ok(levels.iter().any(Option::is_some).then_some(SwitchTiming {
            data,
            data_buffer: None,
            gate: None,
            control: ControlPathTiming::Agents { packet_in: None, packet_out: None, shared: false, buffer: None },
            returns: ReturnDiscipline::Direct,
            write: Duration::ZERO,
            slow: timing::DEFAULT_SLOW,
        }));
    };
    timing::with_data(&reader, written, data).map(Some)
}

/// Returns the time that the data path takes for a packet, by its length. The other factors on which forwarding depends
/// (time between packets, number of entries) have their base values ([`BASE`]). Returns `None` if it takes no time.
pub(crate) fn at_base(level: &LevelForwarding) -> Option<ServiceTime> {
    let law = level.of(MatchLayers::L2L3);
    let per_byte_s = law.slopes.per_byte_s.max(0.0);
    let constant = (law.base_s - per_byte_s * BASE.bytes).max(0.0);
    let law = if constant > 0.0 { Some(Law::constant(constant).ok()?) } else { None };
    Some(ServiceTime { law, per_byte_s }).filter(|time| *time != ServiceTime::default())
}

/// Adds the evidence to the profile, and checks that it belongs to existing parameters and that their values lie in the
/// intervals.
fn attach(profile: &mut Profile, found: EvidenceByKey) -> Checked<()> {
    let parameters = profile.parameters();
    for (key, (evidence, span)) in found {
        let Some(parameter) = parameters.iter().find(|parameter| parameter.key == key) else {
            let text = format!(
                "{key}: found interval, r2, residual, samples or note, expected them at parameters that are used"
            );
            return Err(SpannedProblem { span, text });
        };
        if let Some([low, high]) = evidence.interval {
            let Some(value) = parameter.value.number() else {
                let text = format!("{key}: found an interval, expected none: the value is not one number");
                return Err(SpannedProblem { span, text });
            };
            let slack = ROUNDING * value.abs().max(low.abs()).max(high.abs());
            if value < low - slack || value > high + slack {
                let [value, low, high] = [value, low, high].map(|number| parameter.show(number));
                let text = format!("{key}: found {value} and the interval {low} to {high}, expected the value in it");
                return Err(SpannedProblem { span, text });
            }
        }
        profile.evidence.insert(key, evidence);
    }
    Ok(())
}
