//! The first lookup: which virtual switch a packet is for, and which of its ports it comes in by.
//!
//! Selectors are compiled for each physical port, in the order of the virtual switches, the first that chooses a packet having it.
//! What most ports need is one step: all packets to one switch, or a table by VLAN. Anything else is looked for by hash, once
//! for each set of fields that selectors of the port look at: tuple space search (Srinivasan, Suri and Varghese, 1999), whose cost
//! selectors decide and packets cannot raise.
use foldhash::{HashMap, HashMapExt};
use std::net::IpAddr;
use weir_openflow::model::PortNo;
use weir_packet::field::{VLAN_PRESENT, eth_type};
use weir_packet::{Field, FlowKey, FlowMask, Frame, Parsed};
use weir_scenario::{IpNet, Selector, VirtualSwitch};

/// VLAN ids; 0 stands for packets without one.
const VLANS: usize = 4096;
/// The words of a flow key that selectors look at.
const WORDS: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];

/// Where a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The place of the virtual switch.
    pub switch: u16,
    /// The place of the port among its ports.
    pub input: u16,
}

/// What is done with the packets of all ports.
#[derive(Debug, Default)]
pub struct FirstLookup {
    by_port: HashMap<PortNo, Way>,
}

/// What is done with the packets of a port.
#[derive(Debug)]
pub enum Way {
    /// All are for one switch.
    One(Target),
    /// Their VLAN says it.
    ByVlan(Box<[Option<Target>; VLANS]>),
    /// Whatever selectors name says it.
    Tuples(Vec<Tuple>),
}

/// The selectors that look at the same bits.
#[derive(Debug)]
pub struct Tuple {
    mask: Words,
    targets: HashMap<Words, Ranked>,
    /// The lowest rank among them.
    first: u32,
}

/// A target, and how many selectors come before it.
#[derive(Debug, Clone, Copy)]
struct Ranked {
    rank: u32,
    target: Target,
}

type Words = [u64; WORDS.len()];

impl FirstLookup {
    /// Compiles the selectors of virtual switches, given with their places, in the order in which they are asked.
    pub fn new<'a>(switches: impl Iterator<Item = (u16, &'a VirtualSwitch)> + Clone) -> FirstLookup {
        let ports = switches.clone().flat_map(|(_, switch)| switch.ports.iter().map(|port| port.port));
        let mut by_port = HashMap::new();
        for port in ports {
            by_port.entry(PortNo(port)).or_insert_with(|| Way::new(&chosen_at(port, switches.clone())));
        }
        FirstLookup { by_port }
    }

    /// What is done with a port's packets; none if no virtual switch has the port.
    pub fn at(&self, port: PortNo) -> Option<&Way> {
        self.by_port.get(&port)
    }
}

/// The selectors that may choose packets of a physical port, in order.
fn chosen_at<'a>(port: u32, switches: impl Iterator<Item = (u16, &'a VirtualSwitch)>) -> Vec<(Selector, Target)> {
    let at_port = switches.filter_map(|(place, switch)| {
        let input = switch.ports.iter().position(|its| its.port == port)?;
        let target = Target { switch: place, input: u16::try_from(input).ok()? };
        Some((switch.select.iter(), switch.ports[input].vlan, target))
    });
    at_port
        .flat_map(|(selectors, vlan, target)| selectors.map(move |selector| (*selector, vlan, target)))
        .filter(|(selector, ..)| selector.port.is_none_or(|its| its == port))
        // A port that is a VLAN outside has no other packets.
        .filter(|(selector, vlan, _)| vlan.is_none() || selector.vlan.is_none_or(|its| Some(its) == *vlan))
        .map(|(selector, vlan, target)| (Selector { port: None, vlan: vlan.or(selector.vlan), ..selector }, target))
        .collect()
}

impl Way {
    /// From selectors without port, in order.
    fn new(selectors: &[(Selector, Target)]) -> Way {
        match selectors {
            [(selector, target), ..] if *selector == Selector::default() => Way::One(*target),
            _ if selectors.iter().all(|(selector, _)| is_vlan_at_most(selector)) => Way::by_vlan(selectors),
            _ => Way::Tuples(tuples(selectors)),
        }
    }

