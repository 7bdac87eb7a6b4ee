//! The scenario file as written: names not resolved, defaults not filled in, values with their places in the file.
mod controller;
mod link_effects;
mod stream;
mod topology;

pub(crate) use controller::{ConstraintsToml, ControllerToml, DelayBoundToml, IntentToml};
use link_effects::section_of_link;
pub(crate) use link_effects::{LinkEffectsToml, LinkSectionToml, ShareToml};
pub(crate) use stream::{ArrivalLawToml, ArrivalToml, CaptureToml, SimulateToml, SizeLawToml, SizeToml, StreamToml};
pub(crate) use topology::{ParallelLinkPolicy, PartitionPolicy, TopologyKind, TopologyToml};
pub(crate) use weir_profile::written::{LawToml, TimingToml};

use crate::{
    BufferSharing, EmbeddedApp, FailMode, InterDiscipline, IntraDiscipline, OpenFlowVersion, TrafficExpectation,
};
use serde::Deserialize;
use std::fmt::Display;
use std::str::FromStr;
use toml::Spanned;
use weir_packet::{IpNet, MacAddr};
use weir_routing::apps::access_list::AccessRule;
use weir_routing::apps::dhcp::DhcpConfig;
use weir_routing::apps::monitor::MonitorConfig;
use weir_routing::apps::router::RouterConfig;
use weir_slicing::{QueueManager, RedSpec};
use weir_units::{Bps, ByteSize, TimeSpan};
use weir_vnet::service::NetworkServiceRequest;

/// Whole scenario file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScenarioToml {
    pub(crate) name: Option<Spanned<String>>,
    #[serde(default = "default_seed")]
    pub(crate) seed: u64,
    pub(crate) duration: Option<Spanned<TimeSpan>>,
    pub(crate) controller: Option<Spanned<ControllerToml>>,
    pub(crate) topology: Option<Spanned<TopologyToml>>,
    #[serde(default)]
    pub(crate) tenant: Vec<Spanned<TenantToml>>,
    #[serde(default)]
    pub(crate) switch: Vec<Spanned<SwitchToml>>,
    #[serde(default)]
    pub(crate) host: Vec<Spanned<HostToml>>,
    #[serde(default)]
    pub(crate) link: Vec<Spanned<LinkToml>>,
    #[serde(default)]
    pub(crate) traffic: Vec<Spanned<TrafficToml>>,
    #[serde(default)]
    pub(crate) stream: Vec<Spanned<StreamToml>>,
    pub(crate) simulate: Option<Spanned<SimulateToml>>,
    // The tables of a file of applications, named as there.
    #[serde(default, rename = "access-list")]
    pub(crate) access_list: Vec<Spanned<AccessRule>>,
    pub(crate) dhcp: Option<Spanned<DhcpConfig>>,
    pub(crate) router: Option<Spanned<RouterConfig>>,
    pub(crate) monitor: Option<Spanned<MonitorConfig>>,
    #[serde(default)]
    pub(crate) intent: Vec<Spanned<IntentToml>>,
    #[serde(default)]
    pub(crate) network: Vec<Spanned<NetworkServiceRequest>>,
}

fn default_seed() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TenantToml {
    pub(crate) name: Spanned<String>,
    pub(crate) vlan: Spanned<u16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwitchToml {
    pub(crate) name: Spanned<String>,
    pub(crate) dpid: Option<Spanned<u64>>,
    pub(crate) tables: Option<Spanned<u8>>,
    pub(crate) max_entries: Option<Spanned<u32>>,
    pub(crate) fail_mode: Option<FailMode>,
    pub(crate) threads: Option<crate::ScenarioThreads>,
    #[serde(default)]
    pub(crate) entries: Vec<String>,
    pub(crate) fabric: Option<Spanned<FabricToml>>,
    pub(crate) timing: Option<Spanned<TimingToml>>,
    pub(crate) profile: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) r#virtual: Vec<Spanned<VirtualSwitchToml>>,
}

/// Section `fabric`, from which virtual switches are cut.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(crate) struct FabricToml {
    pub(crate) ports: Option<Spanned<u32>>,
    pub(crate) rate: Option<Spanned<Bps>>,
    pub(crate) crosspoint: Option<Spanned<ByteSize>>,
    pub(crate) max_packet: Option<Spanned<ByteSize>>,
    pub(crate) discipline: Option<InterDiscipline>,
    pub(crate) sharing: Option<BufferSharing>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VirtualSwitchToml {
    pub(crate) name: Spanned<String>,
    pub(crate) dpid: Option<Spanned<u64>>,
    #[serde(default)]
    pub(crate) select: Vec<Spanned<SelectorToml>>,
    pub(crate) ports: Spanned<Vec<Spanned<VirtualPortToml>>>,
    pub(crate) paths: Option<Vec<Spanned<[u32; 2]>>>,
    pub(crate) buffer: Spanned<ByteSize>,
    #[serde(default)]
    pub(crate) buffers: Vec<Spanned<CrosspointBufferToml>>,
    pub(crate) queue: Option<QueueManager>,
    pub(crate) red: Option<Spanned<RedSpec>>,
    pub(crate) discipline: Option<IntraDiscipline>,
    pub(crate) intra_quantum: Option<Spanned<ByteSize>>,
    pub(crate) priority: Option<Spanned<u8>>,
    pub(crate) time_weight: Option<Spanned<u64>>,
    pub(crate) lifetime: Option<Spanned<TimeSpan>>,
    pub(crate) app: Option<Spanned<EmbeddedApp>>,
    pub(crate) openflow: Option<Spanned<OpenFlowVersion>>,
    pub(crate) connect: Option<OneOrMore<Spanned<String>>>,
    pub(crate) listen: Option<OneOrMore<Spanned<String>>>,
    pub(crate) tables: Option<Spanned<u8>>,
    pub(crate) max_entries: Option<Spanned<u32>>,
    pub(crate) max_packet_ins: Option<Spanned<u32>>,
    pub(crate) fail_mode: Option<FailMode>,
    #[serde(default)]
    pub(crate) entries: Vec<String>,
}

