//! Checks captures that a scenario replays: reads the times and lengths of their frames.
use super::SourceFile;
use super::traffic_laws::{beside, expect_size};
use crate::document::CaptureToml;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use weir_packet::{Field, FlowKey, IpNet, PortNo, parse};
use weir_traffic::{CaptureReader, CaptureRecord, MAX_TRACE, TracePacket, TrafficTrace};
use weir_units::counted;

/// Allowed factors by which a capture is replayed faster.
const SPEED: RangeInclusive<f64> = 1e-3..=1e6;
/// Largest number of rounds.
const MAX_ROUNDS: u32 = 1_000_000;

/// Reads a capture. `lengths` are the lengths of frames in bytes that can be sent.
///
/// # Errors
/// Settings out of range, and files that cannot be replayed; the message says what to do.
pub(super) fn read(
    source: &SourceFile<'_>,
    item: &CaptureToml,
    lengths: RangeInclusive<u32>,
) -> Result<TrafficTrace, String> {
    let speed = item.speed.unwrap_or(1.0);
    if !SPEED.contains(&speed) {
        return Err(format!("speed: found {speed}, expected a factor of {} to {}", SPEED.start(), SPEED.end()));
    }
    let asked = item.repeat.unwrap_or(1);
    let rounds = u32::try_from(asked).ok().filter(|rounds| (1..=MAX_ROUNDS).contains(rounds));
    let Some(rounds) = rounds else {
        return Err(format!("repeat: found {asked}, expected a number of times of 1 to {MAX_ROUNDS}"));
    };
    let filter = CaptureFilter {
        source: item.ip_src.as_deref().map(|text| prefix("ip_src", text)).transpose()?,
        destination: item.ip_dst.as_deref().map(|text| prefix("ip_dst", text)).transpose()?,
    };
    let path = beside(source, &item.file);
    let wrong = |problem: String| format!("{}: {problem}", path.display());
    expect_size(&path)?;
    if !path.is_file() {
        return Err(wrong("found no regular file, expected a capture (pcap or pcapng)".into()));
    }
    let capture = SelectedFrames::read(&path, &filter).map_err(wrong)?;
    let mut packets = capture.packets;
    if packets.len() < 2 {
        let which = if filter.is_any() { "" } else { " with these addresses" };
        let found = counted(packets.len(), "frame", "frames");
        return Err(wrong(format!("found {found}{which}, expected two or more: a rate needs gaps")));
    }
    if capture.span_ns == 0 {
        return Err(wrong("found all frames at one time, expected times that differ".into()));
    }
    let outside = packets.iter().filter(|packet| !lengths.contains(&packet.bytes)).count();
    if outside > 0 && !item.clamp {
        let of =
            |least: bool| packets.iter().map(|packet| packet.bytes).reduce(if least { u32::min } else { u32::max });
        let (shortest, longest) = (of(true).unwrap_or(0), of(false).unwrap_or(0));
        let (least, most) = (lengths.start(), lengths.end());
        return Err(wrong(format!(
            "found {outside} of {} of lengths that cannot be sent (there are {shortest} to {longest} bytes), expected \
             {least} to {most}; `clamp = true` gives them the nearest length",
            counted(packets.len(), "frame", "frames"),
        )));
    }
    packets.iter_mut().for_each(|packet| packet.bytes = packet.bytes.clamp(*lengths.start(), *lengths.end()));
    // The next round follows by a mean gap, so that the rate stays that of the capture.
    let period_ns = capture.span_ns.saturating_add((capture.span_ns / (capture.frames - 1)).max(1));
    let trace = TrafficTrace::repeated(packets, period_ns, rounds).map_err(|error| wrong(error.to_string()))?;
    Ok(if item.speed.is_some() { trace.slowed(1.0 / speed) } else { trace })
}

/// Addresses that the replayed frames have.
struct CaptureFilter {
    source: Option<IpNet>,
    destination: Option<IpNet>,
}

