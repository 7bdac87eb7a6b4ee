//! Rule sets in ClassBench's format (Taylor and Turner, INFOCOM 2005): parses them, expands them to entries, and
//! draws headers.
use super::HeaderPattern;
use super::case::{BenchCaseName, BenchCaseSettings, DatapathBenchCase};
use super::entry::{self, FiveTuple, prefix_mask};
use super::split_mix::SplitMix64;
use anyhow::{Context, anyhow, bail, ensure};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::Ipv4Addr;
use std::path::Path;
use weir_openflow::model::{FlowMod, Match};
use weir_packet::Field;
use weir_packet::field::ip_proto::{TCP, UDP};
use weir_port::null::{FlowHeaderKind, GeneratedFlows, HeaderBytes};

/// Default number of headers.
const FLOWS: u32 = 100_000;
/// Maximum number of rules: each needs a separate priority.
const MAX_RULES: usize = 60_000;

/// A line of a rule set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClassBenchRule {
    source: (u32, u32),
    destination: (u32, u32),
    source_ports: (u16, u16),
    destination_ports: (u16, u16),
    /// IP protocol; `None` matches any.
    protocol: Option<u8>,
}

const ALL_PORTS: (u16, u16) = (0, u16::MAX);

pub(super) fn case(wanted: &BenchCaseSettings) -> anyhow::Result<DatapathBenchCase> {
    let rules = read(wanted.file("a rule set in ClassBench's format")?)?;
    let flows = flows(&rules, wanted, wanted.headers.unwrap_or(HeaderPattern::Calm))?;
    Ok(with_entries(BenchCaseName::Classbench, rules, flows))
}

/// Creates the rules' entries, with the highest priority for the first rule, and one entry for packets that match no
/// rule.
pub(super) fn with_entries(
    name: BenchCaseName,
    rules: Vec<ClassBenchRule>,
    flows: GeneratedFlows,
) -> DatapathBenchCase {
    let entries = rules.into_iter().zip((1..=u16::MAX).rev()).flat_map(|(rule, priority)| rule.entries(priority));
    DatapathBenchCase {
        name,
        entries: Box::new(std::iter::once(entry::table_miss_entry()).chain(entries)),
        flows,
        tables: 1,
    }
}

/// Draws headers for the rules.
pub(super) fn flows(
    rules: &[ClassBenchRule],
    wanted: &BenchCaseSettings,
    headers: HeaderPattern,
) -> anyhow::Result<GeneratedFlows> {
    let count = wanted.flows.unwrap_or(FLOWS);
    let mut dice = SplitMix64::new(wanted.seed);
    let draw = |_| match headers {
        HeaderPattern::Calm => calm(&mut dice, rules).header(wanted.size),
        HeaderPattern::Hostile => crossed(&mut dice, rules).header(wanted.size),
    };
    let list: Result<Box<[HeaderBytes]>, String> = (0..count).map(draw).collect();
    wanted.flows(FlowHeaderKind::Listed(list.map_err(|problem| anyhow!("{problem}"))?), count, None)
}

/// Draws a packet that matches a drawn rule; an earlier rule may match it, too.
fn calm(dice: &mut SplitMix64, rules: &[ClassBenchRule]) -> FiveTuple {
    let rule = dice.pick(rules);
    FiveTuple {
        source: within(dice, rule.source),
        destination: within(dice, rule.destination),
        source_port: dice.within(rule.source_ports.0, rule.source_ports.1),
        destination_port: dice.within(rule.destination_ports.0, rule.destination_ports.1),
        protocol: rule.protocol.unwrap_or(TCP),
    }
}

/// Draws a packet from three rules: the source of one, the destination of another, ports and protocol of a third. It
/// nearly matches many rules and fails at a late field, so that early termination of a search does not help.
fn crossed(dice: &mut SplitMix64, rules: &[ClassBenchRule]) -> FiveTuple {
    let (source, destination) = (calm(dice, rules).source, calm(dice, rules).destination);
    FiveTuple { source, destination, ..calm(dice, rules) }
}

