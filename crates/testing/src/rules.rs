//! Rule sets of real and generated firewalls as flow entries, and headers of packets to match against them.
//!
//! A port range becomes several entries with masks. Priorities fall from the first rule on; entries of one rule have
//! the same priority.
use flate2::read::GzDecoder;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use weir_packet::field::eth_type;
use weir_packet::{Field, FlowKey, FlowMask};

/// A flow entry: priority and match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleSetEntry {
    /// Priority; the higher one wins.
    pub priority: u16,
    /// Required values of the bits in `mask`; zero elsewhere.
    pub value: FlowKey,
    /// Bits that count.
    pub mask: FlowMask,
}

/// Returns the text of a file compressed with gzip.
pub fn gunzip(path: &Path) -> String {
    let file = std::fs::File::open(path).expect("the file is there");
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).expect("the file is text compressed with gzip");
    text
}

/// Parses ClassBench filters, one per line: `@source/length destination/length low : high low : high protocol/mask
/// flags/mask`. The flags are ignored, as in measurements of other classifiers.
pub fn classbench(text: &str) -> Vec<RuleSetEntry> {
    let mut rules = Vec::new();
    for (line, priority) in text.lines().filter(|line| line.starts_with('@')).zip((0..=u16::MAX).rev()) {
        let columns: Vec<&str> = line[1..].split('\t').collect();
        let [source, destination, source_ports, destination_ports, protocol, ..] = columns[..] else {
            panic!("five columns expected: {line}");
        };
        let mut rule = RuleSetEntry { priority, value: FlowKey::EMPTY, mask: FlowMask::EMPTY };
        rule.field(Field::EthType, eth_type::IPV4.into(), 0xffff);
        rule.prefix(Field::Ipv4Src, source);
        rule.prefix(Field::Ipv4Dst, destination);
        let (value, mask) = protocol.split_once('/').expect("protocol and mask");
        rule.field(Field::IpProto, hex(value), hex(mask));
        for (source, source_mask) in blocks(source_ports) {
            for (destination, destination_mask) in blocks(destination_ports) {
                let mut rule = rule;
                rule.field(Field::UdpSrc, source, source_mask);
                rule.field(Field::UdpDst, destination, destination_mask);
                rules.push(rule);
            }
        }
    }
    rules
}

/// Parses prefixes of addresses, one per line: `10.0.0.0/8`, `2001:db8::/32`.
pub fn prefixes(text: &str) -> Vec<(IpAddr, u32)> {
    let prefix = |line: &str| {
        let (address, len) = line.split_once('/').expect("an address and the length of its prefix");
        (address.parse().expect("an address"), len.parse().expect("a length"))
    };
    text.lines().map(prefix).collect()
}

/// Parses Cisco's `access-list` lines, as far as they match addresses: number, verdict, protocol, addresses with
/// wildcard bits (any bits, not only the low ones), a destination port. The list's number becomes a match on the
/// metadata.
pub fn access_lists(text: &str) -> Vec<RuleSetEntry> {
    let lines = text.lines().filter(|line| line.starts_with("access-list "));
    lines.zip((0..=u16::MAX).rev()).filter_map(|(line, priority)| access_list(line, priority)).collect()
}

fn access_list(line: &str, priority: u16) -> Option<RuleSetEntry> {
    let mut words = line.split_whitespace().skip(1).peekable();
    let mut rule = RuleSetEntry { priority, value: FlowKey::EMPTY, mask: FlowMask::EMPTY };
    rule.field(Field::EthType, eth_type::IPV4.into(), 0xffff);
    rule.field(Field::Metadata, words.next()?.parse().ok()?, u64::MAX.into());
    let _permit_or_deny = words.next()?;
    let protocol = match words.peek().copied()? {
        "ip" => Some(None),
        "icmp" => Some(Some(1)),
        "tcp" => Some(Some(6)),
        "udp" => Some(Some(17)),
        number => number.parse().ok().map(Some),
    };
    if let Some(protocol) = protocol {
        words.next();
        protocol.into_iter().for_each(|protocol: u128| rule.field(Field::IpProto, protocol, 0xff));
    }
    for field in [Field::Ipv4Src, Field::Ipv4Dst] {
        let (address, wildcard) = match words.next() {
            Some("any") => ("0.0.0.0", "255.255.255.255"),
            Some("host") => (words.next()?, "0.0.0.0"),
            Some(address) => (address, words.next().unwrap_or("0.0.0.0")),
            None => break,
        };
        let [address, wildcard] = [address, wildcard].map(|bits| bits.parse::<Ipv4Addr>().ok().map(Ipv4Addr::to_bits));
        rule.field(field, address?.into(), (!wildcard?).into());
    }
    if words.next() == Some("eq")
        && let Some(port) = words.next().and_then(|port| port.parse().ok())
    {
        rule.field(Field::UdpDst, port, 0xffff);
    }
    Some(rule)
}

impl RuleSetEntry {
    /// Returns true if a packet matches.
    pub fn matches(&self, key: &FlowKey) -> bool {
        key.matches(&self.value, &self.mask)
    }

    fn field(&mut self, field: Field, value: u128, mask: u128) {
        self.value.set(field, value & mask);
        self.mask.set(field, mask);
    }

    fn prefix(&mut self, field: Field, text: &str) {
        let (address, length) = text.split_once('/').expect("address and length");
        let address: Ipv4Addr = address.parse().expect("an address");
        let length: u32 = length.parse().expect("a length");
        self.field(field, address.to_bits().into(), (!(u64::from(u32::MAX) >> length) & 0xffff_ffff).into());
    }
}

fn hex(text: &str) -> u128 {
    u128::from_str_radix(text.trim_start_matches("0x"), 16).expect("a hexadecimal number")
}

