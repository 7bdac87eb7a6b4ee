//! Reads captures (pcap and pcapng files): the records of their Ethernet frames one after the other.
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, InterfaceDescriptionBlock, Linktype, PcapBlockOwned, PcapError};
use std::fs::File;
use std::io;
use std::path::Path;

/// Maximum length in bytes of a readable block.
const BUFFER: usize = 1 << 20;
/// Maximum number of interfaces in a section of a pcapng file.
const MAX_INTERFACES: usize = 4096;
const NS_PER_S: u64 = 1_000_000_000;

/// Sequential reader of a capture, with constant memory.
pub struct CaptureReader {
    blocks: Box<dyn PcapReaderIterator + Send>,
    /// Interfaces of the section being read; a pcap file has one.
    interfaces: Vec<CaptureInterface>,
    skipped: u64,
    ended: bool,
}

/// Record of an Ethernet frame in a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureRecord<'a> {
    /// Time in nanoseconds since 1970; `None` if the capture has no time for it.
    pub time_ns: Option<u64>,
    /// Length in bytes that the frame had on the wire, without FCS. More than there are `bytes` if the capture has only
    /// the beginning of each frame.
    pub wire_bytes: u32,
    /// Captured bytes.
    pub bytes: &'a [u8],
}

#[derive(Clone, Copy)]
struct CaptureInterface {
    ethernet: bool,
    /// Timestamp units per second.
    resolution: u64,
    /// Seconds to add to timestamps.
    offset_s: i64,
}

/// Error of a file that is truncated or not a valid capture; frames before the damage were delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("damaged capture: {0}")]
pub struct DamagedCaptureError(String);

impl CaptureReader {
    /// Opens a capture file.
    ///
    /// # Errors
    /// The file cannot be opened, is no capture, or (kind [`io::ErrorKind::InvalidData`]) its first interface is not
    /// Ethernet.
    pub fn open(path: &Path) -> io::Result<CaptureReader> {
        CaptureReader::new(File::open(path)?)
    }

    /// Reads a capture from its first byte on.
    ///
    /// # Errors
    /// The bytes cannot be read, are no capture, or (kind [`io::ErrorKind::InvalidData`]) the first interface is not
    /// Ethernet.
    pub fn new(bytes: impl io::Read + Send + 'static) -> io::Result<CaptureReader> {
        let blocks = pcap_parser::create_reader(BUFFER, bytes).map_err(|error| not_a_capture(&error))?;
        let mut reader = CaptureReader { blocks, interfaces: Vec::new(), skipped: 0, ended: false };
        reader.expect_ethernet()?;
        Ok(reader)
    }

