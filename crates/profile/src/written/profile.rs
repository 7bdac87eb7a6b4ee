//! Defines the written form of a profile.
use super::timing::{Law, Timing};
use crate::Origin;
use crate::number::{Quantity, Signed};
use serde::Deserialize;
use toml::Spanned;
use weir_model::switch::policy::Rank;
use weir_units::Seconds;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    pub(crate) name: Spanned<String>,
    pub(crate) device: Spanned<String>,
    pub(crate) origin: Spanned<Origin>,
    pub(crate) source: Spanned<String>,
    pub(crate) measured_with: Option<Spanned<String>>,
    pub(crate) date: Option<Spanned<String>>,
    pub(crate) runs: Option<Spanned<String>>,
    pub(crate) batching: Option<Batching>,
    pub(crate) policy: Option<Spanned<Vec<Rank>>>,
    pub(crate) barrier: Option<Barrier>,
    pub(crate) effect: Option<Spanned<Law>>,
    #[serde(default)]
    pub(crate) level: Vec<Spanned<Level>>,
    pub(crate) timing: Option<Spanned<Timing>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Batching {
    pub(crate) timeout: Spanned<Seconds>,
    pub(crate) most: Spanned<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Barrier {
    pub(crate) waits: Option<bool>,
    pub(crate) lag: Option<Spanned<Law>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Level {
    pub(crate) name: Spanned<String>,
    pub(crate) size: Option<Spanned<u64>>,
    pub(crate) add: Option<Spanned<ByPriorities>>,
    pub(crate) modify: Option<Spanned<ByPriorities>>,
    pub(crate) shift: Option<Spanned<Seconds>>,
    pub(crate) search: Option<Spanned<Seconds>>,
    pub(crate) write: Option<Spanned<Seconds>>,
    pub(crate) delete: Option<Spanned<Seconds>>,
    pub(crate) forward: Option<Spanned<Forward>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ByPriorities {
    pub(crate) single: Option<Overhead>,
    pub(crate) several: Option<Overhead>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Overhead {
    pub(crate) per_entry: Spanned<Seconds>,
    pub(crate) speedup: Option<Spanned<[f64; 3]>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forward {
    pub(crate) base_l2: Option<Spanned<Seconds>>,
    pub(crate) base_l3: Option<Spanned<Seconds>>,
    pub(crate) base_l2l3: Option<Spanned<Seconds>>,
    pub(crate) per_gap_level: Option<Spanned<Signed>>,
    pub(crate) per_entry: Option<Spanned<Signed>>,
    pub(crate) per_byte: Option<Spanned<Signed>>,
    #[serde(default)]
    pub(crate) gap_levels: Vec<Spanned<Seconds>>,
    pub(crate) shortest: Option<Spanned<Seconds>>,
    pub(crate) range: Option<Range>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Range {
    pub(crate) gap: Option<Spanned<[Quantity; 2]>>,
    pub(crate) entries: Option<Spanned<[Quantity; 2]>>,
    pub(crate) bytes: Option<Spanned<[Quantity; 2]>>,
}
