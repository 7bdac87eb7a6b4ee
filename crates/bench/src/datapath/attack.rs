//! Adversarial traffic. With rules from a file: headers that nearly match many of them. Without a file: the headers
//! of tuple space explosion (Csikor and others, CoNEXT 2019): a few entries that accept traffic, and one header for
//! each way to miss them, each of which needs a separate mask in switches that learn masks from packets.
use super::HeaderPattern;
use super::case::{BenchCaseName, BenchCaseSettings, DatapathBenchCase};
use super::entry::{self, FiveTuple};
use super::rules;
use anyhow::{anyhow, ensure};
use weir_packet::Field;
use weir_packet::field::ip_proto;
use weir_port::null::{FlowHeaderKind, HeaderBytes};

/// Values that the entries accept: a source, a source port, a destination port.
const SOURCE: u32 = 0x0a00_0001;
const SOURCE_PORT: u16 = 12_345;
const DESTINATION_PORT: u16 = 80;
/// Number of ways to miss all three values: one for each combination of the first differing bits.
const WAYS: u32 = 32 * 16 * 16;

pub(super) fn case(wanted: &BenchCaseSettings) -> anyhow::Result<DatapathBenchCase> {
    let headers = wanted.headers.unwrap_or(HeaderPattern::Hostile);
    if let Some(file) = wanted.file {
        let rules = rules::read(file)?;
        let flows = rules::flows(&rules, wanted, headers)?;
        return Ok(rules::with_entries(BenchCaseName::Attack, rules, flows));
    }
    ensure!(wanted.entries.is_none(), "--entries does not go with it: there are three, and one for the rest");
    let count = wanted.flows.unwrap_or(WAYS);
    let flow = |number| match headers {
        HeaderPattern::Calm => calm(number).header(wanted.size),
        HeaderPattern::Hostile => hostile(number).header(wanted.size),
    };
    let list: Result<Box<[HeaderBytes]>, String> = (0..count).map(flow).collect();
    let flows = wanted.flows(FlowHeaderKind::Listed(list.map_err(|problem| anyhow!("{problem}"))?), count, None)?;
    let matches = [
        entry::udp().with(Field::UdpDst, DESTINATION_PORT),
        entry::ipv4().with(Field::Ipv4Src, SOURCE),
        entry::udp().with(Field::UdpSrc, SOURCE_PORT),
    ];
    let entries = matches.into_iter().map(|matching| entry::output(entry::PRIORITY, matching));
    Ok(DatapathBenchCase {
        name: BenchCaseName::Attack,
        entries: Box::new(std::iter::once(entry::table_miss_entry()).chain(entries)),
        flows,
        tables: 1,
    })
}

/// Returns a flow that is accepted by its destination port.
fn calm(number: u32) -> FiveTuple {
    let [_, _, high, low] = number.to_be_bytes();
    FiveTuple {
        source: 0x1400_0000 + number,
        destination: 0xc0a8_0001,
        source_port: u16::from_be_bytes([high, low]),
        destination_port: DESTINATION_PORT,
        protocol: ip_proto::UDP,
    }
}

/// Returns values that differ from the accepted ones first at the bits selected by `number`.
fn hostile(number: u32) -> FiveTuple {
    let (source, source_port, destination_port) = (number % 32, number / 32 % 16, number / 512 % 16);
    // Flows beyond [`WAYS`] differ only in bits that no entry matches.
    let more = number / WAYS;
    FiveTuple {
        source: SOURCE ^ 1 << (31 - source),
        destination: 0xc0a8_0001 + more,
        source_port: SOURCE_PORT ^ 1 << (15 - source_port),
        destination_port: DESTINATION_PORT ^ 1 << (15 - destination_port),
        protocol: ip_proto::UDP,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_hostile_header_misses_in_its_own_way() {
        let ways = (0..WAYS).map(hostile).map(|tuple| {
            assert!(tuple.source != SOURCE && tuple.source_port != SOURCE_PORT && tuple.destination_port != 80);
            let source = (tuple.source ^ SOURCE).leading_zeros();
            let ports = [tuple.source_port ^ SOURCE_PORT, tuple.destination_port ^ 80].map(u16::leading_zeros);
            (source, ports)
        });
        assert_eq!(ways.collect::<HashSet<_>>().len(), 8192);
        assert_ne!(hostile(1), hostile(1 + WAYS));
    }
}
