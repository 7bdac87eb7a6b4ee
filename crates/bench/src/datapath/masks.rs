//! The case of many masks: 32 classes of UDP packets, each matched by an entry with a different mask.
use super::case::{BenchCaseName, BenchCaseSettings, DatapathBenchCase};
use super::entry;
use weir_openflow::model::{FlowMod, Match};
use weir_packet::Field;
use weir_port::null::{FlowHeaderKind, GeneratedFlows};

/// Number of the generator's classes, and so of masks.
const CLASSES: u32 = 32;
const PREFIXES: [u32; 4] = [8, 16, 24, 32];

/// Creates the case. `--entries` are spread over the masks; packets match the first entry of each mask.
pub(super) fn case(wanted: &BenchCaseSettings) -> anyhow::Result<DatapathBenchCase> {
    let masks = wanted.masks.unwrap_or(CLASSES);
    let count = wanted.entries.unwrap_or(masks).max(masks);
    let flows = flows(masks, wanted)?;
    let entries = (0..count).map(move |number| output(number % masks, number / masks));
    Ok(DatapathBenchCase { name: BenchCaseName::Masks, entries: Box::new(entries), flows, tables: 1 })
}

fn flows(masks: u32, wanted: &BenchCaseSettings) -> anyhow::Result<GeneratedFlows> {
    let count = wanted.flows.unwrap_or(1024);
    if masks == CLASSES {
        return wanted.flows(FlowHeaderKind::Masks, count, None);
    }
    // The generator always has 32 classes, so the flows of the first `masks` classes are listed.
    let all = wanted.flows(FlowHeaderKind::Masks, count.div_ceil(masks).saturating_mul(CLASSES), None)?;
    let flow = |number: u32| all.header(number / masks * CLASSES + number % masks);
    wanted.flows(FlowHeaderKind::Listed((0..count).map(flow).collect()), count, None)
}

/// Returns entry `number` of a class; entries above 0 match addresses without traffic.
fn output(class: u32, number: u32) -> FlowMod {
    entry::output(10 + u16::try_from(class).unwrap_or(0), matching(class, number))
}

fn matching(class: u32, number: u32) -> Match {
    let (source, destination) = (class * 0x0101_0101 + (10 << 24), class * 0x0101_0101 + (100 << 24));
    // 256 sources, then the next of 128 destinations, all within a prefix of 8 bits.
    let source = source.wrapping_add((number & 0xff) << 24);
    let destination = destination ^ ((number >> 8) & 0x7f) << 24 ^ (number >> 15);
    let [short, long] = [class & 3, class >> 2 & 3].map(|index| PREFIXES[index as usize]);
    let matching = entry::with_prefix(entry::udp(), Field::Ipv4Src, source, short);
    let matching = entry::with_prefix(matching, Field::Ipv4Dst, destination, long);
    if class >> 4 == 1 { matching.with(Field::UdpDst, 1000 + class) } else { matching }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_class_has_a_mask_of_its_own() {
        let masks: HashSet<_> = (0..CLASSES).map(|class| matching(class, 0).key_and_mask().unwrap().1).collect();
        assert_eq!(masks.len(), 32);
    }

    #[test]
    fn entries_of_a_class_differ() {
        let some: HashSet<_> = (0..5000).map(|number| matching(0, number)).collect();
        assert_eq!(some.len(), 5000);
    }
}
