//! Selects the virtual switch and the input port of a packet (the first lookup).
//!
//! A selector describes packets that belong to a virtual switch. Selectors are compiled for each physical port, in the
//! order of the virtual switches; the first one that matches a packet wins. Most ports need one step: all packets
//! belong to one virtual switch, or a table indexed by VLAN ID gives it. Otherwise one hash lookup is needed for each
//! different mask of the port's selectors: tuple space search (Srinivasan, Suri and Varghese, 1999). Its cost depends
//! on the selectors, and packets cannot raise it.
use crate::{PacketSelector, VirtualSwitch};
use foldhash::{HashMap, HashMapExt};
use std::net::IpAddr;
use weir_openflow::model::PortNo;
use weir_packet::field::{VLAN_PRESENT, eth_type};
use weir_packet::{Field, FlowKey, FlowMask, Frame, IpNet, ParsedHeaders};

/// Number of VLAN IDs, where ID 0 stands for packets without a VLAN.
const VLANS: usize = 4096;
/// Indices of the words of a flow key that contain fields of selectors.
const WORDS: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];

/// Virtual switch and input port of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VirtualInputPort {
    /// Fabric index of the virtual switch.
    pub switch: u16,
    /// Index of the input port among the virtual switch's ports.
    pub input: u16,
}

/// Compiled first lookup of all ports.
#[derive(Debug, Default)]
pub struct FirstLookup {
    by_port: HashMap<PortNo, PortFirstLookup>,
}

/// Compiled first lookup of one port.
#[derive(Debug)]
pub enum PortFirstLookup {
    /// All packets of the port belong to one virtual switch.
    One(VirtualInputPort),
    /// The VLAN ID of the outermost tag is the index of the target in this table.
    ByVlan(Box<[Option<VirtualInputPort>; VLANS]>),
    /// Selectors use further fields; a packet is looked up in these tuples, in order.
    Tuples(Vec<SelectorTuple>),
}

/// Selectors with equal masks, in a hash table by their values.
#[derive(Debug)]
pub struct SelectorTuple {
    mask: SelectorWords,
    targets: HashMap<SelectorWords, RankedTarget>,
    /// Lowest rank of the tuple's selectors (that of the first one).
    first: u32,
}

/// Target of a selector, and the selector's rank: the number of selectors that precede it.
#[derive(Debug, Clone, Copy)]
struct RankedTarget {
    rank: u32,
    target: VirtualInputPort,
}

type SelectorWords = [u64; WORDS.len()];

impl FirstLookup {
    /// Compiles the selectors of virtual switches, given with their fabric indices, in the order of precedence.
    pub fn new<'a>(switches: impl Iterator<Item = (u16, &'a VirtualSwitch)> + Clone) -> FirstLookup {
        let ports = switches.clone().flat_map(|(_, switch)| switch.ports.iter().map(|port| port.port));
        let mut by_port = HashMap::new();
        for port in ports {
            by_port.entry(PortNo(port)).or_insert_with(|| PortFirstLookup::new(&chosen_at(port, switches.clone())));
        }
        FirstLookup { by_port }
    }

    /// Returns the lookup for packets that arrive on `port`, or `None` if no virtual switch uses the port.
    pub fn at(&self, port: PortNo) -> Option<&PortFirstLookup> {
        self.by_port.get(&port)
    }
}

/// Returns the selectors that may match packets of a physical port, in the order of precedence.
fn chosen_at<'a>(
    port: u32,
    switches: impl Iterator<Item = (u16, &'a VirtualSwitch)>,
) -> Vec<(PacketSelector, VirtualInputPort)> {
    let at_port = switches.filter_map(|(place, switch)| {
        let input = switch.ports.iter().position(|its| its.port == port)?;
        let target = VirtualInputPort { switch: place, input: u16::try_from(input).ok()? };
        Some((switch.select.iter(), switch.ports[input].vlan, target))
    });
    at_port
        .flat_map(|(selectors, vlan, target)| selectors.map(move |selector| (*selector, vlan, target)))
        .filter(|(selector, ..)| selector.port.is_none_or(|its| its == port))
        // A port with an outside VLAN has only packets of that VLAN.
        .filter(|(selector, vlan, _)| vlan.is_none() || selector.vlan.is_none_or(|its| Some(its) == *vlan))
        .map(|(selector, vlan, target)| {
            (PacketSelector { port: None, vlan: vlan.or(selector.vlan), ..selector }, target)
        })
        .collect()
}

