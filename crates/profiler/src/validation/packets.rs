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
use weir_units::Instant;

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
    /// Draws an entry for each destination out of `entries` entries, whose kinds are those of `kinds` in turn: a device
    /// that only learns addresses has entries for Ethernet addresses. Lengths are limited to what a frame can hold.
    ///
    /// # Errors
    /// A number is out of range; the error names it.
    pub fn draw(
        packets: &[ReplayedPacket],
        entries: u32,
        kinds: &[MatchLayers],
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
            kind: kinds.get(at as usize % kinds.len().max(1)).copied().unwrap_or(MatchLayers::L2),
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

    /// Returns the series with the times at which packets were sent.
    #[must_use]
    pub fn as_sent(&self, sent: &[Instant]) -> PacketSeries {
        let mut series = self.clone();
        series.packets.truncate(sent.len());
        for (packet, pair) in series.packets.iter_mut().skip(1).zip(sent.windows(2)) {
            packet.gap = pair[1].since(pair[0]);
        }
        series
    }
}

/// Outcome of a series of packets.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PacketTimes {
    /// Delay of each packet in seconds without the rig's own; `None` for packets that were lost, or on their way while
    /// the measuring machine stopped.
    pub delays_s: Vec<Option<f64>>,
    /// Time at which each was sent.
    pub sent: Vec<Instant>,
    /// Number of packets that were on their way while the machine stopped.
    pub in_stops: usize,
}

/// Sends a series to a switch. Returns the delays of its packets. All entries of the switch are deleted before and
/// afterwards.
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
) -> Result<PacketTimes, ProfilerError> {
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
) -> Result<PacketTimes, ProfilerError> {
    bench.during = "adding entries for packets of a trace".to_owned();
    let taken = bench.fill(&series.there)?;
    if taken < series.there.len() {
        let found = format!("{taken} of {}", series.there.len());
        return Err(ProfilerError::wrong("entries for packets of a trace", found, "room for all of them"));
    }
    bench.rest(bench.settings.grace)?;
    bench.during = "measuring packets of a trace".to_owned();
    let (delays, sent) = bench.timed_delays(&series.packets)?;
    let mut times = PacketTimes { delays_s: Vec::new(), sent, in_stops: 0 };
    for ((delay, packet), sent) in delays.into_iter().zip(&series.packets).zip(&times.sent) {
        let gap_us = u32::try_from(packet.gap.as_micros()).unwrap_or(u32::MAX);
        let came = delay.map(|delay_s| *sent + Duration::from_secs_f64(delay_s.max(0.0)));
        let in_stop = came.is_some_and(|came| bench.device.was_stopped(*sent, came));
        times.in_stops += usize::from(in_stop);
        times.delays_s.push(delay.filter(|_| !in_stop).map(|delay| rig.off(delay, packet.bytes, gap_us)));
    }
    bench.clear()?;
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_one_destination_meet_one_entry() {
        let packet = |destination, bytes| ReplayedPacket { gap: Duration::from_micros(100), bytes, destination };
        let trace: Vec<ReplayedPacket> = (0..300).map(|at| packet(at % 40, 20 + at * 10)).collect();
        let series = PacketSeries::draw(&trace, 90, &MatchLayers::ALL, &mut RandomStream::new(3, 0, 0)).unwrap();
        for (at, planned) in series.packets.iter().enumerate() {
            assert_eq!(planned.rule, series.packets[at % 40].rule);
            assert!((SHORTEST..=LONGEST).contains(&planned.bytes) && series.there.contains(&planned.rule));
        }
        for kind in MatchLayers::ALL {
            assert!(series.packets.iter().any(|planned| planned.rule.kind == kind), "{kind:?}");
        }
        assert!(PacketSeries::draw(&[], 9, &MatchLayers::ALL, &mut RandomStream::new(3, 0, 0)).is_err());
        assert!(PacketSeries::draw(&trace, 0, &MatchLayers::ALL, &mut RandomStream::new(3, 0, 0)).is_err());
    }
}
