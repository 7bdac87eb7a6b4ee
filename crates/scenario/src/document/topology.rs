//! Switches, hosts and links by rule or from a file, as written.
use super::{Host, Link, Share, Switch, Timing};
use crate::{FailMode, IpNet};
use serde::Deserialize;
use toml::Spanned;
use weir_traffic::impair::JitterLaw;
use weir_units::{Bps, ByteSize, Span};

/// A network by rule or from a file; `rate`, `delay` and what follows them are its links'.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Topology {
    pub(crate) kind: Option<Spanned<Kind>>,
    pub(crate) file: Option<Spanned<String>>,
    pub(crate) switches: Option<Spanned<u32>>,
    pub(crate) depth: Option<Spanned<u32>>,
    pub(crate) fanout: Option<Spanned<u32>>,
    pub(crate) k: Option<Spanned<u32>>,
    pub(crate) hosts: Option<Spanned<u32>>,
    pub(crate) ip: Option<Spanned<IpNet>>,
    pub(crate) duplicates: Option<Duplicates>,
    pub(crate) unconnected: Option<Unconnected>,
    pub(crate) rate: Option<Bps>,
    pub(crate) delay: Option<Spanned<Span>>,
    pub(crate) buffer: Option<Spanned<ByteSize>>,
    pub(crate) jitter: Option<Spanned<Span>>,
    pub(crate) jitter_law: Option<Spanned<JitterLaw>>,
    pub(crate) reorder: Option<Spanned<bool>>,
    pub(crate) loss: Option<Spanned<Share>>,
    pub(crate) loss_burst: Option<Spanned<f64>>,
    pub(crate) host_rate: Option<Bps>,
    pub(crate) host_delay: Option<Spanned<Span>>,
    pub(crate) host_buffer: Option<Spanned<ByteSize>>,
    pub(crate) fail_mode: Option<FailMode>,
    pub(crate) profile: Option<Spanned<String>>,
    pub(crate) timing: Option<Spanned<Timing>>,
}

/// By which rule.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    Single,
    Linear,
    Tree,
    Ring,
    FatTree,
}

/// What becomes of links beside each other in a file.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Duplicates {
    #[default]
    Refuse,
    Merge,
    Keep,
}

/// What becomes of parts of a file's network that nothing joins.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unconnected {
    #[default]
    Refuse,
    Largest,
    Keep,
}

impl Switch {
    /// A switch of which nothing is written but its name.
    pub(crate) fn named(name: Spanned<String>) -> Switch {
        Switch {
            name,
            dpid: None,
            tables: None,
            max_entries: None,
            fail_mode: None,
            threads: None,
            entries: Vec::new(),
            fabric: None,
            timing: None,
            profile: None,
            r#virtual: Vec::new(),
        }
    }
}

impl Host {
    /// A host of which nothing is written but its name.
    pub(crate) fn named(name: Spanned<String>) -> Host {
        Host {
            name,
            switch: None,
            port: None,
            tenant: None,
            ip: None,
            mac: None,
            rate: None,
            delay: None,
            buffer: None,
            jitter: None,
            jitter_law: None,
            reorder: None,
            loss: None,
            loss_burst: None,
            queues: Vec::new(),
        }
    }
}

impl Link {
    /// A link of which nothing is written but its ends.
    pub(crate) fn between(ends: [Spanned<String>; 2]) -> Link {
        Link {
            ends,
            ports: None,
            rate: None,
            delay: None,
            buffer: None,
            jitter: None,
            jitter_law: None,
            reorder: None,
            loss: None,
            loss_burst: None,
            queues: Vec::new(),
        }
    }
}
