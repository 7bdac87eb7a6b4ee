//! Parses the options of `null:` ports.
use super::flow_sequence::{FlowSequence, MAX_FLOWS};
use super::flows::{FlowHeaderKind, GeneratedFlows, HEADER, HeaderBytes};
use super::{NullFrameSource, SIZES};
use crate::PortError;
use crate::pcap::{PcapFileReader, cannot};
use crate::spec::PortOptions;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::Ipv4Addr;
use std::path::Path;
use weir_packet::FramePool;

/// Lengths in bytes of frames of zeros: from an Ethernet header to a jumbo frame.
const ZEROES: std::ops::RangeInclusive<usize> = 14..=9216;
const DEFAULT_ZEROES: usize = 64;
/// Maximum length in bytes of a line in a list of addresses.
const MAX_LINE: u64 = 1024;
const KINDS: [&str; 6] = ["udp", "mac", "mpls", "masks", "destinations", "listed"];
/// Options that are valid only with `headers`.
const OF_HEADERS: [&str; 5] = ["flows", "spread", "order", "seed", "file"];

/// Returns the source of received frames that the options describe.
pub(super) fn source(options: &PortOptions) -> Result<NullFrameSource, PortError> {
    options.expect_only(&["rx", "size", "headers", "flows", "spread", "order", "seed", "file"])?;
    let rx = options.flag("rx", false)?;
    let given = |name: &&str| options.text(name).is_some();
    if let Some(name) = ["size", "headers"].iter().chain(&OF_HEADERS).find(|name| given(name)).filter(|_| !rx) {
        return Err(options.error(format!("option {name} is for received frames: add rx=on")));
    }
    if options.text("headers").is_some() {
        return flows(options);
    }
    if let Some(name) = OF_HEADERS.iter().find(|name| given(name)) {
        return Err(options.error(format!("option {name} is for frames with headers: add headers={}", KINDS.join("|"))));
    }
    let size = options.get("size", "14 to 9216 bytes")?.unwrap_or(DEFAULT_ZEROES);
    if !ZEROES.contains(&size) {
        return Err(options.error(format!("option size: found `{size}`, expected 14 to 9216 bytes")));
    }
    Ok(if rx { NullFrameSource::Zeroes(size) } else { NullFrameSource::Nothing })
}

fn flows(options: &PortOptions) -> Result<NullFrameSource, PortError> {
    let headers = headers(options)?;
    let expected = "a number of flows";
    let listed = headers.listed().map(|listed| u32::try_from(listed).unwrap_or(u32::MAX));
    let count = options.get("flows", expected)?.or(listed).unwrap_or(1);
    let spread = options.get("spread", expected)?;
    let size = options.get("size", "60 to 1514 bytes")?.unwrap_or(*SIZES.start());
    let flows = GeneratedFlows::new(headers, count, spread, size).map_err(|problem| options.error(problem))?;
    let seed = options.get("seed", "a number")?;
    let order = match options.text("order") {
        None | Some("cycle") if seed.is_none() => FlowSequence::cycle(count),
        None | Some("cycle") => return Err(options.error("option seed is for order=random")),
        Some("random") => FlowSequence::random(count, seed.unwrap_or(1)),
        Some(other) => return Err(options.error(format!("option order: found `{other}`, expected cycle or random"))),
    };
    Ok(NullFrameSource::Flows(Box::new(flows), order))
}

fn headers(options: &PortOptions) -> Result<FlowHeaderKind, PortError> {
    let kind = options.text("headers").unwrap_or_default();
    let file = options.text("file");
    let headers = match (kind, file) {
        ("udp", None) => FlowHeaderKind::Udp,
        ("mac", None) => FlowHeaderKind::Mac,
        ("mpls", None) => FlowHeaderKind::Mpls,
        ("masks", None) => FlowHeaderKind::Masks,
        ("destinations", Some(file)) => FlowHeaderKind::Destinations(addresses(file, options)?),
        ("listed", Some(file)) => FlowHeaderKind::Listed(captured(file, options)?),
        ("destinations" | "listed", None) => return Err(options.error(format!("headers={kind} needs file=FILE"))),
        (known, Some(_)) if KINDS.contains(&known) => {
            return Err(options.error(format!("headers={known} has no list: leave file out")));
        }
        (other, _) => {
            let hint =
                weir_units::nearest_name(other, KINDS).map(|near| format!(", perhaps {near}")).unwrap_or_default();
            let expected = KINDS.join(", ");
            return Err(options.error(format!("option headers: no kind `{other}`{hint}; kinds are {expected}")));
        }
    };
    match headers.listed() {
        Some(0) => Err(options.error(format!("{} holds nothing to send", file.unwrap_or_default()))),
        _ => Ok(headers),
    }
}

/// Reads IPv4 addresses from a file, one per line. Ignores a prefix length after an address, empty lines, and lines
/// that begin with `#`.
fn addresses(file: &str, options: &PortOptions) -> Result<Box<[u32]>, PortError> {
    let opened = File::open(file).map_err(|error| cannot("read", file, error, options))?;
    let (mut reader, mut list, mut line) = (BufReader::new(opened), Vec::new(), String::new());
    for number in 1_u64.. {
        line.clear();
        let mut limited = std::io::Read::take(&mut reader, MAX_LINE);
        if limited.read_line(&mut line).map_err(|error| cannot("read", file, error, options))? == 0 {
            break;
        }
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let address = text.split_once('/').map_or(text, |(address, _)| address);
        let Ok(address) = address.parse::<Ipv4Addr>() else {
            let found: String = text.chars().take(40).collect();
            return Err(options.error(format!("{file}:{number}: found `{found}`, expected an IPv4 address")));
        };
        list.push(address.to_bits());
        if list.len() > MAX_FLOWS as usize {
            return Err(options.error(format!("{file}: more than {MAX_FLOWS} addresses")));
        }
    }
    Ok(list.into())
}

/// Reads the first bytes of each frame in a capture.
fn captured(file: &str, options: &PortOptions) -> Result<Box<[HeaderBytes]>, PortError> {
    let mut reader = PcapFileReader::open(Path::new(file)).map_err(|error| cannot("read", file, error, options))?;
    let (mut pool, mut list) = (FramePool::default(), Vec::new());
    while let Some((_, frame)) =
        reader.next(&mut pool).map_err(|damaged| options.error(format!("{file}: {damaged}")))?
    {
        let mut header = [0; HEADER];
        let kept = frame.len().min(HEADER);
        header[..kept].copy_from_slice(&frame.bytes()[..kept]);
        list.push(header);
        pool.give(frame);
        if list.len() > MAX_FLOWS as usize {
            return Err(options.error(format!("{file}: more than {MAX_FLOWS} frames")));
        }
    }
    Ok(list.into())
}
