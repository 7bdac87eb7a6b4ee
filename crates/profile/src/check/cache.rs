//! Checks the cache of decisions about flows.
use super::levels::time;
use super::reader::{Checked, SectionReader};
use crate::written::ProfileToml;
use crate::{FlowCacheTiming, MAX_CACHED_FLOWS};

/// Reads the section `[cache]`, if the file has one.
pub(super) fn flows(document: &ProfileToml) -> Checked<Option<FlowCacheTiming>> {
    let Some(written) = &document.cache else { return Ok(None) };
    let reader = SectionReader { what: "cache".to_owned() };
    let cache = written.as_ref();
    if document.level.is_empty() {
        return Err(reader.error(written, "found it without [[level]], expected one at least: whose flows they are"));
    }
    let forwards = document.level.iter().all(|level| level.as_ref().forward.is_some());
    if let Some(first) = cache.first.as_ref().filter(|first| first.as_ref().0 > 0.0 && !forwards) {
        return Err(reader.error(first, "first: found it beside a level without forward, expected forward in each"));
    }
    if let (Some(revalidate), None) = (cache.revalidate.as_ref().filter(|s| s.as_ref().0 > 0.0), &document.effect) {
        return Err(reader.error(revalidate, "revalidate: found it without effect, expected both"));
    }
    if let Some(wrong) = cache.flows.as_ref().filter(|flows| !(1..=MAX_CACHED_FLOWS).contains(flows.as_ref())) {
        let problem = format!("flows: found {}, expected 1 to {MAX_CACHED_FLOWS}", wrong.as_ref());
        return Err(reader.error(wrong, &problem));
    }
    let idle_s = cache.idle.as_ref().map(|idle| time(&reader, "idle", Some(idle))).transpose()?;
    if let (Some(wrong), Some(0.0)) = (&cache.idle, idle_s) {
        return Err(reader.error(wrong, "idle: found 0s, expected more: no packet would find its flow"));
    }
    Ok(Some(FlowCacheTiming {
        first_s: time(&reader, "first", cache.first.as_ref())?,
        idle_s,
        flows: cache.flows.as_ref().map(|flows| *flows.as_ref()),
        revalidate_s: time(&reader, "revalidate", cache.revalidate.as_ref())?,
    }))
}
