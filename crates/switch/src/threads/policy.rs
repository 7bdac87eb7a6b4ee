//! Selects the worker of a frame: the receive policy.
//!
//! All frames of a flow go to one worker, so they stay in order. The policy defines what a flow is. Classes of
//! traffic come before the policy and name their worker, so that urgent flows do not wait behind flows that fill
//! their worker (Rahimi et al., HPSR 2016, IV-C).
use serde::Deserialize;
use std::str::FromStr;
use weir_openflow::model::{Match, PortNo};
use weir_openflow::text;
use weir_packet::field::eth_type;
use weir_packet::{Field, FlowKey, FlowMask, Frame, ParsedHeaders, parse_frame};

/// Properties that the frames of one flow have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum ReceivePolicy {
    /// The input port.
    #[serde(rename = "port")]
    Port,
    /// Source and destination MAC addresses and the VLAN tag, as in Lagopus.
    #[serde(rename = "mac")]
    Mac,
    /// IP addresses, protocol and transport ports; for other packets MAC addresses, VLAN tag, EtherType and MPLS
    /// label.
    #[default]
    #[serde(rename = "5-tuple")]
    FiveTuple,
}

impl FromStr for ReceivePolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "port" => Ok(ReceivePolicy::Port),
            "mac" => Ok(ReceivePolicy::Mac),
            "5-tuple" => Ok(ReceivePolicy::FiveTuple),
            _ => Err(format!("found policy `{text}`, expected port, mac or 5-tuple")),
        }
    }
}

/// A class of traffic with its worker, written as `udp,tp_dst=5060=>1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficClass {
    /// Match of the class's packets.
    pub matching: Match,
    /// Number of the worker, from 0.
    pub worker: usize,
    key: FlowKey,
    mask: FlowMask,
}

impl TrafficClass {
    /// Returns the class of packets that match `matching`, for `worker`.
    ///
    /// # Errors
    /// Fails if the match is invalid, or uses a field that is unknown when a frame is received.
    pub fn new(matching: Match, worker: usize) -> Result<TrafficClass, String> {
        let (key, mut mask) = matching.key_and_mask().map_err(|error| text::error_name(error).to_string())?;
        // A match without a packet type is about Ethernet packets.
        mask.set(Field::PacketType, Field::PacketType.all_ones());
        let known = [Field::InPort, Field::TunnelId, Field::TunSrc, Field::TunDst, Field::PacketType];
        let unknown = Field::ALL
            .into_iter()
            .find(|field| field.is_pipeline() && !field.is_alias() && !known.contains(field) && mask.get(*field) != 0);
        match unknown {
            Some(field) => {
                Err(format!("{field} is not known of a frame when it is received; match on its headers or port"))
            }
            None => Ok(TrafficClass { matching, worker, key, mask }),
        }
    }
}

impl FromStr for TrafficClass {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |problem: String| format!("class `{text}`: {problem}");
        let expected = "expected MATCH=>WORKER as in udp,tp_dst=5060=>1";
        let (matching, worker) = text.rsplit_once("=>").ok_or_else(|| wrong(expected.to_owned()))?;
        let worker = worker.trim().parse();
        let worker = worker.map_err(|_| wrong(format!("{expected}; workers are counted from 0")))?;
        let matching = text::parse_match(matching.trim()).map_err(|error| wrong(error.to_string()))?;
        TrafficClass::new(matching, worker).map_err(wrong)
    }
}

impl<'de> Deserialize<'de> for TrafficClass {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl std::fmt::Display for TrafficClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}=>{}", text::format_match(&self.matching), self.worker)
    }
}

/// Selects workers for frames.
#[derive(Debug)]
pub(crate) struct Steering {
    policy: ReceivePolicy,
    classes: Vec<TrafficClass>,
    /// Workers for packets of no class: those without a class, or all if every worker has one.
    spread: Vec<usize>,
    five_tuple: FlowHashWords,
    fragment: FlowHashWords,
    not_ip: FlowHashWords,
    parsed: ParsedHeaders,
}

impl Steering {
    /// Returns the selector. `workers` must be at least one, and larger than any class's worker number.
    pub(crate) fn new(policy: ReceivePolicy, classes: Vec<TrafficClass>, workers: usize) -> Steering {
        let named = |worker: &usize| classes.iter().any(|class| class.worker == *worker);
        let mut spread: Vec<usize> = (0..workers).filter(|worker| !named(worker)).collect();
        if spread.is_empty() {
            spread = (0..workers).collect();
        }
        use Field::{
            EthDst, EthSrc, EthType, IpProto, Ipv4Dst, Ipv4Src, Ipv6Dst, Ipv6Src, MplsLabel, TcpDst, TcpSrc, VlanTci,
        };
        Steering {
            policy,
            classes,
            spread,
            // ICMP type and code are stored in the port fields. The fields of the absent IP version are zero.
            five_tuple: FlowHashWords::of(&[Ipv4Src, Ipv4Dst, Ipv6Src, Ipv6Dst, IpProto, TcpSrc, TcpDst]),
            fragment: FlowHashWords::of(&[Ipv4Src, Ipv4Dst, Ipv6Src, Ipv6Dst, IpProto]),
            not_ip: FlowHashWords::of(&[EthDst, EthSrc, EthType, VlanTci, MplsLabel]),
            parsed: ParsedHeaders::default(),
        }
    }