impl PortFirstLookup {
    /// Compiles the selectors of one physical port, in the order of precedence, and chooses the fastest kind of lookup
    /// that can represent them. The field `port` of the selectors must be `None`.
    fn new(selectors: &[(PacketSelector, VirtualInputPort)]) -> PortFirstLookup {
        match selectors {
            [(selector, target), ..] if *selector == PacketSelector::default() => PortFirstLookup::One(*target),
            _ if selectors.iter().all(|(selector, _)| is_vlan_at_most(selector)) => PortFirstLookup::by_vlan(selectors),
            _ => PortFirstLookup::Tuples(tuples(selectors)),
        }
    }

    fn by_vlan(selectors: &[(PacketSelector, VirtualInputPort)]) -> PortFirstLookup {
        let mut table = Box::new([None; VLANS]);
        for (selector, target) in selectors {
            let its = match selector.vlan {
                Some(vlan) => usize::from(vlan)..usize::from(vlan) + 1,
                None => 0..VLANS,
            };
            for slot in table.get_mut(its).into_iter().flatten() {
                slot.get_or_insert(*target);
            }
        }
        PortFirstLookup::ByVlan(table)
    }

    /// Returns the virtual switch and input port of a packet, or `None` if no selector matches it. `parsed` is working
    /// memory.
    #[inline]
    pub fn target(&self, frame: &Frame, parsed: &mut ParsedHeaders) -> Option<VirtualInputPort> {
        match self {
            PortFirstLookup::One(target) => Some(*target),
            PortFirstLookup::ByVlan(table) => table[vlan(frame)],
            // A frame that cannot be parsed belongs to no virtual switch.
            PortFirstLookup::Tuples(tuples) => {
                weir_packet::parse_frame(frame, PortNo::ANY, parsed).ok()?;
                find(tuples, &words(&parsed.key))
            }
        }
    }
}

/// Returns true if a selector uses no field except the VLAN ID.
fn is_vlan_at_most(selector: &PacketSelector) -> bool {
    *selector == PacketSelector { vlan: selector.vlan, ..PacketSelector::default() }
}

/// Returns the VLAN ID of the outermost tag, or 0 without one.
#[inline]
fn vlan(frame: &Frame) -> usize {
    let Some([type_high, type_low, high, low]) = frame.bytes().get(12..16) else { return 0 };
    let is_tag = matches!(u16::from_be_bytes([*type_high, *type_low]), eth_type::VLAN | eth_type::QINQ);
    let is_tagged = is_tag && frame.packet_type().is_ethernet();
    if is_tagged { usize::from(u16::from_be_bytes([*high & 0x0f, *low])) } else { 0 }
}

fn words(key: &FlowKey) -> SelectorWords {
    WORDS.map(|word| key.words[word])
}

fn find(tuples: &[SelectorTuple], packet: &SelectorWords) -> Option<VirtualInputPort> {
    let mut best: Option<RankedTarget> = None;
    for tuple in tuples {
        if best.is_some_and(|best| best.rank < tuple.first) {
            break;
        }
        let key = std::array::from_fn(|word| packet[word] & tuple.mask[word]);
        let found = tuple.targets.get(&key).copied();
        best = [best, found].into_iter().flatten().min_by_key(|ranked| ranked.rank);
    }
    best.map(|best| best.target)
}

