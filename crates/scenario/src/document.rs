//! The scenario file as written: names not resolved, defaults not filled in, values with their places in the file.
mod line;
mod stream;
mod topology;

pub(crate) use line::{Line, Share};
pub(crate) use stream::{Arrival, ArrivalLaw, Simulate, Size, SizeLaw, Stream};
pub(crate) use topology::{Duplicates, Kind as TopologyKind, Topology, Unconnected};
pub(crate) use weir_profile::written::{Law, Timing};

use crate::{
    App, Expect, FailMode, Install, InterDiscipline, IntraDiscipline, IpNet, OpenFlow, QueueManager, Red, Sharing,
};
use serde::Deserialize;
use std::fmt::Display;
use std::str::FromStr;
use toml::Spanned;
use weir_packet::MacAddr;
use weir_traffic::impair::JitterLaw;
use weir_units::{Bps, ByteSize, Span};

/// Whole scenario file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    pub(crate) name: Option<Spanned<String>>,
    #[serde(default = "default_seed")]
    pub(crate) seed: u64,
    pub(crate) duration: Option<Spanned<Span>>,
    pub(crate) controller: Option<Spanned<Controller>>,
    pub(crate) topology: Option<Spanned<Topology>>,
    #[serde(default)]
    pub(crate) tenant: Vec<Spanned<Tenant>>,
    #[serde(default)]
    pub(crate) switch: Vec<Spanned<Switch>>,
    #[serde(default)]
    pub(crate) host: Vec<Spanned<Host>>,
    #[serde(default)]
    pub(crate) link: Vec<Spanned<Link>>,
    #[serde(default)]
    pub(crate) traffic: Vec<Spanned<Traffic>>,
    #[serde(default)]
    pub(crate) stream: Vec<Spanned<Stream>>,
    pub(crate) simulate: Option<Spanned<Simulate>>,
}