    /// Gives the next record to `take` and returns its answer; `None` at the end. Records of other interfaces than
    /// Ethernet are skipped, see [`CaptureReader::skipped`].
    ///
    /// # Errors
    /// [`DamagedCaptureError`] once; afterwards the reader returns `None`.
    pub fn next<R>(&mut self, take: impl FnOnce(CaptureRecord<'_>) -> R) -> Result<Option<R>, DamagedCaptureError> {
        let mut take = Some(take);
        while !self.ended {
            if let Some(found) = self.step(&mut take)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the number of records skipped so far because they are not Ethernet.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Reads up to the first interface's description and checks that its link type is Ethernet.
    fn expect_ethernet(&mut self) -> io::Result<()> {
        let invalid = |problem: String| io::Error::new(io::ErrorKind::InvalidData, problem);
        while self.interfaces.is_empty() && !self.ended {
            self.step(&mut None::<fn(CaptureRecord<'_>)>).map_err(|damaged| invalid(damaged.to_string()))?;
        }
        match self.interfaces.first() {
            Some(interface) if !interface.ethernet => Err(invalid(
                "found a capture of another link type, expected Ethernet (link type 1); capture on an Ethernet interface, \
                 not on `any`"
                    .into(),
            )),
            _ => Ok(()),
        }
    }

    /// Reads one block. If it holds a record, gives it to `take`, unless that is `None`, and returns the answer.
    fn step<R>(
        &mut self,
        take: &mut Option<impl FnOnce(CaptureRecord<'_>) -> R>,
    ) -> Result<Option<R>, DamagedCaptureError> {
        let (consumed, found) = match self.blocks.next() {
            Ok((consumed, block)) => (consumed, read_block(block, &mut self.interfaces, &mut self.skipped, take)),
            Err(PcapError::Eof) => {
                self.ended = true;
                return Ok(None);
            }
            Err(PcapError::Incomplete(_)) => return self.refill().map(|()| None),
            Err(error) => {
                self.ended = true;
                return Err(damaged(&error));
            }
        };
        self.blocks.consume(consumed);
        Ok(found)
    }

    /// Reads more of the file. If no bytes are added although the file has not ended, a block is longer than the
    /// buffer.
    fn refill(&mut self) -> Result<(), DamagedCaptureError> {
        let before = self.blocks.data().len();
        let refilled = self.blocks.refill().map_err(|error| damaged(&error));
        let stuck = self.blocks.data().len() == before && !self.blocks.reader_exhausted();
        self.ended = stuck || refilled.is_err();
        if stuck { Err(DamagedCaptureError(format!("a block is longer than {BUFFER} bytes"))) } else { refilled }
    }
}

/// Processes a block. Returns the answer of `take` to its record, if it holds one of an Ethernet frame.
fn read_block<R>(
    block: PcapBlockOwned<'_>,
    interfaces: &mut Vec<CaptureInterface>,
    skipped: &mut u64,
    take: &mut Option<impl FnOnce(CaptureRecord<'_>) -> R>,
) -> Option<R> {
    let mut record = |interface: Option<CaptureInterface>, units: Option<u64>, wire_bytes: u32, bytes: &[u8]| {
        let usable = interface.filter(|interface| interface.ethernet);
        let Some((interface, take)) = usable.and_then(|interface| Some((interface, take.take()?))) else {
            *skipped += 1;
            return None;
        };
        Some(take(CaptureRecord { time_ns: units.map(|units| interface.time_ns(units)), wire_bytes, bytes }))
    };
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let resolution = if header.is_nanosecond_precision() { NS_PER_S } else { 1_000_000 };
            interfaces.push(CaptureInterface {
                ethernet: header.network == Linktype::ETHERNET,
                resolution,
                offset_s: 0,
            });
            None
        }
        PcapBlockOwned::Legacy(packet) => {
            let interface = interfaces.first().copied();
            let resolution = interface.map_or(1, |interface| interface.resolution);
            let units = u64::from(packet.ts_sec) * resolution + u64::from(packet.ts_usec);
            record(interface, Some(units), packet.origlen, packet.data)
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            None
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            if interfaces.len() < MAX_INTERFACES {
                interfaces.push(CaptureInterface::new(&description));
            }
            None
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let interface = usize::try_from(packet.if_id).ok().and_then(|id| interfaces.get(id)).copied();
            let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            record(interface, Some(units), packet.origlen, packet.packet_data())
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            record(interfaces.first().copied(), None, packet.origlen, packet.packet_data())
        }
        PcapBlockOwned::NG(_) => None,
    }
}

impl CaptureInterface {
    fn new(description: &InterfaceDescriptionBlock<'_>) -> CaptureInterface {
        CaptureInterface {
            ethernet: description.linktype == Linktype::ETHERNET,
            resolution: description.ts_resolution().filter(|units| *units > 0).unwrap_or(1_000_000),
            offset_s: description.ts_offset(),
        }
    }

    /// Converts a timestamp in this interface's units to nanoseconds since 1970.
    fn time_ns(&self, units: u64) -> u64 {
        let ns = i128::from(units) * i128::from(NS_PER_S) / i128::from(self.resolution);
        let ns = ns + i128::from(self.offset_s) * i128::from(NS_PER_S);
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}

fn not_a_capture(error: &PcapError<&[u8]>) -> io::Error {
    match error {
        PcapError::ReadError => io::Error::other("the file cannot be read"),
        _ => io::Error::new(io::ErrorKind::InvalidData, "found no pcap or pcapng header, expected a capture file"),
    }
}

fn damaged(error: &PcapError<&[u8]>) -> DamagedCaptureError {
    DamagedCaptureError(match error {
        PcapError::UnexpectedEof => "the file ends in the middle of a record".into(),
        PcapError::ReadError => "the file cannot be read".into(),
        PcapError::BufferTooSmall => format!("a record claims to be longer than {BUFFER} bytes"),
        _ => "a record has a wrong header".into(),
    })
}
