//! Reads capture files, pcap and pcapng, as timestamped Ethernet frames.
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, InterfaceDescriptionBlock, Linktype, PcapBlockOwned, PcapError, create_reader};
use std::io::{Cursor, Read};
use weir_packet::field::eth_type;

/// Longest block that is read, in bytes: four times the longest packet that capture programs write.
const MAX_BLOCK: usize = 1 << 20;
/// Maximum number of interfaces in one file.
const MAX_INTERFACES: usize = 4096;
/// Bytes read before the file's format is determined: the longest section header that is accepted.
const MAX_START: u64 = 64 << 10;
/// Number of consecutive reads without progress after which the file counts as truncated.
const MAX_IDLE_READS: usize = 2;

/// A captured packet.
pub(super) struct CapturedPacket {
    /// Capture time in nanoseconds since 1970.
    pub(super) time_ns: u64,
    /// The packet as an Ethernet frame; its addresses are zero if it was captured without an Ethernet header.
    pub(super) frame: Vec<u8>,
}

/// Returns true if a file that starts with these bytes is a capture.
pub(super) fn is_capture(start: &[u8]) -> bool {
    const MAGIC: [[u8; 4]; 5] = [
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0x0a, 0x0d, 0x0d, 0x0a],
    ];
    MAGIC.iter().any(|magic| start.starts_with(magic))
}

/// Encoding of an interface's packets and times.
#[derive(Clone, Copy)]
struct InterfaceEncoding {
    link: Linktype,
    /// Ticks of the interface's clock per second.
    resolution: u64,
    /// Seconds to add to the interface's clock.
    offset_s: i64,
}

/// Reads a capture and passes each packet to `each`. Packets before an error have been passed already.
///
/// # Errors
/// Returns a description of what is wrong with the file.
pub(super) fn read(mut input: impl Read + Send, mut each: impl FnMut(CapturedPacket)) -> Result<(), String> {
    // The parser determines the format from its first read, which might return less than a header without this
    // buffer.
    let mut start = Vec::new();
    input.by_ref().take(MAX_START).read_to_end(&mut start).map_err(|error| error.to_string())?;
    let mut reader = create_reader(MAX_BLOCK, Cursor::new(start).chain(input)).map_err(|error| describe(&error))?;
    let mut interfaces: Vec<InterfaceEncoding> = Vec::new();
    let mut idle_reads = 0;
    loop {
        match reader.next() {
            Ok((consumed, block)) => {
                if let Some(packet) = packet(&block, &mut interfaces)? {
                    each(packet);
                }
                idle_reads = 0;
                reader.consume(consumed);
            }
            Err(PcapError::Eof) => return Ok(()),
            Err(PcapError::Incomplete(_)) if idle_reads < MAX_IDLE_READS => {
                idle_reads += 1;
                refill(reader.as_mut())?;
            }
            Err(error) => return Err(describe(&error)),
        }
    }
}

fn refill(reader: &mut dyn PcapReaderIterator) -> Result<(), String> {
    reader.refill().map_err(|error| describe(&error))
}

fn describe<I>(error: &PcapError<I>) -> String {
    match error {
        PcapError::Eof => "the capture is empty".into(),
        PcapError::BufferTooSmall => format!("the capture has a block longer than {MAX_BLOCK} bytes"),
        PcapError::UnexpectedEof | PcapError::Incomplete(_) => {
            "the capture is cut off in the middle of a packet".into()
        }
        PcapError::ReadError => "the capture cannot be read".into(),
        PcapError::HeaderNotRecognized => "neither a pcap nor a pcapng file".into(),
        PcapError::NomError(..) | PcapError::OwnedNomError(..) => "the capture has a malformed block".into(),
    }
}

fn packet(
    block: &PcapBlockOwned<'_>,
    interfaces: &mut Vec<InterfaceEncoding>,
) -> Result<Option<CapturedPacket>, String> {
    let (interface, ticks, data) = match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let resolution = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            interfaces.push(InterfaceEncoding { link: header.network, resolution, offset_s: 0 });
            return Ok(None);
        }
        PcapBlockOwned::Legacy(block) => {
            let Some(interface) = interfaces.first() else { return Ok(None) };
            let ticks = u128::from(block.ts_sec) * u128::from(interface.resolution) + u128::from(block.ts_usec);
            (*interface, ticks, block.data)
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            return Ok(None);
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
            if interfaces.len() == MAX_INTERFACES {
                return Err(format!("the capture has more than {MAX_INTERFACES} interfaces"));
            }
            interfaces.push(interface(block));
            return Ok(None);
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
            let number = block.if_id;
            let interface = usize::try_from(number).ok().and_then(|at| interfaces.get(at));
            let interface =
                interface.ok_or_else(|| format!("the capture has a packet of interface {number}, unknown"))?;
            let ticks = u128::from(block.ts_high) << 32 | u128::from(block.ts_low);
            (*interface, ticks, captured(block.data, block.caplen))
        }
        PcapBlockOwned::NG(Block::SimplePacket(block)) => {
            let Some(interface) = interfaces.first() else { return Ok(None) };
            (*interface, 0, captured(block.data, block.origlen))
        }
        PcapBlockOwned::NG(_) => return Ok(None),
    };
    Ok(ethernet(interface.link, data).map(|frame| CapturedPacket { time_ns: nanoseconds(interface, ticks), frame }))
}