/// Groups selectors by mask into tuples. The tuples are in the order of their first selectors.
fn tuples(selectors: &[(PacketSelector, VirtualInputPort)]) -> Vec<SelectorTuple> {
    let mut tuples: Vec<SelectorTuple> = Vec::new();
    for (rank, (selector, target)) in (0..).zip(selectors) {
        for (value, mask) in conditions(selector) {
            let (value, mask) = (words(&value), words(&mask));
            let at = tuples.iter().position(|tuple| tuple.mask == mask).unwrap_or_else(|| {
                tuples.push(SelectorTuple { mask, targets: HashMap::new(), first: rank });
                tuples.len() - 1
            });
            tuples[at].targets.entry(value).or_insert(RankedTarget { rank, target: *target });
        }
    }
    tuples
}

/// Returns the matches of a selector as keys and masks, one for each EtherType that its prefixes may apply to. ARP
/// counts as IPv4, because a host selected by its address must be found with ARP too.
fn conditions(selector: &PacketSelector) -> Vec<(FlowKey, FlowMask)> {
    let mut common = (FlowKey::EMPTY, FlowMask::EMPTY);
    let mut ask = |field: Field, value: u128, mask: u128| {
        common.0.set(field, value & mask);
        common.1.set(field, mask);
    };
    match selector.vlan {
        // A tag with ID 0 carries only a priority.
        Some(0) => ask(Field::VlanVid, 0, 0x0fff),
        Some(vlan) => ask(Field::VlanVid, u128::from(vlan | VLAN_PRESENT), 0x1fff),
        None => {}
    }
    for (field, mac) in [(Field::EthSrc, selector.eth_src), (Field::EthDst, selector.eth_dst)] {
        if let Some(mac) = mac {
            ask(field, mac.to_bits().into(), (1 << 48) - 1);
        }
    }
    if let Some(label) = selector.mpls {
        ask(Field::MplsLabel, label.into(), (1 << 20) - 1);
    }
    if let Some(id) = selector.tunnel {
        ask(Field::TunnelId, id.into(), u64::MAX.into());
    }
    let types: &[u16] = match (selector.mpls, is_ipv4(selector)) {
        (Some(_), None) => &[eth_type::MPLS, eth_type::MPLS_MULTICAST],
        (None, None) => return vec![common],
        // Such a selector is refused when it is parsed, because fields behind MPLS labels are not parsed.
        (Some(_), Some(_)) => &[],
        (None, Some(true)) => &[eth_type::IPV4, eth_type::ARP],
        (None, Some(false)) => &[eth_type::IPV6],
    };
    types.iter().map(|eth_type| of_type(common, *eth_type, selector)).collect()
}

/// Returns true if a selector's IP prefixes are IPv4, false if they are IPv6, and `None` if it has none. Source and
/// destination are of one version, which is checked when the selector is parsed.
fn is_ipv4(selector: &PacketSelector) -> Option<bool> {
    selector.ip_src.or(selector.ip_dst).map(|net| net.addr.is_ipv4())
}

fn of_type((mut value, mut mask): (FlowKey, FlowMask), kind: u16, selector: &PacketSelector) -> (FlowKey, FlowMask) {
    value.set(Field::EthType, kind.into());
    mask.set(Field::EthType, 0xffff);
    let fields = if kind == eth_type::IPV6 {
        [Field::Ipv6Src, Field::Ipv6Dst]
    } else {
        // ARP addresses are stored in the IPv4 fields.
        [Field::Ipv4Src, Field::Ipv4Dst]
    };
    for (field, net) in fields.into_iter().zip([selector.ip_src, selector.ip_dst]) {
        if let Some(net) = net {
            let (address, ones) = prefix(net);
            value.set(field, address & ones);
            mask.set(field, ones);
        }
    }
    (value, mask)
}

/// Returns the address and the mask of a prefix.
fn prefix(net: IpNet) -> (u128, u128) {
    let (address, bits) = match net.addr {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let all = u128::MAX >> (128 - bits);
    let free = u32::from(net.prefix).min(bits);
    let ones = if free == 0 { 0 } else { all << (bits - free) & all };
    (address, ones)
}

#[cfg(test)]
mod tests;