/// File with only a fabric and virtual switches.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlicingToml {
    pub(crate) fabric: Option<Spanned<FabricToml>>,
    #[serde(default)]
    pub(crate) r#virtual: Vec<Spanned<VirtualSwitchToml>>,
}

/// Conditions on packets of a virtual switch, all of which have to be true.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SelectorToml {
    pub(crate) port: Option<Spanned<u32>>,
    pub(crate) vlan: Option<Spanned<u16>>,
    pub(crate) eth_src: Option<MacAddr>,
    pub(crate) eth_dst: Option<MacAddr>,
    pub(crate) ip_src: Option<IpNet>,
    pub(crate) ip_dst: Option<IpNet>,
    pub(crate) mpls: Option<Spanned<u32>>,
    pub(crate) tunnel: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VirtualPortToml {
    pub(crate) port: Spanned<u32>,
    pub(crate) number: Option<Spanned<u32>>,
    pub(crate) rate: Option<Spanned<Bps>>,
    pub(crate) rate_in: Option<Spanned<Bps>>,
    pub(crate) rate_out: Option<Spanned<Bps>>,
    pub(crate) ceiling: Option<Spanned<Bps>>,
    pub(crate) ceiling_burst: Option<Spanned<ByteSize>>,
    pub(crate) quantum: Option<Spanned<ByteSize>>,
    pub(crate) vlan: Option<Spanned<u16>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CrosspointBufferToml {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) buffer: Spanned<ByteSize>,
}

section_of_link! {
    /// Host. `queues` and the link settings are for its access link. Hosts of a topology may leave out switch and
    /// address.
    pub(crate) struct HostToml {
        pub(crate) name: Spanned<String>,
        pub(crate) switch: Option<Spanned<String>>,
        pub(crate) port: Option<Spanned<u32>>,
        pub(crate) tenant: Option<Spanned<String>>,
        pub(crate) ip: Option<OneOrMore<Spanned<IpNet>>>,
        pub(crate) mac: Option<Spanned<MacAddr>>,
        ..LinkEffectsToml,
        #[serde(default)]
        pub(crate) queues: Vec<Spanned<QueueToml>>,
    }
}

section_of_link! {
    pub(crate) struct LinkToml {
        pub(crate) ends: [Spanned<String>; 2],
        pub(crate) ports: Option<[Spanned<u32>; 2]>,
        ..LinkEffectsToml,
        #[serde(default)]
        pub(crate) queues: Vec<Spanned<QueueToml>>,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueToml {
    pub(crate) queue: Spanned<u32>,
    pub(crate) min: Option<Spanned<Bps>>,
    pub(crate) max: Option<Spanned<Bps>>,
    pub(crate) buffer: Option<Spanned<ByteSize>>,
    pub(crate) priority: Option<Spanned<u8>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrafficToml {
    pub(crate) kind: Spanned<TrafficKindToml>,
    pub(crate) from: Spanned<String>,
    pub(crate) to: Spanned<String>,
    #[serde(default)]
    pub(crate) start: Option<Spanned<TimeSpan>>,
    pub(crate) duration: Option<Spanned<TimeSpan>>,
    pub(crate) count: Option<Spanned<u32>>,
    pub(crate) interval: Option<Spanned<TimeSpan>>,
    pub(crate) rate: Option<Spanned<RateToml>>,
    pub(crate) payload: Option<Spanned<ByteSize>>,
    pub(crate) arrival: Option<Spanned<ArrivalToml>>,
    pub(crate) sizes: Option<Spanned<SizeToml>>,
    pub(crate) new_flows: Option<Spanned<f64>>,
    pub(crate) flow_packets: Option<Spanned<f64>>,
    pub(crate) flows: Option<Spanned<u32>>,
    #[serde(default)]
    pub(crate) ipv6: Option<Spanned<bool>>,
    pub(crate) expect: Option<TrafficExpectation>,
}

/// Rate in bits or in packets.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "found another kind of value, expected a rate such as `10Mbit/s`, or a number of packets a second"
)]
pub(crate) enum RateToml {
    Packets(f64),
    Bits(String),
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TrafficKindToml {
    Ping,
    Tcp,
    Udp,
}

/// List, or a single item written without brackets.
pub(crate) struct OneOrMore<T>(pub(crate) Vec<T>);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for OneOrMore<Spanned<T>> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        /// Untagged enums lose places in the file. The text is therefore read first, and each item parsed with its
        /// own message.
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "found another kind of value, expected a text in quotes or a list of such")]
        enum OneOrMoreStrings {
            One(String),
            More(Vec<String>),
        }
        let spanned = Spanned::<OneOrMoreStrings>::deserialize(from)?;
        let span = spanned.span();
        let texts = match spanned.into_inner() {
            OneOrMoreStrings::One(text) => vec![text],
            OneOrMoreStrings::More(texts) => texts,
        };
        let parse = |text: String| text.parse().map(|item| Spanned::new(span.clone(), item));
        texts.into_iter().map(parse).collect::<Result<_, _>>().map(OneOrMore).map_err(serde::de::Error::custom)
    }
}