    fn by_vlan(selectors: &[(Selector, Target)]) -> Way {
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
        Way::ByVlan(table)
    }

    /// Where a packet goes; `parsed` is room to work in.
    #[inline]
    pub fn target(&self, frame: &Frame, parsed: &mut Parsed) -> Option<Target> {
        match self {
            Way::One(target) => Some(*target),
            Way::ByVlan(table) => table[vlan(frame)],
            // A frame that is no packet is nobody's.
            Way::Tuples(tuples) => {
                weir_packet::parse_frame(frame, PortNo::ANY, parsed).ok()?;
                find(tuples, &words(&parsed.key))
            }
        }
    }
}

/// Whether a selector looks at the VLAN alone, or at nothing.
fn is_vlan_at_most(selector: &Selector) -> bool {
    *selector == Selector { vlan: selector.vlan, ..Selector::default() }
}

/// The id of the outermost tag; 0 without one.
#[inline]
fn vlan(frame: &Frame) -> usize {
    let Some([type_high, type_low, high, low]) = frame.bytes().get(12..16) else { return 0 };
    let is_tag = matches!(u16::from_be_bytes([*type_high, *type_low]), eth_type::VLAN | eth_type::QINQ);
    let is_tagged = is_tag && frame.packet_type().is_ethernet();
    if is_tagged { usize::from(u16::from_be_bytes([*high & 0x0f, *low])) } else { 0 }
}

fn words(key: &FlowKey) -> Words {
    WORDS.map(|word| key.words[word])
}

fn find(tuples: &[Tuple], packet: &Words) -> Option<Target> {
    let mut best: Option<Ranked> = None;
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

/// Tuples in the order of their first selectors.
fn tuples(selectors: &[(Selector, Target)]) -> Vec<Tuple> {
    let mut tuples: Vec<Tuple> = Vec::new();
    for (rank, (selector, target)) in (0..).zip(selectors) {
        for (value, mask) in conditions(selector) {
            let (value, mask) = (words(&value), words(&mask));
            let at = tuples.iter().position(|tuple| tuple.mask == mask).unwrap_or_else(|| {
                tuples.push(Tuple { mask, targets: HashMap::new(), first: rank });
                tuples.len() - 1
            });
            tuples[at].targets.entry(value).or_insert(Ranked { rank, target: *target });
        }
    }
    tuples
}

/// What a selector asks of a packet, as value and mask: one set for each kind of packet that its prefixes may be in. ARP counts as
/// IPv4: who is chosen by address must be found by it, too.
fn conditions(selector: &Selector) -> Vec<(FlowKey, FlowMask)> {
    let mut common = (FlowKey::EMPTY, FlowMask::EMPTY);
    let mut ask = |field: Field, value: u128, mask: u128| {
        common.0.set(field, value & mask);
        common.1.set(field, mask);
    };
    match selector.vlan {
        // A tag with id 0 has only a priority to say.
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
        // Refused when it is read: nothing is looked at behind MPLS.
        (Some(_), Some(_)) => &[],
        (None, Some(true)) => &[eth_type::IPV4, eth_type::ARP],
        (None, Some(false)) => &[eth_type::IPV6],
    };
    types.iter().map(|eth_type| of_type(common, *eth_type, selector)).collect()
}

/// Whether a selector's prefixes are of IPv4; none if it has none. Checked to be of one kind.
fn is_ipv4(selector: &Selector) -> Option<bool> {
    selector.ip_src.or(selector.ip_dst).map(|net| net.addr.is_ipv4())
}

fn of_type((mut value, mut mask): (FlowKey, FlowMask), kind: u16, selector: &Selector) -> (FlowKey, FlowMask) {
    value.set(Field::EthType, kind.into());
    mask.set(Field::EthType, 0xffff);
    let fields = if kind == eth_type::IPV6 {
        [Field::Ipv6Src, Field::Ipv6Dst]
    } else {
        // ARP's addresses lie in the same place.
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

/// A prefix as address and mask.
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