fn default_seed() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Controller {
    pub(crate) app: Option<App>,
    pub(crate) connect: Option<Spanned<String>>,
    pub(crate) openflow: Option<OpenFlow>,
    pub(crate) service: Option<Spanned<Law>>,
    pub(crate) buffer: Option<Spanned<u32>>,
    pub(crate) delay: Option<Spanned<Span>>,
    pub(crate) install: Option<Spanned<Install>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tenant {
    pub(crate) name: Spanned<String>,
    pub(crate) vlan: Spanned<u16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Switch {
    pub(crate) name: Spanned<String>,
    pub(crate) dpid: Option<Spanned<u64>>,
    pub(crate) tables: Option<Spanned<u8>>,
    pub(crate) max_entries: Option<Spanned<u32>>,
    pub(crate) fail_mode: Option<FailMode>,
    pub(crate) threads: Option<crate::Threads>,
    #[serde(default)]
    pub(crate) entries: Vec<String>,
    pub(crate) fabric: Option<Spanned<Fabric>>,
    pub(crate) timing: Option<Spanned<Timing>>,
    pub(crate) profile: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) r#virtual: Vec<Spanned<VirtualSwitch>>,
}

/// Section `fabric`, from which virtual switches are cut.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fabric {
    pub(crate) ports: Option<Spanned<u32>>,
    pub(crate) rate: Option<Spanned<Bps>>,
    pub(crate) crosspoint: Option<Spanned<ByteSize>>,
    pub(crate) max_packet: Option<Spanned<ByteSize>>,
    pub(crate) discipline: Option<InterDiscipline>,
    pub(crate) sharing: Option<Sharing>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VirtualSwitch {
    pub(crate) name: Spanned<String>,
    pub(crate) dpid: Option<Spanned<u64>>,
    #[serde(default)]
    pub(crate) select: Vec<Spanned<Selector>>,
    pub(crate) ports: Spanned<Vec<Spanned<VirtualPort>>>,
    pub(crate) paths: Option<Vec<Spanned<[u32; 2]>>>,
    pub(crate) buffer: Spanned<ByteSize>,
    #[serde(default)]
    pub(crate) buffers: Vec<Spanned<Crosspoint>>,
    pub(crate) queue: Option<QueueManager>,
    pub(crate) red: Option<Spanned<Red>>,
    pub(crate) discipline: Option<IntraDiscipline>,
    pub(crate) intra_quantum: Option<Spanned<ByteSize>>,
    pub(crate) priority: Option<Spanned<u8>>,
    pub(crate) time_weight: Option<Spanned<u64>>,
    pub(crate) lifetime: Option<Spanned<Span>>,
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
pub(crate) struct Cut {
    pub(crate) fabric: Option<Spanned<Fabric>>,
    #[serde(default)]
    pub(crate) r#virtual: Vec<Spanned<VirtualSwitch>>,
}

/// Conditions on packets of a virtual switch, all of which have to be true.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Selector {
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
pub(crate) struct VirtualPort {
    pub(crate) port: Spanned<u32>,
    pub(crate) number: Option<Spanned<u32>>,
    pub(crate) rate: Option<Spanned<Bps>>,
    pub(crate) rate_in: Option<Spanned<Bps>>,
    pub(crate) rate_out: Option<Spanned<Bps>>,
    pub(crate) ceiling: Option<Spanned<Bps>>,
    pub(crate) quantum: Option<Spanned<ByteSize>>,
    pub(crate) vlan: Option<Spanned<u16>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Crosspoint {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) buffer: Spanned<ByteSize>,
}

/// Host. `queues` and the link settings are for its access link. Hosts of a topology may leave out switch and
/// address.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    pub(crate) name: Spanned<String>,
    pub(crate) switch: Option<Spanned<String>>,
    pub(crate) port: Option<Spanned<u32>>,
    pub(crate) tenant: Option<Spanned<String>>,
    pub(crate) ip: Option<OneOrMore<Spanned<IpNet>>>,
    pub(crate) mac: Option<Spanned<MacAddr>>,
    pub(crate) rate: Option<Bps>,
    pub(crate) delay: Option<Spanned<Span>>,
    pub(crate) buffer: Option<Spanned<ByteSize>>,
    pub(crate) jitter: Option<Spanned<Span>>,
    pub(crate) jitter_law: Option<Spanned<JitterLaw>>,
    pub(crate) reorder: Option<Spanned<bool>>,
    pub(crate) loss: Option<Spanned<Share>>,
    pub(crate) loss_burst: Option<Spanned<f64>>,
    #[serde(default)]
    pub(crate) queues: Vec<Spanned<Queue>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Link {
    pub(crate) ends: [Spanned<String>; 2],
    pub(crate) ports: Option<[Spanned<u32>; 2]>,
    pub(crate) rate: Option<Bps>,
    pub(crate) delay: Option<Spanned<Span>>,
    pub(crate) buffer: Option<Spanned<ByteSize>>,
    pub(crate) jitter: Option<Spanned<Span>>,
    pub(crate) jitter_law: Option<Spanned<JitterLaw>>,
    pub(crate) reorder: Option<Spanned<bool>>,
    pub(crate) loss: Option<Spanned<Share>>,
    pub(crate) loss_burst: Option<Spanned<f64>>,
    #[serde(default)]
    pub(crate) queues: Vec<Spanned<Queue>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Queue {
    pub(crate) queue: Spanned<u32>,
    pub(crate) min: Option<Spanned<Bps>>,
    pub(crate) max: Option<Spanned<Bps>>,
    pub(crate) buffer: Option<Spanned<ByteSize>>,
    pub(crate) priority: Option<Spanned<u8>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Traffic {
    pub(crate) kind: Spanned<Kind>,
    pub(crate) from: Spanned<String>,
    pub(crate) to: Spanned<String>,
    #[serde(default)]
    pub(crate) start: Option<Spanned<Span>>,
    pub(crate) duration: Option<Spanned<Span>>,
    pub(crate) count: Option<Spanned<u32>>,
    pub(crate) interval: Option<Spanned<Span>>,
    pub(crate) rate: Option<Spanned<Rate>>,
    pub(crate) payload: Option<Spanned<ByteSize>>,
    pub(crate) arrival: Option<Spanned<Arrival>>,
    pub(crate) sizes: Option<Spanned<Size>>,
    pub(crate) new_flows: Option<Spanned<f64>>,
    pub(crate) flow_packets: Option<Spanned<f64>>,
    pub(crate) flows: Option<Spanned<u32>>,
    #[serde(default)]
    pub(crate) ipv6: Option<Spanned<bool>>,
    pub(crate) expect: Option<Expect>,
}

/// Rate in bits or in packets.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a rate such as `10Mbit/s`, or a number of packets a second")]
pub(crate) enum Rate {
    Packets(f64),
    Bits(String),
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
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
        #[serde(untagged)]
        enum Shape {
            One(String),
            More(Vec<String>),
        }
        let spanned = Spanned::<Shape>::deserialize(from)?;
        let span = spanned.span();
        let texts = match spanned.into_inner() {
            Shape::One(text) => vec![text],
            Shape::More(texts) => texts,
        };
        let parse = |text: String| text.parse().map(|item| Spanned::new(span.clone(), item));
        texts.into_iter().map(parse).collect::<Result<_, _>>().map(OneOrMore).map_err(serde::de::Error::custom)
    }
}
