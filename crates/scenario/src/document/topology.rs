//! Switches, hosts and links by rule or from a file, as written.
use super::{HostToml, LinkToml, ShareToml, SwitchToml, TimingToml};
use crate::FailMode;
use serde::Deserialize;
use toml::Spanned;
use weir_packet::IpNet;
use weir_traffic::impair::JitterLaw;
use weir_units::{Bps, ByteSize, TimeSpan};

/// Network by rule or from a file. `rate`, `delay` and the settings after them up to `loss_burst` are for its links.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopologyToml {
    pub(crate) kind: Option<Spanned<TopologyKind>>,
    pub(crate) file: Option<Spanned<String>>,
    pub(crate) switches: Option<Spanned<u32>>,
    pub(crate) depth: Option<Spanned<u32>>,
    pub(crate) fanout: Option<Spanned<u32>>,
    pub(crate) k: Option<Spanned<u32>>,
    pub(crate) hosts: Option<Spanned<u32>>,
    pub(crate) ip: Option<Spanned<IpNet>>,
    pub(crate) duplicates: Option<ParallelLinkPolicy>,
    pub(crate) unconnected: Option<PartitionPolicy>,
    pub(crate) rate: Option<Bps>,
    pub(crate) delay: Option<Spanned<TimeSpan>>,
    pub(crate) buffer: Option<Spanned<ByteSize>>,
    pub(crate) jitter: Option<Spanned<TimeSpan>>,
    pub(crate) jitter_law: Option<Spanned<JitterLaw>>,
    pub(crate) reorder: Option<Spanned<bool>>,
    pub(crate) loss: Option<Spanned<ShareToml>>,
    pub(crate) loss_burst: Option<Spanned<f64>>,
    pub(crate) host_rate: Option<Bps>,
    pub(crate) host_delay: Option<Spanned<TimeSpan>>,
    pub(crate) host_buffer: Option<Spanned<ByteSize>>,
    pub(crate) fail_mode: Option<FailMode>,
    pub(crate) profile: Option<Spanned<String>>,
    pub(crate) timing: Option<Spanned<TimingToml>>,
}

/// Rule by which a topology is made.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TopologyKind {
    Single,
    Linear,
    Tree,
    Ring,
    FatTree,
}

/// Treatment of parallel links in a file.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ParallelLinkPolicy {
    #[default]
    Refuse,
    Merge,
    Keep,
}

/// Treatment of unconnected parts of a file's network.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PartitionPolicy {
    #[default]
    Refuse,
    Largest,
    Keep,
}

impl SwitchToml {
    /// Returns a switch with only a name.
    pub(crate) fn named(name: Spanned<String>) -> SwitchToml {
        SwitchToml {
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

impl HostToml {
    /// Returns a host with only a name.
    pub(crate) fn named(name: Spanned<String>) -> HostToml {
        HostToml {
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

impl LinkToml {
    /// Returns a link with only its ends.
    pub(crate) fn between(ends: [Spanned<String>; 2]) -> LinkToml {
        LinkToml {
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