fn interface(block: &InterfaceDescriptionBlock<'_>) -> InterfaceEncoding {
    let resolution = block.ts_resolution().filter(|resolution| *resolution != 0).unwrap_or(1_000_000);
    InterfaceEncoding { link: block.linktype, resolution, offset_s: block.ts_offset() }
}

/// Returns a block's data without its padding.
fn captured(data: &[u8], length: u32) -> &[u8] {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    &data[..length.min(data.len())]
}

fn nanoseconds(interface: InterfaceEncoding, ticks: u128) -> u64 {
    let since = i128::try_from(ticks * 1_000_000_000 / u128::from(interface.resolution)).unwrap_or(i128::MAX);
    let time = since.saturating_add(i128::from(interface.offset_s) * 1_000_000_000);
    u64::try_from(time.max(0)).unwrap_or(u64::MAX)
}

/// Converts a captured packet to an Ethernet frame. Returns `None` for link types that carry no IP.
fn ethernet(link: Linktype, data: &[u8]) -> Option<Vec<u8>> {
    let be16 = |at: usize| data.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    let (ether_type, payload) = match link {
        Linktype::ETHERNET => return Some(data.to_vec()),
        Linktype::NULL | Linktype::LOOP => (ip_type(data.get(4..)?)?, 4),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12 | 14) => (ip_type(data)?, 0),
        Linktype::LINUX_SLL => (be16(14)?, 16),
        Linktype(276) => (be16(0)?, 20),
        _ => return None,
    };
    let mut frame = vec![0; 12];
    frame.extend(ether_type.to_be_bytes());
    frame.extend(data.get(payload..)?);
    Some(frame)
}

/// Returns the EtherType of an IP packet, from its version field.
fn ip_type(packet: &[u8]) -> Option<u16> {
    match packet.first()? >> 4 {
        4 => Some(eth_type::IPV4),
        6 => Some(eth_type::IPV6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a pcap file of one packet, cut to `length` bytes.
    fn pcap(link: u32, packet: &[u8], length: usize) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65535, link] {
            // The version is two 16-bit numbers, whose order in the word is reversed in a little-endian file.
            let word = if word == 0x0002_0004 { 0x0004_0002 } else { word };
            file.extend(word.to_le_bytes());
        }
        let size = u32::try_from(packet.len()).unwrap();
        for word in [7, 250_000, size, size] {
            file.extend(u32::to_le_bytes(word));
        }
        file.extend(packet);
        file.truncate(length);
        file
    }

    fn frames(file: &[u8]) -> (Vec<CapturedPacket>, Result<(), String>) {
        let mut packets = Vec::new();
        let result = read(file, |packet| packets.push(packet));
        (packets, result)
    }

    #[test]
    fn time_and_link_layers() {
        let (packets, result) = frames(&pcap(1, &[9; 20], usize::MAX));
        assert_eq!((result, packets[0].time_ns, packets[0].frame.len()), (Ok(()), 7_250_000_000, 20));
        let (packets, _) = frames(&pcap(101, &[0x45; 20], usize::MAX));
        assert_eq!(packets[0].frame[12..15], [0x08, 0x00, 0x45]);
        let (packets, result) = frames(&pcap(147, &[0x45; 20], usize::MAX));
        assert_eq!((result, packets.len()), (Ok(()), 0));
    }

    #[test]
    fn a_cut_off_or_foreign_file_is_an_error() {
        let (packets, result) = frames(&pcap(1, &[9; 20], 50));
        assert!(packets.is_empty() && result.unwrap_err().contains("cut off"));
        assert!(frames(b"GET / HTTP/1.1 and so on and so forth").1.unwrap_err().contains("neither"));
        assert!(frames(b"").1.is_err());
    }

    #[test]
    fn a_reader_may_bring_little_at_a_time() {
        let file = pcap(1, &[9; 20], usize::MAX);
        let (start, rest) = file.split_at(3);
        let mut count = 0;
        assert_eq!(read(start.chain(rest), |_| count += 1), Ok(()));
        assert_eq!(count, 1);
    }
}