    /// Returns the worker for a frame.
    #[inline]
    pub(crate) fn worker(&mut self, in_port: PortNo, frame: &Frame) -> usize {
        if self.classes.is_empty() {
            // With one worker, or with these policies, the frame need not be parsed.
            match self.policy {
                _ if self.spread.len() == 1 => return self.spread[0],
                ReceivePolicy::Port => return self.by_port(in_port),
                ReceivePolicy::Mac => return self.by_addresses(in_port, frame),
                ReceivePolicy::FiveTuple => {}
            }
        }
        self.by_key(in_port, frame)
    }

    fn by_port(&self, in_port: PortNo) -> usize {
        // Ports are numbered from 1, mostly without gaps, so neighbouring ports go to different workers.
        self.spread[in_port.0.wrapping_sub(1) as usize % self.spread.len()]
    }

    fn by_addresses(&self, in_port: PortNo, frame: &Frame) -> usize {
        let Some(addresses) = frame.bytes().first_chunk::<12>().filter(|_| frame.is_plain()) else {
            return self.by_port(in_port);
        };
        let [a, b, c, d, e, f, source @ ..] = *addresses;
        let [g, h, i, j, k, l] = source;
        let tag = frame.bytes().get(12..).and_then(|rest| rest.first_chunk()).map_or(0, |tag| u32::from_be_bytes(*tag));
        let is_tagged = matches!((tag >> 16) as u16, eth_type::VLAN | eth_type::QINQ);
        // Without a tag, these bytes differ within a flow.
        let [m, n, o, p] = if is_tagged { tag } else { 0 }.to_be_bytes();
        let hash = mix(0, u64::from_be_bytes([a, b, c, d, e, f, g, h]));
        self.spread_out(mix(hash, u64::from_be_bytes([i, j, k, l, m, n, o, p])))
    }

    fn by_key(&mut self, in_port: PortNo, frame: &Frame) -> usize {
        if parse_frame(frame, in_port, &mut self.parsed).is_err() {
            return self.by_port(in_port);
        }
        let key = &self.parsed.key;
        if let Some(class) = self.classes.iter().find(|class| key.matches(&class.key, &class.mask)) {
            return class.worker;
        }
        let words = match self.policy {
            ReceivePolicy::Port => return self.by_port(in_port),
            ReceivePolicy::Mac => return self.by_addresses(in_port, frame),
            ReceivePolicy::FiveTuple if self.parsed.layers.network.is_none() || key.get(Field::IpProto) == 0 => {
                &self.not_ip
            }
            // Only the first fragment of a packet has ports, so fragments are hashed without them.
            ReceivePolicy::FiveTuple if key.get(Field::IpFrag) != 0 => &self.fragment,
            ReceivePolicy::FiveTuple => &self.five_tuple,
        };
        self.spread_out(words.hash(key))
    }

    fn spread_out(&self, hash: u64) -> usize {
        // The high bits are mixed best. A multiplication maps them to the workers without a division.
        let place = (u128::from(hash) * self.spread.len() as u128) >> 64;
        self.spread[usize::try_from(place).unwrap_or(0)]
    }
}

/// Words of a flow key with the bits that count.
#[derive(Debug)]
struct FlowHashWords(Vec<(usize, u64)>);

impl FlowHashWords {
    fn of(fields: &[Field]) -> FlowHashWords {
        let mut mask = FlowMask::EMPTY;
        fields.iter().for_each(|field| mask.set(*field, field.all_ones()));
        FlowHashWords(mask.words.into_iter().enumerate().filter(|(_, bits)| *bits != 0).collect())
    }

    fn hash(&self, key: &FlowKey) -> u64 {
        self.0.iter().fold(0, |hash, (word, bits)| mix(hash, key.words[*word] & bits))
    }
}

/// Mixes a word into a hash. The hash only spreads flows, so it need not resist traffic aimed at one worker.
fn mix(hash: u64, word: u64) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let product = u128::from(hash ^ word ^ ODD) * u128::from(0xd6e8_feb8_6659_fd93_u64);
    let folded = (product >> 64) ^ product;
    (folded & u128::from(u64::MAX)).try_into().unwrap_or(0)
}

#[cfg(test)]
mod tests;
