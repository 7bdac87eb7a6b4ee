//! Measures the delays of a trace's packets, with its lengths and times, to entries of all kinds.
use super::{KnownSwitchTiming, bench};
use crate::bench::{PlannedProbe, TestBench};
use crate::device::DeviceUnderTest;
use crate::rules::{GROUP_ENTRIES, SHORTEST, TestFlowEntry, number};
use crate::{MeasurementSettings, ProfilerError, RigDelayTable};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_profile::MatchLayers;
use weir_traffic::RandomStream;

/// Group of the entries.
const GROUP: u32 = 8;
/// Priority of all entries, equal so that only packets make a difference.
const PRIORITY: u16 = 32_000;
/// Longest frame that every network carries, in bytes without FCS.
const LONGEST: u32 = 1514;

/// Packet of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayedPacket {
    /// Time since the previous packet.
    pub gap: Duration,
    /// Length in bytes, without FCS.
    pub bytes: u32,
    /// Number of the destination: packets with equal numbers match the same entry.
    pub destination: u32,
}

/// Packets, and the entries that they match.
#[derive(Debug, Clone)]
pub struct PacketSeries {
    there: Vec<TestFlowEntry>,
    packets: Vec<PlannedProbe>,
}

impl PacketSeries {
    /// Draws an entry for each destination out of `entries` entries. A third of these each match Ethernet addresses,
    /// IP addresses, and both. Lengths are limited to what a frame can hold.
    ///
    /// # Errors
    /// A number is out of range; the error names it.
    pub fn draw(
        packets: &[ReplayedPacket],
        entries: u32,
        random: &mut RandomStream,
    ) -> Result<PacketSeries, ProfilerError> {
        if packets.is_empty() {
            return Err(ProfilerError::wrong("packets of a series", 0, "one or more"));
        }
        if !(1..=GROUP_ENTRIES).contains(&entries) {
            return Err(ProfilerError::wrong("entries for a series", entries, format!("1 to {GROUP_ENTRIES}")));
        }
        let rule = |at: u32| TestFlowEntry {
            number: number(GROUP, at),
            priority: PRIORITY,
            kind: MatchLayers::ALL[at as usize % MatchLayers::ALL.len()],
        };
        let there: Vec<TestFlowEntry> = (0..entries).map(rule).collect();
        let mut to: BTreeMap<u32, TestFlowEntry> = BTreeMap::new();
        let mut planned = Vec::with_capacity(packets.len());
        for packet in packets {
            let drawn = || there[usize::try_from(random.below(entries.into())).unwrap_or(0)];
            let rule = *to.entry(packet.destination).or_insert_with(drawn);
            planned.push(PlannedProbe { rule, bytes: packet.bytes.clamp(SHORTEST, LONGEST), gap: packet.gap });
        }
        Ok(PacketSeries { there, packets: planned })
    }
}

/// Sends a series to a switch. Returns the delay of each packet in seconds without the rig's own, none for lost
/// packets. All entries of the switch are deleted before and afterwards.
///
/// # Errors
/// The switch does not answer, or has no room for the entries.
pub fn packets(
    device: &mut dyn DeviceUnderTest,
    known: &KnownSwitchTiming,
    rig: &RigDelayTable,
    settings: MeasurementSettings,
    series: &PacketSeries,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Vec<Option<f64>>, ProfilerError> {
    let mut bench = bench(device, known, settings, stop)?;
    let found = measured(&mut bench, rig, series);
    if found.is_err() {
        bench.leave();
    }
    found
}

fn measured(
    bench: &mut TestBench<'_>,
    rig: &RigDelayTable,
    series: &PacketSeries,
) -> Result<Vec<Option<f64>>, ProfilerError> {
    bench.during = "adding entries for packets of a trace".to_owned();
    let taken = bench.fill(&series.there)?;
    if taken < series.there.len() {
        let found = format!("{taken} of {}", series.there.len());
        return Err(ProfilerError::wrong("entries for packets of a trace", found, "room for all of them"));
    }
    bench.rest(bench.settings.grace)?;
    bench.during = "measuring packets of a trace".to_owned();
    let delays = bench.delays(&series.packets)?;
    bench.clear()?;
    let off = |(delay, packet): (Option<f64>, &PlannedProbe)| {
        let gap_us = u32::try_from(packet.gap.as_micros()).unwrap_or(u32::MAX);
        delay.map(|delay| rig.off(delay, packet.bytes, gap_us))
    };
    Ok(delays.into_iter().zip(&series.packets).map(off).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_one_destination_meet_one_entry() {
        let packet = |destination, bytes| ReplayedPacket { gap: Duration::from_micros(100), bytes, destination };
        let trace: Vec<ReplayedPacket> = (0..300).map(|at| packet(at % 40, 20 + at * 10)).collect();
        let series = PacketSeries::draw(&trace, 90, &mut RandomStream::new(3, 0, 0)).unwrap();
        for (at, planned) in series.packets.iter().enumerate() {
            assert_eq!(planned.rule, series.packets[at % 40].rule);
            assert!((SHORTEST..=LONGEST).contains(&planned.bytes) && series.there.contains(&planned.rule));
        }
        for kind in MatchLayers::ALL {
            assert!(series.packets.iter().any(|planned| planned.rule.kind == kind), "{kind:?}");
        }
        assert!(PacketSeries::draw(&[], 9, &mut RandomStream::new(3, 0, 0)).is_err());
        assert!(PacketSeries::draw(&trace, 0, &mut RandomStream::new(3, 0, 0)).is_err());
    }
}
