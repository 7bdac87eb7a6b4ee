//! Writes a case to files, so that other switches can be measured with the same entries and flows.
use super::case::DatapathBenchCase;
use super::testbed;
use super::{BenchPortKind, DatapathBenchArgs, FlowOrder};
use anyhow::Context;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use weir_openflow::Version;
use weir_openflow::text::format_flow;
use weir_packet::FramePool;
use weir_port::Port;
use weir_port::null::{FlowHeaderKind, NullPort};
use weir_units::Instant;

/// Parameters of a generator of the same packets.
#[derive(Debug, Serialize)]
struct GeneratorParameters {
    headers: &'static str,
    flows: u32,
    spread: u32,
    size: usize,
    order: FlowOrder,
    seed: u64,
    entries: u64,
}

/// Number of frames in the file `first`, which verifies a generator.
const FIRST: usize = 256;
/// Bytes of each frame in `first`.
const FIRST_BYTES: usize = 60;

/// Writes `entries` (a line each, as `ovs-ofctl add-flows` reads them), `generator.json`, `first` (60 bytes of each
/// of the first 256 frames), `list` for listed flows (4 bytes for each destination, 64 for each header), and
/// `flows.pcap` for ports that loop a capture.
pub(super) fn write(case: DatapathBenchCase, args: &DatapathBenchArgs, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir(folder).with_context(|| format!("--out: cannot make the directory {}", folder.display()))?;
    fs::write(folder.join("first"), first(testbed::source(&case, args, 0))?)?;
    if args.ports == BenchPortKind::Pcap {
        testbed::capture(testbed::source(&case, args, 0), case.flows.count(), &folder.join("flows.pcap"))?;
    }
    let DatapathBenchCase { entries, flows, .. } = case;
    let (headers, list) = kind(flows.headers());
    if let Some(list) = list {
        fs::write(folder.join("list"), list)?;
    }
    let mut count = 0;
    let mut file = BufWriter::new(File::create(folder.join("entries"))?);
    for flow in entries {
        writeln!(file, "{}", format_flow(&flow, Version::V13))?;
        count += 1;
    }
    file.flush()?;
    let (order, seed) = (args.order, args.seed);
    let (flows, spread, size) = (flows.count(), flows.spread(), flows.size());
    let generator = GeneratorParameters { headers, flows, spread, size, order, seed, entries: count };
    fs::write(folder.join("generator.json"), serde_json::to_string_pretty(&generator)? + "\n")?;
    Ok(())
}

fn first(mut source: NullPort) -> anyhow::Result<Vec<u8>> {
    let (mut pool, mut frames) = (FramePool::default(), Vec::new());
    source.receive(Instant::ZERO, &mut pool, &mut frames, FIRST)?;
    Ok(frames.iter().flat_map(|frame| frame.bytes()[..FIRST_BYTES].to_vec()).collect())
}

/// Returns the name of the kind of headers, and its list as bytes if it has one.
fn kind(headers: &FlowHeaderKind) -> (&'static str, Option<Vec<u8>>) {
    match headers {
        FlowHeaderKind::Udp => ("udp", None),
        FlowHeaderKind::Mac => ("mac", None),
        FlowHeaderKind::Mpls => ("mpls", None),
        FlowHeaderKind::Masks => ("masks", None),
        FlowHeaderKind::Destinations(list) => {
            ("destinations", Some(list.iter().flat_map(|to| to.to_be_bytes()).collect()))
        }
        FlowHeaderKind::Listed(list) => ("listed", Some(list.concat())),
    }
}
