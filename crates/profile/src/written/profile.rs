//! Defines the written form of a profile.
use super::timing::{LawToml, TimingToml};
use crate::ProfileOrigin;
use crate::number::{NumberOrTime, SignedSeconds};
use serde::Deserialize;
use toml::Spanned;
use weir_model::switch::policy::EvictionCriterion;
use weir_units::Seconds;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProfileToml {
    pub(crate) name: Spanned<String>,
    pub(crate) device: Spanned<String>,
    pub(crate) origin: Spanned<ProfileOrigin>,
    pub(crate) source: Spanned<String>,
    pub(crate) measured_with: Option<Spanned<String>>,
    pub(crate) date: Option<Spanned<String>>,
    pub(crate) runs: Option<Spanned<String>>,
    pub(crate) batching: Option<BatchingToml>,
    pub(crate) policy: Option<Spanned<Vec<EvictionCriterion>>>,
    pub(crate) barrier: Option<BarrierToml>,
    pub(crate) effect: Option<Spanned<LawToml>>,
    pub(crate) cache: Option<Spanned<FlowCacheToml>>,
    #[serde(default)]
    pub(crate) level: Vec<Spanned<LevelToml>>,
    pub(crate) timing: Option<Spanned<TimingToml>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchingToml {
    pub(crate) timeout: Spanned<Seconds>,
    pub(crate) most: Spanned<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BarrierToml {
    pub(crate) waits: Option<bool>,
    pub(crate) lag: Option<Spanned<LawToml>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FlowCacheToml {
    pub(crate) first: Option<Spanned<Seconds>>,
    pub(crate) idle: Option<Spanned<Seconds>>,
    pub(crate) flows: Option<Spanned<u64>>,
    pub(crate) revalidate: Option<Spanned<Seconds>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LevelToml {
    pub(crate) name: Spanned<String>,
    pub(crate) size: Option<Spanned<u64>>,
    pub(crate) add: Option<Spanned<PriorityCostsToml>>,
    pub(crate) modify: Option<Spanned<PriorityCostsToml>>,
    pub(crate) shift: Option<Spanned<Seconds>>,
    pub(crate) search: Option<Spanned<Seconds>>,
    pub(crate) write: Option<Spanned<Seconds>>,
    pub(crate) delete: Option<Spanned<Seconds>>,
    pub(crate) forward: Option<Spanned<ForwardingToml>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriorityCostsToml {
    pub(crate) single: Option<PerEntryCostToml>,
    pub(crate) several: Option<PerEntryCostToml>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PerEntryCostToml {
    pub(crate) per_entry: Spanned<Seconds>,
    pub(crate) speedup: Option<Spanned<[f64; 3]>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForwardingToml {
    pub(crate) base_l2: Option<Spanned<Seconds>>,
    pub(crate) base_l3: Option<Spanned<Seconds>>,
    pub(crate) base_l2l3: Option<Spanned<Seconds>>,
    pub(crate) per_gap_level: Option<Spanned<SignedSeconds>>,
    pub(crate) per_entry: Option<Spanned<SignedSeconds>>,
    pub(crate) per_byte: Option<Spanned<SignedSeconds>>,
    #[serde(default)]
    pub(crate) gap_levels: Vec<Spanned<Seconds>>,
    pub(crate) shortest: Option<Spanned<Seconds>>,
    pub(crate) busy: Option<Spanned<Seconds>>,
    pub(crate) range: Option<MeasuredRangeToml>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MeasuredRangeToml {
    pub(crate) gap: Option<Spanned<[NumberOrTime; 2]>>,
    pub(crate) entries: Option<Spanned<[NumberOrTime; 2]>>,
    pub(crate) bytes: Option<Spanned<[NumberOrTime; 2]>>,
}