fn within(dice: &mut SplitMix64, (address, length): (u32, u32)) -> u32 {
    address | dice.word() & !prefix_mask(length)
}

impl ClassBenchRule {
    /// Returns entries that together match the rule; port ranges become prefixes. A rule on ports of any protocol
    /// becomes entries for TCP and UDP. For other protocols the rule's ports are ignored.
    fn entries(&self, priority: u16) -> Vec<FlowMod> {
        let has_ports = self.source_ports != ALL_PORTS || self.destination_ports != ALL_PORTS;
        let protocols = match self.protocol {
            None if has_ports => vec![Some(TCP), Some(UDP)],
            protocol => vec![protocol],
        };
        let matches = protocols.into_iter().flat_map(|protocol| self.matches(protocol));
        matches.map(|matching| entry::output(priority, matching)).collect()
    }

    fn matches(&self, protocol: Option<u8>) -> Vec<Match> {
        let matching = entry::with_prefix(entry::ipv4(), Field::Ipv4Src, self.source.0, self.source.1);
        let matching = entry::with_prefix(matching, Field::Ipv4Dst, self.destination.0, self.destination.1);
        let matching = protocol.into_iter().fold(matching, |matching, number| matching.with(Field::IpProto, number));
        let (source, destination) = match protocol {
            Some(TCP) => (Field::TcpSrc, Field::TcpDst),
            Some(UDP) => (Field::UdpSrc, Field::UdpDst),
            _ => return vec![matching],
        };
        let destinations = prefixes(self.destination_ports);
        let both =
            prefixes(self.source_ports).into_iter().flat_map(|port| destinations.iter().map(move |to| (port, *to)));
        both.map(|(from, to)| with_port(with_port(matching.clone(), source, from), destination, to)).collect()
    }
}

fn with_port(matching: Match, field: Field, (value, mask): (u16, u16)) -> Match {
    match mask {
        0 => matching,
        u16::MAX => matching.with(field, value),
        mask => matching.with_masked(field, value, mask),
    }
}

/// Returns the smallest set of prefixes, as value and mask, that covers a range of ports.
fn prefixes((first, last): (u16, u16)) -> Vec<(u16, u16)> {
    let (mut next, end) = (u32::from(first), u32::from(last) + 1);
    let mut found = Vec::new();
    while next < end {
        // The largest block that starts at `next` and does not exceed the end.
        let aligned = if next == 0 { 1 << 16 } else { 1 << next.trailing_zeros() };
        let block = aligned.min(1 << (end - next).ilog2());
        let [value, mask] = [next, 0x1_0000 - block].map(|bits| u16::try_from(bits).unwrap_or(0));
        found.push((value, mask));
        next += block;
    }
    found
}

/// Reads the rules of a file; fields after the protocol (TCP flags) are ignored.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<ClassBenchRule>> {
    let file = File::open(path).with_context(|| format!("{}: cannot read", path.display()))?;
    let mut rules = Vec::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let at = || format!("{}:{}", path.display(), number + 1);
        let line = line.with_context(at)?;
        if line.trim().is_empty() {
            continue;
        }
        let Some(rule) = parse(&line) else {
            bail!(
                "{}: found `{line:.60}`, expected @SOURCE/N DESTINATION/N FIRST : LAST FIRST : LAST PROTOCOL/MASK",
                at()
            );
        };
        rules.push(rule);
        ensure!(rules.len() <= MAX_RULES, "{}: more than {MAX_RULES} rules", path.display());
    }
    ensure!(!rules.is_empty(), "{}: no rule", path.display());
    Ok(rules)
}