impl CaptureFilter {
    /// Returns true if frames of any addresses are replayed.
    fn is_any(&self) -> bool {
        self.source.is_none() && self.destination.is_none()
    }

    fn selects(&self, frame: &[u8]) -> bool {
        if self.is_any() {
            return true;
        }
        let Ok(parsed) = parse::parse(frame, PortNo(1)) else { return false };
        let is_in = |net: &Option<IpNet>, v4: Field, v6: Field| {
            net.as_ref().is_none_or(|net| address(&parsed.key, net, v4, v6).is_some_and(|found| net.contains(found)))
        };
        is_in(&self.source, Field::Ipv4Src, Field::Ipv6Src) && is_in(&self.destination, Field::Ipv4Dst, Field::Ipv6Dst)
    }
}

/// Returns the address in a frame's field of the family of `net`; `None` if the frame has none.
fn address(key: &FlowKey, net: &IpNet, v4: Field, v6: Field) -> Option<IpAddr> {
    let field = if net.addr.is_ipv4() { v4 } else { v6 };
    let bits = Some(key.get(field)).filter(|bits| *bits != 0)?;
    Some(if net.addr.is_ipv4() { IpAddr::V4(u32::try_from(bits).ok()?.into()) } else { IpAddr::V6(bits.into()) })
}

/// Parses an address, or a prefix.
fn prefix(key: &str, text: &str) -> Result<IpNet, String> {
    let whole = |addr: IpAddr| IpNet { prefix: if addr.is_ipv4() { 32 } else { 128 }, addr };
    text.parse()
        .map(whole)
        .or_else(|_| text.parse())
        .map_err(|_| format!("{key}: found `{text}`, expected an address or a prefix such as 10.0.0.1 or 10.0.0.0/8"))
}

/// Selected frames of a capture, with times from its first frame on.
struct SelectedFrames {
    packets: Vec<TracePacket>,
    /// Number of frames in the capture.
    frames: u64,
    /// Time from the capture's first frame to its last, in ns.
    span_ns: u64,
}

impl SelectedFrames {
    fn read(path: &std::path::Path, filter: &CaptureFilter) -> Result<SelectedFrames, String> {
        let mut reader = CaptureReader::open(path).map_err(|error| error.to_string())?;
        let mut found = SelectedFrames { packets: Vec::new(), frames: 0, span_ns: 0 };
        let mut first_ns = None;
        while let Some(added) = reader
            .next(|record| found.add(&record, &mut first_ns, filter))
            .map_err(|damaged| format!("{damaged}; repair it (`editcap IN OUT` keeps what can be read)"))?
        {
            added?;
        }
        match reader.skipped() {
            0 => Ok(found),
            skipped => {
                Err(format!("found {skipped} records of interfaces that are not Ethernet, expected Ethernet only"))
            }
        }
    }

    fn add(
        &mut self,
        record: &CaptureRecord<'_>,
        first_ns: &mut Option<u64>,
        filter: &CaptureFilter,
    ) -> Result<(), String> {
        self.frames += 1;
        let number = self.frames;
        let time_ns = record.time_ns.ok_or_else(|| format!("found no time of frame {number}, expected one"))?;
        let before = first_ns.unwrap_or(time_ns).saturating_add(self.span_ns);
        if time_ns < before {
            return Err(format!(
                "found frame {number} {} ns before the one before it, expected frames in order of time; \
                 `reordercap IN OUT` sorts them",
                before - time_ns
            ));
        }
        self.span_ns = time_ns - *first_ns.get_or_insert(time_ns);
        if filter.selects(record.bytes) {
            self.packets.push(TracePacket { at_ns: self.span_ns, bytes: record.wire_bytes });
        }
        if self.packets.len() > MAX_TRACE {
            return Err(format!("found more than {MAX_TRACE} frames, expected at most that; `editcap -c` cuts it"));
        }
        Ok(())
    }
}