/// Returns values and masks that together cover a range of ports, `low : high`.
fn blocks(range: &str) -> Vec<(u128, u128)> {
    let (low, high) = range.split_once(':').expect("low and high port");
    let [mut low, high] = [low, high].map(|port| port.trim().parse::<u32>().expect("a port"));
    let mut blocks = Vec::new();
    while low <= high {
        // The largest block that begins at `low` and does not exceed `high`.
        let bits = (0..=16_u32).rev().find(|bits| low % (1 << bits) == 0 && low + (1 << bits) - 1 <= high);
        let size = 1 << bits.expect("one port is a block");
        blocks.push((low.into(), (0x1_0000 - u128::from(size)) & 0xffff));
        low += size;
    }
    blocks
}

/// Pseudo-random numbers; equal seeds give equal numbers (splitmix64).
#[derive(Debug, Clone)]
pub struct SeededRng(pub u64);

impl SeededRng {
    /// Returns any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() % end as u64).expect("below a usize")
    }

    fn rule<'a>(&mut self, rules: &'a [RuleSetEntry]) -> &'a RuleSetEntry {
        &rules[self.below(rules.len())]
    }
}

/// Kinds of generated packets. Each field of an IPv4 packet with ports that a rule leaves open is random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderSampling {
    /// Each packet matches a rule (perhaps a higher one than the one it was made for).
    Hits,
    /// Source, destination, and protocol with ports are taken from three rules: the combinations used in attacks on
    /// classifiers.
    Crossed,
    /// Addresses and ports are random, protocols are UDP and TCP.
    Random,
}

/// Returns headers of `count` packets; equal seeds give equal headers.
pub fn headers(rules: &[RuleSetEntry], kind: HeaderSampling, count: usize, seed: u64) -> Vec<FlowKey> {
    let mut draw = SeededRng(seed);
    (0..count).map(|_| header(rules, kind, &mut draw)).collect()
}

fn header(rules: &[RuleSetEntry], kind: HeaderSampling, draw: &mut SeededRng) -> FlowKey {
    let mut key = FlowKey::EMPTY;
    key.set(Field::EthType, eth_type::IPV4.into());
    key.set(Field::Ipv4Src, draw.number().into());
    key.set(Field::Ipv4Dst, draw.number().into());
    key.set(Field::UdpSrc, draw.number().into());
    key.set(Field::UdpDst, draw.number().into());
    key.set(Field::IpProto, if draw.below(2) == 0 { 6 } else { 17 });
    match kind {
        HeaderSampling::Random => {}
        HeaderSampling::Hits => {
            let rule = draw.rule(rules);
            for ((word, mask), value) in key.words.iter_mut().zip(rule.mask.words).zip(rule.value.words) {
                *word = *word & !mask | value;
            }
        }
        HeaderSampling::Crossed => {
            take(&mut key, draw.rule(rules), &[Field::Ipv4Src]);
            take(&mut key, draw.rule(rules), &[Field::Ipv4Dst]);
            take(&mut key, draw.rule(rules), &[Field::IpProto, Field::UdpSrc, Field::UdpDst, Field::Metadata]);
        }
    }
    key
}

/// Sets the bits of these fields that the rule requires.
fn take(key: &mut FlowKey, rule: &RuleSetEntry, fields: &[Field]) {
    for field in fields {
        let mask = rule.mask.get(*field);
        key.set(*field, key.get(*field) & !mask | rule.value.get(*field));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_ports_becomes_blocks() {
        assert_eq!(blocks("0 : 65535"), [(0, 0)]);
        assert_eq!(blocks("80 : 80"), [(80, 0xffff)]);
        assert_eq!(blocks("1024 : 65535").len(), 6);
        for port in 0..=0xffff_u128 {
            let found = blocks("5 : 20010").iter().filter(|(value, mask)| port & mask == *value).count();
            assert_eq!(found == 1, (5..=20010).contains(&port), "{port}");
        }
    }

    #[test]
    fn a_filter_becomes_entries() {
        let text = "@1.2.3.4/30\t0.0.0.0/0\t0 : 65535\t6 : 8\t0x06/0xFF\t0x0000/0x0000\t\n";
        let rules = classbench(text);
        assert_eq!(rules.len(), 2, "6 to 7, and 8");
        assert_eq!(rules[0].value.get(Field::Ipv4Src), 0x0102_0304);
        assert_eq!(rules[0].mask.get(Field::Ipv4Src), 0xffff_fffc);
        assert_eq!(rules[0].mask.get(Field::Ipv4Dst), 0);
        assert_eq!((rules[0].value.get(Field::UdpDst), rules[0].mask.get(Field::UdpDst)), (6, 0xfffe));
        assert_eq!(rules[0].value.get(Field::IpProto), 6);
        assert!(
            headers(&rules, HeaderSampling::Hits, 50, 1).iter().all(|key| rules.iter().any(|rule| rule.matches(key)))
        );
    }

    #[test]
    fn an_access_list_becomes_entries() {
        let text =
            "access-list 140 permit udp any host 10.0.0.7 eq 53\naccess-list 3 deny 171.64.0.0 0.3.255.255\nhost x\n";
        let rules = access_lists(text);
        assert_eq!(rules.len(), 2);
        assert_eq!((rules[0].value.get(Field::Ipv4Dst), rules[0].value.get(Field::UdpDst)), (0x0a00_0007, 53));
        assert_eq!(rules[0].mask.get(Field::Ipv4Src), 0);
        assert_eq!(rules[1].mask.get(Field::Ipv4Src), 0xfffc_0000);
        assert!(rules[0].priority > rules[1].priority);
    }
}