fn parse(line: &str) -> Option<ClassBenchRule> {
    let mut words = line.trim().strip_prefix('@')?.split_whitespace();
    let source = prefix(words.next()?)?;
    let destination = prefix(words.next()?)?;
    let mut ports = || {
        let (first, colon, last) = (words.next()?, words.next()?, words.next()?);
        let range: (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        (colon == ":" && range.0 <= range.1).then_some(range)
    };
    let (source_ports, destination_ports) = (ports()?, ports()?);
    Some(ClassBenchRule { source, destination, source_ports, destination_ports, protocol: protocol(words.next()?)? })
}

fn prefix(text: &str) -> Option<(u32, u32)> {
    let (address, length) = text.split_once('/')?;
    let length = length.parse().ok().filter(|length| *length <= 32)?;
    Some((address.parse::<Ipv4Addr>().ok()?.to_bits() & prefix_mask(length), length))
}

/// Parses a protocol number, or `None` for any; other masks do not occur.
fn protocol(text: &str) -> Option<Option<u8>> {
    let byte = |text: &str| u8::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let (number, mask) = text.split_once('/')?;
    match (byte(number)?, byte(mask)?) {
        (_, 0) => Some(None),
        (number, 0xff) => Some(Some(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "@10.1.0.0/16\t192.0.2.1/32\t0 : 65535\t1024 : 65535\t0x06/0xFF\t0x1000/0x1000\t";

    fn rule() -> ClassBenchRule {
        parse(LINE).unwrap()
    }

    #[test]
    fn lines_are_read() {
        let expected = ClassBenchRule {
            source: (0x0a01_0000, 16),
            destination: (0xc000_0201, 32),
            source_ports: ALL_PORTS,
            destination_ports: (1024, 65535),
            protocol: Some(TCP),
        };
        assert_eq!(rule(), expected);
        for wrong in [
            "",
            "@",
            "10.0.0.0/8",
            "@10.0.0.0/8 10.0.0.0/8 1 : 0 0 : 1 0x06/0xFF",
            "@1.1.1.1/8 1.1.1.1/8 0 : 1 0 : 1 6",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ranges_become_the_fewest_prefixes() {
        assert_eq!(prefixes(ALL_PORTS), [(0, 0)]);
        assert_eq!(prefixes((80, 80)), [(80, 0xffff)]);
        assert_eq!(prefixes((1024, 65535)).len(), 6);
        assert_eq!(prefixes((1, 65534)).len(), 30);
        for range in [(0, 0), (5, 9), (1023, 1025), (60_000, 65_535), (1, 65_534)] {
            let covered = |port: u16| prefixes(range).iter().filter(|(value, mask)| port & mask == *value).count();
            assert!(
                (0..=u16::MAX).all(|port| covered(port) == usize::from((range.0..=range.1).contains(&port))),
                "{range:?}"
            );
        }
    }

    #[test]
    fn entries_are_valid_and_as_many_as_prefixes() {
        let entries = rule().entries(7);
        assert_eq!(entries.len(), 6);
        assert!(entries.iter().all(|flow| flow.priority == 7 && flow.matching.key_and_mask().is_ok()));
        let any = ClassBenchRule { protocol: None, ..rule() };
        assert_eq!(any.entries(7).len(), 12, "ports of TCP and of UDP");
        let all = ClassBenchRule { destination_ports: ALL_PORTS, ..any };
        assert_eq!(all.entries(7).len(), 1);
        let other = ClassBenchRule { protocol: Some(47), ..rule() };
        assert_eq!(other.entries(7).len(), 1);
    }

    #[test]
    fn calm_headers_are_within_a_rule() {
        let (mut dice, rules) = (SplitMix64::new(1), [rule()]);
        for _ in 0..100 {
            let FiveTuple { source, destination, destination_port, protocol, .. } = calm(&mut dice, &rules);
            assert_eq!((source >> 16, destination, protocol), (0x0a01, 0xc000_0201, TCP));
            assert!(destination_port >= 1024);
        }
    }

    #[test]
    fn crossed_headers_are_of_several_rules() {
        let other = ClassBenchRule { source: (0x1400_0000, 8), ..rule() };
        let (mut dice, rules) = (SplitMix64::new(1), [ClassBenchRule { destination: (5, 32), ..rule() }, other]);
        let is_mixed = |tuple: FiveTuple| (tuple.source >> 24 == 10) != (tuple.destination == 5);
        assert!((0..100).any(|_| is_mixed(crossed(&mut dice, &rules))));
        assert!(!(0..100).any(|_| is_mixed(calm(&mut dice, &rules))));
    }
}
