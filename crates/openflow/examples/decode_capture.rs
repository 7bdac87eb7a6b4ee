//! Prints the OpenFlow messages of a capture file, direction by direction, as `ovs-ofctl ofp-print` does.
//!
//! `cargo run -p weir-openflow --example decode_capture -- FILE.pcap`; without a file, it writes and reads a small
//! capture of its own. Connections are TCP over IPv4 from or to port 6653. Segments count in the order of the file.
use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use weir_openflow::codec::MessageHeader;
use weir_openflow::model::FlowCommand;
use weir_openflow::text::{PrintDetail, parse_flow, print_bytes};
use weir_openflow::{Body, Message, Version, encode};
use weir_packet::craft::{FrameBuilder, TcpHeader};
use weir_packet::{Field, FramePool, MacAddr, ParsedHeaders, PortNo};
use weir_port::pcap::{PcapFileReader, PcapFileWriter};
use weir_units::Instant;

/// Port number that controllers listen on.
const OPENFLOW: u16 = 6653;

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args().nth(1).map(PathBuf::from);
    let path = given.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("weir-{}.pcap", std::process::id())));
    if given.is_none() {
        write_capture(&path)?;
    }
    let printed = print_capture(&path);
    if given.is_none() {
        std::fs::remove_file(&path)?;
    }
    printed
}

fn print_capture(path: &Path) -> Result<(), Box<dyn Error>> {
    let (mut capture, mut pool) = (PcapFileReader::open(path)?, FramePool::default());
    // Bytes of each direction that are not a whole message yet.
    let mut streams: HashMap<[u128; 4], Vec<u8>> = HashMap::new();
    while let Some((_, frame)) = capture.next(&mut pool)? {
        let parsed = ParsedHeaders::of(&frame, PortNo::ANY)?;
        let direction =
            [Field::Ipv4Src, Field::TcpSrc, Field::Ipv4Dst, Field::TcpDst].map(|field| parsed.key.get(field));
        let Some(payload) = tcp_payload(frame.bytes(), &parsed) else { continue };
        if !direction.contains(&u128::from(OPENFLOW)) {
            continue;
        }
        let stream = streams.entry(direction).or_default();
        stream.extend_from_slice(payload);
        while let Some(header) = MessageHeader::read(stream).filter(|header| stream.len() >= header.length.into()) {
            let message: Vec<u8> = stream.drain(..usize::from(header.length.max(8))).collect();
            print!("from port {}: {}", direction[1], print_bytes(&message, PrintDetail::Packets));
        }
    }
    Ok(())
}

/// Returns what follows the TCP header, up to the length in the IPv4 header.
fn tcp_payload<'a>(frame: &'a [u8], parsed: &ParsedHeaders) -> Option<&'a [u8]> {
    let (_, ip) = parsed.layers.network?;
    let (_, tcp) = parsed.layers.transport.filter(|_| parsed.key.get(Field::IpProto) == 6)?;
    let (ip, tcp) = (usize::from(ip), usize::from(tcp));
    let end = ip + usize::from(u16::from_be_bytes(*frame.get(ip + 2..)?.first_chunk()?));
    let begin = tcp + usize::from(frame.get(tcp + 12)? >> 4) * 4;
    frame.get(begin..end)
}

/// Writes a capture in which a controller adds an entry and asks for a barrier; the second message is in two segments.
fn write_capture(path: &Path) -> Result<(), Box<dyn Error>> {
    let flow = parse_flow("priority=10,ip,nw_dst=10.0.0.0/8,actions=output:2", FlowCommand::Add)?;
    let mut bytes = Vec::new();
    for (xid, body) in [(1, Body::FlowMod(flow)), (2, Body::BarrierRequest)] {
        encode(&Message { xid, body }, Version::V13, &mut bytes)?;
    }
    let addresses = FrameBuilder::ethernet(MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]));
    let segment = TcpHeader { source: OPENFLOW, destination: 40_000, flags: 16, ..TcpHeader::default() };
    let builder = addresses.ipv4([192, 0, 2, 1].into(), [192, 0, 2, 2].into()).tcp(segment);
    let (first, second) = bytes.split_at(bytes.len() - 5);
    let mut capture = PcapFileWriter::create(path)?;
    capture.write(Instant::ZERO, &builder.clone().payload(first).build())?;
    Ok(capture.write(Instant::ZERO, &builder.payload(second).build())?)
}
