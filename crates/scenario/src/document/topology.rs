//! Switches, hosts and links by rule or from a file, as written.
use super::link_effects::section_of_link;
use super::{SwitchToml, TimingToml};
use crate::FailMode;
use serde::Deserialize;
use toml::Spanned;
use weir_packet::IpNet;
use weir_units::{Bps, ByteSize, TimeSpan};

section_of_link! {
    /// Network by rule or from a file. The settings of links are for its links.
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
        ..LinkEffectsToml,
        pub(crate) host_rate: Option<Bps>,
        pub(crate) host_delay: Option<Spanned<TimeSpan>>,
        pub(crate) host_buffer: Option<Spanned<ByteSize>>,
        pub(crate) fail_mode: Option<FailMode>,
        pub(crate) profile: Option<Spanned<String>>,
        pub(crate) timing: Option<Spanned<TimingToml>>,
    }
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
